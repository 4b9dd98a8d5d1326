//! Merges the tallies of several worker processes of one end.

use std::collections::BTreeMap;

use model::tally::Window;
use model::{DatagramTally, EndTally, Interval, RttTally, SizeCount, Spec};
use text::Text;

use protocol::worker_message::WorkerDone;

/// One end's tallies over all its workers. All their times are by one clock, so the span of an end is from the first byte of
/// any worker to the last byte of any worker.
pub(crate) fn merge(mut parts: Vec<WorkerDone>, spec: &Spec) -> (Vec<EndTally>, Option<Text>, u64) {
    let failure = parts.iter_mut().find_map(|part| part.failure.take());
    let elapsed_ns = parts.iter().map(|part| part.elapsed_ns).max().unwrap_or(0);
    if parts.len() == 1 {
        return (parts.swap_remove(0).tallies, failure, elapsed_ns);
    }
    let legs = parts.iter().map(|part| part.tallies.len()).max().unwrap_or(0);
    let tallies = (0..legs)
        .map(|leg| {
            let mut sum = EndTally::default();
            let mut span = [0; 4];
            let mut series = Series::default();
            let mut firsts = Firsts::default();
            for part in &mut parts {
                if let (Some(tally), Some(times)) = (part.tallies.get_mut(leg), part.spans.get(leg)) {
                    series.add(std::mem::take(&mut tally.intervals), spec.interval_ns);
                    let tally = std::mem::take(tally);
                    firsts.add(&tally, times[2]);
                    add(&mut sum, tally, spec.rate_bps.is_some());
                    widen(&mut span, times);
                }
            }
            sum.sending_ns = span[1].saturating_sub(span[0]);
            sum.receiving_ns = span[3].saturating_sub(span[2]);
            if spec.rate_bps.is_none() {
                sum.after_first = firsts.after(sum.bytes_received, sum.receiving_ns);
            }
            sum.intervals = series.entries();
            sum.flows.sort_by_key(|flow| flow.flow);
            sum
        })
        .collect();
    (tallies, failure, elapsed_ns)
}

fn widen(span: &mut [u64; 4], other: &[u64; 4]) {
    for (first, last) in [(0, 1), (2, 3)] {
        if other[first] > 0 {
            span[first] = if span[first] == 0 { other[first] } else { span[first].min(other[first]) };
        }
        span[last] = span[last].max(other[last]);
    }
}

/// The bytes of the first arrival over all workers.
#[derive(Default)]
struct Firsts {
    earliest: Option<(u64, u64)>,
    unknown: bool,
}

impl Firsts {
    /// A worker whose first arrival was at `first_ns`, 0 for never.
    fn add(&mut self, tally: &EndTally, first_ns: u64) {
        match tally.after_first {
            _ if first_ns == 0 => {}
            Some(after) => {
                let first = (first_ns, tally.bytes_received.saturating_sub(after.bytes));
                self.earliest = Some(self.earliest.map_or(first, |earliest| earliest.min(first)));
            }
            None => self.unknown = true,
        }
    }

    fn after(self, bytes: u64, ns: u64) -> Option<Window> {
        let (_, first) = self.earliest.filter(|_| !self.unknown)?;
        Some(Window { bytes: bytes.saturating_sub(first), ns })
    }
}

fn add(sum: &mut EndTally, part: EndTally, paced: bool) {
    sum.began_ns = [sum.began_ns, part.began_ns].into_iter().flatten().min();
    sum.bytes_sent += part.bytes_sent;
    sum.bytes_received += part.bytes_received;
    sum.calls_sent += part.calls_sent;
    sum.calls_received += part.calls_received;
    sum.blocks_sent += part.blocks_sent;
    sum.transactions += part.transactions;
    sum.bytes_unsent += part.bytes_unsent;
    sum.stalled |= part.stalled;
    sum.cut_short |= part.cut_short;
    let flows = [sum.flows.len() as u64, part.flows.len() as u64];
    SizeCount::add(&mut sum.sizes, &part.sizes);
    sum.flows.extend(part.flows);
    sum.rtt = add_rtt(sum.rtt.take(), part.rtt);
    sum.probe = sum.probe.take().or(part.probe);
    sum.probes.extend(part.probes);
    sum.pacing = match (sum.pacing, part.pacing) {
        (Some(own), Some(other)) => Some(own.worse(other)),
        (own, other) => own.or(other),
    };
    sum.spent = match (sum.spent.take(), part.spent) {
        (Some(own), Some(other)) => Some(own.together(other)),
        (own, other) => own.or(other),
    };
    if let Some(other) = part.datagrams {
        let own = sum.datagrams.get_or_insert_with(DatagramTally::default);
        let jitter_ns = mean([own.jitter_ns, other.jitter_ns], flows);
        *own = DatagramTally { jitter_ns, ..own.together(other) };
    }
    if paced {
        sum.after_first = beside(sum.after_first, part.after_first);
        sum.before_last = beside(sum.before_last, part.before_last);
        sum.measured = beside(sum.measured, part.measured);
    } else if let Some(other) = part.measured {
        let own = sum.measured.get_or_insert_default();
        own.bytes += other.bytes;
        own.ns = own.ns.max(other.ns);
    }
}

/// The mean over all flows, of the means over two groups of them.
fn mean(means: [Option<u64>; 2], flows: [u64; 2]) -> Option<u64> {
    let known = || means.into_iter().zip(flows).filter_map(|(mean, flows)| Some((mean?, flows)));
    let sum = known().map(|(mean, flows)| mean.saturating_mul(flows)).fold(0, u64::saturating_add);
    sum.checked_div(known().map(|(_, flows)| flows).sum())
}

