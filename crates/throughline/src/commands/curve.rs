//! `thru curve`: all block sizes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use control::coordinator::{CurvePlan, Schedule};
use model::{BitRate, ByteSize, Direction, Name, Nanos, NetpipeSizes, Observe, Spec, Stop};

use crate::flags::{self, Load, Output, Peer, Precision, Sockets};
use crate::job::Job;
use crate::measure::measure;
use crate::registries;
use session::failure::Failure;
use session::values::{above_zero, whole};

/// Default time limit of the passes of a curve: ten seconds with the path probe before and the analysis after them.
const BUDGET: Nanos = Nanos(9_500_000_000);
/// NetPIPE's self-limit: no larger blocks once one takes longer than this.
const NETPIPE_LIMIT: Nanos = Nanos(1_000_000_000);

/// Flags of `thru curve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru curve HOST                         round trips of 1 B to 8 MiB, NetPIPE's 124 sizes
  thru curve HOST --np np.out             the same, and write NetPIPE's file
  thru curve HOST --stream                one direction, as NetPIPE -s
  thru curve HOST --to 64KiB --adaptive   up to 64 KiB, with more sizes where the curve bends
  thru curve HOST --speak netpipe         HOST runs NPtcp
  thru curve --transport shm              between two processes on this machine
  mpirun -n 2 thru curve --transport mpi  between two MPI processes, on one host or two
  thru curve --transport pvm              between two PVM tasks
  thru report last -o curve.html          the curve as an HTML page")]
pub struct CurveArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,

    /// Smallest block, bytes.
    #[arg(long, value_name = "SIZE", default_value = "1", value_parser = above_zero::<ByteSize>)]
    first: ByteSize,

    /// Largest block [default: 8MiB, or the transport's maximum].
    #[arg(long = "to", value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    last: Option<ByteSize>,

    /// List of sizes, separated by commas, instead of NetPIPE's.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = above_zero::<ByteSize>,
          conflicts_with_all = ["first", "last", "perturbation"])]
    block: Vec<ByteSize>,

    /// Length of one trial of one size, at least 3 exchanges [default: computed from --budget].
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>)]
    time: Option<Nanos>,

    /// With --stream: limit the sending rate [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    rate: Option<BitRate>,

    /// With --stream on udp: send as fast as this host can, without regard to the free space of the receiver's socket.
    #[arg(long, requires = "stream")]
    unpaced: bool,

    /// With --stream: let the receiver of a fast TCP stream sleep 50 µs between its reads where that raises the throughput, to
    /// save sender wake-ups. Applications do not read this way; the result says that it was used.
    #[arg(long, requires = "stream", help_heading = flags::CALLS)]
    delayed_reads: bool,

    /// Also measure each size plus and minus this many bytes; 0 for none.
    #[arg(long, value_name = "BYTES", default_value_t = NetpipeSizes::DEFAULT.perturbation, value_parser = whole(0..=Spec::MAX_BLOCK))]
    perturbation: u64,

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

    #[arg(long, value_name = "PROGRAM", help = registries::speak_help("curve"), value_parser = super::stream::peer_program,
          conflicts_with_all = ["adaptive", "limit"], help_heading = flags::HOSTS)]
    speak: Option<String>,

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
    /// The measurement of each size, ascending. A leg is as long as `--time`, or as the coordinator computes from the budget.
    pub fn specs(&self) -> Result<Vec<Spec>, Failure> {
        let pattern = if self.stream { "stream" } else { "pingpong" };
        if self.stream && self.load.both {
            return Err(Failure::usage(
                "--stream and --both exclude each other: without --stream, --both sends blocks in both directions at once",
            ));
        }
        let mut base = flags::spec(pattern, &self.peer, &self.load, &self.sockets, &self.precision)?;
        // As NetPIPE does, for streams too: Nagle's algorithm would delay the last segment of each leg until an ACK.
        base.near.nodelay.get_or_insert(true);
        base.far.nodelay.get_or_insert(true);
        // A curve has many short passes: a series of each has little information and fills the store.
        if self.load.observe.is_none() {
            base.observe = Observe::Counters;
        }
        base.rate_bps = self.rate.map(|rate| rate.0);
        base.delayed_reads = self.delayed_reads;
        base.paced_to_receiver = flags::to_receiver(&base, self.unpaced)? && self.stream && self.speak.is_none();
        base.speak = self.speak.as_deref().map(Name::from);
        cells(self, &base)
    }

    /// The length of a leg, if it was given.
    pub fn leg(&self) -> Option<Nanos> {
        self.time
    }
}

/// Runs it.
pub fn run(args: &CurveArgs) -> Result<u8, Failure> {
    let specs = args.specs()?;
    let mut rule = args.precision.rule(Some(BUDGET));
    rule.order = match args.order {
        SizeOrder::Random => model::Order::Random,
        SizeOrder::Ascending => model::Order::Ascending,
    };
    let plan = CurvePlan {
        adaptive: args.adaptive,
        leg_ns: args.time.map(|time| time.0),
        limit_ns: args.limit.or(args.np.as_ref().map(|_| NETPIPE_LIMIT)).map(|limit| limit.0),
        ceiling: !args.no_ceiling,
    };
    measure(&Job {
        kind: "curve",
        specs,
        rule,
        schedule: Schedule::Curve(plan),
        peer: &args.peer,
        output: &args.output,
        np: args.np.as_deref(),
        login: None,
    })
}

/// A cell for each size that the transport can carry.
fn cells(args: &CurveArgs, base: &Spec) -> Result<Vec<Spec>, Failure> {
    let capabilities = engine::transport::transport(base.transport.as_str())?.capabilities();
    let least = if args.stream { capabilities.min_stream_block } else { 1 };
    if args.last.is_some_and(|last| last.0 < args.first.0) {
        return Err(Failure::usage("--to is smaller than --first"));
    }
    if args.last.is_some_and(|last| last.0 > capabilities.max_block) {
        return Err(Failure::usage(format!(
            "the largest block of {} is {} bytes: use a smaller --to",
            base.transport, capabilities.max_block
        )));
    }
    if base.direction == Direction::Both && capabilities.datagram {
        return Err(Failure::usage(format!(
            "a curve over {} does not support --both: use {}",
            base.transport,
            engine::transport::names(|other| other.capabilities().is_stream_between_two())
        )));
    }
    let sizes = NetpipeSizes {
        first: args.first.0,
        last: args.last.map_or(NetpipeSizes::DEFAULT.last, |last| last.0),
        perturbation: args.perturbation,
    };
    let mut blocks =
        if args.block.is_empty() { sizes.list() } else { args.block.iter().map(|block| block.0).collect() };
    if args.block.is_empty() {
        blocks.retain(|block| (least..=capabilities.max_block).contains(block));
    }
    blocks.sort_unstable();
    blocks.dedup();
    // The coordinator computes the length of a leg from the budget. This stop rule applies to a single pass of a cell.
    Ok(blocks
        .into_iter()
        .map(|block| Spec { block, interval_ns: 0, stop: Stop::AboutNs(10_000_000), ..base.clone() })
        .collect())
}
