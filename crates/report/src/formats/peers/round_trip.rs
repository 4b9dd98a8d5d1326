//! Tests: recorded outputs are reproduced, and written outputs are read back by this project's importers.

use model::{Direction, Run};

use crate::{View, format, sample};

/// A run as `name`.
pub(super) fn rendered(name: &str, run: &Run) -> String {
    let form = format(name).unwrap();
    let pieces = (form.render)(&View::new(std::slice::from_ref(run))).unwrap();
    assert_eq!(pieces.len(), 1);
    String::from_utf8(pieces.into_iter().next().unwrap().bytes).unwrap()
}

/// The run with CPU time in each trial.
pub(super) fn with_cpu(mut run: Run) -> Run {
    for trial in &mut run.outcomes[0].trials {
        for (end, process_ns) in [(&mut trial.near, 150_000_000), (&mut trial.far, 310_000_000)] {
            end.spent = Some(model::Spent { process_ns, ..model::Spent::default() });
        }
    }
    run
}

/// Runs with the counts of recorded outputs.
pub(super) mod recorded {
    use model::{
        DatagramTally, Direction, EndTally, Estimate, FlowTally, Interval, Outcome, Pattern, Run, RunKind, SendBy,
        SocketFacts, Spec, Summary, TcpSample, Trial,
    };

    use crate::sample;

    const SECOND: u64 = 1_000_000_000;

    /// The recorded outputs by name.
    const RECORDED: &[(&str, &str)] = &[
        ("iperf312_tcp", include_str!("../../../testdata/iperf312_tcp.txt")),
        ("iperf312_reverse", include_str!("../../../testdata/iperf312_reverse.txt")),
        ("iperf312_udp", include_str!("../../../testdata/iperf312_udp.txt")),
        ("iperf312_both", include_str!("../../../testdata/iperf312_both.txt")),
        ("iperf312_two-flows", include_str!("../../../testdata/iperf312_two-flows.txt")),
        ("netperf27_TCP_STREAM", include_str!("../../../testdata/netperf27_TCP_STREAM.txt")),
        ("netperf27_TCP_MAERTS", include_str!("../../../testdata/netperf27_TCP_MAERTS.txt")),
        ("netperf27_TCP_SENDFILE", include_str!("../../../testdata/netperf27_TCP_SENDFILE.txt")),
        ("netperf27_UDP_STREAM", include_str!("../../../testdata/netperf27_UDP_STREAM.txt")),
        ("netperf27_TCP_RR", include_str!("../../../testdata/netperf27_TCP_RR.txt")),
        ("netperf27_TCP_CRR", include_str!("../../../testdata/netperf27_TCP_CRR.txt")),
        ("netperf27_UDP_RR", include_str!("../../../testdata/netperf27_UDP_RR.txt")),
    ];

    fn recording(name: &str) -> String {
        RECORDED.iter().find(|(own, _)| *own == name).unwrap().1.to_owned()
    }

    fn one(spec: Spec, near: EndTally, far: EndTally, value: f64) -> Run {
        let mut run = sample::stream();
        run.header.target = Some("127.0.0.1:6280".into());
        run.header.kind = if spec.pattern.is_transactions() { RunKind::Rr } else { RunKind::Stream };
        run.passes.clear();
        let mut trial: Trial = run.outcomes[0].trials[0].clone();
        (trial.near, trial.far, trial.value) = (near.into(), far.into(), Some(value));
        let estimate =
            run.outcomes[0].estimate.clone().map(|estimate| Estimate { value, low: None, high: None, ..estimate });
        let summary = Summary { goodput_bps: Some(value), ..Summary::default() };
        run.outcomes =
            vec![Outcome { cell: 0, spec: spec.into(), summary, estimate, histogram: None, trials: vec![trial] }];
        run
    }

    /// The sockets of the recording's `[  5] local A port P connected to B port Q`.
    fn sockets(text: &str) -> Vec<SocketFacts> {
        let pairs = text.lines().filter(|line| line.contains(" connected to ")).map(|line| {
            let words: Vec<&str> = line.split("local ").nth(1).unwrap().split_whitespace().collect();
            let [local, _, from, _, _, peer, _, to] = words[..] else { panic!("{line}") };
            (format!("{local}:{from}"), format!("{peer}:{to}"))
        });
        let facts = |(local, peer)| SocketFacts {
            local: Some(local),
            peer: Some(peer),
            retransmits: Some(0),
            ..SocketFacts::default()
        };
        pairs.map(facts).collect()
    }

