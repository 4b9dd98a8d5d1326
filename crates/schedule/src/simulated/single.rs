//! One cell on a path whose connections need some time to settle.

use model::{Interval, Pattern, Trust, Verdict};

use super::*;

/// Rate of the path, bit/s.
const RATE: f64 = 1e8;

/// A trial of `spec` whose rate grows evenly for `start_up_ns`.
pub(super) fn trial(spec: &Spec, start_up_ns: u64, begun_ns: u64) -> PassResult {
    let Stop::TimeNs(length_ns) = spec.stop else { panic!("a trial by time") };
    let entry = |at: u64| {
        let (start_ns, end_ns) = (at * spec.interval_ns, (at + 1) * spec.interval_ns);
        let part = (end_ns as f64 / start_up_ns as f64).min(1.0);
        let bytes_received = (RATE * part * spec.interval_ns as f64 / 8e9) as u64;
        Interval { start_ns, end_ns, bytes_received, ..Interval::default() }
    };
    let intervals: Vec<Interval> = (0..length_ns / spec.interval_ns).map(entry).collect();
    let bytes = intervals.iter().map(|entry| entry.bytes_received).sum();
    let near = EndTally { bytes_sent: bytes, sending_ns: length_ns, ..EndTally::default() };
    let far = EndTally {
        bytes_received: bytes,
        calls_received: 1_000,
        receiving_ns: length_ns,
        intervals,
        ..EndTally::default()
    };
    let end = |tally| EndResult { tallies: vec![tally], ..EndResult::default() };
    let (near, far) = (end(near), Some(end(far)));
    PassResult { begun_ns, duration_ns: length_ns, near, far, ..PassResult::default() }
}

/// The outcome of a run of trials of `length_ns`, and their lengths.
fn measured(length_ns: u64, start_up_ns: u64, budget_ns: u64, plan: Unfixed) -> (Outcome, Vec<u64>) {
    let spec = Spec { steady: true, ..stream(length_ns) };
    let mut header = header(vec![spec], budget_ns, 1);
    header.stopping.min_trials = 3;
    let mut run = ScheduledRun::new(&header, &Schedule::Single(plan), Methods::default());
    let (mut now, mut lengths) = (0, Vec::new());
    loop {
        let result = match run.next(now) {
            Step::End(_) => break,
            Step::Pause(pause) => {
                now += pause.ns;
                Completed::Done
            }
            Step::Prepare(_) => Completed::Done,
            Step::Run(tests) => {
                let spec = &tests.tests[0].spec;
                let Stop::TimeNs(ns) = spec.stop else { panic!("a trial by time") };
                lengths.push(ns);
                now += ns;
                Completed::Tests(vec![passed(Ok(trial(spec, start_up_ns, now - ns)))])
            }
        };
        run.completed(result, now);
    }
    run.close(false);
    let outcome = run.events().into_iter().find_map(|event| match event {
        Event::Outcome(outcome) => Some(outcome),
        _ => None,
    });
    (outcome.expect("an outcome"), lengths)
}

const FITTED: Unfixed = Unfixed { own_time: true, own_budget: true };

#[test]
fn a_trial_that_did_not_settle_is_followed_by_a_longer_one() {
    let (outcome, lengths) = measured(SECOND, 5 * SECOND, 60 * SECOND, FITTED);
    assert!(lengths.is_sorted() && lengths[..3] == [SECOND, 2 * SECOND, 4 * SECOND], "{lengths:?}");
    let value = outcome.estimate.as_ref().unwrap().value;
    assert!((value / RATE - 1.0).abs() < 0.03, "{value}: what had not settled does not count");
    assert!(!outcome.summary.verdicts.contains(&Verdict::NotSettled), "{:?}", outcome.summary.verdicts);
    assert_eq!(outcome.spec.stop, Stop::TimeNs(*lengths.last().unwrap()), "the trials that count");
}

#[test]
fn what_the_budget_does_not_let_settle_is_not_trusted() {
    let (outcome, lengths) = measured(SECOND, 50 * SECOND, 8 * SECOND, FITTED);
    assert!(lengths.iter().sum::<u64>() <= 8 * SECOND, "{lengths:?}");
    assert!(outcome.summary.verdicts.contains(&Verdict::NotSettled));
    assert_eq!(outcome.summary.trust, Some(Trust::Low));
    assert!(outcome.summary.start_up.unwrap().needs_ns.unwrap() > 8 * SECOND);
}

#[test]
fn a_requested_length_is_kept() {
    let (outcome, lengths) = measured(SECOND, 50 * SECOND, 8 * SECOND, Unfixed::default());
    assert!(lengths.iter().all(|ns| *ns == SECOND), "{lengths:?}");
    assert!(outcome.summary.verdicts.contains(&Verdict::NotSettled));
}

#[test]
fn there_is_one_trial_or_there_are_at_least_three() {
    for budget in 1..40 {
        let (_, lengths) = measured(5 * SECOND, MS, budget * SECOND, Unfixed::default());
        assert!(lengths.len() == 1 || lengths.len() >= 3, "{} trials in {budget} s", lengths.len());
    }
}

#[test]
fn trials_without_a_value_end_too() {
    let spec = Spec { pattern: Pattern::Transfer, stop: Stop::TimeNs(SECOND), ..stream(SECOND) };
    let mut header = header(vec![spec], u64::MAX, 1);
    header.stopping.budget_ns = None;
    let mut run = ScheduledRun::new(&header, &Schedule::Single(Unfixed::default()), Methods::default());
    let mut trials = 0;
    for now in 0.. {
        let result = match run.next(now * SECOND) {
            Step::End(_) => break,
            Step::Run(_) => {
                trials += 1;
                let end = EndResult { tallies: vec![EndTally::default()], ..EndResult::default() };
                let (near, far) = (end.clone(), Some(end));
                Completed::Tests(vec![passed(Ok(PassResult { near, far, ..PassResult::default() }))])
            }
            _ => Completed::Done,
        };
        run.completed(result, now * SECOND);
    }
    assert_eq!(trials, header.stopping.max_trials);
}
