//! From tallies to trials, and from a cell's trials to its outcome.

mod cost;
mod directions;
mod emulated;
mod ends;
mod estimate;
mod fairness;
mod headline;
mod ledger;
mod missed;
mod offered;
mod peak_check;
pub mod point;
mod probe;
mod summary;
mod tcp;
#[cfg(test)]
pub(crate) mod testing;
mod trial;
mod verdicts;
mod within;
mod working;

use std::borrow::Cow;

use model::{Anatomy, Cell, EndTally, Histogram, Outcome, PeakCheck, RttTally, Stopping, Trial, Verdict};

use crate::stats::sequential::MIN_TRIALS;
use crate::stats::{LegValue, SizeParts, is_drifting, separate};

pub(crate) use cost::cost;
pub(crate) use directions::outcomes as direction_outcomes;
pub use directions::trial_summary;
pub use emulated::emulator_late;
pub(crate) use ends::{receivers, requester, senders};
pub use estimate::estimate;
pub(crate) use estimate::mean_of_trials;
pub(crate) use fairness::{jain, shares};
pub use headline::Headline;
pub use ledger::ledger;
pub use missed::missed_target;
pub use offered::{Shortfall, ShortfallCause, shortfall};
pub use peak_check::{CheckStream, peak_check};
pub(crate) use summary::packets_per_s;
pub(crate) use trial::last_arrival_ns;
pub use trial::{completion_ns, trial_value, trial_verdicts};
use verdicts::TrustInputs;
pub use verdicts::{add_verdict, at_most, explain, is_unusable, why_unusable};

/// What is known of a cell besides its trials.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Another measurement ran on one of the hosts at the same time.
    pub overlapped: bool,
    /// The cell was ended by an interrupt or a lost peer before its stop rule was met.
    pub cut_short: bool,
    /// The cell is a point of a curve over block sizes, so that a stream's goodput is NetPIPE's rate too (`NPtcp -s`).
    pub curve: bool,
    /// The trials are legs of a curve's passes: the estimate is their median, not their mean.
    pub legs: bool,
    /// The cell is one side of a paired comparison. The ratio decides there: the side's own interval has no target, and for its trust
    /// it may be as wide as the default one or the tolerance, whichever is larger.
    pub paired: bool,
    /// All round trips of the cell, if the trials themselves hold only digests.
    pub histogram: Option<Histogram>,
    /// What a probe found before the first trial.
    pub idle: Option<RttTally>,
    /// The anatomy of round trips that are no trials of the cell.
    pub anatomy: Option<Anatomy>,
    /// For the fastest size of a curve: the check of the peak.
    pub check: Option<PeakCheck>,
    /// For a point of a curve: its legs without the effects of their passes, see [`parts`].
    pub parts: Option<SizeParts>,
}

