//! Other programs at the other end: the real iperf3 is the judge, in both roles.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::process::Command;
use std::time::Duration;

use program::peers::{free_port, iperf3};
use program::process::{Process, eventually, within};
use program::{Agent, Doc, Finished, Running, Sandbox, skip};
use serde_json::Value;

/// One trial of 0.2 s at a server of iperf3, unless `flags` say otherwise.
fn ours(sandbox: &Sandbox, host: &str, flags: &[&str]) -> Doc {
    let mut words = vec!["stream", host, "--speak", "iperf3", "--quiet"];
    for (flag, value) in [("--time", "200ms"), ("--trials", "1")] {
        if !flags.contains(&flag) {
            words.extend([flag, value]);
        }
    }
    let doc = sandbox.measure(&[&words, flags].concat());
    let trial = &doc.trials()[0];
    assert!(trial.ledger.balanced, "{flags:?}: {:?}", trial.ledger);
    assert!(doc.goodput() > 0.0, "{flags:?}");
    doc
}

#[test]
fn our_client_measures_with_iperf3s_server() {
    if !skip::program("our_client_measures_with_iperf3s_server", "iperf3", "iperf3") {
        return;
    }
    let (sandbox, port) = (Sandbox::new(), free_port());
    let _server = iperf3(&port, &[]);
    let host = format!("127.0.0.1:{port}");

    let doc = ours(&sandbox, &host, &["--flows", "2", "--trials", "3", "--name", "spoken"]);
    let far = &doc.trials()[0].far;
    assert_eq!(doc.trials().len(), 3);
    assert!(doc.run.header.tool.far_version.starts_with("iperf3 3."), "{:?}", doc.run.header.tool);
    assert_eq!(doc.outcome().spec.speak, Some(model::Program::Iperf3));
    assert!(
        far.bytes_received > 0 && far.flows.len() == 2 && far.spent.is_some() && far.intervals.is_empty(),
        "{far:?}"
    );
    assert!(doc.run.header.far.hostname.is_none() && doc.run.header.target.as_deref() == Some(host.as_str()));
    // A run like any other.
    let shown = sandbox.run(&["show", "spoken"]).ok().stdout;
    assert!(shown.contains("The far end is iperf3 3."), "{shown}");

    let doc = ours(&sandbox, &host, &["--reverse", "--bytes", "4MiB"]);
    let trial = &doc.trials()[0];
    assert!(trial.near.bytes_received >= 4 << 20 && trial.far.bytes_sent >= trial.near.bytes_received, "{trial:?}");

    let doc = ours(&sandbox, &host, &["--both", "--rate", "400Mbit", "--burst", "256KiB"]);
    let trial = &doc.trials()[0];
    assert!(trial.near.bytes_received > 0 && trial.far.bytes_received > 0, "{trial:?}");

    let doc = ours(&sandbox, &host, &["--count", "64", "--block", "8KiB"]);
    assert_eq!(doc.trials()[0].near.bytes_sent, 64 * 8192);

    for direction in [&[][..], &["--reverse"]] {
        let doc = ours(
            &sandbox,
            &host,
            &[&["--udp", "--rate", "20Mbit", "--block", "1000", "--flows", "2"], direction].concat(),
        );
        let trial = &doc.trials()[0];
        let receiver = if direction.is_empty() { &trial.far } else { &trial.near };
        let datagrams = receiver.datagrams.unwrap();
        assert!(
            datagrams.received > 100 && datagrams.missed.is_some() && datagrams.jitter_ns.is_some(),
            "{datagrams:?}"
        );
        assert_eq!(receiver.bytes_received, datagrams.received * 1000);
    }

    let host = format!("[::1]:{port}");
    let options =
        ["--mss", "1200", "--nodelay", "--cc", "reno", "--dscp", "10", "--sndbuf", "1MiB", "--rcvbuf", "1MiB"];
    let doc = ours(&sandbox, &host, &options);
    let socket = &doc.trials()[0].near.flows[0].socket;
    assert!(socket.mss.is_some_and(|mss| mss <= 1200) && socket.cc.as_deref() == Some("reno"), "{socket:?}");
    assert_eq!(doc.trials()[0].far.flows[0].socket.cc.as_deref(), Some("reno"));

    let wrong = sandbox.run(&["stream", &host, "--speak", "iperf3", "--probe"]).ended_with(2).message();
    assert!(wrong.contains("--probe with iperf3"), "{wrong}");
    let wrong =
        sandbox.run(&["stream", &format!("127.0.0.1:{}", free_port()), "--speak", "iperf3"]).ended_with(3).message();
    assert!(wrong.contains("cannot reach iperf3 at"), "{wrong}");
}

