//! The ticks of an axis and their texts.

use model::{Axis, ByteSize, Scale};
use text::RateUnit;

use crate::span::Span;
use crate::{TAIL_UNIT, dates};

/// The ticks of one axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticks {
    /// Value and text, ascending.
    pub major: Vec<(f64, String)>,
    /// Values with a fainter line and no text.
    pub minor: Vec<f64>,
    /// The axis' label, with the unit if the ticks' texts have none.
    pub title: String,
}

impl Ticks {
    /// At most `room` labelled ticks (and at least two if the axis allows) for `axis` over `span`.
    #[must_use]
    pub fn new(axis: &Axis, span: &Span, room: usize, rates: RateUnit) -> Self {
        let room = room.max(2);
        let given = given(axis, span);
        if span.scale == Scale::Names || given.len() > 1 {
            return Self { major: given, minor: Vec::new(), title: axis.label.clone() };
        }
        match span.scale {
            Scale::Date => {
                let (major, title) = dates::ticks(axis, span, room);
                Self { major, minor: Vec::new(), title }
            }
            Scale::Linear | Scale::Names => linear(axis, span, room, rates),
            Scale::Log => {
                let (values, minor) = match axis.unit.as_str() {
                    "B" => binary(span, room),
                    TAIL_UNIT => (tail(span, room), Vec::new()),
                    _ => decimal(span, room, if is_bytes(&axis.unit, rates) { 8.0 } else { 1.0 }),
                };
                let major = values.into_iter().map(|value| (value, tick_text(value, &axis.unit, rates))).collect();
                Self { major, minor, title: axis.label.clone() }
            }
        }
    }
}

/// The axis' own ticks that the span shows.
fn given(axis: &Axis, span: &Span) -> Vec<(f64, String)> {
    let inside =
        |(value, _): &&(f64, String)| span.position(*value).is_some_and(|share| (-1e-9..=1.0 + 1e-9).contains(&share));
    axis.ticks.iter().filter(inside).cloned().collect()
}

/// Powers of two: each is a line, every n-th has a text.
fn binary(span: &Span, room: usize) -> (Vec<f64>, Vec<f64>) {
    let (first, last) = (span.low.log2().ceil() as i32, span.high.log2().floor() as i32);
    let step =
        [1, 2, 3, 4, 5, 6, 10, 20, 50].into_iter().find(|step| (last - first) / step < room as i32).unwrap_or(100);
    let major: Vec<f64> = (first..=last).filter(|n| n % step == 0).map(|n| 2f64.powi(n)).collect();
    if major.len() < 2 {
        return (even(span, room), Vec::new());
    }
    let minor = if last - first <= 64 { (first..=last).map(|n| 2f64.powi(n)).collect() } else { Vec::new() };
    (major, minor)
}

/// The finest of: evenly spaced values, 1-2-5, decades, every second decade and so on, that fits the room; round in a unit of `factor`.
fn decimal(span: &Span, room: usize, factor: f64) -> (Vec<f64>, Vec<f64>) {
    let (values, minor) = round(&Span { low: span.low / factor, high: span.high / factor, ..*span }, room);
    let scaled = |values: Vec<f64>| values.into_iter().map(|value| value * factor).collect();
    (scaled(values), scaled(minor))
}

