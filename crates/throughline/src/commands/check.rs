//! `thru check`, which is also `thru HOST`: what a path carries in each direction, and what is wrong with it.

use clap::Args;
use command::failure::{INTERRUPTED, UNREACHED, USAGE};
use command::{Failure, setup};
use control::coordinator::{CurvePlan, Schedule, Unfixed};
use model::{Expectation, Program, RunKind, Stopping};
use options::TestOptions;
use session::{Request, ThisHost, Work};
use text::RateUnit;

use crate::flags::{Given, HostFlags, OfPath, Output};
use crate::measure::measure;
use crate::shape::Shape;

/// The curve with NPtcp: a trial of a size is as long as NetPIPE's.
const CURVE: CurvePlan = CurvePlan {
    adaptive: false,
    leg_ns: Some(100_000_000),
    limit_ns: None,
    ceiling: false,
    anatomy: false,
    check: false,
};

/// Flags of `thru check`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/check.txt").trim_end())]
pub struct CheckArgs {
    #[command(flatten)]
    hosts: HostFlags,
    #[command(flatten)]
    given: Given<OfPath>,

    /// Exit with 10 unless the path is as expected: bounds of out, back (goodput), rtt (without load), bloat (added by a load), loss
    /// and jitter, such as "out>=900M,rtt<=5ms,loss<=0.1%".
    #[arg(long, value_name = "BOUND,...", value_delimiter = ',')]
    expect: Vec<Expectation>,

    #[command(flatten)]
    output: Output,
}

/// Runs it. Where no agent answers, it measures with what does.
pub fn run(args: &CheckArgs) -> Result<u8, Failure> {
    let mut options = args.given.options.clone();
    options.host_is_ipv6 = args.hosts.is_ipv6(&options);
    let unreached = match measured(args, &options) {
        Err(failure) if failure.code() == UNREACHED && options.speak.is_none() && args.hosts.from.is_none() => failure,
        ended => return ended,
    };
    let hosts = args.hosts.of_run(&options);
    if let Some(program) = session::program_at(&hosts)? {
        let host = hosts.host.unwrap_or_default();
        errln!("thru: no agent answers at {host}, but {program} does; `thru serve --invite` there shows more");
        return measured(args, &TestOptions { speak: Some(program), ..options });
    }
    // NPtcp serves one connection and ends, so the look for it is the measurement. A failure after that is the answer.
    match measured(args, &TestOptions { speak: Some(Program::Netpipe), ..options.clone() }) {
        Err(failure) if [UNREACHED, USAGE].contains(&failure.code()) => {}
        ended => return ended,
    }
    let stamp = TestOptions { speak: Some(Program::Stamp), ..options.clone() };
    match measured(args, &stamp) {
        Err(failure) if failure.code() != INTERRUPTED => {}
        ended => return ended,
    }
    errln!("thru: {}", unreached.shown(RateUnit::Bits));
    // Nothing was measured over the path, whatever is known of it.
    conducted(args, &options, Work::Path).map(|_| UNREACHED)
}

fn measured(args: &CheckArgs, options: &TestOptions) -> Result<u8, Failure> {
    let schedule = match options.speak {
        Some(Program::Netpipe) => Schedule::Curve(CURVE),
        _ => Schedule::Sequence(Unfixed { own_time: true, own_budget: true }),
    };
    let work = Work::Measurement {
        specs: plan::check::specs(options, &ThisHost)?,
        rule: Stopping { min_trials: 1, max_trials: 1, seed: setup::clock_seed(), ..Stopping::default() },
        schedule,
        login: None,
    };
    conducted(args, options, work)
}

fn conducted(args: &CheckArgs, options: &TestOptions, work: Work) -> Result<u8, Failure> {
    let request = args.output.request(RunKind::Check, args.hosts.of_run(options), work);
    measure(&Request { expected: args.expect.clone(), ..request }, &args.output, Shape::default())
}