/// iperf3 as a client; its JSON.
fn theirs(sandbox: &Sandbox, port: &str, flags: &[&str]) -> Value {
    let said = client(sandbox, port, flags).wait().ok();
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{flags:?}: {error}: {}", said.stdout))
}

fn client(sandbox: &Sandbox, port: &str, flags: &[&str]) -> Running {
    let host = if flags.contains(&"-6") { "::1" } else { "127.0.0.1" };
    let mut command = Command::new("iperf3");
    command.args(["-c", host, "-p", port, "-J", "--connect-timeout", "5000"]).args(flags).current_dir(sandbox.path(""));
    Running::of(command)
}

fn number(json: &Value, place: &str) -> f64 {
    json.pointer(place).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {place} in {json}"))
}

fn served(flags: &[&str]) -> (Agent, String) {
    let port = free_port();
    let speak = format!("iperf3={port}");
    (Agent::with(&[&["--speak", &speak], flags].concat()), port)
}

#[test]
fn our_server_serves_iperf3s_clients() {
    if !skip::program("our_server_serves_iperf3s_clients", "iperf3", "iperf3") {
        return;
    }
    let (sandbox, (_agent, port)) = (Sandbox::new(), served(&["--concurrent", "8"]));
    let both = ["/end/sum_sent/bytes", "/end/sum_received/bytes"];
    // Those that take a second go side by side.
    let timed: [&[&str]; 5] = [
        &["-t", "1", "-R", "-P", "2"],
        &["-t", "1", "--bidir"],
        &["-t", "1", "-O", "1", "-b", "50M/4"],
        &["-t", "1", "-Z", "-R"],
        &["-t", "1", "--get-server-output", "-4"],
    ];
    let running: Vec<Running> = timed.iter().map(|flags| client(&sandbox, &port, flags)).collect();
    for (flags, one) in timed.iter().zip(running) {
        let said = one.wait().ok();
        let json: Value = serde_json::from_str(&said.stdout).unwrap();
        for place in both {
            assert!(number(&json, place) > 0.0, "{flags:?}: {place}");
        }
        assert!(number(&json, both[1]) <= number(&json, both[0]), "{flags:?}");
        if flags.contains(&"--bidir") {
            assert!(number(&json, "/end/sum_received_bidir_reverse/bytes") > 0.0);
        }
        if flags.contains(&"-O") {
            let seconds = number(&json, "/end/sum_received/seconds");
            assert!((0.9..1.9).contains(&seconds), "{seconds} s are what counts of two");
        }
        if flags.contains(&"--get-server-output") {
            assert!(json["server_output_text"].as_str().is_some_and(|text| text.contains("serving as iperf3")));
        }
    }
    let options = ["-n", "1M", "-w", "128K", "-M", "1200", "-N", "-C", "reno", "-S", "32", "-l", "8K", "-6"];
    let json = theirs(&sandbox, &port, &options);
    assert_eq!(json.pointer("/end/receiver_tcp_congestion"), Some(&Value::from("reno")), "{json}");
    // Counts end when they are met.
    assert!(number(&theirs(&sandbox, &port, &["-n", "2M", "-P", "3"]), both[0]) >= 2.0 * 1048576.0);
    // A client that receives counts its reads, whole blocks or not, and ends at 16 of them, whatever was sent by then: with iperf3's own
    // server too.
    let json = theirs(&sandbox, &port, &["-k", "16", "-R"]);
    let [sent, received] = both.map(|place| number(&json, place));
    assert!(0.0 < received && received <= sent && sent <= 16.0 * 131_072.0, "{received} of {sent}");
    // Datagrams hold the port for a moment: one after the other.
    for flags in [
        ["-u", "-n", "500K", "-b", "20M", "-l", "1000", "-P", "2"].as_slice(),
        &["-u", "-n", "500K", "-b", "20M", "-l", "1000", "-R"],
    ] {
        let json = theirs(&sandbox, &port, flags);
        assert!(number(&json, "/end/sum/packets") > 20.0 && number(&json, "/end/sum/jitter_ms") >= 0.0, "{flags:?}");
        assert!(number(&json, "/end/sum/lost_packets") <= number(&json, "/end/sum/packets"), "{flags:?}");
    }
}

