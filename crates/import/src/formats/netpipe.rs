//! NetPIPE: its files (np.out) and its screen output.
//!
//! | version | a line of the file | a line on the screen |
//! | --- | --- | --- |
//! | 2.x | seconds, Mbps, bits, bytes, variance | `0: 1 bytes 7241 times --> 0.23 Mbps in 0.000033 sec` |
//! | 3.x | bytes, Mbps, seconds | the same with usec |
//! | 5.x | bytes, average, min and max Gbps, usec | `1: 1.027 KB 24999 times --> 350.123 Mbps in 22.812 usecs`, coloured |
//!
//! Source: the programs' own sources; Mbps of 2.x and 3.x are 2^20 bit/s, units of 5.x are powers of 1000. Times are half a round trip,
//! or (with -2, where bytes are those of both directions, and -s) the time of an exchange.

use std::collections::BTreeMap;

use model::{Direction, Pattern, RunKind, Spec, Verdict};

use super::ImportFormat;
use crate::error::{Contradiction, ImportError, NetpipeLineError};
use crate::listing::{Certainty, Imported, Row, TextReading};
use crate::text::{MAX_ROWS, block, lines, number, numbers, resolution, uncoloured};

/// NetPIPE.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "netpipe", help: "NetPIPE's np.out (2.x, 3.x, 5.x) and its screen output", detect, read };

/// bit/s of NetPIPE's Mbps before 5.x.
const MBPS: f64 = 1_048_576.0;
/// Values with a larger relative rounding error are flagged.
const COARSE: f64 = 0.01;

fn detect(text: &str) -> Certainty {
    let text = &*uncoloured(text);
    if lines(text).any(|(_, line)| line.contains(" times -->") && size_of_screen(line).is_some()) {
        return Certainty::Certain;
    }
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let points = all.iter().filter(|line| Point::of_file(line).is_some()).count();
    if points >= 1 && points * 10 >= all.len() * 8 { Certainty::Possible } else { Certainty::No }
}

/// Units of the work that 5.x measures beside the network.
const WORK: [&str; 2] = [" GB/sec", " GFlops"];

/// The size in a line of the screen, and its relative rounding error: `17: 1.027 KB 24999 times -->`. Only 5.x rounds it.
fn size_of_screen(line: &str) -> Option<(u64, f64)> {
    let (_, rest) = line.split_once("-->")?.0.split_once(':')?;
    let mut words = rest.split_whitespace();
    let (size, unit) = (words.next()?, words.next()?);
    let (scale, rounded) = match unit {
        "bytes" | "B" => (1.0, false),
        "KB" => (1e3, false),
        "MB" => (1e6, true),
        "GB" => (1e9, true),
        _ => return None,
    };
    let bytes = block((number(size)? * scale).round())?;
    Some((bytes, if rounded { resolution(size) } else { 0.0 }))
}

/// Whether the rates of a line of 5.x, Gbit/s, are in order. Its shortest time is never below 1 µs, so that the highest rate may be
/// below the mean one.
fn in_order(bytes: f64, [min, average, max]: [f64; 3]) -> bool {
    const LAST_DIGIT: f64 = 0.000_5;
    let fastest = bytes * 8.0 * 1e-3;
    min <= average && (average <= max || (max - fastest).abs() <= LAST_DIGIT + 1e-9)
}

/// How the ends used the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    PingPong,
    Both,
    Stream,
}

/// One size, as printed.
#[derive(Clone)]
struct Point {
    /// Bytes as printed: with -2 the sum of both directions.
    bytes: u64,
    /// bit/s.
    rate: f64,
    /// Relative rounding error of the rate.
    rate_rounding: f64,
    /// Seconds.
    time: f64,
    /// Relative rounding error of the time.
    time_rounding: f64,
    /// Version, by the layout.
    version: &'static str,
}

impl Point {
    /// A line of np.out.
    fn of_file(line: &str) -> Option<Self> {
        // 5.x may add what the processor did meanwhile.
        let line = WORK.iter().find_map(|unit| line.trim_end().strip_suffix(unit)).unwrap_or(line);
        let all = numbers(line)?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let rounding = |column: usize| resolution(words[column]);
        let point = match all.as_slice() {
            [bytes, rate, time] => Self {
                bytes: block(*bytes)?,
                rate: rate * MBPS,
                rate_rounding: rounding(1),
                time: *time,
                time_rounding: rounding(2),
                version: "3",
            },
            [time, rate, bits, bytes, _] if block(*bytes).is_some() && *bits == *bytes * 8.0 => Self {
                bytes: block(*bytes)?,
                rate: rate * MBPS,
                rate_rounding: rounding(1),
                time: *time,
                time_rounding: rounding(0),
                version: "2",
            },
            [bytes, average, min, max, time, ..] if in_order(*bytes, [*min, *average, *max]) => Self {
                bytes: block(*bytes)?,
                rate: average * 1e9,
                rate_rounding: rounding(1),
                time: time * 1e-6,
                time_rounding: rounding(4),
                version: "5",
            },
            _ => return None,
        };
        // A block of less than 5 ns has the time 0.00000000.
        let timed = point.time > 0.0 || (point.rate > 0.0 && point.version == "3" && words[2].len() > 9);
        (point.rate >= 0.0 && timed && point.agrees()).then_some(point)
    }

