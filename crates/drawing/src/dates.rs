//! Times on an axis, and their ticks: whole minutes, hours and days in UTC.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use model::Axis;

use crate::span::Span;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Distances between ticks, seconds: up to a day, then days.
const STEPS: [i64; 24] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000,
    864_000, 2_592_000, 8_640_000, 31_536_000,
];

/// Midnight of a date such as `2026-11-21`, ns since 1970 (UTC).
#[must_use]
pub fn midnight(text: &str) -> Option<f64> {
    let date: Date = text.trim().parse().ok()?;
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_nanosecond() as f64)
}

/// At most `room` ticks, and the title of the axis. A tick at midnight has the date, others the time; the title has the days.
pub(crate) fn ticks(axis: &Axis, span: &Span, room: usize) -> (Vec<(f64, String)>, String) {
    let (low, high) = (span.low as i64, span.high as i64);
    let fits = |step: &&i64| (high - low) / (**step * SECOND) < room as i64;
    let step = STEPS.iter().find(fits).copied().unwrap_or((high - low) / SECOND / room as i64 + 1) * SECOND;
    let first = low.div_euclid(step) * step;
    let times = (0..=room as i64 + 1).map(|n| first.saturating_add(n * step)).filter(|at| (low..=high).contains(at));
    let major = times.map(|at| (at as f64, text(at, step))).collect();
    let day = |at: i64| at_utc(at).map(day_of).unwrap_or_default();
    let days = if day(low) == day(high) { day(low) } else { format!("{} to {}", day(low), day(high)) };
    (major, format!("{} (UTC, {days})", axis.label))
}

/// A time on screens: `2026-11-21 20:37:58 UTC`.
#[must_use]
pub fn when(unix_ns: u64) -> String {
    let known = i64::try_from(unix_ns).ok().and_then(at_utc);
    known.map_or_else(|| format!("{unix_ns} ns after 1970"), |at| format!("{} {} UTC", day_of(at), seconds(at)))
}

fn text(at: i64, step: i64) -> String {
    // jiff's own patterns would double what the page contains of it.
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let Some(time) = at_utc(at) else { return String::new() };
    match () {
        () if at % DAY == 0 => format!("{} {}", MONTHS[time.month() as usize - 1], time.day()),
        () if step < 60 * SECOND => seconds(time),
        () => format!("{:02}:{:02}", time.hour(), time.minute()),
    }
}

fn day_of(at: DateTime) -> String {
    format!("{:04}-{:02}-{:02}", at.year(), at.month(), at.day())
}

fn seconds(at: DateTime) -> String {
    format!("{:02}:{:02}:{:02}", at.hour(), at.minute(), at.second())
}

fn at_utc(unix_ns: i64) -> Option<DateTime> {
    Timestamp::from_nanosecond(i128::from(unix_ns)).ok().map(|at| Offset::UTC.to_datetime(at))
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