    fn series(sent: &[u64], received: &[u64]) -> Vec<Interval> {
        let of = |all: &[u64], at: u64| all.get(at as usize).copied().unwrap_or(0);
        let length = sent.len().max(received.len()) as u64;
        let entry = |at| Interval {
            start_ns: at * SECOND,
            end_ns: (at + 1) * SECOND,
            bytes_sent: of(sent, at),
            bytes_received: of(received, at),
            transactions: 0,
        };
        (0..length).map(entry).collect()
    }

    /// A window of 1.12 MBytes in each second.
    fn tcp() -> Vec<TcpSample> {
        let sample = |at: u64| TcpSample { at_ns: at * SECOND, cwnd: 18, mss: 65_483, ..TcpSample::default() };
        (1..=2).map(sample).collect()
    }

    /// A recorded text of iperf3 3.12 and the run with its counts, which have no jitter.
    pub(in super::super) fn iperf3(name: &str) -> (Run, String) {
        let text = recording(&format!("iperf312_{name}"));
        let mut sockets = sockets(&text).into_iter();
        let (block, whole) = (131_072, 20 * 131_072);
        let mut flow = |bytes_sent, bytes_received| FlowTally {
            bytes_sent,
            bytes_received,
            socket: sockets.next().unwrap(),
            tcp: if bytes_sent > 0 { tcp() } else { Vec::new() },
            ..FlowTally::default()
        };
        let far_flow = |number, bytes_sent, bytes_received| FlowTally {
            flow: number,
            bytes_sent,
            bytes_received,
            socket: SocketFacts { retransmits: Some(0), ..SocketFacts::default() },
            ..FlowTally::default()
        };
        let mut spec = Spec { block, interval_ns: SECOND, ..Spec::new("tcp", Pattern::Stream) };
        let (mut near, mut far) = (EndTally::default(), EndTally::default());
        let sender = |end: &mut EndTally, bytes, ns| (end.bytes_sent, end.sending_ns) = (bytes, ns);
        let receiver = |end: &mut EndTally, bytes, ns| (end.bytes_received, end.receiving_ns) = (bytes, ns);
        match name {
            "tcp" => {
                let sent = [20 * block, 19 * block];
                sender(&mut near, 39 * block, 2 * SECOND);
                receiver(&mut far, 39 * block, 2 * SECOND);
                (near.intervals, near.flows) = (series(&sent, &[]), vec![flow(39 * block, 0)]);
                far.flows = vec![far_flow(0, 0, 39 * block)];
            }
            "reverse" => {
                spec.direction = Direction::Reverse;
                sender(&mut far, whole, SECOND);
                receiver(&mut near, whole, SECOND);
                (near.intervals, near.flows) = (series(&[], &[whole]), vec![flow(0, whole)]);
                far.flows = vec![far_flow(0, whole, 0)];
            }
            "udp" => {
                spec = Spec { block: 1472, interval_ns: SECOND, ..Spec::new("udp", Pattern::Stream) };
                sender(&mut near, 425 * 1472, SECOND);
                receiver(&mut far, 425 * 1472, SECOND);
                near.datagrams = Some(DatagramTally { sent: 425, ..DatagramTally::default() });
                far.datagrams = Some(DatagramTally { received: 425, ..DatagramTally::default() });
                (near.intervals, near.flows) = (series(&[425 * 1472], &[]), vec![flow(425 * 1472, 0)]);
            }
            "both" => {
                spec.direction = Direction::Both;
                for end in [&mut near, &mut far] {
                    sender(end, whole, SECOND);
                    receiver(end, whole, SECOND);
                }
                (near.intervals, near.flows) = (series(&[whole], &[whole]), vec![flow(whole, 0), flow(0, whole)]);
                far.flows = vec![far_flow(0, 0, whole), far_flow(0, whole, 0)];
            }
            _ => {
                spec.flows = 2;
                sender(&mut near, 2 * whole, SECOND);
                receiver(&mut far, 2 * whole, SECOND);
                near.intervals = series(&[2 * whole], &[]);
                near.flows = vec![flow(whole, 0), FlowTally { flow: 1, ..flow(whole, 0) }];
                far.flows = vec![far_flow(0, 0, whole), far_flow(1, 0, whole)];
            }
        }
        let text = text.replace("0.014 ms", "0.000 ms");
        let bytes = if spec.direction == Direction::Reverse { near.bytes_received } else { far.bytes_received };
        let ns = if spec.direction == Direction::Reverse { near.receiving_ns } else { far.receiving_ns };
        let directions = if spec.direction == Direction::Both { 2.0 } else { 1.0 };
        (one(spec, near, far, directions * bytes as f64 * 8e9 / ns as f64), text)
    }

