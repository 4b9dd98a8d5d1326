//! A link as fast as the machine: bytes and rate by the interfaces' counters.

use command::Failure;
use model::{Check, Claim, Trial};

use super::CheckRunner;
use super::claims::{self, TCP_IP};
use super::course::{Sample, rate_between, total};
use super::link::Link;
use super::rate::stream;
use super::samples::{Direction, during};

impl CheckRunner<'_> {
    /// The fastest stream of this machine between two namespaces.
    pub(super) fn unshaped(&mut self) -> Result<(), Failure> {
        let mtus: &[u32] = if self.options.quick { &[1_500] } else { &[1_500, 9_000] };
        for mtu in mtus {
            let path = format!("unshaped, MTU {mtu}");
            self.report(&path);
            let link = Link::unshaped(&self.options.program, *mtu)?;
            let quick = self.options.quick;
            self.attempt(&mut |_| fastest(&link, &path, quick))?;
        }
        Ok(())
    }
}

fn fastest(link: &Link, path: &str, quick: bool) -> Result<Vec<Check>, Failure> {
    // A short stream, for the bytes of a connection beyond its stream.
    let (short, counted, _) = stream(link, &["--time", "20ms"])?;
    let beside = claims::beside(&counted, short.near.bytes_sent);
    // After the warm-up the receiver keeps up with its socket, so that the same bytes arrive and are read at the same time.
    let (time, tolerance) = if quick { ("2500ms", 0.01) } else { ("5500ms", 0.002) };
    let header = link.header(TCP_IP);
    let far = link.lab.host("b")?;
    let ((long, counted, _), samples) =
        during(far, Direction::Received, header, || stream(link, &["--time", time, "--warmup", "500ms"]))?;
    let bytes = claims::bytes(path, &long, &counted, &beside);
    Ok(vec![bytes, rate(path, &long, &samples, beside[1] as f64, tolerance)])
}

/// Rate: the receiver's goodput after the warm-up against the same last bytes by its interface's counter.
fn rate(path: &str, trial: &Trial, samples: &[Sample], beside: f64, tolerance: f64) -> Check {
    let arrivals = trial.far.arrivals();
    let goodput = arrivals.bytes as f64 * 8e9 / arrivals.ns as f64;
    let end = total(samples) - beside;
    let counted = rate_between(samples, end - arrivals.bytes as f64, end);
    let (truth, ns) = counted.unwrap_or((f64::NAN, f64::NAN));
    let note = format!(
        "goodput against the receiving interface's counter, read {} times, over {:.2} s",
        samples.len(),
        ns / 1e9
    );
    Check::judge(Claim::Rate, path, [goodput, truth, truth * tolerance], "bit/s", note)
}

#[cfg(test)]
mod tests {
    use model::tally::Window;
    use model::{EndTally, Ledger};

    use super::*;
    use crate::selftest::claims::Count;

    #[test]
    fn a_rate_is_that_of_the_counter() {
        let measured = Some(Window { bytes: 1_000_000, ns: 1_000_000_000 });
        let far = EndTally { bytes_received: 1_500_000, measured, ..EndTally::default() };
        let trial = Trial {
            cell: 0,
            pass: 0,
            position: 0,
            near: EndTally::default().into(),
            far: far.into(),
            ledger: Ledger::default(),
            value: None,
            verdicts: Vec::new(),
        };
        let at = |ms: u64, bytes| Sample { at_ns: ms * 1_000_000, count: Count { bytes, packets: 0, header: 0 } };
        // 300 bytes beside the stream, half a second of warm-up, then a second.
        let exact = rate("p", &trial, &[at(0, 7), at(500, 500_307), at(1_500, 1_500_307)], 300.0, 0.002);
        assert!(exact.passed && exact.error.abs() < 5e3 && (exact.measured - 8e6).abs() < 1e-6, "{exact:?}");
        assert!(!rate("p", &trial, &[at(0, 7), at(500, 500_307), at(1_490, 1_500_307)], 300.0, 0.002).passed);
        assert!(!rate("p", &trial, &[], 300.0, 0.5).passed);
    }
}
