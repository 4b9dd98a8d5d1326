//! Processor time of each core, from /proc/stat.

use std::collections::BTreeMap;
use std::io;

use model::{CoreUse, CpuUse};

use super::ObservedValues;
use super::reading::ValueKind;
use crate::sys::Sys;

const STAT: &str = "/proc/stat";
/// The one source without counters of its own: its differences are in [`CpuUse`].
pub(super) const SOURCE: &str = model::source::CPU.name;

/// Shares of each core's time, for the series.
pub(super) fn read(sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
    let tick_ns = tick_ns(sys);
    let text = reading.file(sys, STAT)?;
    for (core, ticks) in parse(&text)? {
        let busy = ticks.user + ticks.system + ticks.irq + ticks.softirq;
        for (of, ticks) in [("busy", busy), ("softirq", ticks.softirq), ("steal", ticks.steal)] {
            reading.traced(ValueKind::Share, "ratio", format_args!("{SOURCE}.{core}.{of}"), ticks * tick_ns);
        }
    }
    Ok(())
}

/// Records how each core spent its time.
///
/// The kernel counts in steps of USER_HZ (10 ms on nearly every Linux), so a difference smaller than
/// [`CpuUse::resolution_ns`] does not show, and a short interval is coarse.
#[derive(Debug, Clone)]
pub struct CpuObserver {
    started_ns: u64,
    cores: BTreeMap<u32, Ticks>,
}

impl CpuObserver {
    /// Takes the first reading.
    ///
    /// # Errors
    /// When /proc/stat cannot be read or lists no core.
    pub fn start(sys: &dyn Sys) -> io::Result<Self> {
        let cores = cores(sys)?;
        Ok(Self { started_ns: sys.now_ns(), cores })
    }

    /// Takes the second reading; `None` when /proc/stat cannot be read any more.
    ///
    /// A core that was not online at both readings is left out, because its share of the interval is unknown.
    #[must_use]
    pub fn finish(&self, sys: &dyn Sys) -> Option<CpuUse> {
        Some(self.until(&Self::start(sys).ok()?, sys))
    }

    /// The CPU time since the first reading or since the last call, by one reading.
    pub fn lap(&mut self, sys: &dyn Sys) -> Option<CpuUse> {
        let now = Self::start(sys).ok()?;
        let lap = self.until(&now, sys);
        *self = now;
        Some(lap)
    }

    fn until(&self, now: &Self, sys: &dyn Sys) -> CpuUse {
        let resolution_ns = tick_ns(sys);
        let cores = self
            .cores
            .iter()
            .filter_map(|(core, before)| Some(now.cores.get(core)?.since(before, *core, resolution_ns)))
            .collect();
        CpuUse { window_ns: now.started_ns.saturating_sub(self.started_ns), resolution_ns, cores }
    }
}

fn tick_ns(sys: &dyn Sys) -> u64 {
    1_000_000_000 / sys.ticks_per_second().max(1)
}

/// One core's counters since boot, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    user: u64,
    system: u64,
    irq: u64,
    softirq: u64,
    steal: u64,
    idle: u64,
}

impl Ticks {
    /// The fields of a `cpuN` line after its name: user nice system idle iowait irq softirq steal, then guest times that
    /// user and nice already hold (proc_stat(5)). Kernels before 2.6.11 have no steal.
    fn parse(fields: &str) -> Option<Self> {
        let fields: Vec<u64> = fields.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let &[user, nice, system, idle, iowait, irq, softirq, ..] = fields.as_slice() else { return None };
        let steal = fields.get(7).copied().unwrap_or(0);
        Some(Self { user: user + nice, system, irq, softirq, steal, idle: idle + iowait })
    }

    /// The increase since `before`. The kernel may let the idle counters decrease slightly; that counts as 0.
    fn since(&self, before: &Self, core: u32, tick_ns: u64) -> CoreUse {
        let spent = |now: u64, then: u64| now.saturating_sub(then) * tick_ns;
        CoreUse {
            core,
            user_ns: spent(self.user, before.user),
            system_ns: spent(self.system, before.system),
            irq_ns: spent(self.irq, before.irq),
            softirq_ns: spent(self.softirq, before.softirq),
            steal_ns: spent(self.steal, before.steal),
            idle_ns: spent(self.idle, before.idle),
        }
    }
}

/// The counters of every core that is online, by core number.
fn cores(sys: &dyn Sys) -> io::Result<BTreeMap<u32, Ticks>> {
    parse(&super::reading::read(sys, STAT)?)
}

fn parse(text: &str) -> io::Result<BTreeMap<u32, Ticks>> {
    let cores: BTreeMap<u32, Ticks> = text.lines().filter_map(core).collect();
    if cores.is_empty() {
        return Err(io::Error::other(format!("{STAT} lists no core")));
    }
    Ok(cores)
}

