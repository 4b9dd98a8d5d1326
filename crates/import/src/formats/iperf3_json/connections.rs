//! The connections of a test: what was requested of their sockets, and what each of them sent and received.

use model::{DatagramReading, Direction, FlowCounts, FlowTally, SocketFacts, Spec};
use serde_json::Value;

use super::super::iperf::COUNTER_LIMIT;
use super::{count, float, string};
use crate::listing::Row;
use crate::text::ns;

/// A count, unless it is one below 0: iperf3 writes -2 as 4294967294.
pub(super) fn counted(value: &Value) -> Option<u64> {
    value.as_u64().filter(|count| *count <= COUNTER_LIMIT)
}

/// Socket buffers (-w) and the MSS (-M), which the client requests at both ends.
pub(super) fn request(spec: &mut Spec, start: &Value) {
    let buffer = count(start, "sock_bufsize").filter(|bytes| *bytes > 0);
    let mss = count(start, "tcp_mss").filter(|mss| *mss > 0).and_then(|mss| u32::try_from(mss).ok());
    for end in [&mut spec.near, &mut spec.far] {
        (end.sndbuf, end.rcvbuf, end.mss) = (buffer, buffer, mss);
    }
}

/// The congestion controls that were used. With both directions a document has each of the two names twice, for other ends.
pub(super) fn congestion(spec: &mut Spec, end: &Value, by_server: bool) {
    let [sender, receiver] = ["sender_tcp_congestion", "receiver_tcp_congestion"].map(|key| string(end, key));
    let (near, far) = match spec.direction {
        Direction::Send => (sender, receiver),
        Direction::Reverse => (receiver, sender),
        Direction::Both if by_server => (None, None),
        Direction::Both if sender == receiver => (sender, receiver),
        Direction::Both => (None, None),
    };
    (spec.near.cc, spec.far.cc) = (near, far);
}

/// Sets the connections. Those of a server's file are this end's alone.
pub(super) fn flows(row: &mut Row, document: &Value, by_server: bool) {
    let (start, end) = (&document["start"], &document["end"]);
    let (Some(connected), Some(streams)) = (start["connected"].as_array(), end["streams"].as_array()) else { return };
    if connected.len() != streams.len() {
        return;
    }
    let bytes = |stream: &Value, side: &str| count(&stream[side], "bytes").unwrap_or(0);
    let address = |one: &Value, side: &str| {
        let host = string(one, &format!("{side}_host"))?;
        let port = count(one, &format!("{side}_port"))?;
        Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    };
    let mut next = [0, 0];
    for (one, stream) in connected.iter().zip(streams) {
        let says = ["sender", "udp"].iter().find_map(|side| stream[*side]["sender"].as_bool());
        let outbound = match row.spec.direction {
            Direction::Both => match says {
                Some(outbound) => outbound,
                None => return,
            },
            direction => direction == Direction::Send,
        };
        let number = &mut next[usize::from(outbound)];
        let flow = FlowTally {
            flow: *number,
            direction: if outbound { Direction::Send } else { Direction::Reverse },
            ..FlowTally::default()
        };
        *number += 1;
        let retransmits = counted(&stream["sender"]["retransmits"]);
        let shortest = count(&stream["sender"], "min_rtt").filter(|us| *us > 0).and_then(|us| us.checked_mul(1_000));
        let sender = SocketFacts { retransmits, min_rtt_ns: shortest, ..SocketFacts::default() };
        let (near, far) = if outbound { (sender, SocketFacts::default()) } else { (SocketFacts::default(), sender) };
        let far = SocketFacts { cc: row.spec.far.cc.clone(), ..far };
        let socket = SocketFacts {
            local: address(one, "local"),
            peer: address(one, "remote"),
            sndbuf: count(start, "sndbuf_actual").filter(|bytes| *bytes > 0),
            rcvbuf: count(start, "rcvbuf_actual").filter(|bytes| *bytes > 0),
            cc: row.spec.near.cc.clone(),
            ..near
        };
        let (sent, received) = (bytes(stream, "sender"), bytes(stream, "receiver"));
        let of = |sends: bool| if sends { (sent, 0) } else { (0, received) };
        let ((bytes_sent, bytes_received), theirs) = (of(outbound), of(!outbound));
        row.trial.near.flows.push(FlowTally { socket, bytes_sent, bytes_received, ..flow.clone() });
        if !by_server {
            let (bytes_sent, bytes_received) = theirs;
            row.trial.far.flows.push(FlowTally { socket: far, bytes_sent, bytes_received, ..flow });
        }
    }
    readings(row, document, connected);
    if let Some(mss) = count(start, "tcp_mss_default").filter(|mss| *mss > 0) {
        row.figure("control_connection_mss_bytes", mss as f64);
    }
}

/// Adds the counts of each connection at this end at the end of each interval but the last, after which its totals count.
fn readings(row: &mut Row, document: &Value, connected: &[Value]) {
    let all = document["intervals"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_measured = |interval: &&Value| interval["sum"]["omitted"].as_bool() != Some(true);
    let mut all: Vec<&Value> = all.iter().filter(is_measured).collect();
    all.pop();
    for (flow, one) in row.trial.near.flows.iter_mut().zip(connected) {
        let mut sum = FlowCounts { at_ns: 0, bytes_sent: 0, bytes_received: 0, datagrams: None };
        let sends = flow.direction == Direction::Send;
        let mut series = Vec::new();
        for interval in &all {
            let mut streams = interval["streams"].as_array().into_iter().flatten();
            let stream = streams.find(|stream| stream["socket"].is_u64() && stream["socket"] == one["socket"]);
            let Some((stream, (bytes, end))) =
                stream.and_then(|stream| Some((stream, count(stream, "bytes").zip(float(stream, "end"))?)))
            else {
                break;
            };
            sum.at_ns = ns(end);
            let total = if sends { &mut sum.bytes_sent } else { &mut sum.bytes_received };
            *total = total.saturating_add(bytes);
            // A receiver knows its datagrams.
            let datagrams = count(stream, "packets").zip(count(stream, "lost_packets")).filter(|_| !sends);
            if let Some((packets, lost)) = datagrams {
                let so_far = sum.datagrams.unwrap_or(DatagramReading { numbers: 0, received: 0, jitter_ns: None });
                sum.datagrams = Some(DatagramReading {
                    numbers: so_far.numbers.saturating_add(packets),
                    received: so_far.received.saturating_add(packets.saturating_sub(lost)),
                    jitter_ns: float(stream, "jitter_ms").map(|ms| (ms * 1e6) as u64),
                });
            }
            series.push(sum);
        }
        // A connection that lacks one has none, so that those of all are of the same times.
        if series.len() == all.len() {
            flow.readings = series;
        }
    }
}
