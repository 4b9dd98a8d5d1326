//! What hosts and paths say of themselves: over loopback, and through a router in namespaces (root only).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::process::Command;

use lab::{CrossoverSpec, Lab, LabHost};
use model::{Difference, FindingKind, Inventory};
use program::{Agent, Doc, Running, Sandbox, binary, skip};

/// Two hosts of a lab with a router between them, beside their own link: `a` with an MTU of 1500, `b` with 1400.
struct Routed {
    lab: Lab,
    router: String,
    sandbox: Sandbox,
}

const A: &str = "198.18.98.1";
const ROUTER_A: &str = "198.18.98.2";
const B: &str = "198.18.98.5";
const ROUTER_B: &str = "198.18.98.6";

impl Drop for Routed {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.router]).output();
    }
}

impl Routed {
    fn new(test: &str) -> Option<Self> {
        let lab = skip::lab(test, &CrossoverSpec::default())?;
        let router = format!("{}-r", lab.name());
        run(Command::new("ip").args(["netns", "add", &router]));
        let routed = Self { lab, router, sandbox: Sandbox::new() };
        routed.join(routed.host("a"), "ra", "1500", [A, ROUTER_A], B);
        routed.join(routed.host("b"), "rb", "1400", [B, ROUTER_B], A);
        run(Command::new("ip").args(["netns", "exec", &routed.router, "sysctl", "-qw", "net.ipv4.ip_forward=1"]));
        Some(routed)
    }

    fn host(&self, name: &str) -> &LabHost {
        self.lab.host(name).unwrap()
    }

    /// Joins a host to the router by a link of its own, which is its way to `other`.
    fn join(&self, host: &LabHost, port: &str, mtu: &str, [own, gateway]: [&str; 2], other: &str) {
        let ip = |namespace: &str, args: &[&str]| run(Command::new("ip").args(["-n", namespace]).args(args));
        let (host, router) = (host.namespace.as_str(), self.router.as_str());
        ip(
            host,
            &["link", "add", "up0", "mtu", mtu, "type", "veth", "peer", "name", port, "mtu", mtu, "netns", router],
        );
        for (namespace, device, address) in [(host, "up0", own), (router, port, gateway)] {
            ip(namespace, &["address", "add", &format!("{address}/30"), "dev", device]);
            ip(namespace, &["link", "set", "dev", device, "up"]);
        }
        ip(host, &["route", "add", other, "via", gateway, "initcwnd", "20"]);
    }

