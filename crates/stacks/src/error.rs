//! Errors of stacks.

use std::io;
use std::path::PathBuf;
use text::{Said, Text};

/// A failure, with its remedy.
#[derive(Debug, thiserror::Error, Said)]
#[non_exhaustive]
pub enum StackError {
    /// No stack has that name.
    #[error("there is no stack '{name}'; available: {known}")]
    Unknown {
        /// As requested.
        name: String,
        /// The names of all stacks.
        known: String,
    },
    /// A parameter that the stack does not have, or an invalid value.
    #[error("{stack}: {what}; {}", remedy.plain())]
    Parameter {
        /// The stack's short name.
        stack: String,
        /// What is wrong.
        what: String,
        /// What is valid.
        remedy: Text,
    },
    /// An invalid file of rules for destinations.
    #[error("{}: {what}", path.display())]
    Rules {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what is valid.
        what: RulesError,
    },
    /// A file that is not a stack.
    #[error("{origin} is not a stack of thru: {what}; `thru stacks info aimd --source` prints a template")]
    Object {
        /// The file, or the stack's name.
        origin: String,
        /// What it lacks.
        what: String,
    },
    /// This program was built without the loader.
    #[error(
        "this thru was built without the TCP stack loader: build it with the feature `stacks` (which needs libelf-dev and zlib1g-dev)"
    )]
    NotBuilt,
    /// The kernel cannot load stacks.
    #[error("this kernel cannot load TCP stacks: {what}")]
    Kernel {
        /// What it lacks.
        what: String,
    },
    /// This process may not load them.
    #[error(
        "loading a TCP stack needs root in the host's own user namespace ({missing}): run thru as root there, or \
            have root run `thru stacks load {requested} --any-user`"
    )]
    Rights {
        /// The stack as requested.
        requested: String,
        /// What this process lacks.
        missing: String,
    },
    /// The kernel has it already: the same programs with the same constants.
    #[error("the kernel already has a congestion control {name}")]
    Exists {
        /// Its name in the kernel.
        name: String,
    },
    /// The kernel has another one of this name.
    #[error(
        "the kernel already has a congestion control {name}, {}: run `thru stacks unload {name}`, or end the program that holds it",
        other(*found)
    )]
    Taken {
        /// Its name in the kernel.
        name: String,
        /// Whether it is known to be another one; otherwise thru cannot compare them.
        found: bool,
    },
    /// The kernel refused the program.
    #[error("the kernel rejected {name}: {what}")]
    Refused {
        /// Its name in the kernel.
        name: String,
        /// The error message of the kernel or of libbpf.
        what: String,
    },
    /// `thru stacks load` has not loaded it.
    #[error("`thru stacks load` has not loaded {name}: `thru stacks list` shows what it has loaded")]
    NotKept {
        /// Its name in the kernel.
        name: String,
    },
    /// The operating system refused an operation.
    #[error("cannot {operation}: {source}")]
    Io {
        /// The operation, with the path.
        operation: String,
        /// The cause.
        source: io::Error,
    },
}

/// What is wrong with a file of rules for destinations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// It is not TOML, or has keys that no section has.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// A section has an invalid value.
    #[error("[{section}]: {what}")]
    Section {
        /// Its name.
        section: String,
        /// The value.
        what: SectionError,
    },
    /// More sections than a stack holds.
    #[error("{count} sections; a stack holds at most {most}")]
    TooMany {
        /// How many there are.
        count: usize,
        /// The most.
        most: usize,
    },
}

/// An invalid value in a section of a file of rules, with what is valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SectionError {
    /// An unknown mode.
    #[error("mode = {mode} is not valid; use 1, or 0 to leave the section out")]
    Mode {
        /// As written.
        mode: u8,
    },
    /// A switch that is neither on nor off.
    #[error("{key} = {value} is not valid; use 0 or 1")]
    Switch {
        /// Its key.
        key: &'static str,
        /// As written.
        value: u8,
    },
    /// A number out of its limits.
    #[error("{key} = {value} is not valid; use {least} to {most}")]
    Number {
        /// Its key.
        key: &'static str,
        /// As written.
        value: f64,
        /// The least.
        least: f64,
        /// The largest.
        most: f64,
    },
    /// A text that is not an address.
    #[error("'{text}' is not an address with a prefix; write 192.0.2.0/24 or 2001:db8::/32")]
    Address {
        /// As written.
        text: String,
    },
}

impl StackError {
    /// Whether the request itself is wrong, so that no host could fulfil it.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::Parameter { .. } | Self::Rules { .. } | Self::Object { .. })
    }

    pub(crate) fn io(operation: impl Into<String>, source: io::Error) -> Self {
        Self::Io { operation: operation.into(), source }
    }
}

fn other(found: bool) -> &'static str {
    if found {
        "which differs from the one that this thru loads under that name"
    } else {
        "and thru needs CAP_SYS_ADMIN to check whether it is its own"
    }
}
