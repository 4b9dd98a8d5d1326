//! Numbers as iperf3 and other C programs print them.

/// Bytes with iperf3's prefixes: powers of 1024, four places (`2.50 MBytes`, ` 611 KBytes`).
#[must_use]
pub fn bytes(value: f64) -> String {
    prefixed(value, 1024.0, ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"])
}

/// A rate with iperf3's prefixes: powers of 1000, four places (`21.0 Mbits/sec`).
#[must_use]
pub fn bits_per_second(value: f64) -> String {
    prefixed(value, 1000.0, ["bits/sec", "Kbits/sec", "Mbits/sec", "Gbits/sec", "Tbits/sec"])
}

fn prefixed(mut value: f64, base: f64, names: [&str; 5]) -> String {
    let mut index = 0;
    while value >= base && index + 1 < names.len() {
        value /= base;
        index += 1;
    }
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:4.decimals$} {}", names[index])
}

/// `%.2g`: two significant digits, trailing zeros left out, an exponent from 100 on and below 0.0001.
#[must_use]
pub fn two_digits(value: f64) -> String {
    let scientific = format!("{value:.1e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(power) = exponent.parse::<i32>() else { return scientific };
    if (-4..2).contains(&power) {
        let decimals = usize::try_from(1 - power).unwrap_or(0);
        let fixed = format!("{value:.decimals$}");
        return if fixed.contains('.') { fixed.trim_end_matches('0').trim_end_matches('.').to_owned() } else { fixed };
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", digits.trim_end_matches('0').trim_end_matches('.'), power.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_have_four_places() {
        for (value, text) in [
            (0.0, "0.00 Bytes"),
            (1023.0, "1023 Bytes"),
            (625_600.0, " 611 KBytes"),
            (2_621_440.0, "2.50 MBytes"),
            (9.996 * 1024.0, "10.0 KBytes"),
            (1_250_000_000.0, "1.16 GBytes"),
        ] {
            assert_eq!(bytes(value), text);
        }
        assert_eq!(bits_per_second(20_971_520.0), "21.0 Mbits/sec");
        assert_eq!(bits_per_second(9_412_345_678.0), "9.41 Gbits/sec");
    }

    #[test]
    fn percentages_have_two_digits() {
        let shown = [0.0, 0.024, 0.5, 1.0, 12.5, 33.3, 99.4, 99.6, 100.0, 0.000_012].map(two_digits);
        assert_eq!(shown, ["0", "0.024", "0.5", "1", "12", "33", "99", "1e+02", "1e+02", "1.2e-05"]);
    }
}
