//! Plans whose cells are curves, find their engine, or search for a rate.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;

use model::{FactorKind, Finding, FindingKind, Run, Verdict};
use program::process::{Signal, eventually};
use program::{Agent, Sandbox, check};

/// Two socket sizes under a curve of four block sizes.
const CURVES: &str = "to = [\"${host}\"]\nseed = 7\n[base]\npattern = \"curve\"\nblock = \"64,1KiB,8KiB,64KiB\"\ntime = \"2ms\"\n\
                      [[factor]]\nname = \"socket\"\nfield = \"sndbuf\"\nlevels = [\"16KiB\", \"256KiB\"]\n\
                      [repeat]\nmin = 4\nmax = 4\n";

fn var(agent: &Agent) -> String {
    format!("host={}", agent.host())
}

/// Whole trials of each cell.
fn whole(run: &Run) -> BTreeMap<u32, usize> {
    let trials = run.outcomes.iter().flat_map(|outcome| &outcome.trials);
    trials.filter(|trial| !trial.verdicts.contains(&Verdict::CutShort)).fold(BTreeMap::new(), |mut count, trial| {
        *count.entry(trial.cell).or_default() += 1;
        count
    })
}

#[test]
fn a_curve_in_a_plan_is_one_pass_a_block_and_its_sizes_are_rows() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    std::fs::write(sandbox.path("plan.toml"), CURVES).unwrap();
    let host = var(&agent);
    let args = ["run", "plan.toml", "--var", &host];
    let said = sandbox.run(&[&args[..], &["--dry-run"]].concat()).ok().stdout;
    assert!(said.contains("0 to 3") && said.contains("64B to 64KiB (4 sizes)"), "{said}");
    // Ended in the middle and gone on with.
    let first = sandbox.start(&[&args[..], &["--live"]].concat());
    eventually("a curve is finished", || first.stdout().matches("{\"event\":\"trial\"").count() >= 8);
    first.signal(Signal::KILL);
    let _ = first.wait();
    let doc = sandbox.measure(&[&args[..], &["--resume", "last"]].concat());
    check::document(&doc, "a plan of curves");
    let run = &doc.run;
    let factor = &run.header.plan.as_ref().unwrap().factors[0];
    assert_eq!((factor.name.as_str(), factor.kind, factor.levels.len()), ("block", FactorKind::Sizes, 4));
    assert_eq!((run.header.cells.len(), run.header.cells[5].levels["block"].as_str()), (8, "1KiB"));
    assert!(run.outcomes.len() == 8 && whole(run).values().all(|count| *count == 4), "{:?}", whole(run));
    for pass in &run.passes {
        let mut cells: Vec<u32> = run
            .outcomes
            .iter()
            .flat_map(|outcome| &outcome.trials)
            .filter(|trial| trial.pass == pass.index && !trial.verdicts.contains(&Verdict::CutShort))
            .map(|trial| trial.cell)
            .collect();
        cells.sort_unstable();
        assert!(cells == [0, 1, 2, 3] || cells == [4, 5, 6, 7], "pass {} has {cells:?}", pass.index);
    }
    assert!(run.outcomes.iter().all(|outcome| outcome.summary.netpipe_bps.is_some() && outcome.summary.why.is_none()));
    let of = |kind| run.findings.iter().filter(move |finding| finding.kind == kind);
    // Each curve has its figures, and regions of sizes say which socket is best: no step from each size to the next.
    assert!(
        [FindingKind::Latency, FindingKind::Peak].into_iter().all(|kind| of(kind).count() == 2),
        "{:?}",
        run.findings
    );
    assert_eq!(of(FindingKind::Effect).count(), 0, "{:?}", run.findings);
    let regions: Vec<_> = of(FindingKind::Best).chain(of(FindingKind::NoDifference)).collect();
    let is_of_sockets =
        |finding: &&Finding| finding.statement.plain().starts_with("NetPIPE rate by socket, blocks of ");
    assert!(!regions.is_empty() && regions.iter().all(is_of_sockets), "{:?}", run.findings);
    let shown = |args: &[&str]| sandbox.run(args).ok().stdout;
    let (screen, whole) = (shown(&["show", "last"]), shown(&["show", "last", "-v"]));
    assert!(screen.contains("NetPIPE rate by socket") && whole.contains("block \\ socket"), "{screen}{whole}");
    let page = sandbox.run(&["report", "last", "-o", "page.html"]).ok();
    drop(page);
    let page = std::fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(program::page::texts(&page).contains("NetPIPE rate by socket"));
}

#[test]
fn a_plan_finds_engines_and_searches_for_rates() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let plan = "to = [\"${host}\"]\ndesign = \"list\"\nwarmup = \"10ms\"\n[base]\ntime = \"20ms\"\nblock = \"4KiB\"\n\
                [[cell]]\ntransport = \"tcp\"\nengine = \"auto\"\nfind-no-loss = false\n\
                [[cell]]\ntransport = \"udp\"\nengine = \"copy\"\nfind-no-loss = true\n\
                [repeat]\nmin = 2\nmax = 2\n";
    std::fs::write(sandbox.path("plan.toml"), plan).unwrap();
    let doc = sandbox.run(&["run", "plan.toml", "--var", &var(&agent), "--json", "-"]);
    assert!(matches!(doc.code, Some(0 | 8)), "{}", doc.stderr);
    let run = doc.doc().run;
    assert!(run.header.cells[0].spec.engine.auto && !run.header.cells[1].spec.engine.auto);
    assert_eq!(run.outcomes[0].spec.engine, run.header.cells[0].spec.engine, "what was found is what was measured");
    let searched = &run.outcomes[1];
    assert!(searched.spec.no_loss && searched.trials.len() == 2 && run.passes.len() == 4);
    assert!(searched.summary.packets_per_s.is_some_and(|rate| rate > 0.0), "{:?}", searched.summary);
}