fn beside(own: Option<Window>, other: Option<Window>) -> Option<Window> {
    match (own, other) {
        (Some(own), Some(other)) => Some(own.beside(other)),
        (own, other) => own.or(other),
    }
}

/// The sum of the workers' series. The workers tick at the same nominal times, but each is late by a different time: entries
/// are matched by their nominal tick.
#[derive(Default)]
struct Series(BTreeMap<u64, Interval>);

impl Series {
    fn add(&mut self, entries: Vec<Interval>, interval_ns: u64) {
        for entry in entries {
            // Rounded up, so that the last, short entry belongs to the tick that it did not reach.
            let tick = entry.end_ns.saturating_sub(interval_ns / 2).div_ceil(interval_ns.max(1)).max(1);
            let own = self.0.entry(tick).or_default();
            own.end_ns = own.end_ns.max(entry.end_ns);
            own.bytes_sent += entry.bytes_sent;
            own.bytes_received += entry.bytes_received;
            own.transactions += entry.transactions;
        }
    }

    /// The sums. Each starts at the end of the previous one, so they partition the time.
    fn entries(self) -> Vec<Interval> {
        let mut from = 0;
        let mut entries: Vec<Interval> = Vec::with_capacity(self.0.len());
        for mut entry in self.0.into_values() {
            entry.start_ns = from;
            // A worker that was late by more than a tick extends into the next one.
            entry.end_ns = entry.end_ns.max(from + 1);
            from = entry.end_ns;
            entries.push(entry);
        }
        entries
    }
}

fn add_rtt(own: Option<RttTally>, other: Option<RttTally>) -> Option<RttTally> {
    match (own, other) {
        (Some(own), Some(other)) => {
            let mut histogram = own.histogram?;
            histogram.merge(other.histogram.as_ref()?);
            RttTally::from_histogram(histogram, own.batch.max(other.batch))
        }
        (own, other) => own.or(other),
    }
}

#[cfg(test)]
mod tests {
    use model::{FlowTally, Pattern};

    use super::*;

    #[test]
    fn the_span_is_from_the_first_start_to_the_last_stop() {
        let spec = Spec { interval_ns: 100, ..Spec::new("tcp", Pattern::Stream) };
        let part = |bytes, span: [u64; 4]| WorkerDone {
            tallies: vec![EndTally { bytes_sent: bytes, ..EndTally::default() }],
            spans: vec![span],
            ..WorkerDone::default()
        };
        let (tallies, _, _) =
            merge(vec![part(10, [100, 200, 0, 0]), part(5, [90, 150, 0, 0]), part(0, [0, 0, 0, 0])], &spec);
        assert_eq!((tallies[0].bytes_sent, tallies[0].sending_ns, tallies[0].receiving_ns), (15, 110, 0));
    }

    #[test]
    fn the_first_arrival_is_left_out_once_or_for_each_paced_worker() {
        let part = |first_ns, bytes, after: u64, ns| WorkerDone {
            tallies: vec![EndTally {
                bytes_received: bytes,
                after_first: Some(Window { bytes: after, ns }),
                ..EndTally::default()
            }],
            spans: vec![[0, 0, first_ns, first_ns + ns]],
            ..WorkerDone::default()
        };
        let parts = || vec![part(100, 50, 40, 1_000), part(90, 70, 65, 1_000)];
        let spec = Spec::new("tcp", Pattern::Stream);
        let after = |spec: &Spec| merge(parts(), spec).0[0].after_first;
        assert_eq!(after(&spec), Some(Window { bytes: 115, ns: 1_010 }));
        assert_eq!(after(&Spec { rate_bps: Some(1), ..spec }), Some(Window { bytes: 105, ns: 1_000 }));
    }

    #[test]
    fn jitter_is_the_mean_of_all_flows() {
        let part = |flows: usize, jitter_ns| WorkerDone {
            tallies: vec![EndTally {
                flows: vec![FlowTally::default(); flows],
                datagrams: Some(DatagramTally { jitter_ns, ..DatagramTally::default() }),
                ..EndTally::default()
            }],
            spans: vec![[0; 4]],
            ..WorkerDone::default()
        };
        let merged = |parts| merge(parts, &Spec::new("udp", Pattern::Stream)).0[0].datagrams.unwrap().jitter_ns;
        assert_eq!(merged(vec![part(1, Some(100)), part(3, Some(20))]), Some(40));
        assert_eq!(merged(vec![part(2, None), part(1, Some(20))]), Some(20));
        assert_eq!(merged(vec![part(2, None), part(1, None)]), None);
    }

    #[test]
    fn late_series_of_workers_add_up_to_a_partition() {
        let entry = |start_ns, end_ns, bytes_sent| Interval { start_ns, end_ns, bytes_sent, ..Interval::default() };
        let mut series = Series::default();
        series.add(vec![entry(0, 20, 1), entry(20, 66, 2), entry(66, 119, 4), entry(119, 125, 8)], 40);
        series.add(vec![entry(0, 41, 16), entry(41, 80, 32), entry(80, 138, 64)], 40);
        let entries = series.entries();
        assert_eq!(entries.iter().map(|entry| entry.bytes_sent).sum::<u64>(), 127);
        assert_eq!(entries[0].start_ns, 0);
        assert!(entries.iter().all(|entry| entry.start_ns < entry.end_ns));
        assert!(entries.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns), "{entries:?}");
    }
}
