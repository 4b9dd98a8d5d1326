//! `thru token`: secrets that agents and their clients share.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use control::proto::auth::Token;

use session::failure::Failure;

/// Flags of `thru token`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru token new -o thru.token                         a new token, in a file with mode 0600
  thru token new > thru.token                          the same, with the shell's file mode
  thru serve --listen 0.0.0.0 --token-file thru.token  on the far host
  thru curve HOST --token-file thru.token              on this host, with a copy of the file")]
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
        Some(path) => write(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::output(format!(
                "{} exists: use another file name, or delete the file if its token is no longer used",
                path.display()
            )),
            _ => Failure::output(format!("cannot write {}: {error}", path.display())),
        })?,
        None => out!("{}", fresh().map_err(|error| Failure::other(format!("cannot make a token: {error}")))?),
    }
    Ok(0)
}

/// Writes a new token into a new file with mode 0600.
///
/// # Errors
/// When the file exists already, or cannot be written.
pub fn write(path: &Path) -> io::Result<()> {
    let line = fresh()?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(line.as_bytes())
}

fn fresh() -> io::Result<String> {
    Ok(Token::fresh()? + "\n")
}