    /// A line on the screen: `0:  1 bytes  11600 times -->  0.77 Mbps in  9.96 usec`, of 5.x
    /// `1:  1.027 KB  24999 times -->  350.123 Mbps  in  22.812 usecs`.
    ///
    /// With -2 the size is that of one direction, and the rate that of both. The `first` point of a listing decides whether it is one
    /// of these.
    fn of_screen(line: &str, first: bool, mode: &mut Mode) -> Result<Self, ImportError> {
        let (_, result) = line.split_once("-->").ok_or(ImportError::Missing("result after the repeat count"))?;
        let words: Vec<&str> = result.split_whitespace().collect();
        let (bytes, size_rounding) = size_of_screen(line).ok_or(ImportError::Missing("block size"))?;
        let [rate, rate_unit, "in", time, unit, ..] = words.as_slice() else {
            return Err(ImportError::Missing("rate and time"));
        };
        let (scale, version) = match *unit {
            "usec" => (1e-6, "3"),
            "sec" => (1.0, "2"),
            "nsecs" => (1e-9, "5"),
            "usecs" => (1e-6, "5"),
            "msecs" => (1e-3, "5"),
            "secs" => (1.0, "5"),
            _ => return Err(NetpipeLineError::Unit("time").into()),
        };
        let bps = match (version, *rate_unit) {
            ("5", "bps") => 1.0,
            ("5", "Kbps") => 1e3,
            ("5", "Mbps") => 1e6,
            ("5", "Gbps") => 1e9,
            ("5", "Tbps") => 1e12,
            ("2" | "3", "Mbps") => MBPS,
            _ => return Err(NetpipeLineError::Unit("rate").into()),
        };
        let (rate_rounding, time_rounding) = (resolution(rate) + size_rounding, resolution(time));
        let none = ImportError::Figure { name: "rate or time", what: "a number" };
        let (rate, time) = number(rate).zip(number(time)).ok_or(none)?;
        let point = Self { bytes, rate: rate * bps, rate_rounding, time: time * scale, time_rounding, version };
        let both = Self { bytes: point.bytes * 2, ..point };
        if *mode != Mode::Both && point.agrees() {
            return Ok(point);
        }
        if (*mode == Mode::Both || first) && both.agrees() {
            *mode = Mode::Both;
            return Ok(both);
        }
        Err(Contradiction::RateAndTime.into())
    }

    /// Whether bytes over time are the rate, within rounding errors.
    fn agrees(&self) -> bool {
        let most = 1.1 * (self.rate_rounding + self.time_rounding) + 1e-6;
        let ratio = self.bytes as f64 * 8.0 / self.time / self.rate;
        // A rate of one digit may be twice the exact one.
        !most.is_finite() || ratio.ln().abs() <= most || (ratio - 1.0).abs() <= most
    }

    /// Seconds, from the rate or the time, whichever has more digits.
    fn seconds(&self) -> f64 {
        if self.rate_rounding < self.time_rounding { self.bytes as f64 * 8.0 / self.rate } else { self.time }
    }

    fn row(&self, mode: Mode, line: u32, text: &str) -> Option<Row> {
        let seconds = self.seconds();
        let (spec, value) = match mode {
            Mode::PingPong => (Spec { block: self.bytes, ..Spec::new("tcp", Pattern::Pingpong) }, seconds * 2e9),
            Mode::Both => {
                let spec =
                    Spec { block: self.bytes / 2, direction: Direction::Both, ..Spec::new("tcp", Pattern::Pingpong) };
                (spec, seconds * 1e9)
            }
            Mode::Stream => {
                (Spec { block: self.bytes, ..Spec::new("tcp", Pattern::Stream) }, self.bytes as f64 * 8.0 / seconds)
            }
        };
        if spec.block == 0 || !(value > 0.0 && value.is_finite()) {
            return None;
        }
        let mut row = Row::new(spec, value, line, text);
        row.figure("rate_bps", self.rate);
        row.figure("time_ns", self.time * 1e9);
        let rounding = self.rate_rounding.min(self.time_rounding);
        if rounding > COARSE {
            row.flag(Verdict::ResolutionLimited, "rate and time have too few digits for an accuracy of 1 %");
        }
        Some(row)
    }
}

