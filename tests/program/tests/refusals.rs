//! Values that no measurement can have are refused before anybody is asked, with code 2 and in one sentence that names the flag.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use program::agent::OTHER_USER;
use program::{Agent, Sandbox};

/// Runs what must be refused with a message that has all of `words`.
fn refused(sandbox: &Sandbox, args: &[&str], words: &[&str]) {
    let message = sandbox.run(args).ended_with(2).message();
    for word in words {
        assert!(message.contains(word), "{args:?}: no '{word}' in: {message}");
    }
}

#[test]
fn a_host_with_a_port_that_is_none_is_not_measured_at_another_port() {
    let sandbox = Sandbox::new();
    for host in ["127.0.0.1:99999", "127.0.0.1:", "127.0.0.1:0", "[::1]:6280:7", ":abc", ""] {
        refused(&sandbox, &["rr", host], &[&format!("'{host}' is not a valid host")]);
        refused(&sandbox, &["tune", "show", "sysctl.net.ipv4.tcp_sack", host], &[&format!("'{host}'")]);
    }
    refused(&sandbox, &["stream", "--from", "a:x", "b"], &["--from: 'a:x'"]);
    std::fs::write(sandbox.path("plan.toml"), "to = \"127.0.0.1:99999\"\n").unwrap();
    refused(&sandbox, &["run", "plan.toml"], &["plan.toml:1:6: to: '127.0.0.1:99999' is not a valid host"]);
    assert!(!sandbox.store().exists());
}

#[test]
fn what_nothing_can_be_measured_with_names_flag_value_and_remedy() {
    let (agent, sandbox) = (Agent::start(), Sandbox::with_token());
    let stream: [(&[&str], &[&str]); 15] = [
        (&["--rate", "1GB"], &["--rate: '1GB' has the unit byte", "8Gbit", "1Gbit"]),
        (&["--interval", "0s"], &["--interval: '0s'", "minimum is 1.00 ms"]),
        (&["--interval", "1us"], &["--interval: '1us'", "minimum is 1.00 ms"]),
        (&["--stall", "0s"], &["--stall: '0s'", "the minimum is"]),
        (&["--budget", "0s"], &["--budget: '0s'", "more than 0"]),
        (&["--pacing", "0"], &["--pacing: '0'", "more than 0"]),
        (&["--flows", "-1"], &["--flows: '-1'", "1 to 16384"]),
        (&["--trials", "x"], &["--trials: 'x'", "whole number"]),
        (&["--block", "1.5"], &["--block: '1.5'", "whole number of bytes"]),
        (&["--name", ""], &["--name: ''"]),
        (&["--data", "here"], &["--data: 'here' is not an IP address"]),
        (&["--unpaced"], &["--unpaced has no effect on tcp"]),
        (&["--udp", "--nodelay"], &["--nodelay has no effect on udp"]),
        (&["--transport", "unix", "--mss", "1000"], &["--mss has no effect on unix"]),
        (&["--cc", "fast:alpha=x"], &["--cc: ", "alpha=x"]),
    ];
    for (flags, words) in stream {
        refused(&sandbox, &[&["stream"], flags, &[agent.host()]].concat(), words);
    }
    let serve: [(&[&str], &[&str]); 3] = [
        (&["--concurrent", "0"], &["--concurrent: '0'", "from 1"]),
        (&["--max-rate", "0"], &["--max-rate: '0'"]),
        (&["--allow-capture=/proc/nodir", "--user", OTHER_USER], &["--allow-capture=/proc/nodir", "writable folder"]),
    ];
    for (flags, words) in serve {
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        refused(&sandbox, &[&serve[..], &sandbox.token_flags(), flags].concat(), words);
    }
    assert!(!agent.log().contains("measures"), "{}", agent.log());
    assert!(!sandbox.store().exists());
}

#[test]
fn a_plan_is_refused_as_a_flag_is() {
    let sandbox = Sandbox::new();
    for (text, said) in [
        ("to = \"b\"\n[require]\nload = -1\n", "plan.toml:3:8: require.load: '-1'"),
        ("to = \"b\"\n[base]\nrate = \"1GB\"\n", "plan.toml:3:1: base.rate: '1GB' has the unit byte"),
        ("to = \"b\"\n[base]\ninterval = \"1us\"\n", "plan.toml:3:1: base.interval: '1us' is too small"),
    ] {
        std::fs::write(sandbox.path("plan.toml"), text).unwrap();
        refused(&sandbox, &["run", "plan.toml", "--dry-run"], &[said]);
    }
}
