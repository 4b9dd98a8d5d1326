//! Paced senders on an unshaped link: their rate and their bursts by the sending interface's counter.

use model::{Check, Claim, Run, Trial};

use super::CheckRunner;
use super::claims::{TCP_IP, UDP_IP};
use super::course::{Course, Sample, burst};
use super::link::Link;
use super::samples::{Direction, during};
use crate::Failure;
use crate::own::failure_of;

const MBIT: f64 = 1e6;
/// Largest error of the mean rate, as a share.
const RATE_SHARE: f64 = 0.005;
/// Largest median difference of the time between two sends from the requested one, ns.
const SPREAD_NS: f64 = 100_000.0;
/// Datagrams that may leave before they are due: the first of a schedule, and one that a reading splits from its predecessor.
const AHEAD: f64 = 2.0;

/// A paced sender.
struct Sender {
    path: &'static str,
    flags: &'static [&'static str],
    mbit: f64,
    /// Bytes of one send.
    block: f64,
    /// Headers of a packet without Ethernet's.
    beyond: u64,
}

const SENDERS: [Sender; 3] = [
    Sender {
        path: "udp, 100 Mbit/s",
        flags: &["--transport", "udp", "--rate", "100Mbit", "--block", "1472"],
        mbit: 100.0,
        block: 1_472.0,
        beyond: UDP_IP,
    },
    Sender {
        path: "udp, 10 Mbit/s",
        flags: &["--transport", "udp", "--rate", "10Mbit", "--block", "1472"],
        mbit: 10.0,
        block: 1_472.0,
        beyond: UDP_IP,
    },
    Sender {
        path: "tcp, 1000 Mbit/s",
        flags: &["--rate", "1Gbit", "--block", "131072"],
        mbit: 1_000.0,
        block: 131_072.0,
        beyond: TCP_IP,
    },
];

impl CheckRunner<'_> {
    /// Each sender.
    pub(super) fn pacing(&mut self) -> Result<(), Failure> {
        let link = Link::unshaped(&self.options.program, 1_500)?;
        let (time, count) = if self.options.quick { ("1500ms", 1) } else { ("3s", SENDERS.len()) };
        for sender in &SENDERS[..count] {
            self.report(&format!("pacing, {}", sender.path));
            self.attempt(&mut |_| {
                let flags = [&["stream", "--time", time], sender.flags].concat();
                let header = link.header(sender.beyond);
                let near = link.lab.host("a")?;
                let (run, samples) = during(near, Direction::Sent, header, || link.measure(&flags))?;
                checks(sender, &run, &samples)
            })?;
        }
        Ok(())
    }
}

fn checks(sender: &Sender, run: &Run, samples: &[Sample]) -> Result<Vec<Check>, Failure> {
    let trial = run.outcomes.first().and_then(|outcome| outcome.trials.first());
    let trial = trial.ok_or_else(|| failure_of("measure a paced stream", std::io::Error::other("no trial")))?;
    let mut checks = vec![mean(sender, trial, Course::of(samples))];
    // A TCP sender's blocks are cut into segments, which do not leave one by one.
    if sender.beyond == UDP_IP {
        checks.extend([spread(sender, trial), ahead(sender, samples)]);
    }
    Ok(checks)
}

/// The mean rate by the counter: what followed the first block, over the time from the first to the last.
fn mean(sender: &Sender, trial: &Trial, course: Option<Course>) -> Check {
    let truth = sender.mbit * MBIT;
    let beside = course.map_or(0.0, |course| course.bytes - trial.near.bytes_sent as f64);
    let measured = course.map_or(f64::NAN, |course| course.rate(beside, sender.block));
    let own = trial.near.sends();
    let note = format!(
        "by the sending interface's counter; thru's own figure is {:.3} Mbit/s",
        own.bytes as f64 * 8e9 / own.ns as f64 / MBIT
    );
    let path = format!("{}, mean by the interface", sender.path);
    Check::judge(Claim::Pacing, &path, [measured, truth, truth * RATE_SHARE], "bit/s", note)
}

/// The times between two sends, by the sender's clock.
fn spread(sender: &Sender, trial: &Trial) -> Check {
    let pacing = trial.near.pacing;
    let measured = pacing.map_or(f64::NAN, |pacing| pacing.p50_ns as f64);
    let note = pacing.map_or_else(String::new, |pacing| {
        let high = pacing.p99_ns.map_or_else(|| "unknown".to_owned(), |ns| format!("{:.0} µs", ns as f64 / 1e3));
        format!("median difference from the requested time between two sends, of {}; p99 {high}", pacing.sends)
    });
    let path = format!("{}, time between two sends", sender.path);
    Check::judge(Claim::Pacing, &path, [measured, 0.0, SPREAD_NS], "ns", note)
}

/// The largest burst by the counter.
fn ahead(sender: &Sender, samples: &[Sample]) -> Check {
    let burst = burst(samples, sender.mbit * MBIT);
    let note = "most bytes before they were due by the requested rate, by the sending interface's counter".to_owned();
    let path = format!("{}, largest burst", sender.path);
    Check::judge(Claim::Pacing, &path, [burst, sender.block, AHEAD * sender.block], "B", note)
}
