//! flent's data files (`.flent`, JSON): several series over the same time, such as the streams and the pings of rrul.
//!
//! `results` holds each series' values at `x_values` (seconds), null where there is none, and `metadata` what was run (flent's
//! manual, "The Data File Format"); newer ones have each series' units in `metadata.SERIES_META`. Mbits are 10^6 bit.

use model::{Count, Direction, Factor, FactorKind, Interval, Pattern, Plan, RttTally, RunKind, Spec, Stop};
use serde_json::Value;

use super::ImportFormat;
use crate::error::DocumentError;
use crate::json::{Shape, documents, may_have_documents};
use crate::listing::{Certainty, Imported, Row, TextReading};
use crate::text::{MAX_ROWS, days_since_epoch, ns, rate_unit, time_unit};

/// flent's data files.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "flent", help: "flent's data files; each series is a cell", detect, read };

/// The factor whose levels are the series.
const SERIES: &str = "series";

fn detect(text: &str) -> Certainty {
    let shaped = may_have_documents(text) && text.contains("\"x_values\"") && text.contains("\"results\"");
    if shaped && text.contains("\"metadata\"") { Certainty::Certain } else { Certainty::No }
}

/// The documents of flent.
const SHAPE: Shape = Shape::of(|document| ["results", "x_values"].iter().any(|key| document.get(*key).is_some()));

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    for (line, found) in documents(text, SHAPE) {
        match found {
            Ok(document) => of_document(&document, line, &mut reading),
            Err(refused) => reading.refused.push(refused),
        }
    }
    reading
}

/// Times with values, null if there is none.
type Points = Vec<(f64, Option<f64>)>;

fn of_document(document: &Value, line: u32, reading: &mut TextReading) {
    let times: Vec<f64> = document["x_values"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let Some(results) = document["results"].as_object().filter(|_| !times.is_empty()) else {
        return reading.refuse(line, DocumentError::NoSeries);
    };
    if times.windows(2).any(|pair| pair[1] <= pair[0]) {
        return reading.refuse(line, DocumentError::Times);
    }
    let metadata = &document["metadata"];
    let mut rows = Vec::new();
    for (name, values) in results {
        let values = values.as_array().map_or(&[][..], Vec::as_slice);
        if values.len() != times.len() || times.len() > MAX_ROWS {
            let (series, values) = (name.clone(), values.len());
            reading.refuse(line, DocumentError::Values { series, values, times: times.len() });
            continue;
        }
        let impossible =
            |value: &&Value| !value.is_null() && !value.as_f64().is_some_and(|value| RANGE.contains(&value));
        if let Some(value) = values.iter().find(impossible) {
            reading.refuse(line, DocumentError::Value { series: name.clone(), value: value.to_string() });
            continue;
        }
        let values: Vec<Option<f64>> = values.iter().map(Value::as_f64).collect();
        let points: Points = times.iter().copied().zip(values).collect();
        match row(name, &points, &metadata["SERIES_META"][name], metadata, line) {
            Ok(row) => rows.push(row),
            Err(reason) => reading.refuse(line, reason),
        }
    }
    if rows.is_empty() {
        return;
    }
    let text = |key: &str| metadata[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let known = [
        "FLENT_VERSION",
        "HOST",
        "HOSTS",
        "LENGTH",
        "TITLE",
        "NAME",
        "SERIES_META",
        "LOCAL_HOST",
        "KERNEL_NAME",
        "KERNEL_RELEASE",
        "TIME",
    ];
    let keys = metadata.as_object().into_iter().flat_map(|object| object.iter());
    let unknown = keys.filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null());
    let levels = rows.iter().filter_map(|row: &Row| row.levels.get(SERIES).cloned()).collect();
    let factor =
        Factor { name: SERIES.into(), kind: FactorKind::Observed, key: SERIES.into(), levels, ..Factor::default() };
    let title = text("TITLE").or_else(|| text("NAME"));
    let test = text("NAME").map(|name| format!("flent's test {name}"));
    let mut imported = Imported {
        tool: "flent".into(),
        version: text("FLENT_VERSION"),
        kind: RunKind::Run,
        target: text("HOST").or_else(|| metadata["HOSTS"][0].as_str().map(str::to_owned)),
        measured_unix_ns: text("TIME").and_then(|time| unix_ns(&time)),
        rows,
        plan: Some(Plan { title, factors: vec![factor], ..Plan::default() }),
        assumed: vec!["block"],
        notes: test.into_iter().collect(),
        unknown: unknown.map(|(key, _)| format!("metadata.{key}")).collect(),
        ..Imported::default()
    };
    imported.near.hostname = text("LOCAL_HOST");
    imported.near.kernel = text("KERNEL_RELEASE");
    reading.imported.push(imported);
}

/// Values that a series can have.
const RANGE: std::ops::RangeInclusive<f64> = 0.0..=1e12;

fn row(name: &str, points: &Points, meta: &Value, metadata: &Value, line: u32) -> Result<Row, DocumentError> {
    let lower = name.to_lowercase();
    let ping = lower.starts_with("ping (ms)");
    // Without a unit a series is not a rate: with --socket-stats those of a flow's RTT and window have names that begin alike.
    let unit = meta["UNITS"].as_str().or(ping.then_some("ms")).or(unit_of_total(name, metadata));
    let unit = unit.ok_or_else(|| DocumentError::NoUnit(name.to_owned()))?;
    let values: Vec<f64> = points.iter().filter_map(|(_, value)| *value).collect();
    if values.is_empty() {
        return Err(DocumentError::NoValue(name.to_owned()));
    }
    let tcp = if lower.contains("tcp") { Some("tcp") } else { lower.contains("udp").then_some("udp") };
    let length = points.last().map_or(0.0, |(last, _)| *last) - points.first().map_or(0.0, |(first, _)| *first);
    let seconds = metadata["LENGTH"].as_f64().filter(|seconds| *seconds > 0.0).unwrap_or(length);
    let stop = Stop::TimeNs(ns(seconds).max(1));
    let text = format!("{name}: {} values in {unit}", values.len());
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let mut row = if let Some(scale) = time_unit(unit) {
        let transport = if lower.contains("icmp") { "icmp" } else { tcp.unwrap_or("udp") };
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = model::median(&values).unwrap_or(mean);
        let mut row = Row::new(Spec { stop, ..Spec::new(transport, Pattern::Pingpong) }, middle * scale, line, &text);
        let of = |value: f64| (value * scale).round() as u64;
        row.trial.near.rtt = Some(RttTally {
            count: values.len() as u64,
            min_ns: of(sorted[0]),
            p50_ns: of(middle),
            mean_ns: mean * scale,
            p99_ns: None,
            max_ns: of(sorted[sorted.len() - 1]),
            batch: 1,
            histogram: None,
        });
        row.remarks.push("round trips sampled at flent's intervals, not all that were measured".into());
        row
    } else if let Some(scale) = rate_unit(unit) {
        let down = lower.contains("download") || lower.contains("down");
        let direction = if lower.contains("totals") {
            Direction::Both
        } else if down {
            Direction::Reverse
        } else {
            Direction::Send
        };
        let spec = Spec { direction, stop, ..Spec::new(tcp.unwrap_or("tcp"), Pattern::Stream) };
        let mut row = Row::new(spec, mean * scale, line, &text);
        let receiver = if down { &mut row.trial.near } else { &mut row.trial.far };
        receiver.report(Count::ReceivingNs, ns(seconds));
        if direction != Direction::Both {
            receiver.intervals = series(points, scale);
        }
        row
    } else {
        return Err(DocumentError::Unit { series: name.to_owned(), unit: unit.to_owned() });
    };
    row.levels.insert(SERIES.into(), name.to_owned());
    row.figure("values", values.len() as f64);
    row.figure("mean", mean);
    if let Some(mean) = meta["MEAN_VALUE"].as_f64() {
        row.figure("flents_own_mean", mean);
    }
    Ok(row)
}

/// The unit of a sum or mean that flent computed, which is that of the series it is made of: `TCP totals` of `TCP upload BE` and others.
fn unit_of_total<'a>(name: &str, metadata: &'a Value) -> Option<&'a str> {
    let (kind, what) = name.split_once(' ')?;
    ["totals", "sum", "avg"].contains(&what).then_some(())?;
    let mut all = metadata["SERIES_META"].as_object()?.iter();
    all.find_map(|(other, meta)| other.strip_prefix(kind)?.starts_with(' ').then(|| meta["UNITS"].as_str())?)
}

