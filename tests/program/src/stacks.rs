//! TCP stacks in the kernel. A registration holds for the whole machine, so tests that load them take turns.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};

use crate::skip::{root, skip};

/// Those of our stacks that the kernel has, in order.
#[must_use]
pub fn loaded() -> Vec<String> {
    let mut names = stacks::available();
    names.retain(|name| name.starts_with("bpf_"));
    names.sort();
    names
}

/// The turn of a test that loads stacks; `None`, and the line that says why, where there is no root or the kernel takes none.
///
/// # Panics
/// When the lock cannot be made.
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
