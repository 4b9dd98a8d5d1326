//! What the calling thread has used, by getrusage(2).

use std::io;

/// Since the thread began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::runner) struct Usage {
    pub(in crate::runner) system_ns: u64,
    pub(in crate::runner) sleeps: u64,
    pub(in crate::runner) preemptions: u64,
}

/// Queries the kernel.
pub(in crate::runner) fn thread_usage() -> io::Result<Usage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one struct rusage into memory that is large enough and zeroed.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every bit pattern is a valid rusage, and the call has filled it.
    let usage = unsafe { usage.assume_init() };
    let number = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
    Ok(Usage {
        system_ns: number(usage.ru_stime.tv_sec) * 1_000_000_000 + number(usage.ru_stime.tv_usec) * 1_000,
        sleeps: number(usage.ru_nvcsw),
        preemptions: number(usage.ru_nivcsw),
    })
}
