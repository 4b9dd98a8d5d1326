//! The flat figures of an outcome.

use model::{
    Cell, Count, DatagramTally, Direction, EndTally, Estimate, Histogram, OneWay, RttTally, SizeCount, Spec, Summary,
    TcpSample, Trial, median,
};

use super::Headline;
use super::ends::{receivers, requester};
use super::fairness::{fairness, spread};
use super::ledger::datagrams_lost;
use super::tcp;
use super::trial::{goodput_bps, sender_bps, transactions_per_s};
use crate::stats::{mean, order_interval};

/// Confidence of the percentiles' intervals.
const CONFIDENCE: f64 = 0.95;

/// Fills everything but the count of trials, the verdicts and the trust.
pub(crate) fn summary(
    cell: &Cell,
    trials: &[Trial],
    estimate: Option<&Estimate>,
    histogram: Option<&Histogram>,
    curve: bool,
) -> Summary {
    let spec = &cell.spec;
    let headline = Headline::of(spec);
    let each = |figure: &dyn Fn(&Trial) -> Option<f64>| mean(&trials.iter().filter_map(figure).collect::<Vec<_>>());
    let total = |count: Count| total(trials, count);
    let bulk = headline == Headline::Goodput;
    let lost: Vec<u64> = trials.iter().filter_map(|trial| datagrams_lost(&trial.near, &trial.far)).collect();
    Summary {
        goodput_bps: if bulk { each(&|trial| goodput_bps(spec, &trial.near, &trial.far)) } else { None },
        sender_bps: if bulk { each(&|trial| sender_bps(spec, &trial.near, &trial.far)) } else { None },
        bytes_sent: total(Count::BytesSent),
        bytes_received: total(Count::BytesReceived),
        rtt_p50_ns: quantile(trials, histogram, 0.5, |rtt| Some(rtt.p50_ns)),
        rtt_p99_ns: quantile(trials, histogram, 0.99, |rtt| rtt.p99_ns),
        rtt_p50_interval_ns: interval_of(trials, |rtt| Some(rtt.p50_ns)).filter(|_| !spec.is_point()),
        rtt_p99_interval_ns: interval_of(trials, |rtt| rtt.p99_ns).filter(|_| !spec.is_point()),
        transactions_per_s: if bulk {
            None
        } else {
            each(&|trial| transactions_per_s(spec, requester(&trial.near, &trial.far)))
        },
        packets_per_s: each(&|trial| packets_per_s(spec, trial)),
        packets_lost: (!lost.is_empty()).then(|| lost.iter().sum()),
        packets_sent: datagrams(trials, |tally| tally.sent),
        packets_reordered: datagrams(trials, |tally| tally.reordered),
        packets_duplicated: datagrams(trials, |tally| tally.duplicates),
        sizes: sizes(trials),
        jitter_ns: each(&jitter_ns),
        retransmits: tcp::total(trials, |socket| socket.retransmits),
        bytes_retransmitted: tcp::total(trials, |socket| socket.bytes_retransmitted),
        tcp_rtt_ns: if bulk { tcp::typical(spec, trials, |sample| sample.rtt_ns as f64) } else { None },
        cwnd_bytes: if bulk { tcp::typical(spec, trials, cwnd_bytes) } else { None },
        ci95_low: estimate.and_then(|estimate| estimate.low),
        ci95_high: estimate.and_then(|estimate| estimate.high),
        fairness: if has_shares(spec) { each(&fairness) } else { None },
        shares: if has_shares(spec) { spread(trials) } else { None },
        one_way: OneWay::merged(&trials.iter().filter_map(|trial| trial.near.one_way.as_ref()).collect::<Vec<_>>())
            .map(Box::new),
        calls_sent: total(Count::CallsSent),
        calls_received: total(Count::CallsReceived),
        duration_ns: duration_ns(trials),
        netpipe_bps: estimate.and_then(|estimate| netpipe_bps(spec, headline, estimate.value, curve)),
        ..Summary::default()
    }
}

/// Whether the flows of a spec share one path from their start: not if they start one after the other, nor in both directions.
fn has_shares(spec: &Spec) -> bool {
    !(spec.responsiveness || (spec.is_stream() && spec.direction == Direction::Both))
}

