//! How long thru's own processes ran, and how long they waited for a core, from /proc/PID/task/TID/schedstat: ns
//! running, ns runnable without a core, and number of time slices (Documentation/scheduler/sched-stats.rst).

use std::collections::BTreeMap;
use std::io;

use super::{ObservedValues, Observer};
use crate::sys::Sys;

const NAMES: [&str; 3] = ["run_ns", "wait_ns", "slices"];
/// Maximum threads read between the first reading and the last, so that a host with many threads takes no longer.
const AT_ONCE: usize = 16;

/// A process of thru, with its name.
pub type Own = (&'static str, u32);

/// Follows the threads of a few processes. A thread that was not there at the first reading counts from 0; one that
/// has ended keeps its last values.
pub(super) struct Sched {
    processes: Vec<Own>,
    threads: BTreeMap<(u32, u32), Thread>,
    started: bool,
    /// Where the next partial reading continues.
    turn: usize,
}

struct Thread {
    name: String,
    first: [u64; 3],
    last: [u64; 3],
}

impl Sched {
    pub(super) fn new(processes: &[Own]) -> Self {
        Self { processes: processes.to_vec(), threads: BTreeMap::new(), started: false, turn: 0 }
    }
}

impl Observer for Sched {
    /// `sched.PROCESS.THREAD.wait_ns` and, over all threads, `sched.PROCESS.wait_ns`.
    fn read(&mut self, sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
        let mut tasks: Vec<(Own, u32)> = Vec::new();
        for own in &self.processes {
            // A process that has ended keeps its last values.
            let found = sys.list(&format!("/proc/{}/task", own.1)).unwrap_or_default();
            tasks.extend(found.iter().filter_map(|task| Some((*own, task.parse().ok()?))));
        }
        let count = if reading.is_whole() { tasks.len() } else { tasks.len().min(AT_ONCE) };
        let mut failed = None;
        for ((process, pid), task) in tasks.iter().cycle().skip(self.turn % tasks.len().max(1)).take(count) {
            let folder = format!("/proc/{pid}/task/{task}");
            let now = match sys.read(&format!("{folder}/schedstat")) {
                Ok(text) => numbers(&text),
                Err(error) => {
                    failed = Some(io::Error::new(error.kind(), format!("{folder}/schedstat: {error}")));
                    continue;
                }
            };
            let Some(now) = now else { continue };
            let first = if self.started { [0; 3] } else { now };
            let new = || {
                let comm = sys.read(&format!("{folder}/comm")).unwrap_or_default();
                Thread { name: format!("{process}.{}", comm.trim()), first, last: now }
            };
            self.threads.entry((*pid, *task)).or_insert_with(new).last = now;
        }
        self.turn = self.turn.wrapping_add(count);
        self.started = true;
        if self.threads.is_empty() {
            return Err(failed.unwrap_or_else(|| io::Error::other("found no thread of thru")));
        }
        if reading.is_whole() {
            self.report(reading);
        }
        Ok(())
    }
}

impl Sched {
    fn report(&self, reading: &mut ObservedValues) {
        let mut sums: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
        for thread in self.threads.values() {
            let process = thread.name.split('.').next().unwrap_or_default();
            for name in [thread.name.as_str(), process] {
                let sum = sums.entry(name).or_default();
                for (sum, (last, first)) in sum.iter_mut().zip(thread.last.iter().zip(thread.first)) {
                    *sum += last.saturating_sub(first);
                }
            }
        }
        for (name, sum) in sums {
            for (of, number) in NAMES.iter().zip(sum) {
                reading.tally(format_args!("sched.{name}.{of}"), number);
            }
        }
    }
}

fn numbers(text: &str) -> Option<[u64; 3]> {
    let fields: Vec<u64> = text.split_ascii_whitespace().map(|field| field.parse().ok()).collect::<Option<_>>()?;
    fields.try_into().ok()
}
