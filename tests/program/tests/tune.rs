//! Settings of hosts, between namespaces of a lab (root only): set, read back, put back whatever happens.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says what it saw"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use lab::{CrossoverSpec, Lab, LabHost};
use program::process::Signal;
use program::{Agent, Finished, Running, Sandbox, binary, eventually, skip, thorough};
use serde_json::Value;

/// A user without rights.
const NOBODY: u32 = 65_534;

/// A setting of a namespace that no link goes down for.
const RMEM: &str = "sysctl.net.ipv4.tcp_rmem";

/// Two hosts, a journal of their own, and a folder.
struct TestBed {
    lab: Lab,
    sandbox: Sandbox,
}

impl TestBed {
    fn new(test: &str) -> Option<Self> {
        Some(Self { lab: skip::lab(test, &CrossoverSpec::default())?, sandbox: Sandbox::with_token() })
    }

    fn host(&self, name: &str) -> &LabHost {
        self.lab.host(name).unwrap()
    }

    /// A command on a host; all hosts share the journal, as all namespaces of a machine do.
    fn start(&self, host: &str, args: &[&str]) -> Running {
        let mut command = self.sandbox.prepare(self.host(host).command(binary::thru()), args);
        command.env("THRU_JOURNAL", self.sandbox.path("journal"));
        Running::of(command)
    }

    fn run(&self, host: &str, args: &[&str]) -> Finished {
        self.start(host, args).wait()
    }

    fn json(&self, host: &str, args: &[&str]) -> Value {
        let finished = self.run(host, &[args, &["--json"]].concat()).ok();
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {}", finished.stdout))
    }

    /// What a setting is, in thru's words.
    fn value(&self, host: &str, key: &str) -> String {
        self.json(host, &["tune", "show", key])["settings"][0]["value"].as_str().unwrap().to_owned()
    }

    fn agent(&self, host: &str, flags: &[&str]) -> Agent {
        let listen = format!("{}:0", self.host(host).v4);
        let mut command = self.host(host).command(binary::thru());
        command.env("THRU_JOURNAL", self.sandbox.path("journal"));
        Agent::spawn(command, &[&self.sandbox.token_flags()[..], &["--listen", &listen], flags].concat())
    }

    /// What is changed and not back.
    fn open(&self) -> usize {
        self.json("a", &["tune", "journal"])["entries"].as_array().unwrap().len()
    }
}

