//! CPU time of the whole host, as netperf tells it: per cent of all its CPUs.

/// Ticks since the boot: busy ones and all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostCpu([u64; 2]);

impl HostCpu {
    /// As they are now; `None` where /proc tells nothing.
    pub(super) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line of proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let all: u64 = ticks.iter().sum();
        let idle: u64 = ticks.get(3..5)?.iter().sum();
        Some(Self([all - idle, all]))
    }

    /// Per cent of all CPUs since `before`; `None` where no tick has passed.
    pub(super) fn percent_since(self, before: Self) -> Option<f32> {
        let [busy, all] = [0, 1].map(|at| self.0[at].saturating_sub(before.0[at]));
        (all > 0).then(|| 100.0 * busy as f32 / all as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iowait_is_idle() {
        let before = HostCpu::parse("cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 1 2 3").unwrap();
        let after = HostCpu::parse("cpu  20 0 20 130 20 5 5 0 0 0\n").unwrap();
        assert_eq!(after.percent_since(before), Some(30.0));
        assert_eq!(before.percent_since(before), None);
        assert_eq!(HostCpu::parse("intr 1"), None);
    }
}
