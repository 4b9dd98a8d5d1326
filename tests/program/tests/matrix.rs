//! Every pattern on every transport that has it, with one flow over IPv4 and IPv6 in each lawful direction, and with 64 (in a
//! thread each, in two threads, in two processes) over IPv4, of some transports with 16: the two ends' counts agree to the byte.
//!
//! `make test` takes IPv6 with two transports, many flows with TCP and UDP, and short curves; `make test-long` all (`thorough`).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::sync::{Once, PoisonError, RwLock};

use engine::transport::{Capabilities, transport};
use model::{Direction, TransportName, Verdict};
use program::{Agent, Doc, Sandbox, check, skip, thorough};

/// How a transport is asked for: its name, the flag for the IP version, and what it can do.
struct Carrier {
    name: &'static str,
    flags: &'static [&'static str],
    /// Whether the data goes by IPv6; `None` where it does not go by IP.
    v6: Option<bool>,
    can: Capabilities,
}

impl Carrier {
    const fn of(name: &'static str, flags: &'static [&'static str], v6: Option<bool>, can: Capabilities) -> Self {
        Self { name, flags, v6, can }
    }

    /// Whether the far end is an agent: of transports within one machine the client itself starts both ends.
    fn agent(&self) -> bool {
        !transport(self.name).is_ok_and(|transport| transport.facts().one_host)
    }

    /// Whether it is looked at with many flows: over IPv6 they show nothing that they do not over IPv4.
    fn many(&self) -> bool {
        self.v6 != Some(true)
    }

    /// Many flows. Who serves a flow is the engine's, not the transport's: every pattern has 64, and several of them to a thread and
    /// to a process, with two transports; with the others it has 16, and only transfers have as many as with these.
    fn of_many(&self) -> &'static [&'static [&'static str]] {
        match self.name {
            _ if !self.many() => &[],
            "tcp" | "udp" if thorough() => &FLOWS[1..],
            "tcp" | "udp" => &FLOWS[3..],
            _ if thorough() => &[SIXTEEN],
            _ => &[],
        }
    }

    /// Many flows of a curve, which connects them anew in each of its passes.
    fn of_curves(&self) -> &'static [&'static [&'static str]] {
        match self.of_many() {
            many if thorough() => many,
            [] => &[],
            _ => &[SIXTEEN_IN_TWO],
        }
    }
}

/// Every transport of the registry that has two ends and that this machine can run within itself, IPv4 and IPv6 each.
fn transports(bench: &TestBed) -> Vec<Carrier> {
    static SAID: Once = Once::new();
    let mut transports = Vec::new();
    for transport in engine::transport::transports() {
        let (name, can) = (transport.name(), transport.capabilities());
        if can.single_ended || transport.launcher().is_some() {
            continue;
        }
        let fits = if transport.facts().one_host || name == "vsock" {
            vec![Carrier::of(name, &[], None, can)]
        } else if !thorough() && !["tcp", "udp"].contains(&name) {
            vec![Carrier::of(name, &["-4"], Some(false), can)]
        } else {
            vec![Carrier::of(name, &["-4"], Some(false), can), Carrier::of(name, &["-6"], Some(true), can)]
        };
        match bench.missing(&fits[0]) {
            None => transports.extend(fits),
            Some(reason) => SAID.call_once(|| skip::skip(&format!("the matrix over {name}"), &reason)),
        }
    }
    transports
}

/// A transport of one process, which has no second end to agree with.
fn memory() -> Carrier {
    let transport = transport("memcpy").unwrap();
    Carrier::of(transport.name(), &[], None, transport.capabilities())
}

const DIRECTIONS: [&[&str]; 3] = [&[], &["--reverse"], &["--both"]];
const SIXTEEN: &[&str] = &["--flows", "16"];
const SIXTEEN_IN_TWO: &[&str] = &["--flows", "16", "--processes", "2"];
/// One flow; 64 in as many threads, in two threads, in two processes.
const FLOWS: [&[&str]; 4] = [
    &["--flows", "1"],
    &["--flows", "64"],
    &["--flows", "64", "--threads", "2"],
    &["--flows", "64", "--processes", "2"],
];

const FEW_FLOWS: [&[&str]; 2] = [&["--flows", "6", "--processes", "2"], &["--flows", "6", "--threads", "2"]];

/// An agent and a folder for a number of measurements.
struct TestBed {
    agent: Agent,
    sandbox: Sandbox,
}

/// Measurements of few flows are held for reading, beside others of another test; 64 flows at both ends, and those of another
/// test beside them, would leave none of them a fair share of a small machine. Between tests of their own
/// processes .config/nextest.toml does this.
static MACHINE: RwLock<()> = RwLock::new(());

impl TestBed {
    fn new() -> Self {
        Self { agent: Agent::start(), sandbox: Sandbox::new() }
    }

