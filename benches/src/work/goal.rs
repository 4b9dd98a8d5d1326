//! Goals of thru in a work.

use super::Better;

/// One condition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// At least (or, where lower is better, at most) this multiple of a peer's number.
    Ratio {
        /// The peers.
        to: Against,
        /// The multiple.
        of: f64,
    },
    /// At least (or at most) this number, in the work's unit.
    Value(f64),
    /// This number, give or take a share of it.
    Within {
        /// The number, in the work's unit.
        value: f64,
        /// The share.
        share: f64,
    },
    /// At least or at most this value of another figure of thru.
    Also {
        /// Its name.
        name: &'static str,
        /// Which values are better.
        better: Better,
        /// The bound, in the unit that the name ends with.
        bound: f64,
    },
    /// Another figure that is no worse than a peer's, by the differences of the rounds.
    NoWorseThan {
        /// Its name.
        name: &'static str,
        /// Which values are better.
        better: Better,
        /// The peer.
        peer: &'static str,
    },
}

/// The peers of a goal; missing ones are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// Each of these.
    All(&'static [&'static str]),
    /// The one of these with the best median in this run.
    BestOf(&'static [&'static str]),
    /// Each tool except the bare loops.
    Each,
}

/// The name of our own tool without its observers.
pub const UNOBSERVED: &str = "thru-unobserved";

/// The name of our own tool with unpaced datagrams.
pub const UNPACED: &str = "thru-unpaced";

/// The names of iperf3: the distribution's, and a newer one.
pub const IPERF3: &[&str] = &["iperf3", "iperf3-new"];
