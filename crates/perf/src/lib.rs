//! Counters of processor events: of the threads of a trial, and of all activity on a host's cores
//! (perf_event_open(2)).
//!
//! If a counter had to share the processor's with others, its count is scaled up to the whole time.

mod sys;

use std::io;

use sys::{Descriptor, Whose};

/// An event that the kernel can count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PerfEvent {
    /// Cycles of the processor.
    Cycles,
    /// Executed instructions.
    Instructions,
    /// Time on a processor, ns: available on every machine.
    #[cfg(test)]
    TaskClock,
}

impl PerfEvent {
    /// Its type and number in linux/perf_event.h.
    fn kind_and_number(self) -> (u32, u64) {
        match self {
            Self::Cycles => (0, 0),
            Self::Instructions => (0, 1),
            #[cfg(test)]
            Self::TaskClock => (1, 1),
        }
    }
}

/// A counter of one event, in user space and in the kernel.
#[derive(Debug)]
pub struct Counter(Descriptor);

impl Counter {
    /// Opens a counter for the calling thread and the threads that it starts from now on, and theirs. It is stopped
    /// until it is enabled.
    ///
    /// # Errors
    /// The kernel's error: this machine has no such counter, or the process no permission.
    pub fn of_thread(event: PerfEvent) -> io::Result<Self> {
        Descriptor::open(event.kind_and_number(), Whose::ThisThread).map(Self)
    }

    /// Opens a counter for everything that runs on one core, which counts from now on.
    ///
    /// # Errors
    /// As [`of_thread`](Self::of_thread); a whole core needs more privileges.
    pub fn of_core(event: PerfEvent, core: u32) -> io::Result<Self> {
        Descriptor::open(event.kind_and_number(), Whose::Core(core)).map(Self)
    }

    /// Starts counting.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn enable(&self) -> io::Result<()> {
        self.0.enable()
    }

    /// Stops it.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn disable(&self) -> io::Result<()> {
        self.0.disable()
    }

    /// The count so far, threads that have ended included; `None` if it never had the processor's counter.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn read(&self) -> io::Result<Option<u64>> {
        Ok(scaled(self.0.read()?))
    }
}

/// Count, time enabled and time on the processor's counter, as one number.
fn scaled([count, enabled, running]: [u64; 3]) -> Option<u64> {
    match running {
        0 => None,
        running if running < enabled => Some((count as f64 * (enabled as f64 / running as f64)) as u64),
        _ => Some(count),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_count_of_a_part_of_the_time_is_scaled_up_to_the_whole() {
        assert_eq!(scaled([1_000, 40, 10]), Some(4_000));
        assert_eq!(scaled([1_000, 40, 40]), Some(1_000));
        assert_eq!(scaled([0, 40, 0]), None);
    }

    #[test]
    fn threads_started_after_it_was_opened_are_counted_while_it_is_enabled() {
        let counter = match Counter::of_thread(PerfEvent::TaskClock) {
            Ok(counter) => counter,
            Err(error) => {
                println!(
                    "SKIPPED: threads_started_after_it_was_opened_are_counted_while_it_is_enabled: perf_event_open: {error}"
                );
                return;
            }
        };
        let finish = || counter.disable().and_then(|()| counter.read()).unwrap();
        let spin = || {
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
        };
        std::thread::spawn(spin).join().unwrap();
        assert_eq!(finish(), None, "it has not been enabled");
        counter.enable().unwrap();
        let begun = Instant::now();
        std::thread::spawn(spin).join().unwrap();
        let counted = finish().unwrap();
        let elapsed = begun.elapsed().as_nanos() as u64;
        // One thread was counted. The counter's clock goes on while a hypervisor has the core, which CPU time does not count.
        assert!(counted > 0 && counted <= elapsed, "{counted} of {elapsed}");
    }
}
