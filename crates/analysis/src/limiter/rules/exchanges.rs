//! Patterns of round trips.

use model::LimiterKind;
use model::units::{count, seconds};

use super::super::observations::{Observations, ramp};
use super::{Rule, Seen};
use crate::direction::DirectionView;
use crate::outcome::Headline;

pub(super) const ROUND_TRIP: Rule = Rule {
    name: "one-at-a-time",
    speaks_for: &[LimiterKind::RoundTrip],
    about: "Each connection has one exchange under way and waits for its answer: the rate is one over the round trip.",
    source: "Little's law (J. D. C. Little, A Proof for the Queuing Formula L = λW, Operations Research 9(3), 1961)",
    see: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        if observations.headline == Headline::Goodput {
            return Vec::new();
        }
        let asker = if direction.sender.tally.rtt.is_some() { &direction.sender } else { &direction.receiver };
        let Some(rtt) = &asker.tally.rtt else { return Vec::new() };
        let flows = f64::from(observations.spec.flows);
        let under_way = match observations.headline {
            Headline::Transactions => {
                observations.outcome.summary.transactions_per_s.map(|rate| rate * rtt.mean_ns / 1e9)
            }
            // Its next request leaves when the answer is there.
            _ => Some(flows),
        };
        let Some(under_way) = under_way else { return Vec::new() };
        let part = under_way / flows.max(1.0);
        Seen::of(LimiterKind::RoundTrip, 0.9 * ramp(part, 0.5, 0.9), || {
            let cost = observations.outcome.summary.cost.as_ref().map_or(String::new(), |cost| {
                let ends = [Some(&cost.near), cost.far.as_ref()];
                let ns: f64 = ends.into_iter().flatten().filter_map(|end| end.process_ns_per_transaction).sum();
                format!(", of which the two programs take {} of CPU", seconds(ns))
            });
            let of = if flows > 1.0 { format!(" on each of {} connections", count(flows)) } else { String::new() };
            format!("one exchange after the other{of}, each of {} in the mean{cost}", seconds(rtt.mean_ns))
        })
    },
};
