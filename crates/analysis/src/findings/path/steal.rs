//! Steal time: CPU time that a hypervisor gave to other guests.

use model::{CpuUse, Ratio};
use text::{Text, Time, say};

/// Smallest share of all cores' time that is reported.
const SHARE: f64 = 0.01;
/// Fewest stolen ticks: fewer may be rounding on each core.
const TICKS: u64 = 5;

/// The steal time of one host over the passes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stolen {
    /// Steal time, ns over all cores.
    pub steal_ns: u64,
    /// Total time, ns over all cores.
    pub total_ns: u64,
    /// The longest tick of the counters, ns.
    pub resolution_ns: u64,
}

impl Stolen {
    /// Adds the cores of one pass, if they were read.
    pub fn add(&mut self, cpu: Option<&CpuUse>) {
        let Some(cpu) = cpu else { return };
        for core in &cpu.cores {
            let worked = core.user_ns + core.system_ns + core.irq_ns + core.softirq_ns;
            self.steal_ns += core.steal_ns;
            self.total_ns += worked + core.idle_ns + core.steal_ns;
        }
        self.resolution_ns = self.resolution_ns.max(cpu.resolution_ns);
    }
}

pub(super) fn steal(side: &str, stolen: &Stolen) -> Option<Text> {
    let share = stolen.steal_ns as f64 / stolen.total_ns.max(1) as f64;
    (share >= SHARE && stolen.steal_ns >= TICKS * stolen.resolution_ns).then(|| {
        say!(
            "The hypervisor of the {side} end gave {} of its CPU time ({}) to other guests during the run, which affects the \
             figures.",
            Ratio(share),
            Time(stolen.steal_ns as f64)
        )
    })
}
