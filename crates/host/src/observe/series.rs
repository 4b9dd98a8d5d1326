//! Readings over time, limited to what a document may hold.

use std::collections::BTreeMap;

use model::{HostSeries, SeriesLine, Source};

use super::ObservedValues;
use super::reading::{Value, ValueKind};

/// Maximum readings; one more makes every other one be dropped.
const MAX_READINGS: usize = 600;

/// The values at each moment, as totals: rates are computed at the end, so that dropping a reading loses no event.
#[derive(Debug, Default)]
pub(super) struct Series {
    at_ns: Vec<u64>,
    lines: BTreeMap<String, Line>,
}

#[derive(Debug)]
struct Line {
    kind: ValueKind,
    unit: &'static str,
    totals: Vec<Option<u64>>,
}

impl Series {
    /// Adds a reading. Returns whether every other one was dropped, so that the next may come after twice the time.
    pub(super) fn add(&mut self, reading: &ObservedValues) -> bool {
        let before = self.at_ns.len();
        self.at_ns.push(reading.at_ns);
        for (name, value) in &reading.values {
            let Value { kind, number, unit: Some(unit) } = *value else { continue };
            if !self.lines.contains_key(name) {
                self.lines.insert(name.clone(), Line { kind, unit, totals: vec![None; before] });
            }
            if let Some(line) = self.lines.get_mut(name) {
                line.totals.push(Some(number));
            }
        }
        for line in self.lines.values_mut() {
            line.totals.resize(before + 1, None);
        }
        // The first reading starts the first rate and has no entry of its own.
        let full = self.at_ns.len() > MAX_READINGS;
        if full {
            every_other(&mut self.at_ns);
            self.lines.values_mut().for_each(|line| every_other(&mut line.totals));
        }
        full
    }

    /// When the last reading was taken.
    pub(super) fn last_ns(&self) -> Option<u64> {
        self.at_ns.last().copied()
    }

    /// The rates and levels of these sources; `None` if there is no reading after the first.
    pub(super) fn finish(self, sources: &[Source]) -> Option<HostSeries> {
        let (start, rest) = self.at_ns.split_first()?;
        if rest.is_empty() {
            return None;
        }
        let at_ns = rest.iter().map(|at| at.saturating_sub(*start)).collect();
        let lines = self.lines.into_iter().filter_map(|(name, line)| {
            let values: Vec<Option<f64>> = line
                .totals
                .windows(2)
                .zip(self.at_ns.windows(2))
                .map(|(totals, at)| value(line.kind, totals[0], totals[1], at[1].saturating_sub(at[0])))
                .collect();
            // Devices without activity are left out.
            let idle = sources.iter().any(|source| source.per_device && source.has(&name));
            let nothing = values.iter().all(|value| value.is_none_or(|value| value == 0.0));
            (!(idle && nothing)).then(|| SeriesLine { name, unit: line.unit.to_owned(), values })
        });
        Some(HostSeries { at_ns, lines: lines.collect() })
    }
}

/// Keeps the first, the third and so on, and always the last: the newest reading starts the next rate.
fn every_other<T>(list: &mut Vec<T>) {
    let odd = list.len() % 2;
    let mut at = 0;
    let last = list.len() - 1;
    list.retain(|_| {
        let keep = at == 0 || (at + odd) % 2 == 1 || at == last;
        at += 1;
        keep
    });
}

/// The value of an entry. A total that decreased has no rate there; a share is limited to the whole time, which ticks
/// may exceed slightly.
fn value(kind: ValueKind, before: Option<u64>, now: Option<u64>, ns: u64) -> Option<f64> {
    let now = now?;
    match kind {
        ValueKind::Level => Some(now as f64),
        ValueKind::Share => Some(rounded(now.saturating_sub(before?) as f64 / ns.max(1) as f64, 1e3).min(1.0)),
        ValueKind::Counter | ValueKind::Tally => {
            let rate = now.checked_sub(before?)? as f64 * 1e9 / ns.max(1) as f64;
            Some(if rate >= 100.0 { rate.round() } else { rounded(rate, 1e2) })
        }
    }
}

