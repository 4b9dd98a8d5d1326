//! Patterns of round trips.

use model::LimiterKind;
use model::units::count;
use text::{Text, Time, say};

use super::super::observations::{Observations, ramp};
use super::{Rule, Signal};
use crate::direction::DirectionView;
use crate::outcome::Headline;

pub(super) const ROUND_TRIP: Rule = Rule {
    name: "one-at-a-time",
    speaks_for: &[LimiterKind::RoundTrip],
    about: "Each connection has one transaction in flight and waits for its response: the rate is one over the RTT.",
    source: "Little's law (J. D. C. Little, A Proof for the Queuing Formula L = λW, Operations Research 9(3), 1961)",
    evaluate: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        if observations.headline == Headline::Goodput {
            return Vec::new();
        }
        let requester = if direction.sender.tally.rtt.is_some() { &direction.sender } else { &direction.receiver };
        let Some(rtt) = &requester.tally.rtt else { return Vec::new() };
        let flows = f64::from(observations.spec.flows);
        let in_flight = match observations.headline {
            Headline::Transactions => {
                observations.outcome.summary.transactions_per_s.map(|rate| rate * rtt.mean_ns / 1e9)
            }
            // The next request leaves when the response has arrived.
            _ => Some(flows),
        };
        let Some(in_flight) = in_flight else { return Vec::new() };
        let part = in_flight / flows.max(1.0);
        // Requests at a rate do not wait for each other.
        if part > 1.5 {
            return Vec::new();
        }
        Signal::of(LimiterKind::RoundTrip, 0.9 * ramp(part, 0.5, 0.9), || {
            let cost = observations.outcome.summary.cost.as_ref().map_or(Text::default(), |cost| {
                let ends = [Some(&cost.near), cost.far.as_ref()];
                let ns: f64 = ends.into_iter().flatten().filter_map(|end| end.process_ns_per_transaction).sum();
                say!(", including {} of CPU time in both programs", Time(ns))
            });
            let of = if flows > 1.0 { say!(" on each of {} connections", count(flows)) } else { Text::default() };
            say!("one transaction at a time{of}, with a mean RTT of {}{cost}", Time(rtt.mean_ns))
        })
    },
};
