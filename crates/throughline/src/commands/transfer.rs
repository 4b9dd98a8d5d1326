//! `thru transfer`: a fixed amount, as nttcp and rapid do it.

use clap::Args;
use control::coordinator::Schedule;
use model::{BitRate, ByteSize, Name, Nanos, Spec, Stop};

use super::stream::peer_program;
use crate::flags::{self, Load, Observing, Output, Peer, Precision, Sockets};
use crate::job::Job;
use crate::measure::measure;
use crate::registries;
use session::failure::Failure;
use session::values::{EngineFlag, above_zero, at_least, whole};

/// Flags of `thru transfer`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru transfer HOST --block 64KiB --count 2048 --flows 4     128 MiB in total over 4 connections
  thru transfer HOST --bytes 16GB --processes 4 --flows 4     as rapid: one process per connection
  thru transfer HOST --count 2048 --trials 6                  6 trials, with an interval
  thru transfer HOST --count 2048 --block 4KiB --speak nttcp  HOST runs nttcp -i

--count and --bytes are totals over all flows; exactly that amount is transferred.")]
pub struct TransferArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,

    #[arg(long, value_name = "SIZE", help = registries::block_help(), value_parser = above_zero::<ByteSize>)]
    block: Option<ByteSize>,

    /// Number of blocks to transfer, over all flows.
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX), required_unless_present = "bytes")]
    count: Option<u64>,

    /// Number of bytes to transfer instead of --count, over all flows.
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>, conflicts_with = "count")]
    bytes: Option<ByteSize>,

    /// Limit the sending rate, over all flows of a direction [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    rate: Option<BitRate>,

    /// On udp without --rate: send as fast as this host can. Without this flag, the sender limits itself to the free space of
    /// the receiver's socket, so that losses are those of the path.
    #[arg(long)]
    unpaced: bool,

    /// Length of one entry of the interval series.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = at_least(Nanos(Spec::MIN_INTERVAL_NS)))]
    interval: Nanos,

    /// With --rate: the largest burst that makes up for a delay [default: the bytes of 1 ms, sent at 125 % of the rate].
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>, requires = "rate")]
    burst: Option<ByteSize>,

    /// Send method and, after a comma, receive method. To send: copy; sendfile, splice, zerocopy (tcp); mmsg, gso (udp); ktls
    /// (tls). To receive: copy; trunc, map (tcp); mmsg, gro (udp). auto measures each in a pilot trial and uses the fastest.
    #[arg(long, value_name = "SEND[,RECEIVE]", default_value = "copy", help_heading = flags::CALLS)]
    engine: EngineFlag,

    /// Let a blocking receiver sleep 50 µs between its reads where that raises the goodput, to save sender wake-ups: on fast TCP
    /// streams, and on datagrams received several per call. Applications do not read this way; the result says that it was used.
    #[arg(long, help_heading = flags::CALLS)]
    delayed_reads: bool,

    #[arg(long, value_name = "PROGRAM", help = registries::speak_help("transfer"), value_parser = peer_program,
          help_heading = flags::HOSTS)]
    speak: Option<String>,

    #[command(flatten)]
    sockets: Sockets,
    #[command(flatten)]
    observing: Observing,
    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    output: Output,
}

impl TransferArgs {
    /// The measurement that the flags describe.
    pub fn spec(&self) -> Result<Spec, Failure> {
        let mut spec = flags::spec("transfer", &self.peer, &self.load, &self.sockets, &self.precision)?;
        spec.block = match self.block {
            Some(block) => block.0,
            None => self.load.default_block(&self.peer)?,
        };
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
        // Servers of other programs do not report the free space of their sockets.
        spec.paced_to_receiver = flags::to_receiver(&spec, self.unpaced)? && self.speak.is_none();
        Ok(spec)
    }
}

/// Runs it.
pub fn run(args: &TransferArgs) -> Result<u8, Failure> {
    // One trial unless --trials requests more.
    let precision = Precision { trials: args.precision.trials.or(Some(1)), ..args.precision.clone() };
    measure(&Job {
        kind: "transfer",
        specs: vec![args.spec()?],
        rule: precision.rule(None),
        schedule: Schedule::Single,
        peer: &args.peer,
        output: &args.output,
        np: None,
        login: None,
    })
}
