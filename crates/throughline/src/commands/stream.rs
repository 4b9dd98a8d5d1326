//! `thru stream`: goodput.

use clap::Args;
use control::coordinator::Schedule;
use model::{BitRate, ByteSize, Direction, Name, Nanos, Spec, Stop};

use crate::failure::Failure;
use crate::flags::{self, Enough, Load, LoginFlags, Observing, Output, Peer, Sockets};
use crate::measure::{Job, measure};
use crate::values::{EngineFlag, above_zero, at_least, whole};

/// Time for a whole `thru stream` or `thru rr` unless told otherwise.
pub const BUDGET: Nanos = Nanos(15_000_000_000);
/// Time of a search for the highest rate without loss, whose trials are of several steps each.
const SEARCH_BUDGET: Nanos = Nanos(60_000_000_000);

/// Flags of `thru stream`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru stream HOST                              to HOST, until the goodput is known to 2 %
  thru stream HOST --both --flows 4             both ways at once, 4 connections each
  thru stream HOST --time 10s --trials 3        three trials of ten seconds
  thru stream HOST --probe                      latency with and without the stream's load
  thru stream HOST --udp --find-no-loss         the highest rate without loss, for one size of datagram
  thru stream HOST --transport udp --block 1472 --rate 500Mbit
  thru stream HOST --sndbuf 4MiB,1MiB --cc bbr  buffers here and there, BBR at both ends
  thru stream HOST --speak iperf3               HOST runs iperf3 -s
  thru stream HOST --speak netperf              HOST runs netserver
  thru stream B --from A                        A sends to B, this machine only watches")]
pub struct StreamArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,

    /// Bytes of one send; a datagram's size on udp [default: 128KiB, udp 1472 (1452 over IPv6), unix-dgram 8KiB].
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    block: Option<ByteSize>,

    /// Length of one trial.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    time: Nanos,

    /// End a trial after this many payload bytes instead.
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>, conflicts_with = "count")]
    bytes: Option<ByteSize>,

    /// End a trial after this many blocks instead.
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    count: Option<u64>,

    /// Leave the start of each trial out of the rates (the byte counts keep it).
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warmup: Nanos,

    /// Send no faster than this, all flows of a direction together.
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    rate: Option<BitRate>,

    /// Let the receiver's program read no faster than this, all flows of a direction together: a slow reader.
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    drain: Option<BitRate>,

    /// Over udp without --rate: send as fast as this host can, whatever becomes of it. Without this the sender keeps to what
    /// the receiver's socket has room for, so that what is lost is lost on the path.
    #[arg(long)]
    unpaced: bool,

    /// Length of the entries of the interval series.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = at_least(Nanos(Spec::LEAST_INTERVAL_NS)))]
    interval: Nanos,

    /// With --rate: send at most this much at once to make up for a delay [default: what the rate carries in 1 ms,
    /// at five quarters of the rate].
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>, requires = "rate")]
    burst: Option<ByteSize>,

    /// Over datagrams: search for the highest rate that loses none (the idea of RFC 2544 on plain sockets). Each trial is a
    /// search of 8 steps, each as long as --time.
    #[arg(long, conflicts_with_all = ["rate", "bytes", "count"])]
    find_no_loss: bool,

    /// Ask for so many small round trips a second over a connection of their own, before the stream and beside it: latency
    /// with and without load, bufferbloat and responsiveness (RPM).
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "100", require_equals = true,
          value_parser = whole(1..=Spec::MAX_PROBES))]
    probe: Option<u32>,

    /// Calls that move the blocks: auto (tries each for a moment and keeps the best), or how to send and, after a comma, how to
    /// receive: copy, sendfile, splice, zerocopy on tcp; mmsg, gso on udp; receiving copy, trunc, map on tcp; mmsg, gro on udp; ktls on tls.
    #[arg(long, value_name = "SEND[,RECEIVE]", default_value = "copy")]
    engine: EngineFlag,

    /// Let a blocking receiver of a quick TCP stream, or of datagrams that come many to a call, sleep 50 us between its reads where
    /// that carries more, to save sender wake-ups. No application reads so, and the outcome says it.
    #[arg(long, help_heading = "Sockets")]
    delayed_reads: bool,

    /// HOST runs another program's server, which is spoken to in its own protocol: iperf3, netperf, nuttcp, iperf2. Its figures
    /// of the far end are what that program tells; each trial is one of its tests.
    #[arg(long, value_name = "PROGRAM", value_parser = spoken, help_heading = "Path")]
    speak: Option<String>,

    #[command(flatten)]
    login: LoginFlags,
    #[command(flatten)]
    sockets: Sockets,
    #[command(flatten)]
    observing: Observing,
    #[command(flatten)]
    enough: Enough,
    #[command(flatten)]
    output: Output,
}

impl StreamArgs {
    /// The measurement that the flags describe.
    pub fn spec(&self) -> Result<Spec, Failure> {
        let mut spec = flags::spec("stream", &self.peer, &self.load, &self.sockets, &self.enough)?;
        spec.block = self.block.map_or_else(|| default_block(self.load.transport(), &self.peer), |block| block.0);
        spec.stop = match (self.bytes, self.count) {
            (Some(bytes), _) => Stop::Bytes(bytes.0),
            (_, Some(count)) => Stop::Blocks(count),
            _ => Stop::TimeNs(self.time.0),
        };
        spec.warmup_ns = self.warmup.0;
        spec.rate_bps = self.rate.map(|rate| rate.0);
        spec.interval_ns = self.interval.0;
        let drain = self.drain.map(|rate| rate.0);
        // Whoever receives reads.
        spec.far.drain_bps = drain.filter(|_| spec.direction != Direction::Reverse);
        spec.near.drain_bps = drain.filter(|_| spec.direction != Direction::Send);
        spec.burst = self.burst.map(|burst| burst.0);
        spec.no_loss = self.find_no_loss;
        spec.probe = self.probe;
        spec.engine = self.engine.0;
        spec.delayed_reads = self.delayed_reads;
        spec.capture = self.observing.capture();
        spec.speak = self.speak.as_deref().map(Name::from);
        // The others have no such signals.
        let paced = flags::to_receiver(&spec, self.unpaced)?;
        spec.paced_to_receiver = paced && !self.find_no_loss && self.speak.is_none();
        Ok(spec)
    }
}

/// Runs it.
pub fn run(args: &StreamArgs) -> Result<u8, Failure> {
    measure(&Job {
        kind: "stream",
        specs: vec![args.spec()?],
        rule: args.enough.rule(Some(if args.find_no_loss { SEARCH_BUDGET } else { BUDGET })),
        schedule: Schedule::Single,
        peer: &args.peer,
        output: &args.output,
        np: None,
        login: args.login.read(args.speak.as_deref())?,
    })
}

/// The name of a program that can be spoken to.
pub fn spoken(name: &str) -> Result<String, String> {
    interop::protocol(name).map(|_| name.to_owned()).map_err(|error| error.to_string())
}

/// A block that suits the transport: on udp what an Ethernet frame of 1500 bytes carries without fragments.
pub fn default_block(transport: &str, peer: &Peer) -> u64 {
    match transport {
        "udp" if peer.data_over_ipv6() => 1_452,
        "udp" => 1_472,
        "unix-dgram" => 8 << 10,
        _ => 128 << 10,
    }
}
