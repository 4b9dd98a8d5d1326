//! What the results of a mesh of many hosts cost: bytes of a cell in the compact table, and time until the heat map is drawn.
//!
//! `cargo run --release -p throughline-report --example matrix_of_hosts -- [HOSTS [FOLDER]]` writes both pictures and the table to FOLDER.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example is a program")]

#[path = "../../analysis/examples/clock/mod.rs"]
mod clock;

use std::path::Path;

use clock::Clock;
use model::{
    Cell, EndTally, Estimate, Ledger, Outcome, Pass, Pattern, Plan, Run, RunHeader, RunKind, Shared, Spec, SplitMix64,
    Stopping, Summary, Trial,
};
use report::{View, format};

/// Time between the steps of a round.
const STEP_NS: u64 = 6_000_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hosts: usize = std::env::args().nth(1).map_or(Ok(1_000), |text| text.parse())?;
    let folder = std::env::args_os().nth(2);
    let start = Clock::now();
    let run = mesh(hosts);
    let cells = run.outcomes.len();
    start.report(&format!("{cells} cells of {hosts} hosts in memory"));
    let runs = [run];
    let start = Clock::now();
    let table = (format("cells").ok_or("built without Parquet")?.render)(&View::new(&runs))?;
    let bytes = table[0].bytes.len();
    start.report(&format!("the table: {bytes} bytes, {:.1} for each cell", bytes as f64 / cells as f64));
    let start = Clock::now();
    let figures = report::figures(&runs);
    start.report("the matrix of the cells");
    let start = Clock::now();
    let pictures = ["svg", "png"].map(|format| report::picture(&figures[0], format));
    start.report("its heat map as SVG and PNG");
    for piece in table.into_iter().map(Ok).chain(pictures) {
        let piece = piece?;
        println!("{}: {} bytes", piece.name, piece.bytes.len());
        if let Some(folder) = &folder {
            std::fs::write(Path::new(folder).join(&piece.name), &piece.bytes)?;
        }
    }
    Ok(())
}

/// A round of all pairs. Values are around 9.4 Gbit/s, less from the hosts of the last rack; a rack is 40 hosts.
fn mesh(hosts: usize) -> Run {
    let names: Vec<String> = (0..hosts).map(|host| format!("node{host:04}")).collect();
    let rack = |host: usize| ("rack".to_owned(), format!("r{:02}", host / 40));
    let labels = names.iter().enumerate().map(|(at, name)| (name.clone(), [rack(at)].into())).collect();
    let plan = Plan { from: names.clone(), to: names.clone(), labels, ..Plan::default() };
    let mut header = RunHeader {
        id: "mesh".into(),
        kind: RunKind::Mesh,
        started_unix_ns: 1_795_000_000_000_000_000,
        plan: Some(Box::new(plan)),
        stopping: Stopping::default(),
        ..RunHeader::default()
    };
    let tournament = analysis::plan::RoundRobin::new(hosts);
    let spec: Shared<Spec> = Spec::new("tcp", Pattern::Stream).into();
    let mut random = SplitMix64::new(1);
    let (mut outcomes, mut passes) = (Vec::new(), Vec::new());
    for near in 0..hosts {
        for far in (0..hosts).filter(|far| *far != near) {
            let cell = header.cells.len() as u32;
            let levels = [("from".to_owned(), names[near].clone()), ("to".to_owned(), names[far].clone())].into();
            header.cells.push(Cell { levels, ..Cell::new(cell, spec.clone()) });
            let share = if near / 40 == hosts / 40 - 1 { 0.7 } else { 1.0 };
            let value = 9.4e9 * share * (1.0 + 0.01 * random.normal());
            let step = 2 * tournament.step_of(near, far) + usize::from(near > far);
            let started = STEP_NS * step as u64 + random.below(60_000_000) as u64;
            passes.push(Pass {
                index: cell,
                started_ns: started,
                started_unix_ns: Some(header.started_unix_ns + started),
                round: Some(0),
                ..Pass::default()
            });
            let trial = Trial {
                cell,
                pass: cell,
                position: 0,
                near: EndTally::default().into(),
                far: EndTally::default().into(),
                ledger: Ledger::default(),
                value: Some(value),
                verdicts: Vec::new(),
            };
            let estimate = Estimate {
                statistic: "goodput".into(),
                unit: "bit/s".into(),
                value,
                low: None,
                high: None,
                confidence: 0.95,
                method: String::new(),
                n: 1,
            };
            outcomes.push(Outcome {
                cell,
                spec: spec.clone(),
                summary: Summary::default(),
                estimate: Some(estimate),
                histogram: None,
                trials: vec![trial],
            });
        }
    }
    // Passes are numbered in the order of their steps.
    let mut order: Vec<usize> = (0..passes.len()).collect();
    order.sort_by_key(|at| passes[*at].started_ns);
    for (index, at) in (0..).zip(order) {
        passes[at].index = index;
        outcomes[at].trials[0].pass = index;
    }
    passes.sort_by_key(|pass| pass.index);
    Run { outcomes, passes, ..Run::new(header) }
}
