//! `thru run`: plans over loopback, resumed after every way to end, and between hosts in namespaces.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use lab::{CrossoverSpec, LabHost};
use model::{FindingKind, Run, RunKind, Trial, Verdict};
use program::process::{Signal, eventually};
use program::{Agent, Sandbox, binary, check, skip};

/// Two by two cells, three blocks.
fn two_by_two(blocks: u32, time: &str) -> String {
    format!(
        "title = \"two by two\"\nto = [\"${{host}}\"]\nseed = 7\n[base]\ntime = \"{time}\"\n\
         [[factor]]\nfield = \"block\"\nlevels = [\"4KiB\", \"64KiB\"]\n\
         [[factor]]\nname = \"socket\"\nfield = \"sndbuf\"\nlevels = [\"64KiB\", \"256KiB\"]\n\
         [repeat]\nmin = {blocks}\nmax = {blocks}\n"
    )
}

fn write(sandbox: &Sandbox, name: &str, text: &str) {
    std::fs::write(sandbox.path(name), text).unwrap();
}

fn var(agent: &Agent) -> String {
    format!("host={}", agent.host())
}

/// The trials of every cell, and that no pass has two of them.
fn trials(run: &Run) -> BTreeMap<u32, Vec<&Trial>> {
    let mut by_cell: BTreeMap<u32, Vec<&Trial>> = BTreeMap::new();
    let mut passes = BTreeSet::new();
    for trial in run.outcomes.iter().flat_map(|outcome| &outcome.trials) {
        assert!(passes.insert(trial.pass), "pass {} is there twice", trial.pass);
        by_cell.entry(trial.cell).or_default().push(trial);
    }
    by_cell
}

fn whole(trial: &Trial) -> bool {
    !trial.verdicts.contains(&Verdict::CutShort)
}

fn finished_trials(events: &str) -> usize {
    events.lines().filter(|line| line.starts_with("{\"event\":\"trial\"")).count()
}

#[test]
fn a_plan_of_two_factors_has_its_cells_in_blocks_and_its_table() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    write(&sandbox, "plan.toml", &two_by_two(3, "100ms"));
    let host = var(&agent);
    let doc = sandbox.measure(&["run", "plan.toml", "--var", &host]);
    check::document(&doc, "a plan");
    let run = &doc.run;
    assert_eq!((run.header.kind, run.header.cells.len(), run.outcomes.len()), (RunKind::Run, 4, 4));
    assert_eq!(run.header.cells[3].levels["socket"], "256KiB");
    assert_eq!(run.header.cells[3].spec.near.sndbuf, Some(256 << 10));
    assert!(trials(run).values().all(|own| own.len() == 3));
    for block in 0..3 {
        let cells: BTreeSet<u32> = run
            .passes
            .iter()
            .filter(|pass| pass.round == Some(block))
            .flat_map(|pass| run.outcomes.iter().flat_map(|o| &o.trials).filter(|trial| trial.pass == pass.index))
            .map(|trial| trial.cell)
            .collect();
        assert_eq!(cells.len(), 4, "block {block} has every cell");
    }
    assert!(run.passes.iter().all(|pass| pass.started_unix_ns.is_some()));
    let effects = run.findings.iter().filter(|finding| finding.kind == FindingKind::Effect).count();
    assert!(effects >= 3, "two factors and what they have to do with each other: {:?}", run.findings);
    let shown = |args: &[&str]| sandbox.run(args).ok().stdout;
    let (screen, whole) = (shown(&["show", "last"]), shown(&["show", "last", "-v"]));
    assert!(screen.contains("Goodput by block") && screen.contains("block \\ socket"), "{screen}");
    assert!(whole.contains("64KiB → 256KiB"), "{whole}");
    let csv = sandbox.run(&["export", "last", "--format", "csv"]).ok().stdout;
    assert!(csv.lines().next().unwrap().contains("level_block,level_socket"), "{csv}");
}

#[test]
fn a_dry_run_needs_no_host_and_keeps_nothing() {
    let sandbox = Sandbox::new();
    write(&sandbox, "plan.toml", &two_by_two(3, "1s"));
    let said = sandbox.run(&["run", "plan.toml", "--var", "host=192.0.2.1", "--dry-run"]).ok().stdout;
    assert!(said.contains("(random, seed 7)") && said.contains("3 rounds"), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("KiB")).count(), 4, "{said}");
    assert!(!sandbox.store().exists());
}

#[test]
fn a_mistake_is_pointed_at() {
    let sandbox = Sandbox::new();
    write(&sandbox, "plan.toml", "to = \"192.0.2.1\"\n[base]\nsndbufs = \"64KiB\"\n");
    let message = sandbox.run(&["run", "plan.toml"]).ended_with(2).message();
    assert_eq!(message, "thru: plan.toml:3:1: base.sndbufs: thru stream has no 'sndbufs'; did you mean 'sndbuf'?");
    let message = sandbox.run(&["run", "nowhere.toml"]).ended_with(2).message();
    assert!(message.contains("cannot read the plan nowhere.toml"), "{message}");
}

