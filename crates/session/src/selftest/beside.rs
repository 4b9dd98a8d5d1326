//! Round trips beside ping on the same path.

use std::process::{Child, Stdio};

use command::Failure;
use lab::PathCounts;
use model::{Run, median};

use super::claims::ping_times;
use super::link::Link;
use crate::labs::own::failure_of;

/// The configured round trip, ns.
pub(super) const CONFIGURED_NS: f64 = 8e6;
/// Largest difference of a round trip from ping's median, and from the kernel's minimum, ns.
pub(super) const ALLOWED_NS: f64 = 50_000.0;

/// The path of known delay.
pub(super) struct DelayedPath {
    pub(super) link: Link,
    /// Ping's median over the same path without delay, ns: what the hosts' kernels and the emulator take.
    pub(super) still_ns: f64,
    /// The network's part of round trips over the same path without delay, ns, by attempt.
    pub(super) still_network_ns: [f64; 2],
    /// Shorter trials.
    pub(super) quick: bool,
}

/// What was measured at the same time over the path of known delay.
pub(super) struct Beside {
    pub(super) run: Run,
    /// Ping's median, ns.
    pub(super) ping_ns: f64,
    /// Median lateness of the emulator, both directions together, ns.
    pub(super) late_ns: f64,
    /// As of the path.
    pub(super) still_ns: f64,
}

/// A spinning end needs no time to wake up, like the kernel, which answers ping. But it needs a core of its own. Without one, blocking
/// is better, so the second attempt blocks.
pub(super) fn waits(attempt: u32) -> (&'static str, &'static [&'static str]) {
    if attempt == 1 { ("spinning", &["--spin"]) } else { ("blocking", &[]) }
}

/// Measures with `flags` and, at the same time, by ping, so that load and sleep states of the host affect both.
pub(super) fn beside_ping(path: &DelayedPath, flags: &[&str]) -> Result<Beside, Failure> {
    let DelayedPath { link, still_ns, quick, .. } = path;
    let (time, count) = if *quick { ("2s", "200") } else { ("5s", "500") };
    let first = link.emulator();
    let pinging = ping(link, count)?;
    let run = link.measure(&[flags, &["--time", time]].concat())?;
    let ping_ns = median(&pings(pinging)?).unwrap_or(f64::NAN);
    let last = link.emulator();
    let late_ns: u64 = first.iter().flatten().zip(last.iter().flatten()).filter_map(late).sum();
    Ok(Beside { run, ping_ns, late_ns: late_ns as f64, still_ns: *still_ns })
}

/// Ping's median of `count` round trips, ns.
pub(super) fn median_ping(link: &Link, count: &str) -> Result<f64, Failure> {
    Ok(median(&pings(ping(link, count)?)?).unwrap_or(f64::NAN))
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
