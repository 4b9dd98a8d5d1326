//! What is wrong with texts that name hosts.

use text::Said;
use thiserror::Error;

use super::bounds::{MOST_BRACKETS, MOST_CHARACTERS, MOST_HOSTS, MOST_MIB};

/// Characters of a wrong text that its error shows.
const SHOWN: usize = 60;

/// Why a text names no hosts.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum HostListError {
    /// Brackets within brackets.
    #[error("{}: a bracket within a bracket", shown(text))]
    Nested {
        /// What names hosts.
        text: String,
    },
    /// A bracket that ends nothing.
    #[error("{}: ] without [", shown(text))]
    NotOpened {
        /// What names hosts.
        text: String,
    },
    /// A bracket that does not end.
    #[error("{}: [ without ]", shown(text))]
    NotClosed {
        /// What names hosts.
        text: String,
    },
    /// More brackets than a name may have.
    #[error("{}: more than {MOST_BRACKETS} brackets", shown(text))]
    ManyBrackets {
        /// What names hosts.
        text: String,
    },
    /// Something else than numbers in brackets.
    #[error("{}: {} is not a number or a range of numbers, such as 01-16", shown(text), shown(range))]
    Range {
        /// What names hosts.
        text: String,
        /// What is in its brackets.
        range: String,
    },
    /// More hosts than a fleet may have.
    #[error("{} names more than {MOST_HOSTS} hosts", shown(text))]
    ManyHosts {
        /// What names hosts.
        text: String,
    },
    /// A name that no host can have.
    #[error("{}: a name has at most {MOST_CHARACTERS} characters", shown(text))]
    LongName {
        /// What names hosts.
        text: String,
    },
    /// A name that a program such as ssh would take for an option.
    #[error("{} begins with '-' like an option: give the host another name", shown(text))]
    Dash {
        /// The name.
        text: String,
    },
}

/// A fleet is larger than its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error, Said)]
#[error("more than {MOST_HOSTS} hosts, or more than {MOST_MIB} MiB of names and variables")]
pub struct FleetTooLarge;

/// Why a selection has no hosts.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum SelectionError {
    /// It cannot be read.
    #[error(transparent)]
    Names(#[from] HostListError),
    /// It names something that the fleet does not have.
    #[error("{fleet} has no {what} '{name}': it has {}", listed(known))]
    Unknown {
        /// The fleet.
        fleet: String,
        /// "host", "group" or "label", or the label of a value.
        what: String,
        /// What was given.
        name: String,
        /// What the fleet has of that kind.
        known: Vec<String>,
    },
    /// What it names it leaves out again.
    #[error("'{selection}' selects no host of {fleet}")]
    Nothing {
        /// The selection.
        selection: String,
        /// The fleet.
        fleet: String,
    },
}

/// A text in quotes, shortened if it is long.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("'{}...'", &text[..at]),
        None => format!("'{text}'"),
    }
}

/// The first ones of many names.
fn listed(names: &[String]) -> String {
    const MOST: usize = 8;
    match names.len() {
        0 => "none".to_owned(),
        count if count > MOST => format!("{} and {} more", names[..MOST].join(", "), count - MOST),
        _ => names.join(", "),
    }
}
