//! `thru stream`: goodput.

use clap::Args;
use command::Failure;
use control::coordinator::{Schedule, Unfixed};
use model::{Nanos, RunKind, Spec};
use options::TestOptions;
use session::{ThisHost, Work};
use vec1::vec1;

use crate::flags::{Bulk, Given, HostFlags, LoginFlags, OfStream, Output, Precision, ShortFor, bulk};
use crate::measure::{conduct, measure};

/// Default time limit of `thru stream` and `thru rr`.
pub const BUDGET: Nanos = Nanos(15_000_000_000);
/// Default time limit of a search for the highest rate without loss: each of its trials has several steps.
const SEARCH_BUDGET: Nanos = Nanos(60_000_000_000);

/// Flags of `thru stream`.
#[derive(Debug, Args)]
#[command(after_help = concat!(include_str!("../help/stream.txt"), "\n", include_str!("../help/iperf3.txt")).trim_end())]
pub struct StreamArgs {
    #[command(flatten)]
    hosts: HostFlags,
    #[command(flatten)]
    given: Given<OfStream>,
    #[command(flatten)]
    short_for: ShortFor,
    #[command(flatten)]
    bulk: Bulk,

    /// Measure a group of flows with these options. May be repeated: all groups run at the same time, each with its own result. Keys
    /// are flag names without dashes, and name, direction (send, reverse, both), start and stop (times after the common start).
    /// Options that a group does not set come from the command's flags.
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with_all = ["speak", "find-no-loss", "rate_of_flow", "responsiveness"])]
    group: Vec<String>,

    #[command(flatten)]
    login: LoginFlags,
    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    output: Output,
}

impl StreamArgs {
    /// The options that the flags give.
    pub fn options(&self) -> TestOptions {
        let mut options = self.given.options.clone();
        self.short_for.add_to(&mut options);
        self.bulk.add_to(&mut options);
        options.host_is_ipv6 =
            (bulk::sizes_by_family(&options) || !self.group.is_empty()) && self.hosts.is_ipv6(&options);
        options
    }

    /// The spec, of which datagrams without a rate start slowly.
    pub fn safe_spec(&self) -> Result<Spec, Failure> {
        bulk::started_safely(self.options(), &self.hosts)
    }
}

/// Runs it.
pub fn run(args: &StreamArgs) -> Result<u8, Failure> {
    if !args.group.is_empty() {
        return groups(args);
    }
    let options = args.options();
    let work = Work::Measurement {
        specs: vec1![args.safe_spec()?],
        rule: args.precision.rule(Some(if options.find_no_loss { SEARCH_BUDGET } else { BUDGET })),
        schedule: Schedule::Single(Unfixed {
            own_time: options.time.is_none(),
            own_budget: args.precision.budget.is_none(),
        }),
        login: args.login.read(options.speak)?,
    };
    let request = args.output.request(RunKind::Stream, args.hosts.of_run(&options), work);
    measure(&request, &args.output, args.bulk.shape())
}

/// Measures groups of flows at the same time.
fn groups(args: &StreamArgs) -> Result<u8, Failure> {
    let options = args.options();
    let (hosts, rule) = (args.hosts.of_run(&options), args.precision.rule(Some(BUDGET)));
    let parsed = plan::of_groups(&options, &args.group, hosts.from.as_deref(), hosts.host.as_deref(), rule, &ThisHost)?;
    args.output.check(RunKind::Stream, parsed.specs().map(|spec| &**spec))?;
    let work = Work::Plan { parsed: Box::new(parsed), resumed: None };
    Ok(conduct(&args.output.request(RunKind::Stream, hosts, work), &args.output, args.bulk.shape())?.1)
}
