//! A supported program.

/// A supported program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its name in options and messages.
    pub name: &'static str,
    /// The default port of its server: TCP, except for stamp.
    pub port: u16,
}
