//! One trial: its value of the headline statistic, and its verdicts.

use model::tally::Window;
use model::{Count, EndTally, Ledger, Spec, Stop, Trial, Verdict};

use super::ends::{receivers, requester, senders};
use super::fairness::starved;
use super::headline::Headline;
use super::ledger::datagrams_lost;

/// Fewest arrivals of a valid rate.
pub(crate) const MIN_ARRIVALS: u64 = 10;
/// Shortest time of a valid rate, ns.
const MIN_NS: u64 = 1_000_000;
/// Fewest timed round trips of a valid median (NetPIPE's own minimum).
const MIN_ROUND_TRIPS: u64 = 3;

/// A trial's value of its pattern's headline statistic, in [`Headline::unit`]; `None` where the trial has none, such as a rate
/// over no time.
///
/// With a warm-up only the part after it counts. A transaction rate excludes the first arrival, because the time starts there;
/// where that is the only one, the time starts with its request.
#[must_use]
pub fn trial_value(spec: &Spec, near: &EndTally, far: &EndTally) -> Option<f64> {
    match Headline::of(spec) {
        Headline::Goodput => goodput_bps(spec, near, far),
        Headline::Transactions => transactions_per_s(spec, requester(near, far)),
        Headline::RoundTrip => requester(near, far).rtt.as_ref().map(|rtt| rtt.p50_ns as f64).filter(|ns| *ns > 0.0),
    }
}

/// Goodput in bit/s: what each receiver counted after its first arrival, over its own time from the first to the last, summed over
/// the directions. `None` if nothing arrived, or bytes arrived in no time; 0 if datagrams were sent and every one is lost.
pub(crate) fn goodput_bps(spec: &Spec, near: &EndTally, far: &EndTally) -> Option<f64> {
    let rate = || sum_of_rates(receivers(spec, near, far).into_iter().map(EndTally::arrivals));
    if nothing_arrived(spec, near, far) { Some(0.0) } else { rate() }
}

/// Whether a whole trial's datagrams were sent and none arrived, in no direction.
fn nothing_arrived(spec: &Spec, near: &EndTally, far: &EndTally) -> bool {
    let sent = senders(spec, near, far).into_iter().filter_map(|end| end.datagrams).any(|tally| tally.sent > 0);
    let arrived = |end: &EndTally| end.reported(Count::BytesReceived) != Some(0) || end.datagrams.is_none();
    let whole = |end: &EndTally| !end.cut_short && !end.stalled;
    sent && [near, far].into_iter().all(whole) && !receivers(spec, near, far).into_iter().any(arrived)
}

/// The completion time of a transfer by the sender's clock, ns: from the start of its end until the receiver had confirmed the last byte,
/// for the flow that took longest. Without TCP's readings, the time from the start of the receiving end to its
/// last arrival. `None` for a pattern without an amount.
#[must_use]
pub fn completion_ns(spec: &Spec, trial: &Trial) -> Option<u64> {
    if !matches!(spec.stop, Stop::Bytes(_) | Stop::Blocks(_)) {
        return None;
    }
    let flows = || senders(spec, &trial.near, &trial.far).into_iter().flat_map(|end| &end.flows);
    let confirmed = flows().map(|flow| Some(flow.tcp.last()?.at_ns));
    match confirmed.collect::<Option<Vec<u64>>>() {
        Some(times) if !times.is_empty() => times.into_iter().max(),
        _ => receivers(spec, &trial.near, &trial.far).into_iter().filter_map(last_arrival_ns).max(),
    }
}

/// The last arrival at an end, ns since it began.
pub(crate) fn last_arrival_ns(end: &EndTally) -> Option<u64> {
    end.flows.iter().filter_map(|flow| flow.receiving_ns).map(|[_, last]| last).max()
}

