//! Translates between an end's tally and nttcp's statistics.

use model::tally::Count;
use model::{DatagramTally, EndTally, FlowTally, Role, Spec, Spent, TransportName};
use peer_wire::nttcp::Statistics;

use super::MARK_CALLS;
use crate::plain::sends;

/// The statistics of this end's transfer, which took `ns`.
pub(super) fn ours(spec: &Spec, tally: &EndTally, role: Role, ns: u64) -> Statistics {
    let (bytes, calls, marks) = match sends(spec, role) {
        true => (tally.bytes_sent, tally.calls_sent, MARK_CALLS[0]),
        false => (tally.bytes_received, tally.calls_received, MARK_CALLS[1]),
    };
    Statistics {
        bytes,
        buffer_bytes: spec.block,
        buffers: bytes / spec.block,
        calls: if spec.transport == TransportName::Udp { calls + marks } else { calls },
        real_s: ns as f64 / 1e9,
        cpu_s: tally.spent.as_ref().map_or(0.0, |spent| spent.process_ns as f64 / 1e9),
    }
}

/// The remote side's statistics as the far end's tally, `near` is this end's. Unreported counts are absent.
pub(super) fn far(spec: &Spec, near: &EndTally, reported: &Statistics) -> EndTally {
    let (udp, sending) = (spec.transport == TransportName::Udp, sends(spec, Role::Passive));
    let ns = (reported.real_s * 1e9) as u64;
    let marks = if udp { MARK_CALLS[usize::from(!sending)] } else { 0 };
    let calls = reported.calls.saturating_sub(marks);
    let mut tally = EndTally::unreported();
    let mut flow = FlowTally { direction: spec.direction, ..FlowTally::default() };
    let counts = match sending {
        true => {
            flow.bytes_sent = reported.bytes;
            tally.report(Count::BlocksSent, reported.bytes / spec.block);
            tally.report(Count::BytesReceived, 0);
            [(Count::BytesSent, reported.bytes), (Count::CallsSent, calls), (Count::SendingNs, ns)]
        }
        false => {
            flow.bytes_received = reported.bytes;
            tally.report(Count::BytesSent, 0);
            [(Count::BytesReceived, reported.bytes), (Count::CallsReceived, calls), (Count::ReceivingNs, ns)]
        }
    };
    counts.into_iter().for_each(|(count, value)| tally.report(count, value));
    if udp {
        let moved = reported.bytes / spec.block;
        let missed = (near.bytes_sent / spec.block).saturating_sub(moved);
        tally.datagrams = Some(match sending {
            true => DatagramTally { sent: moved, ..DatagramTally::default() },
            false => DatagramTally { received: moved, missed: Some(missed), ..DatagramTally::default() },
        });
    }
    tally.flows = vec![FlowTally { datagrams: tally.datagrams, ..flow }];
    tally.spent = Some(Spent { process_ns: (reported.cpu_s * 1e9) as u64, ..Spent::default() });
    tally
}

/// The remote side's version from a verbose line, such as `nttcp-1: nttcp, version 1.47`.
pub(super) fn version(line: &str) -> Option<String> {
    let said = line.strip_prefix("nttcp-")?.split_once(": ")?.1;
    let own = || Some(format!("thru {}", said.strip_prefix("thru ")?.split_once(',')?.0));
    said.strip_prefix("nttcp, version ").map(|number| format!("nttcp {}", number.trim())).or_else(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Direction, Pattern};

    #[test]
    fn what_is_reported_is_what_was_counted() {
        for (direction, udp) in [(Direction::Send, false), (Direction::Reverse, true)] {
            let spec = Spec { direction, block: 1000, ..Spec::new(if udp { "udp" } else { "tcp" }, Pattern::Transfer) };
            let mut counted =
                EndTally { spent: Some(Spent { process_ns: 7_000_000, ..Spent::default() }), ..EndTally::default() };
            match direction {
                Direction::Send => (counted.bytes_received, counted.calls_received) = (50_000, 60),
                _ => (counted.bytes_sent, counted.calls_sent) = (50_000, 60),
            }
            let reported = far(&spec, &EndTally::default(), &ours(&spec, &counted, Role::Passive, 2_000_000_000));
            assert_eq!((reported.bytes_received, reported.bytes_sent), (counted.bytes_received, counted.bytes_sent));
            assert_eq!((reported.calls_received, reported.calls_sent), (counted.calls_received, counted.calls_sent));
            assert_eq!(reported.receiving_ns.max(reported.sending_ns), 2_000_000_000);
            assert_eq!(reported.spent.as_ref().map(|spent| spent.process_ns), Some(7_000_000));
            assert_eq!(reported.datagrams.map(|datagrams| datagrams.sent), udp.then_some(50));
            assert_eq!(reported.reported(Count::Transactions), None);
        }
    }

    #[test]
    fn what_did_not_arrive_is_missed() {
        let spec = Spec { block: 1000, ..Spec::new("udp", Pattern::Transfer) };
        let near = EndTally { bytes_sent: 10_000, ..EndTally::default() };
        let reported = far(&spec, &near, &Statistics { bytes: 7_000, real_s: 1.0, ..Statistics::default() });
        assert_eq!(reported.datagrams.map(|datagrams| (datagrams.received, datagrams.missed)), Some((7, Some(3))));
    }

    #[test]
    fn a_version_is_in_the_chatter() {
        assert_eq!(version("nttcp-1: nttcp, version 1.47").as_deref(), Some("nttcp 1.47"));
        assert_eq!(version("nttcp-1: thru 0.1.0, serving as nttcp").as_deref(), Some("thru 0.1.0"));
        assert_eq!(version("nttcp-1: got EOF"), None);
    }
}
