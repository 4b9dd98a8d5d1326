//! What a point says when the pointer rests on it.

use model::{ByteSize, Point, units};

use super::ticks::tail_percent;
use crate::figures::TAIL_UNIT;

/// Horizontal value, vertical value and interval (empty without one) in words.
pub(crate) fn tip(point: &Point, x_unit: &str, y_unit: &str) -> [String; 3] {
    let interval = match (point.low, point.high) {
        (Some(low), Some(high)) if low.is_finite() && high.is_finite() => {
            format!("{} to {}", quantity(low, y_unit), quantity(high, y_unit))
        }
        _ => String::new(),
    };
    [quantity(point.x, x_unit), quantity(point.y, y_unit), interval]
}

fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "B" => bytes(value.round().max(0.0) as u64),
        "bit/s" => units::bits_per_second(value),
        "ns" => units::seconds(value),
        TAIL_UNIT => tail_percent(value),
        _ => format!("{} {unit}", units::count(value)),
    }
}

/// The exact size, and its name where that is shorter.
fn bytes(size: u64) -> String {
    let name = ByteSize(size).to_string();
    if size < 1024 || name.ends_with(" B") { name } else { format!("{name} ({size} B)") }
}
