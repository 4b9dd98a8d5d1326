//! Packet captures of trials.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One end's capture of one pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Capture {
    /// Path of the pcapng file on that end's host, or on the host that ran the command if it was fetched; null without a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Bytes of the file that were fetched from that end's host; null if it was not fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched_bytes: Option<u64>,
    /// Why the file was not fetched, or not all of it. `packets` and `bytes` count what was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_fetched: Option<String>,
    /// The interface that was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Bytes kept of each packet.
    pub snaplen: u32,
    /// Packets in the file. With segmentation offload one packet can be many on the wire.
    pub packets: u64,
    /// Their bytes at the interface, link headers included.
    pub bytes: u64,
    /// Packets that passed the filter while the ring was full (PACKET_STATISTICS); null if that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<u64>,
    /// CPU time of the capturing thread, ns. It does not include the kernel's time to copy packets into the ring, which is part
    /// of the senders' and the softirqs' time.
    pub cost_ns: u64,
    /// Why there is no capture, or why it ended before the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The connection with the most payload over time; null without TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<TimeSequence>,
}

/// Sequence numbers of one TCP connection over time (tcptrace's time sequence graph), in the direction with more payload. Each
/// entry is `[time, number]`: ns since the connection's first packet, and bytes since its first sequence number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TimeSequence {
    /// Address and port of the end that sent the payload.
    pub sender: String,
    /// Address and port of the other end.
    pub receiver: String,
    /// Ends of segments.
    pub data: Vec<(u64, u64)>,
    /// One in this many segments is in `data`.
    pub data_kept: u64,
    /// Acknowledgement numbers of the other end.
    pub acks: Vec<(u64, u64)>,
    /// One in this many acknowledgements is in `acks`.
    pub acks_kept: u64,
    /// Ends of segments with payload that was not new: retransmitted or reordered.
    pub retransmitted_at: Vec<(u64, u64)>,
    /// One in this many of these segments is in `retransmitted_at`.
    pub retransmitted_kept: u64,
    /// Number of these segments.
    pub retransmitted: u64,
}

impl TimeSequence {
    /// Most entries of all three lists together.
    pub const POINTS: usize = 4_000;
}
