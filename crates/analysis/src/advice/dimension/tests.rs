use super::*;
use crate::outcome::{Context, outcome};
use model::{Cell, EndTally, FlowTally, Ledger, Pattern, SocketFacts, Stopping, Trial, Why};

/// Pilot trials of 8 Mbit/s over 20 ms: 20 kB in flight.
fn pilot(spec: &Spec) -> Outcome {
    let socket = SocketFacts {
        min_rtt_ns: Some(20_000_000),
        cc: Some("cubic".into()),
        local: Some("10.0.0.1:5000".into()),
        ..SocketFacts::default()
    };
    let flows = vec![FlowTally { socket, ..FlowTally::default() }];
    let near = EndTally { flows: flows.clone(), ..EndTally::default() };
    let far = EndTally { flows, bytes_received: 1_000_000, receiving_ns: 1_000_000_000, ..EndTally::default() };
    let trial = Trial {
        cell: 0,
        pass: 0,
        position: 0,
        near: near.into(),
        far: far.into(),
        ledger: Ledger::default(),
        value: Some(8e6),
        verdicts: Vec::new(),
    };
    let cell = Cell::new(0, spec.clone());
    outcome(&cell, vec![trial], &Stopping::default(), Context::default())
}

fn host() -> Inventory {
    let interface = Interface {
        name: "eth0".into(),
        mtu: Some(1500),
        addresses: vec!["10.0.0.1/24".into()],
        ..Interface::default()
    };
    Inventory {
        cores: Some(4),
        congestion_controls: vec!["cubic".into(), "bbr".into()],
        interfaces: vec![interface],
        sysctl: [("net.core.rmem_max".to_owned(), "212992".to_owned())].into(),
        ..Inventory::default()
    }
}

fn found(
    spec: &Spec,
    goal: Goal,
    allow: &[&str],
    change: impl Fn(&mut Outcome),
) -> (Vec<Candidate>, Vec<AdviceUntried>) {
    let (mut pilot, host) = (pilot(spec), host());
    change(&mut pilot);
    let allow = allow.iter().map(|class| (*class).to_owned()).collect();
    let (sends, receives) = (&[SendBy::Copy, SendBy::Sendfile][..], &[ReceiveBy::Copy][..]);
    candidates(&SearchContext {
        goal,
        spec,
        pilot: &pilot,
        near: &host,
        far: &host,
        sends,
        receives,
        fixed_block: false,
        allow: &allow,
    })
}

fn labels<'a>(found: &'a [Candidate], name: &str) -> Vec<&'a str> {
    let candidate = found.iter().find(|candidate| candidate.name == name);
    candidate.map(|candidate| candidate.levels.iter().map(|level| level.label.as_str()).collect()).unwrap_or_default()
}

#[test]
fn windows_range_from_the_data_in_flight_to_the_largest_allowed() {
    let mut spec = Spec::new("tcp", Pattern::Stream);
    (spec.near.sndbuf, spec.far.rcvbuf) = (Some(16 << 10), Some(16 << 10));
    let (candidates, _) = found(&spec, Goal::Throughput, &[], |_| {});
    assert_eq!(labels(&candidates, "window"), ["16KiB", "kernel", "32KiB", "64KiB", "128KiB", "208KiB"]);
    assert_eq!(labels(&candidates, "cc"), ["cubic", "bbr"]);
    assert_eq!(labels(&candidates, "engine"), ["copy,copy", "sendfile,copy"]);
}

#[test]
fn a_known_line_limits_the_windows() {
    let line =
        model::Ceiling { bound_bps: 10e6, kind: BoundKind::Line, reason: String::new().into(), others: Vec::new() };
    let (candidates, _) = found(&Spec::new("tcp", Pattern::Stream), Goal::Throughput, &[], |pilot| {
        pilot.summary.ceiling = Some(line.clone());
    });
    // Twice 25 kB.
    assert_eq!(labels(&candidates, "window"), ["kernel", "32KiB", "64KiB"]);
}

