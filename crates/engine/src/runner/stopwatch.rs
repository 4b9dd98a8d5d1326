//! How one measuring thread used its core: running, runnable, asleep.

use std::fs::File;
use std::os::unix::fs::FileExt;

use model::ThreadTime;
use rustix::time::{ClockId, clock_gettime};

use super::sys::{Usage, thread_usage};
use crate::core::now_ns;

/// Readings of the calling thread; it must stay with the thread that created it.
pub(super) struct Stopwatch {
    /// Time running, time runnable without a core, and time slices (Documentation/scheduler/sched-stats.rst).
    schedstat: Option<File>,
    begun: Reading,
}

#[derive(Default)]
struct Reading {
    at_ns: u64,
    cpu_ns: u64,
    wait_ns: Option<u64>,
    usage: Usage,
}

impl Stopwatch {
    /// Prepares the readings.
    pub(super) fn new() -> Self {
        Self { schedstat: File::open("/proc/thread-self/schedstat").ok(), begun: Reading::default() }
    }

    /// Starts: two system calls and a read.
    pub(super) fn release(&mut self) {
        self.begun = self.read();
    }

    /// The increase since the release.
    pub(super) fn finish(&self) -> ThreadTime {
        let (then, now) = (&self.begun, self.read());
        let core = u32::try_from(rustix::thread::sched_getcpu()).ok();
        let cpu_ns = now.cpu_ns.saturating_sub(then.cpu_ns);
        ThreadTime {
            threads: 1,
            elapsed_ns: now.at_ns.saturating_sub(then.at_ns),
            cpu_ns,
            system_ns: now.usage.system_ns.saturating_sub(then.usage.system_ns).min(cpu_ns),
            wait_ns: now.wait_ns.zip(then.wait_ns).map(|(now, then)| now.saturating_sub(then)),
            sleeps: now.usage.sleeps.saturating_sub(then.usage.sleeps),
            preemptions: now.usage.preemptions.saturating_sub(then.usage.preemptions),
            core,
        }
    }

    fn read(&self) -> Reading {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        Reading {
            at_ns: now_ns(),
            cpu_ns: cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64,
            wait_ns: self.schedstat.as_ref().and_then(waited_ns),
            usage: thread_usage().unwrap_or_default(),
        }
    }
}

/// The second number of the file.
fn waited_ns(file: &File) -> Option<u64> {
    let mut bytes = [0; 96];
    let length = file.read_at(&mut bytes, 0).ok()?;
    std::str::from_utf8(&bytes[..length]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_sleep_are_distinguished() {
        let mut watch = Stopwatch::new();
        watch.release();
        let begun = watch.read().cpu_ns;
        while watch.read().cpu_ns - begun < 10_000_000 {
            std::hint::spin_loop();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        let time = watch.finish();
        assert!(time.cpu_ns >= 10_000_000 && time.sleeps >= 1, "{time:?}");
        assert!(time.elapsed_ns >= time.cpu_ns + 20_000_000, "{time:?}");
        assert!(time.system_ns <= time.cpu_ns && time.threads == 1, "{time:?}");
        assert_eq!(time.wait_ns.is_some(), std::path::Path::new("/proc/thread-self/schedstat").exists());
    }
}
