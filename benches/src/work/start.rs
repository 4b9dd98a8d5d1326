//! Start-up time and size of the program.

use super::{Better, Goal, Task, Unit, Work};

/// Starts of which a measurement is the median.
pub const STARTS: u32 = 50;

/// `--version`: loading, parsing the command line, ending.
pub static WORK: Work = Work {
    id: "start",
    title: "start to end of --version, median of 50",
    task: Task::Start,
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Value(10e6)],
};

/// As released.
pub static BINARY: Work = Work {
    id: "binary",
    title: "size of the stripped program",
    task: Task::Binary,
    unit: Unit::Bytes,
    better: Better::Lower,
    goals: &[Goal::Value(20e6)],
};
