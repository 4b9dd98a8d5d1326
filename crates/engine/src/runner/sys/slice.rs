//! How long the calling thread may run before another one is scheduled, by sched_setattr(2).

use std::io;

/// What the kernel calls struct sched_attr, in its first size (linux/sched/types.h).
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const SIZE: u32 = size_of::<Attributes>() as u32;

fn attributes() -> io::Result<Attributes> {
    let mut attributes = Attributes::default();
    // SAFETY: 0 is the calling thread; the kernel writes at most SIZE bytes into the struct, which is that long and of integers alone.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) };
    if got == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

/// Requests time slices of `ns` instead of the kernel's default, from 0.1 to 100 ms. From Linux 6.12 a waking thread
/// with shorter slices preempts one with longer ones at once; its share stays the same, and it needs no privilege.
/// Older kernels ignore it. A thread with a policy other than SCHED_OTHER keeps its own.
pub(in crate::runner) fn request_slices(ns: u64) -> io::Result<()> {
    let now = attributes()?;
    if now.policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    let wanted = Attributes { size: SIZE, runtime_ns: ns, ..now };
    // SAFETY: the kernel reads the `size` bytes of the struct, which outlives the call.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_and_nice_value_stay() {
        let before = attributes().unwrap();
        // The effect depends on the kernel and on what a container permits.
        let _ = request_slices(200_000);
        let after = attributes().unwrap();
        assert_eq!((after.policy, after.nice, after.flags), (before.policy, before.nice, before.flags));
    }
}
