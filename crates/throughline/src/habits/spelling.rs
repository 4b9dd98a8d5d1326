//! An option of another program, and what it is here.

/// Whose option it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// iperf3's client's, or its client's and server's.
    Iperf3,
    /// iperf3's server's.
    Iperf3Server,
    /// netperf's.
    Netperf,
    /// That of a test of netperf, which netperf has after `--`.
    NetperfTest,
}

impl Of {
    /// The program.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Iperf3 | Self::Iperf3Server => "iperf3",
            Self::Netperf | Self::NetperfTest => "netperf",
        }
    }
}

/// Makes words of our command line from a value; the error says why it is none.
pub type Convert = fn(&str) -> Result<Vec<String>, String>;

/// What an option is here.
#[derive(Debug, Clone, Copy)]
pub enum Here {
    /// This option of ours, which commands may also spell alike.
    Option(&'static str),
    /// These words, and how the manual shows them.
    Words(Convert, &'static str),
    /// The port of HOST, or of the addresses that a server listens on.
    Port,
    /// Nothing that a command line could have: what the user is told instead, with a verb in front.
    Answer(&'static str),
}

/// An option of another program.
#[derive(Debug, Clone, Copy)]
pub struct Habit {
    /// Whose it is.
    pub of: Of,
    /// Its spellings.
    pub names: &'static [&'static str],
    /// What its value is called; `None` without one.
    pub value: Option<&'static str>,
    /// A value that it takes.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests and the manual"))]
    pub example: &'static str,
    /// The values that this row is about; `None` for all. Only such a row applies where a command of ours has the spelling too.
    pub only: Option<fn(Option<&str>) -> bool>,
    /// What it is here.
    pub here: Here,
    /// What the manual adds.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests and the manual"))]
    pub note: &'static str,
}

impl Habit {
    const fn new(of: Of, names: &'static [&'static str], here: Here) -> Self {
        Self { of, names, value: None, example: "", only: None, here, note: "" }
    }

    /// One that is this option of ours.
    pub const fn option(of: Of, names: &'static [&'static str], ours: &'static str) -> Self {
        Self::new(of, names, Here::Option(ours))
    }

    /// One that is these words of ours.
    pub const fn words(of: Of, names: &'static [&'static str], convert: Convert, shown: &'static str) -> Self {
        Self::new(of, names, Here::Words(convert, shown))
    }

    /// One that has no counterpart on a command line.
    pub const fn answer(of: Of, names: &'static [&'static str], answer: &'static str) -> Self {
        Self::new(of, names, Here::Answer(answer))
    }

    /// With a value, of which this is an example.
    pub const fn value(self, name: &'static str, example: &'static str) -> Self {
        Self { value: Some(name), example, ..self }
    }

    /// Only for some values.
    pub const fn only(self, only: fn(Option<&str>) -> bool) -> Self {
        Self { only: Some(only), ..self }
    }

    /// With a note.
    pub const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }
}

/// Words with an option and its value.
pub fn one(option: &str, value: &str) -> Result<Vec<String>, String> {
    Ok(vec![format!("{option}={value}")])
}

/// `LOCAL[,REMOTE]` as ours, where one value is that of this end only.
pub fn local(option: &str, value: &str) -> Result<Vec<String>, String> {
    one(option, &if value.contains(',') { value.to_owned() } else { format!("{value},") })
}

/// Milliseconds.
pub fn milliseconds(option: &str, value: &str) -> Result<Vec<String>, String> {
    let is_bare = value.chars().all(|digit| digit.is_ascii_digit());
    one(option, &if is_bare { format!("{value}ms") } else { value.to_owned() })
}

/// A type of service as a DSCP: decimal, octal (052) or hexadecimal (0x34).
pub fn dscp(value: &str) -> Result<Vec<String>, String> {
    let parsed = match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(hexadecimal) => u8::from_str_radix(hexadecimal, 16),
        None if value.len() > 1 && value.starts_with('0') => u8::from_str_radix(value, 8),
        None => value.parse(),
    };
    let tos = parsed.map_err(|_| format!("'{value}' is no type of service from 0 to 255"))?;
    match tos & 0b11 {
        0 => one("--dscp", &(tos / 4).to_string()),
        _ => Err(format!(
            "{value} includes ECN bits, which --dscp leaves alone: --dscp {}, and with --udp also --ecn ect0 or ect1",
            tos / 4
        )),
    }
}

/// Whether no value follows.
pub fn is_absent(value: Option<&str>) -> bool {
    value.is_none_or(|value| value.starts_with('-'))
}

/// Whether a value is zero.
pub fn is_zero(value: Option<&str>) -> bool {
    value == Some("0")
}