    /// A recorded table of netperf 2.7.1 and the run that has its figures.
    pub(in super::super) fn netperf(name: &str) -> (Run, String) {
        let facts = |receive, send| {
            let socket = SocketFacts { rcvbuf: Some(receive), sndbuf: Some(send), ..SocketFacts::default() };
            vec![FlowTally { socket, ..FlowTally::default() }]
        };
        let end = |receive, send| EndTally {
            flows: facts(receive, send),
            sending_ns: SECOND,
            receiving_ns: SECOND,
            bytes_sent: 1,
            bytes_received: 1,
            ..EndTally::default()
        };
        let (transport, pattern, block, value) = match name {
            "TCP_STREAM" => ("tcp", Pattern::Stream, 16_384, 29_694.77e6),
            "TCP_MAERTS" => ("tcp", Pattern::Stream, 16_384, 30_687.91e6),
            "TCP_SENDFILE" => ("tcp", Pattern::Stream, 8_192, 25_081.12e6),
            "UDP_STREAM" => ("udp", Pattern::Stream, 65_507, 59_010.06e6),
            "TCP_RR" => ("tcp", Pattern::Rr, 1, 48_719.35),
            "TCP_CRR" => ("tcp", Pattern::Crr, 1, 13_093.62),
            _ => ("udp", Pattern::Rr, 1, 52_465.38),
        };
        let mut spec = Spec { block, ..Spec::new(transport, pattern) };
        let (mut near, mut far) = (end(131_072, 16_384), end(131_072, 16_384));
        match name {
            "TCP_MAERTS" => spec.direction = Direction::Reverse,
            "TCP_SENDFILE" => {
                spec.engine.send = SendBy::Sendfile;
                near = end(131_072, 131_072);
            }
            "UDP_STREAM" => {
                (near, far) = (end(212_992, 212_992), end(212_992, 212_992));
                near.datagrams = Some(DatagramTally { sent: 112_831, ..DatagramTally::default() });
                far.datagrams = Some(DatagramTally { received: 112_609, ..DatagramTally::default() });
            }
            "UDP_RR" => (near, far) = (end(212_992, 212_992), end(212_992, 212_992)),
            _ => {}
        }
        let mut run = one(spec, near, far, value);
        run.outcomes[0].summary.sender_bps = Some(59_126.39e6);
        (run, recording(&format!("netperf27_{name}")))
    }
}

/// What is written in the form is read back: the values of its measurements.
fn read_back(form: &str, run: &Run) -> Vec<(f64, model::Shared<model::Spec>)> {
    let text = rendered(form, run);
    let reading = import::read(text.as_bytes(), None).unwrap();
    assert_eq!(reading.refused, [], "{form}:\n{text}");
    let rows = reading.imported.into_iter().flat_map(|imported| imported.rows);
    rows.map(|row| (row.trial.value.unwrap(), row.spec)).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-5
}

/// Streams with the counts of a trial's whole time in both ends.
fn streams() -> Vec<Run> {
    let mut reversed = sample::stream();
    for trial in &mut reversed.outcomes[0].trials {
        std::mem::swap(&mut trial.near, &mut trial.far);
    }
    reversed.outcomes[0].spec.direction = Direction::Reverse;
    vec![sample::stream(), reversed]
}

