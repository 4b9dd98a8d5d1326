//! The kernel's pacing.

use model::LimiterKind;
use model::units::bits_per_second;

use super::super::observations::{Observations, courses, each, ramp};
use super::{Rule, Seen};
use crate::direction::DirectionView;

pub(super) const PACING: Rule = Rule {
    name: "pacing-rate",
    speaks_for: &[LimiterKind::Pacing],
    about: "The rate is the one that the kernel was asked to pace the connection to.",
    source: "socket(7), SO_MAX_PACING_RATE",
    see: |_: &Observations<'_>, direction: &DirectionView<'_>| {
        let courses = courses(direction);
        let Some(most) = direction.sender.options.max_pacing_bps else { return Vec::new() };
        // Headers are paced too: payload is a few percent less.
        let part = each(&courses, |course| Some(course.rate_bps / most as f64)).unwrap_or(0.0);
        Seen::of(LimiterKind::Pacing, 0.95 * ramp(part, 0.75, 0.92), || {
            let (rate, requested) = (bits_per_second(part * most as f64), bits_per_second(most as f64));
            format!("a connection was paced to {requested}, headers included (SO_MAX_PACING_RATE), and carried {rate}")
        })
    },
};
