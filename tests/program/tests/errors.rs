//! What can go wrong: each ends with one message that says what to do and with its exit code, and the agent serves the next.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use lab::CrossoverSpec;
use program::process::Process;
use program::wire::{self, PROTOCOL, Wire, hello, server};
use program::{Agent, Running, Sandbox, binary, skip};

const SHORT: [&str; 5] = ["stream", "--time", "50ms", "--trials", "1"];

/// Runs a measurement that must fail with `code` and a message with all of `words`.
fn fails(sandbox: &Sandbox, args: &[&str], code: i32, words: &[&str]) {
    let finished = sandbox.run(args);
    assert_eq!(finished.code, Some(code), "{args:?}: {}", finished.stderr);
    let message = finished.message();
    for word in words {
        assert!(message.contains(word), "{args:?}: no '{word}' in: {message}");
    }
    assert!(!message.contains("panicked"), "{message}");
}

fn still_serves(agent: &Agent, sandbox: &Sandbox) {
    sandbox.measure(&["transfer", "--count", "3", agent.host()]);
}

/// A port of loopback on which nobody listens.
fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn nobody_there() {
    let sandbox = Sandbox::new();
    let nobody = free_port();
    fails(&sandbox, &[&SHORT[..], &[&nobody]].concat(), 3, &[&nobody, "refused", "thru serve"]);
    fails(&sandbox, &[&SHORT[..], &["no-such-host.invalid"]].concat(), 3, &["no-such-host.invalid", "check the name"]);
    fails(&sandbox, &[&SHORT[..], &["-6", "127.0.0.1"]].concat(), 3, &["127.0.0.1", "IP version"]);
    fails(&sandbox, &SHORT, 2, &["HOST", "thru serve"]);
}

#[test]
fn a_dead_host_is_given_up_after_some_seconds() {
    let Some(lab) = skip::lab("a_dead_host_is_given_up_after_some_seconds", &CrossoverSpec::default()) else { return };
    let (a, b, sandbox) = (lab.host("a").unwrap(), lab.host("b").unwrap(), Sandbox::new());
    // b gets what is meant for this network and drops it without a word, for it is no router.
    let route = a.command("ip").args(["route", "add", "192.0.2.0/24", "via", &b.v4.to_string()]).status().unwrap();
    assert!(route.success());
    let command = sandbox.prepare(a.command(binary::thru()), &[&SHORT[..], &["192.0.2.1"]].concat());
    let finished = program::Running::of(command).wait_at_most(Duration::from_secs(30)).ended_with(3);
    let message = finished.message();
    assert!(message.contains("192.0.2.1") && message.contains("the host is down"), "{message}");
    // Where there is no route at all it need not wait.
    let command = sandbox.prepare(a.command(binary::thru()), &[&SHORT[..], &["203.0.113.1"]].concat());
    let message = program::Running::of(command).wait().ended_with(3).message();
    assert!(message.contains("203.0.113.1") && message.contains("route"), "{message}");
}

#[test]
fn another_protocol_names_the_host_to_update() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for (protocol, side) in [(999, "update thru on this host"), (0, "update thru on that host")] {
        let fake = wire::agent(move |wire| {
            assert_eq!(wire.receive().unwrap().name, "hello");
            wire.send(&hello(protocol));
            let _ = wire.receive();
        });
        fails(&sandbox, &[&SHORT[..], &[&fake]].concat(), 4, &[&fake, "9.8.7", &protocol.to_string(), side]);
        // In the other direction the agent sends its hello and refuses.
        let wire = Wire::dial(agent.host());
        wire.send(&hello(protocol));
        let answer = wire.receive().expect("its hello");
        assert_eq!((answer.name.as_str(), answer["protocol"].as_u64()), ("hello", Some(u64::from(PROTOCOL))));
        loop {
            match wire.receive() {
                None => break,
                Some(more) => assert_eq!(more.name, "refused", "{more}"),
            }
        }
    }
    still_serves(&agent, &sandbox);
}

