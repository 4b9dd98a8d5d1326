//! The kernel's time stamps of packets: SO_TIMESTAMPING and the reports on the error queue (the kernel's
//! Documentation/networking/timestamping.rst, linux/net_tstamp.h, linux/errqueue.h).

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::datagrams::set_int;

/// The time stamps of one packet, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    /// By CLOCK_REALTIME.
    pub(crate) software_ns: Option<u64>,
    /// By the clock of the NIC.
    pub(crate) hardware_ns: Option<u64>,
}

impl Stamp {
    /// Adds what `other` has; the kernel reports the two clocks one by one.
    pub(crate) fn add(&mut self, other: Self) {
        self.software_ns = self.software_ns.or(other.software_ns);
        self.hardware_ns = self.hardware_ns.or(other.hardware_ns);
    }
}

/// The report that a packet has departed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Departure {
    /// On a stream the offset of the last byte of its send call; on datagrams the number of the stamped send.
    pub(crate) key: u32,
    pub(crate) stamp: Stamp,
}

/// Room for the control messages of one call: a time stamp takes 64 bytes, a report of the error queue 60 (IPv6).
type Control = [u64; 32];

/// What is stamped at a send that requests it.
const SENDS: libc::c_uint = libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_TX_HARDWARE;
/// What is stamped at every arrival, and what is reported.
const ALWAYS: libc::c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_HARDWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_RAW_HARDWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY
    // Without it a NIC that stamps suppresses the software stamp.
    | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
/// SCM_TSTAMP_SND of linux/errqueue.h: the packet was passed to the device.
const SENT: u32 = 0;

/// Stamps arrivals from now on. Returns whether the keys of a stream count from this call; otherwise they count from the
/// last byte that was acknowledged.
///
/// # Errors
/// The kernel's.
pub(crate) fn enable(socket: BorrowedFd<'_>, stream: bool) -> io::Result<bool> {
    let set = |flags: libc::c_uint| set_int(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed());
    if !stream {
        return set(ALWAYS).map(|()| true);
    }
    // Linux 6.2 and later.
    match set(ALWAYS | libc::SOF_TIMESTAMPING_OPT_ID_TCP) {
        Ok(()) => Ok(true),
        Err(_) => set(ALWAYS).map(|()| false),
    }
}

