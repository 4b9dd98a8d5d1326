//! What held a measurement back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What held an outcome back, and the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// What limited it most.
    pub limiter: LimiterKind,
    /// One sentence with its numbers and units.
    pub statement: String,
    /// Where the sender's time went, in parts of it; they add up to 1. Empty where TCP's clocks say nothing.
    pub parts: Vec<TimePart>,
    /// What speaks for it, strongest first.
    pub evidence: Vec<Evidence>,
    /// What else was found to limit it at times, by weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<LimiterKind>,
}

/// A part of the sender's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimePart {
    /// What it was spent on.
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
    /// How much it weighs, 0 to 1.
    pub weight: f64,
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
    /// What the evidence does not explain.
    Unexplained,
}
