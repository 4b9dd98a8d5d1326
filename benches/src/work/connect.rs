//! A connection for each exchange: connect, a byte there, a byte back, close.

use super::{Against, Better, Goal, Task, Unit, Work};

/// One after another. The bare loop replaces netperf and neper if they are not installed.
pub static WORK: Work = Work {
    id: "crr",
    title: "connect, request, response, close, one at a time",
    task: Task::Connects { spinning: false },
    unit: Unit::PerSecond,
    better: Better::Higher,
    goals: &[
        Goal::Ratio { to: Against::All(&["netperf", "neper"]), of: 1.0 },
        Goal::Ratio { to: Against::All(&["bare"]), of: 0.98 },
    ],
};

/// Two at a time without ever sleeping, beside peers that do one and block.
pub static SPINNING: Work = Work {
    id: "crr-spin",
    title: "connect, request, response, close, thru spinning with 2 flows, peers blocking with 1",
    task: Task::Connects { spinning: true },
    unit: Unit::PerSecond,
    better: Better::Higher,
    goals: &[Goal::Ratio { to: Against::All(&["netperf", "neper", "bare"]), of: 1.3 }],
};
