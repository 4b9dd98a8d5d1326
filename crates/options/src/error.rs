//! Errors in values, found before anything is measured.

use std::convert::Infallible;
use std::str::FromStr;

use text::{Said, Text, say};
use thiserror::Error;

use crate::Engine;
use crate::mix::MixError;

/// A value that cannot be as it is, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum ValueError {
    /// Text that is not a quantity of that kind.
    #[error("'{text}' is not a {kind}: write {example}")]
    Quantity {
        /// What the user wrote.
        text: String,
        /// The expected kind: "size", "rate", "time" or "percentage".
        kind: &'static str,
        /// Forms that are accepted.
        example: &'static str,
    },
    /// A fraction of a byte or of a bit.
    #[error("'{text}' is not a whole number of {unit}: leave out the fraction, or use another unit")]
    Fraction {
        /// What the user wrote.
        text: String,
        /// The unit: "bytes" or "bits".
        unit: &'static str,
    },
    /// A rate in bytes; rates are in bits.
    #[error(
        "'{text}' has the unit byte, but rates are in bit/s: write {eightfold} if you mean bytes, or {same} if you mean bits"
    )]
    Bytes {
        /// What the user wrote.
        text: String,
        /// The same rate in bits.
        eightfold: String,
        /// The same number of bits.
        same: String,
    },
    /// A whole number outside its range, or no whole number.
    #[error("'{text}' is not a whole number from {least} to {most}")]
    Whole {
        /// What the user wrote.
        text: String,
        /// The least value.
        least: String,
        /// The greatest value.
        most: String,
    },
    /// A quantity outside its range.
    #[error("'{text}' is not between {least} and {most}")]
    Range {
        /// What the user wrote.
        text: String,
        /// The least value.
        least: String,
        /// The greatest value.
        most: String,
    },
    /// A quantity below its minimum.
    #[error("'{text}' is too small: the minimum is {least}")]
    TooSmall {
        /// What the user wrote.
        text: String,
        /// The minimum.
        least: String,
    },
    /// Zero where there must be something.
    #[error("'{text}' must be more than 0")]
    Zero {
        /// What the user wrote.
        text: String,
    },
    /// A number below 0, or no number.
    #[error("'{text}' is not a number, 0 or more")]
    Negative {
        /// What the user wrote.
        text: String,
    },
    /// None of the words that the option takes.
    #[error("'{text}' is not one of {}", words.join(", "))]
    OneOf {
        /// What the user wrote.
        text: String,
        /// The words.
        words: Vec<&'static str>,
    },
    /// A switch that is neither on nor off.
    #[error("'{text}' is not {yes} or {no}")]
    Switch {
        /// What the user wrote.
        text: String,
        /// What sets it.
        yes: &'static str,
        /// What clears it.
        no: &'static str,
    },
    /// Nothing where a name is needed.
    #[error("'{text}' is empty: {remedy}")]
    Empty {
        /// What the user wrote.
        text: String,
        /// What to write instead.
        remedy: &'static str,
    },
    /// An option of both ends without any value.
    #[error("'{text}' has no value: {remedy}")]
    NoValue {
        /// What the user wrote.
        text: String,
        /// What to write instead.
        remedy: &'static str,
    },
    /// No IP address.
    #[error("'{text}' is not an IP address, such as 192.0.2.1 or 2001:db8::1 without a port")]
    Address {
        /// What the user wrote.
        text: String,
    },
    /// No IP address, and none with a port.
    #[error(
        "'{text}' is not an IP address with or without a port, such as 192.0.2.1, 192.0.2.1:7000 or [2001:db8::1]:7000"
    )]
    Endpoint {
        /// What the user wrote.
        text: String,
    },
    /// No DSCP.
    #[error("'{text}' is not a DSCP: write 0 to 63, or a name such as ef, af41 or cs1")]
    Dscp {
        /// What the user wrote.
        text: String,
    },
    /// No list of cores.
    #[error("'{text}' is not a list of cores, such as 2, 0+2+4 or 0-3")]
    Cores {
        /// What the user wrote.
        text: String,
    },
    /// More cores than a thread's set of cores holds.
    #[error("'{text}' has more than {most} cores")]
    ManyCores {
        /// What the user wrote.
        text: String,
        /// How many it holds.
        most: usize,
    },
    /// No rate of requests.
    #[error("'{text}' is not a rate of requests: write 1000/s, or 1Mbit for request bytes")]
    RequestRate {
        /// What the user wrote.
        text: String,
    },
    /// Neither a rate in bits nor one of requests.
    #[error("{0}; or 1000/s for requests per second")]
    RequestBits(Box<Self>),
    /// An unknown method to send.
    #[error("unknown send method '{name}': use auto, {}", Engine::SENDS.map(|(name, _)| name).join(", "))]
    SendMethod {
        /// What the user wrote.
        name: String,
    },
    /// An unknown method to receive.
    #[error("unknown receive method '{name}': use {}", Engine::RECEIVES.map(|(name, _)| name).join(", "))]
    ReceiveMethod {
        /// What the user wrote.
        name: String,
    },
    /// No setting of a host.
    #[error("'{text}' is not a setting: write KEY=VALUE, such as dev.eth0.mtu=9000; `thru tune show` lists keys")]
    Setting {
        /// What the user wrote.
        text: String,
    },
    /// No variable with its value.
    #[error("'{text}' is not NAME=VALUE")]
    Variable {
        /// What the user wrote.
        text: String,
    },
    /// A mix of datagram sizes that cannot be sent.
    #[error(transparent)]
    Mix(#[from] MixError),
    /// A mix of datagram sizes where one size is meant.
    #[error("'{text}' is a mix of datagram sizes, which only `thru stream` and `thru transfer` take: write one size")]
    MixForOneSize {
        /// What the user wrote.
        text: String,
    },
    /// An unknown kind of test.
    #[error("unknown pattern '{name}': use one of {}", known.join(", "))]
    TestKind {
        /// What the user wrote.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// An unknown program.
    #[error("unknown program '{name}'; known programs: {}", known.join(", "))]
    Program {
        /// What the user wrote.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// JSON that is not the value of an option.
    #[error("write a string, a number, true or false")]
    Json,
}

/// A spec that no transport can carry out.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{}: {}", what.plain(), remedy.plain())]
pub struct ImpossibleSpec {
    /// The option and its value.
    pub what: Text,
    /// What to write instead.
    pub remedy: Text,
}

impl Said for ImpossibleSpec {
    fn say(&self) -> Text {
        say!("{}: {}", self.what, self.remedy)
    }
}

impl From<Infallible> for ValueError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A value, parsed by its type.
pub fn any<T: FromStr<Err: Into<ValueError>>>(text: &str) -> Result<T, ValueError> {
    text.parse().map_err(Into::into)
}
