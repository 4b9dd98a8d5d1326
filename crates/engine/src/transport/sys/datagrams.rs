//! Options of UDP sockets that rustix and socket2 do not have: segmentation offload and path MTU.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

pub(super) fn set_int(fd: impl AsFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the pointer and length describe a live int for the length of the call.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(&value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// From now on the kernel cuts what is sent into datagrams of `bytes` (UDP_SEGMENT, Linux 4.18); 0 ends that.
pub(crate) fn set_segment_size(fd: impl AsFd, bytes: usize) -> io::Result<()> {
    set_int(fd, libc::SOL_UDP, libc::UDP_SEGMENT, i32::try_from(bytes).unwrap_or(i32::MAX))
}

/// Sends no fragments and discovers the path MTU in the protocol (as RFC 8899 requires): the kernel's own value of the
/// path's MTU is ignored.
pub(crate) fn probe_path_mtu(fd: impl AsFd, v6: bool) -> io::Result<()> {
    if v6 {
        set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
    } else {
        set_int(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
    }
}

/// The MTU of the route that a connected socket takes, in bytes.
pub(crate) fn route_mtu(fd: impl AsFd, v6: bool) -> Option<u32> {
    let (level, option) = if v6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    let (mut value, mut length): (libc::c_int, _) = (0, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `length` bytes into the live int.
    let result = unsafe {
        libc::getsockopt(fd.as_fd().as_raw_fd(), level, option, std::ptr::from_mut(&mut value).cast(), &raw mut length)
    };
    (result == 0).then(|| u32::try_from(value).ok()).flatten()
}
