//! The older programs at the other end: the real nuttcp and the real iperf 2 are the judges, in both roles. Nobody but our own pair
//! judges nttcp.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use program::process::{Process, eventually};
use program::{Agent, Doc, Running, Sandbox, binary, skip};

/// A port that is free, and so are the two behind it, where nuttcp has its data.
fn free_port() -> String {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        if (1..3).all(|more| port < u16::MAX - 2 && TcpListener::bind(("127.0.0.1", port + more)).is_ok()) {
            return port.to_string();
        }
    }
}

/// Waits until somebody listens there, without being taken for a client.
fn listens(protocol: &str, port: &str) {
    let place = format!(":{:04X} 0", port.parse::<u16>().unwrap());
    eventually(&format!("{protocol} port {port} is served"), || {
        let files = [protocol.to_owned(), format!("{protocol}6")].map(|name| format!("/proc/net/{name}"));
        files.iter().any(|file| std::fs::read_to_string(file).is_ok_and(|sockets| sockets.contains(&place)))
    });
}

#[test]
fn a_port_without_a_server_is_a_host_that_is_not_reached() {
    let sandbox = Sandbox::new();
    for program in ["nuttcp", "iperf2", "nttcp"] {
        let host = format!("127.0.0.1:{}", free_port());
        let said =
            sandbox.run(&["transfer", &host, "--count", "8", "--speak", program, "--quiet"]).ended_with(3).message();
        assert!(said.contains(&format!("cannot reach {program} at {host}")), "{said}");
    }
}

/// One trial with the program's server on this port.
fn ours(sandbox: &Sandbox, command: &str, program: &str, port: &str, flags: &[&str]) -> Doc {
    let host = format!("127.0.0.1:{port}");
    let mut words = vec![command, &host, "--speak", program, "--quiet"];
    if !flags.contains(&"--trials") {
        words.extend(["--trials", "1"]);
    }
    let doc = sandbox.measure(&[&words, flags].concat());
    let trial = &doc.trials()[0];
    assert!(trial.ledger.balanced, "{program} {flags:?}: {:?}", trial.ledger);
    assert!(doc.goodput() > 0.0, "{program} {flags:?}");
    doc
}

fn agent(program: &str, flags: &[&str]) -> (Agent, String) {
    let port = free_port();
    (Agent::with(&[&["--speak", &format!("{program}={port}")], flags].concat()), port)
}

#[test]
fn our_pair_speaks_nttcp() {
    let (sandbox, (agent, port)) = (Sandbox::new(), agent("nttcp", &[]));
    let count = ["--count", "512", "--block", "4KiB"];
    let windows = ["--nodelay", "--sndbuf", "128KiB", "--rcvbuf", "128KiB"];
    for flags in [[&count[..], &windows].concat(), [&count[..], &["--reverse"]].concat()] {
        let doc = ours(&sandbox, "transfer", "nttcp", &port, &flags);
        let (near, far) = (&doc.trials()[0].near, &doc.trials()[0].far);
        assert_eq!((near.bytes_sent + near.bytes_received, far.bytes_sent + far.bytes_received), (2 << 20, 2 << 20));
        assert!(far.calls_sent + far.calls_received > 0 && far.spent.is_some(), "{far:?}");
        assert!(doc.run.header.tool.far_version.starts_with("thru "), "{:?}", doc.run.header.tool);
    }
    let datagrams = ["--udp", "--count", "200", "--block", "1000", "--rate", "40Mbit"];
    for direction in [&[][..], &["--reverse"]] {
        let doc = ours(&sandbox, "transfer", "nttcp", &port, &[&datagrams[..], direction].concat());
        let trial = &doc.trials()[0];
        let receiver = if direction.is_empty() { &trial.far } else { &trial.near };
        let reported = receiver.datagrams.unwrap();
        assert_eq!(
            (reported.received + reported.missed.unwrap(), receiver.bytes_received),
            (200, reported.received * 1000)
        );
    }
    assert!(agent.log().contains("nttcp received 2097152 bytes over tcp"), "{}", agent.log());
    let host = format!("127.0.0.1:{port}");
    let wrong = sandbox.run(&["stream", &host, "--speak", "nttcp"]).ended_with(2).message();
    assert!(wrong.contains("thru transfer HOST --speak nttcp"), "{wrong}");
}

/// Starts a process for each client, as inetd does, which has the connection for all of its three.
fn inetd(program: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let ends = [(); 3].map(|()| Stdio::from(OwnedFd::from(client.as_ref().unwrap().try_clone().unwrap())));
            let [stdin, stdout, stderr] = ends;
            let mut command = Command::new(binary::thru());
            command.args(["serve", "--inetd", "--speak", program]).stdin(stdin).stdout(stdout).stderr(stderr);
            let mut server = command.spawn().unwrap();
            drop((command, client));
            std::thread::spawn(move || server.wait());
        }
    });
    port
}