fn round(span: &Span, room: usize) -> (Vec<f64>, Vec<f64>) {
    let decades = (span.high / span.low).log10();
    if decades < 0.8 {
        return (even(span, room), Vec::new());
    }
    let (first, last) = (span.low.log10().floor() as i32, span.high.log10().ceil() as i32);
    let inside = |value: &f64| *value >= span.low * 0.999_999 && *value <= span.high * 1.000_001;
    let at = |digits: &[f64], every: i32| -> Vec<f64> {
        let exponents = (first..=last).filter(|n| n % every == 0);
        exponents.flat_map(|n| digits.iter().map(move |d| d * 10f64.powi(n))).filter(inside).collect()
    };
    let minor = if decades <= 8.0 { at(&[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 1) } else { Vec::new() };
    let one_two_five = at(&[1.0, 2.0, 5.0], 1);
    if one_two_five.len() <= room && decades < 3.2 {
        return (one_two_five, minor);
    }
    let every = (1..=400).find(|every| at(&[1.0], *every).len() <= room).unwrap_or(400);
    (at(&[1.0], every), minor)
}

/// 0 %, 50 %, 90 %, 99 % and so on.
fn tail(span: &Span, room: usize) -> Vec<f64> {
    let decades = (1..=15).map(|n| 10f64.powi(n));
    let inside = |value: &f64| *value >= span.low && *value <= span.high;
    [1.0, 2.0].into_iter().chain(decades).filter(inside).take(room + 2).collect()
}

/// Round values at equal distances.
fn even(span: &Span, room: usize) -> Vec<f64> {
    let (step, _) = nice_step(span.high - span.low, room);
    multiples(span, step)
}

fn multiples(span: &Span, step: f64) -> Vec<f64> {
    let first = (span.low / step).ceil();
    let inside = |value: &f64| *value <= span.high + step * 1e-9;
    (0..100).map(|n| (first + f64::from(n)) * step).take_while(inside).collect()
}

/// A step of 1, 2, 2.5 or 5 times a power of ten that makes at most `room` ticks, and the decimals that it needs.
fn nice_step(length: f64, room: usize) -> (f64, usize) {
    let rough = (length / room as f64).max(f64::MIN_POSITIVE * 1e10);
    let exponent = rough.log10().floor() as i32;
    let power = 10f64.powi(exponent);
    let digit = [1.0, 2.0, 2.5, 5.0].into_iter().find(|digit| digit * power >= rough * 0.999_999).unwrap_or(10.0);
    let exponent = if digit > 9.0 { exponent + 1 } else { exponent };
    let decimals = (-exponent).max(0) as usize + usize::from(digit == 2.5 && exponent <= 0);
    (digit * power, decimals)
}

fn linear(axis: &Axis, span: &Span, room: usize, rates: RateUnit) -> Ticks {
    let largest = span.high.abs().max(span.low.abs());
    let (factor, unit) = prefix(largest, &axis.unit, rates);
    let scaled = Span { low: span.low / factor, high: span.high / factor, ..*span };
    let (step, decimals) = match nice_step(scaled.high - scaled.low, room) {
        (step, _) if axis.counts && factor == 1.0 && step < 1.0 => (1.0, 0),
        (step, decimals) => (step, decimals.min(12)),
    };
    let text = |value: f64| if value == 0.0 { "0".to_owned() } else { format!("{value:.decimals$}") };
    let major = multiples(&scaled, step).into_iter().map(|value| (value * factor, text(value))).collect();
    let title = if unit.is_empty() { axis.label.clone() } else { format!("{} ({unit})", axis.label) };
    Ticks { major, minor: Vec::new(), title }
}

const BYTES: &[(f64, &str)] =
    &[(1_099_511_627_776.0, "TiB"), (1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1_024.0, "KiB"), (1.0, "B")];
const RATES: &[(f64, &str)] = &[(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
const TIMES: &[(f64, &str)] = &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const COUNTS: &[(f64, &str)] = &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];

const BYTE_RATES: &[(f64, &str)] = &[(8e12, "TB/s"), (8e9, "GB/s"), (8e6, "MB/s"), (8e3, "kB/s"), (8.0, "B/s")];

fn is_bytes(unit: &str, rates: RateUnit) -> bool {
    unit == "bit/s" && rates == RateUnit::Bytes
}

/// The divisor and the prefixed unit for `value`.
pub(crate) fn prefix(value: f64, unit: &str, rates: RateUnit) -> (f64, String) {
    let table = match unit {
        "B" => BYTES,
        "bit/s" if rates == RateUnit::Bytes => BYTE_RATES,
        "bit/s" => RATES,
        "ns" => TIMES,
        _ => COUNTS,
    };
    let fitting = table.iter().find(|(size, _)| value.abs() >= size * 0.999_999);
    let (size, name) = fitting.or(table.last()).copied().unwrap_or((1.0, ""));
    let name = match unit.strip_prefix("1/") {
        _ if !std::ptr::eq(table, COUNTS) => name.to_owned(),
        Some(time) if !name.is_empty() => format!("{name}/{time}"),
        _ => format!("{name}{unit}"),
    };
    (size, name)
}

/// A tick's text with its unit: `64 KiB`, `10 µs`, `2.5 Gbit/s`, `99.9 %`.
fn tick_text(value: f64, unit: &str, rates: RateUnit) -> String {
    match unit {
        "B" if value >= 1.0 => ByteSize(value.round() as u64).to_string(),
        TAIL_UNIT => tail_percent(value),
        _ => {
            let (factor, unit) = prefix(value, unit, rates);
            format!("{} {unit}", short_number(value / factor)).trim_end().to_owned()
        }
    }
}

/// The percentile of a value in [`TAIL_UNIT`], with all its nines.
pub(crate) fn tail_percent(value: f64) -> String {
    let beyond = 100.0 / value.max(1.0);
    let decimals = (2.0 - beyond.log10()).ceil().clamp(0.0, 12.0) as usize;
    let text = format!("{:.decimals$}", 100.0 - beyond);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// Up to four decimals, with an exponent only for very large and very small values.
fn short_number(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e6).contains(&value.abs()) {
        return format!("{value:e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(unit: &str, scale: Scale, values: &[f64], room: usize) -> Vec<String> {
        let axis = Axis::new("a", unit, scale);
        let ticks = Ticks::new(&axis, &Span::fit(scale, values.iter().copied(), 0.02), room, RateUnit::Bits);
        ticks.major.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn block_sizes_are_powers_of_two_with_their_names() {
        assert_eq!(
            texts("B", Scale::Log, &[1.0, 8_388_611.0], 9),
            ["1 B", "8 B", "64 B", "512 B", "4 KiB", "32 KiB", "256 KiB", "2 MiB"]
        );
        assert_eq!(texts("B", Scale::Log, &[64.0, 256.0], 9), ["64 B", "128 B", "256 B"]);
    }

    #[test]
    fn a_frequency_has_its_prefix_before_the_stroke() {
        let units = [3.0, 3e4, 3e7].map(|value| prefix(value, "1/s", RateUnit::Bits).1);
        assert_eq!(units, ["1/s", "k/s", "M/s"]);
        assert_eq!(prefix(3e4, "", RateUnit::Bits).1, "k");
    }

    #[test]
    fn times_step_through_their_prefixes() {
        assert_eq!(texts("ns", Scale::Log, &[9e3, 60e6], 8), ["10 µs", "100 µs", "1 ms", "10 ms"]);
        assert_eq!(texts("ns", Scale::Log, &[9e3, 60e3], 8), ["10 µs", "20 µs", "50 µs"]);
    }

    #[test]
    fn rates_have_one_prefix_for_the_axis() {
        assert_eq!(texts("bit/s", Scale::Linear, &[46.4e9], 6), ["0", "10", "20", "30", "40"]);
        assert_eq!(texts("bit/s", Scale::Linear, &[1.1e6], 6), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    }

    #[test]
    fn rates_in_bytes_are_round_in_bytes() {
        let ticks = |scale, values: [f64; 2]| {
            let span = Span::fit(scale, values.into_iter(), 0.0);
            Ticks::new(&Axis::new("rate", "bit/s", scale), &span, 6, RateUnit::Bytes)
        };
        let linear = ticks(Scale::Linear, [0.0, 40e9]);
        assert_eq!((linear.title.as_str(), linear.major[1].clone()), ("rate (GB/s)", (8e9, "1".to_owned())));
        let log = ticks(Scale::Log, [8e6, 8e9]);
        assert!(log.major.contains(&(8e8, "100 MB/s".to_owned())), "{:?}", log.major);
    }

    #[test]
    fn percentiles_read_as_percent() {
        let wanted = ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"];
        assert_eq!(texts(TAIL_UNIT, Scale::Log, &[1.0, 20_000.0], 9), wanted);
    }

    proptest! {
        #[test]
        fn ticks_are_few_ascending_and_readable(
            a in 1e-6..1e15f64, b in 1e-6..1e15f64, room in 2usize..12, log in any::<bool>(),
            unit in prop_oneof![Just("B"), Just("bit/s"), Just("ns"), Just("1/s"), Just(TAIL_UNIT)],
        ) {
            let scale = if log { Scale::Log } else { Scale::Linear };
            let axis = Axis::new("a", unit, scale);
            let ticks = Ticks::new(&axis, &Span::fit(scale, [a, b].into_iter(), 0.03), room, RateUnit::Bits);
            prop_assert!(ticks.major.len() <= room + 3, "{:?}", ticks.major);
            prop_assert!(ticks.major.windows(2).all(|pair| pair[0].0 < pair[1].0));
            prop_assert!(ticks.major.iter().all(|(value, text)| value.is_finite() && !text.is_empty() && !text.contains("NaN")));
        }
    }
}
