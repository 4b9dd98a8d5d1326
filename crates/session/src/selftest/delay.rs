//! A path of known delay: round-trip times, and what `thru` adds to them.

use std::time::Duration;

use command::Failure;
use lab::DirectionSpec;
use model::{Check, Claim, RttTally};

use super::beside::{ALLOWED_NS, Beside, CONFIGURED_NS, DelayedPath, beside_ping, median_ping, waits};
use super::claims::trial;
use super::link::Link;
use super::{CheckRunner, anatomy};

/// In each direction. Ping prints round trips below 10 ms with two or more decimals.
const DELAY: Duration = Duration::from_millis(4);
/// Largest difference between the configured round trip and its effect on ping's median, ns: the emulator's error.
const DELAY_ALLOWED_NS: f64 = 100_000.0;
/// Most that a round trip has beside ping, ns. That of the probe includes a wake-up at each end.
const ADDED_NS: [f64; 2] = [50_000.0, 200_000.0];
/// Most that it has beyond the configured delay, ns: also what the hosts' stacks take.
const BEYOND_NS: [f64; 2] = [100_000.0, 250_000.0];

impl CheckRunner<'_> {
    /// Round trips over an emulated path.
    pub(super) fn delays(&mut self) -> Result<(), Failure> {
        self.report("round trips over 8 ms");
        let still = DirectionSpec::default();
        let direction = DirectionSpec { delay: DELAY, ..DirectionSpec::default() };
        let baseline = Link::path(&self.options.program, still.clone(), still)?;
        let still_ns = median_ping(&baseline, "100")?;
        let still_network_ns = [anatomy::network_part(&baseline, 1)?, anatomy::network_part(&baseline, 2)?];
        drop(baseline);
        let link = Link::path(&self.options.program, direction.clone(), direction)?;
        self.found.realtime = link.lab.emulator().map(lab::Emulator::realtime).or(self.found.realtime);
        let path = DelayedPath { link, still_ns, still_network_ns, quick: self.options.quick };
        self.attempt(&mut |attempt| round_trips(&path, attempt))?;
        self.report("the probe over 8 ms");
        self.attempt(&mut |_| probe(&path))?;
        self.report("the anatomy of a round trip over 8 ms");
        self.attempt(&mut |attempt| anatomy::checks(&path, attempt))
    }
}

fn round_trips(path: &DelayedPath, attempt: u32) -> Result<Vec<Check>, Failure> {
    let (waits, flags) = waits(attempt);
    let measured = beside_ping(path, &[&["rr", "--block", "1"], flags].concat())?;
    let near = trial(&measured.run).map(|trial| &trial.near);
    let rtt: Option<&RttTally> = near.and_then(|near| near.rtt.as_ref());
    let kernel = near.and_then(|near| near.flows.first()?.socket.min_rtt_ns).map_or(f64::NAN, |ns| ns as f64);
    let of = |pick: fn(&RttTally) -> u64| rtt.map_or(f64::NAN, |rtt| pick(rtt) as f64);
    let check = |claim, path, figures, note| Check::judge(claim, path, figures, "ns", note);
    let added = format!(
        "minus {:.0} µs without delay; median lateness {:.0} µs, both directions together",
        measured.still_ns / 1e3,
        measured.late_ns / 1e3
    );
    let mut checks = vec![
        check(
            Claim::Rtt,
            "emulator, 8 ms, median against ping's",
            [of(|rtt| rtt.p50_ns), measured.ping_ns, ALLOWED_NS],
            format!("{waits}; ping ran at the same time, so the emulator's lateness is in both"),
        ),
        check(
            Claim::Rtt,
            "emulator, 8 ms, shortest against TCP_INFO's",
            [of(|rtt| rtt.min_ns), kernel, ALLOWED_NS],
            format!("{waits}; tcpi_min_rtt of the same connection"),
        ),
        check(
            Claim::Delay,
            "emulator, 8 ms, ping's median",
            [measured.ping_ns - measured.still_ns, CONFIGURED_NS, DELAY_ALLOWED_NS],
            added,
        ),
    ];
    checks.extend(added_by("rr", of(|rtt| rtt.p50_ns), &measured, 0, waits));
    Ok(checks)
}

/// The probe beside a stream that is too small to delay it.
fn probe(path: &DelayedPath) -> Result<Vec<Check>, Failure> {
    let flags = ["stream", "--transport", "udp", "--rate", "1Mbit", "--block", "1200", "--probe"];
    let measured = beside_ping(path, &flags)?;
    let probe = trial(&measured.run).and_then(|trial| trial.near.probe.as_ref());
    let median_ns = probe.map_or(f64::NAN, |probe| probe.p50_ns as f64);
    Ok(added_by("probe", median_ns, &measured, 1, "during a udp stream of 1 Mbit/s").into())
}

/// What `thru` adds: its median less ping's, and less the configured delay and what ping takes without one.
fn added_by(name: &str, median_ns: f64, measured: &Beside, which: usize, how: &str) -> [Check; 2] {
    let beside = format!("{how}; median minus ping's median at the same time");
    let still = measured.still_ns / 1e3;
    let beyond = format!("{how}; median minus 8 ms and minus ping's {still:.0} µs without delay");
    let check = |path: &str, added, allowed, note| {
        Check::judge(Claim::Added, &format!("emulator, 8 ms, {name}, {path}"), [added, 0.0, allowed], "ns", note)
    };
    let beyond_ns = median_ns - CONFIGURED_NS - measured.still_ns;
    [
        check("against ping", median_ns - measured.ping_ns, ADDED_NS[which], beside),
        check("beyond the delay", beyond_ns, BEYOND_NS[which], beyond),
    ]
}

#[cfg(test)]
mod tests {
    use model::{Run, RunHeader};

    use super::*;

    #[test]
    fn what_is_added_has_its_sign() {
        let measured =
            Beside { run: Run::new(RunHeader::default()), ping_ns: 8_050_000.0, late_ns: 9.0, still_ns: 20_000.0 };
        let [ping, delay] = added_by("rr", 8_040_000.0, &measured, 0, "spinning");
        assert!(ping.passed && (ping.error + 10_000.0).abs() < 1e-6, "{ping:?}");
        assert!(delay.passed && (delay.error - 20_000.0).abs() < 1e-6, "{delay:?}");
        assert!(added_by("rr", 8_200_000.0, &measured, 0, "").iter().all(|check| !check.passed));
        assert!(added_by("rr", 8_200_000.0, &measured, 1, "").iter().all(|check| check.passed));
        assert!(added_by("probe", f64::NAN, &measured, 1, "").iter().all(|check| !check.passed));
    }
}
