//! netperf's KEY=VALUE lines: those of its test option `-k`, and the interim results of `-D`. Keys that were not measured are left
//! out.

use std::fmt::Write as _;

use model::{Direction, SocketFacts, TransportName, Trial};

use super::netperf::{Figures, Kind, title};
use super::quantity::{rate, seconds};
use super::test::{Test, ends};
use super::{NETPERF_KEYS, each_test};
use crate::{Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    each_test(view, &NETPERF_KEYS, "\n", |test| Ok(text(test)))
}

fn text(test: &Test<'_>) -> String {
    let (spec, figures) = (test.spec(), Figures::of(test));
    let transactions = figures.kind == Kind::Transactions;
    let (unit, scale) = if transactions { ("Trans/s", 1.0) } else { ("10^6bits/s", 1e6) };
    let reverse = spec.direction == Direction::Reverse;
    let name = match (transactions, reverse) {
        (true, _) => "OMNI Send|Recv",
        (_, true) => "OMNI Receive",
        _ => "OMNI Send",
    };
    let mut text = title(test, name);
    for (number, [start_ns, end_ns, unix_ns, count]) in interims(test, transactions, reverse).into_iter().enumerate() {
        let ns = end_ns - start_ns;
        let value = if transactions { count as f64 / seconds(ns) } else { rate(count, ns) / scale };
        let _ = writeln!(text, "NETPERF_INTERIM_RESULT[{number}]={value:.2}");
        let _ = writeln!(text, "NETPERF_UNITS[{number}]={unit}");
        let _ = writeln!(text, "NETPERF_INTERVAL[{number}]={:.3}", seconds(ns));
        let _ = writeln!(text, "NETPERF_ENDING[{number}]={:.3}", seconds(unix_ns));
    }
    for (key, value) in keys(test, &figures, unit, figures.value / scale) {
        let _ = writeln!(text, "{key}={value}");
    }
    text
}

/// Start, end (both ns since the trial began), end by the wall clock (ns since 1970) and count of each entry of the series. The count
/// is of round trips, otherwise of bytes received, or of bytes sent if the far end reports no series.
fn interims(test: &Test<'_>, transactions: bool, reverse: bool) -> Vec<[u64; 4]> {
    let of = |trial: &Trial| {
        let unreported = trial.far.intervals.is_empty();
        let end = if transactions || reverse || unreported { &trial.near } else { &trial.far };
        let started = test.started_unix_ns(trial);
        let entries = end.intervals.iter().filter(|entry| entry.end_ns > entry.start_ns);
        let count = |entry: &model::Interval| match (transactions, !reverse && unreported) {
            (true, _) => entry.transactions,
            (_, true) => entry.bytes_sent,
            (_, false) => entry.bytes_received,
        };
        entries.map(|e| [e.start_ns, e.end_ns, started + e.end_ns, count(e)]).collect::<Vec<_>>()
    };
    test.trials.iter().flat_map(|trial| of(trial)).collect()
}

