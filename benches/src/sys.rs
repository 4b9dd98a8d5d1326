//! The one system call here without a safe wrapper in our dependencies.
#![allow(unsafe_code, reason = "getrusage(2) wants a pointer; see its SAFETY comment")]

use std::io;
use std::mem::MaybeUninit;

/// Resource usage of all reaped descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Processor time, user and system, ns (the kernel gives microseconds).
    pub cpu_ns: u64,
    /// The largest resident set that any one of them had, bytes.
    pub peak_bytes: u64,
}

/// Of this process's descendants (RUSAGE_CHILDREN of getrusage(2)).
pub fn usage_of_children() -> io::Result<Usage> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is to memory of the right type, which the call fills when it returns 0.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        usage.assume_init()
    };
    let ns = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        seconds * 1_000_000_000 + u64::try_from(time.tv_usec).unwrap_or(0) * 1_000
    };
    // ru_maxrss is in KiB.
    let peak_bytes = u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024;
    Ok(Usage { cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime), peak_bytes })
}
