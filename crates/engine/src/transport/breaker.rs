//! Breaking an open connection, and looking at it, from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use super::sys;
use super::tcp_info::TcpInfo;

/// Breaks a connection from another thread, so that a blocked call on it returns.
#[derive(Debug, Clone, Default)]
pub struct Breaker(Option<Arc<AtomicI32>>);

impl Breaker {
    /// A breaker of the socket whose number is in `slot`; -1 once it is closed.
    #[must_use]
    pub fn of(slot: &Arc<AtomicI32>) -> Self {
        Self(Some(slot.clone()))
    }

    /// Shuts the connection down in both directions. Does nothing for channels whose calls time out by themselves.
    pub(crate) fn break_now(&self) {
        if let Some(slot) = &self.0 {
            let fd = slot.load(Ordering::SeqCst);
            if fd >= 0 {
                sys::sockopt::shutdown_raw(fd);
            }
        }
    }

    /// Bytes that the other end has not acknowledged, 0 if unknown: a drain that shrinks them is progress.
    #[must_use]
    pub(crate) fn unsent(&self) -> u64 {
        self.0.as_ref().map_or(0, |slot| sys::sockopt::unsent_raw(slot.load(Ordering::SeqCst)))
    }

    /// What the kernel's TCP reports of it; `None` if it is not carried by TCP, or closed.
    pub(crate) fn tcp(&self) -> Option<TcpInfo> {
        TcpInfo::of_number(self.0.as_ref()?.load(Ordering::SeqCst))
    }
}
