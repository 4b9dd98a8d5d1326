//! Generated runs that resemble measured ones, for tests and for the gallery. All numbers follow from seeds.
#![allow(dead_code, reason = "the tests and the example each use their own part")]

mod checked;
mod curves;
mod parts;

use model::{
    Answer, Bound, BoundKind, Capture, Ceiling, Cell, Comparison, Cost, Direction, EndCost, EndTally, Ending, Estimate,
    FindingKind, FlowTally, Histogram, Interface, Outcome, Pattern, RttTally, Run, RunKind, Spec, SplitMix64, Stop,
    Summary, TcpSample, TimeSequence, Trial, Trust,
};

pub(crate) use checked::*;
pub(crate) use curves::*;
pub(crate) use parts::*;

/// 2026-11-21 20:37:58 UTC.
const STARTED: u64 = 1_795_293_478_000_000_000;
const MEGABIT: f64 = 1_048_576.0;

/// All kinds of runs that outputs must handle.
pub(crate) fn gallery() -> Vec<(&'static str, Vec<Run>)> {
    vec![
        ("curve", vec![curve()]),
        ("overlaid", overlaid()),
        ("jumps", vec![jumps()]),
        ("two-curves", vec![curve(), jumps()]),
        ("tiny", vec![tiny(1)]),
        ("tiny-two", vec![tiny(2)]),
        ("decades", vec![decades()]),
        ("long-names", long_names()),
        ("stream-curve", vec![stream_curve()]),
        ("mixed-curves", vec![curve(), stream_curve()]),
        ("stream", vec![stream()]),
        ("both", vec![both()]),
        ("check", vec![check()]),
        ("streams", vec![stream(), named(stream_at(4.1e9, 7), "with the old driver")]),
        ("pair", vec![pair()]),
        ("observed", vec![observed()]),
        ("planned", vec![planned()]),
        ("between-hosts", vec![between_hosts()]),
        ("between-hosts-many", vec![between_hosts_many()]),
        ("categories", vec![categories()]),
        ("routed", vec![routed()]),
        ("scheduled", vec![scheduled()]),
        ("captured", vec![captured()]),
        ("rr", vec![rr()]),
        ("rr-two", vec![rr(), named(rr_at(31_000.0, 9), "spinning")]),
        ("all-kinds", vec![curve(), stream(), rr()]),
        ("hostile", vec![hostile()]),
        ("broken", vec![broken()]),
        ("empty", vec![empty()]),
    ]
}

