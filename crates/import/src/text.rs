//! Numbers as other programs print them.

use std::borrow::Cow;

/// The text in a file: UTF-8, or UTF-16 with its mark, which some programs of Windows write. The mark is left out.
pub(crate) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let units = |pairs: &[u8], of: fn([u8; 2]) -> u16| -> Cow<'static, str> {
        let units: Vec<u16> = pairs.chunks_exact(2).map(|pair| of([pair[0], pair[1]])).collect();
        Cow::Owned(String::from_utf16_lossy(&units))
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        _ => String::from_utf8_lossy(bytes),
    }
}

/// The text without the `^C` that a terminal shows before the line at which somebody ended a program.
pub(crate) fn without_interrupts(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains("^C") { text.replace("\n^C", "\n").into() } else { text }
}

/// The lines of a text with their numbers from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..).zip(text.lines())
}

/// The text without the escape sequences of terminals that colour it.
pub(crate) fn uncoloured(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // `[1;32m` ends with its first letter.
        let rest = part.strip_prefix('[').and_then(|rest| rest.split_once(|c: char| c.is_ascii_alphabetic()));
        plain.push_str(rest.map_or(part, |(_, rest)| rest));
    }
    Cow::Owned(plain)
}

/// The largest number that is read: the largest up to which a float holds every integer. It is the bytes of 80 days at 10 Gbit/s.
pub(crate) const MAX_NUMBER: f64 = 9_007_199_254_740_992.0;
/// A value with a larger relative rounding error is flagged.
pub(crate) const COARSE: f64 = 0.05;
/// The largest number of rows of one listing.
pub(crate) const MAX_ROWS: usize = 100_000;

/// A printed number that can be a measurement: not negative and not too large.
pub(crate) fn number(word: &str) -> Option<f64> {
    // `inf`, `nan` and signs are not read.
    word.starts_with(|c: char| c.is_ascii_digit() || c == '.').then_some(())?;
    word.parse().ok().filter(|value: &f64| *value <= MAX_NUMBER)
}

/// The number after `label`; `None` for one with a decimal comma, which these programs do not print.
pub(crate) fn after(line: &str, label: &str) -> Option<f64> {
    let rest = line.split_once(label)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let comma = rest[end..].strip_prefix(',').is_some_and(|more| more.starts_with(|c: char| c.is_ascii_digit()));
    if comma { None } else { number(rest[..end].trim_end_matches('.')) }
}

/// The numbers of a line that consists of numbers; `None` for any other line, and for an empty one.
pub(crate) fn numbers(line: &str) -> Option<Vec<f64>> {
    let all: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
    all.filter(|all| !all.is_empty())
}

/// Half of the last digit of `word`, in its unit: the largest rounding error.
pub(crate) fn half_digit(word: &str) -> f64 {
    let decimals = word.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.5 * 10f64.powi(-i32::try_from(decimals).unwrap_or(i32::MAX))
}

/// The relative rounding error of `word` by its digits; infinite for zero.
pub(crate) fn resolution(word: &str) -> f64 {
    number(word).filter(|value| *value > 0.0).map_or(f64::INFINITY, |value| half_digit(word) / value)
}

/// Nanoseconds of `seconds`; 0, which is "unreported" in a tally, for more than a hundred days.
pub(crate) fn ns(seconds: f64) -> u64 {
    let ns = (seconds * 1e9).round();
    if (0.0..=MAX_NUMBER).contains(&ns) { ns as u64 } else { 0 }
}

/// An integer that a float holds exactly.
pub(crate) fn whole(value: f64) -> Option<u64> {
    ((0.0..=MAX_NUMBER).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

/// A valid block size: an integer of at least one byte.
pub(crate) fn block(value: f64) -> Option<u64> {
    whole(value).filter(|bytes| *bytes > 0)
}

/// Bytes of a unit of size as iperf and similar programs print it: powers of 1024.
pub(crate) fn binary_size(word: &str) -> Option<f64> {
    Some(match word {
        "B" | "Byte" | "Bytes" | "bytes" => 1.0,
        "KB" | "KByte" | "KBytes" => 1024.0,
        "MB" | "MByte" | "MBytes" => 1_048_576.0,
        "GB" | "GByte" | "GBytes" => 1_073_741_824.0,
        "TByte" | "TBytes" => 1_099_511_627_776.0,
        _ => return None,
    })
}

/// bit/s of a unit of rate: prefixes of bits are decimal, iperf's prefixes of bytes are binary.
pub(crate) fn rate_unit(word: &str) -> Option<f64> {
    if let Some(size) = word.strip_suffix("/sec").filter(|size| size.ends_with("ytes") || size.ends_with("yte")) {
        return binary_size(size).map(|bytes| bytes * 8.0);
    }
    let word = word.strip_suffix("ec").unwrap_or(word);
    let (prefix, rest) = word.split_at(usize::from(word.starts_with(['k', 'K', 'M', 'G', 'T'])));
    let scale = match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => 1e12,
    };
    ["bit/s", "bits/s", "b/s", "bps"].contains(&rest).then_some(scale)
}

/// ns of a unit of time.
pub(crate) fn time_unit(word: &str) -> Option<f64> {
    Some(match word {
        "ns" | "nsec" => 1.0,
        "us" | "usec" | "\u{b5}s" => 1e3,
        "ms" | "msec" => 1e6,
        "s" | "sec" => 1e9,
        _ => return None,
    })
}

/// Seconds of the day of `13:57:34`.
pub(crate) fn clock(word: &str) -> Option<u64> {
    let mut parts = word.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    (parts.next().is_none() && hour < 24 && minute < 60 && second < 61).then(|| (hour * 60 + minute) * 60 + second)
}

/// Days since the Unix epoch of a date; `None` for one that is none, or before it. (H. Hinnant, "chrono-compatible low-level date
/// algorithms": years begin in March.)
pub(crate) fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    let valid = (1970..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    valid.then_some(())?;
    let shifted = if month > 2 { year } else { year - 1 };
    let since_march = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + since_march - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_a_resolution() {
        assert_eq!(number("0.01"), Some(0.01));
        assert_eq!([number("inf"), number("-1"), number("NaN"), number("1e999")], [None; 4]);
        assert!((resolution("0.01") - 0.5).abs() < 1e-9, "{}", resolution("0.01"));
        assert!(resolution("0.00").is_infinite());
        assert!((half_digit("20134.6727") - 0.000_05).abs() < 1e-12);
        assert_eq!([block(0.0), block(1.5), block(8.0)], [None, None, Some(8)]);
        let found = ["a = 1.5 us", "a = 2.", "a = 1,5", "a = 3, b", "b = 1"].map(|line| after(line, "a ="));
        assert_eq!(found, [Some(1.5), Some(2.0), None, Some(3.0), None]);
    }

    #[test]
    fn bits_are_decimal_and_iperfs_bytes_binary() {
        let units =
            ["bits/sec", "Mbits/sec", "Gbit/s", "kbps", "MBytes/sec", "Bytes/sec", "Mbit", "", "T"].map(rate_unit);
        let mebi = Some(8.0 * 1_048_576.0);
        assert_eq!(units, [Some(1.0), Some(1e6), Some(1e9), Some(1e3), mebi, Some(8.0), None, None, None]);
        assert_eq!(["us", "ms", "sec", "m"].map(time_unit), [Some(1e3), Some(1e6), Some(1e9), None]);
    }
}
