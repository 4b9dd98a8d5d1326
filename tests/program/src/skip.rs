//! What only some machines can do.

use std::process::{Command, Stdio};

use lab::{CrossoverSpec, Lab};

/// Says that a test cannot run here, in the one line that `make test` counts.
pub fn skip(test: &str, missing: &str) {
    println!("SKIPPED: {test}: {}", missing.replace('\n', "; "));
}

/// Two hosts in namespaces, or `None` and the line that says why not.
///
/// # Panics
/// When namespaces can be made, but not this lab.
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

/// Whether this is root, or the line that says that it is not.
#[must_use]
pub fn root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(test, "it needs root");
    }
    root
}

/// Whether a program can be started, or the line that says that it is not there.
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
