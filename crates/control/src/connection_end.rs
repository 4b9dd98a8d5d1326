//! Why a control connection ended.

use std::io::{self, ErrorKind};
use std::time::Duration;

use text::Said;

use protocol::frame::FrameError;

/// Why a control connection, or one between processes of this host, ended.
#[derive(Debug, thiserror::Error, Said)]
#[non_exhaustive]
pub enum ConnectionEnd {
    /// The peer closed it.
    #[error("the connection was closed")]
    Closed,
    /// A message is too long, or cannot be read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The peer sent nothing.
    #[error("it sent nothing for {}", seconds(*waited))]
    Silent {
        /// For how long.
        waited: Duration,
    },
    /// The peer reads nothing.
    #[error("it read nothing for {}", seconds(*waited))]
    Unread {
        /// For how long.
        waited: Duration,
    },
    /// The kernel gave up: the peer's host acknowledged nothing.
    #[error("its host stopped acknowledging: the host or the path may be down")]
    Unacknowledged,
    /// The peer's kernel reset it.
    #[error("its host reset the connection: the program there ended or gave up the connection{}", on_such_a_path(*loses))]
    Reset {
        /// Whether the path loses much.
        loses: bool,
    },
    /// Another error of the kernel.
    #[error(transparent)]
    Io(io::Error),
}

impl ConnectionEnd {
    /// The end by this error, on a path that perhaps loses much.
    pub(crate) fn by(error: io::Error, loses: bool) -> Self {
        match error.kind() {
            ErrorKind::TimedOut => Self::Unacknowledged,
            ErrorKind::ConnectionReset => Self::Reset { loses },
            // A process that was killed leaves no farewell of TLS.
            ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

fn on_such_a_path(loses: bool) -> &'static str {
    if loses { ", perhaps because the path loses so many packets that it seemed dead" } else { "" }
}

/// A time limit in a sentence: whole seconds.
pub(crate) fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64().ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_swallows_is_not_said_to_reset() {
        let of = |kind: ErrorKind, loses| ConnectionEnd::by(kind.into(), loses).to_string();
        assert!(!of(ErrorKind::TimedOut, true).contains("reset"));
        assert!(of(ErrorKind::ConnectionReset, true).contains("perhaps because the path loses"));
        assert!(!of(ErrorKind::ConnectionReset, false).contains("path"));
    }
}
