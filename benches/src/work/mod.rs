//! What is measured. Each work is one file and one line in [`WORKS`].

mod curve;
mod datagram;
mod round_trip;
mod stream;

use anyhow::{Result, bail};
use serde::Serialize;

/// All works, in the order of the table.
pub static WORKS: &[&Work] = &[
    &stream::WORK,
    &stream::UNCOPIED,
    &stream::SMALL,
    &stream::SHORT,
    &round_trip::WORK,
    &round_trip::SPINNING,
    &round_trip::SPINNING_UDP,
    &datagram::WORK,
    &datagram::SMALL,
    &curve::WORK,
];

/// One row group of the table.
#[derive(Debug)]
pub struct Work {
    /// Its name on the command line and in documents.
    pub id: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// What tools are asked to do.
    pub task: Task,
    /// Unit of the number that comes back.
    pub unit: Unit,
    /// Which numbers are good.
    pub better: Better,
    /// What thru has to reach in this release.
    pub goals: &'static [Goal],
}

/// A job that a tool may know how to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Blocks one way over one TCP connection, for the seconds of a measurement: goodput.
    Stream {
        /// Bytes of one send.
        block: u64,
    },
    /// The same, by calls that do not copy at the sender.
    Uncopied {
        /// Bytes of one send.
        block: u64,
    },
    /// Datagrams one way over one UDP flow as fast as the tool can, the kernel joining and cutting them where the tool can have
    /// that: what arrives.
    Datagrams {
        /// Bytes of one datagram.
        block: u64,
    },
    /// A message there and one of the same size back over one connection that never sleeps: the mean round trip.
    SpinningRoundTrip {
        /// Bytes of a message.
        bytes: u64,
        /// Over UDP, not TCP.
        udp: bool,
    },
    /// A message there and one of the same size back over one TCP connection, by blocking calls: the mean round trip.
    RoundTrip {
        /// Bytes of a message.
        bytes: u64,
    },
    /// Round trips at NetPIPE's sizes, from 1 byte: how long the command takes.
    Curve {
        /// The largest size, bytes.
        last: u64,
    },
}

/// Unit of a work's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Decimal bits a second.
    #[serde(rename = "bit/s")]
    BitsPerSecond,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
}

/// Which numbers are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Large ones.
    Higher,
    /// Small ones.
    Lower,
}

/// What thru has to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// At least (or, where lower is better, at most) this multiple of a peer's number.
    Ratio {
        /// The peer.
        to: Against,
        /// The multiple.
        of: f64,
    },
    /// At least (at most) this number, in the work's unit.
    Value(f64),
}

/// The peers that a goal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// One of them.
    Named(&'static str),
    /// Whichever has the best median in this run.
    Best,
}

impl Work {
    /// The task, cut short for a quick look.
    pub fn task(&self, quick: bool) -> Task {
        match self.task {
            Task::Curve { last } if quick => Task::Curve { last: last.min(64 << 10) },
            task => task,
        }
    }
}

impl Unit {
    /// A value with three digits and a prefix.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::BitsPerSecond => model::units::bits_per_second(value),
            Self::Nanoseconds => model::units::seconds(value),
        }
    }
}

/// The works with these ids, all where none is named.
pub fn chosen(ids: &[String]) -> Result<Vec<&'static Work>> {
    if let Some(id) = ids.iter().find(|id| WORKS.iter().all(|work| work.id != **id)) {
        let known: Vec<&str> = WORKS.iter().map(|work| work.id).collect();
        bail!("no work is called '{id}': there are {}", known.join(", "));
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

    #[test]
    fn ids_differ_and_named_peers_exist() {
        for (place, work) in WORKS.iter().enumerate() {
            assert!(WORKS[..place].iter().all(|other| other.id != work.id), "{}", work.id);
            for goal in work.goals {
                if let Goal::Ratio { to: Against::Named(name), .. } = goal {
                    assert!(crate::peer::PEERS.iter().any(|peer| peer.name() == *name), "{name}");
                }
            }
        }
    }
}
