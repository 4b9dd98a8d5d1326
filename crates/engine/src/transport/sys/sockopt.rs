//! Socket options and ioctls that rustix and socket2 do not have.

use std::io;
use std::mem::{size_of, size_of_val};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// SO_MEMINFO: an array of SK_MEMINFO_VARS counters, the drops at index 8 (linux/sock_diag.h).
const SO_MEMINFO: libc::c_int = 55;
const SK_MEMINFO_DROPS: usize = 8;

/// Sets SO_MAX_PACING_RATE in bytes per second.
pub(crate) fn set_max_pacing_rate(fd: impl AsFd, bytes_per_second: u64) -> io::Result<()> {
    // SAFETY: the pointer and length describe a live u64 for the length of the call.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            std::ptr::from_ref(&bytes_per_second).cast(),
            size_of::<u64>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A buffer of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// What waits to be sent.
    Send,
    /// What waits to be read.
    Receive,
}

/// Sets SO_SNDBUFFORCE or SO_RCVBUFFORCE: a size beyond the host's limit, with CAP_NET_ADMIN (socket(7)).
pub(crate) fn force_buffer(fd: impl AsFd, buffer: Buffer, bytes: i32) -> io::Result<()> {
    let option = match buffer {
        Buffer::Send => libc::SO_SNDBUFFORCE,
        Buffer::Receive => libc::SO_RCVBUFFORCE,
    };
    // SAFETY: the pointer and length describe a live integer for the length of the call.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(&bytes).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether a buffer's size was set, and is not tuned by the kernel (SO_BUF_LOCK, Linux 5.14).
pub(crate) fn is_set(fd: impl AsFd, buffer: Buffer) -> bool {
    /// Of asm-generic/socket.h and linux/sock.h.
    const SO_BUF_LOCK: libc::c_int = 72;
    let bit = match buffer {
        Buffer::Send => 1,
        Buffer::Receive => 2,
    };
    let mut bytes = [0u8; 4];
    let length = read_option(fd.as_fd(), libc::SOL_SOCKET, SO_BUF_LOCK, &mut bytes).unwrap_or(0);
    length == 4 && u32_at(&bytes, 0) & bit != 0
}

/// Reads an option of unknown length as raw bytes.
fn read_option(fd: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int, into: &mut [u8]) -> io::Result<usize> {
    let mut length = size_of_val(into) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into the live buffer and updates `length`.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, into.as_mut_ptr().cast(), &raw mut length) };
    if result == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

/// Datagrams that this socket dropped because its buffer was full.
pub(crate) fn drops(fd: impl AsFd) -> Option<u64> {
    let mut bytes = [0u8; 64];
    let length = read_option(fd.as_fd(), libc::SOL_SOCKET, SO_MEMINFO, &mut bytes).ok()?;
    let at = SK_MEMINFO_DROPS * 4;
    (length >= at + 4).then(|| u64::from(u32_at(&bytes, at)))
}

/// SO_BUSY_POLL in microseconds; 0 where it is off.
pub(crate) fn busy_poll_us(fd: impl AsFd) -> Option<u32> {
    let mut bytes = [0u8; 4];
    let length = read_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_BUSY_POLL, &mut bytes).ok()?;
    (length == 4).then(|| u32_at(&bytes, 0))
}

/// How long the last received message had been in the socket, ns (SIOCGSTAMPNS, socket(7)). The first call enables the
/// kernel's arrival timestamps.
pub(crate) fn waited_ns(fd: impl AsFd) -> Option<u64> {
    /// `_IOR(0x89, 0x07, long long[2])` of linux/sockios.h.
    const SIOCGSTAMPNS: libc::Ioctl = 0x8010_8907_u32 as libc::Ioctl;
    let mut stamp = [0_i64; 2];
    // SAFETY: this request writes a pair of 64-bit integers, and a descriptor that is no socket answers ENOTTY.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), SIOCGSTAMPNS, stamp.as_mut_ptr()) };
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let waited = (now.tv_sec - stamp[0]) * 1_000_000_000 + (now.tv_nsec - stamp[1]);
    // A clock that was set back in between gives no result.
    (result == 0).then(|| u64::try_from(waited).unwrap_or(0))
}

/// Bytes in the send queue that the other end has not acknowledged (SIOCOUTQ); 0 for what is no socket.
pub(crate) fn unsent(fd: impl AsFd) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ (= SIOCOUTQ) writes one int, whatever the descriptor.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { bytes.max(0) as u64 } else { 0 }
}

/// Room for struct tcp_info of linux/tcp.h: of 6.18 it has some 300 bytes, and it grows.
pub(crate) const TCP_INFO_ROOM: usize = 512;

/// Reads TCP_INFO, as long as this kernel has it; `None` if the socket is not a TCP socket. For an MPTCP socket it is
/// that of the first subflow.
pub(crate) fn tcp_info(fd: BorrowedFd<'_>, into: &mut [u8; TCP_INFO_ROOM]) -> Option<usize> {
    read_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, into).ok()
}

/// Level and name of MPTCP_INFO, and the flag of a connection that fell back to TCP (linux/mptcp.h).
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;
const MPTCP_INFO_FLAG_FALLBACK: u32 = 1;

/// Established subflows of an MPTCP socket, the first one included, by MPTCP_INFO: 0 if the connection fell back to
/// TCP, `None` if the socket is not an MPTCP socket.
pub(crate) fn mptcp_subflows(fd: impl AsFd) -> Option<u32> {
    let mut bytes = [0u8; 256];
    let length = read_option(fd.as_fd(), SOL_MPTCP, MPTCP_INFO, &mut bytes).ok()?;
    // The layout of struct mptcp_info: additional subflows first, the flags at 8; newer kernels count all subflows at 80.
    (length >= 12).then(|| {
        let fallen = u32_at(&bytes, 8) & MPTCP_INFO_FLAG_FALLBACK != 0;
        let up = if length > 80 { u32::from(bytes[80]) } else { u32::from(bytes[0]) + 1 };
        if fallen { 0 } else { up }
    })
}

/// This machine's context id on vsock (IOCTL_VM_SOCKETS_GET_LOCAL_CID of linux/vm_sockets.h), by the device /dev/vsock.
pub(crate) fn local_cid(device: impl AsFd) -> io::Result<u32> {
    const GET_LOCAL_CID: libc::Ioctl = 0x7b9;
    let mut cid: libc::c_uint = 0;
    // SAFETY: this request writes one unsigned int, and any other device answers ENOTTY.
    let result = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), GET_LOCAL_CID, &raw mut cid) };
    if result == 0 { Ok(cid) } else { Err(io::Error::last_os_error()) }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
