//! Links of known rate: bytes and rates.

use command::Failure;
use model::{Check, Trial};

use super::CheckRunner;
use super::claims::{self, Count, trial};
use super::link::{Link, Shaper};
use crate::labs::own::failure_of;

const MBIT: u64 = 1_000_000;
/// Rate in Mbit/s and MTU of each link. Two packets of 9,000 bytes, which TCP sends at once, take 14 ms at 10 Mbit/s: too much for a
/// tolerance of 0.2 % in 5.5 s.
const LINKS: [(u64, u32); 7] =
    [(10, 1_500), (100, 1_500), (100, 9_000), (1_000, 1_500), (1_000, 9_000), (2_500, 1_500), (2_500, 9_000)];

impl CheckRunner<'_> {
    /// Both claims on each kind of link, at each rate and MTU.
    pub(super) fn rates(&mut self) -> Result<(), Failure> {
        let links: &[(u64, u32)] = if self.options.quick { &[(1_000, 1_500)] } else { &LINKS };
        for (shaper, name) in [(Shaper::Tbf, "tbf"), (Shaper::Emulator, "emulator")] {
            for (rate, mtu) in links.iter().copied() {
                let path = format!("{name}, {rate} Mbit/s, MTU {mtu}");
                self.report(&path);
                let link = Link::of_rate(&self.options.program, shaper, rate * MBIT, mtu)?;
                self.found.realtime = link.lab.emulator().map(lab::Emulator::realtime).or(self.found.realtime);
                let quick = self.options.quick;
                self.attempt(&mut |_| both(&link, &path, rate * MBIT, quick))?;
            }
        }
        Ok(())
    }
}

fn both(link: &Link, path: &str, rate_bps: u64, quick: bool) -> Result<Vec<Check>, Failure> {
    // A short stream, for the bytes of a connection beyond its stream.
    let (short, counted, _) = stream(link, &["--time", "20ms"])?;
    let beside = claims::beside(&counted, short.near.bytes_sent);
    // The warm-up is longer than the bucket and slow start.
    let (time, tolerance) = if quick { ("3s", 0.01) } else { ("6500ms", 0.002) };
    let (long, counted, charged) = stream(link, &["--time", time, "--warmup", "1s"])?;
    Ok(vec![claims::bytes(path, &long, &counted, &beside), claims::rate(path, &long, charged, rate_bps, tolerance)])
}

/// A stream over the link: the trial, the payload by each counter, and the bytes that the last one (the shaper) counted.
pub(super) fn stream(link: &Link, flags: &[&str]) -> Result<(Trial, Vec<i64>, u64), Failure> {
    let before = link.counts()?;
    // Probes of the path would be counted, and their number varies. reno fills the queue; cubic's HyStart would leave slow start earlier, because the delay grows.
    let run = link.measure(&[&["stream", "--no-path", "--stall", "10s", "--cc", "reno"], flags].concat())?;
    let after = link.counts()?;
    let trial = trial(&run).cloned();
    let trial = trial.ok_or_else(|| failure_of("measure a stream", std::io::Error::other("no trial")))?;
    let counted = after.iter().zip(&before).map(|(after, before): (&Count, _)| after.payload_since(before)).collect();
    let charged = after.last().zip(before.last()).map_or(0, |(after, before)| after.bytes - before.bytes);
    Ok((trial, counted, charged))
}
