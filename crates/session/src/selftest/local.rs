//! The checks without root: the clock, the loop, and both ends' counts over loopback.

use command::Failure;
use model::{BitRate, ByteSize, Check, Claim, Nanos, Run, Trial};

use super::CheckRunner;
use super::claims::trial;
use super::within::measure;
use options::{TestKind, TestOptions};
use serving::LoopbackAgent;

/// Largest cost of a clock read, ns. A clock that costs more needs a system call, not the vDSO.
const CLOCK_ALLOWED_NS: f64 = 500.0;
/// Share of a TCP round trip over loopback that the loop itself may take.
const LOOP_SHARE: f64 = 0.1;
/// Slow enough that a short time without a core does not make a datagram late.
const PACED_BPS: u64 = 10_000_000;
/// Largest error of the pace, as a share.
const PACE_SHARE: f64 = 0.005;

impl CheckRunner<'_> {
    /// The checks over loopback.
    pub(super) fn local(&mut self) -> Result<(), Failure> {
        self.report("the clock");
        let clock = host::clock_read_cost_ns();
        let note = "an ideal clock read takes no time; this is the smallest error of a sample".to_owned();
        self.keep(Check::judge(Claim::Clock, "one read", [clock, 0.0, CLOCK_ALLOWED_NS], "ns", note));
        let agent = LoopbackAgent::start()?;
        let (target, exit) = (Some(agent.target.as_str()), self.options.exit);
        self.report("round trips over loopback and shared memory");
        let memory = shortest(&measure(&round_trips("shm", true), None, exit)?);
        let tcp = shortest(&measure(&round_trips("tcp", false), target, exit)?);
        let note = format!("the minimum through shared memory; over loopback TCP it is {:.1} µs", tcp / 1e3);
        self.keep(Check::judge(Claim::Loop, "one round trip", [memory, 0.0, tcp * LOOP_SHARE], "ns", note));
        self.report("bytes over loopback");
        let stream = measure(&TestOptions { time: HALF_SECOND, ..TestOptions::new(TestKind::Stream) }, target, exit)?;
        self.keep(both_ends("tcp over loopback", trial(&stream)));
        self.attempt(&mut |_| {
            let run = measure(&paced(), target, exit)?;
            Ok(vec![both_ends("udp over loopback", trial(&run)), pace(trial(&run))])
        })
    }
}

/// Length of a short trial.
const HALF_SECOND: Option<Nanos> = Some(Nanos(500_000_000));

/// Round trips of one byte.
fn round_trips(transport: &str, spin: bool) -> TestOptions {
    TestOptions {
        transport: Some(transport.into()),
        request: Some(ByteSize(1)),
        spin,
        time: HALF_SECOND,
        ..TestOptions::new(TestKind::Rr)
    }
}

/// Datagrams at a rate.
fn paced() -> TestOptions {
    TestOptions {
        udp: true,
        rate: Some(BitRate(PACED_BPS)),
        time: Some(Nanos(2_000_000_000)),
        ..TestOptions::new(TestKind::Stream)
    }
}

/// The shortest round trip, ns; NaN without one.
fn shortest(run: &Run) -> f64 {
    trial(run).and_then(|trial| trial.near.rtt.as_ref()).map_or(f64::NAN, |rtt| rtt.min_ns as f64)
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
    let requested = PACED_BPS as f64;
    Check::judge(Claim::Rate, "udp paced to 10 Mbit/s", [sent, requested, requested * PACE_SHARE], "bit/s", note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DatagramTally, EndTally, Ledger};
    use plan::specs;

    #[test]
    fn the_options_give_specs_that_loopback_carries() {
        for options in [round_trips("shm", true), round_trips("tcp", false), paced()] {
            let spec = specs::one(&options, &crate::ThisHost).unwrap_or_else(|error| panic!("{error}"));
            assert!(engine::pattern::check(&spec).is_ok(), "{spec:?}");
        }
        assert_eq!(specs::one(&paced(), &crate::ThisHost).map(|spec| spec.rate_bps).ok(), Some(Some(PACED_BPS)));
    }

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
            near: near.into(),
            far: EndTally::default().into(),
            ledger: Ledger { sent: 687_500, received: 625_000, lost: 62_500, in_flight: 0, balanced: true },
            value: None,
            verdicts: Vec::new(),
        };
        assert!(pace(Some(&trial)).passed, "{:?}", pace(Some(&trial)));
        assert!(both_ends("p", Some(&trial)).passed);
    }
}
