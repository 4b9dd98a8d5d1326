//! `thru lab`: hosts, links and routes from a topology, programs on them, and nothing left afterwards (root only).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use model::LabReport;
use program::process::{Signal, send};
use program::{Doc, Running, Sandbox, agent, binary, eventually, skip};
use rustix::process::{Pid, kill_process_group};

/// Whether labs can be made here, or the line that says why not.
fn possible(test: &str) -> bool {
    match lab::available() {
        Ok(()) => true,
        Err(error) => {
            skip::skip(test, &error.to_string());
            false
        }
    }
}

/// A lab of a name of its own. However the test ends, it is taken down.
struct TestHosts {
    sandbox: Sandbox,
    name: String,
}

impl TestHosts {
    fn new(test: &str) -> Self {
        Self { sandbox: Sandbox::new(), name: format!("{test}-{}", std::process::id()) }
    }

    fn file(&self, text: &str) -> String {
        let path = self.sandbox.path("topology.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// What there is of the lab: namespaces, names, what lies beside its record.
    fn traces(&self) -> Vec<PathBuf> {
        let own = |directory: &str| {
            let entries = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
            entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(&self.name)).collect()
        };
        let all: [Vec<PathBuf>; 3] = ["/run/netns", "/etc/netns", "/run/throughline/lab"].map(own);
        all.concat()
    }

    fn assert_gone(&self) {
        assert_eq!(self.traces(), Vec::<PathBuf>::new());
    }
}

impl Drop for TestHosts {
    fn drop(&mut self) {
        if !self.traces().is_empty() {
            let _ = self.sandbox.command(&["lab", "down", &self.name]).output();
        }
    }
}

/// Whether a process runs; one that has ended and waits for its parent does not.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A child of a lab's holder that a word of its command line tells from the others.
fn child(holder: u32, word: &str) -> u32 {
    let line = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let has = |pid: &u32| String::from_utf8_lossy(&line(*pid)).split('\0').any(|part| part == word);
    agent::children(holder).into_iter().find(has).expect("the holder has such a child")
}

/// Two hosts behind two routers: an emulated link with a delay, one in the middle that the kernel shapes, and a plain one.
const CHAIN: &str = r#"
[sysctl]
"net.ipv4.tcp_no_metrics_save" = 1

[[host]]
name = "a"
[[router]]
name = "r"
[[router]]
name = "q"
[[host]]
name = "b"

[[link]]
between = ["a", "r"]
delay = "5ms"
[link.reverse]
delay = "15ms"

[[link]]
between = ["r", "q"]
rate = "50Mbit"

[[link]]
between = ["q", "b"]
mtu = 9000
"#;

#[test]
fn a_command_runs_in_a_lab_that_is_gone_afterwards() {
    if !possible("a_command_runs_in_a_lab_that_is_gone_afterwards") {
        return;
    }
    let place = TestHosts::new("run");
    let (file, report) = (place.file(CHAIN), place.sandbox.path("report.json").display().to_string());
    // Routes, names of both IP versions, the agent and its secret, settings, and the code of the command.
    let script = "ping -n -q -i 0.02 -c 20 b && ping -6 -n -q -c 1 b-v6 && getent hosts b && \
                  cat /proc/sys/net/ipv4/tcp_no_metrics_save && echo on $THRU_LAB_HOST of $THRU_LAB && \
                  \"$0\" stream b --time 400ms --trials 1 --no-path --quiet --json run.json; \
                  tc -n $THRU_LAB-r -s -j qdisc show dev eth1 root > tc.json; exit 7";
    let thru = binary::thru().display().to_string();
    let args = ["lab", "run", &file, "--name", &place.name, "--json", &report, "--", "sh", "-c", script, &thru];
    let ended = place.sandbox.run(&args).ended_with(7);
    let said = &ended.stdout;
    assert!(said.contains(" 20 received, 0% packet loss") && said.contains(" 1 received"), "{said}");
    let mean = said.lines().find_map(|line| line.split_once(" = ")?.1.split('/').nth(1)?.parse::<f64>().ok());
    assert!(mean.is_some_and(|ms| ms >= 19.9), "the delays of both ways: {said}");
    assert!(said.contains(&format!("\n1\non a of {}\n", place.name)), "{said}");
    place.assert_gone();
    assert!(!place.sandbox.path("known_agents").exists(), "the keys of a lab's agents go with it");

    // What the emulated link did stands at the end, in a file, and in the run.
    assert!(ended.stderr.contains("Emulated links of") && ended.stderr.contains("late p50"), "{}", ended.stderr);
    let report: LabReport = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    let ends: Vec<_> =
        report.directions.iter().map(|direction| (direction.from.as_str(), direction.to.as_str())).collect();
    assert_eq!(ends, [("a", "r"), ("r", "a")]);
    let doc = Doc::try_parse(&fs::read_to_string(place.sandbox.path("run.json")).unwrap()).unwrap();
    let of_pass = doc.json["passes"][0]["lab"].clone();
    let of_pass: LabReport = serde_json::from_value(of_pass).unwrap();
    let (all, pass) = (&report.directions[0], &of_pass.directions[0]);
    assert!(pass.arrived > 50 && pass.arrived < all.arrived, "{pass:?} of {all:?}");
    assert!(pass.late_p50_ns.is_some());
    // What found no room before the shaped link is what tc says.
    let tc: serde_json::Value = serde_json::from_slice(&fs::read(place.sandbox.path("tc.json")).unwrap()).unwrap();
    let shaped: Vec<_> =
        report.shaped.iter().map(|direction| (direction.from.as_str(), direction.to.as_str())).collect();
    assert_eq!(shaped, [("r", "q"), ("q", "r")]);
    assert_eq!(tc[0]["drops"], report.shaped[0].dropped, "{tc}");
    assert!(tc[0]["packets"].as_u64().is_some_and(|sent| sent > 50 && sent <= report.shaped[0].sent), "{tc}");
    assert!(doc.goodput() < 50e6, "the link in the middle is shaped: {}", doc.goodput());
}

#[test]
fn ctrl_c_while_a_lab_is_built_removes_it() {
    if !possible("ctrl_c_while_a_lab_is_built_removes_it") {
        return;
    }
    let place = TestHosts::new("early");
    let args = ["lab", "run", "nordunet-2002", "--name", &place.name, "--", "sleep", "60"];
    // A terminal sends it to all processes of the command.
    let mut command = place.sandbox.command(&args);
    command.process_group(0);
    let running = Running::of(command);
    eventually("the lab is being built", || !place.traces().is_empty());
    let group = Pid::from_raw(running.pid().try_into().unwrap()).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    let stderr = running.wait().ended_with(130).stderr;
    assert!(!stderr.contains("thru: "), "{stderr}");
    place.assert_gone();
}

#[test]
fn a_lab_that_stays_is_entered_listed_and_taken_down() {
    if !possible("a_lab_that_stays_is_entered_listed_and_taken_down") {
        return;
    }
    let place = TestHosts::new("stay");
    let run = |args: &[&str]| place.sandbox.run(&[&["lab"], args].concat());
    run(&["up", "switch", "--name", &place.name, "--var", "hosts=3", "--var", "rate=200Mbit"]).ok();
    let listed = run(&["list"]).ok().stdout;
    let line = listed.lines().find(|line| line.starts_with(&place.name)).expect("it is listed");
    assert!(line.contains(" switch ") && line.contains("h1 h2 h3") && line.contains("held by process"), "{line}");
    assert!(run(&["up", "switch", "--name", &place.name]).ended_with(2).stderr.contains("already"));
    // Another user is told whose they are. The program's own folder may be closed to others.
    if skip::program("a_lab_that_stays_is_entered_listed_and_taken_down", "setpriv", "util-linux") {
        let thru = place.sandbox.path("thru");
        fs::copy(binary::thru(), &thru).unwrap();
        for path in [place.sandbox.path(""), thru.clone()] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut nobody = Command::new("setpriv");
        nobody.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&thru);
        let refused = Running::of(place.sandbox.prepare(nobody, &["lab", "list"])).wait().ended_with(7).message();
        assert!(refused.contains("/run/throughline/lab") && refused.contains("sudo"), "{refused}");
    }

