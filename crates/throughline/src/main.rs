//! `thru`: measures what a network path really carries.
#![allow(unreachable_pub, reason = "in a binary nothing is reachable from outside; pub marks what other modules use")]

#[macro_use]
mod console;

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
mod scratch;
mod settle;
mod signals;
mod sinks;
mod speaking;
mod topology;
mod values;
mod words;

use std::process::ExitCode;

use clap::Parser;

use failure::Failure;

fn main() -> ExitCode {
    match run().and_then(|code| console::finish().map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            if !launch::is_echo(&failure) {
                failure.say();
            }
            ExitCode::from(failure.code())
        }
    }
}

fn run() -> Result<u8, Failure> {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(told) => {
            // Help and versions are told on standard output.
            let printed = told.print();
            let lost = if told.use_stderr() { Ok(()) } else { printed.or_else(|error| console::failed(&error)) };
            return lost.map(|()| u8::try_from(told.exit_code()).unwrap_or(1));
        }
    };
    if args.until_input_ends {
        signals::end_with_input();
    }
    control::raise_file_limit();
    commands::run(args)
}
