//! TCP_ZEROCOPY_RECEIVE: pages that arrived are mapped into this process, not copied (linux/tcp.h).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const TCP_ZEROCOPY_RECEIVE: libc::c_int = 35;

/// struct tcp_zerocopy_receive; kernels that lack a field accept the shorter struct.
#[repr(C)]
#[derive(Default)]
struct Request {
    address: u64,
    /// In: bytes to map at most. Out: bytes mapped.
    length: u32,
    /// Out: bytes that cannot be mapped and come before any that can.
    recv_skip_hint: u32,
    /// Out: bytes in the receive queue.
    inq: u32,
    /// Out: the socket's error.
    err: i32,
}

/// Result of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// So many bytes are mapped.
    Mapped(usize),
    /// So many bytes must be copied before anything can be mapped.
    ToCopy(usize),
    /// Nothing is there, or the other end has finished.
    Nothing,
}

/// Address space that a socket's pages are mapped into.
pub(crate) struct Window {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: the window is memory of this process that no code reads through; moving the handle to another thread changes nothing.
unsafe impl Send for Window {}

impl Window {
    /// A window for at most `bytes` bytes of `socket`'s stream, rounded up to whole pages.
    pub(crate) fn new(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let length = bytes.max(1).next_multiple_of(rustix::param::page_size());
        // SAFETY: a new mapping at an address of the kernel's choice; it stays empty until pages arrive.
        let base = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, socket, 0)? };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("the kernel mapped the socket at zero"))?;
        Ok(Self { base, length })
    }

    /// Maps what has arrived and can be mapped, at most `most` bytes; earlier mappings are released. Never waits.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> io::Result<Arrived> {
        let page = rustix::param::page_size();
        let mut request = Request {
            address: self.base.as_ptr() as u64,
            length: u32::try_from(most.min(self.length) / page * page).unwrap_or(0),
            ..Request::default()
        };
        let mut length = size_of::<Request>() as libc::socklen_t;
        // SAFETY: the kernel reads and writes at most `length` bytes of the live request, and maps pages only into the range that
        // the request names, which is this window's own; no reference into it exists.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                TCP_ZEROCOPY_RECEIVE,
                (&raw mut request).cast(),
                &raw mut length,
            )
        };
        if result != 0 {
            let error = io::Error::last_os_error();
            // The stream has ended, and all of it was taken.
            return if error.raw_os_error() == Some(libc::EIO) { Ok(Arrived::Nothing) } else { Err(error) };
        }
        Ok(match (request.length, request.recv_skip_hint) {
            (0, 0) => Arrived::Nothing,
            (0, bytes) => Arrived::ToCopy(bytes as usize),
            (bytes, _) => Arrived::Mapped(bytes as usize),
        })
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`, unmapped once; no reference into it exists.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}
