//! One-way delays over an asymmetric path. Both hosts have one clock, so the true delays are the configured ones.

use std::time::Duration;

use command::Failure;
use lab::{DirectionSpec, PathCounts};
use model::{Check, Claim, OneWay};

use super::CheckRunner;
use super::claims::trial;
use super::link::Link;

/// Delays there and back.
const DELAYS: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(6)];
/// Largest difference, ns.
const ALLOWED_NS: f64 = 50_000.0;

impl CheckRunner<'_> {
    /// One-way delays by STAMP.
    pub(super) fn one_way(&mut self) -> Result<(), Failure> {
        self.report("one-way delays of 2 ms and 6 ms");
        let still = DirectionSpec::default();
        let [forward, reverse] = DELAYS.map(|delay| DirectionSpec { delay, ..DirectionSpec::default() });
        let time = if self.options.quick { "1500ms" } else { "4s" };
        let baseline = Link::path(&self.options.program, still.clone(), still)?;
        let reflector = baseline.speaking("stamp")?;
        let without = medians(&baseline, time)?;
        drop((reflector, baseline));
        let link = Link::path(&self.options.program, forward, reverse)?;
        let reflector = link.speaking("stamp")?;
        self.attempt(&mut |_| Ok(checks(medians(&link, time)?, without).into()))?;
        drop(reflector);
        Ok(())
    }
}

/// A direction's median delay and the emulator's median lateness in it, ns.
#[derive(Debug, Clone, Copy)]
struct Median {
    delay_ns: f64,
    late_ns: f64,
}

/// Both directions' medians over `link`; NaN if there are none.
fn medians(link: &Link, time: &str) -> Result<[Median; 2], Failure> {
    let first = link.emulator();
    let far = link.far_address()?;
    let run = link.measure_at(&["rr", &far, "--speak", "stamp", "--rate", "200/s", "--time", time])?;
    let last = link.emulator();
    let late = first.zip(last).map(|(first, last)| [0, 1].map(|way| median_lateness(&last[way].since(&first[way]))));
    let [outbound, back] = late.unwrap_or([f64::NAN; 2]);
    let medians = |of: &OneWay| [of.outbound.p50_ns as f64, of.return_trip.p50_ns as f64];
    let delays = trial(&run).and_then(|trial| trial.near.one_way.as_ref()).map_or([f64::NAN; 2], medians);
    Ok([Median { delay_ns: delays[0], late_ns: outbound }, Median { delay_ns: delays[1], late_ns: back }])
}

/// Median lateness of the emulator, ns.
fn median_lateness(counts: &PathCounts) -> f64 {
    counts.late.quantile_ns(0.5).map_or(0.0, |ns| ns as f64)
}

/// Each direction's median, less what it is without delay, both less the emulator's lateness.
fn checks(with: [Median; 2], without: [Median; 2]) -> [Check; 2] {
    [(0, "outbound"), (1, "return")].map(|(way, name)| {
        let truth = DELAYS[way].as_nanos() as f64;
        let own = |median: Median| median.delay_ns - median.late_ns;
        let note = format!(
            "STAMP; both hosts share a clock; minus {:.0} µs without delay and {:.0} µs of emulator lateness",
            own(without[way]) / 1e3,
            with[way].late_ns / 1e3
        );
        let path = format!("emulator, 2 ms and 6 ms, {name} median");
        Check::judge(Claim::OneWay, &path, [own(with[way]) - own(without[way]), truth, ALLOWED_NS], "ns", note)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medians(delays_ns: [f64; 2], late_ns: f64) -> [Median; 2] {
        delays_ns.map(|delay_ns| Median { delay_ns, late_ns })
    }

    #[test]
    fn each_direction_has_its_own_delay_and_without_delays_nothing_passes() {
        let without = medians([50_000.0, 40_000.0], 10_000.0);
        let good = checks(medians([2_070_000.0, 6_060_000.0], 20_000.0), without);
        assert!(good.iter().all(|check| check.passed) && (good[0].error - 10_000.0).abs() < 1e-6, "{good:?}");
        assert!(checks(medians([6e6, 2e6], 0.0), without).iter().all(|check| !check.passed));
        assert!(checks(without, without).iter().all(|check| !check.passed));
        assert!(checks(medians([f64::NAN; 2], 0.0), without).iter().all(|check| !check.passed));
    }
}
