//! One byte there and one back: round trips of blocking calls and of calls that never wait.

use super::{Against, Better, Goal, Task, Unit, Work};

/// All tools sleep in a blocking call while they wait; a spinning one would not be a peer.
pub static WORK: Work = Work {
    id: "rtt",
    title: "TCP round trip, 1 byte, blocking",
    task: Task::RoundTrip { bytes: 1 },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Ratio { to: Against::Best, of: 1.05 }],
};

/// Both ends spin on a core each.
pub static SPINNING: Work = Work {
    id: "rtt-spin",
    title: "TCP round trip, 14 bytes, spinning",
    task: Task::SpinningRoundTrip { bytes: 14, udp: false },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Ratio { to: Against::Named("sockperf"), of: 1.0 }],
};

/// The same over UDP.
pub static SPINNING_UDP: Work = Work {
    id: "rtt-spin-udp",
    title: "UDP round trip, 14 bytes, spinning",
    task: Task::SpinningRoundTrip { bytes: 14, udp: true },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[Goal::Ratio { to: Against::Named("sockperf"), of: 0.9 }],
};