/// What the senders passed to the transport, over their own time, in bit/s.
pub(crate) fn sender_bps(spec: &Spec, near: &EndTally, far: &EndTally) -> Option<f64> {
    sum_of_rates(senders(spec, near, far).into_iter().map(EndTally::sends))
}

/// Sum of bytes over ns as bit/s; `None` when no bytes at all, or some in no time.
fn sum_of_rates(parts: impl Iterator<Item = Window>) -> Option<f64> {
    let mut sum = None;
    for Window { bytes, ns } in parts.filter(|window| window.bytes > 0) {
        if ns == 0 {
            return None;
        }
        sum = Some(sum.unwrap_or(0.0) + bytes as f64 * 8e9 / ns as f64);
    }
    sum
}

/// Round trips per second at the requesting end; on a path so slow that one alone ended, by the time of that one.
pub(crate) fn transactions_per_s(spec: &Spec, near: &EndTally) -> Option<f64> {
    match near.measured {
        Some(window) => {
            (window.ns > 0).then(|| window.bytes as f64 / spec.reply_bytes() as f64 * 1e9 / window.ns as f64)
        }
        None if near.receiving_ns > 0 && near.transactions > 1 => {
            Some((near.transactions - 1) as f64 * 1e9 / near.receiving_ns as f64)
        }
        // A single one has no time between arrivals: it took from its request on.
        None if near.transactions == 1 => {
            let ns = near.reported(Count::SendingNs).filter(|ns| *ns > 0)?;
            Some(1e9 / ns as f64)
        }
        None => None,
    }
}

/// The verdicts of one trial, in the order of [`Verdict`].
#[must_use]
pub fn trial_verdicts(spec: &Spec, near: &EndTally, far: &EndTally, ledger: &Ledger) -> Vec<Verdict> {
    let ends = [near, far];
    let datagrams = || ends.into_iter().filter_map(|end| end.datagrams);
    let lost = ledger.lost > 0
        || datagrams_lost(near, far).is_some_and(|lost| lost > 0)
        || datagrams().any(|tally| tally.replies_lost > 0);
    let requester = requester(near, far);
    // Data in flight when a trial is cut is missing at the other end: neither loss nor a mismatch.
    let cut = ends.iter().any(|end| end.cut_short);
    [
        (Verdict::Stalled, ends.iter().any(|end| end.stalled)),
        (Verdict::NothingArrived, Headline::of(spec) == Headline::Goodput && nothing_arrived(spec, near, far)),
        (Verdict::ResolutionLimited, !cut && resolution_limited(spec, near, far)),
        (Verdict::ByteCountMismatch, !cut && !ledger.balanced),
        (Verdict::CutShort, cut),
        (Verdict::BatchTimed, requester.rtt.as_ref().is_some_and(|rtt| rtt.batch > 1)),
        (Verdict::SocketDrops, datagrams().any(|tally| tally.socket_drops > 0)),
        (Verdict::Loss, !cut && lost),
        (Verdict::Starved, !cut && starved(spec.stop, (near, far))),
    ]
    .into_iter()
    .filter_map(|(verdict, holds)| holds.then_some(verdict))
    .collect()
}

