//! What to know before trusting an outcome, and how far to trust it.

use std::collections::BTreeSet;

use model::{Cell, Outcome, Summary, Trial, Trust, Verdict};

use crate::stats::sequential::LEAST_TRIALS;

/// Transports between threads or processes of one host, without a network.
const ONE_HOST: [&str; 3] = ["memcpy", "shm", "unix"];

/// The verdicts of a cell, in the order of [`Verdict`]: those of the trials that count, and those that only the whole can show.
pub(crate) fn of_cell(cell: &Cell, trials: &[Trial], values: usize, wide: bool) -> Vec<Verdict> {
    let mut verdicts: BTreeSet<Verdict> = trials.iter().flat_map(|trial| trial.verdicts.iter().copied()).collect();
    let mut add = |verdict, holds: bool| {
        if holds {
            verdicts.insert(verdict);
        }
    };
    add(Verdict::FewTrials, values < LEAST_TRIALS);
    add(Verdict::TargetMissed, values >= LEAST_TRIALS && wide);
    add(Verdict::OneHost, ONE_HOST.iter().any(|name| cell.spec.transport == **name));
    add(Verdict::DelayedReads, cell.spec.delayed_reads);
    add(Verdict::OverlapClose, cell.spec.overlap_close);
    verdicts.into_iter().collect()
}

/// What the trust in an outcome is judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence<'a> {
    /// It has a value at all.
    pub(crate) valued: bool,
    /// A trial of those that the value is of was not cut short.
    pub(crate) whole: bool,
    /// Its interval is wider than asked, or it has none.
    pub(crate) wide: bool,
    pub(crate) verdicts: &'a [Verdict],
}

/// How far an outcome can be trusted, by the rules at [`Trust`]: not at all said without a value, never high beside an interval
/// wider than asked, and no more than the worst verdict leaves.
#[must_use]
pub(crate) fn trust(of: Evidence<'_>) -> Option<Trust> {
    let shape = match of {
        Evidence { valued: false, .. } => return None,
        Evidence { whole: false, .. } => Trust::None,
        Evidence { wide: true, .. } => Trust::Fair,
        _ => Trust::High,
    };
    of.verdicts.iter().map(|verdict| at_most(*verdict)).chain([shape]).max()
}

/// The most trust that a verdict leaves.
fn at_most(verdict: Verdict) -> Trust {
    match verdict {
        Verdict::Stalled | Verdict::ByteCountMismatch | Verdict::EmulatorLate => Trust::None,
        Verdict::FewTrials | Verdict::ResolutionLimited | Verdict::AboveCeiling => Trust::Low,
        // Of those that were cut short, the trials that were whole stand as they would if no more had been asked for.
        Verdict::CutShort => Trust::High,
        Verdict::BatchTimed | Verdict::SelfLimited | Verdict::OneHost | Verdict::MetricsKept => Trust::High,
        Verdict::DelayedReads | Verdict::OverlapClose => Trust::High,
        // Missed target, overlap, loss and drops, a lab that did not tell; and, until it is weighed here, anything new.
        _ => Trust::Fair,
    }
}

/// Whether an outcome is not to be used: its trust is none, or would be had it a value.
#[must_use]
pub fn is_unusable(outcome: &Outcome) -> bool {
    let Summary { trust, verdicts, .. } = &outcome.summary;
    *trust == Some(Trust::None) || verdicts.iter().any(|verdict| at_most(*verdict) == Trust::None)
}

/// Adds a verdict that came to light after the outcome was made, such as NetPIPE's self-limit, and lowers the trust to it.
pub fn add_verdict(outcome: &mut Outcome, verdict: Verdict) {
    let verdicts = &mut outcome.summary.verdicts;
    if !verdicts.contains(&verdict) {
        verdicts.push(verdict);
        verdicts.sort_unstable();
        outcome.summary.trust = outcome.summary.trust.map(|trust| trust.max(at_most(verdict)));
    }
}