/// Sends `bytes` and requests a stamp of the departure.
///
/// # Errors
/// The kernel's.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control: Control = [0; 32];
    // SAFETY: an all-zero msghdr is valid; the control buffer is aligned for a header and larger than the one message that is
    // written to it; all pointers are to memory that outlives the call, which only reads it.
    let sent = unsafe {
        let mut header: libc::msghdr = zeroed();
        (header.msg_iov, header.msg_iovlen) = (&raw mut vector, 1);
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(size_of::<u32>() as u32) as _;
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        (*message).cmsg_level = libc::SOL_SOCKET;
        (*message).cmsg_type = libc::SO_TIMESTAMPING;
        (*message).cmsg_len = libc::CMSG_LEN(size_of::<u32>() as u32) as _;
        libc::CMSG_DATA(message).cast::<u32>().write_unaligned(SENDS);
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives into `into`, with the stamp of the last byte's arrival.
///
/// # Errors
/// The kernel's.
pub(crate) fn receive(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<(usize, Stamp)> {
    let mut vector = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut control: Control = [0; 32];
    let (count, length) = receive_message(socket, Some(&mut vector), &mut control, 0)?;
    Ok((count, arrival(&bytes_of(&control)[..length])))
}

/// Takes the next report of a departure from the error queue; `None` if there is none. Other reports are dropped. Never waits.
pub(crate) fn departure(socket: BorrowedFd<'_>) -> Option<Departure> {
    loop {
        let mut control: Control = [0; 32];
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        let (_, length) = receive_message(socket, None, &mut control, flags).ok()?;
        if let Some(found) = departed(&bytes_of(&control)[..length]) {
            return Some(found);
        }
    }
}

/// One recvmsg: the bytes of payload, and those of control messages.
fn receive_message(
    socket: BorrowedFd<'_>,
    vector: Option<&mut libc::iovec>,
    control: &mut Control,
    flags: libc::c_int,
) -> io::Result<(usize, usize)> {
    // SAFETY: an all-zero msghdr is valid; the vector and the control buffer outlive the call, and the kernel writes no more
    // than their lengths.
    let (count, length) = unsafe {
        let mut header: libc::msghdr = zeroed();
        if let Some(vector) = vector {
            (header.msg_iov, header.msg_iovlen) = (std::ptr::from_mut(vector), 1);
        }
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of::<Control>() as _;
        (libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags), header.msg_controllen)
    };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    #[allow(clippy::unnecessary_cast, reason = "the type differs between C libraries")]
    let length = (length as usize).min(size_of::<Control>());
    Ok((count, length))
}

fn bytes_of(control: &Control) -> &[u8; size_of::<Control>()] {
    // SAFETY: both types have the same size, and any bytes are valid.
    unsafe { &*std::ptr::from_ref(control).cast() }
}

/// The control messages in `bytes`: level, type and data (cmsg(3): a header of a word and two ints, each message aligned to a word).
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    const WORD: usize = size_of::<usize>();
    const HEAD: usize = WORD + 8;
    std::iter::from_fn(move || {
        let length = usize::from_ne_bytes(*bytes.first_chunk()?);
        let message = bytes.get(..length).filter(|_| length >= HEAD)?;
        let int = |at: usize| message[at..].first_chunk().map(|four| i32::from_ne_bytes(*four));
        let (level, kind) = (int(WORD)?, int(WORD + 4)?);
        bytes = bytes.get(length.next_multiple_of(WORD)..).unwrap_or_default();
        Some((level, kind, &message[HEAD..]))
    })
}

/// The stamp among control messages: three times (scm_timestamping), the first by software, the third by the NIC; the second
/// is no longer used. A time that is not there is 0.
fn arrival(control: &[u8]) -> Stamp {
    let mut found =
        messages(control).filter(|(level, kind, _)| (*level, *kind) == (libc::SOL_SOCKET, libc::SO_TIMESTAMPING));
    found
        .next()
        .map_or_else(Stamp::default, |(.., data)| Stamp { software_ns: time(data, 0), hardware_ns: time(data, 2) })
}

/// One of the three times: seconds and nanoseconds, each of a word.
fn time(data: &[u8], index: usize) -> Option<u64> {
    const WORD: usize = size_of::<libc::c_long>();
    let word = |at: usize| {
        let bytes = data.get(at..)?.first_chunk()?;
        u64::try_from(libc::c_long::from_ne_bytes(*bytes)).ok()
    };
    let at = 2 * WORD * index;
    let ns = word(at)?.checked_mul(1_000_000_000)?.checked_add(word(at + WORD)?)?;
    Some(ns).filter(|ns| *ns > 0)
}

/// The departure that control messages of the error queue report (sock_extended_err, ip(7)); `None` for anything else.
fn departed(control: &[u8]) -> Option<Departure> {
    let is_error =
        |level, kind| matches!((level, kind), (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR));
    let (.., error) = messages(control).find(|(level, kind, _)| is_error(*level, *kind))?;
    let int = |at: usize| Some(u32::from_ne_bytes(*error.get(at..)?.first_chunk()?));
    // ee_errno, then four bytes of which the first is ee_origin, then ee_info and ee_data.
    let stamped = int(0)? == libc::ENOMSG.cast_unsigned() && *error.get(4)? == libc::SO_EE_ORIGIN_TIMESTAMPING;
    (stamped && int(8)? == SENT).then_some(())?;
    Some(Departure { key: int(12)?, stamp: arrival(control) })
}

#[cfg(test)]
mod tests;
