//! What a leg costs this process: CPU time, and cycles if the kernel counts them.

use std::io;

use model::{Pattern, Spec, Spent};
use perf::{Counter, PerfEvent};
use rustix::time::{ClockId, clock_gettime};

/// Why there are no cycles.
#[derive(Debug, thiserror::Error)]
enum Uncounted {
    #[error("not counted for {0}: the counter would slow its round trips")]
    Slowed(Pattern),
    #[error("this machine has no cycle counter that the kernel can use (most virtual machines have none)")]
    NoCounter,
    #[error("perf_event_open is refused: set kernel.perf_event_paranoid to 1 or less, or run with CAP_PERFMON")]
    Refused,
    #[error("this kernel has no perf_event_open")]
    NoCall,
    #[error("other programs used the processor's cycle counter all the time")]
    Held,
    #[error("perf_event_open: {0}")]
    Failed(io::Error),
}

/// Counts for one trial, from the release of its threads to the end of the last one.
pub(super) struct Meter {
    cycles: Result<Counter, Uncounted>,
    released_ns: u64,
}

impl Meter {
    /// Prepares the counters; called by the thread that starts the measuring threads, before it does.
    ///
    /// Cycles are counted for streams only: the counter is switched at each context switch, which would slow a pattern
    /// that waits for each answer.
    pub(super) fn new(spec: &Spec) -> Self {
        let cycles = if spec.is_stream() {
            Counter::of_thread(PerfEvent::Cycles).map_err(Uncounted::from)
        } else {
            Err(Uncounted::Slowed(spec.pattern))
        };
        Self { cycles, released_ns: 0 }
    }

    /// Starts counting.
    pub(super) fn release(&mut self) {
        let failed = self.cycles.as_ref().ok().and_then(|counter| counter.enable().err());
        if let Some(error) = failed {
            self.cycles = Err(error.into());
        }
        self.released_ns = process_ns();
    }

    /// What has been spent since the release.
    pub(super) fn finish(self) -> Spent {
        let process_ns = process_ns().saturating_sub(self.released_ns);
        let finish = |counter: Counter| counter.disable().and_then(|()| counter.read());
        let counted = self.cycles.and_then(|counter| finish(counter)?.ok_or(Uncounted::Held));
        let (cycles, cycles_missing) = match counted {
            Ok(cycles) => (Some(cycles), None),
            Err(reason) => (None, Some(reason.to_string())),
        };
        Spent { process_ns, cycles, cycles_missing, ..Spent::default() }
    }
}

impl From<io::Error> for Uncounted {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => Self::NoCounter,
            Some(libc::EACCES | libc::EPERM) => Self::Refused,
            Some(libc::ENOSYS) => Self::NoCall,
            _ => Self::Failed(error),
        }
    }
}

/// CPU time of this process so far, ns.
fn process_ns() -> u64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use model::Pattern;

    use super::*;

    #[test]
    fn work_after_the_release_is_counted_and_what_lacks_cycles_says_why() {
        for pattern in [Pattern::Stream, Pattern::Rr] {
            let mut meter = Meter::new(&Spec::new("tcp", pattern));
            meter.release();
            let until = process_ns() + 5_000_000;
            while process_ns() < until {
                std::hint::spin_loop();
            }
            let spent = meter.finish();
            assert!(spent.process_ns >= 5_000_000, "{spent:?}");
            assert_eq!(spent.cycles.is_none(), spent.cycles_missing.is_some(), "{spent:?}");
            assert!(pattern == Pattern::Stream || spent.cycles.is_none(), "{spent:?}");
        }
    }

    #[test]
    fn a_refusal_names_its_remedy() {
        let said = |code| Uncounted::from(io::Error::from_raw_os_error(code)).to_string();
        assert!(said(libc::EACCES).contains("kernel.perf_event_paranoid"));
        assert!(said(libc::ENOENT).contains("no cycle counter"));
        assert!(said(libc::EMFILE).starts_with("perf_event_open: "));
    }
}
