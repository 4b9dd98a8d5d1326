//! The statistic that a pattern measures.

use model::Spec;

/// The statistic that a pattern measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headline {
    /// Goodput in bit/s: stream, transfer, and any pattern not named below.
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
        match spec.pattern.as_str() {
            "rr" | "crr" => Self::Transactions,
            "pingpong" => Self::RoundTrip,
            _ => Self::Goodput,
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
