//! What thru has to reach in a work.

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
    /// At least (at most) this number, in the work's unit.
    Value(f64),
    /// This number, give or take a share of it.
    Within {
        /// The number, in the work's unit.
        value: f64,
        /// The share.
        share: f64,
    },
    /// Of a number that thru gives beside the main one, at least or at most so much.
    Also {
        /// Its name.
        name: &'static str,
        /// Which ones are good.
        better: Better,
        /// The bound, in the unit that the name ends with.
        bound: f64,
    },
    /// A number beside the main one whose median is no worse than a peer's.
    NoWorseThan {
        /// Its name.
        name: &'static str,
        /// Which ones are good.
        better: Better,
        /// The peer.
        peer: &'static str,
    },
}

/// The peers that a goal is about; those that are not here cost no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// Each of these.
    All(&'static [&'static str]),
    /// Of these the one with the best median in this run.
    BestOf(&'static [&'static str]),
    /// Each tool but the bare loops.
    Each,
}

/// The names of iperf3: the distribution's, and a newer one.
pub const IPERF3: &[&str] = &["iperf3", "iperf3-new"];
