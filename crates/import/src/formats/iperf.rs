//! The lines that iperf 2 and iperf3 have in common: `[  5]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec ...`.
//!
//! Sizes are powers of 1024, rates powers of 1000 (both manuals, option -f).

use crate::text::{binary_size, half_digit, number, rate_unit, resolution, whole};

/// Whose line it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    /// A connection by its number.
    Flow(u32),
    /// All of them together.
    Sum,
}

/// A line of figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line<'a> {
    pub who: Who,
    /// `TX-C` and others, of iperf3 --bidir; `*` for a connection of iperf 2 whose payload flows from the server to the client.
    pub role: Option<&'a str>,
    pub start_s: f64,
    pub end_s: f64,
    /// Bytes as printed; three digits are exact to at most 0.5 %.
    pub bytes: f64,
    pub bps: f64,
    /// The words after the rate.
    pub rest: Vec<&'a str>,
}

/// Where the programs' counters of datagrams stop, and what is above half of their range was negative.
pub(super) const COUNTER_LIMIT: u64 = i32::MAX as u64;

/// The role of an iperf 2 connection from the server to the client.
pub(super) const REVERSE: &str = "*";

const OUT_OF_ORDER: [&str; 3] = ["datagrams", "received", "out-of-order"];

/// The datagrams in `[  1] 0.0-2.0 sec  1 datagrams received out-of-order`, and whether it is the line of all connections.
pub(super) fn out_of_order(line: &str) -> Option<(bool, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (count, _) = words.strip_suffix(&OUT_OF_ORDER)?.split_last()?;
    Some((line.trim_start().starts_with("[SUM"), whole(number(count)?)?))
}

impl<'a> Line<'a> {
    /// A line of figures; `None` for any other line.
    ///
    /// # Errors
    /// The fault of a line of this shape.
    pub(super) fn of(line: &'a str) -> Option<Result<Self, String>> {
        let (name, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
        let name = name.trim();
        let who =
            if name.starts_with("SUM") { Who::Sum } else { Who::Flow(name.trim_start_matches('*').parse().ok()?) };
        let (role, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']').map(|(role, rest)| (Some(role), rest))?,
            None => (name.starts_with('*').then_some(REVERSE), rest),
        };
        let mut words: Vec<&str> = rest.split_whitespace().collect();
        let (start, end) = words.first()?.split_once('-')?;
        let start = number(start)?;
        // Older versions pad the second number: `0.0- 1.0 sec`.
        let padded = end.is_empty();
        let end = if padded { *words.get(1)? } else { end };
        let end_s = number(end)?;
        words.drain(..if padded { 2 } else { 1 });
        (words.first() == Some(&"sec")).then_some(())?;
        // `1 datagrams received out-of-order`, see below.
        (!words.ends_with(&OUT_OF_ORDER)).then_some(())?;
        Some(Self::figures(who, role, start, end, end_s, &words[1..]))
    }

    fn figures(
        who: Who,
        role: Option<&'a str>,
        start_s: f64,
        end: &str,
        end_s: f64,
        words: &[&'a str],
    ) -> Result<Self, String> {
        let [bytes, size, rate, unit, rest @ ..] = words else { return Err("no bytes and no rate".into()) };
        let scaled = |word: &str, unit: Option<f64>| Some(number(word)? * unit?);
        let (bytes_rounding, rate_rounding) = (resolution(bytes), resolution(rate));
        let bytes = scaled(bytes, binary_size(size)).ok_or_else(|| format!("'{bytes} {size}' is not a size"))?;
        let bps = scaled(rate, rate_unit(unit)).ok_or_else(|| format!("'{rate} {unit}' is not a rate"))?;
        let seconds = end_s - start_s;
        let rounding = bytes_rounding + rate_rounding + 2.0 * half_digit(end) / seconds;
        if seconds > 0.0 && rounding.is_finite() && (bytes * 8.0 / seconds / bps).ln().abs() > 1.5 * rounding + 0.02 {
            return Err(format!("{bytes} bytes in {seconds:.4} s contradict {bps} bit/s"));
        }
        Ok(Self { who, role, start_s, end_s, bytes, bps, rest: rest.to_vec() })
    }

    /// Datagrams lost and all of them: `0/416`; `None` where a counter stands at its limit.
    pub(super) fn lost(&self) -> Option<(u64, u64)> {
        let count = |word: &str| whole(number(word)?);
        self.rest
            .iter()
            .enumerate()
            .find_map(|(index, word)| match word.split_once('/') {
                // iperf 2 pads the second number.
                Some((lost, "")) => Some((count(lost)?, count(self.rest.get(index + 1)?)?)),
                Some((lost, all)) => Some((count(lost)?, count(all)?)),
                None => None,
            })
            .filter(|(lost, all)| *lost.max(all) < COUNTER_LIMIT)
    }

    /// Jitter, ns.
    pub(super) fn jitter_ns(&self) -> Option<f64> {
        self.rest.windows(2).find(|pair| pair[1] == "ms").and_then(|pair| number(pair[0])).map(|ms| ms * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_programs() {
        let line =
            Line::of("[  5]   0.00-2.02   sec   488 KBytes  1.98 Mbits/sec  0.407 ms  0/416 (0%)  receiver").unwrap();
        let line = line.unwrap();
        assert_eq!((line.who, line.bytes, line.bps), (Who::Flow(5), 499_712.0, 1.98e6));
        assert_eq!((line.lost(), line.jitter_ns()), (Some((0, 416)), Some(407_000.0)));
        let old = Line::of("[SUM]  0.0- 1.0 sec  1.10 GBytes  9.45 Gbits/sec").unwrap().unwrap();
        assert_eq!((old.who, old.end_s, old.role), (Who::Sum, 1.0, None));
        let both = Line::of("[  7][RX-C]   0.00-1.96   sec  2.38 MBytes  10175 Kbits/sec                  receiver");
        assert_eq!(both.unwrap().unwrap().role, Some("RX-C"));
        assert!(Line::of("[ ID] Interval           Transfer     Bitrate").is_none());
        assert!(Line::of("[  5] local 127.0.0.1 port 1 connected to 127.0.0.1 port 2").is_none());
    }

    #[test]
    fn datagrams_out_of_order_are_no_figures_of_a_connection() {
        let line = "[SUM]  0.0-86400.0 sec  1338478610 datagrams received out-of-order";
        assert_eq!((Line::of(line), out_of_order(line)), (None, Some((true, 1_338_478_610))));
        assert_eq!(out_of_order("[  1] 0.0000-2.0253 sec  1 datagrams received out-of-order"), Some((false, 1)));
        assert_eq!(out_of_order("[  5]   0.00-1.00   sec  2.50 MBytes  21 Mbits/sec"), None);
        let full = Line::of("[  5]   0.00-2.00 sec  250 MBytes  1.05 Gbits/sec  0.007 ms  0/2147483647 (0%)");
        assert_eq!(full.unwrap().unwrap().lost(), None, "a counter at its limit");
    }

    #[test]
    fn contradicting_figures_are_refused() {
        let line = Line::of("[  5]   0.00-1.00   sec  2.50 MBytes  210 Mbits/sec").unwrap();
        assert!(line.unwrap_err().contains("contradict"));
        assert!(Line::of("[  5]   0.00-1.00   sec  0.00 Bytes  0.00 bits/sec").unwrap().is_ok());
        assert!(Line::of("[  5]   0.00-1.00   sec  2.50 Apples  21 Mbits/sec").unwrap().is_err());
    }
}
