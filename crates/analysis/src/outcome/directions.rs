//! Each direction of a stream in both, as if it were a measurement of its own.

use model::{Cell, DatagramTally, Direction, EndTally, Interval, Outcome, SizeCount, Spec, Stopping, Summary, Trial};

use super::ends::one_ended;
use super::{Context, Headline, ledger, outcome, trial_value, trial_verdicts};

/// Whether a spec has payload in both directions, each with a rate.
fn has_both(spec: &Spec) -> bool {
    spec.direction == Direction::Both && Headline::of(spec) == Headline::Goodput
}

/// Sets the figures of each direction of a cell of `both`; `known` holds for each of them.
pub(super) fn summarize(summary: &mut Summary, cell: &Cell, trials: &[Trial], rule: &Stopping, known: &Context) {
    if !has_both(&cell.spec) || trials.iter().any(|trial| one_ended(&trial.near, &trial.far)) {
        return;
    }
    let of = |direction| {
        let cell = Cell { spec: spec_of(&cell.spec, direction).into(), ..cell.clone() };
        let trials = trials.iter().map(|trial| trial_of(&cell.spec, trial)).collect();
        Some(Box::new(outcome(&cell, trials, rule, known.clone()).summary))
    };
    (summary.outbound, summary.return_trip) = (of(Direction::Send), of(Direction::Reverse));
}

/// The flat figures of one trial of a cell, and of each direction of `both`: what the summary of an outcome would be if it had no other
/// trial, without the estimate and what follows from it.
#[must_use]
pub fn trial_summary(cell: &Cell, trial: &Trial) -> Summary {
    let trials = std::slice::from_ref(trial);
    let mut summary = super::summary::summary(cell, trials, None, None, false);
    summarize(&mut summary, cell, trials, &Stopping::default(), &Context::default());
    summary
}

/// Each direction of an outcome of `both` as an outcome; none of one direction.
pub(crate) fn outcomes(outcome: &Outcome) -> Vec<(Direction, Outcome)> {
    let estimates: Vec<_> = outcome.directions().collect();
    let of = |(direction, summary): (Direction, &Summary)| {
        let spec = spec_of(&outcome.spec, direction);
        let trials = outcome.trials.iter().map(|trial| trial_of(&spec, trial)).collect();
        let estimate = estimates.iter().find(|(of, _)| *of == direction).map(|(_, estimate)| estimate.clone());
        let one = Outcome {
            cell: outcome.cell,
            spec: spec.into(),
            summary: summary.clone(),
            estimate,
            histogram: None,
            trials,
        };
        (direction, one)
    };
    outcome.summary.directions().map(of).collect()
}

fn spec_of(spec: &Spec, direction: Direction) -> Spec {
    Spec { direction, ..spec.clone() }
}

/// What a trial of both directions counted in that of `spec`.
fn trial_of(spec: &Spec, trial: &Trial) -> Trial {
    let is_outbound = spec.direction == Direction::Send;
    let near = end_of(&trial.near, spec.direction, is_outbound);
    let far = end_of(&trial.far, spec.direction, !is_outbound);
    let ledger = ledger(spec, &near, &far);
    // A verdict that does not follow from the counts holds for both directions.
    let whole = Spec { direction: Direction::Both, ..spec.clone() };
    let counted = trial_verdicts(&whole, &trial.near, &trial.far, &trial.ledger);
    let known = trial.verdicts.iter().copied().filter(|verdict| !counted.contains(verdict));
    let verdicts = trial_verdicts(spec, &near, &far, &ledger).into_iter().chain(known).collect();
    let value = trial_value(spec, &near, &far);
    Trial {
        cell: trial.cell,
        pass: trial.pass,
        position: trial.position,
        near: near.into(),
        far: far.into(),
        ledger,
        value,
        verdicts,
    }
}

