//! What the observers see, held against what others read of the same hosts, and `thru watch`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use lab::{CrossoverSpec, LabHost};
use model::{Observed, Watched};
use program::process::{Signal, eventually};
use program::{Agent, Doc, Running, Sandbox, binary, skip};
use serde_json::Value;

/// What a command prints on a host of a lab.
fn said(host: &LabHost, program: &str, args: &[&str]) -> String {
    let output = host.command(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A number that `ip -s link` has of a host's link.
fn link(host: &LabHost, pointer: &str) -> i64 {
    let links: Value =
        serde_json::from_str(&said(host, "ip", &["-j", "-s", "link", "show", "dev", &host.interface])).unwrap();
    links[0].pointer(pointer).and_then(Value::as_i64).unwrap()
}

/// A counter of /proc/net/snmp, read apart from the observers: `Tcp` and `InSegs`.
fn snmp(host: &LabHost, protocol: &str, key: &str) -> i64 {
    let text = said(host, "cat", &["/proc/net/snmp"]);
    let lines: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.split(':').next() == Some(protocol))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let at = lines[0].iter().position(|head| *head == key).unwrap();
    lines[1][at].parse().unwrap()
}

/// The observers' sight of both ends of the only pass.
fn observed(doc: &Doc) -> [&Observed; 2] {
    let [pass] = doc.run.passes.as_slice() else { panic!("{} passes", doc.run.passes.len()) };
    [&pass.near, &pass.far].map(|end| end.observed.as_ref().expect("it was observed"))
}

#[test]
fn counts_agree_with_what_ip_tc_and_proc_say() {
    let test = "counts_agree_with_what_ip_tc_and_proc_say";
    let Some(lab) = skip::lab(test, &CrossoverSpec::default()) else { return };
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let address = format!("{}:0", b.v4);
    let agent = Agent::spawn(b.command(binary::thru()), &["--open", "--listen", &address]);
    let sandbox = Sandbox::new();
    let measure = |args: &[&str]| {
        let args = [args, &["--trials", "1", agent.host(), "--json", "-"]].concat();
        Running::of(sandbox.prepare(a.command(binary::thru()), &args)).wait().ok().doc()
    };

    // A stream: bytes of the link and segments, between what was sent and what the link carried over a little longer a time.
    let read = || {
        let dev = [(a, "/stats64/tx/bytes"), (b, "/stats64/rx/bytes"), (b, "/stats64/rx/packets")];
        (dev.map(|(host, pointer)| link(host, pointer)), snmp(a, "Tcp", "OutSegs"), snmp(b, "Tcp", "InSegs"))
    };
    let before = read();
    let doc = measure(&["stream", "--time", "500ms"]);
    let after = read();
    let [near, far] = observed(&doc);
    let payload = i64::try_from(doc.trials()[0].near.bytes_sent).unwrap();
    let within = |what: &str, seen: Option<i64>, least: i64, most: i64| {
        let seen = seen.unwrap_or_else(|| panic!("{what} is unknown"));
        assert!(least <= seen && seen <= most, "{what}: {seen} is not within {least} and {most}");
    };
    let (tx, rx) = (format!("dev.{}.tx_bytes", a.interface), format!("dev.{}.rx_bytes", b.interface));
    within("sent bytes", near.grew(&tx), payload, after.0[0] - before.0[0]);
    within("received bytes", far.grew(&rx), payload, after.0[1] - before.0[1]);
    // All that was seen beyond the payload is heads and acknowledgements: a tenth at an MTU of 1500 is far too much.
    within("received bytes beside heads", far.grew(&rx), payload, payload + payload / 10);
    let packets = format!("dev.{}.rx_packets", b.interface);
    within("packets", far.grew(&packets), payload / 65_536, after.0[2] - before.0[2]);
    within("segments sent", near.grew("snmp.Tcp.OutSegs"), payload / 1_448, after.1 - before.1);
    within("segments received", far.grew("snmp.Tcp.InSegs"), payload / 65_536, after.2 - before.2);
    within("context switches", near.grew("stat.ctxt"), 1, i64::MAX);
    within("the tool's own time", near.grew("sched.worker.run_ns"), 1, i64::MAX);
    assert!(near.cost_ns > 0 && near.window_ns >= 500_000_000, "{near:?}");
    let series = near.series.as_ref().expect("readings over time");
    let line = series.lines.iter().find(|line| line.name == tx).expect("the link carried something");
    let (mut from, mut bytes) = (0, 0.0);
    for (rate, at) in line.values.iter().zip(&series.at_ns) {
        bytes += rate.expect("it was there") * (at - from) as f64 / 1e9;
        from = *at;
    }
    // The series may leave out what came after its last reading.
    assert!(bytes > 0.5 * payload as f64 && bytes < 1.2 * payload as f64, "{bytes} of {payload}");

    // Datagrams four times as fast as a shaper lets through: it drops, and nobody else does.
    said(
        a,
        "tc",
        &["qdisc", "add", "dev", &a.interface, "root", "tbf", "rate", "50mbit", "burst", "32kb", "limit", "60kb"],
    );
    let doc = measure(&["stream", "--udp", "--rate", "200Mbit", "--time", "500ms", "--block", "1400"]);
    let [near, far] = observed(&doc);
    let shaper: Value =
        serde_json::from_str(&said(a, "tc", &["-j", "-s", "qdisc", "show", "dev", &a.interface])).unwrap();
    let dropped = shaper[0]["drops"].as_i64().unwrap();
    // Between the last reading and tc only the control connection speaks.
    within("drops", near.grew(&format!("qdisc.{}.drops", a.interface)), 1, dropped);
    within("drops", near.grew(&format!("qdisc.{}.drops", a.interface)), dropped - 10, dropped);
    let arrived = doc.trials()[0].far.datagrams.as_ref().map(|datagrams| datagrams.received).unwrap();
    within("packets of the cores' queues", far.grew("softnet.processed"), i64::try_from(arrived).unwrap(), i64::MAX);
    within("datagrams", far.grew("snmp.Udp.InDatagrams"), i64::try_from(arrived).unwrap(), i64::MAX);
    // The report breaks its lines where they are too long.
    let shown = sandbox.run(&["show", "last", "-v"]).ok().stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let drops = near.grew(&format!("qdisc.{}.drops", a.interface)).unwrap();
    assert!(shown.contains("Host activity - near: core"), "{shown}");
    assert!(shown.replace(',', "").contains(&format!("qdisc.{}.drops {drops}", a.interface)), "{shown}");
    lab.close().unwrap();
}

#[test]
fn observers_do_as_much_as_they_are_told() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let base = ["rr", "--time", "200ms", "--trials", "1", agent.host()];
    let off = sandbox.measure(&[&base[..], &["--observe", "off"]].concat());
    assert!(off.run.passes.iter().all(|pass| pass.near.observed.is_none() && pass.near.cpu.is_some()));
    let counters = sandbox.measure(&[&base[..], &["--observe", "counters"]].concat());
    assert!(observed(&counters).iter().all(|seen| seen.series.is_none() && seen.grew("snmp.Tcp.InSegs") > Some(0)));
    let series = sandbox.measure(&[&base[..], &["--observe-interval", "20ms"]].concat());
    for seen in observed(&series) {
        let readings = seen.series.as_ref().unwrap().at_ns.len();
        assert!((1..=20).contains(&readings), "{readings}");
    }
    let curve = sandbox.measure(&["curve", "--to", "64", "--trials", "3", "--no-ceiling", agent.host()]);
    assert!(curve.run.passes.iter().all(|pass| pass.near.observed.as_ref().is_some_and(|seen| seen.series.is_none())));
    let refused = sandbox.run(&[&base[..], &["--observe-interval", "1ms"]].concat()).ended_with(2);
    assert!(
        refused.message().contains("--observe-interval") && refused.message().contains("10.0 ms"),
        "{}",
        refused.message()
    );
}