/// Samples differ, and are always the same.
pub(crate) struct Noise(SplitMix64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    fn uniform(&mut self) -> f64 {
        self.0.uniform()
    }

    /// About normal, mean 0, deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// A curve of the recorded rates of an `np.out` file.
pub(crate) fn netpipe_recorded(text: &str) -> Run {
    let mut run = empty_run("20261121-120000-0e70", RunKind::Curve);
    for (cell, line) in (0..).zip(text.lines()) {
        let mut fields = line.split_whitespace().filter_map(|field| field.parse::<f64>().ok());
        let (Some(block), Some(rate)) = (fields.next(), fields.next()) else { continue };
        let spec = Spec { block: block as u64, ..Spec::new("tcp", Pattern::Pingpong) };
        let summary = Summary { netpipe_bps: Some(rate * MEGABIT), trials: 3, ..Summary::default() };
        run.outcomes.push(Outcome {
            cell,
            spec: spec.into(),
            summary,
            estimate: None,
            histogram: None,
            trials: Vec::new(),
        });
    }
    run
}

/// A block-size curve of one-way streams.
pub(crate) fn stream_curve() -> Run {
    let mut run = empty_run("20261121-211000-51de", RunKind::Curve);
    let mut noise = Noise::new(21);
    for (cell, power) in (0..=20).enumerate() {
        let block = 1u64 << power;
        let mean = block as f64 * 8e9 / (350.0 + block as f64 * 8e9 / 52e9);
        let spec = Spec { block, ..Spec::new("tcp", Pattern::Stream) };
        let values: Vec<f64> = (0..6).map(|_| mean * (1.0 + 0.02 * noise.normal())).collect();
        let trials: Vec<Trial> = (0..)
            .zip(&values)
            .map(|(pass, bps)| stream_trial(cell as u32, pass, &spec, *bps, 0.2, &mut noise))
            .collect();
        run.outcomes.push(goodput_outcome(cell as u32, spec, trials, &values));
    }
    plan(&mut run);
    run
}

/// One stream, 8 trials of a second.
pub(crate) fn stream() -> Run {
    stream_at(9.41e9, 2)
}

pub(crate) fn stream_at(bps: f64, seed: u64) -> Run {
    let mut run = empty_run(&format!("20261121-2115{:02}-57{seed:02x}", seed % 60), RunKind::Stream);
    let mut noise = Noise::new(seed);
    let spec = Spec { block: 131_072, ..Spec::new("tcp", Pattern::Stream) };
    let values: Vec<f64> = (0..8).map(|_| bps * (1.0 + 0.008 * noise.normal())).collect();
    let trials = (0..).zip(&values).map(|(pass, bps)| stream_trial(0, pass, &spec, *bps, 1.03, &mut noise)).collect();
    run.outcomes.push(goodput_outcome(0, spec, trials, &values));
    plan(&mut run);
    run
}

/// A plan of two factors with two levels each.
pub(crate) fn planned() -> Run {
    let mut run = stream();
    run.header.id = "20261121-211500-9a17".into();
    run.header.kind = RunKind::Run;
    let factor = |name: &str, levels: [&str; 2]| model::Factor {
        name: name.into(),
        key: name.into(),
        levels: levels.map(str::to_owned).to_vec(),
        ..model::Factor::default()
    };
    let factors = vec![factor("block", ["8KiB", "128KiB"]), factor("sndbuf", ["64KiB", "256KiB"])];
    run.outcomes.clear();
    let mut cells = Vec::new();
    for (id, (block, sndbuf)) in (0..).zip([(0, 0), (0, 1), (1, 0), (1, 1)]) {
        let mut outcome = stream_at(6e9 + 1e9 * f64::from(id), u64::from(id) + 20).outcomes.remove(0);
        outcome.cell = id;
        outcome.spec.block = [8 << 10, 128 << 10][block];
        for trial in &mut outcome.trials {
            trial.cell = id;
        }
        let levels = [("block", &factors[0].levels[block]), ("sndbuf", &factors[1].levels[sndbuf])];
        let levels = levels.map(|(name, level)| (name.to_owned(), level.clone())).into();
        cells.push(Cell { levels, ..Cell::new(id, outcome.spec.clone()) });
        run.outcomes.push(outcome);
    }
    run.header.cells = cells;
    for pass in &mut run.passes {
        pass.round = Some(pass.index);
    }
    let question = Some("How large must the buffers be?".to_owned());
    run.header.plan = Some(Box::new(model::Plan { question, factors, ..model::Plan::default() }));
    run
}

/// A stream over two routers, of which one did not answer.
pub(crate) fn routed() -> Run {
    let mut run = stream();
    run.header.id = "20261121-214800-70b0".into();
    let hop = |hop, address: Option<&str>, rtt_ns| model::Hop {
        hop,
        address: address.map(str::to_owned),
        rtt_ns,
        ..model::Hop::default()
    };
    let route = |interface: &str, source: &str, mtu| model::Route {
        interface: Some(interface.into()),
        source: Some(source.into()),
        gateway: Some("192.0.2.1".into()),
        interface_mtu: Some(mtu),
        ..model::Route::default()
    };
    run.header.near.interfaces =
        vec![Interface { name: "eth0".into(), speed_mbps: Some(10_000), ..Interface::default() }];
    run.header.path_outbound = Some(model::Path {
        peer: "198.51.100.7".into(),
        route: Some(route("eth0", "192.0.2.9", 9_000)),
        mtu: Some(model::PathMtu { bytes: 1_500, method: "udp".into(), confirmed: true, ..model::PathMtu::default() }),
        ping: Some(model::Ping { median_ns: Some(20_500_000), ..model::Ping::default() }),
        hops: Some(vec![
            hop(1, Some("192.0.2.1"), Some(1_200_000)),
            hop(2, None, None),
            hop(3, Some("198.51.100.7"), Some(20_400_000)),
        ]),
        ..model::Path::default()
    });
    run.header.path_return = Some(model::Path {
        peer: "192.0.2.9".into(),
        route: Some(route("eth1", "198.51.100.7", 1_500)),
        ..model::Path::default()
    });
    run
}

/// Streams between each pair of three hosts, with one and four flows.
pub(crate) fn between_hosts() -> Run {
    between(&["a", "b", "c"])
}

/// The same between four hosts.
pub(crate) fn between_hosts_many() -> Run {
    between(&["a", "b", "c", "host-with-a-long-name"])
}

fn between(hosts: &[&str]) -> Run {
    let mut run = planned();
    run.header.id = "20261121-211700-9a18".into();
    let levels = ["1", "4"];
    let flows = model::Factor {
        name: "flows".into(),
        key: "flows".into(),
        levels: levels.map(str::to_owned).to_vec(),
        ..model::Factor::default()
    };
    let names: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    run.header.plan =
        Some(Box::new(model::Plan { factors: vec![flows], from: names.clone(), to: names, ..model::Plan::default() }));
    (run.header.cells, run.outcomes) = (Vec::new(), Vec::new());
    for (at, flows) in levels.iter().enumerate() {
        for (from, to) in hosts.iter().flat_map(|from| hosts.iter().map(move |to| (from, to))) {
            if from == to {
                continue;
            }
            let id = run.outcomes.len() as u32;
            // The last host is ten times slower to send.
            let bps = if Some(from) == hosts.last() { 0.3e9 } else { 3e9 } * (1.0 + at as f64 * 0.4);
            let mut outcome = stream_at(bps + 2e7 * f64::from(id), u64::from(id) + 40).outcomes.remove(0);
            outcome.cell = id;
            outcome.trials.iter_mut().for_each(|trial| trial.cell = id);
            let levels = [("flows", *flows), ("from", *from), ("to", *to)];
            let levels = levels.map(|(name, level)| (name.to_owned(), level.to_owned())).into();
            run.header.cells.push(Cell { levels, ..Cell::new(id, outcome.spec.clone()) });
            run.outcomes.push(outcome);
        }
    }
    run
}

/// A plan of a congestion control, which has no order, and eight sizes of a message.
pub(crate) fn categories() -> Run {
    let mut run = planned();
    run.header.id = "20261121-211800-9a19".into();
    let factor = |name: &str, levels: &[&str]| model::Factor {
        name: name.into(),
        key: name.into(),
        levels: levels.iter().map(|level| (*level).to_owned()).collect(),
        ..model::Factor::default()
    };
    let factors = vec![
        factor("stack", &["cubic", "bbr", "reno", "highspeed"]),
        factor("message", &["64", "256", "1024", "4096", "16384", "65536", "131072", "262144"]),
    ];
    (run.header.cells, run.outcomes) = (Vec::new(), Vec::new());
    for (at, stack) in factors[0].levels.iter().enumerate() {
        for (of, message) in factors[1].levels.iter().enumerate() {
            let id = run.outcomes.len() as u32;
            let bps = 1e8 * 2f64.powi(of as i32) * (1.0 + 0.15 * at as f64);
            let mut outcome = stream_at(bps, u64::from(id) + 80).outcomes.remove(0);
            outcome.cell = id;
            outcome.trials.iter_mut().for_each(|trial| trial.cell = id);
            let levels = [("stack", stack), ("message", message)];
            let levels = levels.map(|(name, level)| (name.to_owned(), level.clone())).into();
            run.header.cells.push(Cell { levels, ..Cell::new(id, outcome.spec.clone()) });
            run.outcomes.push(outcome);
        }
    }
    run.header.plan = Some(Box::new(model::Plan { factors, ..model::Plan::default() }));
    run
}

/// Two groups of flows at the same time, one with three quarters of the goodput.
pub(crate) fn groups() -> Run {
    let mut run = planned();
    run.header.id = "20261121-211850-9a21".into();
    run.header.kind = RunKind::Stream;
    let names = ["bulk", "voice"];
    let factor = model::Factor {
        name: model::Factor::GROUP.into(),
        key: model::Factor::GROUP.into(),
        levels: names.map(str::to_owned).to_vec(),
        together: true,
        ..model::Factor::default()
    };
    (run.header.cells, run.outcomes, run.passes) = (Vec::new(), Vec::new(), Vec::new());
    for (id, name) in (0..).zip(names) {
        let mut outcome = stream_at(if id == 0 { 6e9 } else { 2e9 }, 90).outcomes.remove(0);
        outcome.cell = id;
        for (round, trial) in (0..).zip(&mut outcome.trials) {
            let pass = 2 * round + id;
            (trial.cell, trial.pass) = (id, pass);
            run.passes.push(model::Pass { index: pass, round: Some(round), ..model::Pass::default() });
        }
        let levels = [(model::Factor::GROUP.to_owned(), name.to_owned())].into();
        run.header.cells.push(Cell { levels, ..Cell::new(id, outcome.spec.clone()) });
        run.outcomes.push(outcome);
    }
    run.header.plan = Some(Box::new(model::Plan { factors: vec![factor], ..model::Plan::default() }));
    run.findings = analysis::of_plan(&run.header, &run.outcomes, &run.passes, &[]);
    run
}

/// A plan that is repeated every three hours for a day.
pub(crate) fn scheduled() -> Run {
    let mut run = planned();
    run.header.id = "20261121-211900-9a20".into();
    const HOURS: u64 = 3_600_000_000_000;
    for (at, pass) in (0..).zip(&mut run.passes) {
        pass.started_unix_ns = Some(STARTED + at * 3 * HOURS);
    }
    if let Some(plan) = &mut run.header.plan {
        plan.schedule = Some(model::Every { every_ns: 3 * HOURS, for_ns: 24 * HOURS });
    }
    run
}

/// Both directions at once.
pub(crate) fn both() -> Run {
    let mut run = stream_at(7.2e9, 13);
    run.header.id = "20261121-212000-b07b".into();
    let mut noise = Noise::new(14);
    for outcome in &mut run.outcomes {
        outcome.spec.direction = Direction::Both;
        for trial in &mut outcome.trials {
            let returned = intervals(4.4e9, 1.03, &mut noise);
            trial.near.bytes_received = returned.iter().map(|interval| interval.bytes_received).sum();
            trial.near.intervals = returned;
        }
    }
    run
}

/// Two congestion controls compared by `thru ab`, with ceiling and cost.
pub(crate) fn pair() -> Run {
    let mut run = stream();
    run.header.id = "20261121-211500-ab12".into();
    run.header.kind = RunKind::Ab;
    run.header.command = ["thru", "ab", "--a", "--cc cubic", "--b", "--cc bbr", "beta"].map(str::to_owned).to_vec();
    let mut other = stream_at(9.41e9, 77).outcomes.remove(0);
    other.cell = 1;
    run.outcomes.push(other);
    for outcome in &mut run.outcomes {
        let line = "MTU 1500 on 10 Gbit/s";
        let window = Bound { kind: BoundKind::Window, bps: 25.2e9, reason: "window 3.00 MiB over 1.00 ms".into() };
        outcome.summary.ceiling =
            Some(Ceiling { bound_bps: 9.4148e9, kind: BoundKind::Line, reason: line.into(), others: vec![window] });
        let end = |process, cycles: Option<f64>| EndCost {
            process_s_per_gb: Some(process),
            host_s_per_gb: Some(process * 1.4),
            cycles_per_byte: cycles,
            host_resolution_ns: Some(10_000_000),
            cycles_missing: cycles
                .is_none()
                .then(|| "this machine has no cycle counter that the kernel can use".to_owned()),
            ..EndCost::default()
        };
        outcome.summary.cost = Some(Cost { near: end(0.21, Some(0.62)), far: Some(end(0.35, None)) }.into());
    }
    let mut found = finding(
        FindingKind::Difference,
        "B is not worse than A by more than 1.00 %: B's goodput differs by +0.12 % (95 % interval -0.78 % to +1.02 %) over 16 pairs.",
        Some(Estimate {
            statistic: "ratio of B to A".into(),
            unit: "ratio".into(),
            value: 1.0012,
            low: Some(0.9922),
            high: Some(1.0102),
            ..blank()
        }),
        None,
    );
    found.comparison = Some(Comparison {
        answer: Answer::NotWorse,
        tolerance: 0.01,
        higher_is_better: true,
        p_value: Some(0.7),
        adjusted_low: Some(0.992),
        adjusted_high: Some(1.0104),
        ratios: vec![1.0; 8],
    });
    run.findings.insert(0, found);
    run
}

/// A stream whose hosts were observed, with a busy core and a dropping qdisc at the near end.
pub(crate) fn observed() -> Run {
    let mut run = stream();
    run.passes.truncate(2);
    for pass in &mut run.passes {
        (pass.near, pass.far) = (busy_host(), idle_host());
    }
    run
}

/// Request/response with a tail.
pub(crate) fn rr() -> Run {
    rr_at(58_000.0, 3)
}

pub(crate) fn rr_at(median_ns: f64, seed: u64) -> Run {
    let mut run = empty_run(&format!("20261121-2125{:02}-1d{seed:02x}", seed % 60), RunKind::Rr);
    let mut noise = Noise::new(seed);
    let spec = Spec { block: 1, stop: Stop::TimeNs(1_000_000_000), ..Spec::new("tcp", Pattern::Rr) };
    let mut merged = Histogram::new();
    let mut trials = Vec::new();
    let mut values = Vec::new();
    for pass in 0..6 {
        let mut histogram = Histogram::new();
        for _ in 0..4_000 {
            let body = median_ns * (0.09 * noise.normal()).exp();
            let tail = if noise.uniform() < 0.003 { median_ns * 40.0 * noise.uniform().powi(3) } else { 0.0 };
            histogram.record((body + tail) as u64);
        }
        merged.merge(&histogram);
        let rate = 1e9 / histogram.mean().unwrap_or(1.0);
        values.push(rate);
        let near = EndTally {
            transactions: histogram.count(),
            rtt: RttTally::from_histogram(histogram, 1),
            ..EndTally::default()
        };
        trials.push(trial(0, pass, near, EndTally::default(), rate));
    }
    let summary = Summary {
        rtt_p50_ns: merged.quantile(0.5).map(|ns| ns as f64),
        rtt_p99_ns: merged.quantile(0.99).map(|ns| ns as f64),
        transactions_per_s: Some(mean(&values)),
        trials: values.len() as u32,
        trust: Some(Trust::High),
        ..Summary::default()
    };
    let estimate = Some(estimate("mean over trials of the transaction rate", "1/s", &values));
    run.outcomes.push(Outcome { cell: 0, spec: spec.into(), summary, estimate, histogram: Some(merged), trials });
    run.findings.push(finding(
        FindingKind::Latency,
        &format!("Half of the round trips take {} or less.", model::units::seconds(median_ns)),
        None,
        None,
    ));
    plan(&mut run);
    run
}

/// Texts that try to break out of every format.
pub(crate) fn hostile() -> Run {
    let evil = "</script><b>\"'`\u{1b}[31m\u{7}<img src=x onerror=alert(1)>]]>&amp;\n@x \\ $(touch /tmp/x) %s";
    let mut run = curve();
    run.header.id = "../../<evil>'\"id".into();
    run.header.name = Some(evil.into());
    run.header.kind = RunKind::Curve;
    run.header.target = Some(evil.into());
    run.header.command = vec!["thru".into(), "curve".into(), evil.into(), "it's".into()];
    run.header.near.hostname = Some(evil.into());
    run.header.near.sysctl.insert(evil.into(), evil.into());
    run.header.far.missing.push(evil.into());
    for outcome in &mut run.outcomes {
        outcome.spec.transport = evil.into();
    }
    run.findings.push(finding(FindingKind::Note, evil, None, None));
    run
}

/// Values that no axis can show, as in an imported or damaged document.
pub(crate) fn broken() -> Run {
    let mut run = curve();
    run.header.id = "20261121-213000-0bad".into();
    let bad =
        [Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY), None, Some(f64::MIN_POSITIVE), Some(f64::MAX)];
    for (outcome, rate) in run.outcomes.iter_mut().zip(bad.iter().cycle()).take(40) {
        outcome.summary.netpipe_bps = *rate;
        if let Some(estimate) = &mut outcome.estimate {
            estimate.low = rate.map(|rate| -rate);
            estimate.high = *rate;
        }
    }
    for finding in &mut run.findings {
        if let Some(estimate) = &mut finding.estimate {
            estimate.value = f64::NAN;
        }
    }
    run
}

