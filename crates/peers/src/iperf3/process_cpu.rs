//! CPU time of this process, as iperf3 reports it: percent of one CPU.

use std::time::Instant;

/// CPU time since it was started.
pub(super) struct ProcessCpu {
    at: Instant,
    ticks: Option<[u64; 2]>,
}

impl ProcessCpu {
    pub(super) fn start() -> Self {
        Self { at: Instant::now(), ticks: ticks() }
    }

    /// Total, user and system; zeros if /proc is not readable. The kernel counts ticks of about 10 ms.
    pub(super) fn percent(&self) -> [f64; 3] {
        let (Some(before), Some(after)) = (self.ticks, ticks()) else { return [0.0; 3] };
        let ticks_in_all = self.at.elapsed().as_secs_f64() * rustix::param::clock_ticks_per_second() as f64;
        let [user, system] =
            [0, 1].map(|at| 100.0 * after[at].saturating_sub(before[at]) as f64 / ticks_in_all.max(1e-9));
        [user + system, user, system]
    }
}

/// User and system ticks of this process (proc_pid_stat(5), fields 14 and 15). Its name may hold blanks and parentheses.
fn ticks() -> Option<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some([fields.next()?.parse().ok()?, fields.next()?.parse().ok()?])
}
