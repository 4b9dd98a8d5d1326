//! How many exchanges a leg of an approximate length makes at least.

use crate::Spec;

impl Spec {
    /// Fewest measured exchanges of a leg; fewer prove nothing.
    pub const MIN_MEASURED: u64 = 3;
    /// Round trips that open a leg.
    pub const OPENING: u64 = 3;
    /// Time of an exchange, ns, from which one round trip opens a leg: on so slow a path three would be most of a pass.
    pub const SLOW_NS: f64 = 10e6;

    /// Whether blocks go in one direction without a response.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.pattern.is_bulk()
    }

    /// Minimum exchanges of a leg that ends after an approximate time, if one takes `exchange_ns`: the measured ones, and for
    /// round trips those that open it.
    #[must_use]
    pub fn min_exchanges(&self, exchange_ns: f64) -> u64 {
        match exchange_ns {
            _ if self.is_stream() => Self::MIN_MEASURED,
            ns if ns < Self::SLOW_NS => Self::MIN_MEASURED + Self::OPENING,
            _ => Self::MIN_MEASURED + 1,
        }
    }
}
