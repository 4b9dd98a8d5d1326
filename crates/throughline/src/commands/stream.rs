//! `thru stream`: goodput.

use clap::Args;
use control::coordinator::Schedule;
use model::{BitRate, ByteSize, Nanos, Spec, Stop};

use crate::failure::Failure;
use crate::flags::{self, Enough, Load, Output, Peer, Sockets};
use crate::measure::{Job, measure};

/// Time for a whole `thru stream` or `thru rr` unless told otherwise.
pub const BUDGET: Nanos = Nanos(15_000_000_000);

/// Flags of `thru stream`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru stream HOST                              to HOST, until the goodput is known to 2 %
  thru stream HOST --both --flows 4             both ways at once, 4 connections each
  thru stream HOST --time 10s --trials 3        three trials of ten seconds
  thru stream HOST --transport udp --block 1472 --rate 500Mbit
  thru stream HOST --sndbuf 4MiB,1MiB --cc bbr  buffers here and there, BBR at both ends
  thru stream B --from A                        A sends to B, this machine only watches")]
pub struct StreamArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,

    /// Bytes of one send; a datagram's size on udp [default: 128KiB, udp 1472, unix-dgram 8KiB].
    #[arg(long, value_name = "SIZE")]
    block: Option<ByteSize>,

    /// Length of one trial.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    time: Nanos,

    /// End a trial after this many payload bytes instead.
    #[arg(long, value_name = "SIZE", conflicts_with = "count")]
    bytes: Option<ByteSize>,

    /// End a trial after this many blocks instead.
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    /// Leave the start of each trial out of the rates (the byte counts keep it).
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warmup: Nanos,

    /// Send no faster than this, all flows of a direction together.
    #[arg(long, value_name = "RATE")]
    rate: Option<BitRate>,

    /// Length of the entries of the interval series.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    interval: Nanos,

    #[command(flatten)]
    sockets: Sockets,
    #[command(flatten)]
    enough: Enough,
    #[command(flatten)]
    output: Output,
}

impl StreamArgs {
    /// The measurement that the flags describe.
    pub fn spec(&self) -> Spec {
        let mut spec = flags::spec("stream", &self.peer, &self.load, &self.sockets, &self.enough);
        spec.block = self.block.map_or_else(|| default_block(&self.load.transport), |block| block.0);
        spec.stop = match (self.bytes, self.count) {
            (Some(bytes), _) => Stop::Bytes(bytes.0),
            (_, Some(count)) => Stop::Blocks(count),
            _ => Stop::TimeNs(self.time.0),
        };
        spec.warmup_ns = self.warmup.0;
        spec.rate_bps = self.rate.map(|rate| rate.0);
        spec.interval_ns = self.interval.0;
        spec
    }
}

/// Runs it.
pub fn run(args: &StreamArgs) -> Result<u8, Failure> {
    measure(&Job {
        kind: "stream",
        specs: vec![args.spec()],
        rule: args.enough.rule(Some(BUDGET))?,
        schedule: Schedule::Single,
        peer: &args.peer,
        output: &args.output,
        np: None,
    })
}

/// A block that suits the transport: on udp what an Ethernet frame of 1500 bytes carries without fragments.
pub fn default_block(transport: &str) -> u64 {
    match transport {
        "udp" => 1_472,
        "unix-dgram" => 8 << 10,
        _ => 128 << 10,
    }
}
