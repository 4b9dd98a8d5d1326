//! Translates between an end's tally and iperf3's results.

use model::tally::{Count, Window};
use model::{DatagramTally, EndTally, FlowTally, Role, SocketFacts, Spec, Spent, TransportName};
use peer_wire::iperf3::{Omitted, Results, StreamResult, stream_ids};

use super::streams::{Ran, flow_of, sends};
use crate::uncounted;

/// This end's results.
pub(super) fn ours(ran: &Ran) -> Results {
    let Ran { role, spec, legs, .. } = ran;
    let tally = legs.legs.first();
    let count = ran.received.len();
    let after_warm_up_s = legs.elapsed_ns.saturating_sub(spec.warmup_ns) as f64 / 1e9;
    let streams = stream_ids(count as u32).zip(0..count).map(|(id, at)| stream(ran, id, at, after_warm_up_s)).collect();
    let some_sends = (0..count).any(|at| sends(*role, flow_of(spec, at).1));
    let congestion = tally.and_then(|tally| tally.flows.iter().find_map(|flow| flow.socket.cc.clone()));
    Results {
        cpu_percent: ran.cpu_percent,
        has_retransmits: some_sends.then_some(spec.transport != TransportName::Udp),
        congestion,
        server_output_json: None,
        server_output_text: None,
        streams,
    }
}

/// One stream's counts; bytes without the warm-up.
fn stream(ran: &Ran, id: u32, at: usize, after_warm_up_s: f64) -> StreamResult {
    let (flow, direction) = flow_of(&ran.spec, at);
    let sending = sends(ran.role, direction);
    let flows = || ran.legs.legs.iter().flat_map(|leg| &leg.flows).filter(|tally| tally.flow == flow);
    let counted = |tally: &FlowTally| if sending { tally.bytes_sent } else { tally.bytes_received };
    let bytes: u64 = flows().map(counted).sum();
    let [before, after] = ran.received[at];
    let udp = ran.spec.transport == TransportName::Udp;
    // A receiver reads until the streams end, but the time ends before: what came later belongs to no second of it.
    let by_end = ran.read_by_end.as_ref().filter(|_| !sending);
    let bytes = match by_end.map(|read| read[at]) {
        Some(_) if udp => {
            bytes.min(after.packets.saturating_sub(u64::try_from(after.errors).unwrap_or(0)) * ran.spec.block)
        }
        Some(Some(read)) => bytes.min(read),
        _ => bytes,
    };
    let slot = ran.plan.links().iter().position(|link| (link.flow, link.direction) == (flow, direction));
    let warm = slot.and_then(|slot| ran.legs.warm.get(slot)).map_or(0, |warm| warm[usize::from(!sending)]);
    let (packets, omitted) = match (udp, sending) {
        (true, true) => (bytes / ran.spec.block, Omitted { errors: 0, packets: warm / ran.spec.block }),
        // By the bytes of the warm-up, which end at its exact time: the headers are read a little later.
        (true, false) => {
            let skipped = u64::try_from(before.errors).unwrap_or(0);
            (after.packets, Omitted { errors: before.errors, packets: warm / ran.spec.block + skipped })
        }
        (false, _) => (0, Omitted { errors: 0, packets: 0 }),
    };
    StreamResult {
        id,
        bytes: bytes.saturating_sub(warm),
        retransmits: if sending && !udp {
            flows().filter(|tally| counted(tally) > 0).find_map(|tally| tally.socket.retransmits)
        } else {
            None
        },
        jitter_s: if sending { 0.0 } else { after.jitter_s },
        errors: if sending { 0 } else { after.errors },
        packets,
        omitted: Some(omitted),
        end_time_s: Some(after_warm_up_s),
    }
}

