//! A path that loses and reorders datagrams: the counts against the emulator's.

use std::time::Duration;

use command::Failure;
use lab::{DirectionSpec, PathCounts, Reorder};
use model::{Check, Claim, Trial};

use super::CheckRunner;
use super::claims::trial;
use super::link::Link;
use crate::labs::own::failure_of;

/// Share of the segments that is lost.
const LOSS: f64 = 0.01;
/// Share that is delayed, and by how much: several datagrams overtake each.
const REORDER: Reorder = Reorder { probability: 0.01, by: Duration::from_millis(2) };
/// Propagation delay.
const DELAY: Duration = Duration::from_millis(1);

impl CheckRunner<'_> {
    /// Datagrams over a path with loss, then over one with reordering, so that neither disturbs the other's count.
    pub(super) fn losses(&mut self) -> Result<(), Failure> {
        let lossy = DirectionSpec { loss: LOSS, delay: DELAY, ..DirectionSpec::default() };
        let mixed = DirectionSpec { reorder: REORDER, delay: DELAY, ..DirectionSpec::default() };
        let time = if self.options.quick { "1s" } else { "4s" };
        for (forward, name) in [(lossy, "1 % lost"), (mixed, "1 % reordered")] {
            let path = format!("emulator, {name}, udp 50 Mbit/s");
            self.report(&path);
            let link =
                Link::path(&self.options.program, forward, DirectionSpec { delay: DELAY, ..DirectionSpec::default() })?;
            self.attempt(&mut |_| counted(&link, &path, time))?;
        }
        Ok(())
    }
}

fn counted(link: &Link, path: &str, time: &str) -> Result<Vec<Check>, Failure> {
    let before = counts(link)?;
    let flags = ["stream", "--no-path", "--transport", "udp", "--rate", "50Mbit", "--block", "1200", "--time", time];
    let run = link.measure(&flags)?;
    let since = counts(link)?.since(&before);
    let trial = trial(&run).ok_or_else(|| failure_of("measure datagrams", std::io::Error::other("no trial")))?;
    Ok(vec![lost(path, trial, &since), reordered(path, trial, &since)])
}

/// The emulator's counts of the direction that carries the datagrams.
fn counts(link: &Link) -> Result<PathCounts, Failure> {
    let [forward, _] =
        link.emulator().ok_or_else(|| failure_of("read the emulator", std::io::Error::other("there is none")))?;
    Ok(forward)
}

/// Datagrams on the path that are not the stream's: its hello, its end, and their repetitions. They may be lost or reordered, too,
/// so the two counts may differ by as many.
fn others(trial: &Trial, counts: &PathCounts) -> f64 {
    counts.arrived as f64 - trial.near.datagrams.map_or(f64::NAN, |datagrams| datagrams.sent as f64)
}

fn lost(path: &str, trial: &Trial, counts: &PathCounts) -> Check {
    let sent = trial.near.datagrams.map_or(f64::NAN, |datagrams| datagrams.sent as f64);
    let lost = sent - trial.far.datagrams.map_or(f64::NAN, |datagrams| datagrams.received as f64);
    // A receiver without a core loses datagrams, too; its socket counts them.
    let socket = trial.far.datagrams.map_or(0, |datagrams| datagrams.socket_drops);
    let what = format!("missing sequence numbers, against the emulator's drops and {socket} of the receiver's socket");
    let truth = (counts.dropped() + socket) as f64;
    Check::judge(Claim::Loss, path, [lost, truth, others(trial, counts)], "datagrams", note(trial, counts, &what))
}

fn reordered(path: &str, trial: &Trial, counts: &PathCounts) -> Check {
    let reordered = trial.far.datagrams.map_or(f64::NAN, |datagrams| datagrams.reordered as f64);
    let note = note(trial, counts, "arrivals after a higher number, against the emulator's count by RFC 4737");
    Check::judge(Claim::Reorder, path, [reordered, counts.reordered as f64, others(trial, counts)], "datagrams", note)
}

fn note(trial: &Trial, counts: &PathCounts, what: &str) -> String {
    let sent = trial.near.datagrams.map_or(0, |datagrams| datagrams.sent);
    format!("{what}; {sent} sent, {} other packets on the path", counts.arrived.saturating_sub(sent))
}

#[cfg(test)]
mod tests {
    use model::{DatagramTally, EndTally, Ledger};

    use super::*;

    fn trial(sent: u64, received: u64, reordered: u64) -> Trial {
        let end = |sent, received| EndTally {
            datagrams: Some(DatagramTally { sent, received, reordered, ..DatagramTally::default() }),
            ..EndTally::default()
        };
        Trial {
            cell: 0,
            pass: 0,
            position: 0,
            near: end(sent, 0).into(),
            far: end(0, received).into(),
            ledger: Ledger::default(),
            value: None,
            verdicts: Vec::new(),
        }
    }

    #[test]
    fn drops_of_the_receivers_socket_are_losses() {
        let counts = PathCounts { arrived: 1_000, dropped_loss: 7, ..PathCounts::default() };
        let mut trial = trial(1_000, 990, 0);
        assert!(!lost("p", &trial, &counts).passed);
        trial.far.datagrams.as_mut().unwrap().socket_drops = 3;
        assert!(lost("p", &trial, &counts).passed);
    }

    #[test]
    fn counts_may_differ_by_the_packets_that_are_no_datagrams_of_the_stream() {
        let counts = PathCounts { arrived: 1_002, dropped_loss: 11, reordered: 9, ..PathCounts::default() };
        let check = lost("p", &trial(1_000, 990, 9), &counts);
        assert!(check.passed && (check.error + 1.0).abs() < 1e-9 && (check.allowed - 2.0).abs() < 1e-9, "{check:?}");
        assert!(!lost("p", &trial(1_000, 992, 9), &counts).passed);
        assert!(reordered("p", &trial(1_000, 990, 9), &counts).passed);
        assert!(!reordered("p", &trial(1_000, 990, 6), &counts).passed);
        let exact = PathCounts { arrived: 1_000, ..counts };
        assert!(!lost("p", &trial(1_000, 990, 9), &exact).passed);
    }
}
