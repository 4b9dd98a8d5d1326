//! Socket options of probes, and the error queue with the ICMP errors of routers and hosts (ip(7), ipv6(7),
//! linux/errqueue.h).

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::sockopt;

/// The ICMP error about a probe that was dropped, or that reached a port without listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// The system's error number: EMSGSIZE, ECONNREFUSED, EHOSTUNREACH...
    pub(crate) errno: i32,
    /// For EMSGSIZE the largest MTU that fits, bytes.
    pub(crate) info: u32,
    /// Its sender; `None` for this host itself.
    pub(crate) by: Option<IpAddr>,
    /// The port that the probe was sent to; 0 for echoes.
    pub(crate) port: u16,
    /// Whether the hop limit ran out.
    pub(crate) expired: bool,
}

const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMP6: u8 = 3;
/// Time exceeded, of ICMP (RFC 792) and ICMPv6 (RFC 4443).
const EXPIRED: [(u8, u8); 2] = [(ORIGIN_ICMP, 11), (ORIGIN_ICMP6, 3)];
/// IP_PMTUDISC_PROBE and IPV6_PMTUDISC_PROBE: never fragment, independent of the path MTU that the kernel assumes.
const PROBE: libc::c_int = 3;

/// Disables fragmentation on this socket and enables its error queue.
pub(crate) fn prepare(socket: BorrowedFd<'_>, v6: bool) -> io::Result<()> {
    if v6 {
        set(socket, libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, PROBE)?;
        set(socket, libc::SOL_IPV6, libc::IPV6_RECVERR, 1)
    } else {
        set(socket, libc::SOL_IP, libc::IP_MTU_DISCOVER, PROBE)?;
        set(socket, libc::SOL_IP, libc::IP_RECVERR, 1)
    }
}

/// Hop limit of the packets that follow.
pub(crate) fn set_hop_limit(socket: BorrowedFd<'_>, v6: bool, hops: u8) -> io::Result<()> {
    let (level, name) = if v6 { (libc::SOL_IPV6, libc::IPV6_UNICAST_HOPS) } else { (libc::SOL_IP, libc::IP_TTL) };
    set(socket, level, name, hops.into())
}

/// The kernel's path MTU of a connected socket, bytes.
pub(crate) fn path_mtu(socket: BorrowedFd<'_>, v6: bool) -> io::Result<u32> {
    let (level, name) = if v6 { (libc::SOL_IPV6, libc::IPV6_MTU) } else { (libc::SOL_IP, libc::IP_MTU) };
    let bytes = sockopt::get(socket, level, name)?;
    u32::try_from(libc::c_int::from_ne_bytes(bytes)).map_err(io::Error::other)
}

fn set(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    sockopt::set(socket, level, name, &value)
}

/// The next error on the error queue; `None` if there is none. Never waits.
pub(crate) fn complaint(socket: BorrowedFd<'_>) -> Option<Complaint> {
    let mut control = [0_u64; 64];
    // SAFETY: an all-zero sockaddr_storage and msghdr are valid; the buffers outlive the call and the kernel writes no more than
    // their lengths.
    let (result, header, to) = unsafe {
        let mut to: libc::sockaddr_storage = zeroed();
        let mut header: libc::msghdr = zeroed();
        header.msg_name = (&raw mut to).cast();
        header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of::<[u64; 64]>() as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        (libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags), header, to)
    };
    if result < 0 {
        return None;
    }
    let port = address(&to).map_or(0, |(_, port)| port);
    // SAFETY: the CMSG functions stay within what the kernel wrote; a message of these types carries a
    // sock_extended_err and, right after it, the sender's address, for which the buffer has room although it may be
    // truncated.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while !message.is_null() {
            let kind = ((*message).cmsg_level, (*message).cmsg_type);
            if matches!(kind, (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)) {
                let data = libc::CMSG_DATA(message);
                let error = data.cast::<libc::sock_extended_err>().read_unaligned();
                let length = ((*message).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let length = length.saturating_sub(size_of::<libc::sock_extended_err>());
                let mut by: libc::sockaddr_storage = zeroed();
                std::ptr::copy_nonoverlapping(
                    data.add(size_of::<libc::sock_extended_err>()),
                    (&raw mut by).cast::<u8>(),
                    length.min(size_of::<libc::sockaddr_in6>()),
                );
                return Some(Complaint {
                    errno: error.ee_errno.cast_signed(),
                    info: error.ee_info,
                    by: address(&by).map(|(address, _)| address),
                    port,
                    expired: EXPIRED.contains(&(error.ee_origin, error.ee_type)),
                });
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    None
}

/// Address and port of a socket address; `None` for one that is neither IPv4 nor IPv6.
fn address(storage: &libc::sockaddr_storage) -> Option<(IpAddr, u16)> {
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is a sockaddr_in, and the storage is larger and aligned for all of them.
            let v4 = unsafe { &*std::ptr::from_ref(storage).cast::<libc::sockaddr_in>() };
            Some((Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above, for sockaddr_in6.
            let v6 = unsafe { &*std::ptr::from_ref(storage).cast::<libc::sockaddr_in6>() };
            Some((Ipv6Addr::from(v6.sin6_addr.s6_addr).into(), u16::from_be(v6.sin6_port)))
        }
        _ => None,
    }
}
