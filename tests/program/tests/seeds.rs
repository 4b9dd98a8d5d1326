//! `thru run --lab`: a plan in the lab that it names, and nothing left of it; the plans of plans/ (root only, but for dry runs).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::PathBuf;

use model::Verdict;
use program::process::Signal;
use program::{Agent, Sandbox, check, eventually, skip};

/// Two hosts with 2 ms each way between them.
const TOPOLOGY: &str = "[vars]\ndelay = \"1ms\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
                        [[link]]\nbetween = [\"a\", \"b\"]\nmtu = 9000\nrate = \"300Mbit\"\ndelay = \"${delay}\"\n";

/// Sets of fields and settings by a setting of both interfaces.
const PLAN: &str = r#"
to = "${server}"
seed = 3
[vars]
runs = 1
[lab]
topology = "TOPOLOGY.toml"
vars = { delay = "2ms" }
values = { server = "b", device = "eth0" }
[base]
time = "300ms"
[[factor]]
name = "buffers"
levels = "small, large"
[factor.sets.small]
near.sndbuf = "16KiB"
[factor.sets.large]
near.sndbuf = "1MiB"
near.cc = "reno"
"near.sysctl.net.ipv4.tcp_no_metrics_save" = 1
[[factor]]
name = "mtu"
setting = "dev.${device}.mtu"
levels = "1500,9000"
[repeat]
min = "${runs}"
max = "${runs}"
"#;

/// A plan and its topology in a folder, called by a name that no other lab has.
struct TestHosts {
    sandbox: Sandbox,
    name: String,
}

impl TestHosts {
    fn new(test: &str) -> Self {
        let (sandbox, name) = (Sandbox::new(), format!("{test}-{}", std::process::id()));
        fs::create_dir(sandbox.path("plans")).unwrap();
        fs::write(sandbox.path(&format!("plans/{name}.toml")), TOPOLOGY).unwrap();
        fs::write(sandbox.path("plans/plan.toml"), PLAN.replace("TOPOLOGY.toml", &format!("./{name}.toml"))).unwrap();
        Self { sandbox, name }
    }

    /// What there is of its lab.
    fn traces(&self) -> Vec<PathBuf> {
        let entries =
            |directory: &&str| fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
        let own = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&self.name);
        ["/run/netns", "/etc/netns", "/run/throughline/lab"].iter().flat_map(entries).filter(own).collect()
    }
}

#[test]
fn a_plan_is_measured_in_its_lab_which_is_gone_afterwards() {
    if !skip::root("a_plan_is_measured_in_its_lab_which_is_gone_afterwards") {
        return;
    }
    let place = TestHosts::new("plan");
    let ended = place.sandbox.run(&["run", "plans/plan.toml", "--lab", "--json", "-"]);
    assert!(ended.stderr.contains("Emulated links of") && ended.stderr.contains("late p50"), "{}", ended.stderr);
    // Late or not: what the machine does besides is its own affair.
    assert!(matches!(ended.code, Some(0 | 8)), "{}", ended.stderr);
    let doc = ended.doc();
    check::document(&doc, "a plan in a lab");
    assert_eq!(place.traces(), Vec::<PathBuf>::new());
    let run = &doc.run;
    let plan = run.header.plan.as_ref().unwrap();
    assert_eq!(plan.lab.as_ref().map(|lab| lab.vars["delay"].as_str()), Some("2ms"));
    assert_eq!((run.header.target.as_deref(), run.outcomes.len()), (Some("b"), 4));
    let lab_of = |pass: &model::Pass| pass.lab.as_ref().map(|lab| lab.directions.len());
    assert!(run.passes.iter().all(|pass| lab_of(pass) == Some(2)), "each pass says what the links did");
    let of = |buffers: &str, mtu: &str| {
        let cell = run.header.cells.iter().find(|cell| cell.levels["buffers"] == buffers && cell.levels["mtu"] == mtu);
        run.outcomes.iter().find(|outcome| outcome.cell == cell.unwrap().id).unwrap()
    };
    let (small, large) = (of("small", "9000"), of("large", "9000"));
    assert_eq!((small.spec.near.sndbuf, large.spec.near.sndbuf), (Some(16 << 10), Some(1 << 20)));
    assert_eq!((small.spec.near.cc.as_deref(), large.spec.near.cc.as_deref()), (None, Some("reno")));
    let rate = |outcome: &model::Outcome| outcome.summary.goodput_bps.unwrap();
    // A late emulator hands over together what came in one after the other.
    let late = large.summary.verdicts.contains(&model::Verdict::EmulatorLate);
    assert!(rate(small) < rate(large) && (late || rate(large) < 300e6), "{} {}", rate(small), rate(large));
    let changed = |pass: &model::Pass| pass.near.settings.iter().any(|change| change.key == "dev.eth0.mtu");
    assert!(run.passes.iter().all(changed), "the MTU was set and read back");
    let written = place.sandbox.run(&["report", "last", "-o", "plan.md"]).ok().stdout;
    let text = fs::read_to_string(place.sandbox.path(written.trim())).unwrap();
    assert!(text.contains("| buffers \\\\ mtu | 1500 | 9000 |") && text.contains("Measured in a lab"), "{text}");
}

