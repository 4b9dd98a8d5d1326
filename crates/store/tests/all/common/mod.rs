//! Runs to store: fixed ones, and arbitrary ones for property tests.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;

use model::{
    Cell, CoreUse, CpuUse, DatagramTally, EndPass, EndTally, Ending, Estimate, Event, EventSink, Finding, FindingKind,
    FlowTally, Histogram, Interface, Interval, Inventory, Ledger, Outcome, Pass, Pattern, RttTally, Run, RunHeader,
    RunKind, SocketFacts, Spec, Stopping, Summary, Tool, Trial, Trust, Verdict,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use store::{Loaded, Store};

pub(crate) fn header(id: &str) -> RunHeader {
    RunHeader {
        id: id.into(),
        name: None,
        kind: RunKind::Stream,
        command: vec!["thru".into(), "stream".into(), "10.0.0.2".into()],
        started_unix_ns: 1_795_293_478_000_000_000,
        tool: Tool::default(),
        target: Some("10.0.0.2".into()),
        stopping: Stopping::default(),
        cells: vec![cell(0, "tcp")],
        near: Inventory::default(),
        far: Inventory::default(),
        ..RunHeader::default()
    }
}

pub(crate) fn cell(id: u32, transport: &str) -> Cell {
    Cell::new(id, Spec::new(transport, Pattern::Stream))
}

/// A trial with an interval series, as a stream has; about 1 KiB of JSON.
pub(crate) fn trial(cell: u32, pass: u32, place: u32) -> Trial {
    let interval = |n: u64| Interval { start_ns: n, end_ns: n + 1, bytes_sent: 5, bytes_received: 7, transactions: 0 };
    let end =
        EndTally { bytes_sent: u64::from(place), intervals: (0..4).map(interval).collect(), ..EndTally::default() };
    let (near, far) = (end.clone(), end);
    Trial {
        cell,
        pass,
        position: place,
        near: near.into(),
        far: far.into(),
        ledger: Ledger::default(),
        value: Some(0.1 + f64::from(place)),
        verdicts: vec![],
    }
}

pub(crate) fn pass(index: u32) -> Pass {
    Pass { index, ..Pass::default() }
}

pub(crate) fn estimate(value: f64) -> Estimate {
    let (statistic, unit, method) = ("mean of trials".into(), "bit/s".into(), "Student t".into());
    Estimate { statistic, unit, value, low: Some(value - 1.0), high: None, confidence: 0.95, method, n: 6 }
}

pub(crate) fn outcome(cell: u32, trials: Vec<Trial>) -> Outcome {
    let summary = Summary { trust: Some(Trust::Fair), ..Summary::default() };
    let spec = Spec::new("tcp", Pattern::Stream);
    Outcome { cell, spec: spec.into(), summary, estimate: Some(estimate(9.5e8)), histogram: None, trials }
}

pub(crate) fn ending(how: &str) -> Ending {
    Ending { how: how.into(), error: None, duration_ns: 12_345, ..Ending::default() }
}

/// Records `events` through the trait, as the coordinator does.
pub(crate) fn record(store: &Store, events: &[Event]) {
    let mut recorder = store.recorder().unwrap();
    for event in events {
        recorder.event(event).unwrap();
    }
}

/// What a store must give back for `events`, told without the store's code.
pub(crate) fn expected(events: &[Event]) -> Loaded {
    let Some(Event::Run(header)) = events.first() else { panic!("a run starts with its header") };
    let mut run = Run::new(header.clone());
    let mut orphans: Vec<Trial> = Vec::new();
    for event in events {
        match event {
            Event::Cells { cells } => run.header.cells.extend(cells.iter().cloned()),
            Event::Trial(trial) => orphans.push(trial.clone()),
            Event::Pass(pass) => run.passes.push(pass.clone()),
            Event::Retest(retest) => run.retests.push(retest.clone()),
            Event::Advice(advice) => run.advice = Some(advice.clone()),
            Event::Outcome(outcome) => {
                orphans.retain(|trial| trial.cell != outcome.cell);
                run.outcomes.push(outcome.clone());
            }
            Event::Finding(finding) => run.findings.push(finding.clone()),
            Event::End(ending) => run.ending = Some(ending.clone()),
            _ => {}
        }
    }
    Loaded { run, orphans, damaged: Vec::new() }
}

/// Runs the test `name` of `module` (`module_path!()`) in a process of its own, with `dir` under `THROUGHLINE_STORE_TEST`,
/// behind `wrapper` (a program and its arguments).
pub(crate) fn child(wrapper: &[&str], module: &str, name: &str, dir: &Path) -> std::process::Command {
    // The harness leaves out the name of the binary.
    let (_, module) = module.split_once("::").unwrap();
    let this = std::env::current_exe().unwrap();
    let mut command = match wrapper {
        [] => std::process::Command::new(this),
        [program, arguments @ ..] => {
            let mut command = std::process::Command::new(program);
            command.args(arguments).arg(this);
            command
        }
    };
    command.args(["--exact", &format!("{module}::{name}"), "--nocapture"]).env("THROUGHLINE_STORE_TEST", dir);
    command
}

/// The directory that [`child`] was given, `None` in the process that `cargo test` started.
pub(crate) fn in_child() -> Option<std::path::PathBuf> {
    std::env::var_os("THROUGHLINE_STORE_TEST").map(Into::into)
}

// ---- arbitrary values ----

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO, 0.0..1e12f64]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,12}", any::<String>().prop_map(|text| text.chars().take(8).collect())]
}

