//! Values as texts, and what a viewer shows of a point.

use model::{Axis, ByteSize, Figure, Point, Scale, Series, units};
use text::{Rate, RateUnit, Said, Spelling, Text, Time, say};

use crate::TAIL_UNIT;
use crate::dates::when;
use crate::ticks::tail_percent;

/// A value in its unit with a prefix and three digits: `9.41 Gbit/s`, `64 KiB`, `16.6 k/s`.
#[must_use]
pub fn quantity(value: f64, unit: &str) -> Text {
    if !value.is_finite() {
        return "no value".into();
    }
    match unit {
        "B" => ByteSize(value.round().max(0.0) as u64).say(),
        "bit/s" => Rate(value).say(),
        "ns" => Time(value).say(),
        "1/s" => say!("{}/s", units::count(value)),
        "ratio" => say!("B/A {value:.4}"),
        "" => units::count(value).into(),
        _ => say!("{} {unit}", units::count(value)),
    }
}

/// Horizontal value, vertical value and interval of a point (empty if there is none).
pub(crate) fn tooltip(figure: &Figure, series: &Series, point: &Point, rates: RateUnit) -> [String; 3] {
    let (x_unit, y_unit) = (&figure.x.unit, &figure.y_axis(series).unit);
    let shown = |value: f64, unit: &str| shown(value, unit, rates);
    let interval = match (point.low, point.high) {
        (Some(low), Some(high)) if low.is_finite() && high.is_finite() => {
            format!("{} to {}", shown(low, y_unit), shown(high, y_unit))
        }
        (Some(low), Some(f64::INFINITY)) => format!("{} or more", shown(low, y_unit)),
        _ => String::new(),
    };
    let mut position = position(&figure.x, point.x, rates);
    // Rate times time is the block, which is on neither axis of this figure.
    if x_unit == "ns" && y_unit == "bit/s" && !figure.x.elapsed && figure.x.scale != Scale::Date {
        position = format!("{} in {position}", shown(point.x * point.y / 8e9, "B"));
    }
    [position, shown(point.y, y_unit), interval]
}

/// The horizontal value: a level as its tick names it, a time as a date.
fn position(axis: &Axis, value: f64, rates: RateUnit) -> String {
    // Points of a category may be spread around its place.
    let place = if axis.scale == Scale::Names { value.round() } else { value };
    match axis.ticks.iter().find(|(tick, _)| *tick == place) {
        Some((_, name)) => name.clone(),
        None if axis.scale == Scale::Date => when(value.max(0.0) as u64),
        None => shown(value, &axis.unit, rates),
    }
}

fn shown(value: f64, unit: &str, rates: RateUnit) -> String {
    match unit {
        "B" => bytes(value.round().max(0.0) as u64),
        TAIL_UNIT => tail_percent(value),
        _ => quantity(value, unit).shown(Spelling { rates, ..Spelling::default() }),
    }
}

/// The size with a binary prefix, and the exact bytes.
fn bytes(size: u64) -> String {
    let name = ByteSize(size).to_string();
    if size < 1024 || name.ends_with(" B") { name } else { format!("{name} ({size} B)") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_as_those_of_the_page() {
        // web/test/units.test.mjs reads the same cases.
        let cases: Vec<(f64, String, String)> =
            serde_json::from_str(include_str!("../../../web/test/units.json")).unwrap();
        for (value, unit, text) in cases {
            assert_eq!(quantity(value, &unit).plain(), text, "{value} {unit}");
        }
    }
}
