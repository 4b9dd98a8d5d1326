//! What limited a measurement.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Direction, Finding, Pattern, Role, Text};

/// What limited an outcome, with the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Why {
    /// What limited it most.
    pub limiter: LimiterKind,
    /// Strength of the evidence; null if it is unexplained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// One sentence with numbers and units.
    #[serde(flatten)]
    pub statement: Text,
    /// Parts of the sender's time by TCP's clocks; they add up to 1. Empty without these clocks.
    pub parts: Vec<TimePart>,
    /// The evidence, strongest first.
    pub evidence: Vec<Evidence>,
    /// What else may have limited it, strongest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<LimiterKind>,
    /// Where packets were dropped; null if none are missing or nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub losses: Option<Losses>,
    /// Further notes: stalls, differences between the directions, windows that do not fit the path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Text>,
    /// Where buffers limit: what to change, the most limiting one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
    /// Sources that were not recorded and are therefore not part of the evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// A setting of one host that limits, and the value that the path needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Remedy {
    /// The end whose host or socket is to be changed.
    pub role: Role,
    /// A key of `thru tune` such as `sysctl.net.ipv4.tcp_wmem`, or the field of a spec that requests the buffer, `sndbuf` or `rcvbuf`.
    pub setting: String,
    /// Its value.
    pub now: String,
    /// The value that is needed.
    pub value: String,
    /// The window that the value is computed from, rate times RTT, bytes.
    pub window_bytes: u64,
    /// What sets it on that host; of a requested buffer, the option.
    pub command: String,
    /// The command and its reason, in one sentence.
    #[serde(flatten)]
    pub statement: Text,
}

/// Packets that did not arrive, all trials together, by drop location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Losses {
    /// Number of packets.
    pub packets: u64,
    /// `datagrams` by their sequence numbers, or `segments` that TCP retransmitted.
    pub of: String,
    /// The drop locations, in the order of the path; the counts add up to `packets`.
    pub locations: Vec<LocatedLoss>,
}

/// The drops at one location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LocatedLoss {
    /// The location.
    pub location: LossLocation,
    /// Packets dropped there.
    pub packets: u64,
    /// The counter that shows it.
    pub by: String,
}

/// Where a packet can be dropped, in the order of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LossLocation {
    /// A queueing discipline of the sending host.
    SenderQdisc,
    /// The sending host's interface.
    SenderInterface,
    /// Between the hosts, or at a location without a counter.
    Path,
    /// The receiving host's interface.
    ReceiverInterface,
    /// The receiving host's queue of packets that wait for a soft interrupt.
    Softnet,
    /// The receiving host's IP.
    Ip,
    /// The receiving socket's buffer.
    SocketBuffer,
    /// Nowhere: it arrived and was retransmitted unnecessarily.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TimePart {
    /// The clock: `sender-application` (idle), `receive-window` and `send-buffer` (limited by them), or `network` (busy otherwise).
    pub of: LimiterKind,
    /// Its share of the time, 0 to 1.
    pub share: f64,
    /// How the share was determined.
    pub method: String,
}

/// One piece of evidence for a limiter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Evidence {
    /// The limiter.
    pub of: LimiterKind,
    /// The rule that found it, by its name in the registry.
    pub rule: String,
    /// One sentence with numbers and units.
    #[serde(flatten)]
    pub statement: Text,
    /// Its strength.
    #[serde(default)]
    pub grade: Grade,
    /// The share of the time by a clock (of TCP, or of the scheduler for a thread), 0 to 1; null for other evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// The strength of the evidence for a limiter: a judgement, not a probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// It fits the data, but so do other limiters.
    #[default]
    Possible,
    /// It fits the data better than other limiters.
    Likely,
    /// The data leave little else.
    Strong,
}

impl Grade {
    /// All grades.
    pub const ALL: [Self; 3] = [Self::Possible, Self::Likely, Self::Strong];

    /// What it says of the evidence.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Possible => "The evidence fits the data, but so do other limiters.",
            Self::Likely => "The evidence fits the data better than other limiters.",
            Self::Strong => "The data leave little else.",
        }
    }

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

/// What can limit a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LimiterKind {
    /// The sender's program gave TCP nothing to send, or a rate was requested.
    SenderApplication,
    /// The receiver's program did not read fast enough.
    ReceiverApplication,
    /// The send buffer was too small for the path.
    SendBuffer,
    /// The receiver's window was too small for the path.
    ReceiveWindow,
    /// The congestion window, limited by loss.
    Loss,
    /// The congestion window, limited by delay or by its own growth.
    CongestionWindow,
    /// The kernel's pacing.
    Pacing,
    /// A core of the sender was fully used.
    SenderCpu,
    /// A core of the receiver was fully used.
    ReceiverCpu,
    /// Packet processing in soft interrupts.
    Softirq,
    /// The rate of an interface or of a link on the path.
    Link,
    /// A queueing discipline's rate or drops.
    Qdisc,
    /// The receiver's datagram buffer.
    SocketBuffer,
    /// Packets larger than the path carries.
    PathMtu,
    /// The congestion window, because segments arrived out of order.
    Reordering,
    /// The path of the acknowledgements.
    ReturnPath,
    /// Delay that varies without a queue, which TCP takes for one.
    Jitter,
    /// Other traffic on the same path.
    OtherTraffic,
    /// The round trip itself: one exchange at a time.
    RoundTrip,
    /// The network as the sender's TCP sees it: busy, and limited by neither window nor buffer. Only used for a part of the time;
    /// the evidence names the cause (the congestion window, pacing, a host, a link).
    Network,
    /// The evidence does not explain it.
    Unexplained,
}

