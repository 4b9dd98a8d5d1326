//! An agent that has been taken over: what its process, its workers and its helper still allow.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use lab::{CrossoverSpec, Lab};
use program::agent::{OTHER_USER, children_called, helpers};
use program::process::{Signal, eventually, send, within};
use program::wire::Message;
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
    let worker = child(agent.pid(), "worker");
    for pid in [agent.pid(), worker] {
        eventually("it has given up root", || !status(pid, "Uid").contains("0\t"));
        for capabilities in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(status(pid, capabilities), "0000000000000000", "{capabilities} of {pid}");
        }
        assert_eq!((status(pid, "NoNewPrivs").as_str(), status(pid, "Groups").as_str()), ("1", ""));
    }
    // NET_ADMIN, NET_RAW, SYS_ADMIN, PERFMON and BPF, which these flags need (linux/capability.h).
    let needed = [12, 13, 21, 38, 39].into_iter().fold(0_u64, |set, number| set | 1 << number);
    eventually("the helper serves", || helpers(agent.pid()).len() == 2);
    for pid in helpers(agent.pid()) {
        assert_eq!(status(pid, "Uid"), "0\t0\t0\t0");
        eventually("it has given up the others", || status(pid, "CapEff") == format!("{needed:016x}"));
        assert_eq!(status(pid, "CapBnd"), format!("{needed:016x}"));
        assert_eq!((status(pid, "NoNewPrivs").as_str(), status(pid, "Seccomp").as_str()), ("1", "2"));
    }
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

    /// The client that has changed the setting leaves.
    fn end_holder(&mut self) {
        self.holder.signal(Signal::INT);
        let _ = std::mem::replace(&mut self.holder, self.sandbox.start(&["agent", "known"])).wait();
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
fn a_killed_helper_starts_again_and_restores_what_it_left_while_its_agent_lives() {
    let test = "a_killed_helper_starts_again_and_restores_what_it_left_while_its_agent_lives";
    let Some(mut tuned) = Tuned::new(test) else { return };
    let [starts, serves] = helpers(tuned.agent.pid()).try_into().unwrap();
    send(serves, Signal::KILL);
    eventually("the next one has put it back", || tuned.sack() == "1" && tuned.open_records() == 0);
    // Its client's settings are gone, and the next client is served.
    tuned.end_holder();
    let set = ["tune", "set", "sysctl.net.ipv4.tcp_sack=0", "--for", "1ms", tuned.agent.host()];
    let command = tuned.lab.host("a").unwrap().command(binary::thru());
    let taken = Running::of(tuned.sandbox.prepare(command, &set)).wait().ok();
    assert!(taken.stdout.contains("is now 0") && tuned.sack() == "1", "{taken:?}");
    let next = helpers(tuned.agent.pid());
    assert!(next[0] == starts && next[1] != serves, "{next:?}");
}

#[test]
fn a_measurement_whose_helper_was_killed_is_not_taken_for_one_with_its_settings() {
    let test = "a_measurement_whose_helper_was_killed_is_not_taken_for_one_with_its_settings";
    let Some(mut tuned) = Tuned::new(test) else { return };
    tuned.end_holder();
    let set =
        ["stream", "--time", "4s", "--trials", "2", "--set", "far:sysctl.net.ipv4.tcp_sack=0", tuned.agent.host()];
    let client = tuned.lab.host("a").unwrap().command(binary::thru());
    let client = Running::of(tuned.sandbox.prepare(client, &set));
    eventually("it is set", || tuned.sack() == "0");
    child(tuned.agent.pid(), "worker");
    send(helpers(tuned.agent.pid())[1], Signal::KILL);
    eventually("the next helper has put it back", || tuned.sack() == "1");
    let ended = client.wait();
    assert!(ended.code != Some(0) && ended.stderr.contains("helper"), "{ended:?}");
}

#[test]
fn both_killed_processes_of_a_helper_are_reported_and_what_they_left_is_restored() {
    let test = "both_killed_processes_of_a_helper_are_reported_and_what_they_left_is_restored";
    let Some(mut tuned) = Tuned::new(test) else { return };
    helpers(tuned.agent.pid()).into_iter().for_each(|pid| send(pid, Signal::KILL));
    tuned.end_holder();
    let again = ["tune", "set", "sysctl.net.ipv4.tcp_timestamps=0", tuned.agent.host()];
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

#[test]
fn a_helper_serves_no_process_but_its_agent_whatever_the_mask_it_was_started_with() {
    let test = "a_helper_serves_no_process_but_its_agent_whatever_the_mask_it_was_started_with";
    if !skip::root(test) {
        return;
    }
    for mask in ["000", "002", "022"] {
        let sandbox = Sandbox::with_token();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {mask}; exec \"$@\""), "sh"]).arg(binary::thru());
        let flags = [sandbox.token_flags().as_slice(), &["--listen", "127.0.0.1:0", "--allow-tuning"]].concat();
        let agent = Agent::spawn(command, &flags);
        let socket = socket_of(&agent);
        let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700), "{mask}");
        // Root may open the socket. It is not the agent, and neither are other processes of the agent's user.
        for kind in [b'S', b'D'] {
            let mut stream = UnixStream::connect(&socket).unwrap();
            let _ = stream.write_all(&[kind]);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.is_empty(), "{mask}: {answer:?}");
        }
        eventually("it says who it was", || {
            agent
                .log()
                .contains(&format!("process {} of user 0 does not belong to this helper's agent", std::process::id()))
        });
        // The agent itself is served.
        sandbox.run(&["tune", "show", "sysctl.net.ipv4.tcp_sack", agent.host()]).ok();
    }
}

