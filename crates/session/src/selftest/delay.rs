//! A path of known delay: round-trip times.

use std::process::{Child, Stdio};
use std::time::Duration;

use lab::{DirectionSpec, PathCounts};
use model::{Check, Claim, RttTally};

use super::CheckRunner;
use super::claims::{median, ping_times};
use super::link::Link;
use crate::Failure;
use crate::own::failure_of;

/// In each direction. Ping prints round trips below 10 ms with two or more decimals.
const DELAY: Duration = Duration::from_millis(4);
/// Largest difference of a round trip from ping's median, and from the kernel's minimum, ns.
const ALLOWED_NS: f64 = 50_000.0;
/// Largest difference between the configured round trip and its effect on ping's median, ns: the emulator's error.
const DELAY_ALLOWED_NS: f64 = 100_000.0;

impl CheckRunner<'_> {
    /// Round trips over an emulated path.
    pub(super) fn delays(&mut self) -> Result<(), Failure> {
        self.report("round trips over 8 ms");
        let baseline = Link::of_delay(&self.options.program, DirectionSpec::default())?;
        let link = Link::of_delay(&self.options.program, DirectionSpec { delay: DELAY, ..DirectionSpec::default() })?;
        self.found.realtime = link.lab.emulator().map(lab::Emulator::realtime).or(self.found.realtime);
        let quick = self.options.quick;
        self.attempt(&mut |attempt| round_trips(&baseline, &link, quick, attempt))
    }
}

/// Round trips by `thru` and, at the same time, by ping, so that load and sleep states of the host affect both.
fn round_trips(baseline: &Link, link: &Link, quick: bool, attempt: u32) -> Result<Vec<Check>, Failure> {
    let baseline_ns = median(&mut pings(ping(baseline, "100")?)?);
    let (time, count) = if quick { ("2s", "200") } else { ("5s", "500") };
    // A spinning end needs no time to wake up, like the kernel, which answers ping. But it needs a core of its own. Without one,
    // blocking is better, so the second attempt blocks.
    let (waits, flags): (&str, &[&str]) = if attempt == 1 { ("spinning", &["--spin"]) } else { ("blocking", &[]) };
    let first = link.lab.emulator().map(lab::Emulator::counts);
    let pinging = ping(link, count)?;
    let run = link.measure(&[&["rr", "--block", "1", "--time", time], flags].concat())?;
    let delayed = median(&mut pings(pinging)?);
    let last = link.lab.emulator().map(lab::Emulator::counts);
    let late_ns: u64 = first.iter().flatten().zip(last.iter().flatten()).filter_map(late).sum();
    let near = run.outcomes.first().and_then(|outcome| outcome.trials.first()).map(|trial| &trial.near);
    let rtt: Option<&RttTally> = near.and_then(|near| near.rtt.as_ref());
    let kernel = near.and_then(|near| near.flows.first()?.socket.min_rtt_ns).map_or(f64::NAN, |ns| ns as f64);
    let of = |pick: fn(&RttTally) -> u64| rtt.map_or(f64::NAN, |rtt| pick(rtt) as f64);
    let check = |claim, path, figures, note| Check::judge(claim, path, figures, "ns", note);
    let added = format!(
        "less {:.0} µs without delay; median lateness {:.0} µs, both directions together",
        baseline_ns / 1e3,
        late_ns as f64 / 1e3
    );
    Ok(vec![
        check(
            Claim::Rtt,
            "emulator, 8 ms, median against ping's",
            [of(|rtt| rtt.p50_ns), delayed, ALLOWED_NS],
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
            [delayed - baseline_ns, 2.0 * DELAY.as_nanos() as f64, DELAY_ALLOWED_NS],
            added,
        ),
    ])
}

/// Median lateness of one direction between two readings, ns; `None` if it carried nothing.
fn late((first, last): (&PathCounts, &PathCounts)) -> Option<u64> {
    last.since(first).late.quantile_ns(0.5)
}

/// Starts ping across a link.
fn ping(link: &Link, count: &str) -> Result<Child, Failure> {
    let mut ping = link.command_on_a("ping")?;
    ping.args(["-n", "-i", "0.01", "-c", count, &link.far_address()?]);
    ping.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(no_ping)
}

/// The round trips of a started ping, ns.
fn pings(ping: Child) -> Result<Vec<f64>, Failure> {
    let output = ping.wait_with_output().map_err(no_ping)?;
    Ok(ping_times(&String::from_utf8_lossy(&output.stdout)))
}

fn no_ping(source: std::io::Error) -> Failure {
    failure_of("run ping (package iputils-ping)", source)
}
