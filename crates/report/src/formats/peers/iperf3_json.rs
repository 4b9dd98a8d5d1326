//! iperf3 3.12's JSON (`iperf3 -J`), a document for each outcome.
//!
//! What was not measured is null, or absent if iperf3 leaves it out itself. Intervals have `streams` only with one connection in
//! each direction; with several, only the sums are known over time.

use jiff::Timestamp;
use model::{EndTally, Stop, Trial};
use serde_json::{Map, Value, json};

use super::iperf3::{FIRST_ID, NEXT_ID, shares};
use super::quantity::{rate, seconds};
use super::series::MergedInterval;
use super::test::{Amount, DirectionResult, Test};
use super::{IPERF3_JSON, each_test};
use crate::{Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    each_test(view, &IPERF3_JSON, "", |test| {
        let mut text = serde_json::to_string_pretty(&document(test)?).map_err(|error| error.to_string())?;
        text.push('\n');
        Ok(text)
    })
}

fn document(test: &Test<'_>) -> Result<Value, String> {
    let directions = test.directions()?;
    Ok(json!({ "start": start(test), "intervals": intervals(test, &directions), "end": end(test, &directions) }))
}

fn start(test: &Test<'_>) -> Value {
    let (spec, header) = (test.spec(), &test.run.header);
    let udp = spec.transport == "udp";
    let flag = |holds: bool| u8::from(holds);
    let (bytes, blocks, duration) = match spec.stop {
        Stop::Bytes(bytes) => (bytes, 0, 0.0),
        Stop::Blocks(blocks) => (0, blocks, 0.0),
        Stop::TimeNs(ns) | Stop::AboutNs(ns) => (0, 0, seconds(ns)),
        Stop::Transactions(_) => (0, 0, 0.0),
    };
    let moment = i128::from(header.started_unix_ns);
    let time = Timestamp::from_nanosecond(moment).map(|at| at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let near = &header.near;
    let mut start = object(json!({
        "connected": connected(test),
        "version": format!("iperf 3.12, as throughline {} writes it", header.tool.near_version),
        "system_info": format!("Linux {} {} {}", known(&near.hostname), known(&near.kernel), known(&near.arch)),
        "timestamp": { "time": time.ok(), "timesecs": header.started_unix_ns / 1_000_000_000 },
        "connecting_to": { "host": test.host(), "port": port(test) },
        "target_bitrate": spec.rate_bps.unwrap_or(0),
        "sock_bufsize": spec.near.sndbuf.or(spec.near.rcvbuf).unwrap_or(0),
        "test_start": {
            "protocol": if udp { "UDP" } else { "TCP" },
            "num_streams": spec.flows,
            "blksize": spec.block,
            "omit": seconds(spec.warmup_ns),
            // The trials joined end to end.
            "duration": duration * test.trials.len() as f64,
            "bytes": bytes.saturating_mul(test.trials.len() as u64),
            "blocks": blocks.saturating_mul(test.trials.len() as u64),
            "reverse": flag(test.outbound_flags() == [false]),
            "tos": u32::from(spec.near.dscp.unwrap_or(0)) << 2,
            "target_bitrate": spec.rate_bps.unwrap_or(0),
            "bidir": flag(test.outbound_flags().len() > 1),
            "interval": seconds(spec.interval_ns.max(spec.reading_ns)),
        },
    }));
    if let Some(socket) = test.near_socket() {
        start.insert("sndbuf_actual".into(), json!(socket.sndbuf));
        start.insert("rcvbuf_actual".into(), json!(socket.rcvbuf));
        if !udp {
            start.insert("tcp_mss_default".into(), json!(socket.mss));
        }
    }
    Value::Object(start)
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
    let udp = test.spec().transport == "udp";
    let merged: Vec<(&DirectionResult, Vec<MergedInterval>)> =
        directions.iter().map(|direction| (direction, test.merged_intervals(direction.outbound))).collect();
    let longest = merged.iter().map(|(_, merged)| merged.len()).max().unwrap_or(0);
    let mut all = Vec::new();
    for number in 0..longest {
        let mut entry = Map::new();
        let mut streams = Vec::new();
        for ((direction, merged), index) in merged.iter().zip(0_u32..) {
            let Some(part) = merged.get(number) else { continue };
            let sum = interval(test, direction, part, udp);
            if test.spec().flows == 1 {
                let mut stream = sum.clone();
                stream.insert("socket".into(), json!(FIRST_ID + index * NEXT_ID));
                if let Some(tcp) = part.tcp {
                    stream.insert("snd_cwnd".into(), json!(tcp.cwnd_bytes));
                    stream.insert("rtt".into(), json!(tcp.rtt_ns / 1000));
                    stream.insert("rttvar".into(), json!(tcp.rttvar_ns / 1000));
                }
                streams.push(Value::Object(stream));
            }
            entry.insert(if index == 0 { "sum" } else { "sum_bidir_reverse" }.into(), Value::Object(sum));
        }
        entry.insert("streams".into(), Value::Array(streams));
        all.push(Value::Object(entry));
    }
    all
}

fn interval(test: &Test<'_>, direction: &DirectionResult, part: &MergedInterval, udp: bool) -> Map<String, Value> {
    let ns = part.end_ns - part.start_ns;
    let mut sum = object(json!({
        "start": seconds(part.start_ns),
        "end": seconds(part.end_ns),
        "seconds": seconds(ns),
        "bytes": part.bytes,
        "bits_per_second": rate(part.bytes, ns),
        "omitted": part.omitted,
        "sender": direction.outbound,
    }));
    if let Some(tcp) = part.tcp {
        sum.insert("retransmits".into(), json!(tcp.retransmits));
    }
    if udp && direction.outbound {
        sum.insert("packets".into(), json!(part.bytes.div_ceil(test.spec().mean_block())));
    }
    sum
}

fn end(test: &Test<'_>, directions: &[DirectionResult]) -> Value {
    let udp = test.spec().transport == "udp";
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
                sender.extend(datagrams(direction, test.spec().flows == 1));
                json!({ "udp": sender })
            } else {
                if let Some(count) = share.retransmits {
                    sender.insert("retransmits".into(), json!(count));
                }
                if let Some(mean_ns) = share.tcp.mean_rtt_ns() {
                    // Bytes and µs, as iperf3 has them.
                    let (min_ns, max_ns) = share.tcp.rtt_ns;
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
            received.extend(datagrams(direction, true));
            sent.extend(datagrams(direction, true));
            sent.extend(object(json!({ "lost_packets": 0, "lost_percent": 0, "jitter_ms": 0 })));
            // 3.12: the sender's bytes with the receiver's losses.
            let mut both = sent.clone();
            both.extend(datagrams(direction, true));
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

/// Losses and order of the datagrams, which are unknown for one of several connections.
fn datagrams(direction: &DirectionResult, known: bool) -> Map<String, Value> {
    let counts = direction.datagrams.filter(|_| known);
    object(json!({
        "jitter_ms": counts.and_then(super::test::Datagrams::jitter_ms),
        "lost_packets": counts.map(|counts| counts.lost),
        "packets": counts.map(|counts| counts.sent),
        "lost_percent": counts.map(super::test::Datagrams::lost_percent),
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
    fn a_sender_has_the_range_of_its_rtt_and_its_largest_window() {
        let (mut run, _) = recorded::iperf3("two-flows");
        let flows = &mut run.outcomes[0].trials[0].near.flows;
        let sample = |at_ns: u64, rtt_ns: u64, cwnd: u32| model::TcpSample {
            at_ns,
            rtt_ns,
            cwnd,
            mss: 1448,
            ..model::TcpSample::default()
        };
        // The reading at the start is of the handshake.
        flows[0].tcp = vec![sample(0, 9_000_000, 999), sample(100, 30_000, 20), sample(200, 90_000, 10)];
        flows[1].tcp.clear();
        let document: Value = serde_json::from_str(&rendered("iperf3-json", &run)).unwrap();
        let senders: Vec<&Value> =
            document["end"]["streams"].as_array().unwrap().iter().map(|stream| &stream["sender"]).collect();
        let keys = ["min_rtt", "mean_rtt", "max_rtt", "max_snd_cwnd"];
        assert_eq!(keys.map(|key| senders[0][key].as_u64()), [Some(30), Some(60), Some(90), Some(28_960)]);
        assert_eq!(keys.map(|key| senders[1].get(key)), [None; 4]);
    }
}