/// Each value as the bytes that arrived since the previous time.
fn series(points: &Points, bits: f64) -> Vec<Interval> {
    let pair = |pair: &[(f64, Option<f64>)]| {
        let (start, end) = (pair[0].0, pair[1].0);
        let bytes = pair[1].1? * bits / 8.0 * (end - start);
        let received = (0.0..1e15).contains(&bytes).then_some(bytes as u64)?;
        Some(Interval { start_ns: ns(start), end_ns: ns(end), bytes_received: received, ..Interval::default() })
    };
    points.windows(2).filter_map(pair).collect()
}

/// `2026-11-22T14:03:20.123456Z`, ns since the Unix epoch; `None` for a time without a zone.
fn unix_ns(time: &str) -> Option<u64> {
    let (day, rest) = time.strip_suffix('Z')?.split_once('T')?;
    let mut day = day.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, of_month) = (day.next()??, day.next()??, day.next()??);
    let mut clock = rest.split(':');
    let (hour, minute): (u64, u64) = (clock.next()?.parse().ok()?, clock.next()?.parse().ok()?);
    let second: f64 = clock.next()?.parse().ok()?;
    (hour < 24 && minute < 60 && (0.0..61.0).contains(&second)).then_some(())?;
    let days = days_since_epoch(year, month, of_month)?;
    Some((days * 86_400 + hour * 3_600 + minute * 60) * 1_000_000_000 + (second * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ns_since_the_epoch() {
        assert_eq!(unix_ns("1970-01-01T00:00:00.5Z"), Some(500_000_000));
        assert_eq!(unix_ns("2026-11-22T14:03:20Z"), Some(1_795_356_200_000_000_000));
        assert_eq!(["2026-11-22T14:03:20", "2026-13-22T14:03:20Z", "x"].map(unix_ns), [None; 3]);
    }
}
