//! Breaking an open connection, and looking at it, from another thread.

use rustix::net::Shutdown;

use super::sys::sockopt;
use super::sys::watched::{Owner, WatchedSocket, Watcher};
use super::tcp_info::TcpInfo;

/// Breaks a connection from another thread, so that a blocked call on it returns.
#[derive(Debug, Clone, Default)]
pub struct Breaker(Option<Watcher>);

impl Breaker {
    /// A breaker of this socket, and of those that replace it.
    #[must_use]
    pub fn of<S: Owner>(socket: &WatchedSocket<S>) -> Self {
        Self(Some(socket.watcher()))
    }

    /// Shuts the connection down in both directions. Does nothing for channels whose calls time out by themselves.
    pub(crate) fn break_now(&self) {
        if let Some(watcher) = &self.0 {
            // One that is broken already is an error.
            let _ = watcher.with(|socket| rustix::net::shutdown(socket, Shutdown::Both));
        }
    }

    /// Bytes that the other end has not acknowledged, 0 if unknown: a drain that shrinks them is progress.
    #[must_use]
    pub(crate) fn unsent(&self) -> u64 {
        self.0.as_ref().and_then(|watcher| watcher.with(|socket| sockopt::unsent(socket))).unwrap_or(0)
    }

    /// What the kernel's TCP reports of it; `None` if it is not carried by TCP, or closed.
    pub(crate) fn tcp(&self) -> Option<TcpInfo> {
        self.0.as_ref()?.with(TcpInfo::of).flatten()
    }
}
