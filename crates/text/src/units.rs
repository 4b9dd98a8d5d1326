//! Numbers for people, with three significant digits and a unit.

/// A rate in bit/s with three significant digits and its decimal prefix.
#[must_use]
pub fn bits_per_second(value: f64) -> String {
    with_prefix(value, &[(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")])
}

/// A time in nanoseconds, with three significant digits in a suitable unit.
#[must_use]
pub fn seconds(ns: f64) -> String {
    with_prefix(ns, &[(1e9, "s"), (1e6, "ms"), (1e3, "\u{b5}s"), (1.0, "ns")])
}

/// An amount of bytes with three significant digits and its decimal prefix ("4.29 GB").
#[must_use]
pub fn amount(bytes: f64) -> String {
    with_prefix(bytes, &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")])
}

/// A count or frequency with three significant digits and a decimal prefix ("16.6 k").
#[must_use]
pub fn count(value: f64) -> String {
    with_prefix(value, &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]).trim_end().to_owned()
}

/// A number of things with a comma between each three digits: `38`, `1,740`.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    digits.char_indices().fold(String::new(), |mut grouped, (at, digit)| {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
        grouped
    })
}

fn with_prefix(value: f64, units: &[(f64, &str)]) -> String {
    // 999.6 would print as "1000" with three digits: use the next unit from there.
    let fitting = units.iter().find(|(size, _)| value.abs() >= size * 0.9995);
    let (size, name) = fitting.or(units.last()).copied().unwrap_or((1.0, ""));
    format!("{} {name}", three_digits(value / size))
}

/// A half width relative to its value: `±1.2 %`. No measurement is exact: a width that rounds to nothing is `±<0.1 %`.
#[must_use]
pub fn plus_minus(width: f64) -> String {
    match width * 100.0 {
        percent if percent < 0.05 => "±<0.1 %".to_owned(),
        percent if percent < 9.95 => format!("±{percent:.1} %"),
        percent => format!("±{percent:.0} %"),
    }
}

/// Three significant digits without an exponent: `0.123`, `1.23`, `12.3`, `123`, `1230`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        0.0 => 0,
        m if m < 0.9995 => 3,
        m if m < 9.995 => 2,
        m if m < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A rate in bytes per second with three significant digits and its decimal prefix ("1.18 GB/s").
#[must_use]
pub fn bytes_per_second(value: f64) -> String {
    format!("{}/s", amount(value))
}

/// Binary units of bytes.
const SIZES: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// A size to the byte: in the largest unit that divides it (`64 KiB`), otherwise in bytes (`131069 B`), so that a size is distinguished
/// from its neighbours.
#[must_use]
pub fn exact_size(bytes: u64) -> String {
    let exact = SIZES.iter().find(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size));
    exact.map_or_else(|| format!("{bytes} B"), |(name, size)| format!("{} {name}", bytes / size))
}

/// A computed size with three significant digits: `31.5 MiB`, `1.41 KiB`. A whole number of units has no digits behind the point.
#[must_use]
pub fn rounded_size(bytes: f64) -> String {
    match SIZES.iter().find(|(_, size)| bytes >= *size as f64) {
        Some((_, size)) if (bytes as u64).is_multiple_of(*size) => exact_size(bytes as u64),
        Some((name, size)) => format!("{} {name}", three_digits(bytes / *size as f64)),
        None => format!("{bytes:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_width_is_nothing() {
        let widths = [0.0, 0.000_49, 0.000_51, 0.0949, 0.0996, 1.5].map(plus_minus);
        assert_eq!(widths, ["±<0.1 %", "±<0.1 %", "±0.1 %", "±9.5 %", "±10 %", "±150 %"]);
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!([0, 38, 1_740, 12_345_678].map(grouped), ["0", "38", "1,740", "12,345,678"]);
    }

    #[test]
    fn sizes_are_exact_or_rounded() {
        assert_eq!([65_536, 131_069, 0].map(exact_size), ["64 KiB", "131069 B", "0 B"]);
        assert_eq!(
            [33_030_144.0, 1_444.0, 65_536.0, 12.4].map(rounded_size),
            ["31.5 MiB", "1.41 KiB", "64 KiB", "12 B"]
        );
    }
}