#[test]
fn inetd_starts_our_servers() {
    let (sandbox, port) = (Sandbox::new(), inetd("nttcp"));
    for direction in [&[][..], &["--reverse"]] {
        let flags = [&["--count", "512", "--block", "4KiB"][..], direction].concat();
        let trial = &ours(&sandbox, "transfer", "nttcp", &port, &flags).trials()[0].clone();
        let moved = [&trial.near, &trial.far].map(|end| end.bytes_sent + end.bytes_received);
        assert_eq!(moved, [2 << 20, 2 << 20]);
    }
    if skip::program("inetd_starts_our_servers", "nuttcp", "nuttcp") {
        let said =
            sandbox.tool("nuttcp", &["-P", &inetd("nuttcp"), "-p", &free_port(), "-n", "64", "127.0.0.1"]).ok().stdout;
        assert!(said.contains(" Mbps "), "{said}");
    }
    let alone = sandbox.run(&["serve", "--inetd", "--speak", "nttcp"]).ended_with(2).message();
    assert!(alone.contains("standard input is not a TCP connection"), "{alone}");
}

#[test]
fn our_client_measures_with_nuttcps_server() {
    if !skip::program("our_client_measures_with_nuttcps_server", "nuttcp", "nuttcp") {
        return;
    }
    let (sandbox, port) = (Sandbox::new(), free_port());
    let mut command = Command::new("nuttcp");
    command.args(["-S", "-P", &port, "--nofork"]);
    let _server = Process::spawn(command);
    listens("tcp", &port);

    let flags = ["--time", "200ms", "--flows", "2", "--nodelay", "--trials", "2"];
    let doc = ours(&sandbox, "stream", "nuttcp", &port, &flags);
    let far = &doc.trials()[0].far;
    assert!(doc.run.header.tool.far_version.starts_with("nuttcp "), "{:?}", doc.run.header.tool);
    assert!(far.calls_received > 0 && far.receiving_ns > 0 && far.spent.is_some(), "{far:?}");

    let doc = ours(&sandbox, "transfer", "nuttcp", &port, &["--count", "64", "--block", "8KiB", "--reverse"]);
    let (near, far) = (&doc.trials()[0].near, &doc.trials()[0].far);
    assert_eq!((near.bytes_received, far.bytes_sent), (64 * 8192, 64 * 8192));
    assert!(far.flows[0].socket.retransmits.is_some(), "{far:?}");

    for direction in [&[][..], &["--reverse"]] {
        let flags = ["--udp", "--time", "200ms", "--rate", "20Mbit", "--block", "1000"];
        let doc = ours(&sandbox, "stream", "nuttcp", &port, &[&flags[..], direction].concat());
        let trial = &doc.trials()[0];
        let receiver = if direction.is_empty() { &trial.far } else { &trial.near };
        let reported = receiver.datagrams.unwrap();
        assert!(reported.received > 100 && reported.missed.is_some(), "{reported:?}");
        assert_eq!(receiver.bytes_received, reported.received * 1000);
    }
}

/// What a program's client says.
fn client(sandbox: &Sandbox, program: &str, words: &[&str]) -> Running {
    let mut command = Command::new(program);
    command.args(words).current_dir(sandbox.path(""));
    Running::of(command)
}

