//! Maps values to positions along an axis.

use model::Scale;

/// The range of values that an axis shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub(crate) scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Span {
    /// Larger magnitudes are left out: arithmetic on them could overflow, and no measurement has them.
    const LIMIT: f64 = 1e100;

    /// The range of all `values` with a margin of `air`; without values 1 to 10 (0 to 10 if linear).
    pub(crate) fn fit(scale: Scale, values: impl Iterator<Item = f64>, air: f64) -> Self {
        let (low, high) = values
            .filter(|value| Self::drawable(scale, *value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        match scale {
            _ if low > high => Self { scale, low: if scale == Scale::Log { 1.0 } else { 0.0 }, high: 10.0 },
            Scale::Linear => {
                let low = low.min(0.0);
                let high = if high > low { high } else { low + 1.0 };
                Self { scale, low: if low < 0.0 { low * (1.0 + air) } else { low }, high: high + (high - low) * air }
            }
            // At least a factor of two, so that a single value has an axis around it.
            Scale::Log => {
                let widen = (2.0 / (high / low)).sqrt().max(1.0);
                let ratio = (high / low * widen * widen).powf(air);
                Self { scale, low: low / widen / ratio, high: high * widen * ratio }
            }
        }
    }

    /// Whether this kind of axis can show the value.
    pub(crate) fn drawable(scale: Scale, value: f64) -> bool {
        match scale {
            Scale::Linear => value.abs() < Self::LIMIT,
            Scale::Log => value > 1.0 / Self::LIMIT && value < Self::LIMIT,
        }
    }

    /// The position of `value` as a share of the axis, 0 at the low end; outside 0 to 1 for values out of range. `None` for values
    /// that this axis cannot show: not finite, or not above zero on a log axis.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        if !Self::drawable(self.scale, value) {
            return None;
        }
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        share.is_finite().then_some(share)
    }

    /// Like [`position`](Self::position), limited to the axis.
    pub(crate) fn clamped(&self, value: f64) -> Option<f64> {
        self.position(value).map(|share| share.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_is_placed_within_the_axis_or_refused(
            values in prop::collection::vec(prop_oneof![any::<f64>(), 1e-3..1e12f64, Just(0.0), Just(-5.0)], 0..6),
            log in any::<bool>(),
        ) {
            let scale = if log { Scale::Log } else { Scale::Linear };
            let span = Span::fit(scale, values.iter().copied(), 0.05);
            prop_assert!(span.low.is_finite() && span.high.is_finite() && span.low < span.high);
            for value in values {
                match span.position(value) {
                    Some(share) => prop_assert!((0.0..=1.0).contains(&share), "{} at {}", value, share),
                    None => prop_assert!(!Span::drawable(scale, value)),
                }
            }
        }
    }
}