/// A verdict in words, as the second half of a sentence about an outcome.
#[must_use]
pub fn explain(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Stalled => "a trial stalled and was ended at its deadline",
        Verdict::ResolutionLimited => "a trial was too short for its clock or rests on fewer than 10 arrivals",
        Verdict::ByteCountMismatch => "the two ends' byte counts do not add up",
        Verdict::TargetMissed => "the interval is wider than asked",
        Verdict::FewTrials => "fewer than 3 trials make no claim",
        Verdict::CutShort => "it was ended before its stop rule was met",
        Verdict::Overlapped => "another measurement ran on one of the hosts meanwhile",
        Verdict::BatchTimed => "round trips were timed in batches, so percentiles are of batch means",
        Verdict::SocketDrops => "the receiver's own socket dropped datagrams: the host, not the path",
        Verdict::Loss => "datagrams were lost",
        Verdict::SelfLimited => "larger blocks were left out after this one",
        Verdict::OneHost => "both ends are on one host, without a network between them",
        Verdict::MetricsKept => {
            "the TCP metrics cache of an end that sends was on, so that a trial may begin with what an earlier one learnt"
        }
        Verdict::AboveCeiling => "it is above what the path could carry",
        Verdict::Unmet => "what the plan requires did not hold before a trial, which was left out",
        Verdict::Starved => "a flow got nothing in a trial",
        Verdict::EmulatorLate => "the lab's emulator handed packets over more than 1 ms late",
        Verdict::EmulatorUnreported => "the lab did not say whether its emulator was on time",
        Verdict::DelayedReads => {
            "its receivers slept on purpose between reads (--delayed-reads), as no application's do"
        }
        Verdict::OverlapClose => "each connection was closed while the next one was under way (--overlap-close)",
        _ => "see the verdict's name in the document",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of an outcome with a value from whole trials and a narrow interval.
    fn of(verdicts: &[Verdict]) -> Option<Trust> {
        trust(Evidence { valued: true, whole: true, wide: false, verdicts })
    }

    #[test]
    fn the_worst_verdict_decides() {
        assert_eq!(of(&[]), Some(Trust::High));
        assert_eq!(of(&[Verdict::BatchTimed, Verdict::OneHost, Verdict::CutShort]), Some(Trust::High));
        assert_eq!(of(&[Verdict::DelayedReads, Verdict::OverlapClose]), Some(Trust::High));
        assert_eq!(of(&[Verdict::Loss]), Some(Trust::Fair));
        assert_eq!(of(&[Verdict::EmulatorUnreported]), Some(Trust::Fair));
        assert_eq!(of(&[Verdict::Loss, Verdict::ResolutionLimited]), Some(Trust::Low));
        assert_eq!(of(&[Verdict::FewTrials, Verdict::ByteCountMismatch, Verdict::Loss]), Some(Trust::None));
    }

    #[test]
    fn no_value_has_no_trust_and_no_whole_trial_gives_none() {
        let evidence = Evidence { valued: false, whole: true, wide: false, verdicts: &[] };
        assert_eq!(trust(evidence), None);
        assert_eq!(trust(Evidence { verdicts: &[Verdict::Stalled], whole: false, ..evidence }), None);
        assert_eq!(trust(Evidence { valued: true, whole: false, ..evidence }), Some(Trust::None));
        assert_eq!(trust(Evidence { valued: true, wide: true, ..evidence }), Some(Trust::Fair));
    }

    #[test]
    fn a_late_verdict_is_added_once() {
        let mut outcome = crate::curve::testing::made("pingpong", 0, 1, &[1000.0; 6]);
        assert_eq!(outcome.summary.trust, Some(Trust::High));
        add_verdict(&mut outcome, Verdict::Stalled);
        add_verdict(&mut outcome, Verdict::Stalled);
        assert_eq!(outcome.summary.verdicts, [Verdict::Stalled]);
        assert_eq!(outcome.summary.trust, Some(Trust::None));
        // Where there is no value there is nothing to lower.
        let mut empty = crate::curve::testing::made("pingpong", 0, 1, &[]);
        assert!(!is_unusable(&empty) && is_unusable(&outcome));
        add_verdict(&mut empty, Verdict::Stalled);
        assert!(empty.summary.trust.is_none() && is_unusable(&empty));
    }
}
