//! What flows that were measured at the same time got in one round.

use model::{Direction, Spec, Stop, TrafficKind, Trial};

use super::together::{Together, together};
use crate::outcome::{completion_ns, last_arrival_ns, shares};

/// The values of one round, in bit/s and ns.
pub(super) struct Round {
    /// The goodput of each group.
    pub(super) goodput: Vec<f64>,
    /// The goodput of all groups together.
    pub(super) total: f64,
    /// The most that `total` could have been, had all begun at the same time.
    pub(super) total_at_most: f64,
    /// From the start of the first one to that of the last one, where that is known.
    pub(super) apart_ns: Option<u64>,
    /// The goodput of each flow of each group, where that is known.
    pub(super) flows: Option<Vec<Vec<f64>>>,
    /// The part of the trial in which all groups were active, if it is not the whole trial of each.
    pub(super) window_ns: Option<[u64; 2]>,
}

/// The values of a round, over the time in which all groups were active; `None` if there is none, or nothing arrived.
pub(super) fn of_round(specs: &[&Spec], trials: &[&Trial], traffic: Option<TrafficKind>) -> Option<Round> {
    if let Some(kind) = traffic
        && specs.iter().all(|spec| !matches!(spec.stop, Stop::TimeNs(_)))
    {
        return of_transfers(kind, specs, trials).filter(has_arrivals);
    }
    let found = together(specs, trials, traffic).filter(|found| found.is_common || traffic.is_some());
    let round = if same_time(specs) { of_same_time(specs, trials, traffic, found) } else { of_window(&found?) };
    round.filter(has_arrivals)
}

/// Whether all are timed, from the same time on and for the same time.
fn same_time(specs: &[&Spec]) -> bool {
    let time = |spec: &Spec| match spec.stop {
        Stop::TimeNs(ns) => Some((spec.starts_after_ns(), spec.warmup_ns, ns)),
        _ => None,
    };
    specs.iter().all(|spec| time(spec).is_some() && time(spec) == time(specs[0]))
}

/// The values of tests of the same time: each has its own, and all together that of one window.
fn of_same_time(
    specs: &[&Spec],
    trials: &[&Trial],
    traffic: Option<TrafficKind>,
    found: Option<Together>,
) -> Option<Round> {
    // When many hosts send at the same time, one may get nothing through.
    let value =
        |trial: &&Trial| trial.value.or_else(|| (traffic.is_some() && trial.ledger.received == 0).then_some(0.0));
    let goodput: Vec<f64> = trials.iter().map(value).collect::<Option<_>>()?;
    let flows = trials.iter().zip(&goodput).map(|(trial, goodput)| {
        let shares = shares(trial);
        let sum: f64 = shares.iter().sum();
        shares.into_iter().map(|share| if sum > 0.0 { share / sum * goodput } else { 0.0 }).collect()
    });
    let flows = Some(flows.collect());
    let sum = goodput.iter().sum();
    // One alone has its own window. Groups are between two hosts, where each has the time of its spec.
    let found = found.filter(|_| specs.len() > 1 && traffic.is_some());
    let total = found.as_ref().map_or(sum, Together::bps);
    let total_at_most = if found.as_ref().is_none_or(|found| found.is_common) { total } else { total.max(sum) };
    let apart_ns = found.and_then(|found| found.apart_ns);
    Some(Round { goodput, total, total_at_most, apart_ns, flows, window_ns: None })
}

/// The values of tests that were active at different times: of the time that they have in common.
fn of_window(found: &Together) -> Option<Round> {
    let goodput: Vec<f64> = found.bytes.iter().map(|bytes| found.rate(*bytes)).collect();
    let total = found.bps();
    let window_ns = Some(found.window_ns);
    Some(Round { goodput, total, total_at_most: total, apart_ns: None, flows: None, window_ns })
}

/// The values of a round of transfers: each has the time that it took. All together have the time from the start of the first one until
/// the last one had ended, where one clock tells it; else the longest time of one. `None` if one has no completion time.
fn of_transfers(kind: TrafficKind, specs: &[&Spec], trials: &[&Trial]) -> Option<Round> {
    let flows: Vec<(&Spec, &Trial)> = specs.iter().copied().zip(trials.iter().copied()).collect();
    let times: Vec<u64> = flows.iter().map(|(spec, trial)| completion_ns(spec, trial)).collect::<Option<_>>()?;
    let bits: Vec<f64> = flows.iter().map(|(_, trial)| trial.ledger.received as f64 * 8e9).collect();
    let longest = times.iter().copied().max().filter(|ns| *ns > 0)?;
    let span = span(kind, &flows, &times);
    let (all_ns, apart_ns) = span.map_or((longest, None), |[all, apart]| (all, Some(apart)));
    let goodput: Vec<f64> = bits.iter().zip(&times).map(|(bits, ns)| bits / (*ns).max(1) as f64).collect();
    let over = |ns: u64| bits.iter().sum::<f64>() / ns.max(1) as f64;
    let total_at_most = over(all_ns.saturating_sub(apart_ns.unwrap_or(0)).max(longest));
    let flows = Some(goodput.iter().map(|goodput| vec![*goodput]).collect());
    Some(Round { goodput, total: over(all_ns), total_at_most, apart_ns, flows, window_ns: None })
}