/// Ends a run by `signal` after some trials, goes on with it, and finds every finished trial once.
fn ended_and_resumed(signal: Signal) {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let plan = |time: &str| two_by_two(5, time).replace("[base]\n", "[base]\nrate = \"50Mbit\"\n");
    write(&sandbox, "plan.toml", &plan("150ms"));
    let host = var(&agent);
    let args = ["run", "plan.toml", "--var", &host];
    let first = sandbox.start(&[&args[..], &["--live"]].concat());
    eventually("trials are finished", || finished_trials(&first.stdout()) >= 7);
    first.signal(signal);
    let first = first.wait();
    let kept = sandbox.run(&["show", "last", "--json"]).ok().doc();
    let before: Vec<Trial> = trials(&kept.run).into_values().flatten().filter(|trial| whole(trial)).cloned().collect();
    assert!(before.len() >= 7 && before.len() + 1 >= finished_trials(&first.stdout), "{}", before.len());

    write(&sandbox, "other.toml", &plan("151ms"));
    let message = sandbox.run(&["run", "other.toml", "--var", &host, "--resume", "last"]).ended_with(2).message();
    assert!(message.contains("was made with a different plan"), "{message}");

    let doc = sandbox.measure(&[&args[..], &["--resume", "last"]].concat());
    assert_eq!(doc.run.header.id, kept.run.header.id);
    assert_eq!(doc.run.ending.as_ref().unwrap().how, "finished");
    for own in trials(&doc.run).values() {
        assert_eq!(own.iter().filter(|trial| whole(trial)).count(), 5, "each cell has its five, none twice");
    }
    let all: Vec<&Trial> = doc.run.outcomes.iter().flat_map(|outcome| &outcome.trials).collect();
    assert!(before.iter().all(|trial| all.contains(&trial)), "no finished trial is lost");
    // What is kept is what was told.
    let stored = sandbox.run(&["show", "last", "--json"]).ok().doc();
    assert_eq!(stored.run.outcomes, doc.run.outcomes);
    assert_eq!(sandbox.run(&["runs", "--json"]).ok().stdout.matches(&kept.run.header.id).count(), 1);
    let message = sandbox.run(&[&args[..], &["--resume", "last"]].concat()).ended_with(2).message();
    assert!(message.contains("is finished"), "{message}");
}

#[test]
fn a_killed_plan_goes_on_where_it_was() {
    ended_and_resumed(Signal::KILL);
}

#[test]
fn an_interrupted_plan_goes_on_where_it_was() {
    ended_and_resumed(Signal::INT);
}

#[test]
fn what_a_plan_requires_is_recorded_and_what_does_not_hold_leaves_cells_out_or_ends_the_run() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let plan = |require: &str| {
        format!(
            "to = [\"${{host}}\"]\n[base]\ntime = \"100ms\"\n[repeat]\nmin = 3\nmax = 3\n[require]\nwait = \"1ms\"\n{require}\n"
        )
    };
    let host = var(&agent);
    write(&sandbox, "holds.toml", &plan("free_memory = \"1MiB\""));
    let doc = sandbox.measure(&["run", "holds.toml", "--var", &host]);
    let conditions = doc.run.passes[0].far.conditions.expect("what the far host was like");
    assert!(conditions.free_memory_bytes.is_some_and(|bytes| bytes > 1 << 20) && conditions.load.is_some());
    write(&sandbox, "not.toml", &plan("free_memory = \"1000TiB\""));
    let doc = sandbox.run(&["run", "not.toml", "--var", &host, "--json", "-"]).ended_with(9).doc();
    assert!(doc.run.outcomes.is_empty(), "nothing was measured");
    assert!(doc.run.findings[0].statement.plain().contains("was skipped in round 1: "), "{:?}", doc.run.findings);
    write(&sandbox, "end.toml", &plan("free_memory = \"1000TiB\"\notherwise = \"end\""));
    let message = sandbox.run(&["run", "end.toml", "--var", &host]).ended_with(9).message();
    assert!(message.contains("are required") && message.contains("relax [require]"), "{message}");
}

