//! The call that no safe crate has: which network namespace a socket belongs to.
#![allow(unsafe_code, reason = "SO_NETNS_COOKIE has no safe face elsewhere")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// The number of the network namespace that a socket belongs to, which no other namespace ever gets until the host starts again
/// (SO_NETNS_COOKIE, Linux 5.14; socket(7)).
pub(crate) fn netns_cookie(socket: impl AsFd) -> io::Result<u64> {
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a live u64.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}
