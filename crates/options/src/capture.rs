//! The capture of a measurement's packets.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How packets are captured while a trial runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CaptureSpec {
    /// Bytes kept of each packet, including its link header.
    pub snaplen: u32,
    /// The folder for the files of the host that runs the command; an agent has its own folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Most bytes of an agent's file that are copied to the host that runs the command after the trial; the agent then removes
    /// its file. Null leaves the file with the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch_bytes: Option<u64>,
}

impl CaptureSpec {
    /// Default: link, IPv6 and TCP headers with timestamps fit.
    pub const SNAPLEN: u32 = 96;
    /// Minimum: the headers that the time sequence needs, over IPv6.
    pub const SNAPLEN_MIN: u32 = 80;
    /// Maximum: a whole packet with segmentation offload.
    pub const SNAPLEN_MAX: u32 = 65_535;
}