/// The core and counters of a `cpuN` line; `None` for any other line, the sum over all cores included.
fn core(line: &str) -> Option<(u32, Ticks)> {
    let (number, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
    Some((number.parse().ok()?, Ticks::parse(fields)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{FakeSys, RealSys};

    /// A host whose /proc/stat is `before` at 1 s, then `after` at 3 s.
    fn observed(before: &str, after: &str) -> Option<CpuUse> {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let stat = root.path().join("proc/stat");
        let sys = FakeSys::new(root.path());
        sys.set_now_ns(1_000_000_000);
        std::fs::write(&stat, before).unwrap();
        let observer = CpuObserver::start(&sys).unwrap();
        sys.set_now_ns(3_000_000_000);
        std::fs::write(&stat, after).unwrap();
        observer.finish(&sys)
    }

    #[test]
    fn each_kind_of_time_goes_to_its_field() {
        let used = observed(
            "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 100 10 50 1000 20 3 7 5 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\nintr 5 6 7\n",
            "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 140 15 80 1080 25 4 47 9 40 5\ncpu1 1 2 3 204 5 6 7 8 0 0\nintr 9 9 9\n",
        )
        .unwrap();
        let ms = 1_000_000;
        let expected = CpuUse {
            window_ns: 2_000_000_000,
            resolution_ns: 10 * ms,
            cores: vec![
                CoreUse {
                    core: 0,
                    user_ns: 450 * ms,
                    system_ns: 300 * ms,
                    irq_ns: 10 * ms,
                    softirq_ns: 400 * ms,
                    steal_ns: 40 * ms,
                    idle_ns: 850 * ms,
                },
                CoreUse { core: 1, idle_ns: 2_000 * ms, ..CoreUse::default() },
            ],
        };
        assert_eq!(used, expected);
    }

    #[test]
    fn each_lap_begins_where_the_last_one_ended() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let sys = FakeSys::new(root.path());
        let at = |second: u64, user: u64| {
            sys.set_now_ns(second * 1_000_000_000);
            std::fs::write(root.path().join("proc/stat"), format!("cpu0 {user} 0 0 0 0 0 0 0 0 0\n")).unwrap();
        };
        at(1, 100);
        let mut observer = CpuObserver::start(&sys).unwrap();
        for (second, user, window_s, busy_ms) in [(2, 150, 1, 500), (4, 160, 2, 100)] {
            at(second, user);
            let lap = observer.lap(&sys).unwrap();
            assert_eq!((lap.window_ns, lap.busy_ns()), (window_s * 1_000_000_000, busy_ms * 1_000_000));
        }
    }

    #[test]
    fn cores_that_appear_or_disappear_are_left_out() {
        let used = observed(
            "cpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\n",
            "cpu0 2 0 0 0 0 0 0 0 0 0\ncpu3 9 0 0 0 0 0 0 0 0 0\n",
        )
        .unwrap();
        assert_eq!(used.cores, [CoreUse { core: 0, user_ns: 10_000_000, ..CoreUse::default() }]);
    }

    #[test]
    fn a_counter_that_steps_back_counts_as_nothing() {
        let used = observed("cpu0 5 0 0 90 10 0 0\n", "cpu0 5 0 0 90 8 0 0\n").unwrap();
        assert_eq!(used.cores, [CoreUse::default()]);
    }

    #[test]
    fn no_second_reading_gives_nothing() {
        assert_eq!(observed("cpu0 5 0 0 90 10 0 0\n", "no cores here\n"), None);
    }

    #[test]
    fn this_host_spends_its_time_on_something() {
        let outer_start = RealSys.now_ns();
        let observer = CpuObserver::start(&RealSys).unwrap();
        let until = RealSys.now_ns() + 300_000_000;
        while RealSys.now_ns() < until {
            std::hint::spin_loop();
        }
        let used = observer.finish(&RealSys).unwrap();
        let outer_ns = RealSys.now_ns() - outer_start;
        assert!(used.window_ns >= 300_000_000 && used.window_ns <= outer_ns && used.resolution_ns > 0);
        let core_time = |core: &CoreUse| {
            core.user_ns + core.system_ns + core.irq_ns + core.softirq_ns + core.steal_ns + core.idle_ns
        };
        let total: u64 = used.cores.iter().map(core_time).sum();
        assert!(total > 0, "{used:?}");
        // No core uses more than the elapsed time, except for rounding each of its counters to ticks; twice that
        // allows for a hypervisor that accounts stolen time late.
        let most = 2 * outer_ns + 12 * used.resolution_ns;
        assert!(used.cores.iter().all(|core| core_time(core) <= most), "{used:?}");
    }
}
