//! `thru`: measures what a network path really carries.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the binary: printing is its job")]
#![allow(unreachable_pub, reason = "in a binary nothing is reachable from outside; pub marks what other modules use")]

mod args;
mod citation;
mod commands;
mod failure;
mod flags;
mod foreign;
mod launch;
mod measure;
mod output;
mod password;
mod plan;
mod sinks;
mod speaking;
mod topology;
mod usage;
mod values;
mod words;

use std::process::ExitCode;

use clap::FromArgMatches;

fn main() -> ExitCode {
    let args = match args::command().try_get_matches().and_then(|matches| args::Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(error) => return usage::refuse(&error),
    };
    control::raise_file_limit();
    match commands::run(args) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            if !launch::is_echo(&failure) {
                failure.say();
            }
            ExitCode::from(failure.code())
        }
    }
}
