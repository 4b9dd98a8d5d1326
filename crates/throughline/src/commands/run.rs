//! `thru run`: an experiment from a plan file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use analysis::plan::Slot;
use clap::Args;
use control::agent::recover;
use host::tune::{Fault, Journal, RealBackend, Tuner};
use lab::Holder;
use model::{Factor, Order, PlanLab, Setting, Stop};
use session::plan;
use session::settle::Guard;
use session::setup::open_store;
use session::signals::Signals;
use session::values::variable;
use session::{Failure, Hosts, ParsedPlan, Resumed, Work, topology};

use super::lab::{Job, within};
use crate::flags::Output;
use crate::measure::conduct;

/// Flags of `thru run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru run plans/socket-sizes.toml                      message and socket size, on this machine
  thru run plans/socket-sizes.toml --var host=10.0.0.2  the same, to another host
  thru run plans/mtu.toml --var host=B --dry-run        cells, order and duration
  thru run plans/mtu.toml --var host=B --resume last    continue that run
  sudo thru run plans/2012-10gbe.toml --lab             on emulated hosts and links")]
pub struct RunArgs {
    /// The plan file.
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,

    /// Value of a variable, ${NAME} in the plan. May be repeated.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    vars: Vec<(String, String)>,

    /// Build the lab of the plan ([lab]), measure in it, and remove it. Needs root. On a host of a lab that is up, measure in
    /// that lab.
    #[arg(long)]
    lab: bool,

    /// Continue this run of the same plan; its finished trials are kept.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["dry_run", "no_store"])]
    resume: Option<String>,

    /// Print the cells, the order of the first round and the duration; do not measure.
    #[arg(long)]
    dry_run: bool,

    /// File with the agents' token.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    output: Output,
}

/// Time of a trial beyond its length, ns: connections and results.
const OVERHEAD_NS: u64 = 150_000_000;
/// Time to check the preconditions before a trial, ns.
const PRECONDITIONS_NS: u64 = 300_000_000;
/// Trials of one search for the highest rate without loss.
const SEARCH_TRIALS: u64 = 8;
/// Assumed length of a trial that ends by a count, ns.
const COUNTED_TRIAL_NS: u64 = 1_000_000_000;

/// Runs it.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let name = args.plan.display().to_string();
    let text = std::fs::read_to_string(&args.plan)
        .map_err(|error| Failure::usage(format!("cannot read the plan {name}: {error}")))?;
    let mut vars = BTreeMap::new();
    for (key, value) in &args.vars {
        if vars.insert(key.clone(), value.clone()).is_some() {
            return Err(Failure::usage(format!("--var {key} is given twice")));
        }
    }
    let mut parsed = plan::read(&name, text, &vars, args.lab)?;
    if args.lab && parsed.plan.lab.is_none() {
        return Err(Failure::usage(format!(
            "{name} has no [lab]: add one with topology = \"NAME\", or omit --lab to measure between real hosts"
        )));
    }
    if args.dry_run {
        out!("{}", preview(&parsed)?);
        return Ok(0);
    }
    args.output.check("run", &[])?;
    if let Some(lab) = parsed.plan.lab.as_ref().filter(|_| std::env::var_os(Holder::VARIABLE).is_none()) {
        return in_lab(args, lab);
    }
    let resumed = args.resume.as_deref().map(|run| resumed(run, args, &mut parsed)).transpose()?;
    let hosts = Hosts { token_file: args.token_file.clone(), ..Hosts::default() };
    let work = Work::Plan { parsed: Box::new(parsed), resumed: resumed.map(Box::new) };
    Ok(conduct(&args.output.request("run", hosts, work), &args.output, None)?.1)
}

/// Builds the lab and runs the same command on its first host. That process knows from its environment that it is in a lab.
fn in_lab(args: &RunArgs, lab: &PlanLab) -> Result<u8, Failure> {
    let beside =
        args.plan.parent().filter(|_| lab.topology.contains(['.', '/'])).map(|folder| folder.join(&lab.topology));
    let topology = beside.map_or_else(|| lab.topology.clone(), |file| file.display().to_string());
    let topology = topology::find(&topology, &lab.vars)?;
    let command: Vec<String> = std::iter::once("thru".to_owned()).chain(std::env::args().skip(1)).collect();
    let quiet = args.output.quiet;
    // From here on no signal ends this process before the settings are restored; after a SIGKILL the guard restores them.
    let _signals = Signals::catch()?;
    let _guard = if lab.host_wide.is_empty() { None } else { Some(Guard::start()?) };
    let _settings = set_host_wide(&lab.host_wide, &command.join(" "), quiet)?;
    let job = Job { topology: &topology, name: None, agents: true, on: None, command: &command, quiet };
    within(&job).map(|(_, code)| code)
}

