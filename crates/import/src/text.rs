//! Numbers as other tools print them.

/// The lines of a text with their numbers from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..).zip(text.lines())
}

/// The largest number that a measurement has here: with [`MOST_ROWS`] of them a sum still fits into 64 bits.
const MOST: f64 = 1e14;
/// The most rows of one listing.
pub(crate) const MOST_ROWS: usize = 100_000;

/// A printed number that can be one: not below zero, and of a size that something was ever measured at.
pub(crate) fn number(word: &str) -> Option<f64> {
    // `inf`, `nan` and signs are no measurements.
    word.starts_with(|c: char| c.is_ascii_digit() || c == '.').then_some(())?;
    word.parse().ok().filter(|value: &f64| *value <= MOST)
}

/// The numbers of a line that has nothing else; `None` for any other line, and for an empty one.
pub(crate) fn numbers(line: &str) -> Option<Vec<f64>> {
    let all: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
    all.filter(|all| !all.is_empty())
}

/// Half of the last digit that `word` shows, in the unit it is printed in: how far the true value may be from it.
pub(crate) fn half_digit(word: &str) -> f64 {
    let decimals = word.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.5 * 10f64.powi(-i32::try_from(decimals).unwrap_or(i32::MAX))
}

/// How far the value of `word` may be off relative to it because of the digits it shows; infinite for zero.
pub(crate) fn resolution(word: &str) -> f64 {
    number(word).filter(|value| *value > 0.0).map_or(f64::INFINITY, |value| half_digit(word) / value)
}

/// Nanoseconds of `seconds`; 0, which is "not told" in a tally, for more than a day, which no trial takes.
pub(crate) fn ns(seconds: f64) -> u64 {
    let ns = (seconds * 1e9).round();
    if (0.0..=MOST).contains(&ns) { ns as u64 } else { 0 }
}

/// A whole number that a float holds exactly.
pub(crate) fn whole(value: f64) -> Option<u64> {
    ((0.0..=MOST).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

/// A block that a run may have: at least a byte, and an exact count.
pub(crate) fn block(value: f64) -> Option<u64> {
    whole(value).filter(|bytes| *bytes > 0)
}

/// The middle of some values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 { Some(upper) } else { Some((values[values.len() / 2 - 1] + upper) / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_how_sure_it_is() {
        assert_eq!(number("0.01"), Some(0.01));
        assert_eq!([number("inf"), number("-1"), number("NaN"), number("1e999")], [None; 4]);
        assert!((resolution("0.01") - 0.5).abs() < 1e-9, "{}", resolution("0.01"));
        assert!(resolution("0.00").is_infinite());
        assert!((half_digit("20134.6727") - 0.000_05).abs() < 1e-12);
        assert_eq!(median([3.0, 1.0, 2.0, 10.0]), Some(2.5));
        assert_eq!([block(0.0), block(1.5), block(8.0)], [None, None, Some(8)]);
    }
}