#[test]
fn what_a_machine_has_only_one_of_holds_for_the_whole_lab_and_is_put_back() {
    const KEY: &str = "net.core.wmem_max";
    const FILE: &str = "/proc/sys/net/core/wmem_max";
    if !skip::root("what_a_machine_has_only_one_of_holds_for_the_whole_lab_and_is_put_back") {
        return;
    }
    let place = TestHosts::new("wide");
    let own = || fs::read_to_string(FILE).unwrap().trim().to_owned();
    let (before, raised) = (own(), (own().parse::<u64>().unwrap() + 4096).to_string());
    let with = |table: &str| {
        let plan = fs::read_to_string(place.sandbox.path("plans/plan.toml")).unwrap();
        fs::write(place.sandbox.path("plans/wide.toml"), format!("{plan}\n[lab.host_wide]\n{table}\n")).unwrap();
        place.sandbox.run(&["run", "plans/wide.toml", "--lab", "--json", "-"])
    };
    let ended = with(&format!("\"sysctl.{KEY}\" = {raised}"));
    assert!(matches!(ended.code, Some(0 | 8)), "{}", ended.stderr);
    let run = ended.doc().run;
    // In a container, say, the machine's own values can only be read.
    let may = fs::OpenOptions::new().write(true).open(FILE).is_ok();
    let said = if may {
        format!("{KEY}: {raised} (was {before}) on this whole machine")
    } else {
        "the lab is measured with the current value".to_owned()
    };
    assert!(ended.stderr.contains(&said), "{said}: {}", ended.stderr);
    let expected = if may { &raised } else { &before };
    assert_eq!([&run.header.near.sysctl[KEY], &run.header.far.sysctl[KEY]], [expected, expected]);
    assert_eq!(own(), before);

    let wrong = with("\"sysctl.net.ipv4.tcp_sack\" = 0").ended_with(2).message();
    assert!(wrong.contains("sysctl.net.ipv4.tcp_sack is a per-host setting: write it under [settings]"), "{wrong}");
    assert_eq!(place.traces(), Vec::<PathBuf>::new());
}

#[test]
fn a_plan_that_is_interrupted_keeps_its_trials_and_leaves_no_lab_and_goes_on_in_a_new_one() {
    if !skip::root("a_plan_that_is_interrupted_keeps_its_trials_and_leaves_no_lab_and_goes_on_in_a_new_one") {
        return;
    }
    let place = TestHosts::new("cut");
    let args = ["run", "plans/plan.toml", "--lab", "--var", "runs=2", "--live"];
    let holder = place.sandbox.start(&args);
    eventually("a trial is finished", || holder.stdout().contains("{\"event\":\"trial\""));
    holder.signal(Signal::TERM);
    holder.wait().ended_with(130);
    assert_eq!(place.traces(), Vec::<PathBuf>::new());
    let ended = place.sandbox.run(&[&args[..], &["--resume", "last"]].concat());
    assert!(matches!(ended.code, Some(0 | 8)), "{}", ended.stderr);
    let doc = place.sandbox.run(&["show", "last", "--json"]).doc();
    // All of them, also those whose links were late.
    assert!(doc.run.outcomes.iter().all(|outcome| outcome.trials.len() == 2), "{}", doc.remarks());
    assert_eq!(place.traces(), Vec::<PathBuf>::new());
}

#[test]
fn a_peer_that_stops_reading_is_a_stalled_cell_and_the_plan_goes_on() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let plan = "to = \"${host}\"\norder = \"as-written\"\n[base]\ntime = \"2s\"\nblock = \"1MiB\"\nstall = \"400ms\"\n\
                [[factor]]\nfield = \"drain\"\nlevels = [\"1kbit\", \"100Mbit\"]\n[repeat]\nmin = 1\nmax = 1\n";
    fs::write(sandbox.path("plan.toml"), plan).unwrap();
    let host = format!("host={}", agent.host());
    let doc = sandbox.run(&["run", "plan.toml", "--var", &host, "--json", "-"]).ended_with(8).doc();
    let stalled: Vec<bool> = doc.run.outcomes.iter().map(|o| o.summary.verdicts.contains(&Verdict::Stalled)).collect();
    assert_eq!(stalled, [true, false], "{}", doc.remarks());
    assert!(doc.run.ending.is_some_and(|ending| ending.how == "finished"));
}

#[test]
fn a_plan_without_a_lab_says_so_and_one_with_a_lab_wants_a_host_without() {
    let place = TestHosts::new("none");
    let run = |plan: &str, more: &[&str]| place.sandbox.run(&[&["run", plan], more].concat()).ended_with(2).message();
    fs::write(place.sandbox.path("bare.toml"), "[base]\ntransport = \"unix\"\n").unwrap();
    let message = run("bare.toml", &["--lab"]);
    assert!(message.contains("bare.toml has no [lab]: add one"), "{message}");
    let message = run("plans/plan.toml", &["--var", "device=eth0"]);
    assert!(message.contains("${server} has no value: add --var server=VALUE"), "{message}");
}
