//! Quantities as users write them: `64KiB`, `2.5Gbit`, `10s`, `2%`.
//!
//! In documents each is a plain number in the base unit (bytes, bit/s, nanoseconds, a fraction); the key has the unit.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use text::units::{amount, bits_per_second, count, exact_size, plus_minus, rounded_size, seconds, three_digits};
use text::{Said, Span, Text};

use crate::ValueError;

/// A number of bytes. Binary names are powers of 1024 (KiB), SI names powers of 1000 (kB).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct ByteSize(pub u64);

/// A rate in bits per second; prefixes are decimal (1 Mbit/s = 10^6 bit/s).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct BitRate(pub u64);

/// A duration in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// A fraction of 1, written as a percentage.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct Ratio(pub f64);

const SIZE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];
const RATE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("bit", 1),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
];
const TIME_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    // Micro sign and Greek mu.
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl FromStr for ByteSize {
    type Err = ValueError;

    /// Reads `1500`, `64KiB`, `8MiB`, `9kB`; a lone `K`, `M` or `G` is binary, as iperf3's and netperf's users expect.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        match quantity(text, SIZE_UNITS) {
            Some((size, 0)) => Ok(Self(size)),
            Some(_) => Err(ValueError::Fraction { text: text.into(), unit: "bytes" }),
            None => Err(ValueError::Quantity {
                text: text.into(),
                kind: "size",
                example: "bytes with an optional unit, such as 1500, 64KiB, 8MiB or 9kB",
            }),
        }
    }
}

impl FromStr for BitRate {
    type Err = ValueError;

    /// Reads `10Mbit`, `2.5Gbit/s`, `100k`; always bits, always decimal. A unit with a capital B means bytes, which are refused.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let bare = text.trim();
        let bare = bare.strip_suffix("/s").or_else(|| bare.strip_suffix("ps")).unwrap_or(bare);
        let bytes = bare.parse::<ByteSize>().ok().filter(|_| bare.ends_with('B'));
        if let Some((same, eightfold)) = bytes.and_then(|bytes| Some((bytes.0, bytes.0.checked_mul(8)?))) {
            return Err(ValueError::Bytes { text: text.into(), eightfold: in_bits(eightfold), same: in_bits(same) });
        }
        match quantity(bare, RATE_UNITS) {
            Some((rate, 0)) => Ok(Self(rate)),
            Some(_) => Err(ValueError::Fraction { text: text.into(), unit: "bits" }),
            None => Err(ValueError::Quantity {
                text: text.into(),
                kind: "rate",
                example: "bits per second with an optional unit, such as 500kbit, 10Mbit or 2.5Gbit",
            }),
        }
    }
}

impl FromStr for Nanos {
    type Err = ValueError;

    /// Reads `250ms`, `10s`, `2m`; a bare number is seconds.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        quantity(text, TIME_UNITS).map(|(ns, _)| Self(ns)).ok_or_else(|| ValueError::Quantity {
            text: text.into(),
            kind: "time",
            example: "a number with ns, us, ms, s, m or h, such as 250ms or 10s",
        })
    }
}

impl FromStr for Ratio {
    type Err = ValueError;

    /// Reads `2%` or `0.02`; more than 100 % is refused.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let bare = text.trim();
        let (digits, scale) = match bare.strip_suffix('%') {
            Some(percent) => (percent.trim_end(), 0.01),
            None => (bare, 1.0),
        };
        digits
            .parse::<f64>()
            .ok()
            .map(|number| number * scale)
            .filter(|value| (0.0..=1.0).contains(value))
            .map(Self)
            .ok_or_else(|| ValueError::Quantity {
                text: text.into(),
                kind: "percentage",
                example: "a percentage such as 2% (or the fraction 0.02)",
            })
    }
}

/// A number of bits as it would be typed, exactly.
fn in_bits(bits: u64) -> String {
    const PREFIXES: [(u64, &str); 4] = [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    let exact = PREFIXES.iter().find(|(size, _)| bits >= *size && bits.is_multiple_of(*size));
    exact.map_or_else(|| format!("{bits}bit"), |(size, prefix)| format!("{}{prefix}bit", bits / size))
}

/// Most digits behind the point.
const DECIMALS: usize = 18;

/// `number * factor of the unit`, rounded down, and whether a part is left over (0 for none); `None` for anything else, also when it
/// overflows.
fn quantity(text: &str, units: &[(&str, u64)]) -> Option<(u64, u128)> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let unit = unit.trim_start().to_ascii_lowercase();
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = 10_u128.checked_pow(u32::try_from(decimals.len()).ok().filter(|len| *len as usize <= DECIMALS)?)?;
    let all: u128 = format!("{whole}{decimals}").parse().ok()?;
    let value = all.checked_mul(u128::from(factor))?;
    Some((u64::try_from(value / scale).ok()?, value % scale))
}

