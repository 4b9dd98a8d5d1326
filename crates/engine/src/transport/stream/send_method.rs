//! How a stream socket's payload gets into the kernel: the methods of [`SendBy`] that suit one.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};

use model::tally::Zerocopy;
use model::{SendBy, Spec};
use rustix::fs::MemfdFlags;
use rustix::net::SendFlags;
use rustix::pipe::SpliceFlags;

use crate::core::Payload;
use crate::transport::sys;

/// A method of sending parts of a block. All of them but the zero-copy one send bytes that were prepared when it was
/// created.
pub(crate) enum SendMethod {
    /// From a file in memory that holds the payload, and where the block begins there.
    Sendfile(OwnedFd, Payload, usize),
    /// From a pipe that stays full, by way of a second one.
    Splice { full: [OwnedFd; 2], relay: [OwnedFd; 2], room: usize, in_relay: usize },
    /// From the block itself, which the kernel borrows.
    Zerocopy(Cell<Zerocopy>),
}

/// What MSG_ZEROCOPY is called in linux/socket.h; rustix has no name for it.
const MSG_ZEROCOPY: SendFlags = SendFlags::from_bits_retain(0x400_0000);
/// Reports are taken after this many sends, before they use up the socket's memory for them (net.core.optmem_max).
const REAP_EVERY: u64 = 16;
/// The largest pipe that an unprivileged process may have by default (/proc/sys/fs/pipe-max-size).
const PIPE_BYTES: usize = 1 << 20;

impl SendMethod {
    /// The send method of `spec` for blocks of `block` bytes, which differ if they `vary`; `None` for plain calls.
    pub(crate) fn new(spec: &Spec, socket: BorrowedFd<'_>, block: usize, varies: bool) -> io::Result<Option<Self>> {
        Ok(match spec.engine.send {
            SendBy::Copy => None,
            SendBy::Sendfile => {
                let payload = Payload::new(spec, block, varies, spec.flows as usize);
                Some(Self::Sendfile(memory(&payload)?, payload, 0))
            }
            SendBy::Splice => Some(Self::splice(spec)?),
            SendBy::Zerocopy => {
                sys::zerocopy::allow(socket)?;
                Some(Self::Zerocopy(Cell::default()))
            }
            SendBy::Mmsg | SendBy::Gso | SendBy::Ktls => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    fn splice(spec: &Spec) -> io::Result<Self> {
        let pipe = || -> io::Result<[OwnedFd; 2]> {
            let (out, into) = rustix::pipe::pipe()?;
            // A smaller pipe is only slower.
            let _ = rustix::pipe::fcntl_setpipe_size(&into, PIPE_BYTES);
            Ok([out, into])
        };
        let (full, relay) = (pipe()?, pipe()?);
        let room = rustix::pipe::fcntl_getpipe_size(&full[1])?.min(rustix::pipe::fcntl_getpipe_size(&relay[1])?);
        let source = memory(&Payload::new(spec, room, false, 1)[..room])?;
        let mut filled = 0;
        while filled < room {
            let mut at = filled as u64;
            match rustix::pipe::splice(&source, Some(&mut at), &full[1], None, room - filled, SpliceFlags::NONBLOCK) {
                Ok(count) if count > 0 => filled += count,
                _ => break,
            }
        }
        if filled == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self::Splice { full, relay, room: filled, in_relay: 0 })
    }

    /// Sends `part` of `block`; how many bytes the socket took.
    #[inline]
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>, block: &[u8], part: Range<usize>) -> io::Result<usize> {
        match self {
            Self::Sendfile(memory, payload, from) => {
                if part.start == 0 {
                    *from = payload.next(block.len());
                }
                let mut at = (*from + part.start) as u64;
                Ok(rustix::fs::sendfile(socket, memory, Some(&mut at), part.len())?)
            }
            Self::Splice { full, relay, room, in_relay } => {
                if *in_relay == 0 {
                    *in_relay = rustix::pipe::tee(&full[0], &relay[1], part.len().min(*room), SpliceFlags::NONBLOCK)?;
                }
                let count = part.len().min(*in_relay);
                let taken = rustix::pipe::splice(&relay[0], None, socket, None, count, SpliceFlags::MORE)?;
                *in_relay -= taken;
                Ok(taken)
            }
            Self::Zerocopy(counts) => {
                let counts = counts.get_mut();
                let mut flags = SendFlags::NOSIGNAL | MSG_ZEROCOPY;
                loop {
                    match rustix::net::send(socket, &block[part.clone()], flags) {
                        Ok(count) => {
                            if flags.contains(MSG_ZEROCOPY) {
                                counts.sends += 1;
                                if counts.sends % REAP_EVERY == 0 {
                                    sys::zerocopy::reap(socket, counts);
                                }
                            }
                            return Ok(count);
                        }
                        // No room for another report: once those that wait are taken there is; if none waits, this one
                        // is copied.
                        Err(rustix::io::Errno::NOBUFS) if flags.contains(MSG_ZEROCOPY) => {
                            if !sys::zerocopy::reap(socket, counts) {
                                flags.remove(MSG_ZEROCOPY);
                            }
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
    }

    /// Results of the zero-copy sends so far.
    pub(crate) fn zerocopy(&self, socket: BorrowedFd<'_>) -> Option<Zerocopy> {
        let Self::Zerocopy(cell) = self else { return None };
        // A report can be taken only once, so its content is kept.
        let mut counts = cell.get();
        sys::zerocopy::reap(socket, &mut counts);
        cell.set(counts);
        Some(counts)
    }
}

/// A file in memory with these bytes.
fn memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = std::fs::File::from(rustix::fs::memfd_create("thru-block", MemfdFlags::CLOEXEC)?);
    std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0)?;
    Ok(file.into())
}
