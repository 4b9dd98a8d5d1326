//! The local side's options for the remote side: a program name and its arguments, joined by `@`.

use super::error::NttcpError;
use super::pattern::DEFAULT_SEED;
use super::statistics::DEFAULT_FORMAT;

/// The longest line that a remote side reads, bytes.
pub const OPTIONS_LIMIT: usize = 1023;
/// Bounds of the program's own (exclusive): bytes of a buffer, buffers, microseconds of a gap.
const BYTES_LIMIT: u64 = 100_000_000;
const COUNT_LIMIT: u64 = 1_000_000_000;
const GAP_LIMIT: u64 = 10_000_000;

/// The remote side's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// It transmits (-t); else it receives (-r).
    pub transmits: bool,
    /// TCP_NODELAY (-D).
    pub nodelay: bool,
    /// Bytes of a buffer (-l), below 10^8.
    pub bytes: u64,
    /// Buffers (-n), below 10^9.
    pub count: u64,
    /// Datagrams (-u).
    pub udp: bool,
    /// Requests verbose output (-v).
    pub verbose: bool,
    /// The content is checked (-c); over TCP as a stream.
    pub compare: bool,
    /// The pattern continues from buffer to buffer (-s).
    pub stream: bool,
    /// Format of its statistics (-f).
    pub format: String,
    /// Seed of the pattern (-S).
    pub seed: String,
    /// Microseconds between writes (-g), below 10^7.
    pub gap_us: u64,
    /// Both socket buffers in KiB (-w); `None` for the system's.
    pub window_kib: Option<u32>,
    /// Which of several hosts it is, from 1 (-N).
    pub number: u8,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            transmits: true,
            nodelay: false,
            bytes: 4096,
            count: 2048,
            udp: false,
            verbose: false,
            compare: false,
            stream: false,
            format: DEFAULT_FORMAT.into(),
            seed: DEFAULT_SEED.into(),
            gap_us: 0,
            window_kib: None,
            number: 1,
        }
    }
}

impl Options {
    /// The line, in nttcp's order, with its LF.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        let mut fields = vec!["nttcp".to_owned(), if self.transmits { "-t" } else { "-r" }.into()];
        let mut flag = |holds: bool, field: &str| {
            if holds {
                fields.push(field.into());
            }
        };
        flag(self.transmits && self.nodelay, "-D");
        flag(true, &format!("-l{}", self.bytes));
        flag(true, &format!("-n{}", self.count));
        flag(self.udp, "-u");
        flag(self.verbose, "-v");
        flag(self.compare, "-c");
        flag(self.stream, "-s");
        flag(true, "-f");
        flag(true, &self.format);
        flag(self.compare || self.stream, "-S");
        flag(self.compare || self.stream, &self.seed);
        flag(self.gap_us > 0, &format!("-g{}", self.gap_us));
        flag(true, &format!("-N{}", self.number));
        flag(self.window_kib.is_some(), &format!("-w{}", self.window_kib.unwrap_or_default()));
        let escaped: Vec<String> = fields.iter().map(|field| field.replace('\\', "\\\\").replace('@', "\\@")).collect();
        let mut line = escaped.join("@").into_bytes();
        line.push(b'\n');
        line
    }

    /// Reads a line without its LF. Later options win.
    ///
    /// # Errors
    /// The invalid or unsupported option.
    pub fn from_line(line: &str) -> Result<Self, NttcpError> {
        let mut fields = fields(line).into_iter();
        fields.next().ok_or(NttcpError::NoOptions)?;
        let mut options = Self::default();
        let mut fixed = None;
        while let Some(field) = fields.next() {
            let mut letters = field.chars();
            let (Some('-'), Some(letter)) = (letters.next(), letters.next()) else {
                return Err(NttcpError::NotAnOption { text: field });
            };
            let joined = letters.as_str().to_owned();
            let mut value = || {
                if !joined.is_empty() {
                    return Ok(joined.clone());
                }
                fields.next().ok_or(NttcpError::NoValue { option: letter })
            };
            match letter {
                't' => options.transmits = true,
                'r' => options.transmits = false,
                'D' => options.nodelay = true,
                'u' => options.udp = true,
                'v' => options.verbose = true,
                'c' => options.compare = true,
                's' => (options.stream, options.compare) = (true, true),
                // Of the local side, or for a debugger.
                'T' | 'd' => {}
                'l' => {
                    options.bytes = number(letter, &value()?, 1, BYTES_LIMIT)?;
                    fixed.iter().for_each(|fixed| options.count = fixed / options.bytes);
                }
                'n' => {
                    options.count = number(letter, &value()?, 1, COUNT_LIMIT)?;
                    fixed.iter().for_each(|fixed| options.bytes = fixed / options.count);
                }
                'x' => fixed = Some(number(letter, &value()?, 1, BYTES_LIMIT * COUNT_LIMIT)?),
                'g' => options.gap_us = number(letter, &value()?, 0, GAP_LIMIT)?,
                'w' => options.window_kib = Some(number(letter, &value()?, 1, 1 << 21)? as u32),
                'N' => options.number = number(letter, &value()?, 0, 10)? as u8,
                'p' => drop(number(letter, &value()?, 0, 1 << 16)?),
                'f' => options.format = value()?,
                'S' => (options.seed, options.compare) = (value()?, true),
                'm' => return Err(NttcpError::Multicast),
                'R' => return Err(NttcpError::NoTransfer),
                option => return Err(NttcpError::UnknownOption { option }),
            }
        }
        if !(1..BYTES_LIMIT).contains(&options.bytes) || !(1..COUNT_LIMIT).contains(&options.count) {
            return Err(NttcpError::Buffers { count: options.count, bytes: options.bytes });
        }
        if options.seed.is_empty() {
            return Err(NttcpError::EmptySeed);
        }
        Ok(options)
    }

    /// Whether the pattern continues from buffer to buffer: over TCP whenever it is compared.
    #[must_use]
    pub fn streams_pattern(&self) -> bool {
        self.stream || (self.compare && !self.udp)
    }
}

/// Splits a line into fields: a backslash escapes the next character, and several `@` count as one.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let own = match letter {
            '\\' => letters.next(),
            '@' => {
                fields.push(String::new());
                None
            }
            other => Some(other),
        };
        if let Some((field, own)) = fields.last_mut().zip(own) {
            field.push(own);
        }
    }
    fields.retain(|field| !field.is_empty());
    fields
}

fn number(option: char, text: &str, least: u64, limit: u64) -> Result<u64, NttcpError> {
    let number = text.parse().ok().filter(|number| (least..limit).contains(number));
    number.ok_or_else(|| NttcpError::Number { option, text: text.into(), least, limit })
}
