//! The axis of a factor: a scale that fits its levels.

use std::collections::BTreeMap;

use model::{Axis, BitRate, ByteSize, Factor, Nanos, Scale, units};

use drawing::dates::midnight;

/// Parts of names and keys whose numbers are bytes.
const BYTES: [&str; 13] =
    ["size", "buf", "block", "reply", "mtu", "mss", "window", "message", "rmem", "wmem", "burst", "bytes", "payload"];
/// From this ratio of the highest to the lowest level on, plain numbers have a logarithmic axis.
const WIDE: f64 = 8.0;

/// A factor's axis, with a tick at each level, and where the levels are.
pub(super) struct Levels {
    pub(super) axis: Axis,
    pub(super) positions: BTreeMap<String, f64>,
}

impl Levels {
    /// Sizes, rates and times that are above 0 have a logarithmic axis, and so have numbers far apart; dates have one of dates. All
    /// others are categories.
    pub(super) fn new(name: &str, factor: Option<&Factor>, levels: &[String]) -> Self {
        let key = factor.map_or(name, |factor| factor.key.as_str());
        let kinds: [(&str, Reading); 4] = [
            ("B", |level, bytes| size(level, bytes)),
            ("bit/s", |level, _| rate(level)),
            ("ns", |level, _| time(level)),
            ("", |level, _| level.trim().parse().ok().filter(|number: &f64| number.is_finite())),
        ];
        let bytes = BYTES.iter().any(|word| name.to_lowercase().contains(word) || key.to_lowercase().contains(word));
        for (unit, reading) in kinds {
            let values: Option<Vec<f64>> = levels.iter().map(|level| reading(level, bytes)).collect();
            // A level may be no size although it is written like one, such as the default of 0.
            let Some(values) = values.filter(|values| distinct(values)) else { continue };
            let above = values.iter().all(|value| *value > 0.0);
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            let log = above && (!unit.is_empty() || most / least >= WIDE);
            let scale = if log { Scale::Log } else { Scale::Linear };
            let texts = levels.iter().zip(&values).map(|(level, value)| text(level, *value, unit));
            let mut ticks: Vec<(f64, String)> = values.iter().copied().zip(texts).collect();
            ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
            let axis = Axis { ticks, ..Axis::new(name, unit, scale) };
            return Self { axis, positions: levels.iter().cloned().zip(values).collect() };
        }
        let dates: Option<Vec<f64>> = levels.iter().map(|level| midnight(level)).collect();
        if let Some(dates) = dates.filter(|dates| distinct(dates)) {
            let axis = Axis::new(name, "", Scale::Date);
            return Self { axis, positions: levels.iter().cloned().zip(dates).collect() };
        }
        let positions = levels.iter().cloned().zip((0..).map(f64::from)).collect();
        Self { axis: Axis::names(name, levels), positions }
    }
}

/// The value of a level; whether bare numbers are bytes.
type Reading = fn(&str, bool) -> Option<f64>;

fn distinct(values: &[f64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    !values.is_empty() && sorted.windows(2).all(|pair| pair[0] < pair[1])
}

fn bare(level: &str) -> bool {
    level.trim().ends_with(|c: char| c.is_ascii_digit())
}

fn size(level: &str, bytes: bool) -> Option<f64> {
    let written = level.trim().ends_with(['B', 'K', 'M', 'G']) || (bytes && bare(level));
    level.parse::<ByteSize>().ok().filter(|_| written).map(|size| size.0 as f64)
}

fn rate(level: &str) -> Option<f64> {
    level.parse::<BitRate>().ok().filter(|_| level.contains("bit")).map(|rate| rate.0 as f64)
}

fn time(level: &str) -> Option<f64> {
    level.parse::<Nanos>().ok().filter(|_| !bare(level)).map(|time| time.0 as f64)
}

fn text(level: &str, value: f64, unit: &str) -> String {
    match unit {
        "B" => ByteSize(value as u64).to_string(),
        "bit/s" => units::bits_per_second(value),
        "ns" => units::seconds(value),
        _ => level.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(name: &str, levels: &[&str]) -> (Scale, String, Vec<f64>) {
        let levels: Vec<String> = levels.iter().map(|level| (*level).to_owned()).collect();
        let Levels { axis, positions } = Levels::new(name, None, &levels);
        (axis.scale, axis.unit, levels.iter().map(|level| positions[level]).collect())
    }

    #[test]
    fn a_scale_fits_its_levels() {
        let sizes = levels("socket size", &["57344", "8192", "32768"]);
        assert_eq!(sizes, (Scale::Log, "B".to_owned(), vec![57_344.0, 8_192.0, 32_768.0]));
        assert_eq!(levels("block", &["64KiB", "1MiB"]).0, Scale::Log);
        assert_eq!(levels("rate", &["10Mbit", "1Gbit"]), (Scale::Log, "bit/s".to_owned(), vec![1e7, 1e9]));
        assert_eq!(levels("delay", &["0ms", "20ms"]), (Scale::Linear, "ns".to_owned(), vec![0.0, 2e7]));
        assert_eq!(levels("flows", &["1", "2", "3"]).0, Scale::Linear);
        assert_eq!(levels("flows", &["1", "4", "16"]).0, Scale::Log);
        assert_eq!(levels("cc", &["cubic", "bbr"]), (Scale::Names, String::new(), vec![0.0, 1.0]));
        // Levels that are no numbers all together are names.
        assert_eq!(levels("sndbuf", &["default", "64KiB"]).0, Scale::Names);
        let (scale, _, days) = levels("measured", &["2026-11-20", "2026-11-21"]);
        assert_eq!((scale, days[1] - days[0]), (Scale::Date, 86_400e9));
    }

    #[test]
    fn each_level_has_its_tick_in_ascending_order() {
        let names = ["9000", "1500"].map(str::to_owned);
        let axis = Levels::new("mtu", None, &names).axis;
        assert_eq!(axis.ticks, [(1_500.0, "1500 B".to_owned()), (9_000.0, "9000 B".to_owned())]);
    }
}
