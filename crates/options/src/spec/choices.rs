//! The enumerations of a spec.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The direction of the payload between the near end (which connects) and the far end (HOST).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Near to far.
    #[default]
    Send,
    /// Far to near (`--reverse`).
    Reverse,
    /// Both directions at the same time (`--both`).
    Both,
}

impl Direction {
    /// Whether the payload goes from the near end to the far end alone.
    #[must_use]
    pub fn is_send(&self) -> bool {
        *self == Self::Send
    }

    /// The way of its payload in words, as one of two.
    #[must_use]
    pub const fn way(self) -> &'static str {
        match self {
            Self::Send => "outbound",
            Self::Reverse => "return",
            Self::Both => "both",
        }
    }
}

/// The end of the connections that a worker has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Connects; the near end.
    Active,
    /// Accepts; the far end.
    Passive,
}

/// When a trial ends. The counts are totals over all flows and are met exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
    /// After about this many nanoseconds: the near end converts the time to a number of exchanges, at least 3, from the duration
    /// of earlier ones, and sends it to the far end. For the points of a curve.
    AboutNs(u64),
}

impl Stop {
    /// What it counts, with its unit.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TimeNs(_) => "time-ns",
            Self::Bytes(_) => "bytes",
            Self::Blocks(_) => "blocks",
            Self::Transactions(_) => "transactions",
            Self::AboutNs(_) => "about-ns",
        }
    }

    /// How many of these.
    #[must_use]
    pub const fn amount(&self) -> u64 {
        match *self {
            Self::TimeNs(amount)
            | Self::Bytes(amount)
            | Self::Blocks(amount)
            | Self::Transactions(amount)
            | Self::AboutNs(amount) => amount,
        }
    }
}

/// The system calls of a stream socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Io {
    /// `send(2)` and `recv(2)`.
    #[default]
    SendRecv,
    /// `write(2)` and `read(2)`.
    ReadWrite,
}

/// How a measuring thread waits for its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Blocking calls if each flow has a thread; otherwise epoll, or io_uring for many flows of round trips.
    #[default]
    Auto,
    /// Blocking calls; one flow per thread.
    Blocking,
    /// Non-blocking calls in a busy loop: the lowest latency, at the cost of a core.
    Spin,
    /// One epoll set per thread.
    Epoll,
    /// One io_uring per thread: the sends and receives of all flows are submitted with one call.
    Uring,
}

/// Which IP version the data uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The first address that the host's name resolves to.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl Family {
    /// The only one that is requested, if one is.
    #[must_use]
    pub fn requested(ipv4: bool, ipv6: bool) -> Self {
        match (ipv4, ipv6) {
            (true, _) => Self::V4,
            (_, true) => Self::V6,
            _ => Self::Any,
        }
    }
}