/// Changes the settings that the hosts of a lab share, until the returned tuner is dropped. Where the machine does not allow it, as in a
/// container, a warning says that its own values apply.
fn set_host_wide(settings: &[Setting], command: &str, quiet: bool) -> Result<Option<Tuner>, Failure> {
    if settings.is_empty() {
        return Ok(None);
    }
    let journal = Journal::open(session::setup::journal().as_deref())?;
    for line in recover(&journal)? {
        errln!("thru: {line}");
    }
    let mut tuner = Tuner::new(Arc::new(RealBackend), journal, command, Duration::ZERO);
    if let Some(own) = tuner.preview(settings)?.into_iter().find(|change| !change.host_wide) {
        let message = format!("[lab] host_wide: {} is a setting per host: write it under [settings]", own.key);
        return Err(Failure::usage(message));
    }
    match tuner.tune(settings) {
        Ok(changes) => {
            for change in changes.iter().filter(|_| !quiet) {
                errln!(
                    "thru: {}: {} (was {}) on this whole machine while the lab is up",
                    change.key,
                    change.now,
                    change.before
                );
            }
        }
        Err(error) if error.fault() == Fault::Host => {
            errln!("thru: warning: {error}; the lab is measured with the present value");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Some(tuner))
}

/// The run to continue, if it is one of this plan. It keeps its seed.
fn resumed(reference: &str, args: &RunArgs, parsed: &mut ParsedPlan) -> Result<Resumed, Failure> {
    let loaded = open_store(args.output.store.as_deref())?.load(reference)?;
    let run = loaded.run;
    let id = &run.header.id;
    let Some(plan) = &run.header.plan else {
        return Err(Failure::usage(format!("run {id} is a `thru {}`, not a run of a plan", run.header.kind)));
    };
    if plan.digest != parsed.plan.digest {
        return Err(Failure::usage(format!(
            "run {id} was made with another plan or other variables: use the same file and the same --var, or start a new run"
        )));
    }
    if run.ending.as_ref().is_some_and(|ending| ending.how == "finished") {
        return Err(Failure::usage(format!("run {id} is finished: see `thru show {id}`")));
    }
    if run.header.cells.len() != parsed.cells.len() {
        return Err(Failure::usage(format!(
            "run {id} has other cells than this version of thru makes from the plan: start a new run"
        )));
    }
    parsed.rule = run.header.stopping.clone();
    let mut trials: Vec<_> =
        run.outcomes.into_iter().flat_map(|outcome| outcome.trials).chain(loaded.orphans).collect();
    trials.sort_by_key(|trial| (trial.pass, trial.position));
    Ok(Resumed { header: run.header, trials, passes: run.passes })
}

/// The text of --dry-run.
fn preview(parsed: &ParsedPlan) -> Result<String, Failure> {
    let (slots, _) = session::slots(&parsed.cells, &parsed.specs)?;
    let seed = (parsed.rule.order == Order::Random).then_some(parsed.rule.seed);
    let steps = analysis::plan::round(&slots, seed, 0);
    let preconditions = parsed.plan.require.as_ref().map_or(0, |_| PRECONDITIONS_NS);
    let warmup = parsed.plan.warmup_ns.map_or(0, |ns| ns + OVERHEAD_NS);
    let of = |first: &u32| {
        let own = slots.iter().find(|slot| slot.cell == *first).map(analysis::plan::Slot::cells);
        let trial = |cell: u32| match parsed.specs[cell as usize].stop {
            Stop::TimeNs(ns) if parsed.specs[cell as usize].no_loss => SEARCH_TRIALS * (ns + OVERHEAD_NS),
            Stop::TimeNs(ns) | Stop::AboutNs(ns) => ns,
            _ => COUNTED_TRIAL_NS,
        };
        let warmup = if parsed.specs[*first as usize].is_point() { 0 } else { warmup };
        own.into_iter().flatten().map(trial).sum::<u64>() + OVERHEAD_NS + warmup + preconditions
    };
    // The pairs of a step run at the same time.
    let block_ns = steps.iter().map(|step| step.iter().map(of).max().unwrap_or(0)).sum();
    let cells: Vec<_> = slots.iter().map(|slot| shown(parsed, slot)).collect();
    let tried = slots.iter().filter(|slot| parsed.specs[slot.cell as usize].engine.auto).count();
    Ok(report::plan_preview(&report::PlanPreview {
        plan: &parsed.plan,
        rule: &parsed.rule,
        cells: &cells,
        steps: &steps,
        round_ns: block_ns,
        probed_methods: tried,
    }))
}

/// A cell by its number and its levels, or all sizes of a curve.
fn shown(parsed: &ParsedPlan, slot: &Slot) -> (String, BTreeMap<String, String>) {
    let (first, last) = (slot.cell as usize, slot.cells().end as usize - 1);
    let mut levels = parsed.cells[first].levels.clone();
    if last == first {
        return (first.to_string(), levels);
    }
    let size = |cell: usize| parsed.cells[cell].levels.get(Factor::SIZES).cloned().unwrap_or_default();
    levels.insert(Factor::SIZES.to_owned(), format!("{} to {} ({} sizes)", size(first), size(last), slot.sizes));
    (format!("{first} to {last}"), levels)
}
