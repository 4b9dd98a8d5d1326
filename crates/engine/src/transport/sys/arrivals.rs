//! Datagrams with the kernel's information on their arrival: time, time to live, and destination address.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use socket2::{SockAddr, SockAddrStorage};

use super::datagrams::set_int;

/// Arrival of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its length.
    pub bytes: usize,
    /// Its sender.
    pub peer: SocketAddr,
    /// When the kernel received it, ns since 1970 by CLOCK_REALTIME; when it was read, if the kernel does not report
    /// it.
    pub unix_ns: u64,
    /// Its time to live, or hop limit, on arrival.
    pub ttl: Option<u8>,
    /// The address of this host that it was sent to.
    pub to: Option<IpAddr>,
}

/// Room for the control messages that [`enable_arrival_info`] requests, aligned as the kernel requires.
#[repr(C, align(8))]
struct Control([u8; 160]);

/// Makes the kernel deliver with each datagram what [`receive`] returns.
///
/// # Errors
/// The kernel's.
pub fn enable_arrival_info(socket: BorrowedFd<'_>, v6: bool) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    if v6 {
        set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1)?;
        set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
    } else {
        set_int(socket, libc::IPPROTO_IP, libc::IP_RECVTTL, 1)?;
        set_int(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)
    }
}

/// Receives one datagram from a socket prepared by [`enable_arrival_info`]; what does not fit `into` is cut.
///
/// # Errors
/// The kernel's; also where the sender has no IP address.
pub fn receive(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<Arrived> {
    // SAFETY: all-zero bytes are valid for this structure of the C library.
    let mut header = unsafe { zeroed::<libc::msghdr>() };
    let mut peer = SockAddrStorage::zeroed();
    let mut vector = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut control = Control([0; 160]);
    header.msg_name = (&raw mut peer).cast();
    header.msg_namelen = peer.size_of();
    (header.msg_iov, header.msg_iovlen) = (&raw mut vector, 1);
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len() as _;
    // SAFETY: the header points to live memory of the lengths it says, which nothing else uses during the call.
    let bytes = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    let bytes = usize::try_from(bytes).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled in an address and its length.
    let peer = unsafe { SockAddr::new(peer, header.msg_namelen) }
        .as_socket()
        .ok_or_else(|| io::Error::other("the sender has no IP address"))?;
    let mut arrived = Arrived { bytes, peer, unix_ns: 0, ttl: None, to: None };
    // SAFETY: the kernel has set msg_controllen to what it wrote into the live control buffer; the CMSG functions stay within it,
    // and each kind carries the type that is read.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while !message.is_null() {
            let data = libc::CMSG_DATA(message);
            match ((*message).cmsg_level, (*message).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let at = data.cast::<libc::timespec>().read_unaligned();
                    arrived.unix_ns = at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64;
                }
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    arrived.ttl = u8::try_from(data.cast::<libc::c_int>().read_unaligned()).ok();
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    arrived.to = Some(Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr)).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    arrived.to = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    if arrived.unix_ns == 0 {
        arrived.unix_ns = crate::unix_ns();
    }
    Ok(arrived)
}

/// Sends `bytes` back to a datagram's sender, from the address that the datagram was sent to: a socket bound to all
/// addresses would use the source address of the route, which differs on a host with several.
///
/// # Errors
/// The kernel's.
pub fn answer(socket: BorrowedFd<'_>, bytes: &[u8], to: &Arrived) -> io::Result<()> {
    let peer = SockAddr::from(to.peer);
    // SAFETY: all-zero bytes are valid for this structure of the C library.
    let mut header = unsafe { zeroed::<libc::msghdr>() };
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 160]);
    (header.msg_name, header.msg_namelen) = (peer.as_ptr().cast_mut().cast(), peer.len());
    (header.msg_iov, header.msg_iovlen) = (&raw mut vector, 1);
    header.msg_control = control.0.as_mut_ptr().cast();
    match to.to.filter(|own| !own.is_multicast()) {
        // SAFETY: all-zero bytes are valid for the structure; see also `put`.
        Some(IpAddr::V4(own)) => unsafe {
            let mut info = zeroed::<libc::in_pktinfo>();
            info.ipi_spec_dst.s_addr = u32::from(own).to_be();
            put(&mut header, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        },
        // SAFETY: likewise.
        Some(IpAddr::V6(own)) => unsafe {
            let mut info = zeroed::<libc::in6_pktinfo>();
            info.ipi6_addr.s6_addr = own.octets();
            put(&mut header, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        },
        None => header.msg_control = std::ptr::null_mut(),
    }
    // SAFETY: the header points to live memory of the lengths it says, which the kernel only reads.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, 0) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes `value` the one message of a header's control buffer.
///
/// # Safety
/// `header` points to a live [`Control`], and both kinds of information fit it.
unsafe fn put<T>(header: &mut libc::msghdr, level: libc::c_int, kind: libc::c_int, value: T) {
    // SAFETY: the buffer is larger than CMSG_SPACE of the value, and aligned for a header.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(size_of::<T>() as u32) as _;
        let message = libc::CMSG_FIRSTHDR(header);
        (*message).cmsg_level = level;
        (*message).cmsg_type = kind;
        (*message).cmsg_len = libc::CMSG_LEN(size_of::<T>() as u32) as _;
        libc::CMSG_DATA(message).cast::<T>().write_unaligned(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn a_datagram_has_its_arrival_info_and_is_answered_from_its_destination() {
        for (all, own) in [("0.0.0.0:0", "127.0.0.9"), ("[::]:0", "::1")] {
            let Ok(mirror) = UdpSocket::bind(all) else { continue };
            let own: IpAddr = own.parse().unwrap();
            enable_arrival_info(mirror.as_fd(), own.is_ipv6()).unwrap();
            let requester = UdpSocket::bind(if own.is_ipv6() { "[::1]:0" } else { "127.0.0.1:0" }).unwrap();
            // The route to the requester starts at 127.0.0.1: only an answer from 127.0.0.9 reaches a connected
            // socket.
            requester.connect((own, mirror.local_addr().unwrap().port())).unwrap();
            requester.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            let before = crate::unix_ns();
            requester.send(b"req").unwrap();
            let mut room = [0; 100];
            let arrived = receive(mirror.as_fd(), &mut room).unwrap();
            let after = crate::unix_ns();
            assert_eq!(
                (arrived.bytes, &room[..3], arrived.peer),
                (3, b"req".as_slice(), requester.local_addr().unwrap())
            );
            assert!((before..=after).contains(&arrived.unix_ns), "{before} {arrived:?} {after}");
            assert!(arrived.ttl.is_some_and(|ttl| ttl > 0) && arrived.to == Some(own), "{arrived:?}");
            answer(mirror.as_fd(), b"answer", &arrived).unwrap();
            assert_eq!(requester.recv(&mut room).unwrap(), 6);
        }
    }
}
