//! `thru token`: secrets that agents and their clients share.

use std::io;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use command::{Failure, setup};

/// Flags of `thru token`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/token.txt").trim_end())]
pub struct TokenArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print a new token: 256 random bits from the kernel as 64 hexadecimal digits.
    New {
        /// Write it to a new file with mode 0600 instead of printing it.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Runs it.
pub fn run(args: &TokenArgs) -> Result<u8, Failure> {
    let Action::New { output } = &args.action;
    match output {
        Some(path) => setup::write_token(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::output(format!(
                "{} exists: use another file name, or delete the file if its token is no longer used",
                path.display()
            )),
            _ => Failure::output(format!("cannot write {}: {error}", path.display())),
        })?,
        None => {
            out!("{}", setup::fresh_token().map_err(|error| Failure::other(format!("cannot make a token: {error}")))?);
        }
    }
    Ok(0)
}