#[test]
fn a_user_that_services_share_gets_no_helper_that_changes_the_host() {
    if !skip::root("a_user_that_services_share_gets_no_helper_that_changes_the_host") {
        return;
    }
    let sandbox = Sandbox::with_token();
    let captures = format!("--allow-capture={}", sandbox.path("captures").display());
    for flag in ["--allow-tuning", "--allow-stacks", &captures] {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--user", "nobody", flag];
        let said = sandbox.run(&[&serve[..], &sandbox.token_flags()].concat()).ended_with(2).message();
        assert!(said.contains("useradd -r thru") && said.contains("--user"), "{said}");
    }
    let helper = ["helper", "--listen", "helper.sock", "--user", "nobody", "--allow-capture"];
    assert!(sandbox.run(&helper).ended_with(2).message().contains("user nobody"));
    assert!(!sandbox.path("helper.sock").exists());
}

#[test]
fn an_agent_that_captures_has_no_packet_socket() {
    if !skip::root("an_agent_that_captures_has_no_packet_socket") {
        return;
    }
    let sandbox = Sandbox::with_token();
    let captures = format!("--allow-capture={}", sandbox.path("captures").display());
    let agent = Agent::with_token(&sandbox, &[&captures]);
    let client =
        sandbox.start(&["stream", agent.host(), "--time", "1m", "--trials", "1", "--no-store", "--capture=here"]);
    // Inodes of the packet sockets of this network namespace, the last column.
    let sockets = || -> Vec<String> {
        let all = fs::read_to_string("/proc/net/packet").unwrap();
        all.lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().last())
            .map(|inode| format!("socket:[{inode}]"))
            .collect()
    };
    let has = |pid: u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let files: Vec<PathBuf> = files.filter_map(|file| fs::read_link(file.path()).ok()).collect();
        sockets().iter().any(|socket| files.contains(&PathBuf::from(socket)))
    };
    eventually("the helper captures", || helpers(agent.pid()).into_iter().any(has));
    let worker = child(agent.pid(), "worker");
    assert!(!has(agent.pid()) && !has(worker));
    client.signal(Signal::INT);
    let _ = client.wait();
    eventually("the helper has closed it", || !helpers(agent.pid()).into_iter().any(has));
}

/// The socket of an agent's helper.
fn socket_of(agent: &Agent) -> PathBuf {
    let folder = fs::read_dir(format!("/proc/{}/fd", agent.pid())).unwrap().flatten();
    let folder = folder.filter_map(|fd| fs::read_link(fd.path()).ok()).find(|path| path.join("helper.sock").exists());
    folder.expect("the agent holds its folder").join("helper.sock")
}

/// What an agent can say to its helper.
struct Session(UnixStream);

impl Session {
    fn open(socket: &std::path::Path, kind: u8) -> Self {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.write_all(&[kind]).unwrap();
        Self(stream)
    }

