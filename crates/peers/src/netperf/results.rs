//! Translates between netserver's counts and tallies.

use model::tally::Count;
use model::{DatagramTally, Direction, EndTally, FlowTally, SocketFacts, Spec, TransportName};
use peer_wire::netperf::{Counted, Cpu};

/// The server's counts of all simultaneous tests as the far end's tally. Unreported counts are absent.
pub(super) fn far(spec: &Spec, counted: &[Counted]) -> EndTally {
    let directions = if spec.direction == Direction::Both { 2 } else { 1 };
    let mut all = EndTally::unreported();
    for (flow, counted) in (0..).zip(counted.chunks(directions)) {
        for one in counted {
            add(&mut all, one_test(spec, one), flow);
        }
    }
    all
}

/// Adds the tally of one test of a flow, which has one for each direction.
fn add(all: &mut EndTally, one: EndTally, flow: u32) {
    use Count::{BytesReceived, BytesSent, CallsReceived, CallsSent, ReceivingNs, SendingNs};
    for count in [BytesSent, BytesReceived, CallsSent, CallsReceived] {
        all.report(count, all.reported(count).unwrap_or(0) + one.reported(count).unwrap_or(0));
    }
    for count in [SendingNs, ReceivingNs] {
        all.report(count, all.reported(count).unwrap_or(0).max(one.reported(count).unwrap_or(0)));
    }
    if let Some(one) = one.datagrams {
        all.datagrams = Some(all.datagrams.unwrap_or_default().together(one));
    }
    all.flows.extend(one.flows.into_iter().map(|tally| FlowTally { flow, ..tally }));
}

/// A test's counts.
fn one_test(spec: &Spec, counted: &Counted) -> EndTally {
    let ns = (f64::from(counted.elapsed_s) * 1e9) as u64;
    let socket = SocketFacts {
        sndbuf: Some(u64::from(counted.send_buffer)),
        rcvbuf: Some(u64::from(counted.receive_buffer)),
        retransmits: counted.retransmits.map(u64::from),
        cc: Some(counted.congestion.clone()).filter(|name| !name.is_empty()),
        ..SocketFacts::default()
    };
    let flow = FlowTally {
        direction: match spec.direction {
            Direction::Both if counted.bytes_sent > counted.bytes_received => Direction::Reverse,
            Direction::Both => Direction::Send,
            one => one,
        },
        bytes_sent: counted.bytes_sent,
        bytes_received: counted.bytes_received,
        socket,
        ..FlowTally::default()
    };
    let mut tally = EndTally { flows: vec![flow], ..EndTally::unreported() };
    tally.report(Count::BytesSent, counted.bytes_sent);
    tally.report(Count::BytesReceived, counted.bytes_received);
    tally.report(Count::CallsSent, u64::from(counted.sends));
    tally.report(Count::CallsReceived, u64::from(counted.receives));
    tally.report(Count::SendingNs, if counted.bytes_sent > 0 { ns } else { 0 });
    tally.report(Count::ReceivingNs, if counted.bytes_received > 0 { ns } else { 0 });
    if spec.transport == TransportName::Udp {
        // The datagrams have no numbers, so the count follows from bytes and size.
        let sent = counted.bytes_sent / spec.reply_bytes();
        let received = counted.bytes_received / spec.block;
        tally.datagrams = Some(DatagramTally { sent, received, ..DatagramTally::default() });
        tally.flows.iter_mut().for_each(|flow| flow.datagrams = tally.datagrams);
    }
    tally
}

/// The counts that a server reports. The time is that of the data, without the wait for the end.
pub(super) fn counted(tally: &EndTally, cpu: Option<Cpu>) -> Counted {
    let socket = tally.flows.first().map(|flow| flow.socket.clone()).unwrap_or_default();
    let word = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    Counted {
        bytes_received: tally.bytes_received,
        // netperf prints these as messages: an end mark is none.
        receives: word(tally.datagrams.map_or(tally.calls_received, |datagrams| datagrams.received)),
        receive_buffer: word(socket.rcvbuf.unwrap_or(0)),
        bytes_sent: tally.bytes_sent,
        sends: word(tally.calls_sent),
        send_buffer: word(socket.sndbuf.unwrap_or(0)),
        failed_sends: 0,
        // Each reply is one transaction.
        transactions: if tally.bytes_sent > 0 && tally.bytes_received > 0 { word(tally.blocks_sent) } else { 0 },
        elapsed_s: (tally.receiving_ns.max(tally.sending_ns) as f64 / 1e9) as f32,
        cpu,
        retransmits: socket.retransmits.map(word),
        congestion: socket.cc.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;

    #[test]
    fn a_servers_counts_come_back_as_a_tally() {
        let socket = SocketFacts { retransmits: Some(2), cc: Some("cubic".into()), ..SocketFacts::default() };
        let own = EndTally {
            bytes_received: 3000,
            calls_received: 3,
            receiving_ns: 1_000_000_000,
            flows: vec![FlowTally { socket, ..FlowTally::default() }],
            ..EndTally::default()
        };
        let counted = counted(&own, None);
        let reported = far(&Spec { block: 1000, ..Spec::new("udp", Pattern::Stream) }, std::slice::from_ref(&counted));
        assert_eq!((reported.bytes_received, reported.calls_received, reported.receiving_ns), (3000, 3, 1_000_000_000));
        assert_eq!(reported.datagrams.map(|datagrams| datagrams.received), Some(3));
        assert_eq!(reported.flows[0].socket.retransmits, Some(2));
        let both = Spec { direction: Direction::Both, flows: 2, ..Spec::new("tcp", Pattern::Stream) };
        let back = Counted { bytes_received: 0, bytes_sent: 500, elapsed_s: 2.0, ..counted.clone() };
        let all = far(&both, &[counted.clone(), back.clone(), counted.clone(), back]);
        assert_eq!((all.bytes_received, all.bytes_sent, all.calls_received), (6000, 1000, 12));
        assert_eq!((all.receiving_ns, all.sending_ns, all.flows.len()), (1_000_000_000, 2_000_000_000, 4));
        let of = |at: usize| (all.flows[at].flow, all.flows[at].direction, all.flows[at].bytes_sent);
        assert_eq!([of(2), of(3)], [(1, Direction::Send, 0), (1, Direction::Reverse, 500)]);
        assert!(reported.reported(Count::BlocksSent).is_none() && reported.reported(Count::CallsReceived) == Some(3));
    }
}