#[test]
fn changes_are_combined_in_the_order_of_the_registry() {
    let start = Spec::new("tcp", Pattern::Stream);
    let (candidates, _) = found(&start, Goal::Throughput, &["mtu"], |_| {});
    let level = |name: &str, label: &str| {
        let at = candidates.iter().position(|candidate| candidate.name == name).unwrap();
        (at, candidates[at].levels.iter().position(|level| level.label == label).unwrap())
    };
    let mut at = vec![0; candidates.len()];
    for (dimension, level) in [level("send-buffer", "64KiB"), level("window", "128KiB"), level("mtu", "9000")] {
        at[dimension] = level;
    }
    let (spec, levels) = spec_of(&start, &candidates, &at);
    // The send buffer refines the window, in any order of the search.
    assert_eq!((spec.near.sndbuf, spec.far.rcvbuf), (Some(64 << 10), Some(128 << 10)));
    assert_eq!(spec.settings.near, [Setting { key: "dev.eth0.mtu".into(), value: "9000".into() }]);
    assert_eq!(levels.len(), 3);
    assert_eq!(spec_of(&start, &candidates, &vec![0; candidates.len()]), (start, BTreeMap::new()));
}

fn why(limiter: LimiterKind, remedies: Vec<model::Remedy>) -> Why {
    Why {
        limiter,
        grade: None,
        statement: String::new().into(),
        parts: Vec::new(),
        evidence: Vec::new(),
        also: Vec::new(),
        losses: None,
        notes: Vec::new(),
        remedies,
        missing: Vec::new(),
    }
}

#[test]
fn dimensions_that_relieve_the_limiter_are_tried_first() {
    let spec = Spec::new("tcp", Pattern::Stream);
    let first = |limiter| {
        let why = why(limiter, Vec::new());
        let (candidates, _) = found(&spec, Goal::Throughput, &[], |pilot| pilot.summary.why = Some(why.clone().into()));
        candidates[0].name
    };
    assert_eq!(first(LimiterKind::ReceiveWindow), "window");
    assert_eq!(first(LimiterKind::Loss), "cc");
    assert_eq!(first(LimiterKind::SenderCpu), "engine");
    let bound = model::Ceiling {
        bound_bps: 9e6,
        kind: BoundKind::SendBuffer,
        reason: String::new().into(),
        others: Vec::new(),
    };
    let (candidates, _) = found(&spec, Goal::Throughput, &[], |pilot| pilot.summary.ceiling = Some(bound.clone()));
    assert_eq!(candidates.iter().take(2).map(|one| one.name).collect::<Vec<_>>(), ["window", "send-buffer"]);
}

#[test]
fn autotuning_limits_that_are_near_are_tried_first_and_only_raised() {
    let spec = Spec::new("tcp", Pattern::Stream);
    let mut host = host();
    for (name, value) in [("tcp_wmem", "4096 16384 65536"), ("tcp_rmem", "4096\t131072\t33554432")] {
        host.sysctl.insert(format!("net.ipv4.{name}"), value.into());
    }
    let (mut limited, allow) = (pilot(&spec), ["sysctl".to_owned()].into());
    let (sends, receives) = (&[SendBy::Copy, SendBy::Sendfile][..], &[ReceiveBy::Copy][..]);
    let (near, far) = (&host, &host);
    let pilot = pilot(&spec);
    let path = SearchContext {
        goal: Goal::Throughput,
        spec: &spec,
        pilot: &pilot,
        near,
        far,
        sends,
        receives,
        fixed_block: false,
        allow: &allow,
    };
    let (candidates, _) = candidates(&path);
    // 20 kB were in flight, and the sender's kernel allows 64 KiB.
    assert_eq!((candidates[0].name, candidates[1].name), ("autotuning-limit", "window"));
    assert_eq!(labels(&candidates, "autotuning-limit"), ["64KiB", "4MiB", "16MiB", "64MiB"]);
    let mut at = vec![0; candidates.len()];
    at[0] = 2;
    let settings = spec_of(&spec, &candidates, &at).0.settings;
    let wmem = Setting { key: "sysctl.net.ipv4.tcp_wmem".into(), value: "4096 16384 16777216".into() };
    assert_eq!((settings.near, settings.far), (vec![wmem], vec![]));
    // What the pilot trials need is tried instead of a list, with room for a rate beyond it.
    let remedy = model::Remedy {
        role: Role::Active,
        setting: "sysctl.net.ipv4.tcp_wmem".into(),
        now: "4096 16384 65536".into(),
        value: "4096 16384 20971520".into(),
        window_bytes: 10_000_000,
        command: String::new(),
        statement: String::new().into(),
    };
    limited.summary.why = Some(why(LimiterKind::SendBuffer, vec![remedy]).into());
    let (candidates, _) = super::candidates(&SearchContext { pilot: &limited, ..path });
    assert_eq!(candidates[0].name, "autotuning-limit");
    assert_eq!(labels(&candidates, "autotuning-limit"), ["64KiB", "20MiB", "80MiB"]);
}

