//! The words of a spec: names in registries, and choices among a few.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of an entry in one of the engine's registries (a transport or a pattern), such as `tcp` or `pingpong`.
///
/// A name rather than an enum, so that a new transport needs no change here; the engine refuses names it does not know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Name(String);

impl Name {
    /// The name itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// Which way payload goes between the near end (the one that connects) and the far end (HOST).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Near to far.
    #[default]
    Send,
    /// Far to near (`--reverse`).
    Reverse,
    /// Both at once (`--both`).
    Both,
}

/// Which end of the connections a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Connects; the near end.
    Active,
    /// Accepts; the far end.
    Passive,
}

/// When a trial ends. The counts are totals over all flows and are met exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// After this many nanoseconds of sending.
    TimeNs(u64),
    /// After this many payload bytes in each direction that sends.
    Bytes(u64),
    /// After this many blocks in each direction that sends.
    Blocks(u64),
    /// After this many transactions (round trips).
    Transactions(u64),
    /// After about this many nanoseconds: the near end turns it into a count of exchanges from what it has seen so far, at
    /// least 3, and tells the far end. For the points of a curve.
    AboutNs(u64),
}

/// Which system calls move the bytes of a stream socket (the 1998 record compared the two).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Io {
    /// `send(2)` and `recv(2)`.
    #[default]
    SendRecv,
    /// `write(2)` and `read(2)`.
    ReadWrite,
}

/// How a measuring thread waits for its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Blocking calls where each flow has a thread; epoll or io_uring, whichever was measured to carry more, where a thread
    /// has several.
    #[default]
    Auto,
    /// Blocking calls; one flow to a thread.
    Blocking,
    /// Non-blocking calls in a busy loop: the lowest latency, at a core's cost.
    Spin,
    /// One epoll set to a thread.
    Epoll,
    /// One io_uring to a thread: sends and receives are ordered from the kernel, those of all flows with one call.
    Uring,
}

/// Which IP version the data uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Whatever the host's name resolves to first.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}