#[test]
fn iperf3s_json_is_read_back_to_the_same_rate() {
    for run in
        streams().into_iter().chain(["tcp", "reverse", "udp", "both", "two-flows"].map(|name| recorded::iperf3(name).0))
    {
        let all = read_back("iperf3-json", &run);
        let [(value, spec)] = &all[..] else { panic!("{}", all.len()) };
        let (mut bytes, mut ns) = (0, 0);
        for trial in &run.outcomes[0].trials {
            let receiver = if spec.direction == Direction::Reverse { &trial.near } else { &trial.far };
            (bytes, ns) = (bytes + receiver.bytes_received, ns + receiver.receiving_ns);
        }
        let directions = if spec.direction == Direction::Both { 2.0 } else { 1.0 };
        assert!(near(*value, directions * bytes as f64 * 8e9 / ns as f64), "{value} of {bytes} in {ns}");
        let requested = &run.outcomes[0].spec;
        assert_eq!(
            (&spec.transport, spec.block, spec.flows, spec.direction),
            (&requested.transport, requested.block, requested.flows, requested.direction)
        );
    }
}

#[test]
fn netperfs_tables_and_keys_are_read_back_to_the_same_value() {
    let names = ["TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE", "UDP_STREAM", "TCP_RR", "TCP_CRR", "UDP_RR"];
    for name in names {
        let (run, _) = recorded::netperf(name);
        let outcome = &run.outcomes[0];
        for form in ["netperf", "netperf-k"] {
            let all = read_back(form, &run);
            let [(value, spec)] = &all[..] else { panic!("{name} as {form}: {}", all.len()) };
            assert!(near(*value, outcome.estimate.as_ref().unwrap().value), "{name} as {form}: {value}");
            assert_eq!(
                (&spec.transport, spec.direction),
                (&outcome.spec.transport, outcome.spec.direction),
                "{name} as {form}"
            );
            if !(form == "netperf-k" && name == "TCP_CRR") {
                assert_eq!(
                    (&spec.pattern, spec.block),
                    (&outcome.spec.pattern, outcome.spec.block),
                    "{name} as {form}"
                );
            }
        }
    }
}

#[test]
fn nttcps_lines_and_rapids_report_are_read_back_trial_by_trial() {
    for run in streams() {
        let trials = &run.outcomes[0].trials;
        let values = read_back("rapid", &run);
        assert_eq!(values.len(), trials.len());
        for (trial, (value, _)) in trials.iter().zip(&values) {
            let receiver = if trial.far.bytes_received > 0 { &trial.far } else { &trial.near };
            assert!(near(*value, receiver.bytes_received as f64 * 8e9 / receiver.receiving_ns as f64), "{value}");
        }
    }
    let mut run = with_cpu(sample::stream());
    for trial in &mut run.outcomes[0].trials {
        // nttcp sends whole blocks, and its reader checks that.
        let whole = trial.far.bytes_received / 131_072 * 131_072;
        (trial.near.bytes_sent, trial.far.bytes_received) = (whole, whole);
    }
    let values = read_back("nttcp", &run);
    assert_eq!(values.len(), run.outcomes[0].trials.len());
    for (trial, (value, spec)) in run.outcomes[0].trials.iter().zip(&values) {
        assert!(near(*value, trial.far.bytes_received as f64 * 8e9 / trial.far.receiving_ns as f64), "{value}");
        assert_eq!(spec.block, 131_072);
    }
}

#[test]
fn what_a_program_cannot_express_is_refused_by_name() {
    for (form, run) in [
        ("iperf3", sample::rr()),
        ("iperf3-json", sample::curve()),
        ("netperf", sample::both()),
        ("nttcp", sample::both()),
        ("rapid", recorded::iperf3("udp").0),
    ] {
        let error = (format(form).unwrap().render)(&View::new(std::slice::from_ref(&run))).unwrap_err().to_string();
        assert!(error.contains(form) && error.contains("no form for") && error.contains(&run.header.id), "{error}");
    }
    let error = (format("nttcp").unwrap().render)(&View::new(&[sample::stream()])).unwrap_err().to_string();
    assert!(error.contains("CPU time was not measured"), "{error}");
    let mut imported = sample::stream();
    for trial in &mut imported.outcomes[0].trials {
        (trial.near.bytes_sent, trial.far.bytes_received) = (0, 0);
    }
    let error = (format("iperf3").unwrap().render)(&View::new(&[imported])).unwrap_err().to_string();
    assert!(error.contains("a rate without a count of bytes"), "{error}");
}