    // Every host reaches the agents of the others with the lab's secret; who has no secret is refused.
    let exec = |words: &[&str]| run(&[&["exec", "--lab", &place.name, "h3", "--"], words].concat());
    let args = [
        "thru",
        "stream",
        "h1",
        "--from",
        "h2",
        "--time",
        "300ms",
        "--trials",
        "1",
        "--no-path",
        "--no-store",
        "--json",
        "-",
    ];
    let measured = exec(&args).ok().doc();
    assert!(measured.goodput() > 50e6 && measured.goodput() < 200e6, "{}", measured.goodput());
    assert!(
        measured.json["passes"][0]["lab"]["directions"].as_array().is_some_and(Vec::is_empty),
        "no link is emulated"
    );
    exec(&["env", "-u", "THRU_TOKEN_FILE", &binary::thru().display().to_string(), "rr", "h1", "--no-store"])
        .ended_with(4);
    assert!(run(&["exec", "--lab", &place.name, "h9", "--", "true"]).ended_with(2).stderr.contains("h1, h2, h3"));

    run(&["down", &place.name]).ok();
    place.assert_gone();
    run(&["exec", "--lab", &place.name, "h1", "--", "true"]).ended_with(2);
}

/// Starts a lab whose command says its process number and then waits; returns both.
fn waiting(place: &TestHosts) -> (Running, u32) {
    // Quiet, so that only the command says it.
    let script = "echo inside $$; exec sleep 1000";
    let words = ["lab", "run", "satellite", "--quiet", "--name", &place.name, "--", "sh", "-c", script];
    let mut holder = place.sandbox.start(&words);
    holder.until_printed("inside ");
    let inside = holder.stdout().split("inside ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    (holder, inside.expect("a process number"))
}

#[test]
fn nothing_is_left_of_a_lab_however_its_holder_ends() {
    if !possible("nothing_is_left_of_a_lab_however_its_holder_ends") {
        return;
    }
    let reported = TestHosts::new("told");
    let (holder, inside) = waiting(&reported);
    holder.signal(Signal::TERM);
    holder.wait().ended_with(128 + 15);
    assert!(!runs(inside));
    reported.assert_gone();

    // Another process takes it down.
    let requested = TestHosts::new("asked");
    let (holder, inside) = waiting(&requested);
    requested.sandbox.run(&["lab", "down", &requested.name]).ok();
    holder.wait().ended_with(128 + 15);
    assert!(!runs(inside));
    requested.assert_gone();

    // Killed, together with the process that waits for just that: what is left goes with the next `thru lab down`, which leaves
    // a lab alone that somebody holds.
    let (killed, other) = (TestHosts::new("killed"), TestHosts::new("other"));
    let (mut holder, inside) = waiting(&killed);
    let (bystander, _) = waiting(&other);
    let reaper = child(holder.pid(), "lab-reaper");
    send(reaper, Signal::KILL);
    eventually("the reaper is gone", || !runs(reaper));
    holder.signal(Signal::KILL);
    eventually("the holder is gone", || !holder.runs());
    assert!(!killed.traces().is_empty() && runs(inside));
    // While another process removes it, it has an owner again.
    eventually("it is listed as left, unless another process has removed it", || {
        let listed = killed.sandbox.run(&["lab", "list"]).ok().stdout;
        let own = listed.lines().find(|line| line.starts_with(&killed.name));
        own.is_none_or(|line| line.contains("left by a crash"))
    });
    // Without its name it would take down the labs of other tests. One of these may have cleaned up first, as every new lab does: then
    // there is no lab of that name.
    let said = killed.sandbox.run(&["lab", "down", &killed.name]);
    let removed = said.code == Some(0) && said.stdout.contains(&killed.name);
    assert!(removed || killed.traces().is_empty(), "{} {}", said.stdout, said.stderr);
    eventually("what was left is gone", || killed.traces().is_empty() && !runs(inside));
    assert!(!other.traces().is_empty());
    bystander.signal(Signal::TERM);
    bystander.wait().ended_with(128 + 15);
    other.assert_gone();
}

#[test]
fn mistakes_are_reported_before_anything_is_made() {
    let place = TestHosts::new("wrong");
    let file =
        place.file("[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[link]]\nbetween = [\"a\", \"b\"]\nlos = 1\n");
    for (args, part) in [
        (vec!["run", "sateliite", "--", "true"], "did you mean 'satellite'"),
        (vec!["up", "./none.toml"], "cannot read the topology ./none.toml"),
        (vec!["up", &file], "topology.toml:7:1: link[1].los: "),
        (vec!["run", "crossover", "--var", "mtu=99", "--", "true"], "MTU of 99"),
        (vec!["up", "crossover", "--var", "speed=1"], "--var speed"),
    ] {
        let message = place.sandbox.run(&[vec!["lab"], args].concat()).ended_with(2).stderr;
        assert!(message.contains(part), "{message}");
    }
    place.assert_gone();
    let ready = place.sandbox.run(&["lab", "list", "--ready"]).ok().stdout;
    assert!(ready.lines().count() >= 7 && ready.contains("sunnyvale-geneva"), "{ready}");
}

/// Three hosts, each with a link to the other two, which forward nothing.
const TRIANGLE: &str = r#"
[[host]]
name = "c"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
between = ["c", "a"]
[[link]]
between = ["c", "b"]
[[link]]
between = ["a", "b"]
"#;

#[test]
fn a_near_end_finds_a_host_by_its_name_where_its_coordinator_has_another_address_of_it() {
    if !possible("a_near_end_finds_a_host_by_its_name_where_its_coordinator_has_another_address_of_it") {
        return;
    }
    let place = TestHosts::new("triangle");
    let file = place.file(TRIANGLE);
    // What c calls b is an address that a does not reach at all.
    let script = "b=$(getent hosts b | cut -d' ' -f1); ip netns exec $THRU_LAB-a ip route replace blackhole $b; echo $b >&2; \
                  exec \"$0\" rr b --from a --transport $1 --count 20 --trials 1 --no-store --quiet --json -";
    let thru = binary::thru().display().to_string();
    // TLS and QUIC have a listener of their own.
    for transport in ["tcp", "tls", "quic"] {
        let lab = ["lab", "run", &file, "--name", &place.name, "--quiet", "--on", "c", "--"];
        let ended = place.sandbox.run(&[&lab[..], &["sh", "-c", script, &thru, transport]].concat()).ok();
        let coordinators = ended.stderr.lines().next().unwrap().to_owned();
        let run = ended.doc().run;
        let peer = run.outcomes[0].trials[0].near.flows[0].socket.peer.clone().unwrap();
        assert!(!coordinators.is_empty() && !peer.starts_with(&coordinators), "{peer} is what c calls b");
        let path = run.header.path_outbound.unwrap();
        assert!(peer.starts_with(&path.peer), "the path to {peer} is probed, not that to {}: {path:?}", path.peer);
    }
}

/// Three pairs in steps of one; that of a and b is in the first step.
const PAIRS: &str = r#"
name = "pairs"
from = ["a", "c"]
to = ["a", "b"]
pairs = ["c a", "c b", "a b"]
order = "as-written"
[base]
pattern = "rr"
time = "100ms"
[repeat]
min = 1
max = 1
"#;

#[test]
fn hosts_that_do_not_reach_each_other_cost_only_their_own_tests() {
    if !possible("hosts_that_do_not_reach_each_other_cost_only_their_own_tests") {
        return;
    }
    let place = TestHosts::new("apart");
    let file = place.file(TRIANGLE);
    fs::write(place.sandbox.path("pairs.toml"), PAIRS).unwrap();
    let script = "for b in $(ip netns exec $THRU_LAB-b ip -4 -o addr show scope global | awk '{print $4}' | cut -d/ -f1); \
                  do ip netns exec $THRU_LAB-a ip route replace blackhole $b; done; \
                  exec \"$0\" run pairs.toml --no-store --quiet --json pairs.json";
    let thru = binary::thru().display().to_string();
    let args = ["lab", "run", &file, "--name", &place.name, "--quiet", "--on", "c", "--", "sh", "-c", script, &thru];
    place.sandbox.run(&args).ended_with(5);
    let doc = Doc::try_parse(&fs::read_to_string(place.sandbox.path("pairs.json")).unwrap()).unwrap();
    let measured: Vec<u32> = doc.run.outcomes.iter().map(|outcome| outcome.cell).collect();
    assert_eq!(measured, [0, 1], "{:?}", doc.run.findings);
    let said = doc.run.findings.iter().any(|finding| finding.statement.plain().contains("proved a reachability token"));
    assert!(said, "{:?}", doc.run.findings);
}
