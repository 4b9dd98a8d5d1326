//! The checks without root: the clock, the loop, and both ends' counts over loopback.

use model::{Check, Claim, Run, Trial};

use super::CheckRunner;
use crate::Failure;
use crate::own::{OwnAgent, measure};

/// Largest cost of a clock read, ns. A clock that costs more needs a system call, not the vDSO.
const CLOCK_ALLOWED_NS: f64 = 500.0;
/// Share of a TCP round trip over loopback that the loop itself may take.
const LOOP_SHARE: f64 = 0.1;
/// Slow enough that a short time without a core does not make a datagram late.
const PACED_BPS: f64 = 10e6;

impl CheckRunner<'_> {
    /// The checks over loopback.
    pub(super) fn local(&mut self) -> Result<(), Failure> {
        self.report("the clock");
        let clock = host::clock_read_cost_ns();
        let note = "an ideal clock read takes no time; this is the smallest error of a sample".to_owned();
        self.keep(Check::judge(Claim::Clock, "one read", [clock, 0.0, CLOCK_ALLOWED_NS], "ns", note));
        let agent = OwnAgent::start(self.thru(), "127.0.0.1")?;
        self.report("round trips over loopback and shared memory");
        let trip = |run: &Run| trial(run).and_then(|trial| trial.near.rtt.as_ref().map(|rtt| rtt.min_ns as f64));
        let once = ["--trials", "1", "--time", "500ms"];
        let memory =
            measure(self.thru(), &[&["rr", "--transport", "shm", "--block", "1", "--spin"], &once[..]].concat())?;
        let tcp = measure(self.thru(), &[&["rr", &agent.target, "--block", "1"], &once[..]].concat())?;
        let (memory, tcp) = (trip(&memory).unwrap_or(f64::NAN), trip(&tcp).unwrap_or(f64::NAN));
        let note = format!("the minimum through shared memory; over loopback TCP it is {:.1} µs", tcp / 1e3);
        self.keep(Check::judge(Claim::Loop, "one round trip", [memory, 0.0, tcp * LOOP_SHARE], "ns", note));
        self.report("bytes over loopback");
        let target = agent.target.as_str();
        let stream = measure(self.thru(), &[&["stream", target], &once[..]].concat())?;
        self.keep(both_ends("tcp over loopback", trial(&stream)));
        let paced = ["stream", target, "--transport", "udp", "--rate", "10Mbit", "--trials", "1", "--time", "2s"];
        let thru = &self.options.program;
        self.attempt(&mut |_| {
            let run = measure(std::process::Command::new(thru), &paced)?;
            Ok(vec![both_ends("udp over loopback", trial(&run)), pace(trial(&run))])
        })
    }
}

fn trial(run: &Run) -> Option<&Trial> {
    run.outcomes.first()?.trials.first()
}

/// The sent bytes against the sum of received, lost and queued ones.
fn both_ends(path: &str, trial: Option<&Trial>) -> Check {
    let ledger = trial.map(|trial| trial.ledger).unwrap_or_default();
    let accounted = ledger.received + ledger.lost + ledger.in_flight;
    let note = format!("received {}, lost {}, in flight {}", ledger.received, ledger.lost, ledger.in_flight);
    let sent = if ledger.sent > 0 { ledger.sent as f64 } else { f64::NAN };
    Check::judge(Claim::Bytes, path, [sent, accounted as f64, 0.0], "B", note)
}

/// The sender's rate against the requested one.
fn pace(trial: Option<&Trial>) -> Check {
    let sent = trial.map_or(f64::NAN, |trial| {
        // There is one interval less than there are datagrams.
        let datagrams = trial.near.datagrams.map_or(0, |datagrams| datagrams.sent);
        let share = datagrams.saturating_sub(1) as f64 / datagrams as f64;
        trial.near.bytes_sent as f64 * share * 8e9 / trial.near.sending_ns as f64
    });
    let note = "the sender's pace over its own time, first to last datagram".to_owned();
    Check::judge(Claim::Rate, "udp paced to 10 Mbit/s", [sent, PACED_BPS, PACED_BPS * 0.005], "bit/s", note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DatagramTally, EndTally, Ledger};

    #[test]
    fn without_a_trial_nothing_passes() {
        assert!(!both_ends("p", None).passed);
        assert!(!pace(None).passed);
    }

    #[test]
    fn a_pace_is_counted_by_its_intervals() {
        // Eleven datagrams of 62,500 bytes, one each 50 ms: ten intervals at 10 Mbit/s.
        let datagrams = Some(DatagramTally { sent: 11, ..DatagramTally::default() });
        let near = EndTally { bytes_sent: 687_500, sending_ns: 500_000_000, datagrams, ..EndTally::default() };
        let trial = Trial {
            cell: 0,
            pass: 0,
            position: 0,
            near,
            far: EndTally::default(),
            ledger: Ledger { sent: 687_500, received: 625_000, lost: 62_500, in_flight: 0, balanced: true },
            value: None,
            verdicts: Vec::new(),
        };
        assert!(pace(Some(&trial)).passed, "{:?}", pace(Some(&trial)));
        assert!(both_ends("p", Some(&trial)).passed);
    }
}
