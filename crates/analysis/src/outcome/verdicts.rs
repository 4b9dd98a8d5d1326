//! What to know before trusting an outcome, and how far to trust it.

use std::collections::BTreeSet;

use model::{Cell, Estimate, Outcome, Trial, Trust, Verdict};

use crate::stats::sequential::LEAST_TRIALS;

/// Transports between threads or processes of one host, without a network.
const ONE_HOST: [&str; 3] = ["memcpy", "shm", "unix"];

/// The verdicts of a cell, in the order of [`Verdict`]: those of its trials, and those that only the whole can show.
pub(crate) fn of_cell(
    cell: &Cell,
    trials: &[Trial],
    estimate: Option<&Estimate>,
    values: usize,
    target: f64,
) -> Vec<Verdict> {
    let mut verdicts: BTreeSet<Verdict> = trials.iter().flat_map(|trial| trial.verdicts.iter().copied()).collect();
    let mut add = |verdict, holds: bool| {
        if holds {
            verdicts.insert(verdict);
        }
    };
    let width = estimate.and_then(Estimate::relative_half_width);
    add(Verdict::FewTrials, values < LEAST_TRIALS);
    add(Verdict::TargetMissed, values >= LEAST_TRIALS && width.is_none_or(|width| width > target));
    add(Verdict::OneHost, ONE_HOST.iter().any(|name| cell.spec.transport == **name));
    verdicts.into_iter().collect()
}

/// How far verdicts let an outcome be trusted: the worst one decides, by the rules at [`Trust`].
#[must_use]
pub fn trust(verdicts: &[Verdict]) -> Trust {
    verdicts.iter().map(|verdict| at_most(*verdict)).max().unwrap_or(Trust::High)
}

/// The most trust that a verdict leaves.
fn at_most(verdict: Verdict) -> Trust {
    match verdict {
        Verdict::Stalled | Verdict::LedgerOpen | Verdict::EmulatorLate => Trust::None,
        // The trials that were whole still stand; `outcome` sees to the case without any.
        Verdict::CutShort | Verdict::FewTrials | Verdict::ResolutionLimited | Verdict::AboveCeiling => Trust::Low,
        Verdict::BatchTimed | Verdict::SelfLimited | Verdict::OneHost | Verdict::MetricsKept => Trust::High,
        // Missed target, overlap, loss and drops, a lab that did not tell; and, until it is weighed here, anything new.
        _ => Trust::Fair,
    }
}

/// Adds a verdict that came to light after the outcome was made, such as NetPIPE's self-limit, and lowers the trust to it.
pub fn add_verdict(outcome: &mut Outcome, verdict: Verdict) {
    let verdicts = &mut outcome.summary.verdicts;
    if !verdicts.contains(&verdict) {
        verdicts.push(verdict);
        verdicts.sort_unstable();
        outcome.summary.trust = outcome.summary.trust.max(at_most(verdict));
    }
}

/// A verdict in words, as the second half of a sentence about an outcome.
#[must_use]
pub fn explain(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Stalled => "a trial stalled and was ended at its deadline",
        Verdict::ResolutionLimited => "a trial was too short for its clock or rests on fewer than 10 arrivals",
        Verdict::LedgerOpen => "the two ends' byte counts do not add up",
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
        Verdict::EmulatorUntold => "the lab did not say whether its emulator was on time",
        _ => "see the verdict's name in the document",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_verdict_decides() {
        assert_eq!(trust(&[]), Trust::High);
        assert_eq!(trust(&[Verdict::BatchTimed, Verdict::OneHost]), Trust::High);
        assert_eq!(trust(&[Verdict::Loss]), Trust::Fair);
        assert_eq!(trust(&[Verdict::EmulatorUntold]), Trust::Fair);
        assert_eq!(trust(&[Verdict::Loss, Verdict::ResolutionLimited]), Trust::Low);
        assert_eq!(trust(&[Verdict::FewTrials, Verdict::LedgerOpen, Verdict::Loss]), Trust::None);
    }

    #[test]
    fn a_late_verdict_is_added_once() {
        let cell = Cell::new(0, model::Spec::new("tcp", "pingpong"));
        let mut outcome =
            super::super::outcome(&cell, Vec::new(), &model::Stopping::default(), crate::Context::default());
        add_verdict(&mut outcome, Verdict::Stalled);
        add_verdict(&mut outcome, Verdict::Stalled);
        assert_eq!(outcome.summary.verdicts, [Verdict::Stalled, Verdict::FewTrials]);
        assert_eq!(outcome.summary.trust, Trust::None);
    }
}