fn read(text: &str) -> TextReading {
    let text = &*uncoloured(text);
    let mut reading = TextReading::default();
    let mut mode = Mode::PingPong;
    let (mut file, mut screen): (Points<'_>, Points<'_>) = Default::default();
    let (mut files, mut screens): (Vec<Points<'_>>, Vec<Points<'_>>) = Default::default();
    let known = detect(text);
    for (number, line) in lines(text) {
        if file.len().max(screen.len()) >= MAX_ROWS {
            reading.refuse(number, ImportError::TooMany { most: MAX_ROWS, what: "points" });
            break;
        }
        if line.contains("Passing data in both directions") || line.contains("Bidirectional mode") {
            mode = Mode::Both;
        } else if line.contains("Streaming in one direction only") || line.contains("Streaming data in one direction") {
            mode = Mode::Stream;
        } else if line.contains("times -->") && line.contains("Integrity check passed") {
            continue;
        } else if line.contains("times -->") {
            match Point::of_screen(line, screen.is_empty() && screens.is_empty(), &mut mode) {
                Ok(point) => {
                    // A smaller block begins a new listing.
                    if screen.last().is_some_and(|(_, _, last)| point.bytes < last.bytes) {
                        screens.push(std::mem::take(&mut screen));
                    }
                    screen.push((number, line, point));
                }
                Err(reason) => reading.refuse_text(number, line, reason),
            }
        } else if let Some(point) = Point::of_file(line) {
            if file.last().is_some_and(|(_, _, last)| point.bytes < last.bytes) {
                files.push(std::mem::take(&mut file));
            }
            file.push((number, line, point));
        } else if screen.is_empty() && screens.is_empty() && known == Certainty::Possible && !line.trim().is_empty() {
            reading.refuse_text(number, line, NetpipeLineError::NotAPoint);
        }
    }
    // If both are present they are the same points, of which one may be cut; the file has more digits.
    screens.push(screen);
    files.push(file);
    let copied = |points: &Points<'_>, others: &[Points<'_>]| others.iter().any(|other| repeats(points, other));
    let all_screens = screens.clone();
    screens.retain(|points| !copied(points, &files));
    // If a screen and a file are equal, the file stays.
    let whole = |points: &Points<'_>| all_screens.iter().any(|screen| repeats(screen, points));
    files.retain(|points| whole(points) || !copied(points, &all_screens));
    reading.imported.extend(screens.iter().chain(&files).filter_map(|points| listing(points, mode)));
    reading
}

/// Whether all points are among the other ones, within the digits of the screen.
fn repeats(points: &Points<'_>, others: &Points<'_>) -> bool {
    const ROUNDING: f64 = 0.05;
    let mut rates: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    others.iter().for_each(|(.., other)| rates.entry(other.bytes).or_default().push(other.rate));
    let known = |point: &Point| {
        let alike = rates.get(&point.bytes).into_iter().flatten();
        alike.take(MOST_ALIKE).any(|rate| (rate - point.rate).abs() <= ROUNDING * rate.max(point.rate))
    };
    !points.is_empty() && points.iter().all(|(.., point)| known(point))
}

/// Points of one size that are compared.
const MOST_ALIKE: usize = 10;

/// The points of a listing with their lines.
type Points<'a> = Vec<(u32, &'a str, Point)>;

fn listing(points: &[(u32, &str, Point)], mode: Mode) -> Option<Imported> {
    let version = points.first().map(|(_, _, point)| point.version)?;
    let mut rows: Vec<Row> = points.iter().filter_map(|(line, text, point)| point.row(mode, *line, text)).collect();
    let unit = if version == "5" { "10^9 bit/s" } else { "2^20 bit/s" };
    let mut notes = vec![match mode {
        Mode::PingPong => format!("rates are in units of {unit}; times are half a round trip, NetPIPE's default"),
        Mode::Both => format!("rates are in units of {unit}; bytes and rates are the sum of both directions (-2)"),
        Mode::Stream => format!("rates are in units of {unit}; stream mode (-s)"),
    }];
    if mode == Mode::PingPong && rows.len() > 2 && rows.iter().all(|row| row.spec.block % 2 == 0) {
        notes.push(
            "all sizes are even: if this is the output of NPtcp -2, sizes and times cover both directions".into(),
        );
    }
    for row in &mut rows {
        row.trial.verdicts.sort_unstable();
    }
    Some(Imported {
        tool: "NetPIPE".into(),
        version: Some(format!("{version}.x")),
        kind: RunKind::Curve,
        rows,
        notes,
        ..Imported::default()
    })
    .filter(|imported| !imported.rows.is_empty())
}
