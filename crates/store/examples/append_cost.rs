//! What an append costs: a curve of 2,500 trials in 20 passes, each event timed.
//!
//! `cargo run --release -p throughline-store --example append_cost -- [FILE]`, with a FILE on the disk in question that
//! does not exist yet; without one, in the directory for temporary files.
#![allow(clippy::print_stdout, reason = "an example is a program")]

use std::time::{Duration, Instant};

use model::{
    Cell, EndTally, Event, Inventory, Pass, Pattern, RttTally, RunHeader, RunKind, Spec, Stopping, Tool, Trial,
};
use store::{Store, new_run_id};

const PASSES: u32 = 20;
const CELLS: u32 = 125;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut trials, mut passes) = (Vec::new(), Vec::new());
    let dir = tempfile::tempdir()?;
    let path = std::env::args_os().nth(1).map_or_else(|| dir.path().join("runs.sqlite"), Into::into);
    let store = Store::open(&path)?;
    let mut recorder = store.recorder()?;
    recorder.record(&Event::Run(header()))?;
    for pass in 0..PASSES {
        for cell in 0..CELLS {
            let event = Event::Trial(trial(cell, pass));
            let start = Instant::now();
            recorder.record(&event)?;
            trials.push(start.elapsed());
        }
        let event = Event::Pass(Pass { index: pass, ..Pass::default() });
        let start = Instant::now();
        recorder.record(&event)?;
        passes.push(start.elapsed());
    }
    let start = Instant::now();
    let loaded = store.load("last")?;
    println!("load of {} trials: {:?}", loaded.orphans.len(), start.elapsed());
    println!("bytes of a trial: {}", serde_json::to_string(&loaded.orphans[0])?.len());
    report("trial (no sync)", &mut trials);
    report("pass (sync)", &mut passes);
    Ok(())
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let total: Duration = times.iter().sum();
    let (low, median, high, max) = (at(0.01), at(0.5), at(0.99), at(1.0));
    println!("{what}: n {}, p1 {low:?}, median {median:?}, p99 {high:?}, max {max:?}, sum {total:?}", times.len());
}

fn header() -> RunHeader {
    let spec = Spec::new("tcp", Pattern::Pingpong);
    RunHeader {
        id: new_run_id(1_795_293_478_000_000_000, 1),
        name: None,
        kind: RunKind::Curve,
        command: Vec::new(),
        started_unix_ns: 1_795_293_478_000_000_000,
        tool: Tool::default(),
        target: None,
        stopping: Stopping::default(),
        cells: (0..CELLS).map(|id| Cell::new(id, spec.clone())).collect(),
        near: Inventory::default(),
        far: Inventory::default(),
        ..RunHeader::default()
    }
}

fn trial(cell: u32, pass: u32) -> Trial {
    let rtt = RttTally {
        count: 1000,
        min_ns: 10_000,
        p50_ns: 11_000,
        mean_ns: 11_234.5,
        p99_ns: Some(15_000),
        max_ns: 20_000,
        batch: 1,
        histogram: None,
    };
    let near = EndTally { bytes_sent: 123_456_789, bytes_received: 123_456_789, rtt: Some(rtt), ..EndTally::default() };
    let (far, ledger) = (EndTally::default(), Default::default());
    Trial {
        cell,
        pass,
        position: cell,
        near: near.into(),
        far: far.into(),
        ledger,
        value: Some(11_234.5),
        verdicts: Vec::new(),
    }
}
