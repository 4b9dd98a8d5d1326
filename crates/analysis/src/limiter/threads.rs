//! How busy the measuring threads of an end were.

use model::{Spec, Strategy};

use super::observations::{Observations, ramp, wall_ns};
use crate::direction::Side;

/// What the busiest measuring thread of an end did, as shares of the trial's time.
pub(super) struct Busy {
    /// On a core.
    pub(super) ran: f64,
    /// Of that, in user space; `None` if only the sum is known.
    pub(super) user: Option<f64>,
    /// Runnable, but waiting for CPU.
    pub(super) waited: f64,
}

impl Busy {
    /// Whether it was slowed by the want of CPU, from 0 to 1. A thread that hardly runs is woken late at times, which limits no bulk
    /// transfer, unless it hardly sleeps either.
    pub(super) fn works(&self) -> f64 {
        ramp(self.ran, 0.03, 0.1).max(self.starves())
    }

    /// Whether others kept it from running nearly all the time, from 0 to 1. A thread that waits for the path or the other end sleeps.
    pub(super) fn starves(&self) -> f64 {
        ramp(self.waited, 0.6, 0.85) * ramp(self.ran, 0.005, 0.02)
    }

    /// Share of the time in which it had work to do.
    pub(super) fn share(&self) -> f64 {
        (self.ran + self.waited).min(1.0)
    }
}

/// The busiest measuring thread of an end; `None` if unknown, or if threads spin and are always busy.
pub(super) fn busiest(observations: &Observations<'_>, side: &Side<'_>) -> Option<Busy> {
    let spent = side.tally.spent.as_ref()?;
    if observations.spec.strategy == Strategy::Spin {
        return None;
    }
    if let Some(thread) = spent.busiest.filter(|thread| thread.elapsed_ns > 0) {
        let part = |ns: u64| ns as f64 / thread.elapsed_ns as f64;
        let ran = part(thread.cpu_ns).min(1.0);
        let user = Some(part(thread.cpu_ns.saturating_sub(thread.system_ns)).min(ran));
        return Some(Busy { ran, user, waited: thread.wait_ns.map_or(0.0, part).min(1.0 - ran) });
    }
    // Older runs: with a single thread its process's time is its own.
    let wall = wall_ns(side);
    let ran = (spent.process_ns as f64 / wall.max(1) as f64).min(1.0);
    (wall > 0 && alone(observations.spec)).then_some(Busy { ran, user: None, waited: 0.0 })
}

/// Whether the CPU time of an end's measuring threads was recorded.
pub(super) fn measured(side: &Side<'_>) -> bool {
    side.tally.spent.is_some()
}

/// Whether an end has one measuring thread.
fn alone(spec: &Spec) -> bool {
    let threads = spec.threads.unwrap_or(spec.flows);
    threads == 1 && spec.processes == 1 && spec.direction != model::Direction::Both && spec.probe.is_none()
}
