//! iperf3's own program where its tests differ: a server for one test, warm-ups, counts in both directions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::process::Command;

use model::Verdict;
use program::peers::{free_port, iperf3};
use program::{Agent, Running, Sandbox, eventually, skip};
use serde_json::Value;

#[test]
fn a_server_for_one_test_serves_a_run_of_one_trial() {
    if !skip::program("a_server_for_one_test_serves_a_run_of_one_trial", "iperf3", "iperf3") {
        return;
    }
    let sandbox = Sandbox::new();
    let [one, other] = [free_port(), free_port()];
    let _servers = [iperf3(&one, &["-1"]), iperf3(&other, &["-1"])];
    let host = format!("127.0.0.1:{one}");
    let brief = ["--speak", "iperf3", "--time", "200ms", "--quiet"];
    let doc = sandbox.measure(&[&["stream", &host, "--trials", "1"][..], &brief].concat());
    assert!(doc.goodput() > 0.0 && doc.trials()[0].ledger.balanced, "{:?}", doc.trials());
    // With more trials the pilot trial is that one test.
    let host = format!("127.0.0.1:{other}");
    let said = sandbox.run(&[&["stream", &host][..], &brief].concat());
    assert!(said.message().contains("use --trials 1"), "{}", said.stderr);
    // What keeps such a run from beginning is told as ever.
    let gone = format!("127.0.0.1:{}", free_port());
    let said = sandbox.run(&[&["stream", &gone, "--trials", "1"][..], &brief].concat()).ended_with(3).message();
    assert!(said.contains("cannot reach iperf3 at"), "{said}");
}

#[test]
fn a_warm_up_is_counted_at_both_ends_alike() {
    if !skip::program("a_warm_up_is_counted_at_both_ends_alike", "iperf3", "iperf3") {
        return;
    }
    let (sandbox, port) = (Sandbox::new(), free_port());
    let _server = iperf3(&port, &[]);
    let host = format!("127.0.0.1:{port}");
    let base = ["stream", &host, "--speak", "iperf3", "--warmup", "1s", "--time", "2s", "--trials", "1", "--quiet"];
    for flags in [&["--reverse", "--rate", "400Mbit"][..], &["--both", "--rate", "400Mbit"]] {
        let doc = sandbox.measure(&[&base, flags].concat());
        let trial = &doc.trials()[0];
        assert!(trial.ledger.balanced && trial.near.bytes_received > 0, "{flags:?}: {:?}", trial.ledger);
        assert!(trial.far.bytes_sent >= trial.near.bytes_received, "{flags:?}: {:?}", trial.ledger);
    }
}

#[test]
fn a_count_bounds_what_our_server_sends_beside_receiving() {
    if !skip::program("a_count_bounds_what_our_server_sends_beside_receiving", "iperf3", "iperf3") {
        return;
    }
    let (sandbox, port) = (Sandbox::new(), free_port());
    let agent = Agent::with(&["--speak", &format!("iperf3={port}")]);
    for (flags, most) in [(["-n", "10M"], 10 << 20), (["-k", "16"], 16 * 131_072)] {
        let mut command = Command::new("iperf3");
        command.args(["-c", "127.0.0.1", "-p", &port, "-J", "--bidir"]).args(flags).current_dir(sandbox.path(""));
        let json: Value = serde_json::from_str(&Running::of(command).wait().ok().stdout).unwrap();
        let sent = json.pointer("/end/sum_sent_bidir_reverse/bytes").and_then(Value::as_u64);
        assert!(sent.is_some_and(|sent| sent <= most), "{flags:?}: {sent:?}\n{}", agent.log());
    }
}

#[test]
fn a_count_that_an_iperf3_server_sends_over_several_connections_ends_by_their_sum() {
    let test = "a_count_that_an_iperf3_server_sends_over_several_connections_ends_by_their_sum";
    if !skip::program(test, "iperf3", "iperf3") {
        return;
    }
    let (sandbox, port) = (Sandbox::new(), free_port());
    let _server = iperf3(&port, &[]);
    let host = format!("127.0.0.1:{port}");
    for flags in [
        &["--bytes", "10MB", "--flows", "8", "--reverse"][..],
        &["--bytes", "10MB", "--flows", "4", "--both"],
        &["--count", "100", "--flows", "4", "--reverse"],
    ] {
        let base = ["stream", &host, "--speak", "iperf3", "--trials", "2", "--quiet"];
        let doc = sandbox.measure(&[&base, flags].concat());
        let bytes = if flags[0] == "--count" { 100 * 131_072 } else { 10_000_000 };
        for trial in doc.trials() {
            assert!(!trial.verdicts.contains(&Verdict::Stalled), "{flags:?}: {}", doc.remarks());
            assert!(trial.near.bytes_received >= bytes, "{flags:?}: {:?}", trial.ledger);
            if flags.contains(&"--both") {
                assert_eq!(trial.near.bytes_sent, bytes.next_multiple_of(131_072), "{flags:?}");
            }
        }
    }
}

#[test]
fn an_agent_for_one_client_ends_after_one_of_another_program() {
    if !skip::program("an_agent_for_one_client_ends_after_one_of_another_program", "iperf3", "iperf3") {
        return;
    }
    let (sandbox, port) = (Sandbox::new(), free_port());
    let speak = format!("iperf3={port}");
    let serving = Running::of(sandbox.command(&["serve", "--listen", "127.0.0.1:0", "--speak", &speak, "--once"]));
    eventually("it listens", || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    let said = sandbox.tool("iperf3", &["-c", "127.0.0.1", "-p", &port, "-n", "1M", "-J"]).ok().stdout;
    assert!(said.contains("sum_received"), "{said}");
    let ended = serving.wait().ok();
    assert!(ended.stderr.contains("iperf3 ended") || ended.stdout.contains("iperf3 ended"), "{ended:?}");
}
