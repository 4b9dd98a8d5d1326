//! Adds up what several worker processes of one end counted.

use model::{DatagramTally, EndTally, Interval, RttTally};

use crate::proto::message::WorkerDone;

/// One end's tallies over all its workers. Their times are of one clock, so the span of an end reaches from its first worker's
/// first byte to its last one's last.
pub(crate) fn merge(mut parts: Vec<WorkerDone>) -> (Vec<EndTally>, Option<String>, u64) {
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
            for part in &mut parts {
                if let (Some(tally), Some(times)) = (part.tallies.get_mut(leg), part.spans.get(leg)) {
                    add(&mut sum, std::mem::take(tally));
                    widen(&mut span, times);
                }
            }
            sum.sending_ns = span[1].saturating_sub(span[0]);
            sum.receiving_ns = span[3].saturating_sub(span[2]);
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

fn add(sum: &mut EndTally, part: EndTally) {
    sum.bytes_sent += part.bytes_sent;
    sum.bytes_received += part.bytes_received;
    sum.calls_sent += part.calls_sent;
    sum.calls_received += part.calls_received;
    sum.blocks_sent += part.blocks_sent;
    sum.transactions += part.transactions;
    sum.bytes_unsent += part.bytes_unsent;
    sum.stalled |= part.stalled;
    sum.cut_short |= part.cut_short;
    sum.flows.extend(part.flows);
    sum.rtt = add_rtt(sum.rtt.take(), part.rtt);
    if let Some(other) = part.datagrams {
        let own = sum.datagrams.get_or_insert_with(DatagramTally::default);
        own.sent += other.sent;
        own.received += other.received;
        own.duplicates += other.duplicates;
        own.reordered += other.reordered;
        own.socket_drops += other.socket_drops;
        own.replies_lost += other.replies_lost;
    }
    if let Some(other) = part.measured {
        let own = sum.measured.get_or_insert_default();
        own.bytes += other.bytes;
        own.ns = own.ns.max(other.ns);
    }
    // The workers' clocks tick together: entry i of one is entry i of the other, to within the time between two starts.
    for (index, other) in part.intervals.into_iter().enumerate() {
        match sum.intervals.get_mut(index) {
            Some(own) => add_interval(own, &other),
            None => sum.intervals.push(other),
        }
    }
}

fn add_interval(own: &mut Interval, other: &Interval) {
    own.end_ns = own.end_ns.max(other.end_ns);
    own.bytes_sent += other.bytes_sent;
    own.bytes_received += other.bytes_received;
    own.transactions += other.transactions;
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
    use super::*;

    #[test]
    fn an_end_reaches_from_the_first_start_to_the_last_stop() {
        let part = |bytes, span: [u64; 4]| WorkerDone {
            tallies: vec![EndTally { bytes_sent: bytes, ..EndTally::default() }],
            spans: vec![span],
            ..WorkerDone::default()
        };
        let (tallies, _, _) = merge(vec![part(10, [100, 200, 0, 0]), part(5, [90, 150, 0, 0]), part(0, [0, 0, 0, 0])]);
        assert_eq!((tallies[0].bytes_sent, tallies[0].sending_ns, tallies[0].receiving_ns), (15, 110, 0));
    }
}