#[test]
fn our_server_refuses_as_iperf3_does() {
    if !skip::program("our_server_refuses_as_iperf3_does", "iperf3", "iperf3") {
        return;
    }
    let (sandbox, (agent, port)) =
        (Sandbox::new(), served(&["--max-flows", "2", "--max-time", "3s", "--max-rate", "1Gbit"]));
    let refused = |flags: &[&str]| {
        let said = client(&sandbox, &port, flags).wait();
        // With -J the error is in the document, and not in the exit code.
        let json: Value = serde_json::from_str(&said.stdout).unwrap();
        json["error"].as_str().unwrap_or_else(|| panic!("{flags:?} was served: {json}")).to_owned()
    };
    assert!(refused(&["-P", "3", "-b", "1M"]).contains("number of parallel streams"));
    // Version 3.12 has no words for this number yet, later ones have.
    let long = refused(&["-t", "4", "-b", "1M"]);
    assert!(long.contains("int_errno=37") || long.contains("maximum"), "{long}");
    let fast = refused(&["-t", "1", "-b", "2G"]);
    assert!(fast.contains("bandwidth") || fast.contains("rate"), "{fast}");
    let first = client(&sandbox, &port, &["-t", "1", "-b", "1M"]);
    eventually("the first one measures", || agent.log().contains("measures tcp with 1 stream"));
    assert!(refused(&["-t", "1", "-b", "1M"]).contains("busy"));
    first.wait().ok();
    // Our own coordinators and other programs' clients share the machine's one place, and the agent goes on.
    let brief = ["stream", agent.host(), "--time", "100ms", "--trials", "1", "--rate", "100Mbit", "--quiet"];
    assert!(sandbox.measure(&brief).goodput() > 0.0);
}

#[test]
fn our_server_answers_netpipe() {
    if !skip::program("our_server_answers_netpipe", "NPtcp", "netpipe-tcp") {
        return;
    }
    let (sandbox, port) = (Sandbox::new(), free_port());
    let agent = Agent::with(&["--speak", &format!("netpipe={port}")]);
    let said = sandbox.tool("NPtcp", &["-h", "127.0.0.1", "-P", &port, "-n", "3", "-o", "theirs.out"]).ok();
    let rows = std::fs::read_to_string(sandbox.path("theirs.out")).unwrap();
    assert_eq!(rows.lines().count(), 124, "all of its sizes:\n{}{}", said.stdout, said.stderr);
    eventually("the agent has seen them all", || agent.log().contains("netpipe ended after 124 sizes"));
    let imported = sandbox.run(&["import", "theirs.out", "--name", "theirs"]).ok();
    assert!(imported.stderr.contains("theirs") || imported.stdout.contains("theirs"), "{imported:?}");
}

/// A real NPtcp that waits for a transmitter.
fn nptcp(port: &str, flags: &[&str]) -> Process {
    let mut command = Command::new("NPtcp");
    command.args(["-P", port, "-u", "64"]).args(flags);
    let receiver = Process::spawn(command);
    eventually("NPtcp listens", || {
        let wanted = format!(":{:04X} ", port.parse::<u16>().unwrap());
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        table.lines().any(|line| line.contains(&wanted) && line.contains(" 0A "))
    });
    receiver
}

