//! How a TCP socket's payload gets into the process without a copy: by mapping the pages that it arrived in.

use std::io;
use std::os::fd::BorrowedFd;

use model::tally::Mapped;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::RecvFlags;
use rustix::time::Timespec;

use crate::transport::sys::map::{Arrived, Window};

/// How long a blocking receive waits before its machine checks the stop flag.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Address space of one call, bytes: the maximum that a receiver takes at once.
const WINDOW: usize = 1 << 20;

/// A receiver that maps what it can and copies the rest.
pub(crate) struct ZerocopyReceiver {
    window: Window,
    blocking: bool,
    counts: Mapped,
}

impl ZerocopyReceiver {
    /// For `socket`, which must be one of TCP; the kernel refuses others.
    pub(crate) fn new(socket: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self { window: Window::new(socket, WINDOW)?, blocking: true, counts: Mapped::default() })
    }

    pub(crate) fn set_blocking(&mut self, on: bool) {
        self.blocking = on;
    }

    /// Takes at most `into.len()` bytes; those that were mapped are not in `into`.
    #[inline]
    pub(crate) fn recv(&mut self, socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
        let mut arrived = self.window.receive(socket, into.len())?;
        if arrived == Arrived::Nothing && self.blocking {
            // A plain blocking call would copy what it waited for.
            if poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], Some(&WAIT))? == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            arrived = self.window.receive(socket, into.len())?;
        }
        let most = match arrived {
            Arrived::Mapped(bytes) => {
                self.counts.mapped_bytes += bytes as u64;
                return Ok(bytes);
            }
            Arrived::ToCopy(bytes) => bytes.min(into.len()),
            // The end of the stream or an error, which only a plain call reports; if bytes have arrived meanwhile it
            // takes them.
            Arrived::Nothing => into.len(),
        };
        let count = rustix::net::recv(socket, &mut into[..most], RecvFlags::empty())?.1;
        self.counts.copied_bytes += count as u64;
        Ok(count)
    }

    /// The payload so far, by how it was received.
    pub(crate) fn counts(&self) -> Mapped {
        self.counts
    }
}
