//! What commands leave behind when they are ended from outside: nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says what it saw"
)]

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use lab::{CrossoverSpec, Lab};
use program::agent::{OTHER_USER, children, descendants, zombies};
use program::process::{Signal, runs, send, within};
use program::{Agent, Running, Sandbox, binary, eventually, skip};
use rustix::process::{Pid, kill_process_group};

/// Catchable signals that end a process; those of a lost terminal among them.
const ENDING: [Signal; 6] = [Signal::HUP, Signal::QUIT, Signal::TERM, Signal::INT, Signal::USR1, Signal::ALARM];

const SACK: &str = "/proc/sys/net/ipv4/tcp_sack";
const SET: &str = "sysctl.net.ipv4.tcp_sack=0";

/// `thru` that ignores no signal, whatever this test's starter (`nohup`, a shell's `&`) has it ignore.
fn listening(lab: &Lab, host: &str, sandbox: &Sandbox, args: &[&str]) -> Running {
    let mut command = lab.host(host).unwrap().command("env");
    command.arg("--default-signal=HUP,QUIT,USR1,ALRM").arg(binary::thru());
    let mut command = sandbox.prepare(command, args);
    command.env("THRU_JOURNAL", sandbox.path("journal"));
    Running::of(command)
}

fn sack(lab: &Lab, host: &str) -> String {
    let output = lab.host(host).unwrap().command("cat").arg(SACK).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn settings_go_back_at_every_signal_that_can_be_caught() {
    let test = "settings_go_back_at_every_signal_that_can_be_caught";
    let Some(lab) = skip::lab(test, &CrossoverSpec::default()) else { return };
    let sandbox = Sandbox::with_token();
    let start = |host, args: &[&str]| listening(&lab, host, &sandbox, args);
    for signal in ENDING {
        let mut holder = start("a", &["tune", "set", SET, "--for", "5m"]);
        holder.until_printed("is now 0");
        holder.signal(signal);
        holder.wait().ok();
        assert_eq!(sack(&lab, "a"), "1", "{signal:?}");
    }
    let (place, token) = (format!("{}:0", lab.host("b").unwrap().v4), sandbox.token_flags());
    for signal in [Signal::HUP, Signal::QUIT] {
        let mut agent =
            start("b", &[&["serve", "--allow-tuning", "--user", OTHER_USER, "--listen", &place], &token[..]].concat());
        agent.until_printed("listening on ");
        let said = agent.stderr();
        let host = said.split("listening on ").nth(1).unwrap().split_whitespace().next().unwrap();
        let set = format!("near:{SET}");
        let client = start("a", &["stream", "--time", "5m", "--trials", "1", "--no-store", "--set", &set, host]);
        eventually("the near end is set", || sack(&lab, "a") == "0");
        client.signal(signal);
        assert_eq!(client.wait().code, Some(130), "{signal:?}");
        assert_eq!(sack(&lab, "a"), "1", "{signal:?}");
        let mut holder = start("a", &["tune", "set", SET, host]);
        holder.until_printed("is now 0");
        assert_eq!(sack(&lab, "b"), "0");
        agent.signal(signal);
        agent.wait().ok();
        assert_eq!(sack(&lab, "b"), "1", "{signal:?}");
        let _ = holder.wait();
    }
    // What a user wants to outlive the terminal does so.
    let mut command = lab.host("a").unwrap().command("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(binary::thru());
    let mut command = sandbox.prepare(command, &["tune", "set", SET, "--for", "5m"]);
    command.env("THRU_JOURNAL", sandbox.path("journal"));
    let mut holder = Running::of(command);
    holder.until_printed("is now 0");
    // The kernel discards an ignored signal when it is sent, so there is nothing to wait for.
    assert!(ignores(holder.pid(), Signal::HUP));
    holder.signal(Signal::HUP);
    assert!(holder.runs() && sack(&lab, "a") == "0");
    // An impatient second one does not leave them either.
    let set = format!("near:{SET}");
    holder.signal(Signal::INT);
    holder.wait().ok();
    let mut far = Agent::spawn(lab.host("b").unwrap().command(binary::thru()), &["--open", "--listen", &place]);
    let open = Sandbox::new();
    let client = listening(
        &lab,
        "a",
        &open,
        &["stream", "--time", "5m", "--trials", "1", "--no-store", "--set", &set, far.host()],
    );
    eventually("the near end is set", || sack(&lab, "a") == "0");
    // The far end answers no more, so that the first one takes its time.
    far.signal(Signal::STOP);
    client.signal(Signal::INT);
    client.signal(Signal::TERM);
    assert_eq!(client.wait().code, Some(130));
    eventually("it is back", || sack(&lab, "a") == "1");
    far.signal(Signal::CONT);
    far.signal(Signal::TERM);
    far.wait();
}

/// If a process ignores a signal (proc_pid_status(5), SigIgn: signal 1 is the lowest bit).
fn ignores(pid: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

/// Folders of `thru`'s in a desk, which is the folder for temporary files of its commands.
fn scratch(sandbox: &Sandbox) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(sandbox.path("")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("thru-")).collect()
}

#[test]
fn a_self_test_and_a_demo_leave_no_process_and_no_folder() {
    // A self-test measures in its own process, with a worker for each end; a demo has an agent, a client and workers.
    let commands: [(&[&str], usize); 2] = [
        (&["selftest", "--quick", "--loopback", "--no-store"], 2),
        (&["demo", "--loopback", "--report", "report", "--", "--time", "1m"], 3),
    ];
    for (args, processes, signal) in commands
        .iter()
        .flat_map(|(args, processes)| [Signal::TERM, Signal::HUP, Signal::KILL].map(|one| (args, *processes, one)))
    {
        let sandbox = Sandbox::new();
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,TERM").arg(binary::thru());
        let command = Running::of(sandbox.prepare(command, args));
        eventually("it measures", || descendants(command.pid()).len() >= processes);
        let below = descendants(command.pid());
        send(command.pid(), signal);
        let _ = command.wait();
        eventually(&format!("nothing of {args:?} runs after {signal:?}: {below:?}"), || {
            !below.iter().any(|pid| runs(*pid))
        });
        if signal == Signal::KILL && args[0] == "selftest" {
            // Its folders were its own: the next command removes them, as those of any killed measurement.
            sandbox.run(&["watch", "--count", "1"]).ok();
        }
        assert_eq!(scratch(&sandbox), Vec::<PathBuf>::new(), "{args:?}, {signal:?}");
    }
}

#[test]
fn a_demo_that_is_interrupted_at_once_has_no_report() {
    // While its agent starts, and while its first curve does.
    for processes in 1..3 {
        let sandbox = Sandbox::new();
        let mut command = sandbox.command(&["demo", "--loopback", "--report", "report"]);
        // A terminal sends Ctrl-C to all processes of the command.
        command.process_group(0);
        let demo = Running::of(command);
        eventually("it begins", || children(demo.pid()).len() >= processes);
        kill_process_group(Pid::from_raw(demo.pid().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
        let stderr = demo.wait().ended_with(130).stderr;
        assert!(!stderr.contains("no run"), "{stderr}");
        assert!(!sandbox.path("report/curve.html").exists());
    }
}

#[test]
fn an_idle_agent_has_waited_for_its_workers() {
    // Their first measurement: nothing but the worker's end wakes the agent up, if it ends after the client has gone.
    for _ in 0..4 {
        let (agent, sandbox) = (Agent::start(), Sandbox::new());
        sandbox.measure(&["stream", agent.host(), "--time", "50ms", "--trials", "1"]);
        eventually("no worker runs", || agent.workers().is_empty());
        within(Duration::from_secs(20), "none is left as a zombie", || zombies(agent.pid()).is_empty());
    }
}

#[test]
fn folders_of_killed_processes_are_swept() {
    let sandbox = Sandbox::new();
    let start = || {
        let mut agent = sandbox.start(&["serve", "--listen", "127.0.0.1:0"]);
        agent.until_printed("listening on ");
        agent
    };
    let agent = start();
    let (left, foreign) = (scratch(&sandbox), sandbox.path("thru-abcdef"));
    assert_eq!(left.len(), 1);
    std::fs::create_dir(&foreign).unwrap();
    sandbox.run(&["watch", "--count", "1"]).ok();
    assert!(left[0].exists(), "its owner lives");
    agent.signal(Signal::KILL);
    let _ = agent.wait();
    assert!(left[0].exists());
    // Each user removes what its own processes left. An agent that root starts is another user.
    let next = start();
    assert!(!left[0].exists());
    next.signal(Signal::TERM);
    let _ = next.wait();
    assert_eq!(scratch(&sandbox), [foreign]);
}

#[test]
fn what_a_killed_plans_lab_set_for_the_whole_machine_goes_back_at_once() {
    let test = "what_a_killed_plans_lab_set_for_the_whole_machine_goes_back_at_once";
    // One that no other test looks at.
    const FILE: &str = "/proc/sys/net/core/netdev_budget_usecs";
    if let Err(error) = lab::available() {
        return skip::skip(test, &error.to_string());
    }
    let own = || std::fs::read_to_string(FILE).unwrap_or_default().trim().to_owned();
    let before = own();
    let Ok(number) = before.parse::<u64>() else { return skip::skip(test, "there is no netdev_budget_usecs") };
    if std::fs::OpenOptions::new().write(true).open(FILE).is_err() {
        return skip::skip(test, "the machine's own values can only be read");
    }
    let sandbox = Sandbox::new();
    let plan = format!(
        "to = \"b\"\n[base]\ntime = \"1m\"\n[repeat]\nmin = 1\nmax = 1\n[lab]\ntopology = \"crossover\"\n         [lab.host_wide]\n\"sysctl.net.core.netdev_budget_usecs\" = {}\n",
        number + 17
    );
    std::fs::write(sandbox.path("plan.toml"), plan).unwrap();
    for kill in 0..3 {
        let mut command = sandbox.command(&["run", "plan.toml", "--lab", "--no-store"]);
        command.env("THRU_JOURNAL", sandbox.path("journal"));
        let holder = Running::of(command);
        eventually("it is set", || own() != before);
        // The moment of the kill, another one each time.
        std::thread::sleep(Duration::from_millis(kill * 300));
        holder.signal(Signal::KILL);
        let _ = holder.wait();
        eventually("it is back without another command", || own() == before);
    }
}