/// The jitter of a trial's datagrams, ns; of two directions the larger.
fn jitter_ns(trial: &Trial) -> Option<f64> {
    let ends = [trial.near.datagrams, trial.far.datagrams].into_iter().flatten();
    ends.filter_map(|tally| tally.jitter_ns).max().map(|ns| ns as f64)
}

fn cwnd_bytes(sample: &TcpSample) -> f64 {
    f64::from(sample.cwnd) * f64::from(sample.mss)
}

/// The merged histogram of all trials; `None` if no trial kept one.
pub(crate) fn merged_histogram(trials: &[Trial]) -> Option<Histogram> {
    let mut kept =
        trials.iter().filter_map(|trial| requester(&trial.near, &trial.far).rtt.as_ref()?.histogram.as_ref());
    let mut merged = kept.next()?.clone();
    kept.for_each(|histogram| merged.merge(histogram));
    Some(merged)
}

/// The interval of a percentile over the trials, ns. The samples of a trial depend on each other, its percentile is one value.
fn interval_of(trials: &[Trial], digest: impl Fn(&RttTally) -> Option<u64>) -> Option<[f64; 2]> {
    let digests = trials.iter().filter_map(|trial| requester(&trial.near, &trial.far).rtt.as_ref());
    let values: Vec<f64> = digests.filter_map(|rtt| digest(rtt).map(|ns| ns as f64)).collect();
    order_interval(&values, CONFIDENCE).map(|interval| [interval.low, interval.high])
}

/// A percentile over all samples, or the median of the trials' digests if no histogram was kept. A percentile above the median
/// needs [`RttTally::P99_SAMPLES`].
fn quantile(
    trials: &[Trial],
    histogram: Option<&Histogram>,
    q: f64,
    digest: impl Fn(&RttTally) -> Option<u64>,
) -> Option<f64> {
    let digests = || trials.iter().filter_map(|trial| requester(&trial.near, &trial.far).rtt.as_ref());
    match histogram {
        Some(all) if q > 0.5 && all.count() < RttTally::P99_SAMPLES => None,
        Some(all) => all.quantile(q).map(|ns| ns as f64),
        None => median(&digests().filter_map(|rtt| digest(rtt).map(|ns| ns as f64)).collect::<Vec<_>>()),
    }
}

/// A count of datagrams over all trials and both ends; `None` for transports without datagrams.
fn datagrams(trials: &[Trial], count: impl Fn(DatagramTally) -> u64) -> Option<u64> {
    let tallies = trials.iter().flat_map(|trial| [trial.near.datagrams, trial.far.datagrams]).flatten();
    tallies.map(count).reduce(u64::saturating_add)
}

/// The datagrams of a mix by size, over all trials and both directions.
fn sizes(trials: &[Trial]) -> Vec<SizeCount> {
    let mut sum = Vec::new();
    trials.iter().flat_map(|trial| [&trial.near.sizes, &trial.far.sizes]).for_each(|one| SizeCount::add(&mut sum, one));
    sum
}

/// Distinct datagrams received per second, summed over the directions.
pub(crate) fn packets_per_s(spec: &Spec, trial: &Trial) -> Option<f64> {
    let ends = match Headline::of(spec) {
        Headline::Goodput => receivers(spec, &trial.near, &trial.far),
        _ => vec![&*trial.near, &*trial.far],
    };
    let rates: Vec<f64> = ends
        .into_iter()
        .filter(|end| end.arrivals().ns > 0)
        .filter_map(|end| {
            // The share of all received datagrams that the rate's window covers.
            let window = end.arrivals();
            let share = if end.bytes_received == 0 { 1.0 } else { window.bytes as f64 / end.bytes_received as f64 };
            Some(end.datagrams?.received as f64 * share * 1e9 / window.ns as f64)
        })
        .collect();
    (!rates.is_empty()).then(|| rates.iter().sum())
}

/// A count over all trials and both ends; `None` if there are trials and no end reported it.
fn total(trials: &[Trial], count: Count) -> Option<u64> {
    let reported: Vec<u64> = ends(trials).filter_map(|end| end.reported(count)).collect();
    (trials.is_empty() || !reported.is_empty()).then(|| reported.into_iter().fold(0, u64::saturating_add))
}

fn ends(trials: &[Trial]) -> impl Iterator<Item = &EndTally> {
    trials.iter().flat_map(|trial| [&*trial.near, &*trial.far])
}

