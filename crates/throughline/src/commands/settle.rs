//! `thru settle`: restores the settings of a process that was killed.

use clap::Args;
use command::Failure;
use options::values::whole;
use session::tuning::settle;

/// Arguments of `thru settle`.
#[derive(Debug, Args)]
pub struct SettleArgs {
    /// The process that changed settings.
    #[arg(value_parser = whole(1..=u32::MAX))]
    owner: u32,
}

/// Waits for the end of the owner and restores the settings that it left.
pub fn run(args: &SettleArgs) -> Result<u8, Failure> {
    settle::run(args.owner)
}