fn intervals(text: &str) -> Vec<Watched> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn this_host_is_watched_without_an_agent() {
    let sandbox = Sandbox::new();
    let seen = intervals(&sandbox.run(&["watch", "--interval", "100ms", "--count", "3", "--json"]).ok().stdout);
    assert_eq!(seen.len(), 3);
    for one in &seen {
        assert!(one.cpu.as_ref().is_some_and(|cpu| cpu.resolution_ns > 0), "{one:?}");
        assert!(one.context_switches_per_s.is_some() && one.tcp_established.is_some(), "{one:?}");
        assert!(one.interfaces.iter().any(|interface| interface.name == "lo"), "{one:?}");
    }
    assert!(seen.windows(2).all(|pair| pair[0].at_unix_ns < pair[1].at_unix_ns));
    let table = sandbox.run(&["watch", "--interval", "100ms", "--count", "2"]).ok().stdout;
    assert!(table.starts_with("CPU in % of all cores") && table.contains("resolution of"), "{table}");
    assert_eq!(table.matches("rexmt/s").count(), 1, "{table}");
}

#[test]
fn an_agent_is_watched_while_it_measures_and_only_with_its_token() {
    let sandbox = Sandbox::new();
    let token = sandbox.path("token");
    let token = token.to_str().unwrap();
    sandbox.run(&["token", "new", "-o", token]).ok();
    let agent = Agent::with(&["--token-file", token]);
    let measuring = sandbox.start(&["stream", "--time", "3s", "--trials", "1", "--token-file", token, agent.host()]);
    eventually("it measures", || agent.log().contains("measures stream"));
    let watch = ["watch", agent.host(), "--interval", "200ms"];
    let seen = sandbox.run(&[&watch[..], &["--count", "4", "--json", "--token-file", token]].concat()).ok();
    let carried =
        intervals(&seen.stdout).iter().flat_map(|one| one.interfaces.clone()).map(|one| one.rx_bps).fold(0.0, f64::max);
    assert!(carried > 1e6, "the stream shows: {carried}");
    measuring.wait().ended_with(0);
    let refused = sandbox.run(&[&watch[..], &["--count", "1"]].concat()).ended_with(4);
    assert!(refused.message().contains("token"), "{}", refused.message());

    let mut endless = sandbox.start(&[&watch[..], &["--token-file", token]].concat());
    endless.until_printed("rexmt/s");
    endless.signal(Signal::INT);
    let ended = endless.wait().ok();
    assert_eq!(ended.stderr, "", "Ctrl-C is how it ends");
    // The agent has its connection back and serves on.
    let again = sandbox.run(&[&watch[..], &["--count", "1", "--json", "--token-file", token]].concat()).ok();
    assert_eq!(intervals(&again.stdout).len(), 1);
}
