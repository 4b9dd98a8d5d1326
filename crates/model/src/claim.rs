//! The ceiling of an outcome's goodput, and its CPU cost.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Text;

/// The highest goodput that a path could carry, as far as its bounds are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Ceiling {
    /// The lowest bound, bit/s of payload; the sum of both directions if both send.
    pub bound_bps: f64,
    /// What sets it.
    pub kind: BoundKind,
    /// The figures that it is computed from, such as `MTU 1500 on 1 Gbit/s`.
    #[serde(flatten)]
    pub reason: Text,
    /// The bounds that are higher, lowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Bound>,
}

/// One bound of a goodput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Bound {
    /// What sets it.
    pub kind: BoundKind,
    /// Bit/s of payload.
    pub bps: f64,
    /// The figures that it is computed from.
    #[serde(flatten)]
    pub reason: Text,
}

/// What bounds a goodput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BoundKind {
    /// An interface's rate less headers and framing.
    Line,
    /// The receiver's window over the shortest round trip.
    Window,
    /// A send buffer of fixed size over the shortest round trip.
    SendBuffer,
    /// The requested rate.
    Rate,
    /// The kernel's pacing of each connection.
    Pacing,
    /// A bottleneck on the path, by the rate at which it passed the trials' payload.
    Path,
}

/// CPU time and cycles of one end in a trial. A figure that the host does not report is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Spent {
    /// CPU time of the worker processes from the start of their threads to the end of the last one, ns
    /// (CLOCK_PROCESS_CPUTIME_ID).
    pub process_ns: u64,
    /// CPU cycles of the measuring threads in the same time, in user space and in the kernel (perf_event_open(2)).
    pub cycles: Option<u64>,
    /// Why there are no cycles; only in the first trial of a cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles_missing: Option<String>,
    /// Busy time of all cores of the host around the trial, ns: user, kernel, hard and soft interrupts of all processes.
    pub host_ns: Option<u64>,
    /// Smallest difference that `host_ns` can show on a core, ns (USER_HZ).
    pub host_resolution_ns: Option<u64>,
    /// Time of all measuring threads together, without the probe's thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<ThreadTime>,
    /// The measuring thread with the most CPU time: it fills a core if its `cpu_ns` is near its `elapsed_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<ThreadTime>,
}

/// How measuring threads spent their time, from their start to their end. In the rest of `elapsed_ns`, after `cpu_ns` and
/// `wait_ns`, they slept: they waited for the other end, for room in a buffer or for data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ThreadTime {
    /// Number of threads.
    pub threads: u32,
    /// From their start to their end, ns, added up.
    pub elapsed_ns: u64,
    /// Time on a core, ns, as the scheduler counted it (CLOCK_THREAD_CPUTIME_ID).
    pub cpu_ns: u64,
    /// Of that, in the kernel, ns: system calls, and packets that were processed within them (getrusage(2), RUSAGE_THREAD).
    /// Most kernels sample this part at each tick of 1 to 10 ms.
    pub system_ns: u64,
    /// Time ready to run but without a core, ns (/proc/self/task/TID/schedstat): the core was used by others or taken by the
    /// hypervisor. Null if the kernel does not report it.
    pub wait_ns: Option<u64>,
    /// Voluntary context switches: the thread went to sleep.
    pub sleeps: u64,
    /// Involuntary context switches: the thread was preempted.
    pub preemptions: u64,
    /// The core of a single thread at its end; null for several threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
}

impl ThreadTime {
    /// The sum of two threads or groups of threads.
    #[must_use]
    pub fn together(self, other: Self) -> Self {
        Self {
            threads: self.threads.saturating_add(other.threads),
            elapsed_ns: self.elapsed_ns.saturating_add(other.elapsed_ns),
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            system_ns: self.system_ns.saturating_add(other.system_ns),
            wait_ns: self.wait_ns.zip(other.wait_ns).map(|(own, other)| own.saturating_add(other)),
            sleeps: self.sleeps.saturating_add(other.sleeps),
            preemptions: self.preemptions.saturating_add(other.preemptions),
            core: None,
        }
    }

