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

/// The same towards another program, whose own client makes up every delay: so does this one, without a burst of all that is due.
pub(super) fn pace_to_foreign(spec: &Spec, bps: u64) -> Pace {
    let own = pace(spec, bps);
    match spec.burst {
        Some(_) => own,
        None => Pace { catch_up_ns: f64::INFINITY, min_gap_ns: FOREIGN_MIN_GAP * own.gap_ns, ..own },
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
/// The same towards another program: every delay is made up, so it has to be made up soon. A thread that has its core for
/// a quarter of the time still keeps its mean; the other programs' own clients send all that is due in one burst.
const FOREIGN_MIN_GAP: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn towards_another_program_every_delay_is_made_up_but_for_a_requested_burst() {
        let spec = Spec { block: 1_000, ..Spec::new("udp", "stream") };
        let own = pace(&spec, 8_000_000);
        let foreign = pace_to_foreign(&spec, 8_000_000);
        assert_eq!((own.gap_ns, foreign.gap_ns, foreign.min_gap_ns), (1e6, 1e6, 0.1e6));
        assert!(own.catch_up_ns <= 1e6 && foreign.catch_up_ns.is_infinite());
        let burst = Spec { burst: Some(4_000), ..spec };
        assert_eq!(pace_to_foreign(&burst, 8_000_000), pace(&burst, 8_000_000));
    }
}
