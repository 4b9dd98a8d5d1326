//! A password from the environment or the terminal.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::failure::Failure;

/// The variable that iperf3 reads, too.
const VARIABLE: &str = "IPERF3_PASSWORD";

/// The password of `name`, from IPERF3_PASSWORD, otherwise asked for at the terminal.
///
/// # Errors
/// There is neither.
pub fn of(name: &str) -> Result<String, Failure> {
    match std::env::var(VARIABLE) {
        Ok(password) => Ok(password),
        Err(_) => prompt(name).map_err(|error| {
            Failure::usage(format!("no password for {name}: {error}; set {VARIABLE}, or run at a terminal"))
        }),
    }
}

/// Reads it from the terminal with echo off.
fn prompt(name: &str) -> std::io::Result<String> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let shown = tcgetattr(&terminal)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    write!(terminal, "Password for {name}: ")?;
    tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
    let mut line = String::new();
    let read = BufReader::new(&terminal).read_line(&mut line);
    tcsetattr(&terminal, OptionalActions::Flush, &shown)?;
    writeln!(terminal)?;
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