fn says(host: &LabHost, program: &str, args: &[&str]) -> String {
    let output = host.command(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Lines of the journal's files together.
fn lines(journal: &Path) -> usize {
    let files = std::fs::read_dir(journal).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).map(|text| text.lines().count()).sum()
}

#[test]
fn every_kind_of_this_machine_is_set_and_put_back_as_its_own_tools_show() {
    let Some(bench) = TestBed::new("every_kind_of_this_machine_is_set_and_put_back_as_its_own_tools_show") else {
        return;
    };
    let a = bench.host("a");
    let (device, network) = (a.interface.clone(), says(a, "ip", &["-4", "route", "show"]));
    let network = network.split_whitespace().next().unwrap().to_owned();
    // What a setting is to become, and how the system's own tools then say so.
    let link = ["-d", "link", "show", "dev", &device];
    let kinds: Vec<(String, String, &str, Vec<&str>, String)> = vec![
        (
            "sysctl.net.ipv4.tcp_rmem".into(),
            "4096 200000 8000000".into(),
            "cat",
            vec!["/proc/sys/net/ipv4/tcp_rmem"],
            "200000".into(),
        ),
        ("cc.default".into(), "reno".into(), "cat", vec!["/proc/sys/net/ipv4/tcp_congestion_control"], "reno".into()),
        (format!("dev.{device}.mtu"), "1400".into(), "ip", link.to_vec(), "mtu 1400".into()),
        (format!("dev.{device}.txqueuelen"), "77".into(), "ip", link.to_vec(), "qlen 77".into()),
        (format!("dev.{device}.gso_max_size"), "40000".into(), "ip", link.to_vec(), "gso_max_size 40000".into()),
        (format!("dev.{device}.gro_max_size"), "50000".into(), "ip", link.to_vec(), "gro_max_size 50000".into()),
        (
            format!("qdisc.{device}"),
            "tbf rate 100mbit burst 32k latency 50ms".into(),
            "tc",
            vec!["qdisc", "show", "dev", &device],
            "tbf".into(),
        ),
        (format!("route.{network}.initcwnd"), "20".into(), "ip", vec!["route"], "initcwnd 20".into()),
        (format!("route.{network}.quickack"), "1".into(), "ip", vec!["route"], "quickack 1".into()),
        (format!("route.{network}.mtu"), "lock 1300".into(), "ip", vec!["route"], "mtu lock 1300".into()),
    ];
    for (key, value, program, args, shown) in &kinds {
        let before = (bench.value("a", key), says(a, program, args));
        assert!(!before.1.contains(shown), "{key} is so already");
        let set = bench.json("a", &["tune", "set", &format!("{key}={value}")]);
        assert_eq!(set["changes"][0]["before"], before.0.as_str(), "{set}");
        assert!(says(a, program, args).contains(shown), "{key}: {}", says(a, program, args));
        bench.run("a", &["tune", "revert", set["id"].as_str().unwrap()]).ok();
        // Where a qdisc was, its handle may differ.
        assert_eq!(bench.value("a", key), before.0, "{key}");
        assert!(!says(a, program, args).contains(shown), "{key}");
    }
    // What no tool of this machine need show: offloads and BIG TCP over IPv4, by our own reading in another process.
    for (key, value) in [("offload.tso", "off"), ("offload.gro", "on"), ("gso_ipv4_max_size", "30000")] {
        let key = format!("dev.{device}.{key}");
        let before = bench.value("a", &key);
        bench.run("a", &["tune", "set", &format!("{key}={value}")]).ok();
        assert_eq!(bench.value("a", &key), value, "{key}");
        bench.run("a", &["tune", "revert"]).ok();
        assert_eq!(bench.value("a", &key), before, "{key}");
    }
    assert_eq!(bench.open(), 0);
}

#[test]
fn killed_owners_leave_nothing_that_is_not_put_back() {
    let Some(bench) = TestBed::new("killed_owners_leave_nothing_that_is_not_put_back") else { return };
    let device = bench.host("a").interface.clone();
    let keys = [format!("dev.{device}.mtu"), format!("dev.{device}.txqueuelen"), "sysctl.net.ipv4.tcp_rmem".to_owned()];
    let state = || bench.json("a", &[&["tune", "show"], keys.each_ref().map(String::as_str).as_slice()].concat());
    let before = state();
    let set = ["=1400", "=77", "=4096 200000 8000000"];
    let settings: Vec<String> = keys.iter().zip(set).map(|(key, value)| format!("{key}{value}")).collect();
    let kills: u64 = if thorough() { 100 } else { 24 };
    let mut cut = 0;
    for kill in 0..kills {
        let words: Vec<&str> = settings.iter().map(String::as_str).collect();
        let mut running = bench.start("a", &[&["tune", "set"], words.as_slice(), &["--for", "1m"]].concat());
        // At each of its steps, which are lines of its journal (its owner, then plan and result of each setting), and a moment more.
        let step = kill as usize % (2 + 2 * settings.len());
        // Without a pause: the steps follow each other within a millisecond.
        while lines(&bench.sandbox.path("journal")) < step && running.runs() {}
        std::thread::sleep(Duration::from_micros(kill * 7_919 % 500));
        running.signal(Signal::KILL);
        let _ = running.wait();
        cut += u64::from(state() != before);
        // By hand, or by the next command that tunes.
        if kill % 2 == 0 {
            bench.run("a", &["tune", "revert"]).ok();
        } else {
            bench.run("a", &["tune", "set", "sysctl.net.ipv4.tcp_sack=1", "--for", "1ms"]).ok();
        }
        assert_eq!(state(), before, "kill {kill}");
        assert_eq!(bench.open(), 0, "kill {kill}");
    }
    // From the third line on something is changed: a test whose kills all came too early would show nothing.
    assert!(cut * 10 >= 6 * kills, "{cut} of {kills} kills left something to put back");
}

#[test]
fn settings_of_a_run_are_in_its_header_and_gone_after_it() {
    let Some(bench) = TestBed::new("settings_of_a_run_are_in_its_header_and_gone_after_it") else { return };
    let agent = bench.agent("b", &["--allow-tuning"]);
    let near = bench.host("a").interface.clone();
    let before = (bench.value("a", &format!("dev.{near}.mtu")), bench.value("b", "sysctl.net.ipv4.tcp_sack"));
    let rmem = bench.value("b", RMEM);
    let (mtu, sack) = (format!("near:dev.{near}.mtu=1400"), "far:sysctl.net.ipv4.tcp_sack=0");
    let flags = ["--trials", "1", "--time", "50ms", "--json", "-", "--no-store"];
    let run =
        bench.run("a", &[&["stream", agent.host(), "--set", &mtu, "--set", sack], flags.as_slice()].concat()).ok();
    let run: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(run["header"]["settings"]["near"][0]["now"], "1400");
    assert_eq!(run["header"]["settings"]["near"][0]["before"], before.0.as_str());
    assert_eq!(run["header"]["settings"]["far"][0]["now"], "0");
    assert_eq!(run["outcomes"][0]["spec"]["settings"]["far"][0]["key"], "sysctl.net.ipv4.tcp_sack");
    let mss = run["outcomes"][0]["trials"][0]["near"]["flows"][0]["socket"]["mss"].as_u64();
    assert!(mss.is_none_or(|mss| mss < 1400), "{mss:?}");
    let after = (bench.value("a", &format!("dev.{near}.mtu")), bench.value("b", "sysctl.net.ipv4.tcp_sack"));
    assert_eq!(after, before);
    assert_eq!(bench.open(), 0);
    // The sides of a comparison, each with its own.
    let sides = ["--a", "--set near:sysctl.net.ipv4.tcp_rmem='4096 100000 200000' --time 10ms", "--b", "--time 10ms"];
    let set = ["--set", "far:sysctl.net.ipv4.tcp_sack=0", "--pairs", "12", "--json", "-", "--no-store"];
    let ab = bench.run("a", &[&["ab", agent.host()], sides.as_slice(), set.as_slice()].concat());
    assert!(matches!(ab.code, Some(0 | 3 | 4 | 8)), "{:?}: {}", ab.code, ab.stderr);
    let ab: Value = serde_json::from_str(&ab.stdout).unwrap();
    let cells = &ab["header"]["settings"]["cells"];
    assert_eq!(cells[0]["near"][0]["now"], "4096 100000 200000");
    assert_eq!(cells[1]["near"].as_array().map(Vec::len), Some(0));
    assert_eq!(bench.open(), 0);
    // The same from files, with settings at both ends.
    let write = |name: &str, value: &str| {
        let text = format!(
            "[base]\ntime = \"10ms\"\n[settings]\nnear = {{ \"{RMEM}\" = \"{value}\" }}\nfar = {{ \"{RMEM}\" = \"{value}\" }}\n"
        );
        std::fs::write(bench.sandbox.path(name), text).unwrap();
    };
    write("a.toml", "4096 100000 200000");
    write("b.toml", "4096 200000 400000");
    let files = ["--a-file", "a.toml", "--b-file", "b.toml"];
    let ab = bench.run("a", &[&["ab", agent.host()], files.as_slice(), set.as_slice()].concat());
    assert!(matches!(ab.code, Some(0 | 3 | 4 | 8)), "{:?}: {}", ab.code, ab.stderr);
    let ab: Value = serde_json::from_str(&ab.stdout).unwrap();
    for (cell, value) in ["4096 100000 200000", "4096 200000 400000"].into_iter().enumerate() {
        let of = &ab["header"]["settings"]["cells"][cell];
        // At the far end after the one that both sides share.
        assert_eq!((&of["near"][0]["now"], &of["far"][1]["now"]), (&value.into(), &value.into()), "{of}");
        assert_eq!(ab["outcomes"][cell]["spec"]["settings"]["near"][0]["value"], value);
    }
    assert_eq!(bench.open(), 0);
    assert_eq!(bench.value("b", RMEM), rmem);
}

#[test]
fn an_agent_changes_nothing_unless_it_was_told_to() {
    let Some(bench) = TestBed::new("an_agent_changes_nothing_unless_it_was_told_to") else { return };
    let agent = bench.agent("b", &[]);
    let refused = bench.run("a", &["tune", "set", "sysctl.net.ipv4.tcp_sack=0", agent.host()]).ended_with(4);
    assert!(refused.message().contains("--allow-tuning"), "{}", refused.message());
    let set = ["--set", "far:sysctl.net.ipv4.tcp_sack=0", "--trials", "1", "--no-store"];
    bench.run("a", &[&["stream", agent.host()], set.as_slice()].concat()).ended_with(4);
    assert_eq!(bench.value("b", "sysctl.net.ipv4.tcp_sack"), "1");
}

#[test]
fn mistakes_end_with_their_codes() {
    let Some(bench) = TestBed::new("mistakes_end_with_their_codes") else { return };
    let mistake = |args: &[&str], code| bench.run("a", &[&["tune", "set"], args].concat()).ended_with(code).message();
    assert!(mistake(&["sysctl.net.ipv4.tcp_sackk=0"], 2).contains("did you mean sysctl.net.ipv4.tcp_sack"));
    assert!(mistake(&["sysctl.net.ipv4.tcp_congestion_control=nosuch"], 7).contains("tcp_congestion_control"));
    // In a namespace the host's own bounds can only be read.
    assert!(mistake(&["sysctl.net.core.rmem_max=1000000"], 7).contains("whole host"));
    assert!(bench.run("a", &["tune", "show", "sysctll.net.x"]).ended_with(2).message().contains("no setting"));
    assert_eq!(bench.open(), 0);
}

#[test]
fn a_lost_coordinator_and_a_dropped_link_are_survived() {
    let Some(bench) = TestBed::new("a_lost_coordinator_and_a_dropped_link_are_survived") else { return };
    let agent = bench.agent("b", &["--allow-tuning", "--grace", "100ms"]);
    let device = bench.host("b").interface.clone();
    // Killed: the agent puts back what its coordinator had set.
    let mut holder = bench.start("a", &["tune", "set", "sysctl.net.ipv4.tcp_sack=0", agent.host()]);
    holder.until_printed("is now 0");
    holder.signal(Signal::KILL);
    let _ = holder.wait();
    eventually("the agent has put it back", || bench.value("b", "sysctl.net.ipv4.tcp_sack") == "1");
    // A change that cuts the connection by which it was ordered.
    let cut = bench.run("a", &["tune", "set", &format!("dev.{device}.state=down"), agent.host()]);
    assert_ne!(cut.code, Some(0), "{}", cut.stdout);
    eventually("the link is up again", || bench.value("b", &format!("dev.{device}.state")) == "up");
    assert_eq!(bench.open(), 0);
    // One that could and does not is confirmed.
    bench.run("a", &["tune", "set", &format!("dev.{device}.mtu=1400"), agent.host(), "--for", "1ms"]).ok();
    assert_eq!(bench.open(), 0);
}

#[test]
fn one_owner_at_a_time_and_host_wide_settings_across_namespaces() {
    let Some(bench) = TestBed::new("one_owner_at_a_time_and_host_wide_settings_across_namespaces") else { return };
    let mut first = bench.start("a", &["tune", "set", "sysctl.net.ipv4.tcp_sack=0", "--for", "1m"]);
    first.until_printed("is now 0");
    let busy = bench.run("a", &["tune", "set", "sysctl.net.ipv4.tcp_sack=1"]).ended_with(4);
    assert!(busy.message().contains("in use by 'thru tune set"), "{}", busy.message());
    // The other namespace's is another setting.
    bench.run("b", &["tune", "set", "sysctl.net.ipv4.tcp_sack=0", "--for", "1ms"]).ok();
    let waiting = bench.start("a", &["tune", "set", "sysctl.net.ipv4.tcp_sack=0", "--wait", "60s", "--for", "1ms"]);
    first.signal(Signal::INT);
    first.wait().ok();
    waiting.wait().ok();
    // A parameter of a module is the whole host's. Setting it to what it is takes the lease and changes nothing.
    let key = "cc.cubic.beta";
    let shown = bench.run("a", &["tune", "show", key]);
    if shown.code == Some(0) {
        let same = format!("{key}={}", bench.value("a", key));
        let mut first = bench.start("a", &["tune", "set", &same, "--for", "1m"]);
        first.until_printed("is now");
        let busy = bench.run("b", &["tune", "set", &same]).ended_with(4);
        assert!(busy.message().contains("another network namespace"), "{}", busy.message());
        first.signal(Signal::INT);
        first.wait().ok();
    }
    assert_eq!(bench.value("a", "sysctl.net.ipv4.tcp_sack"), "1");
    assert_eq!(bench.open(), 0);
}

#[test]
fn a_user_reads_and_is_told_what_setting_needs() {
    let test = "a_user_reads_and_is_told_what_setting_needs";
    let Some(bench) = TestBed::new(test) else { return };
    if !skip::program(test, "setpriv", "util-linux") {
        return;
    }
    let folder = tempfile::Builder::new().prefix("thru-test-").tempdir().unwrap();
    let (journal, program) = (folder.path().join("journal"), folder.path().join("thru"));
    std::fs::create_dir(&journal).unwrap();
    std::os::unix::fs::chown(&journal, Some(NOBODY), Some(NOBODY)).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::copy(binary::thru(), &program).unwrap();
    let run = |args: &[&str]| {
        let mut command = bench.host("a").command("setpriv");
        let nobody = NOBODY.to_string();
        command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]).arg(&program);
        command.args(args).env("THRU_JOURNAL", &journal);
        Running::of(command).wait()
    };
    let shown = run(&["tune", "show", "sysctl.net.ipv4.tcp_sack"]).ok();
    assert!(shown.stdout.contains("tcp_sack"), "{}", shown.stdout);
    let refused = run(&["tune", "set", "sysctl.net.ipv4.tcp_sack=0"]).ended_with(7);
    assert!(refused.message().contains("needs root"), "{}", refused.message());
    assert_eq!(bench.value("a", "sysctl.net.ipv4.tcp_sack"), "1");
}

