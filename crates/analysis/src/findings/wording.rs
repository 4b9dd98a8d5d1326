//! Figures as text.

use model::Estimate;
pub(crate) use model::units::rounded_size;
use model::units::{count, plus_minus};
use text::units::grouped;
use text::{Rate, Said, Size, Text, Time, say};

/// A block size.
pub(crate) fn size(bytes: u64) -> Text {
    Size(bytes).say()
}

/// A value in its unit, three digits.
pub(crate) fn value(value: f64, unit: &str) -> Text {
    match unit {
        "bit/s" => Rate(value).say(),
        "ns" => Time(value).say(),
        "1/s" => say!("{}/s", count(value)),
        _ => say!("{} {unit}", count(value)),
    }
}

/// `9.41 Gbit/s ±0.3 % (95 % interval)` or `9.41 Gbit/s (no interval)`.
pub(crate) fn estimate(estimate: &Estimate) -> Text {
    let value = value(estimate.value, &estimate.unit);
    match estimate.relative_half_width() {
        Some(half) => say!("{value} {} ({} interval)", plus_minus(half), confidence(estimate.confidence)),
        None => say!("{value} (no interval)"),
    }
}

/// `95 %`.
pub(crate) fn confidence(confidence: f64) -> String {
    format!("{} %", (confidence * 1000.0).round() / 10.0)
}

/// `1 pair`, `2 pairs`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// A relative change given as a difference of natural logarithms, as a percentage without a sign: `0.18` is `20 %`.
pub(super) fn percent(ln_change: f64) -> String {
    format!("{:.0} %", 100.0 * (ln_change.abs().exp() - 1.0))
}

/// The change of a rate by `ln` (below 0): as a loss relative to the higher rate if it falls, as a gain on the lower one if it
/// rises.
pub(crate) fn percent_of(ln: f64, falls: bool) -> String {
    if !falls && -ln > f64::ln(3.0) {
        return format!("{} times", model::units::three_digits((-ln).exp()));
    }
    let change = if falls { 1.0 - ln.exp() } else { (-ln).exp() - 1.0 };
    format!("{:.0} %", 100.0 * change)
}

/// `text` as a sentence: with a capital letter and a full stop.
pub(crate) fn sentence(text: Text) -> Text {
    text.capitalised() + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(value(9.41e9, "bit/s").plain(), "9.41 Gbit/s");
        assert_eq!(value(16_600.0, "1/s").plain(), "16.6 k/s");
        assert_eq!(percent(1.2f64.ln()), "20 %");
        assert_eq!((confidence(0.95), confidence(0.999)), ("95 %".into(), "99.9 %".into()));
        assert_eq!(
            (sentence("datagrams were lost".into()).plain(), sentence(Text::default()).plain()),
            ("Datagrams were lost.".into(), ".".into())
        );
    }
}
