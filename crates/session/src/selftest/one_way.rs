//! One-way delays over an asymmetric path. Both hosts have one clock, so the true delays are the configured ones.

use std::time::Duration;

use lab::{DirectionSpec, PathCounts};
use model::{Check, Claim, OneWay};

use super::CheckRunner;
use super::claims::trial;
use super::link::Link;
use crate::Failure;

/// Delays there and back.
const DELAYS: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(6)];
/// Largest difference, ns.
const ALLOWED_NS: f64 = 50_000.0;

impl CheckRunner<'_> {
    /// One-way delays by STAMP.
    pub(super) fn one_way(&mut self) -> Result<(), Failure> {
        self.report("one-way delays of 2 ms and 6 ms");
        let [forward, reverse] = DELAYS.map(|delay| DirectionSpec { delay, ..DirectionSpec::default() });
        let link = Link::path(&self.options.program, forward, reverse)?;
        let reflector = link.speaking("stamp")?;
        let time = if self.options.quick { "1500ms" } else { "4s" };
        self.attempt(&mut |_| delays(&link, time))?;
        drop(reflector);
        Ok(())
    }
}

fn delays(link: &Link, time: &str) -> Result<Vec<Check>, Failure> {
    let first = link.emulator();
    let far = link.far_address()?;
    let run = link.measure_at(&["rr", &far, "--speak", "stamp", "--rate", "200/s", "--time", time])?;
    let last = link.emulator();
    let late = first.zip(last).map(|(first, last)| [0, 1].map(|way| median_lateness(&last[way].since(&first[way]))));
    let medians = |of: &OneWay| [of.outbound.p50_ns as f64, of.return_trip.p50_ns as f64];
    let medians = trial(&run).and_then(|trial| trial.near.one_way.as_ref()).map_or([f64::NAN; 2], medians);
    Ok(checks(medians, late.unwrap_or([f64::NAN; 2])).into())
}

/// Median lateness of the emulator, ns.
fn median_lateness(counts: &PathCounts) -> f64 {
    counts.late.quantile_ns(0.5).map_or(0.0, |ns| ns as f64)
}

/// Each direction's median, less the emulator's lateness.
fn checks(medians: [f64; 2], late_ns: [f64; 2]) -> [Check; 2] {
    [(0, "outbound"), (1, "return")].map(|(way, name)| {
        let truth = DELAYS[way].as_nanos() as f64;
        let late = late_ns[way] / 1e3;
        let note = format!("STAMP; both hosts have one clock; less {late:.0} µs by which the emulator was late");
        let path = format!("emulator, 2 ms and 6 ms, {name} median");
        Check::judge(Claim::OneWay, &path, [medians[way] - late_ns[way], truth, ALLOWED_NS], "ns", note)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_has_its_own_delay_and_without_delays_nothing_passes() {
        let good = checks([2_030_000.0, 6_020_000.0], [20_000.0, 20_000.0]);
        assert!(good.iter().all(|check| check.passed) && (good[0].error - 10_000.0).abs() < 1e-6, "{good:?}");
        assert!(checks([6e6, 2e6], [0.0; 2]).iter().all(|check| !check.passed));
        assert!(checks([f64::NAN; 2], [0.0; 2]).iter().all(|check| !check.passed));
    }
}