#[test]
fn something_else_there() {
    let sandbox = Sandbox::new();
    let web = server(|mut stream| {
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    fails(&sandbox, &[&SHORT[..], &[&web]].concat(), 3, &[&web, "not a thru agent"]);
    let mute = server(std::mem::forget);
    fails(&sandbox, &[&SHORT[..], &[&mute]].concat(), 3, &[&mute, "may not be a thru agent"]);
    let brief = server(drop);
    fails(&sandbox, &[&SHORT[..], &[&brief]].concat(), 3, &[&brief, "may not be a thru agent"]);
    // And somebody else's client at our agent is told where it is.
    let agent = Agent::start();
    let mut stream = std::net::TcpStream::connect(agent.host()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.contains("network measurement agent"), "{answer}");
    still_serves(&agent, &sandbox);
}

#[test]
fn the_token_is_asked_for() {
    let sandbox = Sandbox::new();
    for name in ["right", "wrong"] {
        sandbox.run(&["token", "new", "-o", name]).ok();
    }
    sandbox.secret("empty", "\n");
    let right = sandbox.path("right");
    let agent = Agent::with(&["--token-file", right.to_str().unwrap()]);
    let with = |file: &'static str| [&SHORT[..], &["--token-file", file, agent.host()]].concat();
    let without = [&SHORT[..], &[agent.host()]].concat();
    fails(&sandbox, &without, 4, &["requires a token", "--token-file"]);
    fails(&sandbox, &with("wrong"), 4, &["token is wrong", "--token-file"]);
    fails(&sandbox, &with("empty"), 2, &["empty", "128 random bits", "thru token new"]);
    fails(&sandbox, &with("nowhere"), 2, &["nowhere", "cannot read"]);
    assert!(!agent.log().contains("measures"), "{}", agent.log());
    sandbox.measure(&with("right"));
    // The secret stays where it is.
    let secret = fs::read_to_string(&right).unwrap();
    assert!(!agent.log().contains(secret.trim()), "{}", agent.log());
    // An agent that asks for no token is not the one that a token was given for.
    let open = Agent::start();
    fails(
        &sandbox,
        &[&SHORT[..], &["--token-file", "right", open.host()]].concat(),
        4,
        &["requires no token", "--token-file"],
    );
    // Beyond loopback, one or the other must be said.
    fails(&sandbox, &["serve", "--listen", "0.0.0.0:0"], 2, &["--token-file", "--open"]);
}

#[test]
fn impossible_measurements_are_refused_before_anything_is_measured() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let refused: [(&[&str], &[&str]); 21] = [
        (&["stream", "--block", "0"], &["block", "0"]),
        (&["stream", "--block", "2GiB"], &["1GiB"]),
        (&["rr", "--block", "0"], &["block"]),
        (&["rr", "--reply", "0"], &["--reply", "more than 0"]),
        (&["curve", "--first", "0"], &["--first", "more than 0"]),
        (&["curve", "--first", "64", "--to", "8"], &["--to"]),
        (&["transfer", "--count", "0"], &["--count", "from 1"]),
        (&["transfer"], &["--count"]),
        (&["stream", "--transport", "udp", "--block", "70000"], &["70000", "largest"]),
        (&["stream", "--transport", "udp", "--block", "4"], &["--block 8"]),
        (&["rr", "--transport", "udp", "--connect"], &["--connect", "tcp"]),
        (&["rr", "--both"], &["--both"]),
        (&["rr", "--connect", "--reverse"], &["--connect"]),
        (&["stream", "--transport", "carrier-pigeon"], &["carrier-pigeon", "tcp"]),
        (&["stream", "--flows", "0"], &["flows"]),
        (&["stream", "--processes", "2"], &["--processes"]),
        (&["stream", "--trials", "0"], &["--trials"]),
        (&["stream", "--time", "soon"], &["soon", "--time"]),
        (&["stream", "--rate", "0"], &["rate"]),
        (&["stream", "--no-such-flag"], &["--no-such-flag"]),
        (&["stream", "--reverse", "--both"], &["--both"]),
    ];
    for (args, words) in refused {
        fails(&sandbox, &[args, &[agent.host()]].concat(), 2, words);
    }
    fails(&sandbox, &["straem"], 2, &["there is no command 'straem'", "`thru stream`"]);
    fails(&sandbox, &["show", "no-such-run"], 6, &["there is no store"]);
    fails(&sandbox, &["no-such-host.invalid"], 3, &["no-such-host.invalid"]);
    assert!(!agent.log().contains("measures"), "{}", agent.log());
    still_serves(&agent, &sandbox);
}

#[test]
fn what_a_host_cannot_do_is_named_with_the_host() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let refused: [(&[&str], &[&str]); 7] = [
        (&["--cc", "carrier,"], &["'carrier'", "thru host"]),
        (&["--cc", ",carrier"], &["'carrier'", "thru host"]),
        (&["--pin", "4000,"], &["core 4000", "may use the cores"]),
        (&["--pin", ",4000"], &["core 4000", "may use the cores"]),
        (&["--device", "nosuch0,"], &["nosuch0"]),
        (&["--data", "192.0.2.77"], &["192.0.2.77"]),
        (&["--data-from", "192.0.2.78"], &["192.0.2.78"]),
    ];
    for (flags, words) in refused {
        fails(&sandbox, &[&SHORT[..], flags, &[agent.host()]].concat(), 7, words);
        still_serves(&agent, &sandbox);
    }
}

