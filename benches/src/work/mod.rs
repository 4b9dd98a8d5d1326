//! What is measured. Each work, or group of similar works, is one file and one line in [`WORKS`].

mod connect;
mod crowd;
mod curve;
mod datagram;
mod goal;
mod launched;
mod observed;
mod paced;
mod round_trip;
mod spinning;
mod start;
mod stream;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

pub use datagram::UDP_BUFFER;
pub use goal::{Against, Goal, UNOBSERVED, UNPACED};
pub use start::STARTS;

/// All works, in the order of the table.
pub static WORKS: &[&Work] = &[
    &stream::WORK,
    &stream::UNCOPIED,
    &stream::SMALL,
    &stream::SHORT,
    &round_trip::WORK,
    &spinning::BESIDE_BLOCKING,
    &spinning::TCP,
    &spinning::UDP,
    &spinning::UNIX,
    &spinning::SHM,
    &datagram::SINGLE,
    &datagram::SMALL_SINGLE,
    &datagram::SMALL_CALLS,
    &datagram::SEGMENTED,
    &datagram::SMALL_SEGMENTED,
    &datagram::CREDIT,
    &datagram::SMALL_CREDIT,
    &paced::AT_10M,
    &paced::AT_100M,
    &paced::AT_1G,
    &paced::AT_5G,
    &connect::WORK,
    &connect::SPINNING,
    &crowd::RR_1K,
    &crowd::RR_10K,
    &crowd::STREAM_1K,
    &crowd::STREAM_10K,
    &launched::MPI,
    &launched::PVM,
    &observed::STREAM,
    &observed::ROUND_TRIP,
    &curve::WORK,
    &start::WORK,
    &start::BINARY,
];

/// One row group of the table.
#[derive(Debug)]
pub struct Work {
    /// Its name on the command line and in documents.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The task for the tools.
    pub task: Task,
    /// Unit of the result.
    pub unit: Unit,
    /// Which numbers are better.
    pub better: Better,
    /// The goals of thru.
    pub goals: &'static [Goal],
}

/// A task that a tool may support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Blocks in one direction over one TCP connection: goodput.
    Stream {
        /// Bytes of one send.
        block: u64,
    },
    /// The same with a zero-copy send method.
    Uncopied {
        /// Bytes of one send.
        block: u64,
    },
    /// Datagrams in one direction over one UDP flow as fast as possible, with socket buffers of [`UDP_BUFFER`]: the
    /// received rate.
    Datagrams {
        /// Bytes of one datagram.
        block: u64,
        /// How they are passed to the kernel.
        by: Batch,
    },
    /// As `Datagrams`, thru paced to its receiver, which is its default, compared with thru unpaced.
    Credit {
        /// Bytes of one datagram.
        block: u64,
    },
    /// Datagrams of 1472 B over one UDP flow at a rate, with the same socket buffers: the received rate.
    Paced {
        /// Decimal bit/s.
        rate: u64,
        /// With UDP_SEGMENT and UDP_GRO.
        segmented: bool,
    },
    /// Round trips of equal messages over one TCP connection with blocking calls: the mean.
    RoundTrip {
        /// Bytes of a message.
        bytes: u64,
    },
    /// The same with spinning ends.
    Spinning {
        /// Bytes of a message.
        bytes: u64,
        /// What carries them.
        over: Over,
    },
    /// As `RoundTrip`, with a spinning thru and blocking peers.
    SpinningBesideBlocking {
        /// Bytes of a message.
        bytes: u64,
    },
    /// A TCP connection for each one-byte exchange: exchanges per second.
    Connects {
        /// thru has two flows in a spinning thread; the peers have one and block.
        spinning: bool,
    },
    /// Many TCP connections at once, over two threads if the tool has such an option.
    Crowd {
        /// Connections.
        flows: u32,
        /// Streams instead of one-byte round trips.
        stream: bool,
    },
    /// Round trips between two processes of a launcher: the mean.
    Launched {
        /// The launcher.
        by: Launcher,
        /// Bytes of a message.
        bytes: u64,
    },
    /// As `Stream` of 128 KiB or `RoundTrip` of a byte, thru with observers compared with thru without.
    Observed {
        /// A stream instead of round trips.
        stream: bool,
    },
    /// Round trips at NetPIPE's sizes, from 1 byte: the command's duration.
    Curve {
        /// The largest size, bytes.
        last: u64,
    },
    /// The duration of a program's version flag.
    Start,
    /// The size of the stripped program.
    Binary,
}

/// How datagrams are passed to the kernel. All are unpaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    /// Each by a call of its own.
    Single,
    /// thru: many by a call (sendmmsg, recvmmsg). The peers have no such option.
    Many,
    /// Segments of one send (UDP_SEGMENT, UDP_GRO), for tools that have them.
    Segmented,
}

/// The transport of a spinning round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// A Unix domain stream socket.
    Unix,
    /// Shared memory.
    Shm,
}

/// The message library of a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// MPI's, between the two processes of mpirun.
    Mpi,
    /// PVM's, between two tasks of a virtual machine.
    Pvm,
}

/// Unit of a work's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Decimal bits a second.
    #[serde(rename = "bit/s")]
    BitsPerSecond,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Exchanges a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
}

/// Which numbers are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Large ones.
    Higher,
    /// Small ones.
    Lower,
    /// Those near to the requested value.
    Near,
}

/// The unit of a measurement's CPU cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cost {
    /// Seconds for each decimal gigabyte.
    #[serde(rename = "s/GB")]
    PerGigabyte,
    /// Microseconds for each exchange.
    #[serde(rename = "us")]
    PerExchange,
    /// Seconds for the whole command.
    #[serde(rename = "s")]
    Whole,
}

