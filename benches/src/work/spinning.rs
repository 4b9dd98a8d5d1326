//! Spinning round trips, each end on its own core.

use super::round_trip::BLOCKING;
use super::{Against, Better, Goal, Over, Task, Unit, Work};

/// What `--spin` saves compared with blocking tools.
pub static BESIDE_BLOCKING: Work = Work {
    id: "rtt-saved",
    title: "TCP round trip, 1 byte, thru spinning, peers blocking",
    task: Task::SpinningBesideBlocking { bytes: 1 },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Ratio { to: Against::BestOf(BLOCKING), of: 0.48 }],
};

/// 14 bytes are sockperf's smallest message.
pub static TCP: Work = Work {
    id: "rtt-spin",
    title: "TCP round trip, 14 bytes, spinning",
    task: Task::Spinning { bytes: 14, over: Over::Tcp },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Ratio { to: Against::All(&["sockperf"]), of: 1.0 }],
};

/// The same over UDP.
pub static UDP: Work = Work {
    id: "rtt-spin-udp",
    title: "UDP round trip, 14 bytes, spinning",
    task: Task::Spinning { bytes: 14, over: Over::Udp },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Ratio { to: Against::All(&["sockperf"]), of: 0.9 }],
};

/// Over a Unix domain socket; the only peer is the bare loop.
pub static UNIX: Work = Work {
    id: "rtt-spin-unix",
    title: "Unix socket round trip, 1 byte, spinning",
    task: Task::Spinning { bytes: 1, over: Over::Unix },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[],
};

/// Through shared memory.
pub static SHM: Work = Work {
    id: "rtt-spin-shm",
    title: "shared memory round trip, 1 byte, spinning",
    task: Task::Spinning { bytes: 1, over: Over::Shm },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Value(200.0)],
};
