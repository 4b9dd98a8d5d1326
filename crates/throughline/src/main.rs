//! `thru`: measures what a network path carries.
#![allow(unreachable_pub, reason = "in a binary nothing is reachable from outside; pub marks what other modules use")]

#[macro_use]
mod console;

mod args;
mod citation;
mod commands;
mod draft;
mod failure;
mod flags;
mod foreign;
mod job;
mod launch;
mod measure;
mod output;
mod password;
mod plan;
mod prepare;
mod registries;
mod scratch;
mod settle;
mod signals;
mod sinks;
mod speaking;
mod spec_args;
mod topology;
mod usage;
mod values;

use std::process::ExitCode;

use clap::FromArgMatches;

use failure::Failure;

/// The version, with the commit that this build came from (build.rs).
pub const VERSION: &str = env!("THRU_VERSION");

fn main() -> ExitCode {
    match run().and_then(|code| console::finish().map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            if !launch::is_repeated(&failure) {
                failure.print();
            }
            ExitCode::from(failure.code())
        }
    }
}

fn run() -> Result<u8, Failure> {
    let args = match args::command().try_get_matches().and_then(|matches| args::Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(error) => return usage::refuse(&error),
    };
    if args.until_input_ends {
        signals::end_with_input();
    }
    control::raise_file_limit();
    commands::run(args)
}
