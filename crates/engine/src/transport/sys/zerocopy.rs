//! MSG_ZEROCOPY: the socket option and the reports on the error queue (linux/errqueue.h).

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

use model::tally::Zerocopy;

const SO_ZEROCOPY: libc::c_int = 60;
const ORIGIN_ZEROCOPY: u8 = 5;
const CODE_COPIED: u8 = 1;

/// Allows MSG_ZEROCOPY on a socket.
pub(crate) fn allow(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the pointer and length describe a live int for the length of the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_ZEROCOPY,
            std::ptr::from_ref(&on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes the reports that are there and adds them to `counts`; returns whether there were any. Never waits.
pub(crate) fn reap(socket: BorrowedFd<'_>, counts: &mut Zerocopy) -> bool {
    let mut any = false;
    loop {
        let mut control = [0_u64; 16];
        // SAFETY: an all-zero msghdr is valid; the control buffer outlives the call and the kernel writes no more than its length.
        let (result, header) = unsafe {
            let mut header: libc::msghdr = zeroed();
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of::<[u64; 16]>() as _;
            let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
            (libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags), header)
        };
        if result < 0 {
            return any;
        }
        // SAFETY: the CMSG functions stay within what the kernel wrote, and a message that `is_error` lets pass carries a
        // sock_extended_err (ip(7), ipv6(7)).
        unsafe {
            let mut message = libc::CMSG_FIRSTHDR(&raw const header);
            while !message.is_null() {
                if !is_error((*message).cmsg_level, (*message).cmsg_type) {
                    message = libc::CMSG_NXTHDR(&raw const header, message);
                    continue;
                }
                let error = libc::CMSG_DATA(message).cast::<libc::sock_extended_err>().read_unaligned();
                if error.ee_errno == 0 && error.ee_origin == ORIGIN_ZEROCOPY {
                    // A report covers the sends numbered from ee_info to ee_data, both included, modulo 2^32.
                    let covered = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
                    counts.completed += covered;
                    counts.copied += if error.ee_code & CODE_COPIED == 0 { 0 } else { covered };
                    any = true;
                }
                message = libc::CMSG_NXTHDR(&raw const header, message);
            }
        }
    }
}

/// Whether a control message of this level and type is a report of the error queue.
fn is_error(level: libc::c_int, kind: libc::c_int) -> bool {
    matches!((level, kind), (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR))
}
