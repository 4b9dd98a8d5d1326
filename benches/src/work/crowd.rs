//! Many connections at once.

use super::{Against, Better, Goal, Task, Unit, Work};

/// `memory_bytes` is the largest process of the client and that of the server together; `setup_ns` the time
/// until all connections are open. The bare loop, one epoll set in one thread, is not a tool like neper but an
/// upper bound.
const GOALS: &[Goal] = &[
    Goal::Ratio { to: Against::All(&["neper"]), of: 1.1 },
    Goal::Ratio { to: Against::All(&["bare"]), of: 0.98 },
    Goal::Also { name: "memory_bytes", better: Better::Lower, bound: 1_073_741_824.0 },
    Goal::Also { name: "setup_ns", better: Better::Lower, bound: 2e9 },
];

/// 1,000 round trips at a time.
pub static RR_1K: Work = Work {
    id: "crowd-rr-1k",
    title: "TCP round trips of 1 byte, 1,000 flows",
    task: Task::Crowd { flows: 1_000, stream: false },
    unit: Unit::PerSecond,
    better: Better::Higher,
    goals: GOALS,
};

/// 10,000.
pub static RR_10K: Work = Work {
    id: "crowd-rr-10k",
    title: "TCP round trips of 1 byte, 10,000 flows",
    task: Task::Crowd { flows: 10_000, stream: false },
    unit: Unit::PerSecond,
    better: Better::Higher,
    goals: GOALS,
};

/// 1,000 streams at a time.
pub static STREAM_1K: Work = Work {
    id: "crowd-stream-1k",
    title: "TCP streams, 16 KiB blocks, 1,000 flows",
    task: Task::Crowd { flows: 1_000, stream: true },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: GOALS,
};

/// 10,000.
pub static STREAM_10K: Work = Work {
    id: "crowd-stream-10k",
    title: "TCP streams, 16 KiB blocks, 10,000 flows",
    task: Task::Crowd { flows: 10_000, stream: true },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: GOALS,
};
