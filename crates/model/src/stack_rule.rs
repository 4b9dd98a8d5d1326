//! What a congestion control does for one destination.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule of HighSpeed TCP for connections between some addresses, with the knobs that wad.conf had (the work-around daemon of
/// Net100, 2003). Of several that fit a connection the most specific one holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackRule {
    /// Its section in the file.
    pub name: String,
    /// Local address and prefix length, as in `10.0.0.0/8`.
    pub source: String,
    /// Local port; 0 for any.
    pub source_port: u16,
    /// Remote address and prefix length.
    pub destination: String,
    /// Remote port; 0 for any.
    pub destination_port: u16,
    /// Send buffer in bytes; 0 leaves it alone.
    pub sndbuf_bytes: u32,
    /// Receive buffer in bytes; 0 leaves it alone.
    pub rcvbuf_bytes: u32,
    /// Thousandths of a segment that the window grows by in a round trip, where `table` is not set.
    pub increase_permille: u32,
    /// Thousandths of the window that are given up at a loss, where `table` is not set.
    pub decrease_permille: u32,
    /// Segments above which slow start is limited (RFC 3742); 0 for no limit.
    pub max_ssthresh: u32,
    /// Increase and decrease are those of RFC 3649's table.
    pub table: bool,
    /// A full queue of this host is not taken for a loss.
    pub ignore_local_queue: bool,
    /// The connections that it holds for share its buffers.
    pub divide: bool,
}