#[test]
fn a_plan_with_times_takes_its_blocks_at_them() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    write(
        &sandbox,
        "plan.toml",
        "to = [\"${host}\"]\n[base]\ntime = \"50ms\"\n[schedule]\nevery = \"1500ms\"\nfor = \"3s\"\n[repeat]\nmin = 2\n",
    );
    let host = var(&agent);
    let run = sandbox.measure(&["run", "plan.toml", "--var", &host]).run;
    // Three times where all were met; a busy machine may have missed some, but never makes more of them, nor parts of one.
    let count = trials(&run)[&0].len();
    assert!([2, 4, 6].contains(&count), "{count} trials");
    let start = run.header.started_unix_ns;
    for (at, pair) in run.passes.chunks(2).enumerate().skip(1) {
        let begun = pair[0].started_unix_ns.unwrap();
        assert!(begun >= start + at as u64 * 1_500_000_000, "time {at} is not early");
    }
    let figures = sandbox.run(&["report", "last", "-o", "page.html"]).ok();
    drop(figures);
    let page = std::fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(program::page::texts(&page).contains("Every trial over time"));
}

/// Three hosts and a bridge that joins them, in namespaces of their own; gone when dropped.
struct Bridge {
    name: String,
}

impl Bridge {
    const HOSTS: [u8; 3] = [1, 2, 3];

    fn new(test: &str) -> Option<Self> {
        if let Err(error) = lab::available() {
            skip::skip(test, &error.to_string());
            return None;
        }
        let bridge = Self { name: format!("thrup{}", std::process::id()) };
        let centre = bridge.space(0);
        ip(&["netns", "add", &centre]);
        ip(&["-n", &centre, "link", "set", "lo", "up"]);
        let made = Command::new("ip").args(["-n", &centre, "link", "add", "br0", "type", "bridge"]).output().unwrap();
        if !made.status.success() {
            skip::skip(test, &format!("no bridge: {}", String::from_utf8_lossy(&made.stderr)));
            return None;
        }
        ip(&["-n", &centre, "address", "add", "10.223.7.254/24", "dev", "br0"]);
        ip(&["-n", &centre, "link", "set", "br0", "up"]);
        for host in Self::HOSTS {
            let (space, port) = (bridge.space(host), format!("p{host}"));
            ip(&["netns", "add", &space]);
            ip(&["-n", &centre, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &space]);
            ip(&["-n", &centre, "link", "set", &port, "master", "br0", "up"]);
            ip(&["-n", &space, "link", "set", "lo", "up"]);
            ip(&["-n", &space, "address", "add", &format!("{}/24", Self::address(host)), "dev", "eth0"]);
            ip(&["-n", &space, "link", "set", "eth0", "up"]);
        }
        Some(bridge)
    }

    fn space(&self, host: u8) -> String {
        format!("{}-{host}", self.name)
    }

    fn address(host: u8) -> String {
        format!("10.223.7.{host}")
    }

    fn command(&self, host: u8) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(host)]).arg(binary::thru());
        command
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        for host in [1, 2, 3, 0] {
            let _ = Command::new("ip").args(["netns", "del", &self.space(host)]).output();
        }
    }
}

fn ip(args: &[&str]) {
    let output = Command::new("ip").args(args).output().unwrap();
    assert!(output.status.success(), "ip {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn three_hosts_on_a_bridge_make_matrices_of_both_directions_in_steps() {
    let Some(bridge) = Bridge::new("three_hosts_on_a_bridge_make_matrices_of_both_directions_in_steps") else { return };
    let serve = |host| {
        let place = format!("{}:0", Bridge::address(host));
        Agent::spawn(bridge.command(host), &["--open", "--listen", &place])
    };
    let agents = Bridge::HOSTS.map(serve);
    let sandbox = Sandbox::new();
    write(
        &sandbox,
        "plan.toml",
        "from = \"${hosts}\"\nto = \"${hosts}\"\n[base]\ntime = \"50ms\"\n[[factor]]\nfield = \"pattern\"\nlevels = [\"rr\", \"stream\"]\n[repeat]\nmin = 3\nmax = 3\n",
    );
    let hosts = format!("hosts={}", agents.each_ref().map(Agent::host).join(","));
    let command = sandbox.prepare(bridge.command(0), &["run", "plan.toml", "--var", &hosts, "--json", "-"]);
    let doc = program::Running::of(command).wait().ok().doc();
    check::document(&doc, "three hosts");
    let run = &doc.run;
    assert_eq!(run.header.cells.len(), 12, "six ordered pairs, two patterns");
    assert_eq!(run.header.hosts.len(), 3);
    assert!(trials(run).values().all(|own| own.len() == 3));
    for outcome in &run.outcomes {
        let levels = &run.header.cells[outcome.cell as usize].levels;
        let flow = &outcome.trials[0].near.flows[0].socket;
        let at = |host: &str| host.split(':').next().unwrap().to_owned();
        assert!(flow.local.as_ref().unwrap().starts_with(&at(&levels["from"])), "{flow:?} {levels:?}");
        assert!(flow.peer.as_ref().unwrap().starts_with(&at(&levels["to"])), "{flow:?} {levels:?}");
    }
    // Three hosts: nobody else is free while two of them measure.
    let mut spans: Vec<(u64, u64)> =
        run.passes.iter().map(|pass| (pass.started_ns, pass.started_ns + pass.duration_ns)).collect();
    spans.sort_unstable();
    assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "no host is in two tests at once: {spans:?}");
    let shown = sandbox.run(&["show", "last"]).ok().stdout;
    assert!(
        shown.contains("Median round trip") && shown.contains("Goodput") && shown.contains("from \\ to"),
        "{shown}"
    );
}

