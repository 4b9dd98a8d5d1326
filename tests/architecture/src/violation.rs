//! Violations of rules, and their messages.

use std::fmt;

/// Where the rules are described.
const WRITTEN: &str = "CONTRIBUTING.md, \"Rules that a test holds\"";

/// A rule of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Which of our crates may import which.
    Imports,
    /// No file imports what imports it.
    Circle,
    /// Which floor of the engine may import which.
    Floor,
    /// Crates that some of ours must not depend on.
    Outside,
    /// Pure crates do no I/O and read no clock.
    Pure,
    /// `unsafe` is used in `sys` modules only.
    Unsafe,
    /// A library does not end the process.
    Exit,
    /// Enums whose kind is a key are read without a tree of JSON.
    Kind,
    /// Files are short.
    Length,
    /// The map of the code names every crate.
    Map,
    /// No path of a particular machine.
    Machine,
    /// No retired word.
    Vocabulary,
    /// A library names options, not flags.
    Flags,
    /// A source that these tests cannot parse.
    Readable,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Imports => "imports go down only, and only where the table allows",
            Self::Circle => "no circle of files",
            Self::Floor => "the floors of the engine: core, transport, pattern, runner; imports go down only",
            Self::Outside => "pure crates do not depend on the operating system, nor the measuring path on async",
            Self::Pure => "analysis and report are pure functions: no files, no network, no clock",
            Self::Unsafe => "unsafe only in sys modules",
            Self::Exit => "a library does not end the process",
            Self::Kind => "an enum with a tag is read by model::by_kind",
            Self::Length => "a file has less than 600 lines before its tests",
            Self::Map => "docs/ARCHITECTURE.md names every crate",
            Self::Machine => "no tracked file names a path of a particular machine",
            Self::Vocabulary => "no retired term in names, keys, flags and texts; docs/GLOSSARY.md has the terms",
            Self::Flags => "a library names an option, in backticks; the program spells it as a flag",
            Self::Readable => "every source is plain Rust",
        })
    }
}

/// One violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The crate, or the file with its line.
    pub place: String,
    /// What is wrong.
    pub what: String,
}

impl Violation {
    pub(crate) fn new(rule: Rule, place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { rule, place: place.into(), what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n    rule: {} ({WRITTEN})", self.place, self.what, self.rule)
    }
}
