//! Socket options that no safe crate has (getsockopt(2)).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option.
pub(crate) fn set<T>(socket: impl AsFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the pointer and length describe a live value for the length of the call, and the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The bytes of an option, zeros where the kernel has fewer.
pub(crate) fn get<const BYTES: usize>(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<[u8; BYTES]> {
    let mut value = [0; BYTES];
    let mut length = BYTES as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, and the live array has as many.
    let result = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length)
    };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}
