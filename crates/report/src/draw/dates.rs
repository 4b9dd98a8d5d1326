//! Times on an axis, and their ticks: whole minutes, hours and days in UTC.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use model::Axis;

use super::span::Span;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Distances between ticks, seconds: up to a day, then days.
const STEPS: [i64; 24] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000,
    864_000, 2_592_000, 8_640_000, 31_536_000,
];

/// Midnight of a date such as `2026-11-21`, ns since 1970 (UTC).
pub(crate) fn midnight(text: &str) -> Option<f64> {
    let date: Date = text.trim().parse().ok()?;
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_nanosecond() as f64)
}

/// At most `room` ticks, and the title of the axis. A tick at midnight has the date, others the time; the title has the days.
pub(super) fn ticks(axis: &Axis, span: &Span, room: usize) -> (Vec<(f64, String)>, String) {
    let (low, high) = (span.low as i64, span.high as i64);
    let fits = |step: &&i64| (high - low) / (**step * SECOND) < room as i64;
    let step = STEPS.iter().find(fits).copied().unwrap_or((high - low) / SECOND / room as i64 + 1) * SECOND;
    let first = low.div_euclid(step) * step;
    let times = (0..=room as i64 + 1).map(|n| first.saturating_add(n * step)).filter(|at| (low..=high).contains(at));
    let major = times.map(|at| (at as f64, text(at, step))).collect();
    let day = |at: i64| format(at, "%Y-%m-%d");
    let days = if day(low) == day(high) { day(low) } else { format!("{} to {}", day(low), day(high)) };
    (major, format!("{} (UTC, {days})", axis.label))
}

fn text(at: i64, step: i64) -> String {
    let words = match () {
        () if at % DAY == 0 => "%b %-d",
        () if step < 60 * SECOND => "%H:%M:%S",
        () => "%H:%M",
    };
    format(at, words)
}

fn format(at: i64, words: &str) -> String {
    Timestamp::from_nanosecond(i128::from(at)).map(|at| at.strftime(words).to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use model::Scale;

    use super::*;

    fn texts(from: i64, to: i64, room: usize) -> (Vec<String>, String) {
        let span = Span { scale: Scale::Date, low: from as f64, high: to as f64 };
        let (ticks, title) = ticks(&Axis::new("time", "", Scale::Date), &span, room);
        (ticks.into_iter().map(|(_, text)| text).collect(), title)
    }

    #[test]
    fn days_and_hours_are_named_as_such() {
        // 2026-11-21 00:00:00 UTC.
        let midnight = 1_795_219_200 * SECOND;
        let (hours, title) = texts(midnight + 20 * 3_600 * SECOND, midnight + 31 * 3_600 * SECOND, 8);
        assert_eq!(hours, ["20:00", "22:00", "Nov 22", "02:00", "04:00", "06:00"]);
        assert_eq!(title, "time (UTC, 2026-11-21 to 2026-11-22)");
        assert_eq!(texts(midnight, midnight + 3 * DAY, 5).0, ["Nov 21", "Nov 22", "Nov 23", "Nov 24"]);
        let (seconds, title) = texts(midnight + SECOND, midnight + 40 * SECOND, 5);
        assert_eq!(seconds, ["00:00:10", "00:00:20", "00:00:30", "00:00:40"]);
        assert_eq!(title, "time (UTC, 2026-11-21)");
    }
}
