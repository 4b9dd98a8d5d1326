//! `thru`: measures what a network path carries.
//!
//! The program is [`main`]. A program that adds a transport or an observer of its own calls it after that.
#![allow(unreachable_pub, reason = "only main is reachable from outside; pub marks what other modules use")]

#[macro_use]
mod console;

mod args;
mod brief;
mod commands;
mod defaults;
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
use command::{Failure, config_file, host_aliases, signals};
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
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(failure) = habits::of_no_command(&words) {
        return Err(failure);
    }
    let own = words.iter().any(|word| word == UNTIL_INPUT_ENDS);
    // A worker has no command that users know, and perhaps a user who cannot read the file.
    let at = front_door::command_at(&words, &command).and_then(|at| words.get(at)?.to_str());
    let is_hidden = |name| command.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
    let reads = !own && at.is_some_and(|name| !is_hidden(name));
    let file = if reads { config_file::read(&defaults::commands(&command))? } else { None };
    let hosts = file.as_ref().map(|file| file.hosts.clone()).unwrap_or_default();
    let words = front_door::with_command(words, &command, &hosts)?;
    host_aliases::set(hosts);
    if front_door::asks_for_all(&words) {
        return usage::print_all(&mut args::Args::command());
    }
    let command = if words.iter().any(|word| word == "-h") { brief::with_brief_help(command) } else { command };
    let words = if own { words } else { habits::translated(words, &command)? };
    let line = defaults::extended(words, &command, file.as_ref())?;
    let args = match command.try_get_matches_from(line.words).and_then(|matches| args::Args::from_arg_matches(&matches))
    {
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