fn keys(test: &Test<'_>, figures: &Figures, unit: &str, throughput: f64) -> Vec<(&'static str, String)> {
    let spec = test.spec();
    let transactions = figures.kind == Kind::Transactions;
    let udp = spec.transport == TransportName::Udp;
    let direction = match (transactions, spec.direction) {
        (true, _) => "Send|Recv",
        (_, Direction::Reverse) => "Receive",
        _ => "Send",
    };
    let mut keys: Vec<(&'static str, Option<String>)> = vec![
        ("PROTOCOL", Some(if udp { "UDP" } else { "TCP" }.into())),
        ("DIRECTION", Some(direction.into())),
        ("ELAPSED_TIME", Some(format!("{:.2}", seconds(figures.elapsed_ns)))),
        ("THROUGHPUT", Some(format!("{throughput:.2}"))),
        ("THROUGHPUT_UNITS", Some(unit.into())),
    ];
    let outbound = spec.direction != Direction::Reverse;
    let block = |sends: bool| sends.then(|| spec.block.to_string());
    if transactions {
        keys.push(("REQUEST_SIZE", Some(spec.block.to_string())));
        keys.push(("RESPONSE_SIZE", Some(spec.reply_bytes().to_string())));
        keys.push(("TRANSACTION_RATE", Some(format!("{throughput:.3}"))));
        keys.extend(latency(test));
    } else {
        keys.push(("LOCAL_SEND_SIZE", block(outbound)));
        keys.push(("REMOTE_SEND_SIZE", block(!outbound)));
    }
    let stream = [("LOCAL_CPU_UTIL", "LOCAL_SD"), ("REMOTE_CPU_UTIL", "REMOTE_SD")];
    // The local end of a reverse stream is its receiver.
    let names = if direction == "Receive" { [stream[1], stream[0]] } else { stream };
    for ((percent, demand), cpu) in names.into_iter().zip(figures.cpu.into_iter().flatten()) {
        keys.push((percent, Some(format!("{:.2}", cpu.percent))));
        keys.push((demand, Some(format!("{:.3}", cpu.demand_us))));
    }
    let sum = |count: fn(&Trial) -> u64| {
        let sum: u64 = test.trials.iter().map(|trial| count(trial)).sum();
        (sum > 0).then(|| sum.to_string())
    };
    keys.push(("LOCAL_BYTES_SENT", sum(|trial| trial.near.bytes_sent)));
    keys.push(("LOCAL_BYTES_RECVD", sum(|trial| trial.near.bytes_received)));
    keys.push(("LOCAL_SEND_CALLS", sum(|trial| trial.near.calls_sent)));
    keys.push(("LOCAL_RECV_CALLS", sum(|trial| trial.near.calls_received)));
    keys.push(("REMOTE_BYTES_SENT", sum(|trial| trial.far.bytes_sent)));
    keys.push(("REMOTE_BYTES_RECVD", sum(|trial| trial.far.bytes_received)));
    keys.push(("REMOTE_SEND_CALLS", sum(|trial| trial.far.calls_sent)));
    keys.push(("REMOTE_RECV_CALLS", sum(|trial| trial.far.calls_received)));
    let tos = |end: &model::EndOptions| Some(format!("{:#04x}", u32::from(end.dscp.unwrap_or(0)) << 2));
    keys.push(("LOCAL_SOCKET_TOS", tos(&spec.near)));
    keys.push(("REMOTE_SOCKET_TOS", tos(&spec.far)));
    let sockets = [test.near_socket(), test.far_socket()];
    let fact = |end: usize, fact: fn(&SocketFacts) -> Option<String>| sockets[end].and_then(fact);
    let size = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string());
    keys.push(("LSS_SIZE_END", sockets[0].and_then(|facts| size(facts.sndbuf))));
    keys.push(("LSR_SIZE_END", sockets[0].and_then(|facts| size(facts.rcvbuf))));
    keys.push(("RSS_SIZE_END", sockets[1].and_then(|facts| size(facts.sndbuf))));
    keys.push(("RSR_SIZE_END", sockets[1].and_then(|facts| size(facts.rcvbuf))));
    if !udp {
        keys.push(("TRANSPORT_MSS", fact(0, |facts| Some(facts.mss?.to_string()))));
        keys.push(("LOCAL_CONG_CONTROL", fact(0, |facts| facts.cc.clone())));
        keys.push(("REMOTE_CONG_CONTROL", fact(1, |facts| facts.cc.clone())));
        if !spec.is_point() {
            keys.push(("LOCAL_TRANSPORT_RETRANS", retransmissions(test, |trial| ends(trial, true).0)));
            keys.push(("REMOTE_TRANSPORT_RETRANS", retransmissions(test, |trial| ends(trial, false).0)));
        }
    }
    keys.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// Segments that an end retransmitted; `None` if a connection does not report them.