impl LimiterKind {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::SenderApplication,
        Self::ReceiverApplication,
        Self::SendBuffer,
        Self::ReceiveWindow,
        Self::Loss,
        Self::CongestionWindow,
        Self::Pacing,
        Self::SenderCpu,
        Self::ReceiverCpu,
        Self::Softirq,
        Self::Link,
        Self::Qdisc,
        Self::SocketBuffer,
        Self::PathMtu,
        Self::Reordering,
        Self::ReturnPath,
        Self::Jitter,
        Self::OtherTraffic,
        Self::RoundTrip,
        Self::Network,
        Self::Unexplained,
    ];

    /// What it is, in a sentence or two.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::SenderApplication => "The sender's program gave TCP nothing to send, or a rate was requested.",
            Self::ReceiverApplication => "The receiver's program did not read fast enough.",
            Self::SendBuffer => "The send buffer was too small for the path.",
            Self::ReceiveWindow => "The receiver's window was too small for the path.",
            Self::Loss => "The congestion window, limited by loss.",
            Self::CongestionWindow => "The congestion window, limited by delay or by its own growth.",
            Self::Pacing => "The kernel's pacing.",
            Self::SenderCpu => "A core of the sender was fully used.",
            Self::ReceiverCpu => "A core of the receiver was fully used.",
            Self::Softirq => "Packet processing in soft interrupts.",
            Self::Link => "The rate of an interface or of a link on the path.",
            Self::Qdisc => "A queueing discipline's rate or drops.",
            Self::SocketBuffer => "The receiver's datagram buffer.",
            Self::PathMtu => "Packets larger than the path carries.",
            Self::Reordering => "The congestion window, because segments arrived out of order.",
            Self::ReturnPath => "The path of the acknowledgements.",
            Self::Jitter => "Delay that varies without a queue, which TCP takes for one.",
            Self::OtherTraffic => "Other traffic on the same path.",
            Self::RoundTrip => "The round trip itself: one exchange at a time.",
            Self::Network => {
                "The network as the sender's TCP sees it: busy, and limited by neither window nor buffer. Only used for a part of the time; the evidence names the cause (the congestion window, pacing, a host, a link)."
            }
            Self::Unexplained => "The evidence does not explain it.",
        }
    }

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
            Self::PathMtu => "path MTU",
            Self::Reordering => "reordering",
            Self::ReturnPath => "return path",
            Self::Jitter => "jitter",
            Self::OtherTraffic => "other traffic",
            Self::RoundTrip => "round trip",
            Self::Network => "busy otherwise",
            Self::Unexplained => "unexplained",
        }
    }
}

/// A range of block sizes and the best of several curves there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct BestRegion {
    /// Smallest block, bytes.
    pub from: u64,
    /// Largest block, bytes.
    pub to: u64,
    /// Label of the best curve; null if none is significantly better than all others by 1 % or more.
    pub best: Option<String>,
    /// Label of the second best curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Ratio of the best rate to the second best; where several lead, of the highest one to those behind, at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Low end of the ratio's interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// High end of the ratio's interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The result in one sentence.
    #[serde(flatten)]
    pub statement: Text,
}

/// What `thru why --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct WhyDocument {
    /// Version of this document's shape: `throughline-why/1`. Fields may be added within a version.
    pub schema: String,
    /// Each requested run.
    pub runs: Vec<RunWhy>,
    /// With several curves: the best one for each range of blocks. Labels are the runs' names, or their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<BestRegion>,
    /// With several runs: notes on their comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Text>,
}

impl WhyDocument {
    /// Version of the document's shape.
    pub const SCHEMA: &'static str = "throughline-why/1";
}

/// What limited the outcomes of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RunWhy {
    /// The run.
    pub id: String,
    /// Its name, or null.
    pub name: Option<String>,
    /// Its outcomes; empty for a curve.
    pub cells: Vec<CellWhy>,
    /// Between many hosts: the cells by pattern and limiter, the most frequent limiter of a pattern first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<SharedLimit>,
    /// Between many hosts: the worst cell of each of the five worst pairs, by their value relative to the median of their pattern.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<u32>,
    /// For a curve: where it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Finding>,
}

/// Cells of one pattern with the same limiter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SharedLimit {
    /// The pattern.
    pub pattern: Pattern,
    /// The limiter in words; null if it is unknown.
    pub limiter: Option<String>,
    /// The cells.
    pub cells: Vec<u32>,
}

/// What limited one outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CellWhy {
    /// The cell.
    pub cell: u32,
    /// Its hosts and its levels, such as `n1 → n2`; null for the only cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The measurement and its result, in one line.
    pub outcome: Text,
    /// Of payload in both directions, the one that this is about; null otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// What limited it; null without any evidence.
    pub why: Option<Why>,
}