/// Makes the outcome of a cell: the headline estimate with its interval by the stop rule, the flat summary, the merged
/// histogram, the verdicts and the trust that they leave.
///
/// The estimate is the mean over the trials' values, of a point of a curve the median, in bit/s (stream, transfer and unknown
/// patterns), 1/s (rr, crr) or ns (pingpong). Trials that were cut short count only when no other gave a value.
#[must_use]
pub fn outcome(cell: &Cell, trials: Vec<Trial>, rule: &Stopping, context: Context) -> Outcome {
    let values = sample(&trials);
    let counted = counted(&trials);
    let headline = Headline::of(&cell.spec);
    let Context { overlapped, cut_short, curve, legs, paired, histogram, idle, anatomy, check, parts } = context;
    let [estimate, within] = if legs {
        point::estimates(headline, &values, parts.as_ref(), rule)
    } else {
        let samples = if values.len() < MIN_TRIALS { within::samples(&cell.spec, &counted) } else { Vec::new() };
        [estimate(headline, &values, &samples, rule), None]
    };
    let histogram = histogram.or_else(|| summary::merged_histogram(&counted));
    let mut summary = summary::summary(cell, &counted, estimate.as_ref(), histogram.as_ref(), curve);
    summary.cost = cost(&cell.spec, &counted).map(Box::new);
    summary.anatomy = anatomy.or_else(|| crate::anatomy::of_cell(&counted, summary.rtt_p50_ns)).map(Box::new);
    summary.probe = probe::responsiveness(&cell.spec, &counted, idle.as_ref()).map(Box::new);
    summary.within_pass = within.map(Box::new);
    summary.check = check.map(Box::new);
    summary.trials = u32::try_from(values.len()).unwrap_or(u32::MAX);
    summary.start_up = within::start_up(&cell.spec, &counted);
    summary.seconds = within::seconds(&cell.spec, &counted);
    let known = [
        (Verdict::CutShort, cut_short || trials.iter().any(was_cut_short)),
        (Verdict::Overlapped, overlapped),
        (
            Verdict::RateNotOffered,
            offered::of_trials(&cell.spec, &counted).is_some_and(|of| of.cause.is_of_the_sender()),
        ),
        (Verdict::SendBufferLimited, tcp::is_held_by_send_buffer(&cell.spec, &counted)),
        // The sides of a comparison are measured in turns because of drift.
        (Verdict::Drifting, !legs && !paired && is_drifting(&values)),
    ];
    let target = if paired { rule.target.max(Stopping::default().target) } else { rule.target };
    let asked = !paired && rule.has_target();
    let shortfall = estimate::shortfall(estimate.as_ref(), summary.within_pass.as_deref(), target, asked);
    summary.verdicts = verdicts::of_cell(cell, &counted, shortfall);
    summary.verdicts.extend(known.into_iter().filter_map(|(verdict, holds)| holds.then_some(verdict)));
    summary.verdicts.sort_unstable();
    summary.verdicts.dedup();
    summary.trust = verdicts::trust(TrustInputs {
        has_value: estimate.is_some(),
        complete: counted.iter().any(|trial| trial.value.is_some() && !was_cut_short(trial)),
        width: estimate.as_ref().and_then(estimate::reach),
        target,
        verdicts: &summary.verdicts,
    });
    // What is known of round trips and of other sizes is not of one direction.
    let known = Context { overlapped, cut_short, curve, legs, paired, ..Context::default() };
    directions::summarize(&mut summary, cell, &counted, rule, &known);
    drop(counted);
    Outcome { cell: cell.id, spec: cell.spec.clone(), summary, estimate, histogram, trials }
}

fn was_cut_short(trial: &Trial) -> bool {
    trial.verdicts.contains(&Verdict::CutShort)
}

/// The trials that an outcome is made of. Those that were cut short count only if no complete trial gave a value. Those that had not
/// settled count only if most of the longest trials had not.
pub(crate) fn counted(trials: &[Trial]) -> Cow<'_, [Trial]> {
    let complete = || trials.iter().filter(|trial| !was_cut_short(trial));
    if trials.iter().any(was_cut_short) && complete().any(|trial| trial.value.is_some()) {
        return Cow::Owned(settled(&complete().cloned().collect::<Vec<_>>()).into_owned());
    }
    settled(trials)
}

/// The trials that had settled, or the longest ones if most of those had not.
fn settled(trials: &[Trial]) -> Cow<'_, [Trial]> {
    let growing = |trial: &Trial| trial.verdicts.contains(&Verdict::NotSettled);
    if !trials.iter().any(growing) {
        return Cow::Borrowed(trials);
    }
    let longest = trials.iter().map(length_ns).max().unwrap_or(0);
    let long = |trial: &&Trial| length_ns(trial) >= longest - longest / 10;
    let (all, grew) =
        (trials.iter().filter(long).count(), trials.iter().filter(long).filter(|one| growing(one)).count());
    let mostly = 2 * grew > all;
    let counts = |trial: &&Trial| if mostly { long(trial) } else { !growing(trial) };
    Cow::Owned(trials.iter().filter(counts).cloned().collect())
}

/// How long a trial took by its series, ns.
fn length_ns(trial: &Trial) -> u64 {
    let last = |end: &EndTally| end.intervals.last().map_or(0, |entry| entry.end_ns);
    last(&trial.near).max(last(&trial.far))
}

/// The values that an outcome is made of, in the order of the trials: those of complete trials, or of the cut ones if there are
/// no others.
#[must_use]
pub fn sample(trials: &[Trial]) -> Vec<f64> {
    legs(trials).into_iter().map(|leg| leg.value).collect()
}