fn retransmissions(test: &Test<'_>, end: fn(&Trial) -> &model::EndTally) -> Option<String> {
    let flows: Vec<_> = test.trials.iter().flat_map(|trial| &end(trial).flows).collect();
    let sum = flows.iter().map(|flow| flow.socket.retransmits).sum::<Option<u64>>()?;
    (!flows.is_empty()).then(|| sum.to_string())
}

/// Percentiles of the round trips, in whole microseconds as in netperf, and their mean.
fn latency(test: &Test<'_>) -> Vec<(&'static str, Option<String>)> {
    let Some(all) = &test.outcome.histogram else { return Vec::new() };
    let whole = |ns: Option<u64>| ns.map(|ns| ((ns + 500) / 1000).to_string());
    let fine = |ns: Option<f64>| ns.map(|ns| format!("{:.2}", ns / 1000.0));
    vec![
        ("MIN_LATENCY", whole(all.min())),
        ("MEAN_LATENCY", fine(all.mean())),
        ("P50_LATENCY", whole(all.quantile(0.5))),
        ("P90_LATENCY", whole(all.quantile(0.9))),
        ("P99_LATENCY", whole(test.outcome.summary.rtt_p99_ns.map(|ns| ns as u64))),
        ("MAX_LATENCY", whole(all.max())),
    ]
}

#[cfg(test)]
mod tests {
    use crate::formats::peers::round_trip::{recorded, rendered};
    use crate::sample;
    use model::Interval;

    #[test]
    fn the_recorded_keys_have_the_recorded_values() {
        let (run, _) = recorded::netperf("TCP_STREAM");
        let text = rendered("netperf-k", &run);
        assert!(
            text.starts_with("OMNI Send TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 () port 0 AF_INET\n")
        );
        for line in ["THROUGHPUT=29694.77", "THROUGHPUT_UNITS=10^6bits/s", "ELAPSED_TIME=1.00", "LSS_SIZE_END=16384"] {
            assert!(text.lines().any(|own| own == line), "{line} in {text}");
        }
        assert!(!text.contains("LATENCY") && !text.contains("None"), "{text}");
    }

    #[test]
    fn interim_results_add_up_to_the_whole() {
        let run = sample::stream();
        let text = rendered("netperf-k", &run);
        let of = |key: &str| -> Vec<f64> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(key)?.split_once("]="));
            lines.map(|(_, value)| value.parse().unwrap()).collect()
        };
        let (values, lengths) = (of("NETPERF_INTERIM_RESULT["), of("NETPERF_INTERVAL["));
        let bits: f64 = values.iter().zip(&lengths).map(|(value, length)| value * 1e6 * length).sum();
        let received: u64 = run.outcomes[0].trials.iter().map(|trial| trial.far.bytes_received).sum();
        assert!((bits / 8.0 / received as f64 - 1.0).abs() < 1e-6, "{bits} {received}");
        let endings = of("NETPERF_ENDING[");
        assert!(endings.windows(2).all(|pair| pair[0] < pair[1]) && endings[0] > 1.7e9);
    }

    #[test]
    fn without_a_series_of_the_far_end_sent_bytes_are_used() {
        let mut run = sample::stream();
        let expected = rendered("netperf-k", &run);
        for trial in &mut run.outcomes[0].trials {
            let sent = |entry: Interval| Interval { bytes_sent: entry.bytes_received, bytes_received: 0, ..entry };
            trial.near.intervals = std::mem::take(&mut trial.far.intervals).into_iter().map(sent).collect();
        }
        assert!(expected.contains("NETPERF_INTERIM_RESULT[0]="), "{expected}");
        assert_eq!(rendered("netperf-k", &run), expected);
    }

    #[test]
    fn round_trips_have_their_latency_in_microseconds() {
        let text = rendered("netperf-k", &sample::rr());
        assert!(text.contains("THROUGHPUT_UNITS=Trans/s\n") && text.contains("P50_LATENCY=58\n"), "{text}");
    }
}
