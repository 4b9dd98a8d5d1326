//! Quantities in files: text with a unit (`"91.5ms"`, `"2.5Gbit"`, `"56MB"`, `"0.1%"`), or a bare number in seconds,
//! bit/s, bytes or fractions of 1. They are written back exactly.

use std::fmt;
use std::time::Duration;

use model::{BitRate, ByteSize, Nanos, Ratio, ValueError};
use serde::de::{Error, Visitor};

/// The text for a rate without a limit.
const UNLIMITED: &str = "unlimited";

/// Why a text is not the quantity that is expected.
#[derive(Debug, thiserror::Error)]
enum QuantityError {
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("{0}; or '{UNLIMITED}'")]
    Rate(ValueError),
}

/// Reads a quantity of either form.
struct Quantity<T> {
    expected: &'static str,
    read: fn(&str) -> Result<T, QuantityError>,
}

impl<T> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

fn time_of(text: &str) -> Result<Duration, QuantityError> {
    let Nanos(ns) = text.parse()?;
    Ok(Duration::from_nanos(ns))
}

fn rate_of(text: &str) -> Result<Option<u64>, QuantityError> {
    if text == UNLIMITED {
        return Ok(None);
    }
    text.parse().map(|BitRate(bps)| Some(bps)).map_err(QuantityError::Rate)
}

fn size_of(text: &str) -> Result<u64, QuantityError> {
    let ByteSize(bytes) = text.parse()?;
    Ok(bytes)
}

fn share_of(text: &str) -> Result<f64, QuantityError> {
    let Ratio(share) = text.parse()?;
    Ok(share)
}

/// A module for `#[serde(with)]`, with `maybe` for an optional value.
macro_rules! quantity {
    ($name:ident, $type:ty, $read:expr, $expected:literal, |$value:ident| $write:expr) => {
        pub(super) mod $name {
            use super::*;
            use serde::{Deserializer, Serialize, Serializer};

            pub(in super::super) fn serialize<S: Serializer>($value: &$type, to: S) -> Result<S::Ok, S::Error> {
                $write.serialize(to)
            }

            pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                from.deserialize_any(Quantity { expected: $expected, read: $read })
            }

            pub(in super::super) mod maybe {
                use super::*;

                pub(in super::super::super) fn serialize<S: Serializer>(
                    value: &Option<$type>,
                    to: S,
                ) -> Result<S::Ok, S::Error> {
                    match value {
                        Some(value) => super::serialize(value, to),
                        None => to.serialize_none(),
                    }
                }

                pub(in super::super::super) fn deserialize<'de, D: Deserializer<'de>>(
                    from: D,
                ) -> Result<Option<$type>, D::Error> {
                    super::deserialize(from).map(Some)
                }
            }
        }
    };
}

quantity!(time, Duration, time_of, "a time such as \"91.5ms\"", |value| format!("{}ns", value.as_nanos()));
quantity!(rate, Option<u64>, rate_of, "a rate such as \"2.5Gbit\", or \"unlimited\"", |value| value
    .map_or(UNLIMITED.to_owned(), |bps| format!("{bps}bit")));
quantity!(size, u64, size_of, "a size such as \"256KiB\"", |value| format!("{value}B"));
quantity!(share, f64, share_of, "a share such as \"0.1%\"", |value| value);