impl Said for ByteSize {
    fn say(&self) -> Text {
        Span::Size(self.0).into()
    }
}

impl Said for BitRate {
    fn say(&self) -> Text {
        Span::Rate(self.0 as f64).into()
    }
}

impl Said for Nanos {
    fn say(&self) -> Text {
        Span::Time(self.0 as f64).into()
    }
}

impl fmt::Display for ByteSize {
    /// To the byte.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&exact_size(self.0))
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&bits_per_second(self.0 as f64))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&seconds(self.0 as f64))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} %", three_digits(self.0 * 100.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_their_names() {
        for (text, bytes) in
            [("1", 1), ("64KiB", 65_536), ("64K", 65_536), ("9kB", 9_000), ("8 MiB", 8 << 20), ("1.5M", 3 << 19)]
        {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for text in ["", "KiB", "-1", "1 parsec", "99999999999TiB", "1e3", ".", "1.2.3"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_byte_and_a_bit_are_whole() {
        assert_eq!(("0.5KiB".parse(), "1.1MB".parse()), (Ok(ByteSize(512)), Ok(ByteSize(1_100_000))));
        for text in ["1.5", "0.3KiB", "0.1B"] {
            let message = text.parse::<ByteSize>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("'{text}' is not a whole number of bytes")), "{message}");
        }
        assert_eq!("2.000000001Gbit".parse(), Ok(BitRate(2_000_000_001)));
        assert!("1.5bit".parse::<BitRate>().is_err_and(|error| error.to_string().contains("of bits")));
    }

    #[test]
    fn a_rate_in_bytes_is_refused_with_both_alternatives() {
        let message = |text: &str| text.parse::<BitRate>().unwrap_err().to_string();
        for text in ["1GB", "1GB/s", "1GBps"] {
            assert!(message(text).contains("unit byte") && message(text).contains("8Gbit if"), "{}", message(text));
            assert!(message(text).contains("or 1Gbit if"), "{}", message(text));
        }
        assert!(
            message("1.5kB").contains("12kbit") && message("10MiB").contains("83886080bit"),
            "{}",
            message("10MiB")
        );
        // Other tools use a small b for bits.
        assert_eq!("1Gb".parse(), Ok(BitRate(1_000_000_000)));
    }

    #[test]
    fn rates_are_decimal_bits() {
        for (text, bps) in
            [("10Mbit", 10_000_000), ("2.5Gbit/s", 2_500_000_000), ("100k", 100_000), ("1Gbps", 1_000_000_000)]
        {
            assert_eq!(text.parse(), Ok(BitRate(bps)), "{text}");
        }
        assert!("10MiB".parse::<BitRate>().is_err());
    }

    #[test]
    fn times_default_to_seconds() {
        for (text, ns) in [
            ("10", 10_000_000_000),
            ("250ms", 250_000_000),
            ("2m", 120_000_000_000),
            ("0.5s", 500_000_000),
            ("50us", 50_000),
            ("50µs", 50_000),
            ("1.5 μs", 1_500),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(ns)), "{text}");
        }
    }

    #[test]
    fn ratios_are_percentages() {
        assert_eq!("2%".parse(), Ok(Ratio(0.02)));
        assert_eq!("0.05".parse(), Ok(Ratio(0.05)));
        assert!("200%".parse::<Ratio>().is_err());
        assert!("NaN".parse::<Ratio>().is_err());
    }

    #[test]
    fn display_steps_up_before_it_would_show_four_digits() {
        assert_eq!(BitRate(999_700_000).to_string(), "1.00 Gbit/s");
        assert_eq!(BitRate(46_400_000_000).to_string(), "46.4 Gbit/s");
        assert_eq!(Nanos(18_523).to_string(), "18.5 µs");
        assert_eq!(Nanos(0).to_string(), "0 ns");
        assert_eq!(ByteSize(131_072).to_string(), "128 KiB");
        assert_eq!(ByteSize(8_388_611).to_string(), "8388611 B");
        assert_eq!(ByteSize(1_533).to_string(), "1533 B");
    }
}