fn verdicts() -> impl Strategy<Value = Vec<Verdict>> {
    vec(prop_oneof![Just(Verdict::Stalled), Just(Verdict::Loss), Just(Verdict::SameHost)], 0..3)
}

fn histogram() -> impl Strategy<Value = Histogram> {
    vec(prop_oneof![1u64..2 * Histogram::MAX_NS, Just(u64::MAX), 0u64..2000], 1..20).prop_map(|values| {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    })
}

fn rtt() -> impl Strategy<Value = RttTally> {
    (histogram(), 1u64..100, any::<bool>()).prop_map(|(histogram, batch, keep)| {
        let mut rtt = RttTally::from_histogram(histogram, batch).unwrap();
        rtt.histogram = rtt.histogram.filter(|_| keep);
        rtt
    })
}

fn flow() -> impl Strategy<Value = FlowTally> {
    (any::<[u64; 3]>(), option::of(text()), any::<Option<u64>>(), any::<Option<bool>>(), any::<Option<(u8, u8)>>())
        .prop_map(|([bytes_sent, bytes_received, transactions], peer, sndbuf, nodelay, wscale)| {
            let negotiated = if wscale.is_some() { vec!["wscale".into()] } else { vec![] };
            let socket = SocketFacts { peer, sndbuf, nodelay, wscale, negotiated, ..SocketFacts::default() };
            FlowTally { flow: 3, bytes_sent, bytes_received, transactions, socket, ..FlowTally::default() }
        })
}

fn end_tally() -> impl Strategy<Value = EndTally> {
    let interval = any::<[u64; 5]>().prop_map(|[start_ns, end_ns, bytes_sent, bytes_received, transactions]| {
        Interval { start_ns, end_ns, bytes_sent, bytes_received, transactions }
    });
    let datagrams = any::<[u64; 3]>().prop_map(|[sent, received, reordered]| DatagramTally {
        sent,
        received,
        reordered,
        ..DatagramTally::default()
    });
    (any::<[u64; 4]>(), option::of(rtt()), option::of(datagrams), vec(interval, 0..3), vec(flow(), 0..3), any::<bool>())
        .prop_map(
            |([bytes_sent, bytes_received, sending_ns, bytes_unsent], rtt, datagrams, intervals, flows, stalled)| {
                let rest = EndTally::default();
                EndTally {
                    bytes_sent,
                    bytes_received,
                    sending_ns,
                    bytes_unsent,
                    rtt,
                    datagrams,
                    intervals,
                    flows,
                    stalled,
                    ..rest
                }
            },
        )
}

fn any_trial() -> impl Strategy<Value = Trial> {
    (0u32..3, any::<(u32, u32)>(), end_tally(), end_tally(), any::<[u64; 4]>(), option::of(number()), verdicts())
        .prop_map(|(cell, (pass, place), near, far, [sent, received, lost, in_flight], value, verdicts)| {
            let ledger = Ledger { sent, received, lost, in_flight, balanced: sent == received };
            Trial { cell, pass, position: place, near: near.into(), far: far.into(), ledger, value, verdicts }
        })
}

fn any_pass() -> impl Strategy<Value = Pass> {
    (any::<u32>(), any::<[u64; 6]>()).prop_map(
        |(index, [started_ns, duration_ns, setup_ns, user_ns, idle_ns, window_ns])| {
            let core = CoreUse { core: 1, user_ns, idle_ns, ..CoreUse::default() };
            let cpu = Some(CpuUse { window_ns, resolution_ns: 4_000_000, cores: vec![core] });
            Pass {
                index,
                started_ns,
                duration_ns,
                near: EndPass { cpu, setup_ns, ..EndPass::default() },
                far: EndPass::default(),
                overlapped_by: 2,
                ..Pass::default()
            }
        },
    )
}

