//! NetPIPE's whole curve: how long one has to wait for it.

use super::{Better, Goal, Task, Unit, Work};

/// NPtcp takes 43 s for these 124 sizes on an idle machine of the kind that the goal was set on.
pub static WORK: Work = Work {
    id: "curve",
    title: "curve of 124 sizes, 1 B to 8 MiB",
    task: Task::Curve { last: 8 << 20 },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Value(20e9)],
};