/// A stream with its sender's TCP over time and its packets.
pub(crate) fn captured() -> Run {
    let mut run = stream();
    run.header.id = "20261121-214500-cab1".into();
    let reading = |at: u64| TcpSample {
        at_ns: at * 100_000_000,
        cwnd: 10 + (at * 7 % 40) as u32,
        ssthresh: (at > 3).then_some(20),
        rtt_ns: 2_000_000 + at * 10_000,
        min_rtt_ns: Some(1_900_000),
        delivery_bps: Some(9_400_000_000),
        pacing_bps: Some(1 << 45),
        retransmits: at / 4,
        ..TcpSample::default()
    };
    for trial in &mut run.outcomes[0].trials {
        let tcp = (0..=10).map(reading).collect();
        trial.near.flows = vec![FlowTally { bytes_sent: 1 << 30, tcp, ..FlowTally::default() }];
    }
    let sequence = TimeSequence {
        data: (0..3_000).map(|n| (n * 1_000, n * 1_448)).collect(),
        acks: (0..1_500).map(|n| (n * 2_000 + 500, n * 2_896)).collect(),
        retransmitted_at: (0..130).map(|n| (n * 9_000, n * 1_448)).collect(),
        retransmitted: 260,
        ..TimeSequence::default()
    };
    for pass in &mut run.passes {
        let file = Some("/tmp/thru-1795293478-0a0b0c-trial1-near.pcapng".to_owned());
        let packets = Capture { file, snaplen: 96, packets: 4_500, drops: Some(0), ..Capture::default() };
        pass.near.capture = Some(Capture { sequence: Some(sequence.clone()), ..packets });
        let missing = Some("this agent captures no packets: start it with `thru serve --allow-capture`".to_owned());
        pass.far.capture = Some(Capture { snaplen: 96, missing, ..Capture::default() });
    }
    run
}

