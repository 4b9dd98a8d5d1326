//! `thru run`: an experiment from a plan file.

use command::Failure;
use command::setup::command_line;
use model::RunKind;
use plan::{ParsedPlan, Preview};
use session::labs::{again_within, is_inside};
use session::{Hosts, Work, plans, stored};
use std::path::{Path, PathBuf};

use clap::Args;
use options::values::variable;
use report::PlanPreview;

use super::lab::{print_report, tell};
use crate::flags::Output;
use crate::measure::conduct;
use crate::shape::Shape;

/// Flags of `thru run`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/run.txt").trim_end())]
pub struct RunArgs {
    /// The plan file.
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,

    /// Set a variable, ${NAME} in the plan. May be repeated.
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

/// Runs it.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let mut parsed = plans::open(&args.plan, &args.vars, args.lab)?;
    // Its mistakes are found before anything is built.
    let topology = plans::topology(&args.plan, &parsed)?;
    if args.dry_run {
        return preview(&parsed, topology.as_ref(), args.output.store.as_deref());
    }
    args.output.check(RunKind::Run, &[])?;
    if let (Some(topology), Some(lab), false) = (topology, &parsed.plan.lab, is_inside()) {
        let command = command_line();
        let (report, code) = again_within(&topology, &lab.host_wide, &command, &tell(&command, args.output.quiet))?;
        print_report(&report, args.output.quiet);
        return Ok(code);
    }
    let store = args.output.store.as_deref();
    let resumed = args.resume.as_deref().map(|run| stored::resume(run, store, &mut parsed)).transpose()?;
    let hosts = Hosts { token_file: args.token_file.clone(), ..Hosts::default() };
    let work = Work::Plan { parsed: Box::new(parsed), resumed: resumed.map(Box::new) };
    Ok(conduct(&args.output.request(RunKind::Run, hosts, work), &args.output, Shape::default())?.1)
}

/// Prints what a plan would measure.
pub fn preview(parsed: &ParsedPlan, topology: Option<&lab::Topology>, store: Option<&Path>) -> Result<u8, Failure> {
    let earlier = stored::earlier(parsed, store)?;
    let Preview { cells, steps, round_ns, retests_ns, probed_methods, untimed, drains, programs } =
        Preview::of(parsed, topology, earlier.as_ref())?;
    let (plan, rule) = (&parsed.plan, &parsed.rule);
    let (cells, steps, programs) = (&cells, &steps, &programs);
    let earlier = earlier.as_ref().map(|earlier| earlier.run.as_str());
    let shown = PlanPreview {
        plan,
        rule,
        cells,
        steps,
        round_ns,
        retests_ns,
        probed_methods,
        untimed,
        drains,
        earlier,
        programs,
    };
    out!("{}", report::plan_preview(&shown));
    Ok(0)
}
