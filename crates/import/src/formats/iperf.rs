//! The lines that iperf 2 and iperf3 have in common: `[  5]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec ...`.
//!
//! Sizes are powers of 1024, rates powers of 1000 (both manuals, option -f).

use crate::error::{Contradiction, ImportError, IperfError};
use crate::listing::Row;
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
    /// Half of the last digit of the bytes, and of the rate.
    pub errors: [f64; 2],
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
    pub(super) fn of(line: &'a str) -> Option<Result<Self, ImportError>> {
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
    ) -> Result<Self, ImportError> {
        let [bytes, size, rate, unit, rest @ ..] = words else {
            return Err(ImportError::Missing("bytes and no rate"));
        };
        let scaled = |word: &str, unit: Option<f64>| Some(number(word)? * unit?);
        let errors = [(bytes, binary_size(size)), (rate, rate_unit(unit))];
        let errors = errors.map(|(word, unit)| half_digit(word) * unit.unwrap_or(1.0));
        let (bytes_rounding, rate_rounding) = (resolution(bytes), resolution(rate));
        let wrong = |word: &str, unit: &str, what| ImportError::word(format!("{word} {unit}"), what);
        let bytes = scaled(bytes, binary_size(size)).ok_or_else(|| wrong(bytes, size, "a size"))?;
        let bps = scaled(rate, rate_unit(unit)).ok_or_else(|| wrong(rate, unit, "a rate"))?;
        let seconds = end_s - start_s;
        if seconds < 0.0 {
            return Err(IperfError::Backwards { start_s, end_s }.into());
        }
        let rounding = 1.5 * (bytes_rounding + rate_rounding) + 0.02;
        // Both times are rounded, which for a short interval is most of it.
        let (exact, most) = (bytes * 8.0 / bps, 3.0 * half_digit(end));
        let shortest = (seconds - most) * (1.0 - rounding);
        let is_other = match (bytes > 0.0, bps > 0.0) {
            (true, true) => !(shortest..=(seconds + most) * (1.0 + rounding)).contains(&exact),
            // What is printed as zero is below its last digit.
            (true, false) => bytes * 8.0 / (seconds + most) > 4.0 * errors[1],
            (false, true) => bps * (seconds - most) / 8.0 > 4.0 * errors[0],
            (false, false) => false,
        };
        if seconds > 0.0 && is_other {
            return Err(Contradiction::Rate { bytes, seconds, decimals: Some(4), bps }.into());
        }
        Ok(Self { who, role, start_s, end_s, bytes, bps, errors, rest: rest.to_vec() })
    }

    /// Why [`Self::lost`] has nothing.
    pub(super) fn no_loss(&self) -> &'static str {
        let counts = || self.rest.iter().filter(|word| word.contains('/'));
        if counts().next().is_none() {
            "the line has no count of datagrams: the loss is unknown"
        } else if counts().any(|word| word.starts_with('-')) {
            "a count of datagrams is negative: the loss is unknown"
        } else {
            "the count of datagrams is at its limit: the loss is unknown"
        }
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

/// Rates below this are as good as zero, bit/s.
const NOTHING_BPS: f64 = 1e3;

/// Flags a row whose value adds up rates with these rounding errors, bit/s, if they are too coarse. Of a rate that is printed as zero in
/// a large unit nothing is known.
pub(super) fn flag_rounding(row: &mut Row, error_bps: f64) {
    let Some(value) = row.trial.value else { return };
    if value > 0.0 || error_bps >= NOTHING_BPS {
        row.rounded(if value > 0.0 { error_bps / value } else { f64::INFINITY });
    }
}

/// Refuses a sum that the lines of its connections contradict, in bytes.
pub(super) fn check_sum(sum: &Line<'_>, connections: &[&Line<'_>]) -> Result<(), Contradiction> {
    let own: f64 = connections.iter().map(|line| line.bytes).sum();
    let rounding = connections.iter().map(|line| line.errors[0]).sum::<f64>() + sum.errors[0];
    if !connections.is_empty() && (own - sum.bytes).abs() > 1.5 * rounding + 0.02 * own.max(sum.bytes) {
        return Err(Contradiction::Sum { name: "[SUM]", sum: sum.bytes, connections: own });
    }
    Ok(())
}

/// Refuses more datagrams lost than were sent.
pub(super) fn check_loss((lost, all): (u64, u64)) -> Result<(), Contradiction> {
    if lost > all { Err(Contradiction::Lost { lost, all }) } else { Ok(()) }
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
        let full = full.unwrap().unwrap();
        assert!(full.lost().is_none() && full.no_loss().contains("at its limit"));
        let negative = Line::of("[  5]   0.00-2.00 sec  250 MBytes  1.05 Gbits/sec  0.007 ms  -3/100 (-3%)");
        let negative = negative.unwrap().unwrap();
        assert!(negative.lost().is_none() && negative.no_loss().contains("negative"));
    }

    #[test]
    fn contradicting_figures_are_refused() {
        let line = Line::of("[  5]   0.00-1.00   sec  2.50 MBytes  210 Mbits/sec").unwrap();
        assert!(matches!(line, Err(ImportError::Contradiction(Contradiction::Rate { .. }))), "{line:?}");
        assert!(Line::of("[  5]   0.00-1.00   sec  0.00 Bytes  0.00 bits/sec").unwrap().is_ok());
        // The last interval of 1.6 ms, as printed by this program.
        assert!(Line::of("[  5]   2.00-2.01   sec   128 KBytes   651 Mbits/sec").unwrap().is_ok());
        assert!(Line::of("[  5]   0.00-1.00   sec  2.50 MBytes  0.00 bits/sec").unwrap().is_err());
        assert!(Line::of("[  5]   0.00-1.00   sec  0.00 GBytes  0.01 Gbits/sec").unwrap().is_ok());
        assert!(Line::of("[  5]   0.00-1.00   sec  2.50 Apples  21 Mbits/sec").unwrap().is_err());
        assert!(Line::of("[  5]   2.00-1.00   sec  2.50 MBytes  21 Mbits/sec").unwrap().is_err());
    }
}
