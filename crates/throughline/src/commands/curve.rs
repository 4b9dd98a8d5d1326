//! `thru curve`: all block sizes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use command::Failure;
use control::coordinator::{CurvePlan, Schedule};
use model::{Nanos, RunKind};
use options::TestOptions;
use options::values::above_zero;
use plan::specs;
use session::{ThisHost, Work};

use crate::flags::{Given, HostFlags, OfCurve, Output, Precision, ShortFor};
use crate::measure::measure;
use crate::shape::Shape;

/// Default time limit of the passes of a curve: fifteen seconds with the path probe before and the analysis after them.
const BUDGET: Nanos = Nanos(14_500_000_000);
/// NetPIPE's self-limit: no larger blocks once one takes longer than this.
const NETPIPE_LIMIT: Nanos = Nanos(1_000_000_000);

/// Fewest passes without --trials.
const MIN_PASSES: u32 = 6;

/// Flags of `thru curve`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/curve.txt").trim_end())]
pub struct CurveArgs {
    #[command(flatten)]
    hosts: HostFlags,
    #[command(flatten)]
    given: Given<OfCurve>,
    #[command(flatten)]
    short_for: ShortFor,

    /// Add sizes where the curve bends or jumps.
    #[arg(long, conflicts_with = "speak")]
    adaptive: bool,

    /// Order of the sizes within a pass.
    #[arg(long, value_enum, default_value_t = SizeOrder::Random)]
    order: SizeOrder,

    /// Skip larger blocks once one takes longer than this, as NetPIPE does [default: none; 1s with --np].
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>, conflicts_with = "speak")]
    limit: Option<Nanos>,

    /// Also write NetPIPE's np.out to FILE, and print as NetPIPE does.
    #[arg(long, value_name = "FILE")]
    np: Option<PathBuf>,

    /// Print every size and all findings, not only the answer.
    #[arg(long)]
    all: bool,

    /// Do not measure this host's ceiling, the memory-copy curve (memcpy).
    #[arg(long)]
    no_ceiling: bool,

    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    output: Output,
}

/// Order of the sizes within a pass, as a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SizeOrder {
    /// Shuffled for each pass.
    Random,
    /// Small blocks first.
    Ascending,
}

impl CurveArgs {
    /// The options that the flags give.
    pub fn options(&self) -> TestOptions {
        let mut options = self.given.options.clone();
        self.short_for.add_to(&mut options);
        options
    }
}

/// Runs it.
pub fn run(args: &CurveArgs) -> Result<u8, Failure> {
    // The plan has the length of the legs.
    let options = args.options();
    let specs = specs::of(&TestOptions { time: None, ..options.clone() }, &ThisHost)?;
    let mut rule = args.precision.rule(Some(BUDGET));
    if args.precision.trials.is_none() {
        rule.min_trials = MIN_PASSES;
    }
    rule.order = match args.order {
        SizeOrder::Random => model::Order::Random,
        SizeOrder::Ascending => model::Order::Ascending,
    };
    let plan = CurvePlan {
        adaptive: args.adaptive,
        leg_ns: options.time.map(|time| time.0),
        limit_ns: args.limit.or(args.np.as_ref().map(|_| NETPIPE_LIMIT)).map(|limit| limit.0),
        ceiling: !args.no_ceiling,
        anatomy: true,
        check: true,
    };
    let work = Work::Measurement { specs, rule, schedule: Schedule::Curve(plan), login: None };
    let request = args.output.request(RunKind::Curve, args.hosts.of_run(&options), work);
    measure(&request, &args.output, Shape { np: args.np.as_deref(), all: args.all, ..Shape::default() })
}
