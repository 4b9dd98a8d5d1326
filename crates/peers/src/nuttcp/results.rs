//! Translates between an end's tally and nuttcp's report.

use model::tally::Count;
use model::{DatagramTally, EndTally, FlowTally, Role, Spec, Spent, TransportName};
use peer_wire::nuttcp::Report;

use crate::plain::sends;

/// Half of the last reported digit of a megabyte, in bytes.
const HALF_A_DIGIT: f64 = 0.000_05 * 1_048_576.0;

/// The report of our server on its part, which took `ns`.
pub(super) fn ours(spec: &Spec, tally: &EndTally, ns: u64) -> Report {
    let transmitted = sends(spec, Role::Passive);
    let (bytes, calls) = match transmitted {
        true => (tally.bytes_sent, tally.calls_sent),
        false => (tally.bytes_received, tally.calls_received),
    };
    let real_s = ns.max(1) as f64 / 1e9;
    let retransmits = tally.flows.iter().filter_map(|flow| flow.socket.retransmits).reduce(|sum, more| sum + more);
    let spent = tally.spent.as_ref();
    let threads = spent.and_then(|spent| spent.threads.as_ref());
    Report {
        transmitted,
        bytes: bytes as f64,
        real_s,
        bps: bytes as f64 * 8.0 / real_s,
        cpu_s: spent.map(|spent| spent.process_ns as f64 / 1e9),
        system_s: spent.zip(threads).map(|(spent, threads)| {
            let kernels = threads.system_ns as f64 / threads.cpu_ns.max(1) as f64;
            kernels.min(1.0) * spent.process_ns as f64 / 1e9
        }),
        calls: Some(calls),
        retransmits: retransmits.filter(|_| transmitted && spec.transport != TransportName::Udp),
        windows: None,
    }
}

/// The server's report as the far end's tally, `near` is this end's. Unreported counts are absent.
pub(super) fn far(spec: &Spec, near: &EndTally, reported: &Report) -> EndTally {
    let (udp, sending) = (spec.transport == TransportName::Udp, sends(spec, Role::Passive));
    let bytes = whole(spec, reported.bytes, if sending { near.bytes_received } else { near.bytes_sent });
    let ns = (reported.real_s * 1e9) as u64;
    let mut tally = EndTally::unreported();
    let mut flow = FlowTally::default();
    let [count, other, calls, time] = match sending {
        true => [Count::BytesSent, Count::BytesReceived, Count::CallsSent, Count::SendingNs],
        false => [Count::BytesReceived, Count::BytesSent, Count::CallsReceived, Count::ReceivingNs],
    };
    tally.report(count, bytes);
    tally.report(other, 0);
    tally.report(time, ns);
    if let Some(made) = reported.calls {
        tally.report(calls, made);
    }
    if udp {
        let moved = bytes / spec.block;
        let missed = (near.bytes_sent / spec.block).saturating_sub(moved);
        tally.datagrams = Some(match sending {
            true => DatagramTally { sent: moved, ..DatagramTally::default() },
            false => DatagramTally { received: moved, missed: Some(missed), ..DatagramTally::default() },
        });
    }
    // It reports the sum of its connections.
    if spec.flows == 1 {
        flow.socket.retransmits = reported.retransmits;
        (flow.bytes_sent, flow.bytes_received) = (tally.bytes_sent, tally.bytes_received);
        tally.flows = vec![FlowTally { direction: spec.direction, datagrams: tally.datagrams, ..flow }];
    }
    tally.spent = reported.cpu_s.map(|seconds| Spent { process_ns: (seconds * 1e9) as u64, ..Spent::default() });
    tally
}

/// Bytes of a report, which has megabytes with four decimals: this end's count if it rounds to the same, else
/// the nearest number of whole datagrams, or the reported value.
fn whole(spec: &Spec, reported: f64, moved: u64) -> u64 {
    if (reported - moved as f64).abs() <= HALF_A_DIGIT {
        return moved;
    }
    match spec.transport == TransportName::Udp {
        true => (reported / spec.block as f64).round() as u64 * spec.block,
        false => reported.round() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Direction, Pattern};

    fn read(text: &str) -> Report {
        let mut report = Report::default();
        text.lines().for_each(|line| report.read(line));
        report
    }

    #[test]
    fn four_digits_are_enough_for_the_exact_count() {
        let spec = Spec { block: 1000, ..Spec::new("tcp", Pattern::Stream) };
        for bytes in [1_u64, 999, 1_000_000, 123_456_789, 10_000_000_001] {
            let counted = EndTally { bytes_received: bytes, calls_received: 7, ..EndTally::default() };
            let reported = read(&ours(&spec, &counted, 3_000_000_000).to_text());
            let near = EndTally { bytes_sent: bytes, ..EndTally::default() };
            let far = far(&spec, &near, &reported);
            assert_eq!((far.bytes_received, far.reported(Count::CallsReceived)), (bytes, Some(7)));
            assert_eq!(far.reported(Count::Transactions), None);
        }
        let near = EndTally { bytes_sent: 1_000_000, ..EndTally::default() };
        let less = far(&spec, &near, &Report { bytes: 900_000.0, real_s: 1.0, ..Report::default() });
        assert_eq!(less.bytes_received, 900_000);
    }

    #[test]
    fn datagrams_are_whole_and_those_that_did_not_arrive_are_missed() {
        let spec = Spec { block: 1000, ..Spec::new("udp", Pattern::Stream) };
        let near = EndTally { bytes_sent: 100_000, ..EndTally::default() };
        let far = far(&spec, &near, &Report { bytes: 93_037.0, real_s: 1.0, ..Report::default() });
        assert_eq!(far.bytes_received, 93_000);
        assert_eq!(far.datagrams.map(|datagrams| (datagrams.received, datagrams.missed)), Some((93, Some(7))));
    }

    #[test]
    fn retransmissions_are_the_transmitters() {
        let spec = Spec { direction: Direction::Reverse, ..Spec::new("tcp", Pattern::Stream) };
        let mut flow = FlowTally::default();
        flow.socket.retransmits = Some(4);
        let counted = EndTally { bytes_sent: 5_000_000, flows: vec![flow], ..EndTally::default() };
        let reported = read(&ours(&spec, &counted, 1_000_000_000).to_text());
        let far = far(&spec, &EndTally { bytes_received: 5_000_000, ..EndTally::default() }, &reported);
        assert_eq!((far.bytes_sent, far.flows[0].socket.retransmits), (5_000_000, Some(4)));
    }
}
