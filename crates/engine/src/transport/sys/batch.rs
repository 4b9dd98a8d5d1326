//! Several datagrams to a system call: `sendmmsg(2)`, `recvmmsg(2)`, and UDP's segmentation and its reverse (linux/udp.h).

use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams that one `sendmmsg` or `recvmmsg` handles at most.
pub(crate) const MMSG: usize = 64;
/// Pieces that one `recvmmsg` takes at most where the kernel joins datagrams; each may be 64 KiB long.
pub(crate) const GRO_PIECES: usize = 16;
/// Segments of one send (UDP_MAX_SEGMENTS since Linux 5.17; 64 before).
pub(crate) const GSO_SEGMENTS: usize = 64;
/// Bytes of one send: the largest UDP payload over IPv4, which is also below that over IPv6.
pub(crate) const GSO_BYTES: usize = 65_507;

const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;
/// Room for one control message of four bytes, aligned as a header must be.
type Control = [u64; 4];

/// Where a datagram lies in the receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramMark {
    /// Its first byte.
    pub at: u32,
    /// Its length, bytes.
    pub len: u32,
}

/// Makes the kernel join arriving datagrams, as far as it can.
pub(crate) fn join_arrivals(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the pointer and length describe a live int for the length of the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            UDP_GRO,
            std::ptr::from_ref(&on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends `bytes` as datagrams of `size` bytes (the last may be shorter), one message each, at most [`MMSG`] of them.
/// Returns how many the kernel took.
pub(crate) fn send_many(socket: BorrowedFd<'_>, bytes: &[u8], size: usize) -> io::Result<usize> {
    // SAFETY: all-zero bytes are valid for these structures of the C library (null pointers, zero lengths).
    let (mut vectors, mut headers) = unsafe { (zeroed::<[libc::iovec; MMSG]>(), zeroed::<[libc::mmsghdr; MMSG]>()) };
    let mut count = 0;
    for (datagram, (vector, header)) in bytes.chunks(size).zip(vectors.iter_mut().zip(&mut headers)) {
        *vector = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` headers point to vectors on this stack frame, and those to `bytes`, which outlive the call;
    // sending only reads them.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, libc::MSG_NOSIGNAL as _) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Sends `bytes` in one piece that becomes datagrams of `size` bytes (the last may be shorter).
pub(crate) fn send_segmented(socket: BorrowedFd<'_>, bytes: &[u8], size: u16) -> io::Result<()> {
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control: Control = [0; 4];
    // SAFETY: an all-zero msghdr is valid. The control buffer is aligned for a header and holds CMSG_SPACE(2) bytes, so that
    // CMSG_FIRSTHDR is not null and its data has room for a u16; all pointers outlive the call, which only reads them.
    let sent = unsafe {
        let mut header: libc::msghdr = zeroed();
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as _;
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        (*message).cmsg_level = libc::SOL_UDP;
        (*message).cmsg_type = UDP_SEGMENT;
        (*message).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
        libc::CMSG_DATA(message).cast::<u16>().write_unaligned(size);
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives up to `pieces` messages into as many equal parts of `into`, waiting for the first one only, and records
/// where each datagram lies. Messages that the kernel joined are split again. Returns how many messages there were.
pub(crate) fn receive_many(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    pieces: usize,
    marks: &mut Vec<DatagramMark>,
) -> io::Result<usize> {
    let pieces = pieces.clamp(1, MMSG);
    let stride = into.len() / pieces;
    // SAFETY: all-zero bytes are valid for these structures of the C library.
    let (mut vectors, mut headers) = unsafe { (zeroed::<[libc::iovec; MMSG]>(), zeroed::<[libc::mmsghdr; MMSG]>()) };
    let mut controls = [MaybeUninit::<Control>::uninit(); MMSG];
    for (part, ((vector, header), control)) in
        into.chunks_mut(stride.max(1)).zip(vectors.iter_mut().zip(&mut headers).zip(&mut controls)).take(pieces)
    {
        *vector = libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() };
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_control = control.as_mut_ptr().cast();
        header.msg_hdr.msg_controllen = size_of::<Control>() as _;
    }
    // SAFETY: the first `pieces` headers point to vectors and control buffers on this stack frame and to disjoint parts of
    // `into`, all of which outlive the call; the kernel writes no more than the lengths given.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            pieces as u32,
            libc::MSG_WAITFORONE as _,
            std::ptr::null_mut(),
        )
    };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    for (index, header) in headers.iter().take(received as usize).enumerate() {
        let (start, len) = ((index * stride) as u32, header.msg_len);
        let segment = joined_size(&header.msg_hdr).filter(|size| *size > 0).unwrap_or(len.max(1));
        let mut at = 0;
        // An empty datagram counts too.
        while at < len || (len == 0 && at == 0) {
            marks.push(DatagramMark { at: start + at, len: segment.min(len - at) });
            at += segment;
        }
    }
    Ok(received as usize)
}

/// The size of the datagrams that the kernel joined into this message, if it did.
fn joined_size(header: &libc::msghdr) -> Option<u32> {
    // SAFETY: the kernel has set msg_controllen to what it wrote into the live control buffer; the CMSG functions stay within
    // it, and UDP_GRO carries an int.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::SOL_UDP && (*message).cmsg_type == UDP_GRO {
                return u32::try_from(libc::CMSG_DATA(message).cast::<libc::c_int>().read_unaligned()).ok();
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    None
}