/// From the start of the first transfer until the last one had ended, and until the last one began, ns, by the clock of the host at one
/// end of all flows. `None` without such a host, or where its ends do not tell when they began.
///
/// `times` has the completion time of each. At a receiving host a transfer ends with its last arrival; it began its completion time
/// before that, but for the way of the last acknowledgement.
fn span(kind: TrafficKind, flows: &[(&Spec, &Trial)], times: &[u64]) -> Option<[u64; 2]> {
    let of_flow = |((spec, trial), time): (&(&Spec, &Trial), &u64)| {
        let hub = match kind {
            TrafficKind::Incast => &trial.far,
            TrafficKind::FanOut => &trial.near,
            TrafficKind::Ring | TrafficKind::Bisection | TrafficKind::Permutation => return None,
        };
        let after = match (kind, spec.direction) {
            (_, Direction::Both) => return None,
            (TrafficKind::Incast, Direction::Send) | (TrafficKind::FanOut, Direction::Reverse) => last_arrival_ns(hub)?,
            _ => *time,
        };
        let ended = i128::from(hub.began_ns?) + i128::from(after);
        Some((ended - i128::from(*time), ended))
    };
    let (starts, ends): (Vec<i128>, Vec<i128>) =
        flows.iter().zip(times).map(of_flow).collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let first = starts.iter().min()?;
    let until = |last: &i128| u64::try_from(last - first).ok();
    Some([until(ends.iter().max()?)?, until(starts.iter().max()?)?])
}

fn has_arrivals(round: &Round) -> bool {
    round.goodput.iter().sum::<f64>() > 0.0
}

#[cfg(test)]
mod tests {
    use model::{EndTally, FlowTally, Ledger, Pattern, Stop};

    use super::*;

    /// A transfer of 1 MB whose sender and receiver began at these times of their hosts' clocks, ms, and which took so long, ms.
    struct Took {
        sender_began: u64,
        receiver_began: u64,
        arrivals_until: u64,
        confirmed_after: u64,
    }

    const MS: u64 = 1_000_000;

    fn trial(took: &Took) -> Trial {
        let confirmed = model::TcpSample { at_ns: took.confirmed_after * MS, ..Default::default() };
        let sent = FlowTally { tcp: vec![confirmed], ..FlowTally::default() };
        let arrived = FlowTally { receiving_ns: Some([0, took.arrivals_until * MS]), ..FlowTally::default() };
        let end = |began: u64, flow| EndTally { began_ns: Some(began * MS), flows: vec![flow], ..EndTally::default() };
        Trial {
            cell: 0,
            pass: 0,
            position: 0,
            near: end(took.sender_began, sent).into(),
            far: end(took.receiver_began, arrived).into(),
            ledger: Ledger { received: 1_000_000, ..Ledger::default() },
            value: None,
            verdicts: Vec::new(),
        }
    }

    fn round(kind: TrafficKind, took: &[Took]) -> Round {
        let spec = Spec { stop: Stop::Bytes(1_000_000), ..Spec::new("tcp", Pattern::Transfer) };
        let trials: Vec<Trial> = took.iter().map(trial).collect();
        let specs = vec![&spec; trials.len()];
        of_transfers(kind, &specs, &trials.iter().collect::<Vec<_>>()).unwrap()
    }

    /// The time of so many megabytes at a goodput, ms.
    fn ms(megabytes: usize, bps: f64) -> f64 {
        (megabytes as f64 * 8e9 / bps * 1e3).round() / 1e3
    }

    /// The time that all transfers together have, ms, and the completion times of each, ms.
    fn all(kind: TrafficKind, took: &[Took]) -> (f64, Vec<f64>) {
        let round = round(kind, took);
        (ms(took.len(), round.total), round.goodput.iter().map(|goodput| ms(1, *goodput)).collect())
    }

    /// Each takes 80 ms; the clocks of the senders are not that of the receiver, where the second flow is 20 ms later than the first.
    const LATER: [Took; 2] = [
        Took { sender_began: 7, receiver_began: 1_000, arrivals_until: 79, confirmed_after: 80 },
        Took { sender_began: 9_000, receiver_began: 1_020, arrivals_until: 79, confirmed_after: 80 },
    ];

    #[test]
    fn an_incast_lasts_from_the_first_start_to_the_last_end_by_the_receivers_clock() {
        assert_eq!(all(TrafficKind::Incast, &LATER), (100.0, vec![80.0, 80.0]));
        assert_eq!(all(TrafficKind::Incast, &LATER[..1]), (80.0, vec![80.0]), "one has its completion time");
        let round = round(TrafficKind::Incast, &LATER);
        assert_eq!((round.apart_ns, ms(2, round.total_at_most)), (Some(20 * MS), 80.0));
    }

    #[test]
    fn a_fan_out_lasts_from_the_first_start_to_the_last_end_by_the_senders_clock() {
        let [first, mut second] = LATER;
        second.sender_began = 22;
        assert_eq!(all(TrafficKind::FanOut, &[first, second]).0, 95.0);
    }

    #[test]
    fn hosts_without_a_common_clock_have_the_longest_time() {
        let [first, mut second] = LATER;
        second.confirmed_after = 90;
        assert_eq!(all(TrafficKind::Ring, &[first, second]), (90.0, vec![80.0, 90.0]));
        assert_eq!(round(TrafficKind::Ring, &LATER).apart_ns, None);
    }
}
