//! Whether a paced sender offered the rate that was requested, and what kept it from that.

use model::{Direction, Outcome, Spec, Stop, Trial};

use super::ends::senders;
use super::trial::sender_bps;
use super::{Headline, counted};
use crate::stats::mean;

/// A sender that offers less than this part of its rate has not offered it: the rest would hide in no interval.
const OFFERED: f64 = 0.99;

/// A rate that was not offered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shortfall {
    /// What the senders passed to the transport, bit/s, the mean of the trials.
    pub offered_bps: f64,
    /// What was requested, bit/s; of both directions together.
    pub requested_bps: f64,
    /// What kept the sender.
    pub cause: ShortfallCause,
}

/// Why less was sent than requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShortfallCause {
    /// The sender's thread did not run in time.
    Asleep,
    /// A transport without flow control took no more: the sender's processor or its interface.
    Host,
    /// A transport with flow control took no more: the path, or one of its ends.
    Transport,
}

impl ShortfallCause {
    /// The cause as a clause.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Asleep => "the sender's thread got too little CPU time",
            Self::Host => "the sender's host accepted no more",
            Self::Transport => "the path or one of the ends accepted no more",
        }
    }

    /// Whether it says nothing of the path: what was measured is another rate than the requested one.
    #[must_use]
    pub(crate) fn is_of_the_sender(self) -> bool {
        self != Self::Transport
    }
}

/// The shortfall of an outcome's sender; `None` where the rate was offered, or none was requested.
#[must_use]
pub fn shortfall(outcome: &Outcome) -> Option<Shortfall> {
    of_trials(&outcome.spec, &counted(&outcome.trials))
}

/// The same of the trials that count.
pub(super) fn of_trials(spec: &Spec, trials: &[Trial]) -> Option<Shortfall> {
    let streams = Headline::of(spec) == Headline::Goodput && !matches!(spec.stop, Stop::AboutNs(_));
    let requested = spec.rate_bps.filter(|_| streams)?;
    let directions = if spec.direction == Direction::Both { 2.0 } else { 1.0 };
    let requested_bps = directions * requested as f64;
    let rates: Vec<f64> = trials.iter().filter_map(|trial| sender_bps(spec, &trial.near, &trial.far)).collect();
    let offered_bps = mean(&rates)?;
    (offered_bps < OFFERED * requested_bps).then(|| Shortfall {
        offered_bps,
        requested_bps,
        cause: cause(spec, trials),
    })
}

fn cause(spec: &Spec, trials: &[Trial]) -> ShortfallCause {
    let ends = trials.iter().flat_map(|trial| senders(spec, &trial.near, &trial.far));
    let (asleep, blocked) = ends
        .filter_map(|end| end.pacing)
        .fold((0, 0), |(asleep, blocked), one| (asleep + one.asleep_ns, blocked + one.blocked_ns));
    let datagrams =
        trials.iter().any(|trial| senders(spec, &trial.near, &trial.far).iter().any(|end| end.datagrams.is_some()));
    match datagrams {
        _ if asleep > blocked => ShortfallCause::Asleep,
        true => ShortfallCause::Host,
        false => ShortfallCause::Transport,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::testing::trial;
    use crate::outcome::{Context, outcome};
    use model::tally::Window;
    use model::{Cell, DatagramTally, EndTally, PacingTally, Pattern, Stopping, Trust, Verdict};

    const SECOND: u64 = 1_000_000_000;

    /// An outcome of three seconds at `sent` of 50 Mbit/s, of which the sender gave up some for either cause.
    fn made(transport: &str, sent_mbit: u64, asleep_ns: u64, blocked_ns: u64) -> Outcome {
        let spec = Spec { rate_bps: Some(50_000_000), block: 1_000, ..Spec::new(transport, Pattern::Stream) };
        let bytes = sent_mbit * 125_000;
        let pacing = PacingTally { sends: 6_250, p50_ns: 1, p99_ns: None, max_ns: 9, asleep_ns, blocked_ns };
        let datagrams = |tally| Some(tally).filter(|_| transport == "udp");
        let near = EndTally {
            bytes_sent: bytes,
            sending_ns: SECOND,
            before_last: Some(Window { bytes, ns: SECOND }),
            pacing: Some(pacing),
            datagrams: datagrams(DatagramTally { sent: bytes / 1_000, ..DatagramTally::default() }),
            ..EndTally::default()
        };
        let far = EndTally {
            bytes_received: bytes,
            receiving_ns: SECOND,
            calls_received: bytes / 1_000,
            datagrams: datagrams(DatagramTally { received: bytes / 1_000, ..DatagramTally::default() }),
            ..EndTally::default()
        };
        let trials = vec![trial(&spec, near, far); 6];
        outcome(&Cell::new(0, spec), trials, &Stopping::default(), Context::default())
    }

    fn seen(of: &Outcome) -> (Option<ShortfallCause>, bool, Option<Trust>) {
        let cause = shortfall(of).map(|shortfall| shortfall.cause);
        (cause, of.summary.verdicts.contains(&Verdict::RateNotOffered), of.summary.trust)
    }

    #[test]
    fn a_sender_without_a_core_offers_less_and_is_not_trusted() {
        for transport in ["udp", "tcp"] {
            let short = made(transport, 43, SECOND / 7, 0);
            assert_eq!(seen(&short), (Some(ShortfallCause::Asleep), true, Some(Trust::Low)), "{transport}");
            let Shortfall { offered_bps, requested_bps, .. } = shortfall(&short).unwrap();
            assert_eq!((offered_bps, requested_bps), (43e6, 50e6));
            assert_eq!(seen(&made(transport, 50, SECOND / 500, 0)), (None, false, Some(Trust::High)), "{transport}");
        }
    }

    #[test]
    fn a_path_that_pushes_back_is_not_the_senders_fault() {
        assert_eq!(
            seen(&made("tcp", 10, SECOND / 100, SECOND / 2)),
            (Some(ShortfallCause::Transport), false, Some(Trust::High))
        );
        // Datagrams do not feel the path: what takes no more is the host.
        assert_eq!(
            seen(&made("udp", 10, SECOND / 100, SECOND / 2)),
            (Some(ShortfallCause::Host), true, Some(Trust::Low))
        );
    }

    #[test]
    fn without_a_rate_or_with_another_figure_nothing_is_short() {
        let mut of = made("tcp", 43, SECOND, 0);
        of.spec.rate_bps = None;
        assert_eq!(shortfall(&of), None);
        of.spec = Spec { rate_bps: Some(50_000_000), ..Spec::new("tcp", Pattern::Rr) }.into();
        assert_eq!(shortfall(&of), None, "a request waits for the answer before it");
    }

    #[test]
    fn a_rate_holds_for_each_direction() {
        let mut of = made("tcp", 43, SECOND, 0);
        of.spec.direction = Direction::Both;
        of.trials.iter_mut().for_each(|trial| {
            let (near, far) = (EndTally::clone(&trial.near), EndTally::clone(&trial.far));
            trial.near =
                EndTally { bytes_received: far.bytes_received, receiving_ns: far.receiving_ns, ..near.clone() }.into();
            trial.far = EndTally { before_last: near.before_last, pacing: near.pacing, ..far }.into();
        });
        assert_eq!(shortfall(&of).map(|one| (one.offered_bps, one.requested_bps)), Some((86e6, 100e6)));
    }
}