#[test]
fn an_agents_limits_are_refusals() {
    let sandbox = Sandbox::new();
    let agent = Agent::with(&["--max-flows", "4", "--max-rate", "1Gbit", "--max-time", "2s"]);
    let refused: [(&[&str], &[&str]); 3] = [
        (&["--rate", "1Mbit", "--flows", "5"], &["--max-flows"]),
        (&["--flows", "4"], &["--rate"]),
        (&["--rate", "1Mbit", "--time", "3s"], &["--max-time"]),
    ];
    for (flags, words) in refused {
        fails(&sandbox, &[&["stream", "--trials", "1"], flags, &[agent.host()]].concat(), 4, words);
    }
    sandbox.measure(&[&SHORT[..], &["--rate", "1Mbit", agent.host()]].concat());
    // One client may hold it for two seconds and no longer, and keeps what it has by then.
    let long = ["stream", "--rate", "1Mbit", "--time", "300ms", "--trials", "64", agent.host()];
    fails(&sandbox, &long, 4, &["time limit", "--max-time"]);
    let kept = sandbox.run(&["show", "--json"]).ok().doc();
    assert!(!kept.trials().is_empty(), "{}", kept.remarks());
    sandbox.measure(&[&SHORT[..], &["--rate", "1Mbit", agent.host()]].concat());
}

#[test]
fn an_agent_cannot_listen_where_another_one_does() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    fails(&sandbox, &["serve", "--listen", agent.host()], 7, &[agent.host(), "another agent"]);
    fails(&sandbox, &["serve", "--listen", "192.0.2.1", "--open"], 7, &["192.0.2.1", "does not have"]);
    fails(&sandbox, &["serve", "--listen", "nonsense"], 2, &["nonsense", "--listen"]);
    still_serves(&agent, &sandbox);
}