#[test]
fn our_server_serves_nuttcps_clients() {
    if !skip::program("our_server_serves_nuttcps_clients", "nuttcp", "nuttcp") {
        return;
    }
    let (sandbox, (agent, port)) = (Sandbox::new(), agent("nuttcp", &["--concurrent", "8", "--max-flows", "4"]));
    let cases: [&[&str]; 7] = [
        &["-t", "-T", "0.5"],
        &["-t", "-n", "640", "-l", "8192", "-N", "2"],
        &["-r", "-n", "640", "-l", "8192", "-w", "256"],
        &["-t", "-F", "-n", "640", "-l", "8192"],
        &["-r", "-T", "0.5", "-R", "50m"],
        &["-u", "-t", "-n", "100", "-l", "1000", "-R", "20m"],
        &["-u", "-r", "-n", "100", "-l", "1000", "-R", "20m"],
    ];
    let running: Vec<(Running, &[&str])> = cases
        .iter()
        .map(|case| {
            let data = free_port();
            (
                client(
                    &sandbox,
                    "nuttcp",
                    &[&["-fparse", "-P", &port, "-p", &data][..], case, &["127.0.0.1"]].concat(),
                ),
                *case,
            )
        })
        .collect();
    for (one, case) in running {
        let said = one.wait().ok().stdout;
        let value = |key: &str| -> f64 {
            let found = said.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
            found.unwrap_or_else(|| panic!("{case:?}: no {key}: {said}\n{}", agent.log())).parse().unwrap()
        };
        assert!(value("rate_Mbps") > 1.0, "{case:?}: {said}");
        if *case == ["-t", "-T", "0.5"] {
            assert!(value("rx_cpu") > 0.0, "a receiver at full speed: {said}");
        }
        if case.contains(&"640") {
            assert_eq!(value("megabytes"), 5.0, "{case:?}: {said}");
        }
        if case.contains(&"-u") {
            assert_eq!(value("pkt"), 100.0, "{case:?}: {said}");
            assert!(value("drop") <= 100.0, "{case:?}: {said}");
        }
    }
    // Interim reports: of what the server receives it sends them, of what the client receives the client makes them.
    for case in [&["-t"][..], &["-r"], &["-u", "-t", "-R", "20m", "-l", "1000"]] {
        let data = free_port();
        let words = [&["-P", &port, "-p", &data, "-fparse", "-i0.2", "-T1"][..], case, &["127.0.0.1"]].concat();
        let said = client(&sandbox, "nuttcp", &words).wait().ok().stdout;
        let interim: Vec<&str> = said.lines().filter(|line| line.contains("real_sec=")).collect();
        assert!(interim.len() >= 2, "{case:?}: {said}\n{}", agent.log());
        assert!(interim.iter().all(|line| !line.contains("rate_Mbps=0.0000")), "{case:?}: {said}");
        assert_eq!(interim.iter().all(|line| line.contains(" drop=")), case.contains(&"-u"), "{case:?}: {said}");
        assert!(said.contains("real_seconds="), "{case:?}: {said}");
    }
    for (flags, why) in [(["-N", "5"], "refused: 5 streams"), (["-i0.01", "-T2"], "refused: interim reports")] {
        let refused = client(&sandbox, "nuttcp", &[&["-P", &port][..], &flags, &["127.0.0.1"]].concat()).wait();
        assert!(!refused.stderr.is_empty(), "{refused:?}");
        eventually("the agent says why", || agent.log().contains(why));
    }
}

#[test]
fn our_client_measures_with_iperf2s_server() {
    if !skip::program("our_client_measures_with_iperf2s_server", "iperf", "iperf") {
        return;
    }
    let (sandbox, [tcp, duplex, udp]) = (Sandbox::new(), [(); 3].map(|()| free_port()));
    let serve = |port: &str, flags: &[&str]| {
        let mut command = Command::new("iperf");
        command.args(["-s", "-p", port]).args(flags);
        Process::spawn(command)
    };
    // A server for each test: 2.1.8 now and then does not live through the end of one.
    let _servers = [serve(&tcp, &[]), serve(&duplex, &[]), serve(&udp, &["-u"])];
    listens("tcp", &tcp);
    listens("tcp", &duplex);
    listens("udp", &udp);

    let doc = ours(&sandbox, "stream", "iperf2", &tcp, &["--time", "200ms", "--flows", "2"]);
    let trial = &doc.trials()[0];
    assert_eq!(doc.run.header.tool.far_version, "iperf 2.1.8");
    assert_eq!((trial.far.bytes_received, trial.far.flows.len()), (trial.near.bytes_sent, 2));
    assert!(trial.far.reported(model::tally::Count::CallsReceived).is_none());

    let backwards = || {
        let (port, flags) =
            (free_port(), ["--count", "64", "--block", "8KiB", "--reverse", "--trials", "1", "--json", "-"]);
        let mut server = serve(&port, &[]);
        listens("tcp", &port);
        let host = format!("127.0.0.1:{port}");
        let ended = sandbox.run(&[&["transfer", &host, "--speak", "iperf2", "--quiet"], &flags[..]].concat());
        if ended.code == Some(0) {
            return Some(ended.doc());
        }
        let stalled = |doc: Doc| doc.outcome().summary.verdicts.contains(&model::Verdict::Stalled);
        if !Doc::try_parse(&ended.stdout).is_ok_and(stalled) {
            let what = format!("the server ended, which explains exit code {:?}: {}", ended.code, ended.stderr);
            eventually(&what, || server.ended().is_some());
        }
        None
    };
    // One of ten servers corrupts its heap at the end of a transfer that it sends: it ends ("corrupted double-linked list"), or the next
    // one waits for a lock in freed memory and sends nothing.
    let doc = (0..5).find_map(|_| backwards()).expect("one server of five lives");
    let trial = &doc.trials()[0];
    assert!(trial.near.bytes_received >= 64 * 8192 && trial.ledger.balanced && doc.goodput() > 0.0, "{trial:?}");

    let doc = ours(&sandbox, "stream", "iperf2", &duplex, &["--both", "--time", "500ms", "--flows", "2"]);
    let trial = &doc.trials()[0];
    assert!(trial.near.bytes_sent > 0 && trial.near.bytes_received > 0, "{trial:?}");
    assert_eq!((trial.far.bytes_sent, trial.far.bytes_received), (trial.near.bytes_received, trial.near.bytes_sent));

    let doc = ours(&sandbox, "stream", "iperf2", &udp, &["--udp", "--time", "200ms", "--rate", "20Mbit"]);
    let trial = &doc.trials()[0];
    assert_eq!(doc.outcome().spec.block, 1470, "what its server reads of a datagram");
    let reported = trial.far.datagrams.unwrap();
    assert!(reported.received > 100 && reported.missed.is_some() && reported.jitter_ns.is_some(), "{reported:?}");
    let sent = trial.near.datagrams.unwrap().sent;
    assert_eq!(reported.received + reported.missed.unwrap(), sent, "all numbers are accounted for");
}

