//! The kernel's pacing.

use model::LimiterKind;
use model::units::bits_per_second;

use super::super::observations::{Observations, each, ramp, sender_flows};
use super::{Rule, Signal};
use crate::direction::DirectionView;

pub(super) const PACING: Rule = Rule {
    name: "pacing-rate",
    speaks_for: &[LimiterKind::Pacing],
    about: "The rate is the connection's requested pacing rate.",
    source: "socket(7), SO_MAX_PACING_RATE",
    evaluate: |_: &Observations<'_>, direction: &DirectionView<'_>| {
        let flows = sender_flows(direction);
        let Some(most) = direction.sender.options.max_pacing_bps else { return Vec::new() };
        // Pacing includes headers, so the payload rate is a few percent lower.
        let part = each(&flows, |flow| Some(flow.rate_bps / most as f64)).unwrap_or(0.0);
        Signal::of(LimiterKind::Pacing, 0.95 * ramp(part, 0.75, 0.92), || {
            let (rate, requested) = (bits_per_second(part * most as f64), bits_per_second(most as f64));
            format!("a connection was paced to {requested} including headers (SO_MAX_PACING_RATE) and carried {rate}")
        })
    },
};
