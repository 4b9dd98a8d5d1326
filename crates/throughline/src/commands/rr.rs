//! `thru rr`: request and response.

use clap::Args;
use control::coordinator::Schedule;
use model::{ByteSize, Name, Nanos, Spec, Stop};

use super::stream::BUDGET;
use crate::failure::Failure;
use crate::flags::{self, Enough, Load, Observing, Output, Peer, Sockets};
use crate::measure::{Job, measure};
use crate::values::{RequestRate, above_zero, whole};

/// Flags of `thru rr`.
#[derive(Debug, Args)]
#[command(mut_arg("both", |both| both.hide(true)), mut_arg("flows", |flows| flows.help("Connections")))]
#[command(after_help = "Examples:
  thru rr HOST                          1-byte round trips
  thru rr HOST --spin --pin 1,0         without sleeping, each end on a core of its own
  thru rr HOST --block 128 --reply 8KiB requests of 128 B, responses of 8 KiB
  thru rr HOST --rate 1000/s            1,000 requests a second, timed from when each was due
  thru rr HOST --connect                a connection for each transaction (CRR)
  thru rr HOST --flows 64 --threads 2   64 connections in two threads
  thru rr HOST --speak netperf          HOST runs netserver
  thru rr HOST --speak stamp            HOST reflects: the delay of each way")]
pub struct RrArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,

    /// Bytes of a request.
    #[arg(long, value_name = "SIZE", default_value = "1", value_parser = above_zero::<ByteSize>)]
    block: ByteSize,

    /// Bytes of a response [default: as the request].
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    reply: Option<ByteSize>,

    /// Open a connection for each transaction (CRR), one strictly after the other: connect, request, response, close.
    #[arg(long)]
    connect: bool,

    /// With --connect: close a connection after the request of the next one, not before that connects; more transactions than one
    /// after the other, and the outcome says it.
    #[arg(long, requires = "connect")]
    overlap_close: bool,

    /// Length of one trial.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    time: Nanos,

    /// End a trial after this many transactions instead.
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    count: Option<u64>,

    /// Send requests at this rate, whether or not answers have come (an open loop): requests a second as 1000/s, or a rate of
    /// request bytes as 1Mbit. A round trip then counts from the time at which its request was due.
    #[arg(long, value_name = "RATE", conflicts_with = "connect")]
    rate: Option<RequestRate>,

    /// HOST runs another program's server, which is spoken to in its own protocol: netperf (netserver), or stamp (a
    /// reflector of STAMP or TWAMP Light, over UDP). Each trial is one of its tests.
    #[arg(long, value_name = "PROGRAM", value_parser = super::stream::spoken, help_heading = "Path")]
    speak: Option<String>,

    /// Leave the start of each trial out of the rate.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warmup: Nanos,

    #[command(flatten)]
    sockets: Sockets,
    #[command(flatten)]
    observing: Observing,
    #[command(flatten)]
    enough: Enough,
    #[command(flatten)]
    output: Output,
}

impl RrArgs {
    /// The measurement that the flags describe.
    pub fn spec(&self) -> Result<Spec, Failure> {
        if self.load.both {
            return Err(Failure::usage("round trips have no --both: `thru curve --both` crosses blocks"));
        }
        let pattern = if self.connect { "crr" } else { "rr" };
        let mut spec = flags::spec(pattern, &self.peer, &self.load, &self.sockets, &self.enough)?;
        spec.block = self.block.0;
        spec.reply = self.reply.map(|size| size.0);
        spec.overlap_close = self.overlap_close;
        if let Some(name) = &self.speak {
            spec.speak = Some(Name::from(name.as_str()));
            interop::protocol(name)?.shape(&mut spec);
        }
        spec.stop = self.count.map_or(Stop::TimeNs(self.time.0), Stop::Transactions);
        spec.rate_bps = self.rate.map(|rate| rate.bits_per_second(spec.block));
        spec.warmup_ns = self.warmup.0;
        spec.capture = self.observing.capture();
        Ok(spec)
    }
}

/// Runs it.
pub fn run(args: &RrArgs) -> Result<u8, Failure> {
    measure(&Job {
        kind: "rr",
        specs: vec![args.spec()?],
        rule: args.enough.rule(Some(BUDGET)),
        schedule: Schedule::Single,
        peer: &args.peer,
        output: &args.output,
        np: None,
        login: None,
    })
}