/// The server's results as the far end's tally. Series, calls and socket facts are unreported. Servers before 3.2 report no time either:
/// theirs is `own_ns` then, this end's, as for their own client.
pub(super) fn far(spec: &Spec, reported: &Results, own_ns: u64) -> EndTally {
    let unreported =
        [Count::CallsSent, Count::CallsReceived, Count::BlocksSent, Count::Transactions, Count::BytesUnsent];
    let mut tally = EndTally { unreported: unreported.to_vec(), ..EndTally::default() };
    let udp = spec.transport == TransportName::Udp;
    let mut jitters = Vec::new();
    let mut seconds: f64 = 0.0;
    for (at, stream) in reported.streams.iter().enumerate() {
        let (flow, direction) = flow_of(spec, at);
        let sending = sends(Role::Passive, direction);
        let omitted = stream.omitted.unwrap_or(Omitted { errors: 0, packets: 0 });
        let packets = stream.packets.saturating_sub(omitted.packets);
        let socket = SocketFacts { retransmits: stream.retransmits, cc: cc(spec, reported), ..SocketFacts::default() };
        let mut one = FlowTally { flow, direction, socket, ..FlowTally::default() };
        if sending {
            // A server of 3.21 may leave its last datagram out of the bytes, though not out of the datagrams.
            let uncounted = udp && packets * spec.block == stream.bytes + spec.block;
            one.bytes_sent = stream.bytes + if uncounted { spec.block } else { 0 };
            tally.bytes_sent += one.bytes_sent;
        } else {
            tally.bytes_received += stream.bytes;
            one.bytes_received = stream.bytes;
        }
        if udp {
            let datagrams = if sending {
                DatagramTally { sent: packets, ..DatagramTally::default() }
            } else {
                let missed = u64::try_from(stream.errors.saturating_sub(omitted.errors)).unwrap_or(0).min(packets);
                jitters.push(stream.jitter_s);
                let jitter_ns = Some((stream.jitter_s * 1e9) as u64);
                DatagramTally {
                    received: packets - missed,
                    missed: Some(missed),
                    jitter_ns,
                    ..DatagramTally::default()
                }
            };
            one.datagrams = Some(datagrams);
            tally.datagrams = Some(tally.datagrams.unwrap_or_default().together(datagrams));
        }
        seconds = seconds.max(stream.end_time_s.filter(|seconds| seconds.is_finite()).unwrap_or(0.0));
        tally.flows.push(one);
    }
    let ns = if seconds > 0.0 { (seconds * 1e9) as u64 } else { own_ns };
    tally.flows.sort_by_key(|flow| flow.flow);
    if tally.bytes_received > 0 {
        tally.receiving_ns = ns;
        tally.measured = (spec.warmup_ns > 0).then_some(Window { bytes: tally.bytes_received, ns });
    }
    if tally.bytes_sent > 0 {
        tally.sending_ns = ns;
    }
    if let (Some(datagrams), false) = (&mut tally.datagrams, jitters.is_empty()) {
        datagrams.jitter_ns = Some((jitters.iter().sum::<f64>() / jitters.len() as f64 * 1e9) as u64);
    }
    let [percent, ..] = reported.cpu_percent;
    if percent.is_finite() && percent >= 0.0 && ns > 0 {
        tally.spent = Some(Spent { process_ns: (percent / 100.0 * ns as f64) as u64, ..Spent::default() });
    }
    tally
}

/// How far the ends of the two ends' warm-ups lie apart at most, ns: what arrives then may count here and not there.
const WARM_UP_EDGE_NS: u64 = 250_000_000;

/// Adds the warm-up to what the server sent: it does not count it, while this end counts all that arrives.
pub(super) fn add_warm_up(spec: &Spec, near: &EndTally, far: &mut EndTally, ran: &Ran) {
    if spec.warmup_ns == 0 || far.bytes_sent == 0 {
        return;
    }
    let (links, udp) = (ran.plan.links(), spec.transport == TransportName::Udp);
    for (at, [before, _]) in ran.received.iter().enumerate() {
        let (flow, direction) = flow_of(spec, at);
        if sends(Role::Active, direction) {
            continue;
        }
        let slot = links.iter().position(|link| (link.flow, link.direction) == (flow, direction));
        let arrived = slot.and_then(|slot| ran.legs.warm.get(slot)).map_or(0, |[_, received]| *received);
        // Of datagrams the numbers tell how many were sent.
        let warm = if udp { before.packets * spec.block } else { arrived };
        let own = far.flows.iter_mut().find(|own| (own.flow, own.direction) == (flow, direction));
        if let Some(flow) = own.filter(|own| own.bytes_sent > 0) {
            flow.bytes_sent += warm;
            far.bytes_sent += warm;
            flow.datagrams.iter_mut().for_each(|datagrams| datagrams.sent += before.packets);
        }
        if let Some(datagrams) = &mut far.datagrams {
            datagrams.sent += before.packets;
        }
    }
    far.sending_ns += spec.warmup_ns;
    let rate = near.bytes_received as f64 / near.receiving_ns.max(1) as f64;
    uncounted::add_sent(near, far, (rate * WARM_UP_EDGE_NS as f64) as u64);
}

fn cc(spec: &Spec, reported: &Results) -> Option<String> {
    reported.congestion.clone().filter(|_| spec.transport != TransportName::Udp)
}

/// Adds losses and jitter from this end's datagram headers to the engine's tally.
pub(super) fn add_received(tally: &mut EndTally, ran: &Ran) {
    let EndTally { datagrams: Some(datagrams), flows, .. } = tally else { return };
    let mut receiving = Vec::new();
    for (at, [_, after]) in ran.received.iter().enumerate() {
        let (flow, direction) = flow_of(&ran.spec, at);
        if sends(ran.role, direction) {
            continue;
        }
        receiving.push(after);
        let own = flows.iter_mut().filter(|own| (own.flow, own.direction) == (flow, direction));
        for own in own.filter_map(|own| own.datagrams.as_mut()) {
            own.missed = Some(after.packets.saturating_sub(own.received));
            own.jitter_ns = Some((after.jitter_s * 1e9) as u64);
        }
    }
    if receiving.is_empty() {
        return;
    }
    let highest: u64 = receiving.iter().map(|after| after.packets).sum();
    datagrams.missed = Some(highest.saturating_sub(datagrams.received));
    let jitter = receiving.iter().map(|after| after.jitter_s).sum::<f64>() / receiving.len() as f64;
    datagrams.jitter_ns = Some((jitter * 1e9) as u64);
}