    /// The one of two threads with more CPU time.
    #[must_use]
    pub fn busier(self, other: Self) -> Self {
        if other.cpu_ns > self.cpu_ns { other } else { self }
    }
}

/// `merge` of two values, or the one that exists.
fn both<T>(own: Option<T>, other: Option<T>, merge: impl Fn(T, T) -> T) -> Option<T> {
    match (own, other) {
        (Some(own), Some(other)) => Some(merge(own, other)),
        (own, other) => own.or(other),
    }
}

impl Spent {
    /// The sum of two processes of one end.
    #[must_use]
    pub fn together(self, other: Self) -> Self {
        Self {
            process_ns: self.process_ns.saturating_add(other.process_ns),
            cycles: self.cycles.zip(other.cycles).map(|(own, other)| own.saturating_add(other)),
            cycles_missing: self.cycles_missing.or(other.cycles_missing),
            host_ns: self.host_ns.or(other.host_ns),
            host_resolution_ns: self.host_resolution_ns.or(other.host_resolution_ns),
            threads: both(self.threads, other.threads, ThreadTime::together),
            busiest: both(self.busiest, other.busiest, ThreadTime::busier),
        }
    }
}

/// The CPU cost of an outcome at both ends, all trials together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Cost {
    /// The near end.
    pub near: EndCost,
    /// The far end; null for transports with one end.
    pub far: Option<EndCost>,
}

/// The CPU cost of an outcome at one end. Streams have the figures per byte, patterns of round trips those per transaction. A
/// figure that does not apply or was not measured is null. Bytes are payload that this end sent or received.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct EndCost {
    /// CPU seconds of the worker processes per 10^9 bytes (the same figure is ns per byte).
    pub process_s_per_gb: Option<f64>,
    /// CPU seconds of the whole host, interrupts included, per 10^9 bytes.
    pub host_s_per_gb: Option<f64>,
    /// CPU cycles of the measuring threads per byte.
    pub cycles_per_byte: Option<f64>,
    /// CPU time of the worker processes per transaction, ns.
    pub process_ns_per_transaction: Option<f64>,
    /// CPU time of the whole host, interrupts included, per transaction, ns.
    pub host_ns_per_transaction: Option<f64>,
    /// Smallest difference that the host's figures can show on a core in a trial, ns (the kernel's tick).
    pub host_resolution_ns: Option<u64>,
    /// Why there are no cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles_missing: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_an_end_add_up_and_one_without_cycles_leaves_none() {
        let one = Spent { process_ns: 5, cycles: Some(7), host_ns: Some(9), ..Spent::default() };
        let both = one.clone().together(one.clone());
        assert_eq!((both.process_ns, both.cycles, both.host_ns), (10, Some(14), Some(9)));
        let refused = Spent { cycles: None, cycles_missing: Some("refused".into()), ..one.clone() };
        let both = one.together(refused);
        assert_eq!((both.cycles, both.cycles_missing.as_deref()), (None, Some("refused")));
    }

    #[test]
    fn processes_add_up_their_threads_and_keep_the_busiest() {
        let thread = |cpu_ns, wait_ns, core| ThreadTime {
            threads: 1,
            elapsed_ns: 100,
            cpu_ns,
            wait_ns,
            core: Some(core),
            ..ThreadTime::default()
        };
        let spent = |time| Spent { threads: Some(time), busiest: Some(time), ..Spent::default() };
        let sum = spent(thread(60, Some(5), 0)).together(spent(thread(90, Some(1), 3)));
        let threads = sum.threads.unwrap_or_default();
        assert_eq!((threads.threads, threads.elapsed_ns, threads.cpu_ns, threads.wait_ns), (2, 200, 150, Some(6)));
        assert_eq!((threads.core, sum.busiest), (None, Some(thread(90, Some(1), 3))));
        // A part that was not measured leaves none for all.
        let partly = spent(thread(60, Some(5), 0)).together(spent(thread(90, None, 3)));
        assert_eq!(partly.threads.and_then(|threads| threads.wait_ns), None);
        assert_eq!(spent(thread(1, None, 0)).together(Spent::default()).threads, Some(thread(1, None, 0)));
    }
}