/// What an end counted as the sender of a direction, or as its receiver. Its CPU time is that of both directions.
fn end_of(end: &EndTally, direction: Direction, sends: bool) -> EndTally {
    let own = EndTally {
        began_ns: end.began_ns,
        flows: end.flows.iter().filter(|flow| flow.direction == direction).cloned().collect(),
        spent: end.spent.clone(),
        stalled: end.stalled,
        cut_short: end.cut_short,
        unreported: end.unreported.clone(),
        ..EndTally::default()
    };
    let intervals = end.intervals.iter();
    let sizes = end.sizes.iter();
    if sends {
        EndTally {
            bytes_sent: end.bytes_sent,
            calls_sent: end.calls_sent,
            blocks_sent: end.blocks_sent,
            sending_ns: end.sending_ns,
            before_last: end.before_last,
            pacing: end.pacing,
            datagrams: end.datagrams.map(|all| DatagramTally { sent: all.sent, ..DatagramTally::default() }),
            sizes: sizes.map(|size| SizeCount { received: 0, ..*size }).collect(),
            bytes_unsent: end.bytes_unsent,
            intervals: intervals.map(|one| Interval { bytes_received: 0, ..*one }).collect(),
            ..own
        }
    } else {
        EndTally {
            bytes_received: end.bytes_received,
            calls_received: end.calls_received,
            receiving_ns: end.receiving_ns,
            after_first: end.after_first,
            measured: end.measured,
            datagrams: end.datagrams.map(|all| DatagramTally { sent: 0, ..all }),
            sizes: sizes.map(|size| SizeCount { sent: 0, ..*size }).collect(),
            intervals: intervals.map(|one| Interval { bytes_sent: 0, ..*one }).collect(),
            ..own
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{FlowTally, Pattern, SocketFacts, TcpSample, TransportName, Trust, Verdict};

    use super::super::testing;
    use super::*;

    /// A second with 30 Mbit/s out and 5 Mbit/s back, less `back_lost` datagrams of 1000 bytes.
    fn both(spec: &Spec, back_lost: u64) -> Trial {
        let flow = |direction, bytes_sent, rtt_ns, retransmits| FlowTally {
            direction,
            bytes_sent,
            socket: SocketFacts { retransmits: Some(retransmits), ..SocketFacts::default() },
            tcp: vec![TcpSample { at_ns: 1, rtt_ns, cwnd: 10, mss: 100, ..TcpSample::default() }],
            ..FlowTally::default()
        };
        let end = |sent: u64, received: u64, lost: u64, flows| EndTally {
            bytes_sent: sent,
            sending_ns: 1_000_000_000,
            calls_sent: 20,
            bytes_received: received - lost * 1_000,
            receiving_ns: 1_000_000_000,
            calls_received: 20,
            datagrams: (spec.transport == TransportName::Udp).then(|| DatagramTally {
                sent: sent / 1_000,
                received: received / 1_000 - lost,
                ..DatagramTally::default()
            }),
            flows,
            ..EndTally::default()
        };
        let (out, back) = (3_750_000, 625_000);
        let near = vec![flow(Direction::Send, out, 20, 1), flow(Direction::Reverse, 0, 0, 0)];
        let far = vec![flow(Direction::Send, 0, 0, 0), flow(Direction::Reverse, back, 40, 300)];
        testing::trial(spec, end(out, back, back_lost, near), end(back, out, 0, far))
    }

    fn made(spec: Spec, trials: Vec<Trial>) -> Outcome {
        outcome(&Cell::new(0, spec), trials, &Stopping::default(), Context::default())
    }

    #[test]
    fn each_direction_has_its_goodput_its_tcp_and_its_trust() {
        let spec = Spec { direction: Direction::Both, ..Spec::new("tcp", Pattern::Stream) };
        let outcome = made(spec.clone(), vec![both(&spec, 0); 6]);
        let of = |summary: &Summary| (summary.goodput_bps, summary.tcp_rtt_ns, summary.retransmits, summary.trust);
        let [out, back] = [&outcome.summary.outbound, &outcome.summary.return_trip].map(|one| one.as_deref().unwrap());
        assert_eq!(of(out), (Some(30e6), Some(20.0), Some(6), Some(Trust::High)));
        assert_eq!(of(back), (Some(5e6), Some(40.0), Some(1_800), Some(Trust::High)));
        assert_eq!((out.bytes_received, back.bytes_sent), (Some(22_500_000), Some(3_750_000)));
        assert_eq!((out.ci95_low, back.ci95_high), (Some(30e6), Some(5e6)));
        assert_eq!(outcome.summary.goodput_bps, Some(35e6), "the sum");
        assert_eq!(outcome.summary.fairness, None, "two directions do not share one path");
        let values: Vec<f64> = outcome.directions().map(|(_, estimate)| estimate.value).collect();
        assert_eq!(values, [30e6, 5e6]);
        assert!(out.outbound.is_none() && back.return_trip.is_none());
    }

    #[test]
    fn a_loss_is_that_of_its_direction() {
        let spec = Spec { direction: Direction::Both, block: 1_000, ..Spec::new("udp", Pattern::Stream) };
        let outcome = made(spec.clone(), vec![both(&spec, 25); 6]);
        let of = |summary: &Summary| (summary.packets_sent, summary.packets_lost, summary.verdicts.clone());
        let each: Vec<_> = outcome.summary.directions().map(|(_, summary)| of(summary)).collect();
        assert_eq!(each[0], (Some(22_500), Some(0), vec![]));
        assert_eq!(each[1], (Some(3_750), Some(150), vec![Verdict::Loss]));
        assert_eq!(outcome.summary.packets_lost, Some(150));
    }

    #[test]
    fn a_verdict_that_no_count_gives_holds_for_both_directions() {
        let spec = Spec { direction: Direction::Both, ..Spec::new("tcp", Pattern::Stream) };
        let mut trial = both(&spec, 0);
        trial.verdicts.push(Verdict::EmulatorLate);
        let mut outcome = made(spec, vec![trial; 6]);
        super::super::add_verdict(&mut outcome, Verdict::SameHost);
        for (_, summary) in outcome.summary.directions() {
            assert_eq!(summary.verdicts, [Verdict::SameHost, Verdict::EmulatorLate].map(|one| one), "{summary:?}");
            assert_eq!(summary.trust, Some(Trust::None));
        }
    }

    #[test]
    fn one_direction_has_no_parts() {
        let one = Spec::new("tcp", Pattern::Stream);
        let outcome = made(one.clone(), vec![testing::stream_trial(&one, 9)]);
        assert_eq!(outcome.summary.directions().count() + outcomes(&outcome).len(), 0);
    }
}
