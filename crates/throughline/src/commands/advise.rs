//! `thru advise`: a search for settings that improve the result on this path.

use std::path::PathBuf;

use clap::Args;
use command::{Failure, files};
use control::coordinator::{AdvisePlan, Schedule};
use model::{ByteSize, Goal, Nanos, Pattern, Ratio, RunKind, Spec};
use options::values::{BlockFlag, above_zero, at_least, one_block, whole};
use options::{TestKind, TestOptions};
use session::{Work, advise};
use vec1::vec1;

use crate::flags::{self, Given, HostFlags, OfSearch, Output, ShortFor};
use crate::measure::measure_run;
use crate::registries::choice;
use crate::shape::Shape;

/// Default time limit of a search.
const BUDGET: &str = "3m";
/// Default length of the pilot trials.
const PILOT: Nanos = Nanos(500_000_000);

/// Flags of `thru advise`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/advise.txt").trim_end())]
pub struct AdviseArgs {
    #[command(flatten)]
    hosts: HostFlags,

    /// The result to improve.
    #[arg(long, value_parser = choice::<Goal>(&GOALS), default_value = "throughput")]
    goal: Goal,

    /// Host settings that may be changed at both ends: sysctl, mtu, gso, offloads, coalescing, rings, qdisc, txqueuelen,
    /// governor, or all [default: none].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = advise::class)]
    allow: Vec<String>,

    /// Time limit for the whole search, including the final confirmation.
    #[arg(long, value_name = "TIME", default_value = BUDGET, value_parser = above_zero::<Nanos>, help_heading = flags::PRECISION)]
    budget: Nanos,

    /// Smallest gain that counts as an improvement.
    #[arg(long, value_name = "PERCENT", default_value = "1%", help_heading = flags::PRECISION)]
    least: Ratio,

    /// Length of a trial [default: 30 round trips, at least 300 ms and at most 2 s].
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>, help_heading = flags::PRECISION)]
    time: Option<Nanos>,

    /// End a trial in which no byte moves for this long.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = at_least(Nanos(Spec::MIN_STALL_NS)),
          help_heading = flags::PRECISION)]
    stall: Nanos,

    /// Seed for all random choices [default: from the clock; recorded in the run].
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX), help_heading = flags::PRECISION)]
    seed: Option<u64>,

    /// Bytes per send, fixed instead of searched [default: searched]. With --goal latency: bytes per request [default: 1].
    #[arg(long, value_name = "SIZE", value_parser = one_block)]
    block: Option<ByteSize>,

    /// Write the sysctl lines of the best configuration for this host to FILE, and those of the far host to FILE.far.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    write_sysctl: Option<PathBuf>,

    #[command(flatten)]
    given: Given<OfSearch>,
    #[command(flatten)]
    short_for: ShortFor,
    #[command(flatten)]
    output: Output,
}

/// What can be searched for.
const GOALS: [(&str, &str); 3] = [
    ("throughput", "More goodput"),
    ("latency", "A shorter mean RTT"),
    ("cpu", "Less CPU time per byte over both ends, with at least 95 % of the goodput"),
];

/// Runs it.
pub fn run(args: &AdviseArgs) -> Result<u8, Failure> {
    let goal = args.goal;
    let options = args.options(goal);
    let spec = advise::spec(&options, goal)?;
    let sysctl = args.write_sysctl.as_deref().map(advise::sysctl_files);
    sysctl.iter().flatten().try_for_each(|path| files::check_writable(path))?;
    let work = Work::Measurement {
        specs: vec1![spec],
        rule: advise::rule(args.least.0, args.budget, args.seed)?,
        schedule: Schedule::Advise(args.plan(goal)),
        login: None,
    };
    let request = args.output.request(RunKind::Advise, args.hosts.of_run(&options), work);
    let (run, code) = measure_run(&request, &args.output, Shape::default())?;
    if let Some(run) = run {
        for (path, text) in sysctl.iter().flatten().zip(report::sysctl_files(&run)) {
            files::write(path, text.as_bytes())?;
        }
    }
    Ok(code)
}

impl AdviseArgs {
    /// The options that the flags give.
    fn options(&self, goal: Goal) -> TestOptions {
        let mut options = self.given.options.clone();
        options.time = Some(self.time.unwrap_or(PILOT));
        options.stall = Some(self.stall);
        if analysis::advice::pattern(goal) == Pattern::Rr {
            options.test = TestKind::Rr;
            options.request = self.block;
        } else {
            options.block = self.block.map(BlockFlag::One);
            options.host_is_ipv6 = self.block.is_none() && self.hosts.is_ipv6(&options);
        }
        self.short_for.add_to(&mut options);
        options
    }

    fn plan(&self, goal: Goal) -> AdvisePlan {
        AdvisePlan {
            goal,
            min_effect: self.least.0,
            allow: advise::classes(&self.allow),
            fixed_block: self.block.is_some(),
            fixed_time: self.time.is_some(),
        }
    }
}
