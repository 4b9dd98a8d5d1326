//! `thru curve`: all block sizes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use control::coordinator::{CurvePlan, Schedule};
use model::{BitRate, ByteSize, Direction, Name, Nanos, NetpipeSizes, Observe, Spec, Stop};

use crate::failure::Failure;
use crate::flags::{self, Enough, Load, Output, Peer, Sockets};
use crate::measure::{Job, measure};
use crate::values::{above_zero, whole};

/// Time for the passes of a curve unless told otherwise: with the look at the path before and the reckoning after it, ten seconds.
const BUDGET: Nanos = Nanos(9_500_000_000);
/// NetPIPE's self-limit: no larger blocks once one takes longer than this.
const NETPIPE_LIMIT: Nanos = Nanos(1_000_000_000);

/// Flags of `thru curve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru curve HOST                         round trips from 1 B to 8 MiB, NetPIPE's 124 sizes
  thru curve HOST --np np.out             the same, and NetPIPE's own file for old scripts
  thru curve HOST --stream                one way instead of there and back
  thru curve HOST --to 64KiB --adaptive   up to 64 KiB, with more sizes where the curve bends
  thru curve HOST --speak netpipe         HOST runs NPtcp
  thru curve --transport shm              between two processes of this machine
  mpirun -n 2 thru curve --transport mpi  between two processes that MPI started, on one host or two
  thru curve --transport pvm              between two tasks of a parallel virtual machine
  thru report last -o curve.html          the curve as a page")]
pub struct CurveArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,

    /// Smallest block.
    #[arg(long, value_name = "SIZE", default_value = "1", value_parser = above_zero::<ByteSize>)]
    first: ByteSize,

    /// Largest block [default: 8 MiB, as far as the transport goes].
    #[arg(long = "to", value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    last: Option<ByteSize>,

    /// These sizes instead of NetPIPE's, separated by commas.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = above_zero::<ByteSize>,
          conflicts_with_all = ["first", "last", "perturbation"])]
    block: Vec<ByteSize>,

    /// Length of one trial of one size (at least three exchanges) [default: the budget's share].
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>)]
    time: Option<Nanos>,

    /// Send no faster than this, with --stream.
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    rate: Option<BitRate>,

    /// With --stream over udp: send as fast as this host can, whatever the receiver's socket has room for.
    #[arg(long, requires = "stream")]
    unpaced: bool,

    /// With --stream: let a receiver of a quick TCP stream sleep 50 us between its reads where that carries more, to save sender
    /// wake-ups. No application reads so, and the outcome says it.
    #[arg(long, requires = "stream", help_heading = "Sockets")]
    delayed_reads: bool,

    /// Distance of the two neighbours of each size; 0 for none.
    #[arg(long, value_name = "BYTES", default_value_t = NetpipeSizes::DEFAULT.perturbation, value_parser = whole(0..=Spec::MAX_BLOCK))]
    perturbation: u64,

    /// Blocks one way (NetPIPE -s) instead of round trips.
    #[arg(long)]
    stream: bool,

    /// More sizes where the curve bends or jumps.
    #[arg(long)]
    adaptive: bool,

    /// Order of the sizes within a pass.
    #[arg(long, value_enum, default_value_t = SizeOrder::Random)]
    order: SizeOrder,

    /// No larger blocks once one takes longer than this (NetPIPE's self-limit; 1s where --np is given).
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>)]
    limit: Option<Nanos>,

    /// Write NetPIPE's np.out as well, and print as NetPIPE does.
    #[arg(long, value_name = "FILE")]
    np: Option<PathBuf>,

    /// HOST runs another program's server, which is spoken to in its own protocol: netpipe (NPtcp, which takes one curve and ends).
    #[arg(long, value_name = "PROGRAM", value_parser = super::stream::spoken, conflicts_with_all = ["adaptive", "limit"],
          help_heading = "Path")]
    speak: Option<String>,

    /// Leave the memory ceiling out.
    #[arg(long)]
    no_ceiling: bool,

    #[command(flatten)]
    sockets: Sockets,
    #[command(flatten)]
    enough: Enough,
    #[command(flatten)]
    output: Output,
}

/// Order of the sizes within a pass, as a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SizeOrder {
    /// Shuffled anew in each pass.
    Random,
    /// Small blocks first.
    Ascending,
}

impl CurveArgs {
    /// The measurement of each size, ascending. The length of a leg is `--time`, or what the coordinator makes of a budget.
    pub fn specs(&self) -> Result<Vec<Spec>, Failure> {
        let pattern = if self.stream { "stream" } else { "pingpong" };
        if self.stream && self.load.both {
            return Err(Failure::usage("--stream and --both exclude each other: a both-ways curve crosses blocks"));
        }
        let mut base = flags::spec(pattern, &self.peer, &self.load, &self.sockets, &self.enough)?;
        // As NetPIPE has it, for streams too: Nagle's algorithm would hold each leg's last part back for an ACK.
        base.near.nodelay.get_or_insert(true);
        base.far.nodelay.get_or_insert(true);
        // Its passes are many and short: a series of each would say little and fill the store.
        if self.load.observe.is_none() {
            base.observe = Observe::Counters;
        }
        base.rate_bps = self.rate.map(|rate| rate.0);
        base.delayed_reads = self.delayed_reads;
        base.paced_to_receiver = flags::to_receiver(&base, self.unpaced)? && self.stream && self.speak.is_none();
        base.speak = self.speak.as_deref().map(Name::from);
        cells(self, &base)
    }

    /// The length of a leg, where it was given.
    pub fn leg(&self) -> Option<Nanos> {
        self.time
    }
}

/// Runs it.
pub fn run(args: &CurveArgs) -> Result<u8, Failure> {
    let specs = args.specs()?;
    let mut rule = args.enough.rule(Some(BUDGET));
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
            "{} carries blocks of at most {} bytes: use a smaller --to",
            base.transport, capabilities.max_block
        )));
    }
    if base.direction == Direction::Both && capabilities.datagram {
        return Err(Failure::usage(format!("--both on {}: use tcp, unix, shm or another stream", base.transport)));
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
    // The coordinator sets the length of a leg from the budget; a cell's own is what a single pass of it would take.
    Ok(blocks
        .into_iter()
        .map(|block| Spec { block, interval_ns: 0, stop: Stop::AboutNs(10_000_000), ..base.clone() })
        .collect())
}