#[test]
fn our_server_serves_iperf2s_clients() {
    if !skip::program("our_server_serves_iperf2s_clients", "iperf", "iperf") {
        return;
    }
    let (sandbox, (agent, port)) = (Sandbox::new(), agent("iperf2", &["--max-flows", "4"]));
    let cases: [&[&str]; 5] = [
        &["-n", "1M", "-P", "2"],
        &["-t", "1"],
        &["-n", "1M", "-R"],
        &["-t", "1", "-R"],
        &["-u", "-n", "100K", "-b", "20m", "-l", "1000"],
    ];
    for case in cases {
        let said = client(&sandbox, "iperf", &[&["-c", "127.0.0.1", "-p", &port, "-y", "C"][..], case].concat())
            .wait()
            .ok()
            .stdout;
        // The seventh and later columns: interval, bytes, bit/s.
        let line = said.lines().last().unwrap_or_else(|| panic!("{case:?} said nothing\n{}", agent.log()));
        let columns: Vec<&str> = line.split(',').collect();
        let bytes: u64 = columns[7].parse().unwrap();
        let least = if case.contains(&"100K") { 100 << 10 } else { 1 << 20 };
        assert!(bytes >= least, "{case:?}: {said}");
    }
    // The report comes while the client still repeats its last datagram.
    let said =
        client(&sandbox, "iperf", &["-c", "127.0.0.1", "-p", &port, "-u", "-n", "100K", "-b", "20m"]).wait().ok();
    assert!(said.stdout.contains("Server Report") && !said.stdout.contains("did not receive ack"), "{said:?}");
    // Both at once over one connection, as counted by the client: a line for each direction.
    let said = client(&sandbox, "iperf", &["-c", "127.0.0.1", "-p", &port, "--full-duplex", "-t", "1"]).wait().ok();
    let directions = said.stdout.lines().filter(|line| line.contains("bits/sec") && !line.contains("SUM"));
    let directions: Vec<&str> = directions.collect();
    assert!(directions.len() == 2 && directions.iter().all(|line| line.contains("Bytes ")), "{said:?}");
    assert!(directions.iter().all(|line| !line.contains(" Bytes ")), "a direction moved next to nothing: {said:?}");
    eventually("the agent has seen both", || {
        agent.log().contains("iperf2 sent ") && agent.log().contains(" and received ")
    });
    // One datagram proves nothing: the server sends none.
    let said = client(&sandbox, "iperf", &["-c", "127.0.0.1", "-p", &port, "-u", "-R", "-t", "1"]).wait();
    eventually("the agent says why", || agent.log().contains("refused: datagrams from the server"));
    assert!(said.stdout.contains(" 0.000 Bytes "), "{said:?}");
    let said = client(&sandbox, "iperf", &["-c", "127.0.0.1", "-p", &port, "--bounceback", "-t", "1"]).wait().ok();
    assert!(said.stdout.contains(" rps"), "{said:?}");
    eventually("the agent has seen the round trips", || agent.log().contains("bytes of round trips"));
    eventually("the agent has seen the datagrams", || agent.log().contains("datagrams lost"));
    // Two at once of one host are one measurement.
    assert_eq!(agent.log().matches("iperf2 received 1048").count(), 2, "{}", agent.log());
}
