//! NetPIPE's whole curve: the time that it takes, and whether the curves agree.

use super::{Better, Goal, Task, Unit, Work};

/// Sizes up to 8 MiB.
const POINTS: f64 = 124.0;

/// `points_inside` counts the sizes at which the least of thru's three means, each over a third of the legs, lies between the
/// lowest and the highest of NPtcp's curves of the run's other rounds, of which each point is the best of three as well. A curve that differs from
/// N others by chance alone lies outside of them at 2 of N + 1 sizes, so not even NPtcp's own are inside everywhere: they are
/// counted too, each beside the others.
pub static WORK: Work = Work {
    id: "curve",
    title: "curve of 124 sizes, 1 B to 8 MiB",
    task: Task::Curve { last: 8 << 20 },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[
        Goal::Value(10e9),
        Goal::Also { name: "points_inside", better: Better::Higher, bound: POINTS },
        Goal::NoWorseThan { name: "points_inside", better: Better::Higher, peer: "NPtcp" },
    ],
};
