//! A spec's rates as one flow keeps them.

use model::Spec;

use crate::pattern::{DRAIN_READ, Pace};

/// One flow's share of `bps` over all flows.
pub(super) fn pace(spec: &Spec, bps: u64) -> Pace {
    let own = bps.max(1) as f64 / f64::from(spec.flows.max(1));
    let gap_ns = spec.block as f64 * 8e9 / own;
    match spec.burst {
        Some(bytes) => Pace { gap_ns, catch_up_ns: bytes as f64 * 8e9 / own, min_gap_ns: 0.0 },
        // If only one block may be made up, nothing needs spacing.
        None if gap_ns >= CATCH_UP_NS => Pace { gap_ns, catch_up_ns: CATCH_UP_NS, min_gap_ns: 0.0 },
        None => Pace { gap_ns, catch_up_ns: CATCH_UP_NS, min_gap_ns: MIN_GAP * gap_ns },
    }
}

/// One flow's share of the rate of a reader, all flows together.
pub(super) fn drain(spec: &Spec, bps: u64) -> Pace {
    let own = bps.max(1) as f64 / f64::from(spec.flows.max(1));
    let gap_ns = DRAIN_READ as f64 * 8e9 / own;
    Pace { gap_ns, catch_up_ns: READER_CATCH_UP_NS, min_gap_ns: 0.0 }
}

/// How much a reader makes up after a delay: its data waits for it, so the mean rate is kept.
const READER_CATCH_UP_NS: f64 = 100_000_000.0;

/// How much a paced sender makes up after a delay if the spec does not say: a thread that was off its core for longer
/// has missed its rate, and the outcome says so.
const CATCH_UP_NS: f64 = 1_000_000.0;
/// Spacing of the blocks that make up a delay, as a part of the normal gap, unless a burst was requested: the mean
/// rate is kept, and the path never gets more than 125 % of it.
const MIN_GAP: f64 = 0.8;
