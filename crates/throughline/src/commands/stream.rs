//! `thru stream`: goodput.

use clap::Args;
use control::coordinator::{Schedule, Unfixed};
use model::{BitRate, Nanos, RunKind, Spec};
use session::draft::{self, SpecDraft, TestKind};
use session::values::{above_zero, whole};
use session::{Failure, Work, plan};

use crate::flags::{self, Bulk, Load, LoginFlags, Observing, Output, Peer, Precision, Sockets};
use crate::measure::{conduct, measure};
use crate::registries;

/// Default time limit of `thru stream` and `thru rr`.
pub const BUDGET: Nanos = Nanos(15_000_000_000);
/// Default time limit of a search for the highest rate without loss: each of its trials has several steps.
const SEARCH_BUDGET: Nanos = Nanos(60_000_000_000);

/// Flags of `thru stream`.
#[derive(Debug, Args)]
#[command(after_help = concat!(include_str!("../help/stream.txt"), "\n", include_str!("../help/iperf3.txt")).trim_end())]
pub struct StreamArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    bulk: Bulk,

    /// Length of one trial, --warmup included [default: as long as the path needs to settle, at least 1s; with --responsiveness 20s].
    #[arg(short, long, value_name = "TIME")]
    time: Option<Nanos>,

    /// Exclude this time at the start of each trial from the rates, in place of the start-up that is found in the trial itself
    /// (TCP, TLS, QUIC). 0s includes the start-up. Byte counts always do.
    #[arg(long, value_name = "TIME")]
    warmup: Option<Nanos>,

    /// Limit the rate at which the receiver reads, over all flows of a direction: a slow application [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    drain: Option<BitRate>,

    /// On datagrams: search for the highest rate without loss, as RFC 2544 does. Each trial is a search of 8 steps of --time
    /// each.
    #[arg(long)]
    find_no_loss: bool,

    /// Send N small requests per second on a separate connection, before and during the stream [default: 100 if given without
    /// N]. Reports latency without load and under load, bufferbloat, and responsiveness (RPM).
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "100", require_equals = true,
          value_parser = whole(1..=Spec::MAX_PROBES))]
    probe: Option<u32>,

    /// Measure responsiveness under working conditions (RPM, draft-ietf-ippm-responsiveness): one flow more each second, up to
    /// 16 (--flows), and 100 requests per second (--probe), each on a new connection.
    #[arg(long, conflicts_with_all = ["group", "speak", "find_no_loss", "rate", "rate_of_flow", "bytes", "count", "drain"])]
    responsiveness: bool,

    /// A group of flows with these options, as KEY=VALUE,... May be repeated: all groups are measured at the same time, each with
    /// its own result. Keys are names of flags without dashes, and name, direction (send, reverse, both), start and stop (times
    /// after the common start). What a group does not give comes from the command's flags.
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with_all = ["speak", "find_no_loss", "rate_of_flow"])]
    group: Vec<String>,

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
    pub fn draft(&self) -> SpecDraft {
        let mut draft = SpecDraft {
            time: self.time,
            responsiveness: self.responsiveness,
            warmup: self.warmup,
            drain: self.drain,
            find_no_loss: self.find_no_loss,
            probe: self.probe,
            speak: self.speak.clone(),
            host_is_ipv6: (self.bulk.sizes_by_family() || !self.group.is_empty()) && self.peer.is_ipv6(),
            stall: Some(self.precision.stall),
            ..SpecDraft::new(TestKind::Stream)
        };
        self.peer.fill(&mut draft);
        self.load.fill(&mut draft);
        self.bulk.fill(&self.load, &mut draft);
        self.sockets.fill(&mut draft);
        self.observing.fill(&mut draft);
        draft
    }

    /// The same, but datagrams without a rate start slowly.
    pub fn safe_spec(&self) -> Result<Spec, Failure> {
        Bulk::started_safely(self.draft(), &self.peer)
    }
}

/// Runs it.
pub fn run(args: &StreamArgs) -> Result<u8, Failure> {
    if !args.group.is_empty() {
        return groups(args);
    }
    let work = Work::Measurement {
        specs: vec![args.safe_spec()?],
        rule: args.precision.rule(Some(if args.find_no_loss { SEARCH_BUDGET } else { BUDGET })),
        schedule: Schedule::Single(Unfixed {
            own_time: args.time.is_none(),
            own_budget: args.precision.budget.is_none(),
        }),
        login: args.login.read(args.speak.as_deref())?,
    };
    let request = args.output.request(RunKind::Stream, args.peer.hosts(), work);
    measure(&request, &args.output, args.bulk.shape())
}

/// Measures groups of flows at the same time.
fn groups(args: &StreamArgs) -> Result<u8, Failure> {
    let (hosts, rule) = (args.peer.hosts(), args.precision.rule(Some(BUDGET)));
    let parsed = plan::of_groups(&args.draft(), &args.group, &hosts, rule)?;
    args.output.check(RunKind::Stream, parsed.specs.iter().map(|spec| &**spec))?;
    let work = Work::Plan { parsed: Box::new(parsed), resumed: None };
    Ok(conduct(&args.output.request(RunKind::Stream, hosts, work), &args.output, args.bulk.shape())?.1)
}
