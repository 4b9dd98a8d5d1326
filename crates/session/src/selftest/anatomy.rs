//! The anatomy of round trips over a path of known delay.

use command::Failure;
use model::stamps::Part;
use model::{AnatomyTally, Check, Claim};

use super::beside::{ALLOWED_NS, Beside, CONFIGURED_NS, DelayedPath, beside_ping, waits};
use super::claims::trial;
use super::link::Link;

/// The network's part against ping and the configured delay, and the sum of all parts.
pub(super) fn checks(path: &DelayedPath, attempt: u32) -> Result<Vec<Check>, Failure> {
    let (waits, flags) = waits(attempt);
    let measured = beside_ping(path, &[&["rr", "--block", "1", "--anatomy"], flags].concat())?;
    let tally = trial(&measured.run).and_then(|trial| trial.near.anatomy.as_ref());
    let still_ns = path.still_network_ns[usize::from(attempt > 1)];
    let mut checks = Vec::from(network(tally, &measured, still_ns, waits));
    checks.push(sum(tally));
    Ok(checks)
}

/// The median of the network's part over a link, with the waits of this attempt.
pub(super) fn network_part(link: &Link, attempt: u32) -> Result<f64, Failure> {
    let (_, flags) = waits(attempt);
    let run = link.measure(&[&["rr", "--block", "1", "--anatomy", "--time", "1s"], flags].concat())?;
    Ok(median_ns(trial(&run).and_then(|trial| trial.near.anatomy.as_ref())))
}

/// The median of the network's part, ns.
fn median_ns(tally: Option<&AnatomyTally>) -> f64 {
    let median = tally.and_then(|tally| tally.parts.network.histogram.quantile(0.5));
    median.map_or(f64::NAN, |ns| ns as f64)
}

fn network(tally: Option<&AnatomyTally>, measured: &Beside, still_ns: f64, waits: &str) -> [Check; 2] {
    let median_ns = median_ns(tally);
    let stamped = tally.map_or(0, |tally| tally.stamped);
    let check = |path, figures, note| Check::judge(Claim::Anatomy, path, figures, "ns", note);
    let still = still_ns / 1e3;
    [
        check(
            "emulator, 8 ms, network's part against ping's median",
            [median_ns - still_ns, measured.ping_ns - measured.still_ns, ALLOWED_NS],
            format!("{waits}; median of {stamped} stamped exchanges; both minus their values without delay"),
        ),
        check(
            "emulator, 8 ms, network's part",
            [median_ns - still_ns, CONFIGURED_NS, ALLOWED_NS],
            format!("{waits}; minus {still:.0} µs, the same part without delay"),
        ),
    ]
}

/// The parts of all exchanges against their round trips.
fn sum(tally: Option<&AnatomyTally>) -> Check {
    let (parts, whole) = tally.filter(|tally| tally.stamped > 0).map_or((f64::NAN, f64::NAN), |tally| {
        let parts: u64 = Part::ALL.into_iter().map(|part| tally.parts.get(part).sum_ns).sum();
        (parts as f64, tally.round_trip.sum_ns as f64)
    });
    let note = "the sum of all parts against the sum of the round trips".to_owned();
    Check::judge(Claim::Anatomy, "emulator, 8 ms, parts added up", [parts, whole, 0.0], "ns", note)
}

#[cfg(test)]
mod tests {
    use model::stamps::Parts;
    use model::{PartTally, Run, RunHeader};

    use super::*;

    fn tally(network_ns: u64, round_trip_ns: u64) -> AnatomyTally {
        let part = |ns| {
            let mut part = PartTally::default();
            part.record(ns);
            part
        };
        let parts = Parts::of(|of| part(if of == Part::Network { network_ns } else { 1_000 }));
        AnatomyTally { stamped: 1, round_trip: part(round_trip_ns), parts, ..AnatomyTally::default() }
    }

    #[test]
    fn parts_add_up_to_the_nanosecond() {
        assert!(sum(Some(&tally(8_000_000, 8_005_000))).passed);
        let off = sum(Some(&tally(8_000_000, 8_005_001)));
        assert!(!off.passed && (off.error + 1.0).abs() < 1e-9, "{off:?}");
        assert!(!sum(None).passed && !sum(Some(&AnatomyTally::default())).passed);
    }

    #[test]
    fn the_networks_part_is_that_of_the_path() {
        let measured =
            Beside { run: Run::new(RunHeader::default()), ping_ns: 8_060_000.0, late_ns: 9.0, still_ns: 30_000.0 };
        let good = network(Some(&tally(8_040_000, 1)), &measured, 30_000.0, "spinning");
        assert!(good.iter().all(|check| check.passed), "{good:?}");
        let slow = network(Some(&tally(8_400_000, 1)), &measured, 30_000.0, "spinning");
        assert!(slow.iter().all(|check| !check.passed), "{slow:?}");
        assert!(network(None, &measured, 30_000.0, "").iter().all(|check| !check.passed));
    }
}
