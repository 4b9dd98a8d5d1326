//! `thru transfer`: a fixed amount, as nttcp and rapid do it.

use clap::Args;
use control::coordinator::Schedule;
use model::{BitRate, ByteSize, Nanos, Spec};
use session::Failure;
use session::draft::{self, Pattern, SpecDraft};
use session::values::{EngineFlag, above_zero, at_least, whole};

use crate::flags::{self, Load, Observing, Output, Peer, Precision, Sockets};
use crate::job::{Job, Lines, Shape};
use crate::measure::measure;
use crate::registries;

const EXAMPLES: &str = "Examples:
  thru transfer HOST --block 64KiB --count 2048 --flows 4     128 MiB in total over 4 connections
  thru transfer HOST --bytes 16GB --processes 4 --flows 4     as rapid: one process per connection
  thru transfer HOST --count 2048 --trials 6                  6 trials, with an interval
  thru transfer HOST --count 2048 --block 4KiB --speak nttcp  HOST runs nttcp -i

--count and --bytes are totals over all flows; exactly that amount is transferred.";

/// Flags of `thru transfer`.
#[derive(Debug, Args)]
#[command(after_help = flags::with_iperf3_spelling(EXAMPLES))]
pub struct TransferArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,

    #[arg(short = 'l', long, value_name = "SIZE", help = registries::block_help(), value_parser = above_zero::<ByteSize>)]
    block: Option<ByteSize>,

    /// Number of blocks to transfer, over all flows.
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    count: Option<u64>,

    /// Number of bytes to transfer instead of --count, over all flows.
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    bytes: Option<ByteSize>,

    /// Limit the sending rate, over all flows of a direction [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    rate: Option<BitRate>,

    /// Limit the sending rate of each flow, as iperf3 does.
    #[arg(short = 'b', value_name = "RATE", value_parser = above_zero::<BitRate>, conflicts_with = "rate")]
    rate_of_flow: Option<BitRate>,

    /// On udp without --rate: send as fast as this host can. Without this flag, the sender limits itself to the free space of
    /// the receiver's socket, so that losses are those of the path.
    #[arg(long)]
    unpaced: bool,

    /// Length of one entry of the series, and from 200ms on time between two lines [lines by default: 1s].
    #[arg(short, long, value_name = "TIME", default_value = "100ms", value_parser = at_least(Nanos(Spec::MIN_INTERVAL_NS)))]
    interval: Nanos,

    /// Also print a line for each flow.
    #[arg(long)]
    each: bool,

    /// With --rate: the largest burst that makes up for a delay [default: the bytes of 1 ms, sent at 125 % of the rate].
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    burst: Option<ByteSize>,

    /// Send method and, after a comma, receive method. To send: copy; sendfile, splice, zerocopy (tcp); mmsg, gso (udp); ktls
    /// (tls). To receive: copy; trunc, map (tcp); mmsg, gro (udp). auto measures each in a pilot trial and uses the fastest.
    #[arg(long, value_name = "SEND[,RECEIVE]", default_value = "copy", help_heading = flags::CALLS)]
    engine: EngineFlag,

    /// Let a blocking receiver sleep 50 µs between its reads where that raises the goodput, to save sender wake-ups: on fast TCP
    /// streams, and on datagrams received several per call. Applications do not read this way; the result says that it was used.
    #[arg(long, help_heading = flags::CALLS)]
    delayed_reads: bool,

    #[arg(long, value_name = "PROGRAM", help = registries::speak_help("transfer"), value_parser = draft::program,
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
    /// The options that the flags give.
    fn draft(&self) -> SpecDraft {
        let mut draft = SpecDraft {
            block: self.block,
            count: self.count,
            bytes: self.bytes,
            rate: self.rate.or_else(|| self.rate_of_flow.map(|rate| self.load.of_all_flows(rate))),
            unpaced: self.unpaced,
            interval: Some(self.interval),
            burst: self.burst,
            engine: Some(self.engine),
            delayed_reads: self.delayed_reads,
            speak: self.speak.clone(),
            host_is_ipv6: self.block.is_none() && self.peer.is_ipv6(),
            stall: Some(self.precision.stall),
            ..SpecDraft::new(Pattern::Transfer)
        };
        self.peer.fill(&mut draft);
        self.load.fill(&mut draft);
        self.sockets.fill(&mut draft);
        self.observing.fill(&mut draft);
        draft
    }

    /// The measurement that the flags describe.
    pub fn spec(&self) -> Result<Spec, Failure> {
        Ok(self.draft().one()?)
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
        shape: Shape { lines: if args.each { Lines::Each } else { Lines::Sum }, ..Shape::default() },
        login: None,
    })
}
