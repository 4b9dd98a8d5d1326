//! The statistic that a pattern measures.

use model::{Pattern, Spec};

/// The statistic that a pattern measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headline {
    /// Goodput in bit/s: stream, transfer.
    Goodput,
    /// Transactions per second: rr, crr.
    Transactions,
    /// Median round trip in ns: pingpong.
    RoundTrip,
}

impl Headline {
    /// The statistic of a spec's pattern.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        match spec.pattern {
            Pattern::Rr | Pattern::Crr => Self::Transactions,
            Pattern::Pingpong => Self::RoundTrip,
            Pattern::Stream | Pattern::Transfer => Self::Goodput,
        }
    }

    /// A value of this statistic as goodput in bit/s, to compare different patterns: of round trips and transactions, the bytes
    /// of requests and responses over the time, so that a block each way in an RTT gives NetPIPE's rate, the block over half
    /// the RTT. `None` for a time of zero.
    #[must_use]
    pub fn goodput(self, spec: &Spec, value: f64) -> Option<f64> {
        let exchanged_bits = 8.0 * (spec.block + spec.reply_bytes()) as f64;
        match self {
            Self::Goodput => Some(value),
            Self::Transactions => Some(value * exchanged_bits),
            Self::RoundTrip => (value > 0.0).then(|| exchanged_bits * 1e9 / value),
        }
    }

    /// Unit of its values.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Goodput => "bit/s",
            Self::Transactions => "1/s",
            Self::RoundTrip => "ns",
        }
    }

    /// Its estimate in words.
    #[must_use]
    pub fn statistic(self) -> &'static str {
        match self {
            Self::Goodput => "mean goodput of the trials",
            Self::Transactions => "mean transaction rate of the trials",
            Self::RoundTrip => "mean of the trials' median RTTs",
        }
    }

    /// The estimate of a point of a curve in words.
    #[must_use]
    pub fn statistic_of_point(self) -> &'static str {
        match self {
            Self::Goodput => "median goodput of the legs",
            Self::Transactions => "median transaction rate of the legs",
            Self::RoundTrip => "median of the legs' median RTTs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_of_exchanges_is_that_of_netpipe() {
        let spec = |pattern| Spec { block: 1_000, ..Spec::new("tcp", pattern) };
        // 1000 bytes each way in 16 µs: 8 µs one way.
        let round_trip = Headline::of(&spec(Pattern::Pingpong)).goodput(&spec(Pattern::Pingpong), 16_000.0);
        assert_eq!(round_trip, Some(1e9));
        assert_eq!(Headline::of(&spec(Pattern::Rr)).goodput(&spec(Pattern::Rr), 62_500.0), round_trip);
        let short = Spec { reply: Some(0), ..spec(Pattern::Rr) };
        assert_eq!(Headline::Transactions.goodput(&short, 62_500.0), Some(0.5e9));
        assert_eq!(Headline::Goodput.goodput(&spec(Pattern::Stream), 5.0), Some(5.0));
        assert_eq!(Headline::RoundTrip.goodput(&spec(Pattern::Pingpong), 0.0), None);
    }
}
