//! Adds the commit to the version, so that a run records its build: `0.1.0 (1a2b3c4d5e6f)`, with a `+` if the tree has uncommitted
//! changes. A build without git, or outside a clone, has the plain version.

use std::process::Command;

fn main() {
    // A change in any crate is another build; without these lines, Cargo checks only this crate.
    println!("cargo::rerun-if-changed=..");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    for kept in ["HEAD", "index"] {
        if let Some(path) = git(&["rev-parse", "--path-format=absolute", "--git-path", kept]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    let built = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    };
    println!("cargo::rustc-env=THRU_VERSION={built}");
}

/// The checked-out commit, if this is a clone of this program and not a folder within another repository.
fn commit() -> Option<String> {
    let prefix = git(&["rev-parse", "--show-prefix"])?;
    if prefix != "crates/command/" {
        return None;
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit}+") })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
