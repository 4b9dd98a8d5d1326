//! A link as fast as the machine: bytes and rate by the interfaces' counters.

use model::{Check, Claim, Trial};

use super::CheckRunner;
use super::claims::{self, TCP_IP};
use super::course::Course;
use super::link::Link;
use super::rate::stream;
use super::samples::{Direction, during};
use crate::Failure;

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
    let (time, tolerance) = if quick { ("2s", 0.01) } else { ("5s", 0.002) };
    let header = link.header(TCP_IP);
    let far = link.lab.host("b")?;
    let ((long, counted, _), samples) = during(far, Direction::Received, header, || stream(link, &["--time", time]))?;
    let bytes = claims::bytes(path, &long, &counted, &beside);
    Ok(vec![bytes, rate(path, &long, Course::of(&samples), beside[1] as f64, tolerance)])
}

/// Rate: the receiver's goodput against the payload by its interface, over the time in which that counter rose.
fn rate(path: &str, trial: &Trial, course: Option<Course>, beside: f64, tolerance: f64) -> Check {
    let arrivals = trial.far.arrivals();
    let goodput = arrivals.bytes as f64 * 8e9 / arrivals.ns as f64;
    let first = trial.far.bytes_received.saturating_sub(arrivals.bytes) as f64;
    let truth = course.map_or(f64::NAN, |course| course.rate(beside, first));
    let note = course.map_or_else(
        || "the counter did not rise".to_owned(),
        |course| {
            let (seconds, uncertain) = (course.ns / 1e9, course.uncertain_ns / 1e6);
            format!("goodput against the receiving interface's counter over {seconds:.2} s ± {uncertain:.2} ms")
        },
    );
    Check::judge(Claim::Rate, path, [goodput, truth, truth * tolerance], "bit/s", note)
}

#[cfg(test)]
mod tests {
    use model::tally::Window;
    use model::{EndTally, Ledger};

    use super::*;

    #[test]
    fn a_rate_is_that_of_the_counter() {
        let after_first = Some(Window { bytes: 1_000_000, ns: 1_000_000_000 });
        let far = EndTally { bytes_received: 1_002_000, after_first, ..EndTally::default() };
        let trial = Trial {
            cell: 0,
            pass: 0,
            position: 0,
            near: EndTally::default(),
            far,
            ledger: Ledger::default(),
            value: None,
            verdicts: Vec::new(),
        };
        let course = |bytes| Some(Course { bytes, ns: 1e9, uncertain_ns: 5e5, wire_bytes: bytes });
        let exact = rate("p", &trial, course(1_002_300.0), 300.0, 0.002);
        assert!(exact.passed && exact.error.abs() < 1e-6 && exact.note.contains("± 0.50 ms"), "{exact:?}");
        assert!(!rate("p", &trial, course(1_005_300.0), 300.0, 0.002).passed);
        assert!(!rate("p", &trial, None, 300.0, 0.5).passed);
    }
}
