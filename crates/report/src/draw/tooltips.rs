//! The tooltip of a point.

use model::{Axis, ByteSize, Figure, Point, Scale};

use super::ticks::tail_percent;
use crate::figures::TAIL_UNIT;
use crate::labels;

/// Horizontal value, vertical value and interval (empty if there is none).
pub(crate) fn tooltip(figure: &Figure, point: &Point) -> [String; 3] {
    let (x_unit, y_unit) = (&figure.x.unit, &figure.y.unit);
    let interval = match (point.low, point.high) {
        (Some(low), Some(high)) if low.is_finite() && high.is_finite() => {
            format!("{} to {}", quantity(low, y_unit), quantity(high, y_unit))
        }
        (Some(low), Some(f64::INFINITY)) => format!("{} or more", quantity(low, y_unit)),
        _ => String::new(),
    };
    let mut position = position(&figure.x, point.x);
    // Rate times time is the block, which is on neither axis of this figure.
    if x_unit == "ns" && y_unit == "bit/s" && figure.id.starts_with("signature") {
        position = format!("{} in {position}", quantity(point.x * point.y / 8e9, "B"));
    }
    [position, quantity(point.y, y_unit), interval]
}

/// The horizontal value: a level as its tick names it, a time as a date.
fn position(axis: &Axis, value: f64) -> String {
    match axis.ticks.iter().find(|(tick, _)| *tick == value) {
        Some((_, name)) => name.clone(),
        None if axis.scale == Scale::Date => labels::when(value.max(0.0) as u64),
        None => quantity(value, &axis.unit),
    }
}

fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "B" => bytes(value.round().max(0.0) as u64),
        TAIL_UNIT => tail_percent(value),
        _ => labels::quantity(value, unit).plain(),
    }
}

/// The size with a binary prefix, and the exact bytes.
fn bytes(size: u64) -> String {
    let name = ByteSize(size).to_string();
    if size < 1024 || name.ends_with(" B") { name } else { format!("{name} ({size} B)") }
}
