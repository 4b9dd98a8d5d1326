//! One-byte round trips with blocking calls.

use super::{Against, Better, Goal, Task, Unit, Work};

/// The tools that make a blocking round trip in a loop of two calls.
pub const BLOCKING: &[&str] = &["netperf", "NPtcp", "sockperf"];

/// All tools wait in a blocking call; a spinning tool is not comparable.
pub static WORK: Work = Work {
    id: "rtt",
    title: "TCP round trip, 1 byte, blocking",
    task: Task::RoundTrip { bytes: 1 },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Ratio { to: Against::BestOf(BLOCKING), of: 1.0 }],
};
