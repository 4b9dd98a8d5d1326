//! Streams: the goodput of one TCP connection.

use super::goal::IPERF3;
use super::{Against, Better, Goal, Task, Unit, Work};

/// 128 KiB is iperf3's default block.
pub static WORK: Work = Work {
    id: "stream",
    title: "TCP stream, 128 KiB blocks, 1 flow",
    task: Task::Stream { block: 128 << 10 },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[
        Goal::Ratio { to: Against::Each, of: 1.0 },
        Goal::Ratio { to: Against::All(IPERF3), of: 1.05 },
        Goal::Ratio { to: Against::All(&["bare"]), of: 0.98 },
    ],
};

/// Zero-copy: `--engine auto` compared with `iperf3 -Z`.
pub static UNCOPIED: Work = Work {
    id: "uncopied",
    title: "TCP stream, 128 KiB blocks, sender without copy",
    task: Task::Uncopied { block: 128 << 10 },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[Goal::Ratio { to: Against::All(IPERF3), of: 1.05 }],
};

/// The bare loop replaces netperf if that is not installed.
const SMALL_GOALS: &[Goal] = &[
    Goal::Ratio { to: Against::All(&["netperf"]), of: 1.0 },
    Goal::Ratio { to: Against::All(&["bare"]), of: 0.98 },
    Goal::Ratio { to: Against::All(IPERF3), of: 1.2 },
];

/// A call for each 64 bytes: the tool's own cost.
pub static SMALL: Work = Work {
    id: "stream64",
    title: "TCP stream, 64 B blocks, 1 flow",
    task: Task::Stream { block: 64 },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: SMALL_GOALS,
};

/// A call for each KiB.
pub static SHORT: Work = Work {
    id: "stream1k",
    title: "TCP stream, 1 KiB blocks, 1 flow",
    task: Task::Stream { block: 1024 },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: SMALL_GOALS,
};