#[test]
fn outputs_that_cannot_be_written_are_found_before_measuring() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    fs::create_dir(sandbox.path("folder")).unwrap();
    for place in ["nowhere/run.json", "folder"] {
        fails(&sandbox, &[&SHORT[..], &["--json", place, agent.host()]].concat(), 6, &[place]);
        let curve = ["curve", "--to", "8", "--np", place, agent.host()];
        fails(&sandbox, &curve, 6, &[place]);
    }
    fails(&sandbox, &[&SHORT[..], &["--store", "folder", agent.host()]].concat(), 6, &["folder"]);
    fails(&sandbox, &[&SHORT[..], &["--store", "/dev/null/runs.sqlite", agent.host()]].concat(), 6, &["/dev/null"]);
    assert!(!agent.log().contains("measures"), "{}", agent.log());
    // What only shows when it is written: the run is in the store all the same.
    let full = [&SHORT[..], &["--json", "/dev/full", "--name", "kept", agent.host()]].concat();
    fails(&sandbox, &full, 6, &["/dev/full"]);
    assert_eq!(sandbox.run(&["show", "kept", "--json"]).ok().doc().trials().len(), 1);
    still_serves(&agent, &sandbox);
}

#[test]
fn a_full_disk_ends_the_run_and_keeps_what_is_finished() {
    let test = "a_full_disk_ends_the_run_and_keeps_what_is_finished";
    if !skip::root(test) || !skip::program(test, "unshare", "util-linux") {
        return;
    }
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    fs::create_dir(sandbox.path("small")).unwrap();
    // In a mount namespace of its own, so that nothing is left to be unmounted.
    let script = "mount -t tmpfs -o size=1m small small && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(binary::thru());
    let args = ["stream", "--flows", "64", "--threads", "2", "--time", "50ms", "--interval", "1ms", "--trials", "64"];
    let small = ["--store", "small/runs.sqlite", "--json", "-", agent.host()];
    let finished = program::Running::of(sandbox.prepare(command, &[&args[..], &small].concat())).wait().ended_with(6);
    let message = finished.message();
    assert!(message.contains("small/runs.sqlite") && message.contains("no space left"), "{message}");
    let doc = finished.doc();
    assert!(!doc.trials().is_empty() && doc.trials().len() < 64, "{} trials", doc.trials().len());
    assert_eq!(doc.run.ending.as_ref().map(|ending| ending.how.as_str()), Some("failed"));
    assert!(doc.goodput() > 0.0);
    still_serves(&agent, &sandbox);
}

#[test]
fn an_ordinary_user_can_measure_and_errors_name_what_needs_more() {
    let test = "an_ordinary_user_can_measure_and_errors_name_what_needs_more";
    if !skip::root(test) || !skip::program(test, "setpriv", "util-linux") {
        return;
    }
    // A folder that everybody can enter, with a copy of the program: its own place may be closed to others.
    let sandbox = Sandbox::new();
    let (folder, thru) = (sandbox.path(""), sandbox.path("thru"));
    fs::copy(binary::thru(), &thru).unwrap();
    let open = |path: &std::path::Path, mode| {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(&folder, 0o777);
    open(&thru, 0o755);
    let nobody = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]);
        // As root's capabilities go, so does what the bounding set could give back.
        command.args(["--bounding-set=-all", "--no-new-privs"]).arg(&thru);
        command.env("HOME", &folder).env("TMPDIR", &folder).env("THRU_AGENT_KEY", folder.join("nobodys.key"));
        command
    };
    let mut agent = Agent::spawn(nobody(), &["--listen", "127.0.0.1:0"]);
    let run = |args: &[&str]| program::Running::of(sandbox.prepare(nobody(), args)).wait();
    for args in [
        &["stream", "--time", "50ms", "--trials", "1", "--json", "-", agent.host()][..],
        &["stream", "--time", "50ms", "--trials", "1", "--json", "-", "--transport", "udp", agent.host()],
        &["rr", "--connect", "--time", "50ms", "--trials", "1", "--json", "-", agent.host()],
        &["curve", "--to", "8", "--trials", "3", "--budget", "2s", "--json", "-", agent.host()],
        &["stream", "--time", "50ms", "--trials", "1", "--json", "-", "--transport", "shm"],
        &["stream", "--time", "50ms", "--trials", "1", "--json", "-", "--transport", "unix"],
        &["stream", "--time", "50ms", "--trials", "1", "--json", "-", "--transport", "memcpy"],
    ] {
        let doc = run(args).ok().doc();
        program::check::document(&doc, &args.join(" "));
    }
    run(&["host"]).ok();
    // Some kernels let anybody poll; the others want a privilege, and then it is named.
    let polling = run(&["stream", "--busy-poll", "1ms,", "--time", "50ms", "--trials", "1", agent.host()]);
    assert!(polling.code == Some(0) || polling.ended_with(7).message().contains("CAP_NET_ADMIN"));
    let start = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap_or_default();
    if start.trim().parse::<u32>().is_ok_and(|start| start > 99) {
        let refused = run(&["serve", "--listen", "127.0.0.1:99"]).ended_with(7).message();
        assert!(refused.contains("127.0.0.1:99") && refused.contains("root"), "{refused}");
    }
    fs::create_dir(sandbox.path("closed")).unwrap();
    open(&sandbox.path("closed"), 0o700);
    let closed = run(&["stream", "--time", "50ms", "--store", "closed/runs.sqlite", agent.host()]);
    assert!(closed.ended_with(6).message().contains("closed"));
    let closed = run(&["stream", "--time", "50ms", "--json", "closed/run.json", agent.host()]);
    assert!(closed.ended_with(6).message().contains("closed/run.json"));
    // The demo does without namespaces and says so.
    let demo =
        run(&["demo", "--report", "demo", "--", "--to", "8", "--trials", "3", "--no-ceiling", "--budget", "2s"]).ok();
    assert!(demo.stdout.contains("loopback"), "{}", demo.stdout);
    agent.signal(program::process::Signal::TERM);
    assert_eq!(agent.wait().code(), Some(0));
}

