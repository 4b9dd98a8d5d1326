//! Datagrams one way: what arrives of one UDP flow.

use super::{Against, Better, Goal, Task, Unit, Work};

/// What an Ethernet frame carries. The peer makes a call and a way through the stack for each datagram.
pub static WORK: Work = Work {
    id: "udp",
    title: "UDP, 1472 B datagrams (segments of one send where the tool can), received",
    task: Task::Datagrams { block: 1472 },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[Goal::Ratio { to: Against::Named("iperf3"), of: 15.0 }],
};

/// Small ones.
pub static SMALL: Work = Work {
    id: "udp64",
    title: "UDP, 64 B datagrams (segments of one send where the tool can), received",
    task: Task::Datagrams { block: 64 },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[Goal::Ratio { to: Against::Named("iperf3"), of: 2.0 }],
};
