//! One byte there and one back by blocking calls.

use super::{Against, Better, Goal, Task, Unit, Work};

/// The tools that make a blocking round trip in a loop of two calls.
pub const BLOCKING: &[&str] = &["netperf", "NPtcp", "sockperf"];

/// All tools sleep in a blocking call while they wait; a spinning one would not be a peer.
pub static WORK: Work = Work {
    id: "rtt",
    title: "TCP round trip, 1 byte, blocking",
    task: Task::RoundTrip { bytes: 1 },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Ratio { to: Against::BestOf(BLOCKING), of: 1.0 }],
};
