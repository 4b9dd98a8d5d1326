//! What held a measurement back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Finding;

/// What held an outcome back, and the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// What limited it most.
    pub limiter: LimiterKind,
    /// How strongly the evidence speaks for it; null where it is unexplained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// One sentence with its numbers and units.
    pub statement: String,
    /// Where the sender's time went by TCP's clocks, in parts of it; they add up to 1. Empty where the clocks say nothing.
    pub parts: Vec<TimePart>,
    /// What speaks for it, strongest first.
    pub evidence: Vec<Evidence>,
    /// What else may have limited it, strongest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<LimiterKind>,
    /// Where packets that did not arrive went; null where none is missing, or nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub losses: Option<Losses>,
    /// What else the record tells, each in one sentence: stalls, differences between the directions, windows that do not fit the
    /// path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What was not recorded, so that nothing is said by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// Packets that did not arrive, all trials together, by the location that dropped them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Losses {
    /// How many there are.
    pub packets: u64,
    /// What they are: `datagrams` by their sequence numbers, or `segments` that TCP retransmitted.
    pub of: String,
    /// Where they were dropped, in the order of the path; the counts add up to `packets`.
    pub locations: Vec<LocatedLoss>,
}

/// What one location dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocatedLoss {
    /// The location.
    pub location: LossLocation,
    /// Packets dropped there.
    pub packets: u64,
    /// The counter that says so.
    pub by: String,
}

/// Where a packet can be dropped, in the order of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LossLocation {
    /// A queueing discipline of the sending host.
    SenderQdisc,
    /// The sending host's interface.
    SenderInterface,
    /// Between the hosts, or where nothing counts.
    Path,
    /// The receiving host's interface.
    ReceiverInterface,
    /// The receiving host's queue of packets that wait for a soft interrupt.
    Softnet,
    /// The receiving host's IP.
    Ip,
    /// The receiving socket's buffer.
    SocketBuffer,
    /// Nowhere: it arrived, and was sent again all the same.
    Nowhere,
}

impl LossLocation {
    /// Its name in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::SenderQdisc => "the sender's qdisc",
            Self::SenderInterface => "the sender's interface",
            Self::Path => "the path between the hosts",
            Self::ReceiverInterface => "the receiver's interface",
            Self::Softnet => "the receiver's softnet queue",
            Self::Ip => "the receiver's IP",
            Self::SocketBuffer => "the receiving socket's buffer",
            Self::Nowhere => "nowhere (it had arrived)",
        }
    }
}

/// A part of the sender's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimePart {
    /// The clock: `sender-application` idle, `receive-window` and `send-buffer` limited by them, `network` busy otherwise.
    pub of: LimiterKind,
    /// Its share of the time, 0 to 1.
    pub share: f64,
    /// How the share was got.
    pub method: String,
}

/// One observation that speaks for (or against) a limiter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What it speaks for.
    pub of: LimiterKind,
    /// The rule that saw it, by its name in the registry.
    pub rule: String,
    /// One sentence with its numbers and units.
    pub statement: String,
    /// How strongly it speaks.
    #[serde(default)]
    pub grade: Grade,
    /// The share of the time that a clock measured (TCP's, or the scheduler's of a thread), 0 to 1; null for all other evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// How strongly evidence speaks for a limiter: a judgement, not a probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// It fits what was seen, and so does much else.
    #[default]
    Possible,
    /// It fits better than what else is known.
    Likely,
    /// What was seen leaves little else.
    Strong,
}

impl Grade {
    /// Its name in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Strong => "strong",
        }
    }
}

/// What can hold a measurement back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LimiterKind {
    /// The sender's program gave TCP nothing to send (or a rate was asked for).
    SenderApplication,
    /// The receiver's program did not read fast enough.
    ReceiverApplication,
    /// The send buffer was too small for the path.
    SendBuffer,
    /// The receiver's window was too small for the path.
    ReceiveWindow,
    /// The congestion window, held down by loss.
    Loss,
    /// The congestion window, held down by delay or by its own growth.
    CongestionWindow,
    /// The kernel's pacing.
    Pacing,
    /// A core at the sender was full.
    SenderCpu,
    /// A core at the receiver was full.
    ReceiverCpu,
    /// Packet processing in soft interrupts.
    Softirq,
    /// The rate of an interface or of a link on the path.
    Link,
    /// A queueing discipline's rate or drops.
    Qdisc,
    /// The receiver's datagram buffer.
    SocketBuffer,
    /// The round trip itself: one exchange at a time.
    RoundTrip,
    /// The network as the sender's TCP sees it: busy, and held by neither window nor buffer. Only a part of the time; what it was
    /// (the congestion window, pacing, a host, a link) is for the evidence to say.
    Network,
    /// What the evidence does not explain.
    Unexplained,
}

impl LimiterKind {
    /// Its name in words, such as `receive window`.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::SenderApplication => "sender application",
            Self::ReceiverApplication => "receiver application",
            Self::SendBuffer => "send buffer",
            Self::ReceiveWindow => "receive window",
            Self::Loss => "congestion window (loss)",
            Self::CongestionWindow => "congestion window",
            Self::Pacing => "pacing",
            Self::SenderCpu => "sender CPU",
            Self::ReceiverCpu => "receiver CPU",
            Self::Softirq => "softirq",
            Self::Link => "link rate",
            Self::Qdisc => "qdisc",
            Self::SocketBuffer => "socket buffer",
            Self::RoundTrip => "round trip",
            Self::Network => "busy otherwise",
            Self::Unexplained => "unexplained",
        }
    }
}

/// A stretch of block sizes and the setting that is best there, of several that were measured over the same sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BestRegion {
    /// Smallest block, bytes.
    pub from: u64,
    /// Largest block, bytes.
    pub to: u64,
    /// Label of the best; null where no difference is sure.
    pub best: Option<String>,
    /// Label of the next best in the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Rate of the best over that of the next best, as a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Low end of the ratio's interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// High end of the ratio's interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// In one sentence.
    pub statement: String,
}

/// What `thru why --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhyDocument {
    /// Version of this document's shape: `throughline-why/2`. Fields may be added within a version.
    pub schema: String,
    /// Each run that was asked for.
    pub runs: Vec<RunWhy>,
    /// With several curves: which of them is best for which blocks. Labels are the runs' names, or their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<BestRegion>,
    /// With several runs: what they say of each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl WhyDocument {
    /// Version of the document's shape.
    pub const SCHEMA: &'static str = "throughline-why/2";
}

/// What held one run's outcomes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunWhy {
    /// The run.
    pub id: String,
    /// Its name, or null.
    pub name: Option<String>,
    /// Its outcomes; none of a curve.
    pub cells: Vec<CellWhy>,
    /// Of a curve: where it breaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Finding>,
}

/// What held one outcome back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellWhy {
    /// The cell.
    pub cell: u32,
    /// What was measured and what came out, in one line.
    pub outcome: String,
    /// What held it back; null where nothing that was recorded speaks for anything.
    pub why: Option<Why>,
}