/// The same values, each with its place in the run.
pub(crate) fn legs(trials: &[Trial]) -> Vec<LegValue> {
    let leg = |trial: &Trial| Some(LegValue { pass: trial.pass, position: trial.position, value: trial.value? });
    counted(trials).iter().filter_map(leg).collect()
}

/// For each cell of a curve (ascending by block) the values of [`sample`] without the effects of their passes; empty if there are
/// too few cells to estimate them.
#[must_use]
pub fn parts(cells: &[&[Trial]]) -> Vec<SizeParts> {
    let values: Vec<Vec<LegValue>> = cells.iter().map(|trials| legs(trials)).collect();
    separate(&values)
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;
    use model::{Direction, Pattern, Spec, Summary, Trust};
    use proptest::prelude::*;

    fn streams(values: &[u64]) -> Vec<Trial> {
        values.iter().map(|mbit| stream_trial(&Spec::new("tcp", Pattern::Stream), *mbit)).collect()
    }

    fn cell(pattern: Pattern) -> Cell {
        Cell::new(4, Spec::new("tcp", pattern))
    }

    #[test]
    fn steady_streams_are_trusted() {
        let outcome = outcome(
            &cell(Pattern::Stream),
            streams(&[940, 941, 939, 940, 942, 940]),
            &Stopping::default(),
            Context::default(),
        );
        let estimate = outcome.estimate.as_ref().unwrap();
        assert!((estimate.value / 940.33e6 - 1.0).abs() < 1e-4);
        assert!(estimate.low.unwrap() < 940.0e6 && estimate.high.unwrap() > 941.0e6);
        assert_eq!((estimate.unit.as_str(), estimate.n, outcome.summary.trials), ("bit/s", 6, 6));
        assert_eq!(outcome.summary.verdicts, []);
        assert_eq!(outcome.summary.trust, Some(Trust::High));
        assert_eq!(outcome.summary.ci95_low, estimate.low);
        assert!((outcome.summary.goodput_bps.unwrap() - estimate.value).abs() < 1.0);
        assert_eq!(outcome.summary.netpipe_bps, None);
        assert_eq!(outcome.summary.bytes_received, outcome.summary.bytes_sent);
        assert_eq!(outcome.summary.duration_ns, Some(6_000_000_000));
    }

    #[test]
    fn noisy_streams_miss_the_target_and_two_have_no_interval() {
        let rule = Stopping { max_trials: 12, ..Stopping::default() };
        let wild = outcome(&cell(Pattern::Stream), streams(&[500, 900, 300, 800, 100, 950]), &rule, Context::default());
        let missed = (&[Verdict::TargetMissed][..], Some(Trust::Low));
        assert_eq!((wild.summary.verdicts.as_slice(), wild.summary.trust), missed);
        let noisy =
            outcome(&cell(Pattern::Stream), streams(&[900, 940, 920, 960, 930, 950]), &rule, Context::default());
        let missed = (&[Verdict::TargetMissed][..], Some(Trust::Fair));
        assert_eq!((noisy.summary.verdicts.as_slice(), noisy.summary.trust), missed);
        let two = outcome(&cell(Pattern::Stream), streams(&[940, 941]), &rule, Context::default());
        assert_eq!((two.summary.verdicts.as_slice(), two.summary.trust), (&[Verdict::FewTrials][..], Some(Trust::Low)));
        assert_eq!(two.estimate.as_ref().unwrap().low, None);
        let none = outcome(&cell(Pattern::Stream), Vec::new(), &rule, Context::default());
        assert_eq!((none.estimate, none.summary.trust), (None, None), "no value, no trust");
    }

    #[test]
    fn a_fixed_number_of_trials_misses_no_target() {
        let of = |values: &[u64], trials, target| {
            let rule = Stopping { min_trials: trials, max_trials: trials, target, ..Stopping::default() };
            let Summary { verdicts, trust, .. } =
                outcome(&cell(Pattern::Stream), streams(values), &rule, Context::default()).summary;
            (verdicts, trust)
        };
        assert_eq!(of(&[930, 940, 950], 3, 0.02), (vec![], Some(Trust::Fair)), "±2.7 %");
        assert_eq!(of(&[940, 940, 941], 3, 0.02), (vec![], Some(Trust::High)));
        assert_eq!(of(&[500, 900, 700], 3, 0.02), (vec![], Some(Trust::Low)));
        assert_eq!(of(&[900, 940, 1100, 960, 850, 1050], 6, 0.5), (vec![], Some(Trust::Low)), "wider than ±10 %");
        assert_eq!(of(&[940, 940], 2, 0.02), (vec![Verdict::FewTrials], Some(Trust::Low)));
    }

    #[test]
    fn trust_in_a_side_of_a_comparison_depends_on_its_interval() {
        let paired = || Context { paired: true, ..Context::default() };
        let tolerance = |target| Stopping { target, ..Stopping::default() };
        let wild = [500, 900, 300, 800, 100, 950];
        let side =
            |values: &[u64], target| outcome(&cell(Pattern::Stream), streams(values), &tolerance(target), paired());
        let of = |outcome: Outcome| (outcome.summary.verdicts, outcome.summary.trust);
        assert_eq!(of(side(&wild, 0.01)), (vec![], Some(Trust::Low)), "a side has no target to miss");
        assert_eq!(of(side(&[940, 960, 950, 945, 955, 950], 0.0)), (vec![], Some(Trust::High)), "2 % at least");
        assert_eq!(of(side(&[900, 940, 920, 960, 930, 950], 0.05)), (vec![], Some(Trust::High)), "the tolerance");
        assert_eq!(of(side(&wild, 0.9)), (vec![], Some(Trust::Low)), "no tolerance makes a wide interval narrow");
    }

    #[test]
    fn a_point_of_a_curve_says_why_it_is_not_as_narrow_as_requested() {
        // Twelve legs of a size, whose own parts and levels vary by these.
        let spec = Spec::new("tcp", Pattern::Pingpong);
        let of = |own: f64, level: f64, legs: usize| {
            let trials: Vec<Trial> = (0..legs).map(|_| pingpong_trial(&spec, 550, 2000)).collect();
            let turn = |index: usize| [-1.0, 0.2, 1.0, -0.3, 0.5, -0.6][index % 6];
            let parts = SizeParts {
                own: (0..legs).map(|leg| 550.0 * (1.0 + own * turn(leg))).collect(),
                level: (0..legs).map(|leg| level * turn(leg)).collect(),
                correlation: 0.0,
            };
            let context = Context { curve: true, legs: true, parts: Some(parts), ..Context::default() };
            let outcome = outcome(&Cell::new(0, spec.clone()), trials, &Stopping::default(), context);
            let verdicts =
                outcome.summary.verdicts.into_iter().filter(|verdict| *verdict != Verdict::ResolutionLimited);
            (verdicts.collect::<Vec<_>>(), outcome.summary.trust)
        };
        assert_eq!(of(0.001, 0.001, 12), (vec![], Some(Trust::High)));
        assert_eq!(of(0.001, 0.03, 12), (vec![Verdict::Drifting], Some(Trust::Fair)));
        assert_eq!(of(0.001, 0.1, 12), (vec![Verdict::Drifting], Some(Trust::Low)));
        assert_eq!(of(0.05, 0.001, 12), (vec![Verdict::TargetMissed], Some(Trust::Fair)));
        assert_eq!(of(0.5, 0.001, 12), (vec![Verdict::Noisy], Some(Trust::Low)));
        assert_eq!(of(0.001, 0.001, 9), (vec![Verdict::FewTrials], Some(Trust::Low)), "no interval");
    }

    #[test]
    fn what_the_coordinator_knows_becomes_a_verdict() {
        let context = Context { overlapped: true, cut_short: true, ..Context::default() };
        let outcome = outcome(&cell(Pattern::Stream), streams(&[940; 6]), &Stopping::default(), context);
        assert_eq!(outcome.summary.verdicts, [Verdict::CutShort, Verdict::Overlapped]);
        assert_eq!(outcome.summary.trust, Some(Trust::Fair));
    }

    #[test]
    fn a_cut_trial_does_not_lower_the_trust_in_complete_ones() {
        let mut trials = streams(&[940, 940, 940, 100]);
        trials[3].verdicts.extend([Verdict::Stalled, Verdict::CutShort]);
        assert_eq!(sample(&trials), [940e6; 3]);
        assert_eq!(sample(&trials[3..]), [100e6]);
        let of = |trials: &[Trial]| {
            let context = Context { cut_short: true, ..Context::default() };
            outcome(&cell(Pattern::Stream), trials.to_vec(), &Stopping::default(), context)
        };
        let (all, others) = (of(&trials), of(&trials[..3]));
        assert_eq!(all.trials.len(), 4, "it is kept");
        assert_eq!((&all.summary, &all.estimate), (&others.summary, &others.estimate));
        assert_eq!((all.summary.verdicts, all.summary.trust), (vec![Verdict::CutShort], Some(Trust::High)));
        assert_eq!(of(&trials[3..]).summary.trust, Some(Trust::None), "nothing but a cut trial");
    }

    proptest! {
        #[test]
        fn high_trust_has_a_value_and_an_interval_as_narrow_as_requested(
            values in prop::collection::vec(prop_oneof![900u64..1100, 940u64..942], 0..12), cut in 0usize..12,
            target in 0.0f64..0.2, paired: bool, legs: bool,
        ) {
            let mut trials = streams(&values);
            trials.iter_mut().skip(cut).for_each(|trial| trial.verdicts.push(Verdict::CutShort));
            let rule = Stopping { target, ..Stopping::default() };
            let outcome = outcome(&cell(Pattern::Stream), trials, &rule, Context { paired, legs, ..Context::default() });
            prop_assert_eq!(outcome.summary.trust.is_some(), outcome.estimate.is_some());
            if outcome.summary.trust == Some(Trust::High) {
                let requested = if paired { target.max(0.02) } else { target };
                prop_assert!(outcome.estimate.unwrap().relative_half_width().unwrap() <= requested.min(0.1));
            } else if outcome.summary.trust == Some(Trust::Fair) {
                prop_assert!(outcome.estimate.unwrap().relative_half_width().unwrap() <= 0.1);
            }
        }
    }

    #[test]
    fn pingpong_has_netpipes_rate_and_no_goodput() {
        let mut cell = cell(Pattern::Pingpong);
        cell.spec.block = 1000;
        let trials: Vec<Trial> = (0..6).map(|_| pingpong_trial(&cell.spec, 20_000, 100)).collect();
        let outcome = outcome(&cell, trials, &Stopping::default(), Context { curve: true, ..Context::default() });
        let summary = &outcome.summary;
        assert_eq!(summary.goodput_bps, None);
        assert!((summary.netpipe_bps.unwrap() - 8000.0 / 10e-6).abs() < 8e5, "{:?}", summary.netpipe_bps);
        assert!((summary.rtt_p50_ns.unwrap() - 20_000.0).abs() < 20.0);
        assert_eq!(summary.rtt_p99_ns, None, "600 samples are too few");
        assert_eq!(outcome.histogram.as_ref().unwrap().count(), 600);
        let curve = Context { curve: true, ..Context::default() };
        let stream = super::outcome(&self::cell(Pattern::Stream), streams(&[940; 6]), &Stopping::default(), curve);
        assert_eq!(stream.summary.netpipe_bps, stream.summary.goodput_bps);
    }

    #[test]
    fn digests_stand_in_for_missing_histograms() {
        let spec = Spec::new("tcp", Pattern::Pingpong);
        let mut trials: Vec<Trial> = [900, 1000, 1100].map(|ns| pingpong_trial(&spec, ns, 2000)).into();
        for trial in &mut trials {
            if let Some(rtt) = &mut trial.near.rtt {
                rtt.histogram = None;
            }
        }
        let outcome = outcome(&Cell::new(0, spec), trials, &Stopping::default(), Context::default());
        assert_eq!(outcome.histogram, None);
        assert_eq!(outcome.summary.rtt_p50_ns, Some(1000.0));
        assert_eq!(outcome.summary.rtt_p99_ns, Some(1000.0));
    }

    #[test]
    fn both_directions_add_up() {
        let spec = Spec { direction: Direction::Both, ..Spec::new("tcp", Pattern::Stream) };
        let mut trial = stream_trial(&spec, 600);
        trial.near.bytes_received = 50_000_000;
        trial.near.receiving_ns = 500_000_000;
        trial.near.calls_received = 500;
        assert_eq!(trial_value(&spec, &trial.near, &trial.far), Some(600e6 + 800e6));
    }
}