    /// What this machine lacks for a transport, in the words of `thru`; only kernels differ in that.
    fn missing(&self, transport: &Carrier) -> Option<String> {
        if !["mptcp", "vsock"].contains(&transport.name) {
            return None;
        }
        let finished = self.sandbox.run(&self.args(transport, &[&["transfer", "--block", "1000", "--count", "1"]]));
        let message = finished.stderr.lines().next_back().unwrap_or_default().to_owned();
        (finished.code != Some(0)).then_some(message)
    }

    fn args<'a>(&'a self, transport: &Carrier, parts: &[&[&'a str]]) -> Vec<&'a str> {
        let mut args: Vec<&str> = parts.concat();
        args.extend(["--transport", transport.name]);
        args.extend(transport.flags);
        if transport.agent() {
            args.push(if transport.v6 == Some(true) { self.agent.host_v6() } else { self.agent.host() });
        }
        args.extend(["--no-path", "--observe", "off", "--json", "-", "--quiet"]);
        args
    }

    /// Measures and checks what holds of every measurement.
    fn measure(&self, transport: &Carrier, parts: &[&[&str]]) -> Doc {
        let args = self.args(transport, parts);
        let what = args.join(" ");
        let crowded = args.contains(&"64") || args.contains(&"16") || args.contains(&"--find-no-loss");
        let finished = if crowded {
            let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
            self.sandbox.run(&args)
        } else {
            let _shared = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
            self.sandbox.run(&args)
        };
        assert_eq!(finished.code, Some(0), "{what}: {}\n{}", remarks(&finished.stdout), finished.stderr);
        let doc = finished.doc();
        check::document(&doc, &what);
        let peer = doc.outcome().trials[0].near.flows.first().and_then(|flow| flow.socket.peer.clone());
        if let (Some(v6), Some(peer)) = (transport.v6, peer) {
            assert_eq!(peer.starts_with('['), v6, "{what}: {peer}");
        }
        doc
    }
}

fn remarks(stdout: &str) -> String {
    Doc::try_parse(stdout).map_or_else(|error| error, |doc| doc.remarks())
}

#[test]
fn streams_agree() {
    let bench = TestBed::new();
    let fixed = ["stream", "--time", "100ms", "--interval", "20ms", "--trials", "1"];
    for transport in &transports(&bench) {
        for direction in &DIRECTIONS {
            bench.measure(transport, &[&fixed, direction, FLOWS[0]]);
        }
        // One direction of many flows shows nothing that both do not.
        for flows in transport.of_many() {
            bench.measure(transport, &[&fixed, &["--both"], flows]);
        }
    }
    let memory = memory();
    for flows in FLOWS {
        bench.measure(&memory, &[&fixed, flows]);
    }
}

#[test]
fn a_probe_runs_beside_every_stream_and_stays_out_of_its_counts() {
    let bench = TestBed::new();
    let fixed = ["stream", "--time", "200ms", "--trials", "1", "--probe=200"];
    for transport in transports(&bench).iter().filter(|transport| transport.can.pollable && transport.many()) {
        let rate: &[&str] = if transport.can.datagram { &["--rate", "100Mbit"] } else { &[] };
        for load in [&[][..], &["--both", "--flows", "4", "--processes", "2"]] {
            let doc = bench.measure(transport, &[&fixed, rate, load]);
            let outcome = doc.outcome();
            let probe =
                outcome.summary.probe.as_ref().unwrap_or_else(|| panic!("{} {load:?}: no probe", transport.name));
            assert!(probe.loaded.count > 0 && probe.idle.as_ref().is_some_and(|idle| idle.count > 0), "{probe:?}");
            assert!(probe.rpm > 0.0, "{probe:?}");
            // Round trips are counted by the probe alone.
            assert_eq!(outcome.trials[0].near.transactions + outcome.trials[0].far.transactions, 0);
        }
    }
}

#[test]
fn a_search_for_the_rate_without_loss_ends_without_loss() {
    let bench = TestBed::new();
    for transport in transports(&bench).iter().filter(|transport| transport.can.datagram) {
        let fixed = ["stream", "--block", "1000", "--find-no-loss", "--time", "30ms", "--trials", "2"];
        let doc = bench.measure(transport, &[&fixed]);
        let summary = &doc.outcome().summary;
        assert_eq!(summary.packets_lost, Some(0), "{}", transport.name);
        assert!(summary.packets_per_s.is_some_and(|rate| rate > 0.0), "{}", transport.name);
    }
}

#[test]
fn round_trips_at_a_rate_keep_to_it() {
    let bench = TestBed::new();
    for transport in transports(&bench).iter().filter(|transport| transport.can.pollable && transport.many()) {
        let doc =
            bench.measure(transport, &[&["rr", "--rate", "500/s", "--time", "400ms", "--trials", "1", "--flows", "2"]]);
        let trial = &doc.outcome().trials[0];
        // 100 are due to each flow in 400 ms. A busy machine may manage fewer or stop late; without a rate there would be thousands.
        assert!((1..=400).contains(&trial.near.transactions), "{}: {}", transport.name, trial.near.transactions);
    }
}

#[test]
fn every_engine_moves_what_it_counts() {
    let bench = TestBed::new();
    for transport in &transports(&bench) {
        let rate: &[&str] = if transport.can.datagram { &["--rate", "200Mbit"] } else { &[] };
        let engines: &[&str] = match transport.name {
            "tcp" => &["sendfile", "splice", "zerocopy", "copy,trunc", "auto"],
            "udp" => &["mmsg", "gso", "gso,copy", "auto"],
            "unix" => &["sendfile", "splice"],
            "unix-dgram" => &["mmsg"],
            _ => &[],
        };
        for engine in engines {
            let flags = ["stream", "--block", "1000", "--bytes", "2MB", "--trials", "1", "--engine", engine];
            let spec = bench.measure(transport, &[&flags, rate]).outcome().spec.engine;
            if *engine == "auto" {
                assert!(spec.auto, "{}", transport.name);
            } else {
                assert!(spec.to_string().starts_with(engine), "{spec} for {engine}");
            }
        }
    }
}

#[test]
fn a_datagram_fits_a_frame_of_either_ip_version() {
    let bench = TestBed::new();
    let block = |flag: &str, host: &str| {
        let args = ["stream", "--transport", "udp", "--rate", "10Mbit", "--time", "50ms", "--trials", "1", flag, host];
        bench.sandbox.measure(&args).outcome().spec.block
    };
    // 1500 bytes of Ethernet less 8 of UDP and 20 or 40 of IP.
    assert_eq!(block("-4", bench.agent.host()), 1472);
    assert_eq!(block("-6", bench.agent.host_v6()), 1452);
}

#[test]
fn transfers_are_exact() {
    let bench = TestBed::new();
    // 641 blocks do not divide by 64: some flows take one more.
    let blocks = 641_u64;
    let check = |transport: &Carrier, block: u64, direction: &[&str], flows: &[&str]| {
        let size = block.to_string();
        let fixed = ["transfer", "--block", &size, "--count", "641"];
        let doc = bench.measure(transport, &[&fixed, direction, flows]);
        let trial = &doc.trials()[0];
        let (near, far) = match doc.outcome().spec.direction {
            Direction::Send => (blocks, 0),
            Direction::Reverse => (0, blocks),
            Direction::Both => (blocks, blocks),
        };
        let sent = (trial.near.bytes_sent, trial.far.bytes_sent);
        assert_eq!(sent, (near * block, far * block), "{} {direction:?} {flows:?}", transport.name);
        assert_eq!((trial.near.blocks_sent, trial.far.blocks_sent), (near, far));
    };
    for transport in &transports(&bench) {
        for direction in &DIRECTIONS {
            check(transport, 1_000, direction, FLOWS[0]);
        }
        if transport.many() && (thorough() || ["tcp", "udp"].contains(&transport.name)) {
            check(transport, 1_000, &["--both"], FLOWS[1]);
        }
        // A handshake of QUIC takes a busy core for long.
        let few = transport.name == "quic" && !thorough();
        if transport.many() {
            check(transport, 1_000, &[], if few { FEW_FLOWS[0] } else { FLOWS[3] });
        }
        if transport.many() && transport.can.pollable {
            check(transport, 1_000, &["--reverse"], if few { FEW_FLOWS[1] } else { FLOWS[2] });
        }
    }
    let memory = memory();
    for flows in FLOWS {
        // Copies of small blocks take no time that a clock could show, and then they have no rate.
        check(&memory, 100_000, &[], flows);
    }
}

#[test]
fn amounts_that_are_no_whole_blocks_are_met_to_the_byte() {
    let bench = TestBed::new();
    for transport in transports(&bench).iter().filter(|transport| !transport.can.datagram) {
        for flows in [FLOWS[0], SIXTEEN] {
            let fixed = ["transfer", "--block", "4KiB", "--bytes", "1000003"];
            let doc = bench.measure(transport, &[&fixed, flows]);
            assert_eq!(
                (doc.summary().bytes_sent, doc.summary().bytes_received),
                (Some(1_000_003), Some(1_000_003)),
                "{}",
                transport.name
            );
        }
    }
}

#[test]
fn requests_and_responses_agree() {
    let bench = TestBed::new();
    let fixed = ["rr", "--time", "100ms", "--trials", "1"];
    for transport in &transports(&bench) {
        for direction in &DIRECTIONS[..2] {
            bench.measure(transport, &[&fixed, direction, FLOWS[0]]);
        }
        for flows in transport.of_many() {
            bench.measure(transport, &[&fixed, flows]);
        }
    }
    for (transport, counts) in transports(&bench)
        .iter()
        .filter(|transport| !transport.can.datagram && transport.many())
        .zip([[1, 700], [700, 1]].iter().cycle())
    {
        let (request, reply) = (counts[0].to_string(), counts[1].to_string());
        let sizes = ["rr", "--count", "130", "--trials", "1", "--block", &request, "--reply", &reply];
        let flows = if thorough() || transport.name == "tcp" { FLOWS[1] } else { SIXTEEN };
        let doc = bench.measure(transport, &[&sizes, flows]);
        let trial = &doc.trials()[0];
        assert_eq!(trial.near.transactions, 130, "{}", transport.name);
        assert_eq!(
            (trial.near.bytes_sent, trial.far.bytes_sent),
            (130 * counts[0], 130 * counts[1]),
            "{}",
            transport.name
        );
    }
}

#[test]
fn connections_for_each_transaction_agree() {
    let bench = TestBed::new();
    for transport in transports(&bench).iter().filter(|transport| transport.can.reconnects) {
        for flows in [FLOWS[0], FLOWS[1], FLOWS[3]].iter().take(if transport.many() { 3 } else { 1 }) {
            bench.measure(transport, &[&["rr", "--connect", "--time", "100ms", "--trials", "1"], flows]);
        }
        let doc = bench.measure(transport, &[&["rr", "--connect", "--count", "70", "--trials", "1", "--flows", "64"]]);
        assert_eq!(doc.trials()[0].near.transactions, 70);
    }
}

/// A curve up to `last`; `trials` of each size, which need not be long to be counted.
fn curve<'a>(last: &'a str, trials: &'a str) -> [&'a str; 10] {
    ["curve", "--to", last, "--perturbation", "0", "--no-ceiling", "--time", "1ms", "--trials", trials]
}

/// A budget that is enough for these curves. Over TCP it has no room for the streams that check the peak.
fn unchecked(transport: &Carrier) -> &'static [&'static str] {
    if transport.name == "tcp" { &["--budget", "8s"] } else { &["--budget", "1m"] }
}

#[test]
fn curves_of_round_trips_agree() {
    let bench = TestBed::new();
    for transport in &transports(&bench) {
        let is_common = ["tcp", "udp"].contains(&transport.name);
        let last = match transport.can.datagram {
            _ if !thorough() => "4KiB",
            true => "32KiB",
            false => "256KiB",
        };
        // What a transport does in the other directions, the patterns below show of it.
        for direction in &DIRECTIONS[..if is_common || thorough() { 3 } else { 1 }] {
            // Datagrams may be lost, and then the two ends would cross different blocks.
            if *direction != ["--both"] || !transport.can.datagram {
                let (last, trials) = if direction.is_empty() && transport.many() { (last, "2") } else { ("1KiB", "1") };
                // Over TCP and UDP a budget would buy an anatomy in this direction, which has the check instead.
                let plain = direction.is_empty() && is_common;
                let budget = if plain { &[] } else { unchecked(transport) };
                let doc = bench.measure(transport, &[&curve(last, trials), direction, FLOWS[0], budget]);
                assert!(doc.run.outcomes.len() > 10, "{} sizes on {}", doc.run.outcomes.len(), transport.name);
            }
        }
        for flows in transport.of_curves() {
            bench.measure(transport, &[&curve("3", "1"), flows, unchecked(transport)]);
        }
    }
    let memory = memory();
    bench.measure(&memory, &[&curve(if thorough() { "1MiB" } else { "64KiB" }, "3")]);
}

#[test]
fn curves_of_streams_agree() {
    let bench = TestBed::new();
    let (few, many) = (["--stream", "--first", "64"], ["--stream", "--first", "768"]);
    for transport in &transports(&bench) {
        for direction in &DIRECTIONS[..if thorough() { 2 } else { 1 }] {
            bench.measure(
                transport,
                &[
                    &curve(if thorough() { "8KiB" } else { "1KiB" }, "2"),
                    &few,
                    direction,
                    FLOWS[0],
                    unchecked(transport),
                ],
            );
        }
        for flows in transport.of_curves().iter().take(1) {
            bench.measure(transport, &[&curve("1KiB", "1"), &many, flows, unchecked(transport)]);
        }
    }
    let doc = bench
        .measure(&transports(&bench)[0], &[&["curve", "--stream", "--first", "64", "--to", "8KiB", "--trials", "3"]]);
    let ceiling = doc.run.outcomes.iter().filter(|outcome| outcome.spec.transport == TransportName::Memcpy).count();
    assert_eq!(ceiling, 8, "64 B to 8 KiB in powers of two, beside the curve");
    assert!(doc.run.outcomes.iter().all(|outcome| outcome.summary.verdicts.contains(&Verdict::SameHost)));
}