/// Whether a trial is too short for its clock or has too few arrivals.
fn resolution_limited(spec: &Spec, near: &EndTally, far: &EndTally) -> bool {
    let requester = requester(near, far);
    match Headline::of(spec) {
        Headline::RoundTrip => requester.rtt.as_ref().is_none_or(|rtt| rtt.count < MIN_ROUND_TRIPS || rtt.p50_ns == 0),
        Headline::Transactions => requester.transactions < MIN_ARRIVALS || requester.arrivals().ns < MIN_NS,
        // Another program does not report its number of receive calls.
        Headline::Goodput => receivers(spec, near, far).into_iter().any(|end| {
            let unknown = end.reported(Count::CallsReceived).is_none();
            // A paced block is one arrival, however many calls it takes.
            let blocks = spec.rate_bps.map_or(u64::MAX, |_| end.bytes_received / spec.mean_block().max(1));
            let few = (end.calls_received < MIN_ARRIVALS && !unknown) || blocks < MIN_ARRIVALS;
            few || end.arrivals().ns < MIN_NS
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger;
    use super::*;
    use model::{DatagramTally, Direction, Pattern, RttTally};

    fn verdicts(spec: &Spec, near: &EndTally, far: &EndTally) -> Vec<Verdict> {
        trial_verdicts(spec, near, far, &ledger(spec, near, far))
    }

    fn receiver(bytes: u64, ns: u64, calls: u64) -> EndTally {
        EndTally { bytes_received: bytes, receiving_ns: ns, calls_received: calls, ..EndTally::default() }
    }

    #[test]
    fn goodput_is_the_receivers_count_after_the_warm_up() {
        let spec = Spec::new("tcp", Pattern::Stream);
        let near = EndTally { bytes_sent: 2000, sending_ns: 10, ..EndTally::default() };
        let mut far = receiver(2000, 8_000_000, 50);
        assert_eq!(trial_value(&spec, &near, &far), Some(2e6));
        far.after_first = Some(Window { bytes: 1600, ns: 8_000_000 });
        assert_eq!(trial_value(&spec, &near, &far), Some(1.6e6), "without what came with the first arrival");
        far.measured = Some(Window { bytes: 1500, ns: 4_000_000 });
        assert_eq!(trial_value(&spec, &near, &far), Some(3e6));
        far.measured = Some(Window { bytes: 1500, ns: 0 });
        assert_eq!(trial_value(&spec, &near, &far), None);
    }

    #[test]
    fn a_transfer_ends_when_the_receiver_has_confirmed_its_last_byte() {
        let spec = Spec { stop: Stop::Bytes(2_000), ..Spec::new("tcp", Pattern::Transfer) };
        let flow = |receiving_ns| model::FlowTally { receiving_ns, ..model::FlowTally::default() };
        let far = EndTally { flows: vec![flow(Some([40, 70])), flow(Some([10, 90]))], ..EndTally::default() };
        let at = |at_ns| model::TcpSample { at_ns, ..model::TcpSample::default() };
        let sent = |times: &[u64]| model::FlowTally {
            tcp: times.iter().copied().map(at).collect(),
            ..model::FlowTally::default()
        };
        let of = |flows: Vec<model::FlowTally>, spec: &Spec| {
            let near = EndTally { flows, ..EndTally::default() };
            let (ledger, verdicts) = (Ledger::default(), Vec::new());
            let trial = Trial {
                cell: 0,
                pass: 0,
                position: 0,
                near: near.into(),
                far: far.clone().into(),
                ledger,
                value: None,
                verdicts,
            };
            completion_ns(spec, &trial)
        };
        assert_eq!(of(vec![sent(&[5, 200]), sent(&[5, 150])], &spec), Some(200), "by the sender's clock");
        assert_eq!(of(vec![flow(None), flow(None)], &spec), Some(90), "without TCP by the receiver's");
        assert_eq!(of(vec![sent(&[5, 200])], &Spec::new("tcp", Pattern::Stream)), None);
    }

    #[test]
    fn reverse_counts_at_the_near_end() {
        let spec = Spec { direction: Direction::Reverse, ..Spec::new("tcp", Pattern::Transfer) };
        let far = EndTally { bytes_sent: 1000, ..EndTally::default() };
        assert_eq!(trial_value(&spec, &receiver(1000, 1_000_000, 10), &far), Some(8e6));
    }

    #[test]
    fn one_ended_copies_balance_and_have_a_rate() {
        let spec = Spec::new("memcpy", Pattern::Stream);
        let near = EndTally { bytes_sent: 1_000_000, sending_ns: 2_000_000, ..receiver(1_000_000, 2_000_000, 100) };
        assert_eq!(trial_value(&spec, &near, &EndTally::default()), Some(4e9));
        assert_eq!(sender_bps(&spec, &near, &EndTally::default()), Some(4e9));
        assert_eq!(verdicts(&spec, &near, &EndTally::default()), []);
    }

    #[test]
    fn a_stream_that_never_arrived_has_no_value() {
        let spec = Spec::new("tcp", Pattern::Stream);
        let near = EndTally { bytes_sent: 1000, ..EndTally::default() };
        let far = EndTally { stalled: true, ..EndTally::default() };
        assert_eq!(trial_value(&spec, &near, &far), None);
        let found = verdicts(&spec, &near, &far);
        assert_eq!(found, [Verdict::Stalled, Verdict::ResolutionLimited, Verdict::ByteCountMismatch]);
    }

    #[test]
    fn a_cut_trial_has_no_other_verdict() {
        let spec = Spec { block: 100, ..Spec::new("udp", Pattern::Stream) };
        let near = EndTally {
            bytes_sent: 10_000,
            datagrams: Some(DatagramTally { sent: 100, ..DatagramTally::default() }),
            ..EndTally::default()
        };
        let far = EndTally {
            datagrams: Some(DatagramTally { received: 5, ..DatagramTally::default() }),
            ..receiver(700, 5_000, 5)
        };
        let found = verdicts(&spec, &near, &far);
        assert_eq!(found, [Verdict::ResolutionLimited, Verdict::ByteCountMismatch, Verdict::Loss]);
        let cut = EndTally { cut_short: true, ..far };
        assert_eq!(verdicts(&spec, &near, &cut), [Verdict::CutShort]);
        assert_eq!(verdicts(&spec, &EndTally { cut_short: true, ..near }, &cut), [Verdict::CutShort]);
    }

    #[test]
    fn short_trials_are_resolution_limited() {
        let spec = Spec::new("tcp", Pattern::Transfer);
        let near = EndTally { bytes_sent: 1000, ..EndTally::default() };
        for (ns, calls, limited) in
            [(2_000_000, 20, false), (2_000_000, 9, true), (999_999, 20, true), (0, 20, true), (1_000_000, 10, false)]
        {
            let found = verdicts(&spec, &near, &receiver(1000, ns, calls));
            assert_eq!(found.contains(&Verdict::ResolutionLimited), limited, "{ns} ns, {calls} calls");
        }
    }

    #[test]
    fn few_paced_blocks_are_resolution_limited_however_many_reads_they_took() {
        let spec = Spec { block: 1 << 20, rate_bps: Some(10_000_000), ..Spec::new("tcp", Pattern::Stream) };
        let near = EndTally { bytes_sent: 3 << 20, ..EndTally::default() };
        let far = receiver(3 << 20, 1_700_000_000, 200);
        assert!(verdicts(&spec, &near, &far).contains(&Verdict::ResolutionLimited));
        let near = EndTally { bytes_sent: 30 << 20, ..near };
        assert_eq!(verdicts(&spec, &near, &receiver(30 << 20, 17_000_000_000, 200)), []);
    }

    #[test]
    fn transaction_rates_do_not_count_the_first_arrival() {
        let spec = Spec { block: 1, ..Spec::new("tcp", Pattern::Rr) };
        let mut near = EndTally { transactions: 101, receiving_ns: 1_000_000_000, ..EndTally::default() };
        assert_eq!(trial_value(&spec, &near, &EndTally::default()), Some(100.0));
        near.measured = Some(Window { bytes: 50, ns: 500_000_000 });
        assert_eq!(trial_value(&spec, &near, &EndTally::default()), Some(100.0));
        near = EndTally { transactions: 1, ..EndTally::default() };
        assert_eq!(trial_value(&spec, &near, &EndTally::default()), None);
    }

    #[test]
    fn a_single_transaction_has_the_rate_of_its_own_time() {
        // The only exchange of a trial of 200 ms, whose request was lost and sent again.
        let spec = Spec { block: 1, ..Spec::new("tcp", Pattern::Rr) };
        let near = EndTally { transactions: 1, sending_ns: 250_000_000, receiving_ns: 3_446, ..EndTally::default() };
        assert_eq!(trial_value(&spec, &near, &EndTally::default()), Some(4.0));
        assert_eq!(verdicts(&spec, &near, &EndTally::default()), [Verdict::ResolutionLimited]);
        let unknown = EndTally { unreported: vec![Count::SendingNs], ..near };
        assert_eq!(trial_value(&spec, &unknown, &EndTally::default()), None);
    }

    #[test]
    fn datagram_losses_have_verdicts() {
        let spec = Spec { block: 100, ..Spec::new("udp", Pattern::Stream) };
        let near = EndTally {
            bytes_sent: 10_000,
            datagrams: Some(DatagramTally { sent: 100, ..DatagramTally::default() }),
            ..EndTally::default()
        };
        let far = EndTally {
            datagrams: Some(DatagramTally { received: 90, socket_drops: 10, ..DatagramTally::default() }),
            ..receiver(9_000, 5_000_000, 90)
        };
        assert_eq!(verdicts(&spec, &near, &far), [Verdict::SocketDrops, Verdict::Loss]);
    }

    #[test]
    fn datagrams_that_are_all_lost_have_a_goodput_of_zero() {
        let spec = Spec { block: 100, ..Spec::new("udp", Pattern::Stream) };
        let datagrams = |sent, received| Some(DatagramTally { sent, received, ..DatagramTally::default() });
        let near = EndTally { bytes_sent: 10_000, datagrams: datagrams(100, 0), ..EndTally::default() };
        let far = EndTally { datagrams: datagrams(0, 0), ..EndTally::default() };
        assert_eq!(trial_value(&spec, &near, &far), Some(0.0));
        let found = verdicts(&spec, &near, &far);
        assert!(found.contains(&Verdict::NothingArrived) && found.contains(&Verdict::Loss), "{found:?}");
        // One arrival has no rate, and is not nothing.
        let one = EndTally { bytes_received: 100, datagrams: datagrams(0, 1), ..EndTally::default() };
        assert_eq!(trial_value(&spec, &near, &one), None);
        assert!(!verdicts(&spec, &near, &one).contains(&Verdict::NothingArrived));
        // What was cut short, or sent nothing, says nothing.
        let cut = EndTally { cut_short: true, ..far.clone() };
        assert_eq!(trial_value(&spec, &near, &cut), None);
        let idle = EndTally { datagrams: datagrams(0, 0), ..EndTally::default() };
        assert_eq!(trial_value(&spec, &idle, &far), None);
        // The other direction's datagrams are not these.
        let reverse = Spec { direction: Direction::Reverse, ..spec.clone() };
        assert_eq!(trial_value(&reverse, &far, &near), Some(0.0));
        let both = Spec { direction: Direction::Both, ..spec };
        let busy = receiver(1_000, 1_000_000, 10);
        let busy = EndTally { datagrams: datagrams(100, 10), bytes_sent: 10_000, ..busy };
        assert_eq!(trial_value(&both, &busy, &EndTally { bytes_sent: 1_000, ..far }), Some(8e6));
    }

    #[test]
    fn batch_timing_has_a_verdict() {
        let spec = Spec::new("shm", Pattern::Pingpong);
        let rtt = RttTally {
            count: 1000,
            min_ns: 80,
            p50_ns: 90,
            mean_ns: 91.0,
            p99_ns: Some(120),
            max_ns: 300,
            batch: 16,
            histogram: None,
        };
        let near = EndTally { rtt: Some(rtt), ..EndTally::default() };
        assert_eq!(trial_value(&spec, &near, &EndTally::default()), Some(90.0));
        assert_eq!(verdicts(&spec, &near, &EndTally::default()), [Verdict::BatchTimed]);
    }
}