/// A run without an outcome.
pub(crate) fn empty() -> Run {
    let mut run = empty_run("20261121-213500-e000", RunKind::Stream);
    run.header.cells = vec![Cell::new(0, Spec::new("tcp", Pattern::Stream))];
    run.ending = Some(Ending {
        how: "failed".into(),
        error: Some("connecting to beta:5210: refused".into()),
        duration_ns: 12_000_000,
        ..Ending::default()
    });
    run
}

/// What limited an outcome, in these words.
/// A link that limits for the reason `said`.
pub(crate) fn why(said: &str) -> model::Why {
    let (limiter, grade) = (model::LimiterKind::Link, model::Grade::Strong);
    let evidence =
        model::Evidence { of: limiter, rule: "bottleneck".into(), statement: said.into(), grade, share: None };
    model::Why {
        limiter,
        grade: Some(grade),
        statement: text::say!("link rate (strong): {said}; likely also sender CPU: 98 % of the time"),
        parts: Vec::new(),
        evidence: vec![evidence],
        also: Vec::new(),
        remedies: Vec::new(),
        losses: None,
        notes: Vec::new(),
        missing: Vec::new(),
    }
}

pub(crate) fn named(mut run: Run, name: &str) -> Run {
    run.header.name = Some(name.into());
    run
}
