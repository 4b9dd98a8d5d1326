//! Paced senders on an unshaped link: their rate and their bursts by the sending interface's counter.

use command::Failure;
use model::{Check, Claim, Run, Trial};

use super::CheckRunner;
use super::claims::{TCP_IP, UDP_IP, trial};
use super::course::{Sample, burst, rate_between, total};
use super::link::Link;
use super::samples::{Direction, during};
use crate::labs::own::failure_of;

const MBIT: f64 = 1e6;
/// Largest error of the mean rate, as a share.
const RATE_SHARE: f64 = 0.005;
/// Largest median difference of the time between two sends from the requested one, ns.
const SPREAD_NS: f64 = 100_000.0;
/// Of the bytes, those between which the mean is taken: the rest is near the hello and the end.
const FROM_TO: [f64; 2] = [0.1, 0.9];
/// After a delay a sender makes up at this multiple of its rate at most.
const MAKING_UP: f64 = 11.0;
/// Datagrams beyond one that a burst may have.
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
                let flags = [&["stream", "--no-path", "--time", time], sender.flags].concat();
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
    let trial = trial(run).ok_or_else(|| failure_of("measure a paced stream", std::io::Error::other("no trial")))?;
    let mut checks = vec![mean(sender, trial, samples)];
    // A TCP sender's blocks are cut into segments, which do not leave one by one.
    if sender.beyond == UDP_IP {
        checks.extend([spread(sender, trial), ahead(sender, samples)]);
    }
    Ok(checks)
}

/// The mean rate by the counter.
fn mean(sender: &Sender, trial: &Trial, samples: &[Sample]) -> Check {
    let truth = sender.mbit * MBIT;
    let [from, to] = FROM_TO.map(|share| share * total(samples));
    let measured = rate_between(samples, from, to).map_or(f64::NAN, |(rate, _)| rate);
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
    let burst = burst(samples, sender.mbit * MBIT * MAKING_UP);
    let note = "most bytes above 11 times the rate in any period, by the sending interface's counter".to_owned();
    let path = format!("{}, largest burst", sender.path);
    Check::judge(Claim::Pacing, &path, [burst, sender.block, AHEAD * sender.block], "B", note)
}

#[cfg(test)]
mod tests {
    use model::{EndTally, Ledger, PacingTally};

    use super::*;
    use crate::selftest::claims::Count;

    /// A datagram each `ns`, in bytes of payload.
    fn sent(ns: u64) -> Vec<Sample> {
        let at = |number: u64| Sample {
            at_ns: number * ns,
            count: Count { bytes: number * (1_472 + 42), packets: number, header: 42 },
        };
        (0..=1_000).map(at).collect()
    }

    fn trial(p50_ns: u64) -> Trial {
        let pacing = Some(PacingTally { sends: 1_000, p50_ns, p99_ns: None, max_ns: 9, asleep_ns: 0, blocked_ns: 0 });
        Trial {
            cell: 0,
            pass: 0,
            position: 0,
            near: EndTally { pacing, ..EndTally::default() }.into(),
            far: EndTally::default().into(),
            ledger: Ledger::default(),
            value: None,
            verdicts: Vec::new(),
        }
    }

    #[test]
    fn a_sender_is_judged_by_its_mean_its_intervals_and_its_bursts() {
        let (sender, even) = (&SENDERS[0], sent(117_760));
        assert!(mean(sender, &trial(0), &even).passed, "{:?}", mean(sender, &trial(0), &even));
        assert!(!mean(sender, &trial(0), &sent(120_000)).passed && !mean(sender, &trial(0), &[]).passed);
        assert!(spread(sender, &trial(20_000)).passed && !spread(sender, &trial(200_000)).passed);
        let mut bursty = even.clone();
        bursty.iter_mut().skip(500).for_each(|sample| sample.count.bytes += 30_000);
        assert!(ahead(sender, &even).passed && !ahead(sender, &bursty).passed, "{:?}", ahead(sender, &bursty));
    }
}
