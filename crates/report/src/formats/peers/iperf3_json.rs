//! iperf3 3.12's JSON (`iperf3 -J`), a document for each outcome.
//!
//! What was not measured is null, or absent if iperf3 leaves it out itself. With several connections in a direction the intervals have
//! `streams` if the run has their readings. Keys of 3.21 that are known are there, too: `timemillisecs`, `fq_rate`, `fqrate`, `gso`, `gro`.

use jiff::Timestamp;
use model::{EndTally, ReceiveBy, Role, SendBy, Stop, TransportName, Trial};
use serde_json::{Map, Value, json};

use super::iperf3::{FIRST_ID, NEXT_ID, shares};
use super::quantity::{rate, seconds};
use super::series::{MergedInterval, StreamInterval, TcpAtEnd};
use super::test::{Amount, Datagrams, DirectionResult, Test};
use super::{IPERF3_JSON, each_test};
use crate::{NoForm, Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    each_test(view, &IPERF3_JSON, "", |test| Ok(format!("{:#}\n", document(test)?)))
}

fn document(test: &Test<'_>) -> Result<Value, NoForm> {
    let directions = test.directions()?;
    Ok(json!({ "start": start(test), "intervals": intervals(test, &directions), "end": end(test, &directions) }))
}

fn start(test: &Test<'_>) -> Value {
    let (spec, header) = (test.spec(), &test.run.header);
    let udp = spec.transport == TransportName::Udp;
    let flag = |holds: bool| u8::from(holds);
    // The trials joined end to end.
    let trials = test.trials.len() as u64;
    let (bytes, blocks, duration_ns) = match spec.stop {
        Stop::Bytes(bytes) => (bytes.saturating_mul(trials), 0, 0),
        Stop::Blocks(blocks) => (0, blocks.saturating_mul(trials), 0),
        Stop::TimeNs(ns) | Stop::AboutNs(ns) => (0, 0, ns.saturating_sub(spec.warmup_ns).saturating_mul(trials)),
        Stop::Transactions(_) => (0, 0, 0),
    };
    // iperf3's rate is that of each stream.
    let rate_bps = spec.rate_bps.unwrap_or(0) / u64::from(spec.flows.max(1));
    let pacing_bps =
        spec.end(if test.outbound_flags()[0] { Role::Active } else { Role::Passive }).max_pacing_bps.unwrap_or(0);
    let moment = i128::from(header.started_unix_ns);
    let time = Timestamp::from_nanosecond(moment).map(|at| at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let near = &header.near;
    let mut start = object(json!({
        "connected": connected(test),
        "version": format!("iperf 3.12, as throughline {} writes it", header.tool.near_version),
        "system_info": format!("Linux {} {} {}", known(&near.hostname), known(&near.kernel), known(&near.arch)),
        "timestamp": {
            "time": time.ok(),
            "timesecs": header.started_unix_ns / 1_000_000_000,
            "timemillisecs": header.started_unix_ns / 1_000_000,
        },
        "connecting_to": { "host": test.host(), "port": port(test) },
        // It tells tests apart, as iperf3's random one does.
        "cookie": format!("{}-{}", header.id, test.outcome.cell),
        "target_bitrate": rate_bps,
        "fq_rate": pacing_bps,
        "sock_bufsize": spec.near.sndbuf.or(spec.near.rcvbuf).unwrap_or(0),
        "test_start": {
            "protocol": if udp { "UDP" } else { "TCP" },
            "num_streams": spec.flows,
            "blksize": spec.block,
            "omit": whole_seconds(spec.warmup_ns),
            "duration": whole_seconds(duration_ns),
            "bytes": bytes,
            "blocks": blocks,
            "reverse": flag(test.outbound_flags() == [false]),
            "tos": u32::from(spec.near.dscp.unwrap_or(0)) << 2,
            "target_bitrate": rate_bps,
            "fqrate": pacing_bps,
            "gso": flag(spec.engine.send == SendBy::Gso),
            "gro": flag(spec.engine.receive == ReceiveBy::Gro),
            "bidir": flag(test.outbound_flags().len() > 1),
            "interval": seconds(spec.interval_ns.max(spec.reading_ns)),
        },
    }));
    if let Some(socket) = test.near_socket() {
        start.insert("sndbuf_actual".into(), json!(socket.sndbuf));
        start.insert("rcvbuf_actual".into(), json!(socket.rcvbuf));
        match spec.near.mss {
            _ if udp => {}
            Some(requested) => drop(start.insert("tcp_mss".into(), json!(requested))),
            None => drop(start.insert("tcp_mss_default".into(), json!(socket.mss))),
        }
    }
    Value::Object(start)
}

/// iperf3's times are whole seconds: rounded, and none that is there is 0, which would be endless.
fn whole_seconds(ns: u64) -> u64 {
    if ns == 0 { 0 } else { ((ns + 500_000_000) / 1_000_000_000).max(1) }
}

/// The addresses of the first trial's connections.
fn connected(test: &Test<'_>) -> Vec<Value> {
    let flows = test.trials.first().into_iter().flat_map(|trial| &trial.near.flows);
    let pair = |(flow, number): (&model::FlowTally, u32)| {
        let address = |text: &Option<String>| text.as_ref()?.parse::<core::net::SocketAddr>().ok();
        let (local, peer) = (address(&flow.socket.local)?, address(&flow.socket.peer)?);
        Some(json!({
            "socket": FIRST_ID + number * NEXT_ID,
            "local_host": local.ip().to_canonical().to_string(),
            "local_port": local.port(),
            "remote_host": peer.ip().to_canonical().to_string(),
            "remote_port": peer.port(),
        }))
    };
    flows.zip(0..).filter_map(pair).collect()
}

fn port(test: &Test<'_>) -> Option<u16> {
    let peer = test.near_socket()?.peer.as_ref()?;
    Some(peer.parse::<core::net::SocketAddr>().ok()?.port())
}

fn intervals(test: &Test<'_>, directions: &[DirectionResult]) -> Vec<Value> {
    let merged: Vec<(&DirectionResult, Vec<MergedInterval>)> =
        directions.iter().map(|direction| (direction, test.merged_intervals(direction.outbound))).collect();
    let longest = merged.iter().map(|(_, merged)| merged.len()).max().unwrap_or(0);
    let mut all = Vec::new();
    for number in 0..longest {
        let mut entry = Map::new();
        let mut streams = Vec::new();
        for ((direction, merged), index) in merged.iter().zip(0_u32..) {
            let Some(part) = merged.get(number) else { continue };
            let flows = test.spec().flows;
            let whole = StreamInterval { bytes: part.bytes, tcp: part.tcp, datagrams: part.datagrams };
            let own = if flows == 1 { std::slice::from_ref(&whole) } else { &part.streams[..] };
            for (stream, at) in own.iter().zip(0..) {
                let mut object = interval(test, direction, part, stream);
                object.insert("socket".into(), json!(FIRST_ID + (index * flows + at) * NEXT_ID));
                object.extend(stream.tcp.map(at_end).unwrap_or_default());
                streams.push(Value::Object(object));
            }
            let sum = interval(test, direction, part, &whole);
            entry.insert(if index == 0 { "sum" } else { "sum_bidir_reverse" }.into(), Value::Object(sum));
        }
        entry.insert("streams".into(), Value::Array(streams));
        all.push(Value::Object(entry));
    }
    all
}

/// TCP of a stream at the end of an interval.
fn at_end(tcp: TcpAtEnd) -> Map<String, Value> {
    let mut object = object(json!({
        "snd_cwnd": tcp.cwnd_bytes,
        "rtt": tcp.rtt_ns / 1000,
        "rttvar": tcp.rttvar_ns / 1000,
    }));
    let known = [
        ("snd_wnd", tcp.window_bytes.map(u64::from)),
        ("pmtu", tcp.pmtu.map(u64::from)),
        ("reorder", tcp.reordering_seen),
    ];
    object.extend(known.into_iter().filter_map(|(key, value)| Some((key.into(), json!(value?)))));
    object
}

/// What a stream, or all together, moved in an interval.
fn interval(
    test: &Test<'_>,
    direction: &DirectionResult,
    part: &MergedInterval,
    moved: &StreamInterval,
) -> Map<String, Value> {
    let ns = part.end_ns - part.start_ns;
    let mut object = object(json!({
        "start": seconds(part.start_ns),
        "end": seconds(part.end_ns),
        "seconds": seconds(ns),
        "bytes": moved.bytes,
        "bits_per_second": rate(moved.bytes, ns),
        "omitted": part.omitted,
        "sender": direction.outbound,
    }));
    if let Some(tcp) = moved.tcp {
        object.insert("retransmits".into(), json!(tcp.retransmits));
    }
    if test.spec().transport == TransportName::Udp && direction.outbound {
        object.insert("packets".into(), json!(moved.bytes.div_ceil(test.spec().mean_block())));
    }
    if let Some(arrivals) = moved.datagrams {
        object.extend(self::object(json!({
            "jitter_ms": arrivals.jitter_ns.map(|ns| ns as f64 / 1e6),
            "lost_packets": arrivals.lost,
            "packets": arrivals.packets,
            "lost_percent": arrivals.lost_percent(),
        })));
    }
    object
}

fn end(test: &Test<'_>, directions: &[DirectionResult]) -> Value {
    let udp = test.spec().transport == TransportName::Udp;
    let mut end = Map::new();
    let mut streams = Vec::new();
    let mut first = FIRST_ID;
    for (direction, suffix) in directions.iter().zip(["", "_bidir_reverse"]) {
        for (share, number) in shares(test, direction).iter().zip(0..) {
            let socket = first + number * NEXT_ID;
            let sides = [(share.sent, direction.sent.ns), (share.received, direction.received.ns)];
            let [mut sender, mut receiver] = sides.map(|(bytes, ns)| sum(Amount { bytes, ns }, direction.outbound));
            for side in [&mut sender, &mut receiver] {
                side.insert("socket".into(), json!(socket));
            }
            streams.push(if udp {
                sender.extend(datagrams(share.datagrams));
                json!({ "udp": sender })
            } else {
                if let Some(count) = share.retransmits {
                    sender.insert("retransmits".into(), json!(count));
                }
                if let Some(mean_ns) = share.tcp.mean_rtt_ns() {
                    // Bytes and µs, as iperf3 has them.
                    let (min_ns, max_ns) = share.tcp.rtt_ns;
                    sender.extend(share.tcp.window_bytes.map(|bytes| ("max_snd_wnd".to_owned(), json!(bytes))));
                    sender.extend(share.tcp.reordering_seen.map(|times| ("reorder".to_owned(), json!(times))));
                    sender.extend(object(json!({
                        "max_snd_cwnd": share.tcp.cwnd_bytes,
                        "max_rtt": max_ns / 1000,
                        "min_rtt": min_ns / 1000,
                        "mean_rtt": mean_ns / 1000,
                    })));
                }
                json!({ "sender": sender, "receiver": receiver })
            });
        }
        first += test.spec().flows * NEXT_ID;
        let (mut sent, mut received) =
            (sum(direction.sent, direction.outbound), sum(direction.received, direction.outbound));
        if udp {
            sent.insert("sender".into(), json!(true));
            received.insert("sender".into(), json!(false));
            received.extend(datagrams(direction.datagrams));
            sent.extend(datagrams(direction.datagrams));
            sent.extend(object(json!({ "lost_packets": 0, "lost_percent": 0, "jitter_ms": 0 })));
            // 3.12: the sender's bytes with the receiver's losses.
            let mut both = sent.clone();
            both.extend(datagrams(direction.datagrams));
            both.insert("sender".into(), json!(direction.outbound));
            end.insert(format!("sum{suffix}"), Value::Object(both));
        } else if let Some(count) = direction.retransmits {
            sent.insert("retransmits".into(), json!(count));
        }
        end.insert(format!("sum_sent{suffix}"), Value::Object(sent));
        end.insert(format!("sum_received{suffix}"), Value::Object(received));
    }
    end.insert("streams".into(), Value::Array(streams));
    end.insert("cpu_utilization_percent".into(), cpu(test));
    if !udp {
        let outbound = test.outbound_flags()[0];
        let [near, far] = [test.near_socket(), test.far_socket()].map(|facts| facts.and_then(|facts| facts.cc.clone()));
        let (sender, receiver) = if outbound { (near, far) } else { (far, near) };
        for (key, name) in [("sender_tcp_congestion", sender), ("receiver_tcp_congestion", receiver)] {
            if let Some(name) = name {
                end.insert(key.into(), json!(name));
            }
        }
    }
    Value::Object(end)
}

fn sum(amount: Amount, outbound: bool) -> Map<String, Value> {
    object(json!({
        "start": 0,
        "end": seconds(amount.ns),
        "seconds": seconds(amount.ns),
        "bytes": amount.bytes,
        "bits_per_second": rate(amount.bytes, amount.ns),
        "sender": outbound,
    }))
}

/// Losses and order of datagrams; null where they were not counted.
fn datagrams(counts: Option<Datagrams>) -> Map<String, Value> {
    object(json!({
        "jitter_ms": counts.and_then(Datagrams::jitter_ms),
        "lost_packets": counts.map(|counts| counts.lost),
        "packets": counts.map(|counts| counts.sent),
        "lost_percent": counts.map(Datagrams::lost_percent),
        "out_of_order": counts.map(|counts| counts.reordered),
    }))
}

/// CPU time of both ends' measuring processes over the time of the trials, as iperf3 does with getrusage.
fn cpu(test: &Test<'_>) -> Value {
    let total = |end: &dyn Fn(&Trial) -> Option<u64>| test.trials.iter().map(|trial| end(trial)).sum::<Option<u64>>();
    let length = |trial: &Trial| {
        let longest = |end: &EndTally| end.sending_ns.max(end.receiving_ns);
        longest(&trial.near).max(longest(&trial.far))
    };
    let ns = total(&|trial| Some(length(trial))).unwrap_or(0);
    let percent = |part: Option<u64>| part.filter(|_| ns > 0).map(|part| part as f64 * 100.0 / ns as f64);
    let mut all = Map::new();
    for name in ["host", "remote"] {
        let end = |trial: &Trial| if name == "host" { trial.near.spent.clone() } else { trial.far.spent.clone() };
        let process = percent(total(&|trial| end(trial).map(|spent| spent.process_ns)));
        let system = percent(total(&|trial| Some(end(trial)?.threads?.system_ns)));
        let user = process.zip(system).map(|(process, system)| (process - system).max(0.0));
        all.insert(format!("{name}_total"), json!(process));
        all.insert(format!("{name}_user"), json!(user));
        all.insert(format!("{name}_system"), json!(system));
    }
    Value::Object(all)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::formats::peers::round_trip::{recorded, rendered};
    use crate::sample;

    #[test]
    fn the_sums_are_those_that_were_counted() {
        for name in ["tcp", "reverse", "udp", "both", "two-flows"] {
            let (run, _) = recorded::iperf3(name);
            let document: Value = serde_json::from_str(&rendered("iperf3-json", &run)).unwrap();
            let trial = &run.outcomes[0].trials[0];
            let (sent, received) = match name {
                "reverse" => (&trial.far, &trial.near),
                _ => (&trial.near, &trial.far),
            };
            assert_eq!(document["end"]["sum_sent"]["bytes"], sent.bytes_sent, "{name}");
            assert_eq!(document["end"]["sum_received"]["bytes"], received.bytes_received, "{name}");
            let intervals = document["intervals"].as_array().unwrap();
            let over_time: u64 = intervals.iter().map(|entry| entry["sum"]["bytes"].as_u64().unwrap()).sum();
            let near = if name == "reverse" { trial.near.bytes_received } else { trial.near.bytes_sent };
            assert_eq!(over_time, near, "{name}");
        }
    }

    #[test]
    fn what_was_not_measured_is_null_or_absent() {
        let run = sample::stream();
        let document: Value = serde_json::from_str(&rendered("iperf3-json", &run)).unwrap();
        let end = &document["end"];
        assert_eq!(end["cpu_utilization_percent"]["host_total"], Value::Null);
        assert!(end["sum_sent"].get("retransmits").is_none(), "{}", end["sum_sent"]);
        assert_eq!(document["start"]["connected"].as_array().unwrap().len(), 0);
    }

    #[test]
    fn each_connection_has_its_intervals_and_its_datagrams() {
        let (mut run, _) = recorded::iperf3("two-flows");
        let reading = |numbers, received| Some(model::DatagramReading { numbers, received, jitter_ns: Some(4_000) });
        let tally = |sent, received| Some(model::DatagramTally { sent, received, ..model::DatagramTally::default() });
        let outcome = &mut run.outcomes[0];
        (outcome.spec.transport, outcome.spec.direction) = ("udp".into(), model::Direction::Reverse);
        let trial = &mut outcome.trials[0];
        std::mem::swap(&mut trial.near, &mut trial.far);
        trial.near.intervals = [0, 1_000_000_000]
            .map(|start_ns| model::Interval {
                start_ns,
                end_ns: start_ns + 1_000_000_000,
                bytes_received: 5_000,
                ..model::Interval::default()
            })
            .to_vec();
        for (flow, received) in trial.near.flows.iter_mut().zip([60, 40]) {
            flow.datagrams = tally(0, received);
            flow.bytes_received = 100 * received;
            let datagrams = reading(30, 25);
            flow.readings =
                vec![model::FlowCounts { at_ns: 1_000_000_100, bytes_sent: 0, bytes_received: 2_500, datagrams }];
        }
        trial.far.flows.iter_mut().for_each(|flow| flow.datagrams = tally(60, 0));
        let document: Value = serde_json::from_str(&rendered("iperf3-json", &run)).unwrap();
        let of =
            |stream: &Value| ["socket", "bytes", "packets", "lost_packets"].map(|key| stream[key].as_u64().unwrap());
        let intervals = |at: usize| -> Vec<[u64; 4]> {
            document["intervals"][at]["streams"].as_array().unwrap().iter().map(of).collect()
        };
        assert_eq!(intervals(0), [[5, 2_500, 30, 5], [7, 2_500, 30, 5]]);
        assert_eq!(intervals(1), [[5, 3_500, 30, 0], [7, 1_500, 30, 15]]);
        let sum = &document["intervals"][0]["sum"];
        let keys = ["packets", "lost_packets", "lost_percent", "jitter_ms"].map(|key| sum[key].as_f64().unwrap());
        assert_eq!(keys, [60.0, 10.0, 1_000.0 / 60.0, 0.004]);
        let ends: Vec<[Option<u64>; 2]> = document["end"]["streams"]
            .as_array()
            .unwrap()
            .iter()
            .map(|stream| ["packets", "lost_packets"].map(|key| stream["udp"][key].as_u64()))
            .collect();
        assert_eq!(ends, [[Some(60), Some(0)], [Some(60), Some(20)]]);
    }

    #[test]
    fn what_was_requested_is_in_iperf3s_integers() {
        let (mut run, _) = recorded::iperf3("two-flows");
        let outcome = &mut run.outcomes[0];
        let spec = &mut outcome.spec;
        (spec.warmup_ns, spec.stop, spec.rate_bps) =
            (1_000_000_000, model::Stop::TimeNs(3_000_000_000), Some(30_000_000));
        (spec.near.mss, spec.near.max_pacing_bps) = (Some(1_000), Some(7));
        let start = |run: &model::Run| -> Value {
            serde_json::from_str::<Value>(&rendered("iperf3-json", run)).unwrap()["start"].take()
        };
        let said = start(&run);
        let keys = ["omit", "duration", "target_bitrate", "fqrate", "gso", "gro", "bytes", "blocks"];
        assert_eq!(
            keys.map(|key| said["test_start"][key].as_u64()),
            [1, 2, 15_000_000, 7, 0, 0, 0, 0].map(Some),
            "a rate of each stream, and a time without the warm-up"
        );
        assert_eq!(
            (said["fq_rate"].as_u64(), said["tcp_mss"].as_u64(), said.get("tcp_mss_default")),
            (Some(7), Some(1_000), None)
        );
        assert_eq!(said["cookie"], format!("{}-0", run.header.id));
        let milliseconds = said["timestamp"]["timemillisecs"].as_u64().unwrap();
        assert_eq!(milliseconds / 1_000, said["timestamp"]["timesecs"].as_u64().unwrap());
        run.outcomes[0].spec.stop = model::Stop::TimeNs(1_200_000_000);
        assert_eq!(start(&run)["test_start"]["duration"].as_u64(), Some(1), "a part of a second");
    }

    #[test]
    fn a_sender_has_the_range_of_its_rtt_and_its_largest_window() {
        let (mut run, _) = recorded::iperf3("two-flows");
        let flows = &mut run.outcomes[0].trials[0].near.flows;
        let sample = |at_ns: u64, rtt_ns: u64, cwnd: u32| model::TcpSample {
            at_ns,
            rtt_ns,
            cwnd,
            mss: 1448,
            peer_window_bytes: Some(cwnd * 3_000),
            reordering_seen: Some(at_ns / 50),
            ..model::TcpSample::default()
        };
        flows[0].socket.pmtu = Some(1_500);
        // The reading at the start is of the handshake.
        flows[0].tcp = vec![sample(0, 9_000_000, 999), sample(100, 30_000, 20), sample(200, 90_000, 10)];
        flows[1].tcp.clear();
        let document: Value = serde_json::from_str(&rendered("iperf3-json", &run)).unwrap();
        let senders: Vec<&Value> =
            document["end"]["streams"].as_array().unwrap().iter().map(|stream| &stream["sender"]).collect();
        let keys = ["min_rtt", "mean_rtt", "max_rtt", "max_snd_cwnd", "max_snd_wnd", "reorder"];
        assert_eq!(keys.map(|key| senders[0][key].as_u64()), [30, 60, 90, 28_960, 60_000, 4].map(Some));
        assert_eq!(keys.map(|key| senders[1].get(key)), [None; 6]);
        run.outcomes[0].trials[0].near.flows.pop();
        run.outcomes[0].spec.flows = 1;
        let document: Value = serde_json::from_str(&rendered("iperf3-json", &run)).unwrap();
        let stream = &document["intervals"][0]["streams"][0];
        let of = |keys: [&str; 4]| keys.map(|key| stream[key].as_u64());
        assert_eq!(of(["snd_wnd", "pmtu", "rtt", "reorder"]), [30_000, 1_500, 90, 4].map(Some));
    }
}
