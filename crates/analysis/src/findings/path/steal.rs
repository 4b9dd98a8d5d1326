//! Time that a hypervisor gave to others.

use model::units::seconds;
use model::{CpuUse, Ratio};

/// Share of all cores' time that is worth a sentence.
const SHARE: f64 = 0.01;
/// Ticks that must have been taken: fewer may be one tick's rounding on each core.
const TICKS: u64 = 5;

/// What a hypervisor took from one host, over the passes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stolen {
    /// Taken, ns over all cores.
    pub steal_ns: u64,
    /// All time, ns over all cores.
    pub total_ns: u64,
    /// The longest tick that it was counted in, ns.
    pub resolution_ns: u64,
}

impl Stolen {
    /// Adds one pass's cores; nothing where they were not read.
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

pub(super) fn steal(side: &str, stolen: &Stolen) -> Option<String> {
    let share = stolen.steal_ns as f64 / stolen.total_ns.max(1) as f64;
    (share >= SHARE && stolen.steal_ns >= TICKS * stolen.resolution_ns).then(|| {
        format!(
            "The hypervisor of the {side} end gave {} of its cores' time ({}) to other guests during the passes, so that the \
             figures measure the neighbours as well.",
            Ratio(share),
            seconds(stolen.steal_ns as f64)
        )
    })
}
