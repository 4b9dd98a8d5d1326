//! `thru transfer`: a fixed amount, as nttcp and rapid do it.

use clap::Args;
use control::coordinator::{Schedule, Unfixed};
use model::RunKind;
use session::draft::{self, SpecDraft, TestKind};
use session::{Failure, Work};

use crate::flags::{self, Bulk, Load, Observing, Output, Peer, Precision, Sockets};
use crate::measure::measure;
use crate::registries;

/// Flags of `thru transfer`.
#[derive(Debug, Args)]
#[command(mut_arg("count", |count| count.help("Number of blocks to transfer, over all flows")))]
#[command(mut_arg("bytes", |bytes| bytes.help("Number of bytes to transfer instead of --count, over all flows")))]
#[command(after_help = concat!(include_str!("../help/transfer.txt"), "\n", include_str!("../help/iperf3.txt")).trim_end())]
pub struct TransferArgs {
    #[command(flatten)]
    peer: Peer,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    bulk: Bulk,

    #[arg(long, value_name = "PROGRAM", help = registries::speak_help("transfer"), value_parser = draft::program,
          help_heading = flags::HOSTS)]
    speak: Option<String>,

    #[command(flatten)]
    sockets: Sockets,
    #[command(flatten)]
    observing: Observing,
    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    output: Output,
}

impl TransferArgs {
    /// The options that the flags give.
    pub fn draft(&self) -> SpecDraft {
        let mut draft = SpecDraft {
            speak: self.speak.clone(),
            host_is_ipv6: self.bulk.sizes_by_family() && self.peer.is_ipv6(),
            stall: Some(self.precision.stall),
            ..SpecDraft::new(TestKind::Transfer)
        };
        self.peer.fill(&mut draft);
        self.load.fill(&mut draft);
        self.bulk.fill(&self.load, &mut draft);
        self.sockets.fill(&mut draft);
        self.observing.fill(&mut draft);
        draft
    }
}

/// Runs it.
pub fn run(args: &TransferArgs) -> Result<u8, Failure> {
    // One trial unless --trials requests more.
    let precision = Precision { trials: args.precision.trials.or(Some(1)), ..args.precision.clone() };
    let work = Work::Measurement {
        specs: vec![Bulk::started_safely(args.draft(), &args.peer)?],
        rule: precision.rule(None),
        schedule: Schedule::Single(Unfixed::default()),
        login: None,
    };
    let request = args.output.request(RunKind::Transfer, args.peer.hosts(), work);
    measure(&request, &args.output, args.bulk.shape())
}
