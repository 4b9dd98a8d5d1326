//! Processor events of all cores, by perf_event_open(2).

use std::io;
use std::mem::size_of;
use std::os::fd::{FromRawFd, OwnedFd};

use super::{ProcessorEvents, Sys};

/// Names, and their numbers among PERF_TYPE_HARDWARE of linux/perf_event.h.
const EVENTS: [(&str, u64); 2] = [("cycles", 0), ("instructions", 1)];
/// The flag `exclude_hv`; a counter that is not `disabled` counts from its opening on.
const FLAGS: u64 = 1 << 6;
/// PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING.
const FORMAT: u64 = 1 | 2;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

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

/// A counter of each event on each core.
pub(super) struct Counting(Vec<(&'static str, OwnedFd)>);

impl Counting {
    /// Opens them on the cores that are online.
    pub(super) fn start(sys: &dyn Sys) -> io::Result<Self> {
        let online = sys.read("/sys/devices/system/cpu/online")?;
        let mut counters = Vec::new();
        for core in cores(&online) {
            for (name, config) in EVENTS {
                counters.push((name, open(core, config)?));
            }
        }
        Ok(Self(counters))
    }
}

impl ProcessorEvents for Counting {
    fn read(&self) -> io::Result<Vec<(&'static str, u64)>> {
        let mut sums = EVENTS.map(|(name, _)| (name, 0));
        for (name, counter) in &self.0 {
            let mut bytes = [0; 24];
            if rustix::io::read(counter, &mut bytes)? != bytes.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let (words, _) = bytes.as_chunks::<8>();
            let [count, enabled, running] = [words[0], words[1], words[2]].map(u64::from_ne_bytes);
            // A counter that had to share the processor's is scaled up to the whole time.
            let scaled = match running {
                0 => return Err(io::Error::other("the processor's counters were taken by others all the time")),
                running if running < enabled => (count as f64 * (enabled as f64 / running as f64)) as u64,
                _ => count,
            };
            sums.iter_mut().filter(|(sum, _)| sum == name).for_each(|(_, sum)| *sum += scaled);
        }
        Ok(sums.to_vec())
    }
}

/// The numbers in a list such as `0-3,6`.
fn cores(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

/// A counter of one event for everything that runs on one core.
fn open(core: u32, config: u64) -> io::Result<OwnedFd> {
    let size = size_of::<Attributes>() as u32;
    let attributes = Attributes { size, config, read_format: FORMAT, flags: FLAGS, ..Attributes::default() };
    let core = libc::c_int::try_from(core).map_err(io::Error::other)?;
    let (any_thread, no_group): (libc::pid_t, libc::c_int) = (-1, -1);
    // SAFETY: the pointer is to a live structure whose length stands in it; the kernel only reads it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(&attributes),
            any_thread,
            core,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = libc::c_int::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::RealSys;

    #[test]
    fn lists_of_cores_have_gaps() {
        assert_eq!(cores("0-3,6\n"), [0, 1, 2, 3, 6]);
        assert_eq!(cores("0\n"), [0]);
    }

    #[test]
    fn events_are_counted_where_the_machine_can_or_refused_with_a_reason() {
        assert_eq!(size_of::<Attributes>(), 64);
        match Counting::start(&RealSys) {
            Ok(counting) => {
                let first = counting.read().unwrap();
                let later = counting.read().unwrap();
                assert!(first.iter().zip(&later).all(|(a, b)| a.0 == b.0 && a.1 < b.1), "{first:?} {later:?}");
            }
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }
}