/// The server's version: from its output if present, else derived from the keys of its results.
pub(super) fn version(reported: &Results) -> String {
    let said = |text: &str| -> Option<String> {
        let number = text.split("iperf ").nth(1)?.split_whitespace().next()?;
        number.starts_with(|first: char| first.is_ascii_digit()).then(|| format!("iperf3 {number}"))
    };
    let json = reported.server_output_json.as_ref().and_then(|json| json["start"]["version"].as_str()).and_then(said);
    let text = || reported.server_output_text.as_deref().and_then(said);
    // Our own server is no iperf3.
    let own = || {
        let text = reported.server_output_text.as_deref()?;
        Some(text.strip_prefix("thru ")?.split_once(',')?.0).map(|number| format!("thru {number}"))
    };
    json.or_else(own).or_else(text).unwrap_or_else(|| {
        let stream = reported.streams.first();
        match stream.map(|stream| (stream.end_time_s.is_some(), stream.omitted.is_some())) {
            Some((true, true)) => "iperf3 3.14 or newer".into(),
            Some((true, false)) => "iperf3 3.2 to 3.13".into(),
            Some((false, _)) => "iperf3 before 3.2".into(),
            None => "iperf3".into(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DatagramTally, Direction, Pattern};

    fn result(id: u32, bytes: u64) -> StreamResult {
        StreamResult {
            id,
            bytes,
            retransmits: None,
            jitter_s: 2e-6,
            errors: 3,
            packets: 100,
            omitted: None,
            end_time_s: Some(2.0),
        }
    }

    fn results(streams: Vec<StreamResult>) -> Results {
        Results {
            cpu_percent: [50.0, 10.0, 40.0],
            has_retransmits: None,
            congestion: Some("cubic".into()),
            server_output_json: None,
            server_output_text: None,
            streams,
        }
    }

    #[test]
    fn of_both_directions_the_first_streams_are_those_that_the_client_sends_on() {
        let spec = Spec { direction: Direction::Both, ..Spec::new("tcp", Pattern::Stream) };
        let tally = far(&spec, &results(vec![result(1, 70), result(3, 50)]), 9);
        assert_eq!((tally.bytes_received, tally.bytes_sent), (70, 50));
        assert_eq!((tally.receiving_ns, tally.sending_ns), (2_000_000_000, 2_000_000_000));
        assert_eq!(tally.spent.as_ref().map(|spent| spent.process_ns), Some(1_000_000_000));
        assert!(
            tally.intervals.is_empty() && tally.reported(Count::CallsReceived).is_none() && tally.datagrams.is_none()
        );
    }

    #[test]
    fn a_server_that_reports_no_time_has_this_ends() {
        let old = StreamResult { end_time_s: None, ..result(1, 24_165_624) };
        let tally = far(&Spec::new("tcp", Pattern::Stream), &results(vec![old]), 2_040_000_000);
        assert_eq!((tally.bytes_received, tally.receiving_ns), (24_165_624, 2_040_000_000));
    }

    #[test]
    fn a_last_datagram_that_a_server_sent_but_did_not_count_is_counted() {
        let spec = Spec { direction: Direction::Reverse, block: 1_472, ..Spec::new("udp", Pattern::Stream) };
        let sent = |bytes| far(&spec, &results(vec![result(1, bytes)]), 9).bytes_sent;
        assert_eq!(sent(100 * 1_472), 100 * 1_472);
        assert_eq!(sent(99 * 1_472), 100 * 1_472);
        assert_eq!(sent(98 * 1_472), 98 * 1_472, "a difference of two is a mismatch");
    }

    #[test]
    fn losses_and_jitter_are_the_receivers_own() {
        let spec = Spec::new("udp", Pattern::Stream);
        let datagrams = far(&spec, &results(vec![result(1, 97)]), 9).datagrams;
        let wanted =
            DatagramTally { received: 97, missed: Some(3), jitter_ns: Some(2_000), ..DatagramTally::default() };
        assert_eq!(datagrams, Some(wanted));
    }

    #[test]
    fn a_version_is_reported_or_follows_from_the_keys() {
        let mut reported = results(vec![result(1, 1)]);
        assert_eq!(version(&reported), "iperf3 3.2 to 3.13");
        reported.server_output_text = Some("-----\niperf 3.12 (cJSON)\nLinux x".into());
        assert_eq!(version(&reported), "iperf3 3.12");
        reported.server_output_text = Some("test by iperf users".into());
        assert_eq!(version(&reported), "iperf3 3.2 to 3.13");
    }
}