#[test]
fn two_pairs_of_hosts_measure_at_the_same_time() {
    let agents = [Agent::start(), Agent::start(), Agent::start(), Agent::start()];
    let sandbox = Sandbox::new();
    write(
        &sandbox,
        "plan.toml",
        "from = \"${from}\"\nto = \"${to}\"\n[base]\ntime = \"300ms\"\n[repeat]\nmin = 2\nmax = 2\n",
    );
    let list =
        |name: &str, of: &[Agent]| format!("{name}={}", of.iter().map(Agent::host).collect::<Vec<_>>().join(","));
    let (from, to) = (list("from", &agents[..2]), list("to", &agents[2..]));
    let run = sandbox.measure(&["run", "plan.toml", "--var", &from, "--var", &to]).run;
    assert_eq!(run.header.cells.len(), 4);
    // Four cells in two rounds of two: the two of a round begin together.
    let begun: BTreeSet<u64> = run.passes.iter().map(|pass| pass.started_ns).collect();
    assert_eq!((run.passes.len(), begun.len()), (8, 4));
}

/// The MTU of a host's link.
fn mtu(host: &LabHost) -> String {
    let path = format!("/sys/class/net/{}/mtu", host.interface);
    let output = host.command("cat").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn settings_are_in_force_in_their_cells_and_put_back() {
    let test = "settings_are_in_force_in_their_cells_and_put_back";
    let Some(lab) = skip::lab(test, &CrossoverSpec { mtu: 1_500, ..CrossoverSpec::default() }) else { return };
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let sandbox = Sandbox::with_token();
    let serve = |host: &LabHost| {
        let (place, token) = (format!("{}:0", host.v4), sandbox.token_flags());
        Agent::spawn(host.command(binary::thru()), &[&token[..], &["--allow-tuning", "--listen", &place]].concat())
    };
    let agents = [serve(a), serve(b)];
    let text = std::fs::read_to_string(binary::workspace().join("plans/mtu.toml")).unwrap();
    let text = text.replace("[1500, 4000, 9000]", "[1500, 9000]");
    let text = text.replace("\"100ms\"", "\"20ms\"").replace("\"500ms\"", "\"50ms\"");
    // However busy this machine is.
    let text = text.replace("load = 4.0", "load = 4000.0");
    let text = text
        .replace("min = 6", "min = 2")
        .replace("max = 12", "max = 2")
        .replace("to = [", "from = [\"${near}\"]\nto = [");
    write(&sandbox, "mtu.toml", &text);
    let vars =
        [format!("near={}", agents[0].host()), format!("host={}", agents[1].host()), format!("device={}", a.interface)];
    let args: Vec<&str> = vars.iter().flat_map(|var| ["--var", var.as_str()]).collect();
    let command =
        |more: &[&str]| sandbox.prepare(a.command(binary::thru()), &[&["run", "mtu.toml"], &args[..], more].concat());
    let run = program::Running::of(command(&["--json", "-"])).wait().ok().doc().run;
    for outcome in &run.outcomes {
        let wanted = &run.header.cells[outcome.cell as usize].levels["mtu"];
        let socket = &outcome.trials[0].near.flows[0].socket;
        assert_eq!(socket.pmtu.map(|mtu| mtu.to_string()).as_ref(), Some(wanted), "{socket:?}");
        let pass = run.passes.iter().find(|pass| pass.index == outcome.trials[0].pass).unwrap();
        assert!(
            pass.far.settings.iter().any(|change| change.key.ends_with(".mtu") && change.now == *wanted),
            "{pass:?}"
        );
    }
    assert_eq!([mtu(a), mtu(b)], ["1500", "1500"]);
    // Ctrl-C in the middle of a cell puts back too.
    let long = text.replace("\"50ms\"\n\n[settings]", "\"1m\"\n\n[settings]").replace("[1500, ", "[4000, ");
    write(&sandbox, "mtu.toml", &long);
    let running = program::Running::of(command(&["--live"]));
    eventually("both MTUs are changed", || mtu(a) != "1500" && mtu(b) == mtu(a));
    running.signal(Signal::INT);
    let _ = running.wait().ended_with(130);
    assert_eq!([mtu(a), mtu(b)], ["1500", "1500"]);
}