impl Work {
    /// The task, shortened for a quick run.
    pub fn task(&self, quick: bool) -> Task {
        match self.task {
            Task::Curve { last } if quick => Task::Curve { last: last.min(64 << 10) },
            task => task,
        }
    }

    /// The unit of CPU cost.
    pub fn cost(&self) -> Cost {
        match (self.task, self.unit) {
            (Task::Curve { .. } | Task::Start | Task::Binary, _) | (_, Unit::Bytes) => Cost::Whole,
            (_, Unit::BitsPerSecond) => Cost::PerGigabyte,
            (_, Unit::Nanoseconds | Unit::PerSecond) => Cost::PerExchange,
        }
    }
}

impl Task {
    /// Seconds of one measurement for a requested time. A paced sender of 850 datagrams per second needs two
    /// for the 1,000 intervals of a 99th percentile.
    pub fn seconds(self, requested: u32) -> u32 {
        if matches!(self, Self::Paced { .. }) { requested.max(2) } else { requested }
    }

    /// Guessed duration of a measurement with start and end, s.
    pub fn guess(self, seconds: u32) -> f64 {
        match self {
            Self::Curve { .. } => 35.0,
            Self::Start | Self::Binary => 0.5,
            Self::Crowd { .. } => f64::from(seconds) + 2.0,
            _ => f64::from(self.seconds(seconds)) + 0.6,
        }
    }
}

impl Unit {
    /// A value with three digits and a prefix.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::BitsPerSecond => model::units::bits_per_second(value),
            Self::Nanoseconds => model::units::seconds(value),
            Self::PerSecond => format!("{}/s", model::units::count(value)),
            Self::Bytes => format!("{}B", model::units::count(value)),
        }
    }

    /// The amount moved at this rate in that time: bytes or exchanges; `None` if not applicable.
    pub fn amount(self, value: f64, seconds: f64) -> Option<f64> {
        match self {
            Self::BitsPerSecond => Some(value * seconds / 8.0),
            Self::Nanoseconds => Some(seconds * 1e9 / value),
            Self::PerSecond => Some(value * seconds),
            Self::Bytes => None,
        }
    }
}

impl Cost {
    /// The cost of `cpu_ns` for `amount` (bytes or exchanges).
    pub fn of(self, cpu_ns: f64, amount: Option<f64>) -> Option<f64> {
        match self {
            Self::PerGigabyte => Some(cpu_ns / amount?),
            Self::PerExchange => Some(cpu_ns / 1e3 / amount?),
            Self::Whole => Some(cpu_ns / 1e9),
        }
    }

    /// With its unit.
    pub fn text(self, value: f64) -> String {
        let unit = match self {
            Self::PerGigabyte => "s/GB",
            Self::PerExchange => "µs",
            Self::Whole => "s",
        };
        format!("{} {unit}", model::units::three_digits(value))
    }
}

/// The works with these ids; all if none is given.
pub fn chosen(ids: &[String]) -> Result<Vec<&'static Work>> {
    if let Some(id) = ids.iter().find(|id| WORKS.iter().all(|work| work.id != **id)) {
        let known: Vec<&str> = WORKS.iter().map(|work| work.id).collect();
        bail!("unknown work '{id}'; known works: {}", known.join(", "));
    }
    Ok(WORKS.iter().copied().filter(|work| ids.is_empty() || ids.iter().any(|id| work.id == id)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_are_chosen_by_id_in_the_tables_order() {
        let ids = |list: &[&str]| -> Vec<String> { list.iter().map(ToString::to_string).collect() };
        let chosen_ids = |list| chosen(&ids(list)).unwrap().iter().map(|work| work.id).collect::<Vec<_>>();
        assert_eq!(chosen_ids(&["rtt", "stream"]), ["stream", "rtt"]);
        assert_eq!(chosen_ids(&[]).len(), WORKS.len());
        assert!(chosen(&ids(&["rtt", "tea"])).unwrap_err().to_string().contains("'tea'"));
    }

    fn named(goal: &Goal) -> Vec<&'static str> {
        match goal {
            Goal::Ratio { to: Against::All(names) | Against::BestOf(names), .. } => names.to_vec(),
            Goal::NoWorseThan { peer, .. } => vec![peer],
            Goal::Ratio { to: Against::Each, .. } | Goal::Value(_) | Goal::Within { .. } | Goal::Also { .. } => vec![],
        }
    }

    #[test]
    fn ids_differ_and_peers_that_goals_name_exist() {
        for (at, work) in WORKS.iter().enumerate() {
            assert!(WORKS[..at].iter().all(|other| other.id != work.id), "{}", work.id);
            for name in work.goals.iter().flat_map(named) {
                assert!(crate::peer::PEERS.iter().any(|peer| peer.name() == name), "{}: {name}", work.id);
            }
        }
    }

    #[test]
    fn processor_time_is_divided_by_what_was_moved() {
        // 10 Gbit/s for 2 s are 2.5 GB; 5 s of CPU time are 2 s/GB.
        let bytes = Unit::BitsPerSecond.amount(10e9, 2.0);
        assert_eq!(Cost::PerGigabyte.of(5e9, bytes), Some(2.0));
        // 2 s of round trips of 20 µs are 100,000; 1 s of CPU time is 10 µs each.
        assert_eq!(Cost::PerExchange.of(1e9, Unit::Nanoseconds.amount(20e3, 2.0)), Some(10.0));
        assert_eq!(Cost::PerExchange.of(1e9, None), None);
        assert_eq!(Cost::Whole.of(1e9, None), Some(1.0));
    }
}
