//! Streams: the goodput of one TCP connection.

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

/// Sent without a copy: `--engine auto` beside `iperf3 -Z`.
pub static UNCOPIED: Work = Work {
    id: "uncopied",
    title: "TCP stream, 128 KiB blocks, sender without copy",
    task: Task::Uncopied { block: 128 << 10 },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[Goal::Ratio { to: Against::Named("iperf3"), of: 1.05 }],
};

/// A call for each 64 bytes: what the tool itself costs.
pub static SMALL: Work = Work {
    id: "stream64",
    title: "TCP stream, 64 B blocks, 1 flow",
    task: Task::Stream { block: 64 },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[Goal::Ratio { to: Against::Named("iperf3"), of: 1.2 }],
};

/// A call for each KiB.
pub static SHORT: Work = Work {
    id: "stream1k",
    title: "TCP stream, 1 KiB blocks, 1 flow",
    task: Task::Stream { block: 1024 },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[Goal::Ratio { to: Against::Named("iperf3"), of: 1.2 }],
};
