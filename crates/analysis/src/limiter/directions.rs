//! What limited each direction of an outcome.

use model::{Outcome, Pass, RunHeader};

use super::notes::unequal_directions;
use super::observations::Observations;
use super::{Recorded, why};
use crate::outcome::direction_outcomes;

/// Sets what limited `outcome`; of payload in both directions, what limited each of them, because they have different senders,
/// receivers and queues. See [`why`] for what follows from what.
pub fn set_why(outcome: &mut Outcome, header: &RunHeader, passes: &[Pass]) {
    let recorded = Recorded::around(outcome, header, passes);
    let each = direction_outcomes(outcome);
    if each.is_empty() {
        outcome.summary.why = why(outcome, &recorded).map(Box::new);
    }
    for ((_, one), (_, summary)) in each.iter().zip(outcome.summary.directions_mut()) {
        summary.why = why(one, &recorded).map(Box::new);
    }
    let difference = unequal_directions(&Observations::new(outcome, &recorded));
    let first = outcome.summary.directions_mut().find_map(|(_, summary)| summary.why.as_mut());
    first.into_iter().for_each(|why| why.notes.extend(difference.clone()));
}

#[cfg(test)]
mod tests {
    use model::{DatagramTally, Direction, FlowTally, LimiterKind, Pattern, Spec, Stopping};

    use super::*;
    use crate::outcome::{Context, outcome, testing};

    /// Six trials with UDP whose requested rate arrives outbound, and of which half is lost on return.
    fn both() -> Outcome {
        let spec = Spec {
            direction: Direction::Both,
            rate_bps: Some(10_000_000),
            block: 1_000,
            ..Spec::new("udp", Pattern::Stream)
        };
        let bytes = 1_250_000;
        let end = |sends: Direction, received: u64| {
            let datagrams =
                DatagramTally { sent: bytes / 1_000, received: received / 1_000, ..DatagramTally::default() };
            let flow = |direction, bytes_sent, bytes_received| FlowTally {
                direction,
                bytes_sent,
                bytes_received,
                ..FlowTally::default()
            };
            let other = if sends == Direction::Send { Direction::Reverse } else { Direction::Send };
            model::EndTally {
                bytes_sent: bytes,
                calls_sent: 1_250,
                sending_ns: 1_000_000_000,
                bytes_received: received,
                calls_received: received / 1_000,
                receiving_ns: 1_000_000_000,
                datagrams: Some(datagrams),
                flows: vec![flow(sends, bytes, 0), flow(other, 0, received)],
                ..model::EndTally::default()
            }
        };
        let one = || testing::trial(&spec, end(Direction::Send, bytes / 2), end(Direction::Reverse, bytes));
        let trials = (0..6).map(|_| one()).collect();
        outcome(&model::Cell::new(0, spec.clone()), trials, &Stopping::default(), Context::default())
    }

    #[test]
    fn each_direction_has_the_limit_of_its_own_sender_and_losses() {
        let mut outcome = both();
        set_why(&mut outcome, &RunHeader::default(), &[]);
        assert_eq!(outcome.summary.why, None, "neither of the two speaks for the sum");
        let [out, back] = [&outcome.summary.outbound, &outcome.summary.return_trip]
            .map(|of| of.as_ref().unwrap().why.as_ref().unwrap());
        assert_eq!(out.limiter, LimiterKind::SenderApplication, "{out:?}");
        assert!(out.statement.plain().contains("10.0 Mbit/s"), "{out:?}");
        assert_ne!(back.limiter, LimiterKind::SenderApplication, "{back:?}");
        assert_eq!((out.losses.is_none(), back.losses.as_ref().map(|losses| losses.packets)), (true, Some(6 * 625)));
        assert_eq!(outcome.summary.limits().count(), 2);
    }
}
