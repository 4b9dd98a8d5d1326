//! What a packet capture beside a trial brought.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How packets are captured while a trial runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureSpec {
    /// Bytes kept of each packet, its link header included.
    pub snaplen: u32,
    /// The near end's folder for its files, where that is the command itself; an agent has a folder of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The most of an agent's file that is brought to the coordinator's host after the trial, bytes; the agent then keeps nothing.
    /// Null leaves the file with the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch_bytes: Option<u64>,
}

impl CaptureSpec {
    /// Bytes kept unless told otherwise: link, IPv6 and TCP headers with timestamps fit.
    pub const SNAPLEN: u32 = 96;
    /// The shortest: the headers that the time sequence is made of, over IPv6.
    pub const SNAPLEN_MIN: u32 = 80;
    /// The longest: a whole packet with segmentation offload.
    pub const SNAPLEN_MAX: u32 = 65_535;
}

/// One end's capture of one pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Capture {
    /// The pcapng file, a path of that end's host, or of the coordinator's where it was fetched; null where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Bytes of the file that were fetched from that end's host; null where it lies where it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched_bytes: Option<u64>,
    /// Why the file was not fetched, or not all of it. `packets` and `bytes` count what was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_fetched: Option<String>,
    /// The interface that was listened on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Bytes kept of each packet.
    pub snaplen: u32,
    /// Packets in the file. With segmentation offload one may stand for many on the wire.
    pub packets: u64,
    /// Their bytes as they passed the interface, link headers included.
    pub bytes: u64,
    /// Packets that passed the filter and found the ring full (PACKET_STATISTICS); null where that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<u64>,
    /// CPU time of the capturing thread, ns. What the kernel spent on copying packets into the ring is not in it: it is a part
    /// of the senders' and the softirqs' time.
    pub cost_ns: u64,
    /// Why there is no capture, or why it ended before the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The connection with the most payload over time; null where no TCP was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<TimeSequence>,
}

/// Sequence numbers of one TCP connection over time, as tcptrace draws them (its time sequence graph), in the direction with more
/// payload. Each entry is `[time, number]`: ns since the first packet of the connection, and bytes since its first sequence
/// number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TimeSequence {
    /// Address and port of the end that sent the payload.
    pub sender: String,
    /// Address and port of the other end.
    pub receiver: String,
    /// Ends of segments.
    pub data: Vec<(u64, u64)>,
    /// One in so many segments stands in `data`.
    pub data_kept: u64,
    /// Acknowledgement numbers of the other end.
    pub acks: Vec<(u64, u64)>,
    /// One in so many acknowledgements stands in `acks`.
    pub acks_kept: u64,
    /// Ends of segments with payload that was not new: retransmitted, or reordered.
    pub retransmitted_at: Vec<(u64, u64)>,
    /// One in so many of these stands in `retransmitted_at`.
    pub retransmitted_kept: u64,
    /// How many of these there were.
    pub retransmitted: u64,
}

impl TimeSequence {
    /// The most entries, all three lists together.
    pub const POINTS: usize = 4_000;
}
