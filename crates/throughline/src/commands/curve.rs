//! `thru curve`: all block sizes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use control::coordinator::{CurvePlan, Schedule};
use model::{BitRate, ByteSize, Nanos, RunKind, Spec};
use session::draft::{self, SpecDraft, TestKind};
use session::values::{above_zero, one_block, whole};
use session::{Failure, Work};

use crate::flags::{self, Load, Output, Peer, Precision, Sockets};
use crate::measure::measure;
use crate::registries;
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
    peer: Peer,
    #[command(flatten)]
    load: Load,

    /// Smallest block, bytes [default: 1].
    #[arg(short = 'l', long, value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    first: Option<ByteSize>,

    /// Largest block [default: 8MiB, or the transport's maximum].
    #[arg(long = "to", value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    last: Option<ByteSize>,

    /// List of sizes, separated by commas, instead of NetPIPE's.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = one_block)]
    block: Vec<ByteSize>,

    /// Length of one trial of one size, at least 3 exchanges [default: computed from --budget].
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>)]
    time: Option<Nanos>,

    /// With --stream: limit the sending rate [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    rate: Option<BitRate>,

    /// With --stream on udp: send as fast as this host can, without regard to the free space of the receiver's socket.
    #[arg(long)]
    unpaced: bool,

    /// With --stream: let the receiver of a fast TCP stream sleep 50 µs between its reads where that raises the throughput, to
    /// save sender wake-ups. Applications do not read this way; the result says that it was used.
    #[arg(long, help_heading = flags::CALLS)]
    delayed_reads: bool,

    /// Also measure each size plus and minus this many bytes; 0 for none [default: 3].
    #[arg(long, value_name = "BYTES", value_parser = whole(0..=Spec::MAX_BLOCK))]
    perturbation: Option<u64>,

    /// Send blocks in one direction (NetPIPE -s) instead of round trips.
    #[arg(long)]
    stream: bool,

    /// Add sizes where the curve bends or jumps.
    #[arg(long)]
    adaptive: bool,

    /// Order of the sizes within a pass.
    #[arg(long, value_enum, default_value_t = SizeOrder::Random)]
    order: SizeOrder,

    /// Measure no larger blocks after one takes longer than this, as NetPIPE does [default: none; 1s with --np].
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>)]
    limit: Option<Nanos>,

    /// Also write NetPIPE's np.out to FILE, and print as NetPIPE does.
    #[arg(long, value_name = "FILE")]
    np: Option<PathBuf>,

    #[arg(long, value_name = "PROGRAM", help = registries::speak_help("curve"), value_parser = draft::program,
          conflicts_with_all = ["adaptive", "limit"], help_heading = flags::HOSTS)]
    speak: Option<String>,

    /// Print every size and all findings, not only the answer.
    #[arg(long)]
    all: bool,

    /// Do not measure the memory-copy curve (memcpy), the ceiling of this host.
    #[arg(long)]
    no_ceiling: bool,

    #[command(flatten)]
    sockets: Sockets,
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
    pub fn draft(&self) -> SpecDraft {
        let mut draft = SpecDraft {
            first: self.first,
            to: self.last,
            sizes: self.block.clone(),
            time: self.time,
            rate: self.rate,
            unpaced: self.unpaced,
            delayed_reads: self.delayed_reads,
            perturbation: self.perturbation,
            stream: self.stream,
            speak: self.speak.clone(),
            stall: Some(self.precision.stall),
            ..SpecDraft::new(TestKind::Curve)
        };
        self.peer.fill(&mut draft);
        self.load.fill(&mut draft);
        self.sockets.fill(&mut draft);
        draft
    }
}

/// Runs it.
pub fn run(args: &CurveArgs) -> Result<u8, Failure> {
    // The plan has the length of the legs.
    let specs = SpecDraft { time: None, ..args.draft() }.finish()?;
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
        leg_ns: args.time.map(|time| time.0),
        limit_ns: args.limit.or(args.np.as_ref().map(|_| NETPIPE_LIMIT)).map(|limit| limit.0),
        ceiling: !args.no_ceiling,
        anatomy: true,
        check: true,
    };
    let work = Work::Measurement { specs, rule, schedule: Schedule::Curve(plan), login: None };
    let request = args.output.request(RunKind::Curve, args.peer.hosts(), work);
    measure(&request, &args.output, Shape { np: args.np.as_deref(), all: args.all, ..Shape::default() })
}
