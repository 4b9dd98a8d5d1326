//! Rates of a text in bytes per second instead of bits.

use model::units;

/// The unit of a rate after its number and prefix.
const BITS: &str = "bit/s";

/// Each `9.41 Gbit/s` as `1.18 GB/s`, with three digits. In a column, after two spaces or more, it keeps its width. Rates without a number
/// before them, such as the title of an axis, stay.
#[must_use]
pub fn rates_in_bytes(text: &str) -> String {
    let mut converted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BITS) {
        let (before, after) = (&rest[..at], &rest[at + BITS.len()..]);
        match number(before) {
            Some((start, bits)) => {
                let written = format!("{}/s", units::amount(bits / 8.0));
                let width = at + BITS.len() - start;
                let pad = if before[..start].ends_with("  ") { width.saturating_sub(written.len()) } else { 0 };
                converted.push_str(&before[..start]);
                converted.push_str(&" ".repeat(pad));
                converted.push_str(&written);
            }
            None => converted.push_str(&rest[..at + BITS.len()]),
        }
        rest = after;
    }
    converted + rest
}

/// The number at the end of a text with a prefix of a unit, and where it starts: `9.41 G`.
fn number(text: &str) -> Option<(usize, f64)> {
    let (digits, scale) = match text.chars().last()? {
        'T' => (&text[..text.len() - 1], 1e12),
        'G' => (&text[..text.len() - 1], 1e9),
        'M' => (&text[..text.len() - 1], 1e6),
        'k' => (&text[..text.len() - 1], 1e3),
        _ => (text, 1.0),
    };
    let digits = digits.strip_suffix(' ')?;
    let start = digits
        .rfind(|c: char| !c.is_ascii_digit() && c != '.')
        .map_or(0, |at| at + digits[at..].chars().next().map_or(1, char::len_utf8));
    let value: f64 = digits[start..].parse().ok()?;
    Some((start, value * scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_become_bytes_and_other_words_stay() {
        for (bits, bytes) in [
            ("goodput 9.41 Gbit/s ±0.3 %, at most 10 Gbit/s", "goodput 1.18 GB/s ±0.3 %, at most 1.25 GB/s"),
            ("800 bit/s", "100 B/s"),
            ("(941 Mbit/s)", "(118 MB/s)"),
            ("goodput (Gbit/s)", "goodput (Gbit/s)"),
            ("µ8.00 kbit/s and 3 segments", "µ1.00 kB/s and 3 segments"),
            ("1.60 Tbit/s", "200 GB/s"),
        ] {
            assert_eq!(rates_in_bytes(bits), bytes);
        }
    }

    #[test]
    fn a_column_keeps_its_width() {
        let row = "    1.0 s    9.41 Gbit/s            0";
        let bytes = rates_in_bytes(row);
        assert_eq!(bytes, "    1.0 s      1.18 GB/s            0");
        assert_eq!(bytes.len(), row.len());
    }
}
