//! `thru show`: a run from the store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::stats::Parts;
use clap::Args;
use model::{Run, Trial};
use session::Failure;
use session::setup::open_store;

use crate::flags::form;
use crate::output;
use crate::registries;

/// Flags of `thru show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru show last                  the report of the last run
  thru show before --json | jq .outcomes[0].summary
  thru show last --as iperf3      in the format of iperf3
  thru show last --as iperf3-json | my-old-script")]
pub struct ShowArgs {
    /// The run: its id, the start of its id, its name, `last`, or `last~1` for the one before.
    #[arg(default_value = "last")]
    run: String,

    /// Print the JSON document.
    #[arg(long)]
    json: bool,

    #[arg(long = "as", value_name = "FORMAT", help = registries::form_help(), value_parser = form, conflicts_with = "json")]
    form: Option<&'static str>,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &ShowArgs) -> Result<u8, Failure> {
    let run = load(&args.run, args.store.as_deref())?;
    let form = args.form.unwrap_or(if args.json { "json" } else { "text" });
    output::write_pieces(form, &[run], None, None)?;
    Ok(0)
}

/// A run from the store. If its process was killed, the outcomes are computed from its trials.
pub fn load(reference: &str, path: Option<&Path>) -> Result<Run, Failure> {
    let store = open_store(path)?;
    let loaded = store.load(reference)?;
    for damage in &loaded.damaged {
        errln!("thru: {damage}");
    }
    let mut run = loaded.run;
    let mut trials: BTreeMap<u32, Vec<Trial>> = BTreeMap::new();
    for trial in loaded.orphans {
        trials.entry(trial.cell).or_default().push(trial);
    }
    let (curve, paired) = (run.header.kind == "curve", run.header.kind == "ab");
    let mut parts = if curve { parts(&run, &trials) } else { BTreeMap::new() };
    for (id, trials) in trials {
        let Some(cell) = run.header.cells.iter().find(|cell| cell.id == id) else { continue };
        let parts = parts.remove(&id);
        let point = cell.spec.is_point();
        let legs = curve && point;
        let context =
            analysis::Context { cut_short: true, curve: point, legs, paired, parts, ..analysis::Context::default() };
        let mut outcome = analysis::outcome(cell, trials, &run.header.stopping, context);
        let [near, far] = run.header.hosts_of(cell);
        analysis::bound(&mut outcome, near, far);
        if !point {
            outcome.summary.why = analysis::why(&outcome, &run.passes, near, far);
        }
        run.outcomes.push(outcome);
    }
    run.outcomes.sort_by_key(|outcome| outcome.cell);
    if run.findings.is_empty() {
        run.findings = match () {
            () if curve => analysis::of_curve(&run.outcomes),
            () if run.header.plan.is_some() => analysis::of_plan(&run.header, &run.outcomes, &run.passes),
            () if paired => analysis::of_paired(&run.outcomes, &run.header.stopping),
            () => analysis::of_single(&run.outcomes),
        };
    }
    Ok(run)
}

/// The legs of a killed curve's cells without the effects of their passes. Finished cells contribute; the memory ceiling does
/// not.
fn parts(run: &Run, orphans: &BTreeMap<u32, Vec<Trial>>) -> BTreeMap<u32, Parts> {
    let Some(transport) = run.header.cells.first().map(|cell| &cell.spec.transport) else { return BTreeMap::new() };
    let open = run.header.cells.iter().filter_map(|cell| Some((&cell.spec, cell.id, orphans.get(&cell.id)?)));
    let done = run.outcomes.iter().map(|outcome| (&outcome.spec, outcome.cell, &outcome.trials));
    let mut cells: Vec<_> = open.chain(done).filter(|(spec, ..)| spec.transport == *transport).collect();
    cells.sort_by_key(|(spec, ..)| spec.block);
    let trials: Vec<&[Trial]> = cells.iter().map(|(_, _, trials)| trials.as_slice()).collect();
    cells.iter().map(|(_, id, _)| *id).zip(analysis::outcome::parts(&trials)).collect()
}