#[test]
fn a_closed_pipe_is_no_failure_of_the_program() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    sandbox.measure(&[&SHORT[..], &[agent.host()]].concat());
    let mut command = Command::new("sh");
    command.args(["-c", "\"$0\" show last | head -n 1"]).arg(binary::thru()).env("THRU_STORE", sandbox.store());
    let mut process = Process::spawn(command);
    assert!(process.wait(Duration::from_secs(30)).success());
    assert!(!process.stderr().contains("panicked") && !process.stdout().is_empty(), "{}", process.stderr());
}

#[test]
fn options_of_a_file_are_defaults_which_the_command_line_overrides() {
    let agent = Agent::start();
    let sandbox = Sandbox::new();
    let file = sandbox.path("config.toml");
    let with = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command.env("THRU_CONFIG", &file);
        Running::of(command).wait()
    };
    std::fs::write(&file, "[rr]\ntime = \"30ms\"\ntrials = 3\nflows = 2\n").unwrap();
    let run = with(&["rr", agent.host(), "--flows", "1", "--json", "-", "--no-store", "--quiet"]).ok();
    let run: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let spec = &run["header"]["cells"][0]["spec"];
    assert_eq!((&spec["stop"]["time-ns"], &spec["flows"]), (&30_000_000.into(), &1.into()), "{spec}");
    assert_eq!(run["outcomes"][0]["trials"].as_array().map(Vec::len), Some(3));
    // A run says with which options it was measured.
    let words: Vec<&str> =
        run["header"]["command"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
    assert_eq!(words[1..5], ["rr", "--flows=2", "--time=30ms", "--trials=3"]);
    std::fs::write(&file, "[rr]\ntimes = \"30ms\"\n").unwrap();
    let refused = with(&["rr", agent.host()]).ended_with(2).stderr;
    assert!(
        refused.contains("'--times'") && refused.contains("this command line includes the options in "),
        "{refused}"
    );
    with(&["runs"]).ok();
    std::fs::remove_file(&file).unwrap();
    assert!(with(&["runs"]).ended_with(2).stderr.contains("cannot read the options in "));
}