#[test]
fn our_client_takes_a_curve_with_nptcp() {
    if !skip::program("our_client_takes_a_curve_with_nptcp", "NPtcp", "netpipe-tcp") {
        return;
    }
    let sandbox = Sandbox::new();
    for (theirs, ours) in [(&[][..], &[][..]), (&["-2"], &["--both"]), (&["-s"], &["--stream"])] {
        let port = free_port();
        let receiver = nptcp(&port, theirs);
        let host = format!("127.0.0.1:{port}");
        let base = ["curve", &host, "--speak", "netpipe", "--to", "64", "--time", "1ms", "--quiet", "--np", "ours.out"];
        let doc = sandbox.measure(&[&base, ours].concat());
        assert_eq!(doc.run.outcomes.len(), 22, "{}", receiver.stderr());
        for outcome in &doc.run.outcomes {
            if theirs == ["-s"] {
                let [trial] = &outcome.trials[..] else { panic!("the least of NetPIPE's three: {outcome:?}") };
                assert!(trial.ledger.balanced && trial.far.bytes_received >= 3 * outcome.spec.block, "{trial:?}");
                assert!(
                    trial.far.receiving_ns > 0 && outcome.summary.goodput_bps.is_some_and(|bps| bps > 0.0),
                    "{trial:?}"
                );
                continue;
            }
            assert_eq!(outcome.trials.len(), 3, "NetPIPE's three trials");
            for trial in &outcome.trials {
                assert!(trial.ledger.balanced && trial.near.transactions >= 3, "{trial:?}");
                assert!(trial.near.rtt.as_ref().is_some_and(|rtt| rtt.p50_ns > 0), "{trial:?}");
                assert!(trial.far.reported(model::tally::Count::BytesReceived).is_none(), "NPtcp tells nothing");
            }
        }
        let rows = std::fs::read_to_string(sandbox.path("ours.out")).unwrap();
        assert_eq!(rows.lines().count(), 22);
    }
    let wrong =
        sandbox.run(&["curve", "127.0.0.1", "--speak", "netpipe", "--block", "1,10,100"]).ended_with(2).message();
    assert!(wrong.contains("not NetPIPE's own"), "{wrong}");
    let wrong = sandbox.run(&["curve", "127.0.0.1", "--speak", "iperf3"]).ended_with(2).message();
    assert!(wrong.contains("a curve with --speak iperf3"), "{wrong}");
}

#[test]
fn our_server_takes_nptcps_options() {
    if !skip::program("our_server_takes_nptcps_options", "NPtcp", "netpipe-tcp") {
        return;
    }
    let sandbox = Sandbox::new();
    let cases = [("-s", "22"), ("-2", "22"), ("-r", "22"), ("-i", "8")];
    let ports: Vec<String> = cases.iter().map(|_| free_port()).collect();
    let speak: Vec<String> =
        cases.iter().zip(&ports).map(|((flag, _), port)| format!("netpipe={port}:{flag}")).collect();
    let agent = Agent::with(&["--speak", &speak.join(",")]);
    for (at, ((flag, sizes), port)) in cases.iter().zip(&ports).enumerate() {
        let out = format!("np{at}.out");
        let said =
            sandbox.tool("NPtcp", &["-h", "127.0.0.1", "-P", port, "-n", "3", "-u", "64", flag, "-o", &out]).ok();
        let rows = std::fs::read_to_string(sandbox.path(&out)).unwrap();
        assert_eq!(rows.lines().count().to_string(), *sizes, "{flag}: {}{}", said.stdout, said.stderr);
        // The machine has one place: the next one is let in when this one has gone.
        within(Duration::from_secs(20), &format!("{flag} ends: {}", agent.log()), || {
            agent.log().matches(" netpipe ended after ").count() == at + 1
        });
        assert!(agent.log().ends_with(&format!("netpipe ended after {sizes} sizes\n")), "{flag}: {}", agent.log());
    }
    assert!(!agent.log().contains("is not as it was sent"), "{}", agent.log());
}

/// A key pair and a file of users: mario with the password rossi.
fn keys(sandbox: &Sandbox) {
    let private = sandbox.path("private.pem").display().to_string();
    sandbox.tool("openssl", &["genrsa", "-out", &private, "2048"]).ok();
    sandbox.tool("openssl", &["pkey", "-in", &private, "-pubout", "-out", "public.pem"]).ok();
    let user = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";
    std::fs::write(sandbox.path("users.csv"), user).unwrap();
}

