//! `thru rr`: request and response.

use clap::Args;
use control::coordinator::Schedule;
use model::{ByteSize, Name, Nanos, Spec, Stop};

use super::stream::BUDGET;
use crate::flags::{self, Load, Observing, Output, Peer, Precision, Sockets};
use crate::job::Job;
use crate::measure::measure;
use crate::registries;
use session::failure::Failure;
use session::values::{RequestRate, above_zero, whole};

/// Flags of `thru rr`.
#[derive(Debug, Args)]
#[command(mut_arg("both", |both| both.hide(true)), mut_arg("flows", |flows| flows.help("Number of connections")))]
#[command(after_help = "Examples:
  thru rr HOST                           1-byte round trips
  thru rr HOST --spin --pin 1,0          busy-wait, on core 1 here and core 0 at HOST
  thru rr HOST --block 128 --reply 8KiB  requests of 128 B, responses of 8 KiB
  thru rr HOST --rate 1000/s             1000 requests per second, timed from when each is due
  thru rr HOST --connect                 a new connection per transaction (TCP_CRR)
  thru rr HOST --flows 64 --threads 2    64 connections in 2 threads
  thru rr HOST --speak netperf           HOST runs netserver
  thru rr HOST --speak stamp             HOST runs a STAMP reflector: one-way delays")]
pub struct RrArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,

    /// Bytes of a request.
    #[arg(long, value_name = "SIZE", default_value = "1", value_parser = above_zero::<ByteSize>)]
    block: ByteSize,

    /// Bytes of a response [default: the size of the request].
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    reply: Option<ByteSize>,

    /// Open a new connection for each transaction (CRR): connect, request, response, close.
    #[arg(long)]
    connect: bool,

    /// With --connect: close a connection after the next one has sent its request, not before the next one opens. Gives a
    /// higher rate; the result says that it was used.
    #[arg(long, requires = "connect")]
    overlap_close: bool,

    /// Length of one trial.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    time: Nanos,

    /// End a trial after this many transactions instead of --time.
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    count: Option<u64>,

    /// Send requests at a fixed rate without waiting for responses (open loop): 1000/s is requests per second, 1Mbit is a rate of
    /// request bytes. Round trips are timed from when the request was due.
    #[arg(long, value_name = "RATE", conflicts_with = "connect")]
    rate: Option<RequestRate>,

    #[arg(long, value_name = "PROGRAM", help = registries::speak_help("rr"), value_parser = super::stream::peer_program,
          help_heading = flags::HOSTS)]
    speak: Option<String>,

    /// Exclude this time at the start of each trial from the rate.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warmup: Nanos,

    #[command(flatten)]
    sockets: Sockets,
    #[command(flatten)]
    observing: Observing,
    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    output: Output,
}

impl RrArgs {
    /// The measurement that the flags describe.
    pub fn spec(&self) -> Result<Spec, Failure> {
        if self.load.both {
            return Err(Failure::usage(
                "rr does not support --both: `thru curve --both` sends blocks in both directions at once",
            ));
        }
        let pattern = if self.connect { "crr" } else { "rr" };
        let mut spec = flags::spec(pattern, &self.peer, &self.load, &self.sockets, &self.precision)?;
        spec.block = self.block.0;
        spec.reply = self.reply.map(|size| size.0);
        spec.overlap_close = self.overlap_close;
        if let Some(name) = &self.speak {
            spec.speak = Some(Name::from(name.as_str()));
            peers::protocol(name)?.shape(&mut spec);
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
        rule: args.precision.rule(Some(BUDGET)),
        schedule: Schedule::Single,
        peer: &args.peer,
        output: &args.output,
        np: None,
        login: None,
    })
}
