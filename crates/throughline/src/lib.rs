//! `thru`: measures what a network path carries.
//!
//! The program is [`main`]. A program that adds a transport or an observer of its own calls it after that.
#![allow(unreachable_pub, reason = "only main is reachable from outside; pub marks what other modules use")]

#[macro_use]
mod console;

mod args;
mod brief;
mod commands;
mod flags;
mod front_door;
mod habits;
mod measure;
mod output;
mod registries;
mod shape;
mod sinks;
mod spec_args;
mod usage;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use command::config::UNTIL_INPUT_ENDS;
use command::{Failure, config, signals};
use session::launch;
use text::RateUnit;

/// Runs the command line of this process, and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    match run().and_then(|code| console::finish().map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            if !launch::is_repeated(&failure) {
                console::fail(&failure);
            }
            ExitCode::from(failure.code())
        }
    }
}

fn run() -> Result<u8, Failure> {
    let command = args::command();
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    let names: Vec<String> = shown.map(|one| one.get_name().to_owned()).collect();
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(failure) = habits::of_no_command(&words) {
        return Err(failure);
    }
    let words = front_door::with_command(words, &command)?;
    if front_door::asks_for_all(&words) {
        return usage::print_all(&mut args::Args::command());
    }
    let command = if words.iter().any(|word| word == "-h") { brief::with_brief_help(command) } else { command };
    let own = words.iter().any(|word| word == UNTIL_INPUT_ENDS);
    let line = config::extended(words, &names.iter().map(String::as_str).collect::<Vec<_>>(), own)?;
    let words = if own { line.words } else { habits::translated(line.words, &command)? };
    let args = match command.try_get_matches_from(words).and_then(|matches| args::Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(error) => return usage::refuse(&error, line.file.as_deref()),
    };
    if args.units == "bytes" {
        console::show_rates_in(RateUnit::Bytes);
    }
    control::raise_file_limit();
    let watch_input: fn() = if args.until_input_ends { signals::end_with_input } else { || {} };
    commands::run(args, watch_input)
}
