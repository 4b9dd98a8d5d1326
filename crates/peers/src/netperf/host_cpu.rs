//! CPU time of the whole host, as netperf reports it: percent of all its CPUs.

use peer_wire::netperf::Cpu;

/// Kinds of ticks: user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user.
const KINDS: usize = 8;

/// Ticks since the boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostCpu {
    all: [u64; KINDS],
    /// Each CPU's own, with its number.
    each: Vec<(u32, [u64; KINDS])>,
}

impl HostCpu {
    /// The current ticks; `None` if /proc is not readable.
    pub(super) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// How many CPUs there are.
    pub(super) fn cpus(&self) -> u32 {
        u32::try_from(self.each.len()).unwrap_or(u32::MAX)
    }

    /// The first lines of proc_stat(5): all CPUs together, then each.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map_while(|line| line.strip_prefix("cpu"));
        let all = ticks(lines.next()?.strip_prefix(' ')?)?;
        let one = |line: &str| {
            let (number, rest) = line.split_once(' ')?;
            Some((number.parse().ok()?, ticks(rest)?))
        };
        Some(Self { all, each: lines.filter_map(one).collect() })
    }

    /// Shares of the time since `before`; zeros if no tick has passed.
    pub(super) fn since(&self, before: &Self) -> Cpu {
        let [user, nice, system, _, iowait, irq, softirq, _] = shares(&self.all, &before.all);
        let peak = self.each.iter().filter_map(|(number, now)| {
            let (_, then) = before.each.iter().find(|(other, _)| other == number)?;
            Some((*number, busy(now, then)))
        });
        let (peak, peak_percent) = peak.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or_default();
        Cpu {
            percent: busy(&self.all, &before.all),
            user: user + nice,
            system,
            iowait,
            irq,
            softirq,
            cpus: self.cpus(),
            peak,
            peak_percent,
        }
    }
}

/// A line's numbers; old kernels have fewer, but at least four.
fn ticks(line: &str) -> Option<[u64; KINDS]> {
    let mut ticks = [0; KINDS];
    let mut found = 0;
    for (kind, word) in ticks.iter_mut().zip(line.split_whitespace()) {
        *kind = word.parse().ok()?;
        found += 1;
    }
    (found >= 4).then_some(ticks)
}

/// Each kind's share of the ticks between two readings, percent.
fn shares(now: &[u64; KINDS], before: &[u64; KINDS]) -> [f32; KINDS] {
    let passed: [u64; KINDS] = std::array::from_fn(|kind| now[kind].saturating_sub(before[kind]));
    let all = passed.iter().sum::<u64>().max(1);
    passed.map(|ticks| 100.0 * ticks as f32 / all as f32)
}

/// All but idle and iowait, percent.
fn busy(now: &[u64; KINDS], before: &[u64; KINDS]) -> f32 {
    let [user, nice, system, _, _, irq, softirq, steal] = shares(now, before);
    user + nice + system + irq + softirq + steal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iowait_is_idle_and_the_busiest_has_a_number() {
        let before =
            HostCpu::parse("cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 5 0 5 35 5 0 0 0\ncpu2 5 0 5 35 5 0 0 0").unwrap();
        let after = HostCpu::parse(
            "cpu  20 0 20 130 20 5 5 0 0 0\ncpu0 5 0 5 85 5 0 0 0\ncpu2 15 0 15 45 15 5 5 0\nintr 1\ncpu9 1 1 1 1",
        )
        .unwrap();
        let cpu = after.since(&before);
        assert_eq!((cpu.percent, cpu.user, cpu.system, cpu.iowait), (30.0, 10.0, 10.0, 10.0));
        assert_eq!((cpu.irq, cpu.softirq, cpu.cpus, cpu.peak, cpu.peak_percent), (5.0, 5.0, 2, 2, 60.0));
        let nothing = before.since(&before);
        assert_eq!(nothing, Cpu { cpus: 2, peak: nothing.peak, ..Cpu::default() });
        assert_eq!(HostCpu::parse("intr 1"), None);
        assert_eq!(HostCpu::parse("cpu  1 2 3"), None);
    }
}
