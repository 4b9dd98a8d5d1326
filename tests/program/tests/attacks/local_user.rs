//! Another user of an agent's or a client's host.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use program::{Agent, Sandbox};

#[test]
fn secrets_that_others_can_read_are_refused() {
    let (agent, sandbox) = (Agent::start(), Sandbox::with_token());
    let token = sandbox.path("token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    for args in [&["serve", "--listen", "127.0.0.1:0", "--token-file", "token"][..], &["host", agent.host()]] {
        let message = sandbox.run(args).ended_with(2).message();
        assert!(message.contains("mode 644") && message.contains("chmod 600"), "{message}");
    }
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let key = sandbox.path("agent.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o666)).unwrap();
    let named = ["serve", "--listen", "127.0.0.1:0", "--token-file", "token", "--key-file", "agent.key"];
    let message = sandbox.run(&named).ended_with(7).message();
    assert!(message.contains("mode 666") && message.contains("chmod 600"), "{message}");
}

#[test]
fn keys_known_agents_and_runs_are_for_their_owner_only() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("new");
    let run = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command.env("THRU_AGENT_KEY", folder.join("agent.key")).env("THRU_KNOWN_AGENTS", folder.join("known_agents"));
        program::Running::of(command).wait().ok()
    };
    let made = run(&["agent", "fingerprint"]).stdout;
    assert_eq!(run(&["agent", "fingerprint"]).stdout, made, "it is made once");
    run(&["agent", "trust", "b.example", made.trim()]);
    assert_eq!(run(&["agent", "known"]).stdout, format!("b.example:6280 {made}"));
    let mut command = sandbox.command(&["transfer", "--transport", "shm", "--count", "1"]);
    command.env("THRU_STORE", folder.join("data/runs.sqlite"));
    program::Running::of(command).wait().ok();
    let all =
        [("", 0o700), ("agent.key", 0o600), ("known_agents", 0o600), ("data", 0o700), ("data/runs.sqlite", 0o600)];
    for (path, mode) in all {
        let found = fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{path}: {found:o}");
    }
}
