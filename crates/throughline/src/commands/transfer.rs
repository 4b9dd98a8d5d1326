//! `thru transfer`: exactly so much, as nttcp and rapid do it.

use clap::Args;
use control::coordinator::Schedule;
use model::{BitRate, ByteSize, Name, Nanos, Spec, Stop};

use super::stream::{default_block, spoken};
use crate::failure::Failure;
use crate::flags::{self, Enough, Load, Observing, Output, Peer, Sockets};
use crate::measure::{Job, measure};
use crate::values::{EngineFlag, above_zero, at_least, whole};

/// Flags of `thru transfer`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru transfer HOST --block 64KiB --count 2048 --flows 4   128 MiB in all, in four connections
  thru transfer HOST --bytes 16GB --processes 4 --flows 4   rapid's way: a process for each connection
  thru transfer HOST --count 2048 --trials 6                six times, with an interval
  thru transfer HOST --count 2048 --block 4KiB --speak nttcp    HOST runs nttcp -i

--count and --bytes are totals over all flows and are met to the byte.")]
pub struct TransferArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,

    /// Bytes of one send [default: 128KiB, udp 1472 (1452 over IPv6), unix-dgram 8KiB].
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    block: Option<ByteSize>,

    /// Blocks to transfer, over all flows.
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX), required_unless_present = "bytes")]
    count: Option<u64>,

    /// Bytes to transfer instead, over all flows.
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>, conflicts_with = "count")]
    bytes: Option<ByteSize>,

    /// Send no faster than this, all flows together.
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    rate: Option<BitRate>,

    /// Over udp without --rate: send as fast as this host can, whatever becomes of it. Without this the sender keeps to what
    /// the receiver's socket has room for.
    #[arg(long)]
    unpaced: bool,

    /// Length of the entries of the interval series.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = at_least(Nanos(Spec::MIN_INTERVAL_NS)))]
    interval: Nanos,

    /// With --rate: send at most this much at once to make up for a delay [default: what the rate carries in 1 ms,
    /// at five quarters of the rate].
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>, requires = "rate")]
    burst: Option<ByteSize>,

    /// Calls that move the blocks: auto (tries each for a moment and keeps the best), or how to send and, after a comma, how to
    /// receive: copy, sendfile, splice, zerocopy on tcp; mmsg, gso on udp; receiving copy, trunc, map on tcp; mmsg, gro on udp; ktls on tls.
    #[arg(long, value_name = "SEND[,RECEIVE]", default_value = "copy")]
    engine: EngineFlag,

    /// Let a blocking receiver of a quick TCP stream, or of datagrams that come many to a call, sleep 50 us between its reads where
    /// that carries more, to save sender wake-ups. No application reads so, and the outcome says it.
    #[arg(long, help_heading = "Sockets")]
    delayed_reads: bool,

    /// HOST runs another program's server, which is spoken to in its own protocol: nttcp, nuttcp, iperf2. Its figures of the far
    /// end are what that program tells.
    #[arg(long, value_name = "PROGRAM", value_parser = spoken, help_heading = "Path")]
    speak: Option<String>,

    #[command(flatten)]
    sockets: Sockets,
    #[command(flatten)]
    observing: Observing,
    #[command(flatten)]
    enough: Enough,
    #[command(flatten)]
    output: Output,
}

impl TransferArgs {
    /// The measurement that the flags describe.
    pub fn spec(&self) -> Result<Spec, Failure> {
        let mut spec = flags::spec("transfer", &self.peer, &self.load, &self.sockets, &self.enough)?;
        spec.block = self.block.map_or_else(|| default_block(self.load.transport(), &self.peer), |block| block.0);
        spec.stop = match (self.bytes, self.count) {
            (Some(bytes), _) => Stop::Bytes(bytes.0),
            (None, count) => Stop::Blocks(count.unwrap_or(0)),
        };
        spec.rate_bps = self.rate.map(|rate| rate.0);
        spec.interval_ns = self.interval.0;
        spec.burst = self.burst.map(|burst| burst.0);
        spec.engine = self.engine.0;
        spec.delayed_reads = self.delayed_reads;
        spec.capture = self.observing.capture();
        spec.speak = self.speak.as_deref().map(Name::from);
        // The others have no such signals.
        spec.paced_to_receiver = flags::to_receiver(&spec, self.unpaced)? && self.speak.is_none();
        Ok(spec)
    }
}

/// Runs it.
pub fn run(args: &TransferArgs) -> Result<u8, Failure> {
    // A transfer is done once; who wants an interval says how many trials.
    let enough = Enough { trials: args.enough.trials.or(Some(1)), ..args.enough.clone() };
    measure(&Job {
        kind: "transfer",
        specs: vec![args.spec()?],
        rule: enough.rule(None),
        schedule: Schedule::Single,
        peer: &args.peer,
        output: &args.output,
        np: None,
        login: None,
    })
}
