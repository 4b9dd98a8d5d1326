//! The user's file of defaults: options for all commands, and hosts with names.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;

use program::{Agent, Finished, Running, Sandbox};
use serde_json::Value;

/// A short measurement of round trips.
const SHORT: [&str; 6] = ["--time", "30ms", "--quiet", "--no-store", "--json", "-"];

/// Runs a command with this file.
fn with(sandbox: &Sandbox, text: &str, args: &[&str]) -> Finished {
    let file = sandbox.path("config.toml");
    fs::write(&file, text).unwrap();
    let mut command = sandbox.command(args);
    command.env("THRU_CONFIG", &file);
    Running::of(command).wait()
}

#[test]
fn a_host_of_the_file_has_an_address_a_port_and_a_token() {
    let sandbox = Sandbox::new();
    let agents = Sandbox::with_token();
    let agent = Agent::with_token(&agents, &[]);
    let token = agents.token_flags()[1].to_owned();
    let other = sandbox.path("other");
    sandbox.run(&["token", "new", "-o", other.to_str().unwrap()]).ok();
    let file = format!(
        "[defaults]\ntrials = 1\ntoken-file = \"{}\"\n[hosts.lab1]\naddress = \"127.0.0.1\"\nport = {}\ntoken-file = \"{token}\"\n",
        other.display(),
        agent.port()
    );
    let args: Vec<&str> = ["rr", "lab1"].into_iter().chain(SHORT).collect();
    let run: Value = serde_json::from_str(&with(&sandbox, &file, &args).ok().stdout).unwrap();
    assert_eq!(run["header"]["target"], format!("127.0.0.1:{}", agent.port()));
    assert_eq!(run["outcomes"][0]["trials"].as_array().map(Vec::len), Some(1));
    let shown: Value = serde_json::from_str(&with(&sandbox, &file, &["config", "show", "--json"]).ok().stdout).unwrap();
    assert_eq!(shown["hosts"][0]["name"], "lab1");
    let values = shown["values"].as_array().unwrap();
    let trials = values.iter().find(|value| value["option"] == "trials").unwrap();
    assert_eq!((&trials["value"], &trials["origin"]["line"]), (&"1".into(), &2.into()));
    // Another key than the one in the file is refused.
    let pinned = format!("{file}key = \"SHA256:{}\"\n", "A".repeat(43));
    let refused = with(&sandbox, &pinned, &args).stderr;
    assert!(refused.contains("[hosts.lab1] in the configuration has SHA256:AAA"), "{refused}");
}

#[test]
fn a_mistake_in_the_file_is_named() {
    let sandbox = Sandbox::new();
    for (text, what) in [
        ("[defaults]\ntimes = 1\n", "defaults.times: no command has --times; did you mean time"),
        ("[hosts.a]\nports = 1\n", "hosts.a.ports: a host has address, port, token-file, key"),
    ] {
        let refused = with(&sandbox, text, &["runs"]).ended_with(2).stderr;
        assert!(refused.contains(what), "{refused}");
    }
}

#[test]
fn an_option_of_iperf3_measures_as_ours_does() {
    let agent = Agent::start();
    let sandbox = Sandbox::new();
    let port = agent.port().to_string();
    let doc = sandbox.measure(&[
        "stream",
        "-c",
        "127.0.0.1",
        "-p",
        &port,
        "-M",
        "1400",
        "-S",
        "0xb8",
        "--parallel",
        "2",
        "--bitrate",
        "5M",
        "-t",
        "0.2",
        "--trials",
        "1",
    ]);
    let spec = &doc.json["header"]["cells"][0]["spec"];
    assert_eq!((&spec["near"]["mss"], &spec["near"]["dscp"]), (&1400.into(), &46.into()), "{spec}");
    assert_eq!((&spec["flows"], &spec["rate_bps"]), (&2.into(), &10_000_000.into()), "{spec}");
}
