//! The far end's tally of an iperf 2 server.

use model::tally::Count;
use model::{DatagramTally, EndTally, FlowTally, Spec};
use peer_wire::iperf2::Report;

/// The far end of streams to the server. It reports nothing, but it closed `ns` after the first byte, so it
/// read everything.
pub(super) fn closed(near: &EndTally, ns: u64) -> EndTally {
    let mut tally = EndTally::unreported();
    let counts = [(Count::BytesReceived, near.bytes_sent), (Count::ReceivingNs, ns), (Count::BytesSent, 0)];
    counts.into_iter().for_each(|(count, value)| tally.report(count, value));
    tally.flows = near.flows.iter().map(|flow| FlowTally { bytes_sent: 0, ..mirrored(flow) }).collect();
    tally
}

/// The far end of streams in both directions: all that this end sent was acknowledged, and all that the server sent
/// was read. It reports nothing.
pub(super) fn both_directions(near: &EndTally, ns: u64) -> EndTally {
    let mut tally = closed(near, ns);
    tally.report(Count::BytesSent, near.bytes_received);
    tally.flows = near.flows.iter().map(mirrored).collect();
    tally
}

/// A flow as the far end has it, if everything arrived.
fn mirrored(flow: &FlowTally) -> FlowTally {
    FlowTally {
        flow: flow.flow,
        direction: flow.direction,
        bytes_sent: flow.bytes_received,
        bytes_received: flow.bytes_sent,
        ..FlowTally::default()
    }
}

/// The far end of streams from the server, read to their ends.
pub(super) fn drained(near: &EndTally) -> EndTally {
    let mut tally = EndTally::unreported();
    [(Count::BytesSent, near.bytes_received), (Count::BytesReceived, 0)]
        .into_iter()
        .for_each(|(count, value)| tally.report(count, value));
    tally.flows = near.flows.iter().map(|flow| FlowTally { bytes_received: 0, ..mirrored(flow) }).collect();
    tally
}

/// The far end of datagrams, as its report has it, less the last one, which is a mark.
pub(super) fn reported(spec: &Spec, report: &Report) -> EndTally {
    let mut tally = EndTally::unreported();
    let bytes = report.bytes.saturating_sub(spec.block);
    let counts = [
        (Count::BytesReceived, bytes),
        (Count::ReceivingNs, report.elapsed_us.saturating_mul(1_000)),
        (Count::BytesSent, 0),
    ];
    counts.into_iter().for_each(|(count, value)| tally.report(count, value));
    tally.datagrams = Some(DatagramTally {
        received: bytes / spec.block,
        reordered: u64::from(report.out_of_order),
        missed: Some(u64::from(report.lost)),
        jitter_ns: Some(report.jitter_us.saturating_mul(1_000)),
        ..DatagramTally::default()
    });
    tally.flows = vec![FlowTally { bytes_received: bytes, datagrams: tally.datagrams, ..FlowTally::default() }];
    tally
}

/// To how many bytes the server has cut each datagram: it reads as many as its own -l says, and counts no others.
pub(super) fn cut_to(spec: &Spec, report: &Report) -> Option<u64> {
    let arrived = u64::from(report.datagrams.saturating_sub(report.lost));
    let size = report.bytes.checked_div(arrived)?;
    (arrived > 1 && size < spec.block && report.bytes.is_multiple_of(arrived)).then_some(size)
}

/// The version in a server's acknowledgement of a header: of `2.1.8.3` the first three parts.
pub(super) fn version(acknowledgement: &[u8]) -> Option<String> {
    let word = |at: usize| Some(u32::from_be_bytes(*acknowledgement.get(at..)?.first_chunk()?));
    let [upper, lower] = [word(12)?, word(16)?];
    (upper > 0).then(|| format!("iperf {}.{}.{}", upper >> 16, upper & 0xffff, lower >> 16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;
    use peer_wire::iperf2::Header;

    #[test]
    fn the_last_datagram_is_no_data() {
        let spec = Spec { block: 1000, ..Spec::new("udp", Pattern::Stream) };
        let report = Report { bytes: 9_000, elapsed_us: 5, lost: 2, out_of_order: 1, datagrams: 11, jitter_us: 3 };
        let far = reported(&spec, &report);
        assert_eq!((far.bytes_received, far.receiving_ns, far.reported(Count::CallsReceived)), (8_000, 5_000, None));
        let datagrams = far.datagrams.unwrap();
        assert_eq!((datagrams.received, datagrams.missed, datagrams.reordered), (8, Some(2), 1));
        assert_eq!(datagrams.jitter_ns, Some(3_000));
    }

    #[test]
    fn a_server_that_cuts_datagrams_is_noticed() {
        let spec = Spec { block: 65_507, ..Spec::new("udp", Pattern::Stream) };
        let report = |bytes, datagrams, lost| Report { bytes, datagrams, lost, ..Report::default() };
        assert_eq!(cut_to(&spec, &report(1_470 * 90, 100, 10)), Some(1_470));
        assert_eq!(cut_to(&spec, &report(65_507 * 90, 100, 10)), None);
        assert_eq!(cut_to(&spec, &report(65_507 * 89 + 1, 100, 10)), None, "one was counted twice");
        assert_eq!(cut_to(&spec, &report(0, 3, 3)), None);
    }

    #[test]
    fn both_directions_are_this_ends_mirrored() {
        let flow = |sent, received| FlowTally { bytes_sent: sent, bytes_received: received, ..FlowTally::default() };
        let near =
            EndTally { bytes_sent: 7, bytes_received: 9, flows: vec![flow(7, 0), flow(0, 9)], ..EndTally::default() };
        let far = both_directions(&near, 5);
        assert_eq!((far.bytes_sent, far.bytes_received, far.receiving_ns), (9, 7, 5));
        assert_eq!((far.flows[0].bytes_received, far.flows[1].bytes_sent), (7, 9));
    }

    #[test]
    fn a_version_is_in_the_acknowledgement() {
        assert_eq!(version(&Header::acknowledgement()).as_deref(), Some("iperf 2.1.8"));
        assert_eq!(version(&[0; 28]), None);
        assert_eq!(version(&[1; 15]), None);
    }
}