/// The sender's settings of 2003, with one that kernels no longer have and one that a namespace does not have.
#[test]
fn a_file_of_sysctls_is_applied_on_either_host_as_far_as_it_has_them() {
    let Some(bench) = TestBed::new("a_file_of_sysctls_is_applied_on_either_host_as_far_as_it_has_them") else { return };
    let file = bench.sandbox.path("snv.conf");
    let text = "vm.bdflush = 100 1200 128 512 15 5000 500 1884 2\nnet.ipv4.tcp_rmem = 4096 87380 67108864\n\
                net.ipv4.tcp_mem = 8388608 8388608 67108864\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let agent = bench.agent("b", &["--allow-tuning"]);
    let before = ["a", "b"].map(|host| bench.value(host, RMEM));
    let far = [&["tune", "apply", file, agent.host(), "--keep"], &bench.sandbox.token_flags()[..]].concat();
    let (here, there) =
        ("this host has no such setting: ", format!("not a net.* setting, so it is not sent to {}: ", agent.host()));
    for (host, of, args, vm) in
        [("a", "this host", vec!["tune", "apply", file], here), ("b", agent.host(), far, there.as_str())]
    {
        let done = bench.run("a", &args).ok();
        assert!(done.stderr.contains(&format!("not applied: {vm}{file}, vm.bdflush = 100 1200")), "{done:?}");
        assert!(
            done.stderr.contains(&format!("not applied: {of} has no such setting: {file}, net.ipv4.tcp_mem = 8388608")),
            "{done:?}"
        );
        assert_eq!(bench.value(host, RMEM), "4096 87380 67108864", "{host}");
        bench.run(host, &["tune", "revert"]).ok();
    }
    assert_eq!(["a", "b"].map(|host| bench.value(host, RMEM)), before);
    std::fs::write(file, "net.ipv4.tcp_mem = 1 2 3\n").unwrap();
    let refused = bench.run("a", &["tune", "apply", file]).ended_with(2);
    assert!(refused.stderr.contains("this host has none of the settings in "), "{refused:?}");
    // Of the whole machine, so it is only looked at.
    std::fs::write(file, "kernel.core_uses_pid = 1\n").unwrap();
    let planned = bench.run("a", &["tune", "apply", file, "--dry-run"]).ok();
    assert!(planned.stdout.contains("sysctl.kernel.core_uses_pid"), "{planned:?}");
}
