//! Datagrams in one direction: the received rate of one UDP flow at the tool's highest sending rate.

use super::{Against, Batch, Better, Goal, Task, UNPACED, Unit, Work};

/// SO_SNDBUF and SO_RCVBUF that every tool requests at both ends, bytes. It is below the default limits of Linux
/// (`net.core.wmem_max` and `rmem_max`, 212,992 or more), so that every tool gets it: the kernel reports the double.
pub const UDP_BUFFER: u64 = 204_800;

/// As fast as a tool can.
const fn work(id: &'static str, title: &'static str, task: Task, goals: &'static [Goal]) -> Work {
    Work { id, title, task, unit: Unit::BitsPerSecond, better: Better::Higher, goals }
}

/// The tools whose sender makes a call for each datagram, as thru's does.
const ONE_CALL: &[&str] = &["netperf", "iperf3", "iperf3-new"];

/// The payload of an Ethernet frame.
pub static SINGLE: Work = work(
    "udp-single",
    "UDP, 1472 B, a call for each datagram, unpaced, received",
    Task::Datagrams { block: 1472, by: Batch::Single },
    &[Goal::Ratio { to: Against::All(ONE_CALL), of: 1.0 }],
);

/// Small datagrams.
pub static SMALL_SINGLE: Work = work(
    "udp64-single",
    "UDP, 64 B, a call for each datagram, unpaced, received",
    Task::Datagrams { block: 64, by: Batch::Single },
    &[Goal::Ratio { to: Against::All(ONE_CALL), of: 1.0 }],
);

/// Small datagrams, thru with its batch calls and the peers as above.
pub static SMALL_CALLS: Work = work(
    "udp64-mmsg",
    "UDP, 64 B, thru by sendmmsg and recvmmsg, peers a call each, unpaced, received",
    Task::Datagrams { block: 64, by: Batch::Many },
    &[Goal::Ratio { to: Against::All(ONE_CALL), of: 1.3 }],
);

/// Segmented datagrams, only beside tools that segment.
pub static SEGMENTED: Work = work(
    "udp-gso",
    "UDP, 1472 B, segments of one send, unpaced, received",
    Task::Datagrams { block: 1472, by: Batch::Segmented },
    &[Goal::Ratio { to: Against::All(&["iperf3-gsro"]), of: 1.0 }],
);

/// The same with small datagrams.
pub static SMALL_SEGMENTED: Work = work(
    "udp64-gso",
    "UDP, 64 B, segments of one send, unpaced, received",
    Task::Datagrams { block: 64, by: Batch::Segmented },
    &[Goal::Ratio { to: Against::All(&["iperf3-gsro"]), of: 2.0 }],
);

/// What pacing to the receiver costs and saves.
const CREDIT_GOALS: &[Goal] = &[
    Goal::Ratio { to: Against::All(&[UNPACED]), of: 1.0 },
    Goal::Also { name: "lost_percent", better: Better::Lower, bound: 1.0 },
];

/// thru beside itself.
pub static CREDIT: Work = work(
    "udp-credit",
    "UDP, 1472 B, thru paced to the receiver beside thru unpaced, received",
    Task::Credit { block: 1472 },
    CREDIT_GOALS,
);

/// The same with small datagrams.
pub static SMALL_CREDIT: Work = work(
    "udp64-credit",
    "UDP, 64 B, thru paced to the receiver beside thru unpaced, received",
    Task::Credit { block: 64 },
    CREDIT_GOALS,
);
