//! TCP stacks in the kernel. A registration holds for the whole machine, so tests that load them take turns.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};

use crate::skip::{root, skip};

/// Congestion controls that the kernel has, in order.
#[must_use]
pub fn available() -> Vec<String> {
    let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let mut names: Vec<String> = list.split_whitespace().map(str::to_owned).collect();
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
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        skip(test, "no TCP stacks here: the kernel has no BTF");
        return None;
    }
    let lock = File::create(std::env::temp_dir().join("throughline-stacks.lock")).expect("a lock");
    flock(&lock, FlockOperation::LockExclusive).expect("a lock");
    Some(lock)
}
