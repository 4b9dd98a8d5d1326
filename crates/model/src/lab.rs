//! What the links of a lab did.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The links of a lab over some time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LabReport {
    /// The lab.
    pub lab: String,
    /// What it was built from.
    pub topology: String,
    /// Both ways of each link; none where the kernel alone carries all packets.
    pub directions: Vec<EmulatedDirection>,
    /// Ways of links that the kernel carries and holds to a rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shaped: Vec<ShapedDirection>,
}

/// One direction of a link that a token bucket of the kernel holds to its rate (tc-tbf(8)).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ShapedDirection {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Segments that the bucket let go.
    pub sent: u64,
    /// Packets that its queue had no room for. The kernel counts one for several segments that travel together.
    pub dropped: u64,
}

/// One direction of an emulated link. Segments are packets as on a wire: one that came in a TSO packet of many counts by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EmulatedDirection {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Segments that the sending node gave to the link.
    pub arrived: u64,
    /// Segments that the receiving node was given.
    pub delivered: u64,
    /// Segments that ended on the way, by place, such as `queue` and `loss`; places without any are left out. Of `device`, the sending
    /// node's own queue before the emulator, packets, each of which may be several segments; they are not among those that arrived.
    pub dropped: BTreeMap<String, u64>,
    /// Segments that the queue's discipline marked (ECN).
    pub marked: u64,
    /// Segments with a bit flipped, copies too; they are among the delivered ones.
    pub corrupted: u64,
    /// Copies made; they are among the delivered ones.
    pub duplicated: u64,
    /// Segments that were delivered after one that left the link later.
    pub reordered: u64,
    /// Whether the emulator's thread went before all ordinary ones (SCHED_FIFO).
    pub realtime: bool,
    /// Packets that were handed over, one for several segments where they travel together.
    pub late_packets: u64,
    /// How long after its time a packet was handed over, ns: the median, at most 1/16 too high; null without a packet.
    pub late_p50_ns: Option<u64>,
    /// The same, of which 99 % of the packets stay below.
    pub late_p99_ns: Option<u64>,
    /// The same of the latest packet.
    pub late_max_ns: Option<u64>,
}
