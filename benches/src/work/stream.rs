//! A stream of 128 KiB blocks: the goodput of one TCP connection.

use super::{Against, Better, Goal, Task, Unit, Work};

/// 128 KiB is what iperf3 sends at a time when it is not told otherwise.
pub static WORK: Work = Work {
    id: "stream",
    title: "TCP stream, 128 KiB blocks, 1 flow",
    task: Task::Stream { block: 128 << 10 },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[Goal::Ratio { to: Against::Named("iperf3"), of: 1.0 }],
};
