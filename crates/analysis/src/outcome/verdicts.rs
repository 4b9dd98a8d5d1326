//! The verdicts of an outcome, what they mean, and the trust that they leave.

use std::collections::BTreeSet;

use model::{Cell, Outcome, Summary, Trial, Trust, Verdict};
use text::{Text, say};

/// The verdicts of a cell, in the order of [`Verdict`]: those of its trials, and those of the trials together. `shortfall` is why its
/// interval is not as narrow as requested.
pub(crate) fn of_cell(cell: &Cell, trials: &[Trial], shortfall: Option<Verdict>) -> Vec<Verdict> {
    let mut verdicts: BTreeSet<Verdict> = trials.iter().flat_map(|trial| trial.verdicts.iter().copied()).collect();
    let mut add = |verdict, holds: bool| {
        if holds {
            verdicts.insert(verdict);
        }
    };
    add(Verdict::SameHost, cell.spec.transport_facts().is_some_and(|facts| facts.one_host));
    add(Verdict::DelayedReads, cell.spec.delayed_reads);
    add(Verdict::OverlapClose, cell.spec.overlap_close);
    verdicts.extend(shortfall);
    verdicts.into_iter().collect()
}

/// What the trust in an outcome depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrustInputs<'a> {
    /// The outcome has a value.
    pub(crate) has_value: bool,
    /// At least one trial of the value was not cut short.
    pub(crate) complete: bool,
    /// Distance of the interval's farther end from the value, relative to the value; `None` without an interval.
    pub(crate) width: Option<f64>,
    /// The width from which on high trust ends, likewise.
    pub(crate) target: f64,
    pub(crate) verdicts: &'a [Verdict],
}

/// The widest interval that leaves more than low trust, relative to the value and to either side.
const WIDE: f64 = 0.1;

/// How far an outcome can be trusted, by the rules at [`Trust`]. `None` without a value; never more than the worst verdict allows.
#[must_use]
pub(crate) fn trust(of: TrustInputs<'_>) -> Option<Trust> {
    let by_value = match of {
        TrustInputs { has_value: false, .. } => return None,
        TrustInputs { complete: false, .. } => Trust::None,
        TrustInputs { width: None, .. } => Trust::Low,
        TrustInputs { width: Some(width), .. } if width > WIDE => Trust::Low,
        TrustInputs { width: Some(width), target, .. } if width > target => Trust::Fair,
        _ => Trust::High,
    };
    of.verdicts.iter().map(|verdict| at_most(*verdict)).chain([by_value]).max()
}

/// Verdicts after which the figures must not be used.
const UNUSABLE: &[Verdict] =
    &[Verdict::Stalled, Verdict::ByteCountMismatch, Verdict::NothingArrived, Verdict::EmulatorLate];
/// Verdicts that leave low trust at most.
const DOUBTFUL: &[Verdict] = &[
    Verdict::FewTrials,
    Verdict::NotSettled,
    Verdict::SendBufferLimited,
    Verdict::RateNotOffered,
    Verdict::ResolutionLimited,
    Verdict::AboveCeiling,
];
/// Verdicts that say how something was measured, and leave the trust in the figures as it is.
const HARMLESS: &[Verdict] = &[
    // The complete trials are as good as those of a measurement that requested no more.
    Verdict::CutShort,
    Verdict::BatchTimed,
    Verdict::SelfLimited,
    Verdict::Thinned,
    Verdict::SameHost,
    Verdict::MetricsKept,
    Verdict::DelayedReads,
    Verdict::OverlapClose,
];

/// The highest trust that a verdict allows: fair unless one of the lists has it, so a new verdict counts until it is listed.
#[must_use]
pub fn at_most(verdict: Verdict) -> Trust {
    match () {
        () if UNUSABLE.contains(&verdict) => Trust::None,
        () if DOUBTFUL.contains(&verdict) => Trust::Low,
        () if HARMLESS.contains(&verdict) => Trust::High,
        () => Trust::Fair,
    }
}

/// Whether an outcome with this verdict must not be used.
#[must_use]
fn forbids_use(verdict: Verdict) -> bool {
    at_most(verdict) == Trust::None
}

/// Whether an outcome must not be used: its trust is none, or would be if it had a value.
#[must_use]
pub fn is_unusable(outcome: &Outcome) -> bool {
    let Summary { trust, verdicts, .. } = &outcome.summary;
    *trust == Some(Trust::None) || verdicts.iter().copied().any(forbids_use)
}

