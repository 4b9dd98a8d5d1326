//! `thru transfer`: a fixed amount, as nttcp and rapid do it.

use clap::Args;
use command::Failure;
use control::coordinator::{Schedule, Unfixed};
use model::RunKind;
use options::TestOptions;
use session::Work;
use vec1::vec1;

use crate::flags::{Bulk, Given, HostFlags, OfTransfer, Output, Precision, ShortFor, bulk};
use crate::measure::measure;

/// Flags of `thru transfer`.
#[derive(Debug, Args)]
#[command(after_help = concat!(include_str!("../help/transfer.txt"), "\n", include_str!("../help/iperf3.txt")).trim_end())]
pub struct TransferArgs {
    #[command(flatten)]
    hosts: HostFlags,
    #[command(flatten)]
    given: Given<OfTransfer>,
    #[command(flatten)]
    short_for: ShortFor,
    #[command(flatten)]
    bulk: Bulk,
    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    output: Output,
}

impl TransferArgs {
    /// The options that the flags give.
    pub fn options(&self) -> TestOptions {
        let mut options = self.given.options.clone();
        self.short_for.add_to(&mut options);
        self.bulk.add_to(&mut options);
        options.host_is_ipv6 = bulk::sizes_by_family(&options) && self.hosts.is_ipv6(&options);
        options
    }
}

/// Runs it.
pub fn run(args: &TransferArgs) -> Result<u8, Failure> {
    // One trial unless --trials requests more.
    let precision = Precision { trials: args.precision.trials.or(Some(1)), ..args.precision.clone() };
    let options = args.options();
    let work = Work::Measurement {
        specs: vec1![bulk::started_safely(options.clone(), &args.hosts)?],
        rule: precision.rule(None),
        schedule: Schedule::Single(Unfixed::default()),
        login: None,
    };
    let request = args.output.request(RunKind::Transfer, args.hosts.of_run(&options), work);
    measure(&request, &args.output, args.bulk.shape())
}
