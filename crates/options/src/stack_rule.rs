//! Rules of a congestion control for single destinations.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule of HighSpeed TCP for connections between some addresses, with the parameters of wad.conf (the work-around daemon of
/// Net100, 2003). If several rules match a connection, the most specific one applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct StackRule {
    /// The name of its section in the file.
    pub name: String,
    /// Local address and prefix length, as in `10.0.0.0/8`.
    pub source: String,
    /// Local port; 0 for any.
    pub source_port: u16,
    /// Remote address and prefix length.
    pub destination: String,
    /// Remote port; 0 for any.
    pub destination_port: u16,
    /// Send buffer in bytes; 0 leaves it unchanged.
    pub sndbuf_bytes: u32,
    /// Receive buffer in bytes; 0 leaves it unchanged.
    pub rcvbuf_bytes: u32,
    /// Growth of the window in a round trip, in thousandths of a segment, if `table` is not set.
    pub increase_permille: u32,
    /// Decrease of the window at a loss, in thousandths of the window, if `table` is not set.
    pub decrease_permille: u32,
    /// Segments above which slow start is limited (RFC 3742); 0 for no limit.
    pub max_ssthresh: u32,
    /// Whether increase and decrease are from RFC 3649's table.
    pub table: bool,
    /// Whether a full queue of this host is ignored and not treated as a loss.
    pub ignore_local_queue: bool,
    /// Whether the connections that it applies to share its buffers.
    pub divide: bool,
}
