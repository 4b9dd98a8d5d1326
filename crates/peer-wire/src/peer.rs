//! A supported program.

use crate::{WireError, WireProblem};

/// A supported program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its name in options and messages.
    pub name: &'static str,
    /// The default port of its server: TCP, except for stamp.
    pub port: u16,
}

impl Peer {
    /// The error of a session with this program that cannot continue, with its step, as "while reading the options".
    #[must_use]
    pub fn error(&self, step: &'static str, what: impl Into<WireProblem>) -> WireError {
        WireError { peer: self.name, step, what: what.into() }
    }
}
