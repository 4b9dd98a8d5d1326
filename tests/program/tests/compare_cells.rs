//! `thru compare` pairs cells by all that tells them apart, or not at all, and lists what has no partner.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;

use model::RunComparison;
use program::{Agent, Sandbox};

fn compared(sandbox: &Sandbox, a: &str, b: &str, code: i32) -> RunComparison {
    serde_json::from_str(&sandbox.run(&["compare", a, b, "--json"]).ended_with(code).stdout).unwrap()
}

fn import(sandbox: &Sandbox, name: &str, text: &str) {
    std::fs::write(sandbox.path("file.csv"), text).unwrap();
    sandbox.run(&["import", "file.csv", "--name", name]).ok();
}

#[test]
fn matrices_are_compared_host_by_host() {
    let sandbox = Sandbox::new();
    import(&sandbox, "day", "Mbit/s,Czech,Finland,Norway\nCzech,-,482,601\nFinland,219,-,130\nNorway,181,230,-\n");
    // The same hosts in another order, without one pair and with a host more.
    import(&sandbox, "night", "Mbit/s,Norway,Finland,Poland\nFinland,130,-,90\nCzech,601,482,-\n");
    let found = compared(&sandbox, "day", "night", 4);
    let pairs: BTreeSet<(&str, &str)> =
        found.cells.iter().map(|cell| (cell.levels["from"].as_str(), cell.levels["to"].as_str())).collect();
    assert_eq!(pairs, [("Czech", "Finland"), ("Czech", "Norway"), ("Finland", "Norway")].into());
    // What was the same is the same: nobody was set against another pair of hosts.
    assert!(found.cells.iter().all(|cell| (cell.ratio.value - 1.0).abs() < 1e-9), "{:?}", found.cells);
    let left: BTreeSet<(&str, &str, &str)> = found
        .unpaired
        .iter()
        .map(|one| (one.side.as_str(), one.levels["from"].as_str(), one.levels["to"].as_str()))
        .collect();
    let wanted =
        [("a", "Finland", "Czech"), ("a", "Norway", "Czech"), ("a", "Norway", "Finland"), ("b", "Finland", "Poland")];
    assert_eq!((left, found.unmatched), (wanted.into(), 4));
    let text = sandbox.run(&["compare", "day", "night", "-v"]).ended_with(4).stdout;
    assert!(text.contains("Unpaired cells\n- A, 3 (B has no such cell): "), "{text}");
    assert!(text.contains("- B, 1 (A has no such cell): stream 128 KiB, from Finland, to Poland"), "{text}");
    assert!(text.contains(", matrix)"), "each run is said to be a matrix: {text}");
}

#[test]
fn levels_of_plans_are_paired_by_what_they_are_and_not_by_their_place() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let measure = |name: &str, key: &str, levels: &str| {
        let plan = format!(
            "name = \"{name}\"\nto = \"{}\"\nseed = 1\n[base]\ntime = \"40ms\"\nblock = \"4KiB\"\n\
             [[factor]]\nname = \"{key}\"\nfield = \"sndbuf\"\nlevels = [{levels}]\n[repeat]\nmin = 3\nmax = 3\n",
            agent.host()
        );
        std::fs::write(sandbox.path("plan.toml"), plan).unwrap();
        sandbox.run(&["run", "plan.toml", "--quiet"]);
    };
    measure("small", "window", "\"16KiB\", \"64KiB\"");
    measure("large", "window", "\"64KiB\", \"1MiB\"");
    measure("other", "buffer", "\"64KiB\", \"1MiB\"");
    let text = sandbox.run(&["compare", "small", "large", "--json"]).stdout;
    let found: RunComparison = serde_json::from_str(&text).unwrap();
    let levels: Vec<&str> = found.cells.iter().map(|cell| cell.levels["window"].as_str()).collect();
    assert_eq!(levels, ["64KiB"]);
    let left: Vec<(&str, &str)> =
        found.unpaired.iter().map(|one| (one.side.as_str(), one.levels["window"].as_str())).collect();
    assert_eq!(left, [("a", "16KiB"), ("b", "1MiB")]);
    for run in found.a.iter().chain(&found.b) {
        assert!(run.near_build.starts_with("thru ") && run.far_build.starts_with("thru "), "{run:?}");
    }
    let message = sandbox.run(&["compare", "small", "other"]).ended_with(2).message();
    assert!(
        message.contains("no cell in common") && message.contains("by window") && message.contains("by buffer"),
        "{message}"
    );
}

#[test]
fn single_measurements_are_a_pair_whatever_differs_and_curves_by_their_sizes() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for (name, flows) in [("one", "1"), ("two", "2")] {
        let args = ["stream", "--time", "40ms", "--trials", "3", "--flows", flows, "--quiet", "--name", name];
        sandbox.run(&[&args[..], &[agent.host()]].concat());
    }
    let found: RunComparison = serde_json::from_str(&sandbox.run(&["compare", "one", "two", "--json"]).stdout).unwrap();
    assert_eq!((found.cells.len(), found.unpaired.len()), (1, 0));
    assert!(found.differences.iter().any(|one| one.of == "spec" && one.field == "flows"), "{:?}", found.differences);
    for (name, sizes) in [("up", "8,64,512"), ("down", "512,4096,8")] {
        let args = ["curve", "--transport", "unix", "--block", sizes, "--trials", "3", "--time", "2ms", "--quiet"];
        sandbox.run(&[&args[..], &["--name", name]].concat());
    }
    let found: RunComparison = serde_json::from_str(&sandbox.run(&["compare", "up", "down", "--json"]).stdout).unwrap();
    assert_eq!(found.cells.iter().map(|cell| cell.block).collect::<Vec<_>>(), [8, 512]);
    let left: Vec<(&str, u64)> = found.unpaired.iter().map(|one| (one.side.as_str(), one.block)).collect();
    assert_eq!(left, [("a", 64), ("b", 4096)]);
}
