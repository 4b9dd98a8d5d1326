//! Counts events of this thread and of those that it starts, by perf_event_open(2).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An event that the kernel can count, as type and number of linux/perf_event.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum Event {
    /// PERF_COUNT_HW_CPU_CYCLES.
    Cycles,
    /// PERF_COUNT_SW_TASK_CLOCK, ns on a processor: there on every machine.
    #[cfg(test)]
    TaskClock,
}

impl Event {
    fn kind_and_number(self) -> (u32, u64) {
        match self {
            Self::Cycles => (0, 0),
            #[cfg(test)]
            Self::TaskClock => (1, 1),
        }
    }
}

/// The first published form of struct perf_event_attr (PERF_ATTR_SIZE_VER0, 64 bytes), which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
}

/// Bits of the flags: `disabled`, `inherit`, `exclude_hv`.
const FLAGS: u64 = 1 | (1 << 1) | (1 << 6);
/// PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING.
const FORMAT: u64 = 1 | 2;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
/// PERF_EVENT_IOC_ENABLE and PERF_EVENT_IOC_DISABLE, which take inherited counters along.
const ENABLE: libc::Ioctl = 0x2400;
const DISABLE: libc::Ioctl = 0x2401;

/// A counter that stands still until it is enabled.
pub(in crate::runner) struct Perf(OwnedFd);

impl Perf {
    /// Opens a counter of `event`, in user space and in the kernel, for the calling thread and the threads that it starts from
    /// now on, and theirs.
    pub(in crate::runner) fn open(event: Event) -> io::Result<Self> {
        let (kind, config) = event.kind_and_number();
        let size = size_of::<Attributes>() as u32;
        let attributes = Attributes { kind, size, config, read_format: FORMAT, flags: FLAGS, ..Attributes::default() };
        let (this_thread, any_core, no_group): (libc::pid_t, libc::c_int, libc::c_int) = (0, -1, -1);
        // SAFETY: the pointer is to a live structure whose length stands in it; the kernel only reads it.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(&attributes),
                this_thread,
                any_core,
                no_group,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::c_int::try_from(fd).map_err(io::Error::other)?;
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Lets it count.
    pub(in crate::runner) fn enable(&self) -> io::Result<()> {
        self.control(ENABLE)
    }

    /// Stops it and reads it, threads that have ended included; `None` where it never had the processor's counter. Where it
    /// had to share the counter, the count is scaled up to the whole time.
    pub(in crate::runner) fn finish(&self) -> io::Result<Option<u64>> {
        self.control(DISABLE)?;
        let mut bytes = [0; 24];
        let read = rustix::io::read(&self.0, &mut bytes)?;
        if read != bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (words, _) = bytes.as_chunks::<8>();
        let [count, enabled, running] = [words[0], words[1], words[2]].map(u64::from_ne_bytes);
        Ok(match running {
            0 => None,
            running if running < enabled => Some((count as f64 * (enabled as f64 / running as f64)) as u64),
            _ => Some(count),
        })
    }

    fn control(&self, request: libc::Ioctl) -> io::Result<()> {
        // SAFETY: these requests take a number, not a pointer, and the descriptor is a live counter.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request, 0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_started_after_it_was_opened_are_counted_while_it_is_enabled() {
        let perf = match Perf::open(Event::TaskClock) {
            Ok(perf) => perf,
            Err(error) => {
                println!(
                    "SKIPPED: threads_started_after_it_was_opened_are_counted_while_it_is_enabled: perf_event_open: {error}"
                );
                return;
            }
        };
        assert_eq!(size_of::<Attributes>(), 64);
        let spin = || {
            let start = crate::now_ns();
            while crate::now_ns() - start < 20_000_000 {
                std::hint::spin_loop();
            }
        };
        std::thread::spawn(spin).join().unwrap();
        assert_eq!(perf.finish().unwrap(), None, "it has not been enabled");
        perf.enable().unwrap();
        let begun = crate::now_ns();
        std::thread::spawn(spin).join().unwrap();
        let counted = perf.finish().unwrap().unwrap();
        let elapsed = crate::now_ns() - begun;
        // One thread was counted. The counter's clock goes on while a hypervisor has the core, which CPU time does not count.
        assert!(counted > 0 && counted <= elapsed, "{counted} of {elapsed}");
    }
}
