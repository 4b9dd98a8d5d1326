//! Plans with cells whose far end is another program's server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::process::Command;

use model::FindingKind;
use program::peers::{free_port, iperf3};
use program::process::Process;
use program::{Agent, Sandbox, skip};

/// An agent and iperf3 at the far end.
fn systems(agent: &Agent, port: &str) -> String {
    format!(
        "[base]\ntime = \"200ms\"\nblock = \"64KiB\"\n[[factor]]\nname = \"system\"\nlevels = [\"ours\", \"theirs\"]\n\
         [factor.sets.ours]\nhost = \"{}\"\n[factor.sets.theirs]\nspeak = \"iperf3\"\nhost = \"127.0.0.1:{port}\"\n\
         [repeat]\nmin = 3\nmax = 3\n",
        agent.host()
    )
}

#[test]
fn an_agent_and_iperf3_are_levels_of_one_plan() {
    if !skip::program("an_agent_and_iperf3_are_levels_of_one_plan", "iperf3", "iperf3") {
        return;
    }
    let (agent, sandbox, port) = (Agent::start(), Sandbox::new(), free_port());
    std::fs::write(sandbox.path("plan.toml"), systems(&agent, &port)).unwrap();
    let dry = sandbox.run(&["run", "plan.toml", "--dry-run"]).ok().stdout;
    assert!(dry.contains(&format!("127.0.0.1:{port} speaks iperf3: it needs iperf3 -s")), "{dry}");
    // Without the server nothing is measured.
    let gone = sandbox.run(&["run", "plan.toml", "--quiet"]).ended_with(3).message();
    assert!(gone.contains("cannot reach iperf3 at"), "{gone}");
    let _server = iperf3(&port, &[]);
    let doc = sandbox.measure(&["run", "plan.toml", "--quiet"]);
    let rounds: BTreeSet<u32> = doc.run.passes.iter().filter_map(|pass| pass.round).collect();
    assert_eq!((doc.run.outcomes.len(), rounds.len(), doc.run.passes.len()), (2, 3, 6));
    for outcome in &doc.run.outcomes {
        assert!(outcome.trials.len() == 3 && outcome.estimate.as_ref().unwrap().value > 0.0, "{outcome:?}");
    }
    let effects = doc.run.findings.iter().filter(|finding| finding.kind == FindingKind::Effect);
    assert!(
        effects.clone().any(|one| one.statement.plain().starts_with("system ours → theirs: goodput")),
        "{effects:?}"
    );
    let shown = sandbox.run(&["show", &doc.run.header.id]).ok().stdout;
    assert!(shown.contains("The far end of some cells is iperf3"), "{shown}");
}

#[test]
fn curves_with_nptcp_are_cells_of_a_plan() {
    if !skip::program("curves_with_nptcp_are_cells_of_a_plan", "NPtcp", "netpipe-tcp") {
        return;
    }
    let (agent, sandbox, port) = (Agent::start(), Sandbox::new(), free_port());
    let plan = systems(&agent, &port).replace("iperf3", "netpipe").replace(
        "time = \"200ms\"\nblock = \"64KiB\"",
        "pattern = \"curve\"\nto = 64\nperturbation = 0\ntime = \"1ms\"",
    );
    std::fs::write(sandbox.path("plan.toml"), plan).unwrap();
    // NPtcp serves one curve, and ends with the shell that starts it again.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("while setpriv --pdeathsig KILL NPtcp -p 0 -u 64 -P {port}; do :; done")]);
    let server = Process::spawn(command);
    let doc = sandbox.measure(&["run", "plan.toml", "--quiet"]);
    let sizes = doc.run.header.cells.iter().filter(|cell| cell.levels["system"] == "theirs").count();
    assert_eq!(doc.run.outcomes.len(), 2 * sizes, "{}", server.stderr());
    let theirs = |cell: u32| doc.run.header.cells[cell as usize].spec.speak.is_some();
    for outcome in &doc.run.outcomes {
        let passes: BTreeSet<u32> = outcome.trials.iter().map(|trial| trial.pass).collect();
        assert_eq!(passes.len(), 3, "each round: {outcome:?}");
        assert!(outcome.trials.len() == 3 || theirs(outcome.cell), "NPtcp may repeat a size: {outcome:?}");
    }
}

#[test]
fn what_another_program_cannot_do_is_refused_before_the_plan_begins() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for (line, part) in [("pattern = \"rr\"\n", "with iperf3"), ("find-no-loss = true\nudp = true\n", "find-no-loss")] {
        let plan = systems(&agent, "1").replace("64KiB", "1KiB").replace("[base]\n", &format!("[base]\n{line}"));
        std::fs::write(sandbox.path("plan.toml"), plan).unwrap();
        let said = sandbox.run(&["run", "plan.toml", "--quiet"]).ended_with(2).message();
        assert!(said.contains("system theirs") && said.contains(part), "{said}");
    }
}