/// The longer of the two ends' times, summed over the trials; `None` if there are trials and no end reported one.
fn duration_ns(trials: &[Trial]) -> Option<u64> {
    let times = [Count::SendingNs, Count::ReceivingNs];
    let reported = ends(trials).any(|end| times.iter().any(|time| end.reported(*time).is_some()));
    let longest =
        |trial: &Trial| [&trial.near, &trial.far].map(|end| end.sending_ns.max(end.receiving_ns)).into_iter().max();
    (trials.is_empty() || reported).then(|| trials.iter().filter_map(longest).fold(0, u64::saturating_add))
}

/// NetPIPE's rate in bit/s: block size over half the RTT; on a curve of streams the goodput.
fn netpipe_bps(spec: &Spec, headline: Headline, value: f64, curve: bool) -> Option<f64> {
    match headline {
        Headline::RoundTrip if value > 0.0 => Some(spec.block as f64 * 8e9 / (value / 2.0)),
        Headline::Goodput if curve => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{pingpong_trial, stream_trial};
    use super::*;
    use model::Pattern;

    #[test]
    fn packets_are_counted_where_they_arrive() {
        let spec = Spec { block: 1000, ..Spec::new("udp", Pattern::Stream) };
        let mut trial = stream_trial(&spec, 80);
        trial.near.datagrams = Some(DatagramTally { sent: 10_010, ..DatagramTally::default() });
        trial.far.datagrams = Some(DatagramTally { received: 10_000, ..DatagramTally::default() });
        let summary = summary(&Cell::new(0, spec), &[trial.clone(), trial], None, None, false);
        assert_eq!((summary.packets_per_s, summary.packets_lost), (Some(10_000.0), Some(20)));
        assert_eq!(summary.calls_received, Some(2000));
        assert_eq!((summary.packets_sent, summary.packets_reordered), (Some(20_020), Some(0)));
    }

    #[test]
    fn percentiles_have_the_range_of_six_trials() {
        let trial = |ns: u64| {
            let rtt = RttTally {
                count: 2_000,
                min_ns: ns,
                p50_ns: ns,
                mean_ns: ns as f64,
                p99_ns: Some(3 * ns),
                max_ns: 4 * ns,
                batch: 1,
                histogram: None,
            };
            Trial {
                near: EndTally { rtt: Some(rtt), ..EndTally::default() }.into(),
                ..stream_trial(&Spec::new("tcp", Pattern::Rr), 1)
            }
        };
        let trials: Vec<Trial> = [50, 53, 51, 90, 52, 49].map(|us| trial(us * 1_000)).into();
        let cell = Cell::new(0, Spec::new("tcp", Pattern::Rr));
        let found = summary(&cell, &trials, None, None, false);
        assert_eq!(found.rtt_p50_interval_ns, Some([49_000.0, 90_000.0]));
        assert_eq!(found.rtt_p99_interval_ns, Some([147_000.0, 270_000.0]));
        assert_eq!(summary(&cell, &trials[..5], None, None, false).rtt_p50_interval_ns, None);
    }

    #[test]
    fn tcp_has_no_packets() {
        let spec = Spec::new("tcp", Pattern::Stream);
        let trials = [stream_trial(&spec, 80)];
        let summary = summary(&Cell::new(0, spec), &trials, None, None, false);
        assert_eq!((summary.packets_per_s, summary.packets_lost, summary.rtt_p50_ns), (None, None, None));
        assert_eq!((summary.packets_sent, summary.packets_duplicated), (None, None));
        assert!(summary.sender_bps.unwrap() > summary.goodput_bps.unwrap());
    }

    #[test]
    fn percentiles_are_of_all_samples() {
        let spec = Spec::new("tcp", Pattern::Pingpong);
        let trials = [pingpong_trial(&spec, 1_000, 990), pingpong_trial(&spec, 9_000, 30)];
        let merged = merged_histogram(&trials).unwrap();
        let summary = summary(&Cell::new(0, spec), &trials, None, Some(&merged), true);
        assert!((summary.rtt_p50_ns.unwrap() - 1_000.0).abs() < 2.0);
        assert!((summary.rtt_p99_ns.unwrap() - 9_000.0).abs() < 10.0);
    }
}
