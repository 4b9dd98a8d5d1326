//! TCP stacks in the kernel. A registration affects the whole machine, so tests that load stacks run one at a time.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};

use crate::skip::{root, skip};

/// The loaded stacks of this program, sorted.
#[must_use]
pub fn loaded() -> Vec<String> {
    let mut names = stacks::available();
    names.retain(|name| name.starts_with("bpf_"));
    names.sort();
    names
}

/// The lock of a test that loads stacks; `None`, with a line, without root or kernel support.
///
/// # Panics
/// The lock cannot be made.
#[must_use]
pub fn turn(test: &str) -> Option<File> {
    if !root(test) {
        return None;
    }
    if let Some(missing) = stacks::missing_rights().or_else(stacks::obstacle) {
        skip(test, &format!("no TCP stacks here: {missing}"));
        return None;
    }
    let lock = File::create(std::env::temp_dir().join("throughline-stacks.lock")).expect("a lock");
    flock(&lock, FlockOperation::LockExclusive).expect("a lock");
    Some(lock)
}