#[test]
fn untried_dimensions_have_a_reason() {
    let (candidates, untried) = found(&Spec::new("tcp", Pattern::Stream), Goal::Throughput, &["sysctl"], |_| {});
    let why = |name: &str| untried.iter().find(|one| one.what == name).map(|one| one.why.plain()).unwrap_or_default();
    assert_eq!(why("mtu"), "needs host settings");
    let allow = untried.iter().find(|one| one.what == "mtu").and_then(|one| one.allow.as_deref());
    assert_eq!(allow, Some("mtu"), "{untried:?}");
    assert!(why("autotuning-limit").contains("does not report net.ipv4.tcp_wmem"), "{untried:?}");
    assert!(why("threads").contains("one flow"), "{untried:?}");
    assert!(candidates.iter().all(|candidate| candidate.levels.len() > 1));
    // Every class for --allow belongs to a dimension, and vice versa.
    let classes: BTreeSet<&str> = DIMENSIONS.iter().filter_map(|dimension| dimension.class).collect();
    assert_eq!(classes, CLASSES.iter().copied().collect());
}

#[test]
fn round_trips_have_their_own_dimensions() {
    let spec = Spec { block: 1, ..Spec::new("tcp", Pattern::Rr) };
    let (candidates, _) = found(&spec, Goal::Latency, &[], |_| {});
    assert_eq!(candidates.iter().map(|one| one.name).collect::<Vec<_>>(), ["spin", "busy-poll", "pin"]);
    let at = [1, 0, 0];
    assert_eq!(spec_of(&spec, &candidates, &at).0.strategy, model::Strategy::Spin);
}

#[test]
fn window_scaling_is_tried_where_a_host_has_it_off() {
    let spec = Spec::new("tcp", Pattern::Stream);
    let (outcome, on, mut off) = (pilot(&spec), host(), host());
    off.sysctl.insert("net.ipv4.tcp_window_scaling".into(), "0".into());
    let allow = ["sysctl".to_owned()].into();
    let tried = |far: &Inventory, pilot: &Outcome| {
        let (sends, receives) = (&[SendBy::Copy][..], &[ReceiveBy::Copy][..]);
        let goal = Goal::Throughput;
        let path = SearchContext {
            goal,
            spec: &spec,
            pilot,
            near: &on,
            far,
            sends,
            receives,
            fixed_block: false,
            allow: &allow,
        };
        let (found, untried) = candidates(&path);
        let at = found.iter().position(|one| one.name == "window-scaling");
        (at.map(|at| found[at].levels[1].edits.clone()), untried.iter().any(|one| one.what == "window-scaling"))
    };
    let key = "sysctl.net.ipv4.tcp_window_scaling";
    let edit = Edit::Setting(Role::Passive, Setting { key: key.into(), value: "1".into() });
    assert_eq!(tried(&off, &outcome), (Some(vec![edit.clone()]), false));
    assert_eq!(tried(&on, &outcome), (None, true));
    // Switched off by the measurement itself.
    let mut set = outcome.clone();
    set.spec.settings.far = vec![Setting { key: key.into(), value: "0".into() }];
    assert_eq!(tried(&on, &set), (Some(vec![edit]), false));
}
