//! Facts about processes of this host.

use std::fs;

/// Whether a process runs. One that has ended and whose parent has not noticed does not: process 1 of a container may never notice.
#[must_use]
pub fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    // The state follows the name (proc_pid_stat(5), field 3).
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_none_or(|(_, rest)| !rest.starts_with(['Z', 'X'])))
}
