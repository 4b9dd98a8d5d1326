//! Tests that only some machines can run.

use std::process::{Command, Stdio};

use lab::{CrossoverSpec, Lab};

/// Prints that a test is skipped, as the line that `make test` counts.
pub fn skip(test: &str, missing: &str) {
    println!("SKIPPED: {test}: {}", missing.replace('\n', "; "));
}

/// Two hosts in namespaces; `None`, with a line, if that is not possible.
///
/// # Panics
/// Namespaces are possible, but this lab cannot be built.
#[must_use]
pub fn lab(test: &str, spec: &CrossoverSpec) -> Option<Lab> {
    match lab::available() {
        Ok(()) => Some(Lab::crossover(spec).expect("a lab")),
        Err(error) => {
            skip(test, &error.to_string());
            None
        }
    }
}

/// Whether this is root; prints a line if not.
#[must_use]
pub fn root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(test, "it needs root");
    }
    root
}

/// Whether a program can be started; prints a line if not.
#[must_use]
pub fn program(test: &str, program: &str, package: &str) -> bool {
    let mut command = Command::new(program);
    let started = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match started {
        Ok(mut child) => {
            let _ = child.kill();
            let _ = child.wait();
            true
        }
        Err(error) => {
            skip(test, &format!("{program} of the package {package}: {error}"));
            false
        }
    }
}
