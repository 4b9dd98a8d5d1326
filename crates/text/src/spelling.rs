//! How a reader spells what is not words.

/// How options and rates are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spelling {
    /// Options.
    pub options: OptionsAs,
    /// Rates.
    pub rates: RateUnit,
}

/// How an option is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OptionsAs {
    /// `--flows 4`, as on a command line.
    #[default]
    Flags,
    /// `flows = 4`, as in a plan.
    Keys,
}

/// The unit of rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateUnit {
    /// bit/s.
    #[default]
    Bits,
    /// Bytes per second.
    Bytes,
}

impl RateUnit {
    /// A rate in this unit, with three significant digits.
    #[must_use]
    pub fn rate(self, bps: f64) -> String {
        match self {
            Self::Bits => crate::units::bits_per_second(bps),
            Self::Bytes => crate::units::bytes_per_second(bps / 8.0),
        }
    }
}