fn any_estimate() -> impl Strategy<Value = Estimate> {
    (text(), number(), option::of(number()), option::of(number()), any::<u32>()).prop_map(
        |(statistic, value, low, high, n)| {
            let (unit, method) = ("bit/s".into(), "Student t".into());
            Estimate { statistic, unit, value, low, high, confidence: 0.95, method, n }
        },
    )
}

fn any_finding() -> impl Strategy<Value = Finding> {
    let kind = prop_oneof![Just(FindingKind::Peak), Just(FindingKind::Latency), Just(FindingKind::Note)];
    (kind, text(), option::of(any_estimate()), any::<Option<u64>>(), vec(any::<u32>(), 0..3)).prop_map(
        |(kind, statement, estimate, block, cells)| Finding {
            kind,
            statement: statement.into(),
            estimate,
            block,
            cells,
            comparison: None,
        },
    )
}

fn any_inventory() -> impl Strategy<Value = Inventory> {
    (option::of(text()), option::of([number(), number(), number()]), vec((text(), text()), 0..3), vec(text(), 0..3))
        .prop_map(|(hostname, load_average, sysctl, addresses)| {
            let interface = Interface { name: "eth0".into(), mtu: Some(1500), addresses, ..Interface::default() };
            let (sysctl, interfaces) = (sysctl.into_iter().collect(), vec![interface]);
            Inventory { hostname, load_average, sysctl, interfaces, ..Inventory::default() }
        })
}

fn any_header() -> impl Strategy<Value = RunHeader> {
    let words = (
        text(),
        option::of(text()),
        prop::sample::select(RunKind::ALL.to_vec()),
        vec(text(), 0..4),
        option::of(text()),
    );
    (words, any::<u64>(), number(), any::<u64>(), any_inventory(), any_inventory()).prop_map(
        |((id, name, kind, command, target), started_unix_ns, near_clock_ns, seed, near, far)| {
            let tool = Tool { near_clock_ns, ..Tool::default() };
            let stopping = Stopping { seed, ..Stopping::default() };
            let cells = vec![cell(0, "tcp")];
            RunHeader {
                id,
                name,
                kind,
                command,
                started_unix_ns,
                tool,
                target,
                stopping,
                cells,
                near,
                far,
                ..RunHeader::default()
            }
        },
    )
}

fn any_summary() -> impl Strategy<Value = Summary> {
    (option::of(number()), option::of(number()), any::<[Option<u64>; 4]>(), verdicts()).prop_map(
        |(goodput_bps, rtt_p50_ns, [bytes_sent, bytes_received, calls_sent, duration_ns], verdicts)| Summary {
            goodput_bps,
            rtt_p50_ns,
            bytes_sent,
            bytes_received,
            calls_sent,
            duration_ns,
            verdicts,
            trust: Some(Trust::High),
            ..Summary::default()
        },
    )
}

/// All events of an arbitrary run of three cells. The outcome of cell 1 holds other trials than were reported, as where a
/// curve strips their histograms.
pub(crate) fn any_run() -> impl Strategy<Value = Vec<Event>> {
    let passes = vec((vec(any_trial(), 0..5), any_pass()), 0..3);
    let outcomes = vec((any_summary(), option::of(any_estimate()), option::of(histogram())), 3);
    let ending = (text(), option::of(text()), any::<u64>());
    (any_header(), passes, outcomes, vec(any_finding(), 0..3), ending).prop_map(
        |(header, passes, outcomes, findings, (how, error, duration_ns))| {
            let mut events = vec![Event::Run(header), Event::Cells { cells: vec![cell(1, "udp"), cell(2, "tcp")] }];
            let mut trials = Vec::new();
            for (of_pass, pass) in passes {
                trials.extend(of_pass.iter().cloned());
                events.extend(of_pass.into_iter().map(Event::Trial));
                events.push(Event::Pass(pass));
            }
            for (cell, (summary, estimate, histogram)) in (0..).zip(outcomes) {
                let mut trials: Vec<Trial> = trials.iter().filter(|trial| trial.cell == cell).cloned().collect();
                if cell == 1 {
                    trials.iter_mut().for_each(|trial| trial.near.rtt = None);
                }
                let spec = Spec::new("tcp", Pattern::Pingpong);
                events.push(Event::Outcome(Outcome { cell, spec: spec.into(), summary, estimate, histogram, trials }));
            }
            events.extend(findings.into_iter().map(Event::Finding));
            events.push(Event::End(Ending { how, error: error.map(Into::into), duration_ns, ..Ending::default() }));
            events
        },
    )
}
