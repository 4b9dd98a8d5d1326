//! An agent that has been taken over: what its process, its workers and its helper still allow.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use lab::{CrossoverSpec, Lab};
use program::agent::children_called;
use program::process::{Signal, eventually, send, within};
use program::{Agent, Running, Sandbox, binary, skip};
use serde_json::{Value, json};

/// A line of /proc/PID/status, without its name.
fn status(pid: u32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

fn child(pid: u32, subcommand: &str) -> u32 {
    let mut found = None;
    eventually("the process runs", || {
        found = children_called(pid, subcommand).first().copied();
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn an_agent_of_root_and_its_workers_have_no_privileges() {
    if !skip::root("an_agent_of_root_and_its_workers_have_no_privileges") {
        return;
    }
    let sandbox = Sandbox::with_token();
    let captures = format!("--allow-capture={}", sandbox.path("captures").display());
    let agent = Agent::with_token(&sandbox, &["--allow-tuning", "--allow-stacks", &captures]);
    let client = sandbox.start(&["stream", agent.host(), "--time", "1m", "--trials", "1", "--no-store"]);
    let (helper, worker) = (child(agent.pid(), "helper"), child(agent.pid(), "worker"));
    for pid in [agent.pid(), worker] {
        eventually("it has given up root", || !status(pid, "Uid").contains("0\t"));
        for capabilities in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(status(pid, capabilities), "0000000000000000", "{capabilities} of {pid}");
        }
        assert_eq!((status(pid, "NoNewPrivs").as_str(), status(pid, "Groups").as_str()), ("1", ""));
    }
    assert_eq!(status(helper, "Uid"), "0\t0\t0\t0");
    for limit in ["Max data size", "Max processes"] {
        eventually("its limits are set", || {
            let limits = fs::read_to_string(format!("/proc/{worker}/limits")).unwrap();
            limits.lines().any(|line| line.starts_with(limit) && !line.contains("unlimited"))
        });
    }
    client.signal(Signal::INT);
    let _ = client.wait();
}

#[test]
fn an_agent_of_root_serves_from_a_folder_that_its_user_cannot_read() {
    if !skip::root("an_agent_of_root_serves_from_a_folder_that_its_user_cannot_read") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.path("private").join("thru");
    fs::create_dir(program.parent().unwrap()).unwrap();
    fs::copy(binary::thru(), &program).unwrap();
    fs::set_permissions(program.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
    let agent = Agent::spawn(Command::new(&program), &["--listen", "127.0.0.1:0"]);
    sandbox.run(&["stream", agent.host(), "--time", "50ms", "--trials", "1"]).ok();
}

#[test]
fn without_a_token_no_buffer_exceeds_the_hosts_limit() {
    if !skip::root("without_a_token_no_buffer_exceeds_the_hosts_limit") {
        return;
    }
    let most: u64 = fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap().trim().parse().unwrap();
    let requested = format!(",{}", 4 * most);
    let flags = ["--rcvbuf", &requested, "--time", "50ms", "--trials", "1"];
    let got = |agent: &Agent, sandbox: &Sandbox| {
        let doc = sandbox.measure(&[&["stream", agent.host()], &flags[..]].concat());
        doc.trials()[0].far.flows[0].socket.rcvbuf.unwrap()
    };
    assert_eq!(got(&Agent::start(), &Sandbox::new()), 2 * most);
    let sandbox = Sandbox::with_token();
    assert_eq!(got(&Agent::with_token(&sandbox, &[]), &sandbox), 8 * most);
}

/// A host of a lab whose agent has changed a setting for a client.
struct Tuned {
    lab: Lab,
    agent: Agent,
    holder: Running,
    sandbox: Sandbox,
}

impl Tuned {
    fn new(test: &str) -> Option<Self> {
        let lab = skip::lab(test, &CrossoverSpec::default())?;
        let sandbox = Sandbox::with_token();
        let listen = format!("{}:0", lab.host("b").unwrap().v4);
        let mut command = lab.host("b").unwrap().command(binary::thru());
        command.env("THRU_JOURNAL", sandbox.path("journal"));
        let flags = [&sandbox.token_flags()[..], &["--listen", &listen, "--allow-tuning"]].concat();
        let agent = Agent::spawn(command, &flags);
        let set = ["tune", "set", "sysctl.net.ipv4.tcp_sack=0", agent.host()];
        let mut holder = Running::of(sandbox.prepare(lab.host("a").unwrap().command(binary::thru()), &set));
        holder.until_printed("is now 0");
        let tuned = Self { lab, agent, holder, sandbox };
        assert_eq!(tuned.sack(), "0");
        Some(tuned)
    }

    fn sack(&self) -> String {
        let output = self.lab.host("b").unwrap().command("cat").arg("/proc/sys/net/ipv4/tcp_sack").output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn open_records(&self) -> usize {
        let records = fs::read_dir(self.sandbox.path("journal")).unwrap().flatten();
        records.filter(|entry| entry.file_name() != "lock").count()
    }
}

#[test]
fn settings_go_back_when_the_agent_is_killed_or_hangs() {
    let test = "settings_go_back_when_the_agent_is_killed_or_hangs";
    let Some(killed) = Tuned::new(test) else { return };
    let helper = child(killed.agent.pid(), "helper");
    killed.agent.signal(Signal::KILL);
    eventually("the helper has put it back", || killed.sack() == "1");
    eventually("the helper has ended", || status(helper, "State").is_empty());
    assert_eq!(killed.open_records(), 0);
    let _ = killed.holder.wait();

    let Some(hangs) = Tuned::new(test) else { return };
    hangs.agent.signal(Signal::STOP);
    within(Duration::from_secs(30), "the helper has put it back", || hangs.sack() == "1");
    eventually("its record is closed", || hangs.open_records() == 0);
    hangs.agent.signal(Signal::CONT);
    let _ = hangs.holder.wait();
}

#[test]
fn a_killed_helper_is_reported_and_what_it_left_is_restored() {
    let test = "a_killed_helper_is_reported_and_what_it_left_is_restored";
    let Some(mut tuned) = Tuned::new(test) else { return };
    send(child(tuned.agent.pid(), "helper"), Signal::KILL);
    let again = ["tune", "set", "sysctl.net.ipv4.tcp_timestamps=0", tuned.agent.host()];
    tuned.holder.signal(Signal::INT);
    let _ = std::mem::replace(&mut tuned.holder, tuned.sandbox.start(&["agent", "known"])).wait();
    let command = tuned.lab.host("a").unwrap().command(binary::thru());
    let refused = Running::of(tuned.sandbox.prepare(command, &again)).wait().message();
    assert!(refused.contains("helper") && refused.contains("restart"), "{refused}");
    // The next command that changes settings there restores what is left.
    let mut command = tuned.lab.host("b").unwrap().command(binary::thru());
    command.env("THRU_JOURNAL", tuned.sandbox.path("journal"));
    let set = ["tune", "set", "sysctl.net.ipv4.tcp_timestamps=0", "--for", "1ms"];
    Running::of(tuned.sandbox.prepare(command, &set)).wait().ok();
    assert_eq!((tuned.sack().as_str(), tuned.open_records()), ("1", 0));
}

/// What a process of the agent's user can say to the helper.
struct Session(UnixStream);

impl Session {
    fn open(agent: &Agent, kind: u8) -> Self {
        let folder = fs::read_dir(format!("/proc/{}/fd", agent.pid())).unwrap().flatten();
        let folder =
            folder.filter_map(|fd| fs::read_link(fd.path()).ok()).find(|path| path.join("helper.sock").exists());
        let path: PathBuf = folder.expect("the agent holds its folder").join("helper.sock");
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(&[kind]).unwrap();
        Self(stream)
    }

    fn ask(&mut self, request: &Value) -> Value {
        let bytes = serde_json::to_vec(request).unwrap();
        self.0.write_all(&u32::try_from(bytes.len()).unwrap().to_be_bytes()).unwrap();
        self.0.write_all(&bytes).unwrap();
        loop {
            let mut length = [0; 4];
            self.0.read_exact(&mut length).unwrap();
            let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
            self.0.read_exact(&mut bytes).unwrap();
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["say"] != "ping" {
                return answer;
            }
        }
    }
}

#[test]
fn a_helper_does_no_more_than_the_flags_of_its_agent_allow() {
    if !skip::root("a_helper_does_no_more_than_the_flags_of_its_agent_allow") {
        return;
    }
    let sandbox = Sandbox::with_token();
    let captures = format!("--allow-capture={}", sandbox.path("captures").display());
    let agent = Agent::with_token(&sandbox, &["--allow-tuning", &captures]);
    let mut session = Session::open(&agent, b'S');
    let mut refused = |request: Value, word: &str| {
        let answer = session.ask(&request);
        let reason = answer["reason"].as_str().unwrap_or_default();
        assert!(answer["say"] == "refused" && reason.contains(word), "{request}: {answer}");
    };
    let tune =
        |key: &str, value: &str| json!({"say": "tune", "command": "x", "settings": [{"key": key, "value": value}]});
    refused(tune("sysctl.kernel.core_pattern", "|/tmp/evil"), "the kernel starts programs");
    refused(tune("sysctl.kernel.randomize_va_space", "0"), "not a network setting");
    refused(tune("sysctl.net.ipv4.../../kernel/core_pattern", "|/tmp/evil"), "");
    refused(json!({"say": "load", "stack": "aimd", "rules": []}), "loads no TCP stacks");
    refused(
        json!({"say": "open", "wanted": {"protocol": 6, "ports": [22], "address": null}, "snaplen": 96}),
        "out of order",
    );
    // Packets of a measurement have a port, and headers are all that it may see.
    let open = |ports: &[u16]| {
        let wanted = json!({"protocol": 6, "ports": ports, "address": null});
        Session::open(&agent, b'D').ask(&json!({"say": "open", "wanted": wanted, "snaplen": 65535}))
    };
    assert_eq!(open(&[])["say"], "refused");
    assert_eq!(open(&[6280])["say"], "opened");
    // Garbage ends its connection, and no other.
    let mut garbage = Session::open(&agent, b'S');
    garbage.0.write_all(&[0xff; 64]).unwrap();
    let mut rest = Vec::new();
    let _ = garbage.0.read_to_end(&mut rest);
    let shown = session.ask(&json!({"say": "show", "keys": ["sysctl.net.ipv4.tcp_sack"]}));
    assert_eq!(shown["say"], "shown", "{shown}");
}

#[test]
fn an_agent_of_an_ordinary_user_uses_a_helper_that_root_started() {
    let test = "an_agent_of_an_ordinary_user_uses_a_helper_that_root_started";
    let Some(lab) = skip::lab(test, &CrossoverSpec::default()) else { return };
    let (sandbox, there) = (Sandbox::with_token(), lab.host("b").unwrap());
    let socket = sandbox.path("helper.sock");
    let start = |user: &str| {
        let mut command = there.command(binary::thru());
        command.env("THRU_JOURNAL", sandbox.path("journal")).args(["helper", "--allow-tuning", "--user", user]);
        command.arg("--listen").arg(&socket);
        Running::of(command)
    };
    let helper = start("nobody");
    eventually("it listens", || socket.exists());
    let mut command = there.command("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(binary::thru());
    let place = format!("{}:0", there.v4);
    // Its own copies: the sandbox's are root's.
    let (token, folder) = (sandbox.secret("agents-token", program::client::TOKEN), sandbox.path("agent"));
    fs::create_dir(&folder).unwrap();
    for path in [&token, &folder] {
        std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).unwrap();
    }
    command.env("TMPDIR", &folder).env("THRU_AGENT_KEY", folder.join("key"));
    let (token, socket_flag) = (token.display().to_string(), socket.display().to_string());
    let flags = ["--listen", &place, "--token-file", &token, "--allow-tuning", "--helper", &socket_flag];
    let agent = Agent::spawn(command, &flags);
    let set = ["tune", "set", "sysctl.net.ipv4.tcp_sack=0", agent.host()];
    let mut holder = Running::of(sandbox.prepare(lab.host("a").unwrap().command(binary::thru()), &set));
    holder.until_printed("is now 0");
    let sack = || {
        let output = there.command("cat").arg("/proc/sys/net/ipv4/tcp_sack").output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(sack(), "0");
    // A helper that ends puts everything back, too.
    helper.signal(Signal::TERM);
    helper.wait().ok();
    assert_eq!(sack(), "1");
    holder.signal(Signal::INT);
    let _ = holder.wait();
    let unknown = start("no-such-user").wait().ended_with(2).message();
    assert!(unknown.contains("no-such-user"), "{unknown}");
}
