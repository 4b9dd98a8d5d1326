//! `thru rr`: request and response.

use clap::Args;
use command::Failure;
use control::coordinator::{Schedule, Unfixed};
use model::RunKind;
use options::TestOptions;
use plan::specs;
use session::{ThisHost, Work};
use vec1::vec1;

use super::stream::BUDGET;
use crate::flags::{Given, HostFlags, OfRr, Output, Precision, ShortFor};
use crate::measure::measure;
use crate::shape::{Lines, Shape};

/// Flags of `thru rr`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/rr.txt").trim_end())]
pub struct RrArgs {
    #[command(flatten)]
    hosts: HostFlags,
    #[command(flatten)]
    given: Given<OfRr>,
    #[command(flatten)]
    short_for: ShortFor,
    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    output: Output,
}

impl RrArgs {
    /// The options that the flags give.
    pub fn options(&self) -> TestOptions {
        let mut options = self.given.options.clone();
        self.short_for.add_to(&mut options);
        options
    }
}

/// Runs it.
pub fn run(args: &RrArgs) -> Result<u8, Failure> {
    let options = args.options();
    let work = Work::Measurement {
        specs: vec1![specs::one(&options, &ThisHost)?],
        rule: args.precision.rule(Some(BUDGET)),
        schedule: Schedule::Single(Unfixed::default()),
        login: None,
    };
    let request = args.output.request(RunKind::Rr, args.hosts.of_run(&options), work);
    measure(&request, &args.output, Shape { lines: Lines::Sum, ..Shape::default() })
}