/// Why an outcome must not be used, without what to do; `None` if it may be.
#[must_use]
pub fn why_unusable(outcome: &Outcome) -> Option<Text> {
    is_unusable(outcome).then(|| {
        let verdict = outcome.summary.verdicts.iter().copied().find(|verdict| forbids_use(*verdict));
        verdict.map_or_else(|| "no trial was complete".into(), explain)
    })
}

/// Adds a verdict that became known after the outcome was made, such as NetPIPE's self-limit, and lowers the trust accordingly.
pub fn add_verdict(outcome: &mut Outcome, verdict: Verdict) {
    add(&mut outcome.summary, verdict);
    outcome.summary.directions_mut().for_each(|(_, direction)| add(direction, verdict));
}

fn add(summary: &mut Summary, verdict: Verdict) {
    if !summary.verdicts.contains(&verdict) {
        summary.verdicts.push(verdict);
        summary.verdicts.sort_unstable();
        summary.trust = summary.trust.map(|trust| trust.max(at_most(verdict)));
    }
}

/// What a verdict means and what to do about it: a sentence without its capital letter and full stop, the same in findings,
/// tables and pages.
#[must_use]
pub fn explain(verdict: Verdict) -> Text {
    match verdict {
        Verdict::Stalled => say!("a trial stalled and was ended at its deadline: do not use the rate"),
        Verdict::ResolutionLimited => {
            say!("a trial was too short for its clock or had fewer than 10 arrivals: use longer trials")
        }
        Verdict::ByteCountMismatch => say!("the byte counts of the two ends do not match: do not use the rate"),
        Verdict::NotSettled => {
            say!(
                "the rate was still growing after the connections' start-up, or the trials were too short to tell: use longer trials"
            )
        }
        Verdict::SendBufferLimited => {
            say!(
                "the send buffer limited the only connection, and the next one may get a different rate: use at least 3 trials or a \
                 larger buffer"
            )
        }
        Verdict::TargetMissed => say!("the interval is wider than requested: allow more trials or a larger budget"),
        Verdict::FewTrials => say!("too few trials for an interval: it needs 3, or 10 on a curve"),
        Verdict::Noisy => {
            say!(
                "the values of this size vary too much for the budget: `--spin` and `--pin` avoid thread wake-ups, but not other load \
                 or steal"
            )
        }
        Verdict::Drifting => {
            say!(
                "the values rose or fell during the run (on a curve, at all sizes alike): another run may differ by more than the \
                 interval"
            )
        }
        Verdict::Thinned => {
            say!("some sizes were left out because the budget is too small for all: allow a larger budget")
        }
        Verdict::CutShort => {
            say!("the measurement ended before its stop rule was met (interrupted, or the peer disconnected)")
        }
        Verdict::Overlapped => say!("another measurement ran on one of the hosts at the same time"),
        Verdict::BatchTimed => say!("round trips were timed in batches, so percentiles are of batch means"),
        Verdict::SocketDrops => {
            say!("the receiver's own socket dropped datagrams: the host is the limit, not the path")
        }
        Verdict::Loss => say!("datagrams were lost"),
        Verdict::SelfLimited => say!("larger blocks were not measured (NetPIPE's self-limit or the budget)"),
        Verdict::SameHost => say!("both ends are on one host, with no network between them"),
        Verdict::MetricsKept => {
            say!("a sender's TCP metrics cache was on, so a trial may start with values from an earlier one")
        }
        Verdict::AboveCeiling => say!("the goodput is above its ceiling: one of the two figures is wrong"),
        Verdict::Unmet => say!("a trial was skipped because a precondition of the plan did not hold"),
        Verdict::Starved => say!("a flow got nothing in a trial: see each flow's share in the JSON document"),
        Verdict::RateNotOffered => {
            say!(
                "the sender sent less than requested: use a lower rate, or an idle machine (`--pin` gives a thread a core)"
            )
        }
        Verdict::NothingArrived => {
            say!("nothing arrived in a trial: check for a firewall, datagrams larger than an MTU, or a dead path")
        }
        Verdict::EmulatorLate => {
            say!("the lab's emulator was more than 1 ms late: give it a core of its own, or repeat on an idle machine")
        }
        Verdict::EmulatorUnreported => {
            say!("the lab did not report whether its emulator was on time: repeat on an idle machine")
        }
        Verdict::DelayedReads => {
            say!(
                "receivers slept between reads (`--delayed-reads`), unlike an ordinary application: other programs may be slower"
            )
        }
        Verdict::OverlapClose => {
            say!(
                "each connection was closed during the next transaction (`--overlap-close`): sequential transactions are slower"
            )
        }
        _ => say!("unknown to this version: see the manual of the version that measured"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;

    /// Trust of an outcome with a value from complete trials and a narrow interval.
    fn of(verdicts: &[Verdict]) -> Option<Trust> {
        trust(TrustInputs { has_value: true, complete: true, width: Some(0.01), target: 0.02, verdicts })
    }

    #[test]
    fn explanations_are_sentences_without_capital_and_full_stop() {
        for verdict in [Verdict::Stalled, Verdict::FewTrials, Verdict::MetricsKept, Verdict::DelayedReads] {
            let text = explain(verdict).plain();
            assert!(!text.ends_with('.') && text.chars().next().is_some_and(|first| !first.is_uppercase()), "{text}");
        }
    }

    #[test]
    fn the_worst_verdict_decides() {
        assert_eq!(of(&[]), Some(Trust::High));
        assert_eq!(of(&[Verdict::BatchTimed, Verdict::SameHost, Verdict::CutShort]), Some(Trust::High));
        assert_eq!(of(&[Verdict::DelayedReads, Verdict::OverlapClose]), Some(Trust::High));
        assert_eq!(of(&[Verdict::Loss]), Some(Trust::Fair));
        assert_eq!(of(&[Verdict::EmulatorUnreported]), Some(Trust::Fair));
        assert_eq!(of(&[Verdict::RateNotOffered]), Some(Trust::Low));
        assert_eq!(of(&[Verdict::NothingArrived, Verdict::Loss]), Some(Trust::None));
        assert_eq!(of(&[Verdict::Loss, Verdict::ResolutionLimited]), Some(Trust::Low));
        assert_eq!(of(&[Verdict::FewTrials, Verdict::ByteCountMismatch, Verdict::Loss]), Some(Trust::None));
    }

    #[test]
    fn no_value_has_no_trust_and_no_complete_trial_gives_none() {
        let inputs = TrustInputs { has_value: false, complete: true, width: None, target: 0.02, verdicts: &[] };
        assert_eq!(trust(inputs), None);
        assert_eq!(trust(TrustInputs { verdicts: &[Verdict::Stalled], complete: false, ..inputs }), None);
        assert_eq!(trust(TrustInputs { has_value: true, complete: false, ..inputs }), Some(Trust::None));
    }

    #[test]
    fn the_width_of_the_interval_limits_the_trust() {
        let of = |width, target| {
            trust(TrustInputs { has_value: true, complete: true, width, target, verdicts: &[] }).unwrap()
        };
        assert_eq!(of(Some(0.02), 0.02), Trust::High);
        assert_eq!(of(Some(0.021), 0.02), Trust::Fair);
        assert_eq!(of(Some(0.1), 0.02), Trust::Fair);
        assert_eq!(of(Some(0.101), 0.02), Trust::Low);
        assert_eq!(of(Some(0.3), 0.5), Trust::Low, "whatever was asked for");
        assert_eq!(of(None, 0.02), Trust::Low);
    }

    #[test]
    fn transports_within_one_host_have_a_verdict() {
        for known in model::TransportName::OWN.iter().filter_map(model::TransportName::named) {
            let verdicts = of_cell(&Cell::new(0, model::Spec::new(known.name, Pattern::Stream)), &[], None);
            assert_eq!(verdicts.contains(&Verdict::SameHost), known.facts.one_host, "{}", known.name);
        }
    }

    #[test]
    fn a_late_verdict_is_added_once() {
        let mut outcome = crate::curve::testing::made(Pattern::Pingpong, 0, 1, &[1000.0; 6]);
        assert_eq!(outcome.summary.trust, Some(Trust::High));
        add_verdict(&mut outcome, Verdict::Stalled);
        add_verdict(&mut outcome, Verdict::Stalled);
        assert_eq!(outcome.summary.verdicts, [Verdict::Stalled]);
        assert_eq!(outcome.summary.trust, Some(Trust::None));
        // Without a value there is no trust to lower.
        let mut empty = crate::curve::testing::made(Pattern::Pingpong, 0, 1, &[]);
        assert!(!is_unusable(&empty) && is_unusable(&outcome));
        add_verdict(&mut empty, Verdict::Stalled);
        assert!(empty.summary.trust.is_none() && is_unusable(&empty));
    }
}
