//! Counters of a lab's links.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The links of a lab over a period.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LabReport {
    /// The lab.
    pub lab: String,
    /// Its topology.
    pub topology: String,
    /// Both directions of each emulated link; empty if the kernel alone carries all packets.
    pub directions: Vec<EmulatedDirection>,
    /// Directions of links that the kernel limits to a rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shaped: Vec<ShapedDirection>,
}

/// One direction of a link that a token bucket of the kernel limits to its rate (tc-tbf(8)).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ShapedDirection {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Segments that the bucket passed.
    pub sent: u64,
    /// Packets dropped because its queue was full. The kernel counts several segments in one packet as one.
    pub dropped: u64,
}

/// One direction of an emulated link. Segments are packets as on a wire: each segment of a TSO packet is counted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct EmulatedDirection {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Segments from the sending node.
    pub arrived: u64,
    /// Segments to the receiving node.
    pub delivered: u64,
    /// Dropped segments by location, such as `queue` and `loss`; locations without drops are left out. `device` is the sending
    /// node's own queue before the emulator: it counts packets, which may have several segments and are not part of `arrived`.
    pub dropped: BTreeMap<String, u64>,
    /// Segments that the queueing discipline marked (ECN).
    pub marked: u64,
    /// Segments with a flipped bit, copies included; they are part of `delivered`.
    pub corrupted: u64,
    /// Copies; they are part of `delivered`.
    pub duplicated: u64,
    /// Segments that were delivered after one that left the link later.
    pub reordered: u64,
    /// Whether the emulator's thread had real-time priority (SCHED_FIFO).
    pub realtime: bool,
    /// Packets that were delivered; segments that travel together count as one.
    pub late_packets: u64,
    /// Median lateness of a packet, ns, at most 1/16 too high; null without a packet.
    pub late_p50_ns: Option<u64>,
    /// 99th percentile of the lateness, ns.
    pub late_p99_ns: Option<u64>,
    /// Largest lateness, ns.
    pub late_max_ns: Option<u64>,
}
