//! Datagrams in one direction: the received rate of one UDP flow at the tool's highest sending rate.

use super::goal::IPERF3;
use super::{Against, Better, Goal, Task, Unit, Work};

/// The payload of an Ethernet frame. Newer iperf3 have UDP_SEGMENT (`--gsro`); older ones send each datagram
/// separately.
pub static WORK: Work = Work {
    id: "udp",
    title: "UDP, 1472 B datagrams, segments of one send, received",
    task: Task::Datagrams { block: 1472, segmented: true },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[
        Goal::Ratio { to: Against::All(&["iperf3-gsro"]), of: 1.0 },
        Goal::NoWorseThan { name: "lost_percent", better: Better::Lower, peer: "iperf3-gsro" },
        Goal::Ratio { to: Against::All(IPERF3), of: 15.0 },
    ],
};

/// Small datagrams.
pub static SMALL: Work = Work {
    id: "udp64",
    title: "UDP, 64 B datagrams, segments of one send, received",
    task: Task::Datagrams { block: 64, segmented: true },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[
        Goal::Ratio { to: Against::All(&["iperf3-gsro"]), of: 2.0 },
        Goal::Also { name: "lost_percent", better: Better::Lower, bound: 1.0 },
    ],
};

/// Small datagrams without segmentation; thru passes many in one call (sendmmsg, recvmmsg).
pub static CALLS: Work = Work {
    id: "udp64-single",
    title: "UDP, 64 B datagrams, each on its own, received",
    task: Task::Datagrams { block: 64, segmented: false },
    unit: Unit::BitsPerSecond,
    better: Better::Higher,
    goals: &[Goal::Ratio { to: Against::All(&["netperf", "iperf3", "iperf3-new"]), of: 1.3 }],
};