/// Rounds to this fraction of one: more digits would exceed the precision of the reading.
fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_ns: u64, values: &[(&str, ValueKind, u64)]) -> ObservedValues {
        let mut reading = ObservedValues::default();
        reading.at_ns = at_ns;
        for (name, kind, number) in values {
            reading.traced(*kind, "1/s", format_args!("{name}"), *number);
        }
        reading
    }

    fn values(series: &HostSeries, name: &str) -> Vec<Option<f64>> {
        series.lines.iter().find(|line| line.name == name).unwrap_or_else(|| panic!("{name}")).values.clone()
    }

    #[test]
    fn totals_become_rates_and_levels_stay() {
        let mut series = Series::default();
        let at = |ns, total, level, busy| {
            reading(
                ns,
                &[("a", ValueKind::Counter, total), ("l", ValueKind::Level, level), ("b", ValueKind::Share, busy)],
            )
        };
        series.add(&at(1_000, 5, 9, 0));
        series.add(&at(1_000 + 100_000_000, 25, 8, 50_000_000));
        series.add(&at(1_000 + 300_000_000, 20, 7, 260_000_000));
        let done = series.finish(&model::source::SOURCES).unwrap();
        assert_eq!(done.at_ns, [100_000_000, 300_000_000]);
        assert_eq!(values(&done, "a"), [Some(200.0), None], "a total that steps back has no rate");
        assert_eq!(values(&done, "l"), [Some(8.0), Some(7.0)]);
        assert_eq!(values(&done, "b"), [Some(0.5), Some(1.0)], "ticks may exceed the time");
    }

    #[test]
    fn devices_that_appear_or_disappear_have_nulls_and_idle_ones_no_line() {
        let mut series = Series::default();
        series
            .add(&reading(0, &[("dev.a.rx_bytes", ValueKind::Counter, 5), ("dev.b.rx_bytes", ValueKind::Counter, 5)]));
        series.add(&reading(
            1_000_000_000,
            &[
                ("dev.a.rx_bytes", ValueKind::Counter, 7),
                ("dev.b.rx_bytes", ValueKind::Counter, 5),
                ("n", ValueKind::Tally, 4),
            ],
        ));
        series.add(&reading(2_000_000_000, &[("dev.b.rx_bytes", ValueKind::Counter, 5), ("n", ValueKind::Tally, 6)]));
        let done = series.finish(&model::source::SOURCES).unwrap();
        assert_eq!(done.lines.len(), 2);
        assert_eq!(values(&done, "dev.a.rx_bytes"), [Some(2.0), None]);
        assert_eq!(values(&done, "n"), [None, Some(2.0)]);
    }

    #[test]
    fn a_long_watch_keeps_every_event_in_fewer_readings() {
        let mut series = Series::default();
        let mut doubled = 0;
        let mut total = 0;
        for moment in 0..2_500_u64 {
            total += moment % 7;
            doubled += usize::from(series.add(&reading(moment * 1_000_000_000, &[("a", ValueKind::Counter, total)])));
        }
        let done = series.finish(&model::source::SOURCES).unwrap();
        assert!(doubled >= 4 && done.at_ns.len() <= MAX_READINGS, "{doubled} {}", done.at_ns.len());
        assert_eq!(*done.at_ns.last().unwrap(), 2_499_000_000_000);
        let mut from = 0;
        let events: f64 = values(&done, "a")
            .iter()
            .zip(&done.at_ns)
            .map(|(rate, at)| {
                let events = rate.unwrap() * (at - std::mem::replace(&mut from, *at)) as f64 / 1e9;
                events.round()
            })
            .sum();
        // Rates are rounded to a hundredth; a gap is a few seconds.
        assert!((events - total as f64).abs() < 0.05 * total as f64, "{events} of {total}");
    }

    #[test]
    fn one_reading_is_no_series() {
        let mut series = Series::default();
        series.add(&reading(0, &[("a", ValueKind::Counter, 5)]));
        assert_eq!(series.finish(&model::source::SOURCES), None);
    }
}