    fn ask(&mut self, request: &Value) -> Message {
        let bytes = serde_json::to_vec(request).unwrap();
        self.0.write_all(&u32::try_from(bytes.len()).unwrap().to_be_bytes()).unwrap();
        self.0.write_all(&bytes).unwrap();
        loop {
            let mut length = [0; 4];
            self.0.read_exact(&mut length).unwrap();
            let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
            self.0.read_exact(&mut bytes).unwrap();
            let answer = Message::of(serde_json::from_slice(&bytes).unwrap());
            if answer.name != "ping" {
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
    let sandbox = Sandbox::new();
    let socket = sandbox.path("helper.sock");
    let mut command = sandbox.command(&["helper", "--user", OTHER_USER, "--allow-tuning", "--allow-capture"]);
    command.env("THRU_JOURNAL", sandbox.path("journal")).arg("--listen").arg(&socket);
    let _helper = Running::of(command);
    eventually("it listens", || UnixStream::connect(&socket).is_ok());
    let mut session = Session::open(&socket, b'S');
    let mut refused = |request: Value, word: &str| {
        let answer = session.ask(&request);
        let reason = answer["reason"]["statement"].as_str().unwrap_or_default();
        assert!(answer.name == "refused" && reason.contains(word), "{request}: {answer}");
    };
    let tune = |key: &str, value: &str| json!({"tune": {"command": "x", "settings": [{"key": key, "value": value}]}});
    refused(tune("sysctl.kernel.core_pattern", "|/tmp/evil"), "the kernel starts programs");
    refused(tune("sysctl.kernel.randomize_va_space", "0"), "not a network setting");
    refused(tune("sysctl.net.ipv4.../../kernel/core_pattern", "|/tmp/evil"), "");
    refused(json!({"load": {"stack": "aimd", "rules": []}}), "loads no TCP stacks");
    let capture = |ports: &[u16]| {
        let wanted = json!({"protocol": 6, "ports": ports, "address": null});
        json!({"capture": {"wanted": wanted, "snaplen": 65535, "interface": 1, "outgoing": false}})
    };
    refused(capture(&[22]), "unexpected request");
    // Packets of a measurement have a port.
    assert_eq!(Session::open(&socket, b'D').ask(&capture(&[])).name, "refused");
    // It gets records of packets, and no socket: of a packet with a long payload the first 134 bytes.
    let (listener, mut capturing) = (TcpListener::bind("127.0.0.1:0").unwrap(), Session::open(&socket, b'D'));
    let port = listener.local_addr().unwrap().port();
    assert_eq!(capturing.ask(&capture(&[port])).name, "opened");
    let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(&[7; 1_000]).unwrap();
    loop {
        let mut head = [0; 26];
        capturing.0.read_exact(&mut head).unwrap();
        assert_eq!(head[0], b'P');
        let kept = u32::from_be_bytes(head[17..21].try_into().unwrap()) as usize;
        let mut data = vec![0; kept];
        capturing.0.read_exact(&mut data).unwrap();
        assert!(kept <= 134, "{kept} bytes");
        if u32::from_be_bytes(head[13..17].try_into().unwrap()) > 1_000 {
            break;
        }
    }
    // Garbage ends its connection, and no other.
    let mut garbage = Session::open(&socket, b'S');
    garbage.0.write_all(&[0xff; 64]).unwrap();
    let mut rest = Vec::new();
    let _ = garbage.0.read_to_end(&mut rest);
    let shown = session.ask(&json!({"show": {"keys": ["sysctl.net.ipv4.tcp_sack"]}}));
    assert_eq!(shown.name, "shown", "{shown}");
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
    let helper = start(OTHER_USER);
    eventually("it listens", || socket.exists());
    let mut command = there.command("setpriv");
    command.args(["--reuid", "1", "--regid", "1", "--clear-groups"]).arg(binary::thru());
    let place = format!("{}:0", there.v4);
    // Its own copies: the sandbox's are root's.
    let (token, folder) = (sandbox.secret("agents-token", program::client::TOKEN), sandbox.path("agent"));
    fs::create_dir(&folder).unwrap();
    for path in [&token, &folder] {
        std::os::unix::fs::chown(path, Some(1), Some(1)).unwrap();
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
