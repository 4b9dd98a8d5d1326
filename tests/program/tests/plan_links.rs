//! Plans that vary the links of their lab (root only).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;

use program::{Sandbox, skip};

const PLAN: &str = r#"
to = "b"
[lab]
topology = "crossover"
[base]
time = "400ms"
[[lab.factor]]
name = "path"
levels = ["fast", "slow", "short", "lossy"]
[lab.factor.sets]
fast = { "link.rate" = "200Mbit", "link.mtu" = 9000 }
slow = { "link.a.b.forward.rate" = "20Mbit" }
short = { "link.rate" = "100Mbit", "link.delay" = "20ms", "link.queue" = "20KiB" }
lossy = { "link.rate" = "200Mbit", "link.loss" = "10%" }
[repeat]
min = 2
max = 2
"#;

#[test]
fn each_cell_has_the_links_of_its_level() {
    if !skip::root("each_cell_has_the_links_of_its_level") {
        return;
    }
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("plan.toml"), PLAN).unwrap();
    let ended = sandbox.run(&["run", "plan.toml", "--lab", "--quiet", "--json", "-"]);
    let run = ended.doc().run;
    let level: BTreeMap<u32, &str> =
        run.header.cells.iter().map(|cell| (cell.id, cell.levels["path"].as_str())).collect();
    // No cell is faster than its link, and drops are where its level has them.
    for outcome in &run.outcomes {
        let most = if level[&outcome.cell] == "slow" { 20e6 } else { 200e6 };
        let value = outcome.estimate.as_ref().unwrap().value;
        assert!(value > 0.0 && value < most, "{} has {value}", level[&outcome.cell]);
        for trial in &outcome.trials {
            let lab = run.passes.iter().find(|pass| pass.index == trial.pass).unwrap().lab.as_ref().unwrap();
            let drops: u64 = lab.directions.iter().filter_map(|one| one.dropped.get("loss")).sum();
            assert_eq!(drops > 0, level[&outcome.cell] == "lossy", "{}: {lab:?}", level[&outcome.cell]);
            let rtt = trial.near.flows.iter().filter_map(|flow| flow.socket.min_rtt_ns).min();
            let far = rtt.is_some_and(|ns| ns >= 40_000_000);
            assert_eq!(far, level[&outcome.cell] == "short", "{}: {rtt:?}", level[&outcome.cell]);
        }
    }
    // Without a lab, or with a link that is not there, nothing begins.
    std::fs::write(sandbox.path("plan.toml"), PLAN.replace("lab.factor", "factor")).unwrap();
    let said = sandbox.run(&["run", "plan.toml", "--quiet"]).ended_with(2).message();
    assert!(said.contains("is a property of a lab's links: use --lab"), "{said}");
    std::fs::write(sandbox.path("plan.toml"), PLAN.replace("link.a.b.", "link.a.c.")).unwrap();
    let said = sandbox.run(&["run", "plan.toml", "--lab", "--dry-run"]).ended_with(2).message();
    assert!(said.contains("link.a.c.forward.rate: the lab crossover has no such link"), "{said}");
}
