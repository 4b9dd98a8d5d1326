//! The cost of observers: thru with readings at 10 Hz compared with thru without.

use super::{Against, Better, Goal, Task, UNOBSERVED, Unit, Work};

/// A stream, which fills a core.
pub static STREAM: Work = Work {
    id: "observe",
    title: "TCP stream, 128 KiB blocks, both hosts observed at 10 Hz",
    task: Task::Observed { stream: true },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[Goal::Ratio { to: Against::All(&[UNOBSERVED]), of: 0.99 }],
};

/// Round trips, which a reading may delay.
pub static ROUND_TRIP: Work = Work {
    id: "observe-rtt",
    title: "TCP round trip, 1 byte, both hosts observed at 10 Hz",
    task: Task::Observed { stream: false },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Ratio { to: Against::All(&[UNOBSERVED]), of: 1.01 }],
};
