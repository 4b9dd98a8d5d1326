//! One byte there and one back: the round trip of blocking calls.

use super::{Against, Better, Goal, Task, Unit, Work};

/// All tools sleep in a blocking call while they wait; a spinning one would not be a peer.
pub static WORK: Work = Work {
    id: "rtt",
    title: "TCP round trip, 1 byte, blocking",
    task: Task::RoundTrip { bytes: 1 },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Ratio { to: Against::Best, of: 1.05 }],
};
