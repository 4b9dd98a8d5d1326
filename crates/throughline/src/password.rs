//! A password from the environment or the terminal.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::failure::Failure;

/// Where iperf3 has its password, too.
const VARIABLE: &str = "IPERF3_PASSWORD";

/// The password of `name`.
pub fn of(name: &str) -> Result<String, Failure> {
    match std::env::var(VARIABLE) {
        Ok(password) => Ok(password),
        Err(_) => ask(name).map_err(|error| {
            Failure::usage(format!("no password for {name}: {error}; give it in {VARIABLE}, or at a terminal"))
        }),
    }
}

/// Asks at the terminal, which does not show what is typed meanwhile.
fn ask(name: &str) -> std::io::Result<String> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let shown = tcgetattr(&terminal)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    write!(terminal, "Password of {name}: ")?;
    tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
    let mut line = String::new();
    let read = BufReader::new(&terminal).read_line(&mut line);
    tcsetattr(&terminal, OptionalActions::Flush, &shown)?;
    writeln!(terminal)?;
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
