//! `thru rr`: request and response.

use clap::Args;
use control::coordinator::{Schedule, Unfixed};
use model::{ByteSize, Nanos, RunKind};
use session::draft::{self, SpecDraft, TestKind};
use session::values::{RequestRate, above_zero, one_block, whole};
use session::{Failure, Work};

use super::stream::BUDGET;
use crate::flags::{self, Load, Observing, Output, Peer, Precision, Sockets};
use crate::measure::measure;
use crate::registries;
use crate::shape::{Lines, Shape};

/// Flags of `thru rr`.
#[derive(Debug, Args)]
#[command(mut_arg("both", |both| both.hide(true)), mut_arg("flows", |flows| flows.help("Number of connections")))]
#[command(after_help = include_str!("../help/rr.txt").trim_end())]
pub struct RrArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,

    /// Bytes of a request.
    #[arg(long, value_name = "SIZE", default_value = "1", value_parser = one_block)]
    block: ByteSize,

    /// Bytes of a response [default: the size of the request].
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    reply: Option<ByteSize>,

    /// Open a new connection for each transaction (CRR): connect, request, response, close.
    #[arg(long)]
    connect: bool,

    /// With --connect: close a connection after the next one has sent its request, not before the next one opens. Gives a
    /// higher rate; the result says that it was used.
    #[arg(long)]
    overlap_close: bool,

    /// Divide round trips into their parts by the kernel's time stamps: sending, network, waking up and receiving, at each end.
    /// Stamps a part of the round trips; the figures of the others stay as they are.
    #[arg(long)]
    anatomy: bool,

    /// Length of one trial.
    #[arg(short, long, value_name = "TIME", default_value = "1s")]
    time: Nanos,

    /// End a trial after this many transactions instead of --time.
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    count: Option<u64>,

    /// Send requests at a fixed rate without waiting for responses (open loop): 1000/s is requests per second, 1Mbit is a rate of
    /// request bytes. Round trips are timed from when the request was due.
    #[arg(long, value_name = "RATE")]
    rate: Option<RequestRate>,

    #[arg(long, value_name = "PROGRAM", help = registries::speak_help("rr"), value_parser = draft::program,
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
    /// The options that the flags give.
    pub fn draft(&self) -> SpecDraft {
        let mut draft = SpecDraft {
            block: Some(self.block),
            reply: self.reply,
            connect: self.connect,
            overlap_close: self.overlap_close,
            anatomy: self.anatomy,
            time: Some(self.time),
            count: self.count,
            request_rate: self.rate,
            speak: self.speak.clone(),
            warmup: Some(self.warmup),
            stall: Some(self.precision.stall),
            ..SpecDraft::new(TestKind::Rr)
        };
        self.peer.fill(&mut draft);
        self.load.fill(&mut draft);
        self.sockets.fill(&mut draft);
        self.observing.fill(&mut draft);
        draft
    }
}

/// Runs it.
pub fn run(args: &RrArgs) -> Result<u8, Failure> {
    let work = Work::Measurement {
        specs: vec![args.draft().one()?],
        rule: args.precision.rule(Some(BUDGET)),
        schedule: Schedule::Single(Unfixed::default()),
        login: None,
    };
    let request = args.output.request(RunKind::Rr, args.peer.hosts(), work);
    measure(&request, &args.output, Shape { lines: Lines::Sum, ..Shape::default() })
}
