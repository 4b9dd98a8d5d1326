//! The statistics that a side prints, formatted as in nttcp.

use std::fmt::Write as _;

use super::error::NttcpError;

/// nttcp's default format.
pub const DEFAULT_FORMAT: &str = "%9b%8.2rt%8.2ct%12.4rbr%12.4cbr%8c%10.2rcr%10.1ccr";

/// A format for programs: a space before each value, and microseconds.
pub const SEPARATED_FORMAT: &str = " %9b %12.6rt %12.6ct %12.4rbr %12.4cbr %8c %10.2rcr %10.1ccr";

/// Shortest time that nttcp counts with, seconds.
const LEAST_S: f64 = 1e-5;
/// Largest width or precision.
const MOST_PLACES: usize = 30;

/// What one side counted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Statistics {
    /// Bytes moved.
    pub bytes: u64,
    /// Bytes of a buffer.
    pub buffer_bytes: u64,
    /// Buffers moved.
    pub buffers: u64,
    /// System calls that moved them; nttcp counts its marks of the end too.
    pub calls: u64,
    /// Wall time, seconds.
    pub real_s: f64,
    /// CPU time of the process, user and system, seconds.
    pub cpu_s: f64,
}

/// One value of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Bytes,
    BufferBytes,
    Buffers,
    Calls,
    Real,
    Cpu,
    RealRate,
    CpuRate,
    RealCalls,
    CpuCalls,
}

/// The values by the letters that name them, the longer ones first; their titles.
const VALUES: [(&str, Value, &str); 10] = [
    ("rbr", Value::RealRate, "Real-MBit/s"),
    ("cbr", Value::CpuRate, "CPU-MBit/s"),
    ("rcr", Value::RealCalls, "Real-C/s"),
    ("ccr", Value::CpuCalls, "CPU-C/s"),
    ("rt", Value::Real, "Real s"),
    ("ct", Value::Cpu, "CPU s"),
    ("b", Value::Bytes, "Bytes"),
    ("l", Value::BufferBytes, "BufLen"),
    ("n", Value::Buffers, "BufCnt"),
    ("c", Value::Calls, "Calls"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Value { value: Value, title: &'static str, width: usize, precision: usize },
}

/// A format of values and text between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatisticsFormat(Vec<Part>);

impl StatisticsFormat {
    /// Reads a format: `%`, a width, a point and a precision, both optional, and the letters of a value.
    ///
    /// # Errors
    /// The `%` that no value follows.
    pub fn new(text: &str) -> Result<Self, NttcpError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('%') {
            if !before.is_empty() {
                parts.push(Part::Text(before.into()));
            }
            let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let places = |text: &str| text.parse().unwrap_or(MOST_PLACES).min(MOST_PLACES);
            let (width, after) = after.split_at(digits(after));
            let (precision, after) = match after.strip_prefix('.') {
                Some(after) => after.split_at(digits(after)),
                None => ("", after),
            };
            let (letters, value, title) = VALUES
                .iter()
                .find(|(letters, ..)| after.starts_with(letters))
                .ok_or_else(|| NttcpError::Format { format: text.into() })?;
            parts.push(Part::Value {
                value: *value,
                title,
                width: if width.is_empty() { 0 } else { places(width) },
                precision: if precision.is_empty() { 6 } else { places(precision) },
            });
            rest = &after[letters.len()..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.into()));
        }
        Ok(Self(parts))
    }

    /// The line of a side, with its LF: `l` for the local one, else the number of the remote one.
    #[must_use]
    pub fn line(&self, mark: char, counted: &Statistics) -> String {
        let mut line = String::from(mark);
        for part in &self.0 {
            // Writing to a String cannot fail.
            let _ = match part {
                Part::Text(text) => write!(line, "{text}"),
                Part::Value { value, width, precision, .. } => match counted.whole(*value) {
                    Some(whole) => write!(line, "{whole:width$}"),
                    None => write!(line, "{:width$.precision$}", counted.float(*value)),
                },
            };
        }
        line.push('\n');
        line
    }

    /// The line of titles that `-T` prints, with its LF.
    #[must_use]
    pub fn titles(&self) -> String {
        let mut line = String::from(" ");
        for part in &self.0 {
            // Writing to a String cannot fail.
            let _ = match part {
                Part::Text(text) => write!(line, "{text}"),
                Part::Value { title, width, .. } => write!(line, "{title:>width$}"),
            };
        }
        line.push('\n');
        line
    }
}

impl Statistics {
    fn whole(&self, value: Value) -> Option<u64> {
        match value {
            Value::Bytes => Some(self.bytes),
            Value::BufferBytes => Some(self.buffer_bytes),
            Value::Buffers => Some(self.buffers),
            Value::Calls => Some(self.calls),
            _ => None,
        }
    }

    fn float(&self, value: Value) -> f64 {
        let (real, cpu) = (self.real_s.max(LEAST_S), self.cpu_s.max(LEAST_S));
        // Bytes to 10^6 bit.
        let megabits = self.bytes as f64 / 125_000.0;
        match value {
            Value::Real => real,
            Value::Cpu => cpu,
            Value::RealRate => megabits / real,
            Value::CpuRate => megabits / cpu,
            Value::RealCalls => self.calls as f64 / real,
            _ => self.calls as f64 / cpu,
        }
    }

    /// Reads a line in the default format, or [`SEPARATED_FORMAT`]: bytes, calls and times, the real one from the rate, which is finer than its own
    /// digits. In the default format the bytes touch the mark from nine digits on. `None` for any other line.
    #[must_use]
    pub fn from_line(line: &str) -> Option<(char, Self)> {
        let mark = line.chars().next().filter(|mark| *mark == 'l' || mark.is_ascii_digit())?;
        let words: Vec<&str> = line[1..].split_whitespace().collect();
        let [bytes, real, cpu, rate, _, calls, ..] = words.as_slice() else { return None };
        let float = |word: &str| word.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
        let bytes: u64 = bytes.parse().ok()?;
        let (real_s, rate) = (float(real)?, float(rate)?);
        let real_s = if rate > 0.0 { bytes as f64 / 125_000.0 / rate } else { real_s };
        let counted = Self { bytes, calls: calls.parse().ok()?, real_s, cpu_s: float(cpu)?, ..Self::default() };
        Some((mark, counted))
    }
}
