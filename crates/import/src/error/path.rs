//! Faults of round trips and hops.

/// A fault of a result of ping, fping, traceroute or mtr.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// A round trip or a summary that cannot be read.
    #[error("line {line}: the round trip '{word}' is not a number: run ping with LC_ALL=C")]
    RoundTrip {
        /// Its line.
        line: u32,
        /// As printed.
        word: String,
    },
    /// More replies than are read.
    #[error("more than {most} replies; the other {others} were not imported")]
    TooManyReplies {
        /// The number that is read.
        most: usize,
        /// The number of the others.
        others: usize,
    },
    /// Replies without a summary, by the peer.
    #[error("ping {0} has no summary: the text is cut off")]
    NoSummary(String),
    /// Neither replies nor a summary, by the peer.
    #[error("ping {0} has no reply and no summary")]
    NoReply(String),
    /// A summary of fping that cannot be read.
    #[error("counts or times are not numbers")]
    Summary,
    /// A path without hops, by its program.
    #[error("{0} has no hops")]
    NoHop(&'static str),
    /// A line that should be a hop.
    #[error("not a hop")]
    NotAHop,
    /// Hops are missing between two.
    #[error("hop {hop} follows hop {before}: the hops in between are missing")]
    Gap {
        /// The later one.
        hop: u8,
        /// The earlier one.
        before: u16,
    },
    /// A hop with the number of an earlier one.
    #[error("the hop number is not above {0}")]
    OutOfOrder(u16),
    /// Hops of which some are not after those before them.
    #[error("the hop numbers are out of order: several reports, or a broken one")]
    Unordered,
    /// A share that cannot be one, as printed.
    #[error("{0} is not a share of lost echoes")]
    Loss(String),
    /// A row without a column of this name.
    #[error("no column {0}")]
    NoColumn(&'static str),
    /// A document of mtr without valid hops.
    #[error("mtr has no hops, or one without a number, host, Loss% and Avg")]
    Hubs,
}