/// Our client with that login; its end.
fn logged_in(sandbox: &Sandbox, port: &str, password: &str, flags: &[&str]) -> Finished {
    let (host, key) = (format!("127.0.0.1:{port}"), sandbox.path("public.pem").display().to_string());
    let base = ["stream", &host, "--speak", "iperf3", "--time", "100ms", "--trials", "1", "--quiet", "--json", "-"];
    let login = ["--username", "mario", "--rsa-public-key-path", &key];
    let mut command = sandbox.command(&[&base[..], &login, flags].concat());
    command.env("IPERF3_PASSWORD", password);
    Running::of(command).wait()
}

#[test]
fn iperf3s_login_in_both_roles() {
    let test = "iperf3s_login_in_both_roles";
    if !skip::program(test, "iperf3", "iperf3") || !skip::program(test, "openssl", "openssl") {
        return;
    }
    let sandbox = Sandbox::new();
    keys(&sandbox);
    let file = |name: &str| sandbox.path(name).display().to_string();
    let (private, users) = (file("private.pem"), file("users.csv"));
    let keyed = ["--rsa-private-key-path", &private, "--authorized-users-path", &users];

    // Version 3.12 knows PKCS #1 alone, and has no word of the padding.
    let port = free_port();
    let _server = iperf3(&port, &keyed);
    let old = logged_in(&sandbox, &port, "rossi", &["--use-pkcs1-padding"]);
    let older = if old.code == Some(0) { &["--use-pkcs1-padding"][..] } else { &[] };
    assert!(logged_in(&sandbox, &port, "rossi", older).ok().doc().goodput() > 0.0);
    let wrong = logged_in(&sandbox, &port, "verdi", older).ended_with(4).message();
    assert!(wrong.contains("error 142 (the login was refused: check --username"), "{wrong}");

    let port = free_port();
    let speak = format!("iperf3={port}");
    let agent = Agent::with(&[&["--speak", &speak][..], &keyed, older].concat());
    let theirs = |password: &str, flags: &[&str]| {
        let mut command = Command::new("iperf3");
        command.args(["-c", "127.0.0.1", "-p", &port, "-n", "1M", "-J"]).args(flags).env("IPERF3_PASSWORD", password);
        let said = Running::of(command).wait();
        let json: Value = serde_json::from_str(&said.stdout).unwrap();
        json["error"].as_str().map(str::to_owned)
    };
    let public = file("public.pem");
    let login = ["--username", "mario", "--rsa-public-key-path", &public];
    assert_eq!(theirs("rossi", &login), None, "{}", agent.log());
    for (password, flags) in [("verdi", &login[..]), ("rossi", &[])] {
        let refused = theirs(password, flags).unwrap();
        assert!(refused.contains("authorization"), "{refused}");
    }
    assert_eq!(agent.log().matches("iperf3 refused: wrong user name, password or clock").count(), 2);
    // Of the other padding nothing is said but the same.
    let other: &[&str] = if older.is_empty() { &["--use-pkcs1-padding"] } else { &[] };
    let wrong = logged_in(&sandbox, &port, "rossi", other).ended_with(4).message();
    assert!(wrong.contains("the login was refused"), "{wrong}");
    assert!(logged_in(&sandbox, &port, "rossi", older).ok().doc().goodput() > 0.0);

    std::fs::write(&users, "mario\n").unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--speak", "iperf3=0"];
    let wrong = sandbox.run(&[&serve[..], &keyed].concat()).ended_with(2).message();
    assert!(wrong.contains("users.csv line 1 is not NAME,HASH"), "{wrong}");
    let nuttcp = ["stream", "127.0.0.1", "--speak", "nuttcp", "--username", "m", "--rsa-public-key-path", &public];
    let wrong = sandbox.run(&nuttcp).ended_with(2).message();
    assert!(wrong.contains("a login with --speak nuttcp"), "{wrong}");
}
