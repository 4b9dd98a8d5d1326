//! Datagrams at a rate: how close the tool is to it, and how evenly it sends.

use super::{Better, Goal, Task, Unit, Work};

/// The rate within 0.5 %.
const fn rate(value: f64) -> Goal {
    Goal::Within { value, share: 0.005 }
}

/// Below 10,000 datagrams per second: the 99th percentile of the error of send intervals, 50 µs.
const EVEN: Goal = Goal::Also { name: "distance_error_p99_ns", better: Better::Lower, bound: 50e3 };

/// 850 datagrams a second.
pub static AT_10M: Work = Work {
    id: "paced10m",
    title: "UDP, 1472 B datagrams at 10 Mbit/s",
    task: Task::Paced { rate: 10_000_000, segmented: false },
    unit: Unit::BitsPerSecond,
    better: Better::Near,
    goals: &[rate(10e6), EVEN],
};

/// 8,500 datagrams a second.
pub static AT_100M: Work = Work {
    id: "paced100m",
    title: "UDP, 1472 B datagrams at 100 Mbit/s",
    task: Task::Paced { rate: 100_000_000, segmented: false },
    unit: Unit::BitsPerSecond,
    better: Better::Near,
    goals: &[rate(100e6), EVEN],
};

/// 85,000 datagrams a second.
pub static AT_1G: Work = Work {
    id: "paced1g",
    title: "UDP, 1472 B datagrams at 1 Gbit/s",
    task: Task::Paced { rate: 1_000_000_000, segmented: false },
    unit: Unit::BitsPerSecond,
    better: Better::Near,
    goals: &[rate(1e9)],
};

/// 425,000 datagrams a second, more than single sends carry on one core: segments of one send, beside tools that segment.
pub static AT_5G: Work = Work {
    id: "paced5g",
    title: "UDP, 1472 B datagrams at 5 Gbit/s, segments of one send",
    task: Task::Paced { rate: 5_000_000_000, segmented: true },
    unit: Unit::BitsPerSecond,
    better: Better::Near,
    goals: &[rate(5e9)],
};
