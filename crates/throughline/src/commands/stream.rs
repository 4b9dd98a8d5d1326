//! `thru stream`: goodput.

use clap::Args;
use control::coordinator::Schedule;
use model::{BitRate, ByteSize, Nanos, Spec};
use session::Failure;
use session::draft::{self, Pattern, SpecDraft};
use session::values::{EngineFlag, above_zero, at_least, whole};

use crate::flags::{self, Load, LoginFlags, Observing, Output, Peer, Precision, Sockets};
use crate::job::{Job, Lines, Shape};
use crate::measure::measure;
use crate::registries;

/// Default time limit of `thru stream` and `thru rr`.
pub const BUDGET: Nanos = Nanos(15_000_000_000);
/// Default time limit of a search for the highest rate without loss: each of its trials has several steps.
const SEARCH_BUDGET: Nanos = Nanos(60_000_000_000);

const EXAMPLES: &str = "Examples:
  thru stream HOST                              goodput to HOST, with an interval of ±2 %
  thru stream HOST --both --flows 4             both directions at once, 4 connections each
  thru stream HOST --time 10s --trials 3        three trials of 10 s
  thru stream HOST --probe                      latency without load and under load
  thru stream HOST --udp --rate 500Mbit         datagrams at a fixed rate
  thru stream HOST --udp --find-no-loss         the highest rate without loss
  thru stream HOST --sndbuf 4MiB,1MiB --cc bbr  4 MiB here, 1 MiB at HOST, BBR at both ends
  thru stream HOST --speak iperf3               HOST runs iperf3 -s
  thru stream HOST --speak netperf              HOST runs netserver
  thru stream B --from A                        A sends to B; this machine controls the run";

/// Flags of `thru stream`.
#[derive(Debug, Args)]
#[command(after_help = flags::with_iperf3_spelling(EXAMPLES))]
pub struct StreamArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,

    #[arg(short = 'l', long, value_name = "SIZE", help = registries::block_help(), value_parser = above_zero::<ByteSize>)]
    block: Option<ByteSize>,

    /// Length of one trial.
    #[arg(short, long, value_name = "TIME", default_value = "1s")]
    time: Nanos,

    /// End a trial after this many payload bytes instead of --time.
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    bytes: Option<ByteSize>,

    /// End a trial after this many blocks instead of --time.
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    count: Option<u64>,

    /// Exclude this time at the start of each trial from the rates. Byte counts include it.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warmup: Nanos,

    /// Limit the sending rate, over all flows of a direction [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    rate: Option<BitRate>,

    /// Limit the sending rate of each flow, as iperf3 does.
    #[arg(short = 'b', value_name = "RATE", value_parser = above_zero::<BitRate>, conflicts_with = "rate")]
    rate_of_flow: Option<BitRate>,

    /// Limit the rate at which the receiver reads, over all flows of a direction: a slow application [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    drain: Option<BitRate>,

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

    /// On datagrams: search for the highest rate without loss, as RFC 2544 does. Each trial is a search of 8 steps of --time
    /// each.
    #[arg(long)]
    find_no_loss: bool,

    /// Send N small requests per second on a separate connection, before and during the stream [default: 100 if given without
    /// N]. Reports latency without load and under load, bufferbloat, and responsiveness (RPM).
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "100", require_equals = true,
          value_parser = whole(1..=Spec::MAX_PROBES))]
    probe: Option<u32>,

    /// Send method and, after a comma, receive method. To send: copy; sendfile, splice, zerocopy (tcp); mmsg, gso (udp); ktls
    /// (tls). To receive: copy; trunc, map (tcp); mmsg, gro (udp). auto measures each in a pilot trial and uses the fastest.
    #[arg(long, value_name = "SEND[,RECEIVE]", default_value = "copy", help_heading = flags::CALLS)]
    engine: EngineFlag,

    /// Let a blocking receiver sleep 50 µs between its reads where that raises the goodput, to save sender wake-ups: on fast TCP
    /// streams, and on datagrams received several per call. Applications do not read this way; the result says that it was used.
    #[arg(long, help_heading = flags::CALLS)]
    delayed_reads: bool,

    #[arg(long, value_name = "PROGRAM", help = registries::speak_help("stream"), value_parser = draft::program,
          help_heading = flags::HOSTS)]
    speak: Option<String>,

    #[command(flatten)]
    login: LoginFlags,
    #[command(flatten)]
    sockets: Sockets,
    #[command(flatten)]
    observing: Observing,
    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    output: Output,
}

impl StreamArgs {
    /// The options that the flags give.
    fn draft(&self) -> SpecDraft {
        let mut draft = SpecDraft {
            block: self.block,
            time: Some(self.time),
            bytes: self.bytes,
            count: self.count,
            warmup: Some(self.warmup),
            rate: self.rate.or_else(|| self.rate_of_flow.map(|rate| self.load.of_all_flows(rate))),
            drain: self.drain,
            unpaced: self.unpaced,
            interval: Some(self.interval),
            burst: self.burst,
            find_no_loss: self.find_no_loss,
            probe: self.probe,
            engine: Some(self.engine),
            delayed_reads: self.delayed_reads,
            speak: self.speak.clone(),
            host_is_ipv6: self.block.is_none() && self.peer.is_ipv6(),
            stall: Some(self.precision.stall),
            ..SpecDraft::new(Pattern::Stream)
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
pub fn run(args: &StreamArgs) -> Result<u8, Failure> {
    measure(&Job {
        kind: "stream",
        specs: vec![args.spec()?],
        rule: args.precision.rule(Some(if args.find_no_loss { SEARCH_BUDGET } else { BUDGET })),
        schedule: Schedule::Single,
        peer: &args.peer,
        output: &args.output,
        shape: Shape { lines: if args.each { Lines::Each } else { Lines::Sum }, ..Shape::default() },
        login: args.login.read(args.speak.as_deref())?,
    })
}