    fn measure(&self, args: &[&str]) -> Doc {
        let args = [args, &["--json", "-"]].concat();
        Running::of(self.sandbox.prepare(self.host("a").command(binary::thru()), &args)).wait().ok().doc()
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_path_through_a_router_is_described_from_both_ends() {
    let test = "a_path_through_a_router_is_described_from_both_ends";
    let Some(routed) = Routed::new(test) else { return };
    let agent = Agent::spawn(routed.host("b").command(binary::thru()), &["--open", "--listen", &format!("{B}:0")]);
    let doc = routed.measure(&["stream", "--time", "200ms", "--trials", "3", agent.host()]);
    let header = &doc.run.header;
    let (out, back) = (header.path_outbound.as_ref().unwrap(), header.path_return.as_ref().unwrap());
    assert_eq!((out.peer.as_str(), back.peer.as_str()), (B, A));
    for (path, source, gateway, mtu) in [(out, A, ROUTER_A, 1_500), (back, B, ROUTER_B, 1_400)] {
        let route = path.route.as_ref().unwrap();
        assert_eq!((route.interface.as_deref(), route.source.as_deref()), (Some("up0"), Some(source)));
        assert_eq!((route.gateway.as_deref(), route.interface_mtu), (Some(gateway), Some(mtu)));
        assert_eq!(route.initcwnd, Some(20));
        let found = path.mtu.as_ref().unwrap();
        assert_eq!((found.bytes, found.confirmed), (1_400, true), "{found:?}");
        let hops: Vec<Option<&str>> = path.hops.as_ref().unwrap().iter().map(|hop| hop.address.as_deref()).collect();
        assert_eq!(hops, [Some(gateway), Some(path.peer.as_str())]);
        assert_eq!(path.missing, [""; 0]);
    }
    // What the hosts are stands in the run as `thru host` tells it.
    for host in [&header.near, &header.far] {
        let kernel = host.kernel_setup.as_ref().unwrap();
        assert!(kernel.tick_ns().is_some() && kernel.hz_source.is_some(), "{kernel:?}");
        assert!(!host.processor.as_ref().unwrap().identity.is_empty());
        let up = host.interfaces.iter().find(|interface| interface.name == "up0").unwrap().device.as_ref().unwrap();
        assert!(up.mac.is_some() && up.flags.iter().any(|flag| flag == "up"), "{up:?}");
        assert!(up.totals["tx_packets"] > 0, "{:?}", up.totals);
    }
    // Only the wider end meets the router's word.
    assert_eq!(out.mtu.as_ref().unwrap().reported_by.as_deref(), Some(ROUTER_A));
    assert_eq!(back.mtu.as_ref().unwrap().reported_by, None);
    let found: Vec<String> = doc
        .run
        .findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::Path)
        .map(|finding| finding.statement.plain())
        .collect();
    let unequal = "The MTUs differ: 1500 bytes on up0 (near) and 1400 on up0 (far).";
    let narrow = format!("The path MTU from the near end is 1400 bytes (reported by {ROUTER_A}), smaller than");
    for wanted in [unequal, &narrow] {
        assert!(found.iter().any(|statement| statement.starts_with(wanted)), "{wanted}: {found:#?}");
    }
    // One machine has one clock: what is measured of its offset and drift must be within the bounds that are claimed.
    let before = header.clocks.unwrap();
    assert!(before.offset_ns.unsigned_abs() <= before.error_ns, "{before:?}");
    assert!(before.monotonic_offset_ns.unsigned_abs() <= before.error_ns, "{before:?}");
    let drift = doc.run.ending.as_ref().unwrap().drift.unwrap();
    assert!(drift.drift_ppb.unsigned_abs() <= drift.error_ppb, "{drift:?}");
    // An agent that is the near end looks at another host only because an agent there vouches for it.
    let near = Agent::spawn(routed.host("a").command(binary::thru()), &["--open", "--listen", &format!("{A}:0")]);
    let between = routed.measure(&["transfer", "--count", "3", "--from", near.host(), agent.host()]);
    let (out, back) =
        (between.run.header.path_outbound.as_ref().unwrap(), between.run.header.path_return.as_ref().unwrap());
    assert_eq!((out.peer.as_str(), back.peer.as_str()), (B, A));
    for path in [out, back] {
        assert_eq!((path.missing.len(), path.hops.as_ref().map(Vec::len)), (0, Some(2)), "{path:?}");
    }
    // Nobody looks where nobody is asked to.
    let plain = routed.measure(&["transfer", "--count", "3", "--no-path", agent.host()]);
    let header = &plain.run.header;
    assert!(header.path_outbound.is_none() && header.path_return.is_none() && header.clocks.is_none());
}

#[test]
fn our_ping_is_that_of_the_ping_program() {
    let test = "our_ping_is_that_of_the_ping_program";
    if !skip::program(test, "ping", "iputils-ping") {
        return;
    }
    let Some(routed) = Routed::new(test) else { return };
    let agent = Agent::spawn(routed.host("b").command(binary::thru()), &["--open", "--listen", &format!("{B}:0")]);
    let doc = routed.measure(&["transfer", "--count", "3", agent.host()]);
    let ours = doc.run.header.path_outbound.as_ref().unwrap().ping.clone().unwrap();
    assert_eq!((ours.sent, ours.received, ours.packet_bytes), (10, 10, 84));
    let output = routed.host("a").command("ping").args(["-c", "20", "-i", "0.015", "-q", B]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let times = text.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = ")).expect("a summary");
    let least = times.split('/').next().unwrap().parse::<f64>().unwrap() * 1e6;
    // A reply may be there before the send returns, which ours sees at once and the program's stamps need not show; above,
    // ours wakes for it, which is tens of microseconds on a machine that lets one of ten through unhindered.
    let min = ours.min_ns.unwrap() as f64;
    assert!(min > least / 10.0 && min < least * 10.0 + 300_000.0, "{min} ns against {least} ns: {text}");
}

fn thru(args: &[&str]) -> program::Finished {
    Running::of(Sandbox::new().prepare(Command::new(binary::thru()), args)).wait()
}

#[test]
fn a_remote_host_tells_the_same_as_itself() {
    // Some facts are for root only.
    let agent = Agent::with(&["--user", "root"]);
    let here: Inventory = serde_json::from_str(&thru(&["host", "--json"]).ok().stdout).unwrap();
    let there: Inventory = serde_json::from_str(&thru(&["host", agent.host(), "--json"]).ok().stdout).unwrap();
    assert!(here.boot_id.is_some() && here.boot_id == there.boot_id);
    assert_eq!(here.sysctl.keys().collect::<Vec<_>>(), there.sysctl.keys().collect::<Vec<_>>());
    // Traffic is looked at on the way: loopback carried something or nothing, but was looked at.
    let loopback = here.interfaces.iter().find(|interface| interface.name == "lo").unwrap();
    assert!(loopback.device.as_ref().unwrap().traffic.unwrap().window_ns >= 100_000_000);
    // Several at once are a list, and text has a head for each.
    let both: Vec<Inventory> =
        serde_json::from_str(&thru(&["host", agent.host(), agent.host_v6(), "--json"]).ok().stdout).unwrap();
    assert_eq!(both.len(), 2);
    let text = thru(&["host", agent.host(), agent.host_v6()]).ok().stdout;
    assert_eq!(text.matches("\nsettings\n").count(), 2, "{text}");
    // One host does not differ from itself in what a namespace shares.
    let found: Vec<Difference> =
        serde_json::from_str(&thru(&["host", agent.host(), "--diff", "--json"]).ok().stdout).unwrap();
    assert!(!found.iter().any(|one| one.field.starts_with("sysctl") || one.field == "kernel"), "{found:#?}");
    let refused = thru(&["host", "--diff"]).ended_with(2);
    assert!(refused.message().contains("name two"), "{}", refused.stderr);
}

#[test]
fn hosts_of_a_lab_differ_by_what_was_set_there() {
    let Some(lab) = skip::lab("hosts_of_a_lab_differ_by_what_was_set_there", &CrossoverSpec::default()) else { return };
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    run(b.command("sysctl").args(["-qw", "net.ipv4.tcp_sack=0"]));
    run(b.command("ip").args(["link", "set", "dev", &b.interface, "mtu", "1400"]));
    let agent = Agent::spawn(b.command(binary::thru()), &["--open", "--listen", &format!("{}:0", b.v4)]);
    let args = ["host", agent.host(), "--diff"];
    let text = Running::of(Sandbox::new().prepare(a.command(binary::thru()), &args)).wait().ok().stdout;
    for (field, here, there) in [("sysctl.net.ipv4.tcp_sack", "1", "0"), ("interfaces.eth0.mtu", "1500", "1400")] {
        let line = text.lines().find(|line| line.starts_with(&format!("{field} "))).expect(field);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, [field, here, there], "{text}");
    }
    assert!(!text.contains("sysctl.net.ipv4.tcp_window_scaling"), "{text}");
}
