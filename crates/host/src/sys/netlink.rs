//! A netlink socket: sends the kernel a request or a change, and receives the whole answer.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice, recv, sendto, socket_with,
};

use super::Qdisc;
use crate::netlink::frame::{Message, Messages, request};
use crate::netlink::{Attributes, NetlinkFamily, put, qdisc};

/// The generic family that resolves the others (linux/genetlink.h), its request and two of its attributes.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u16 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Size of `struct genlmsghdr`: command, version, two reserved bytes.
const GENERIC_HEADER: usize = 4;

/// A list's datagrams usually have at most 32 KiB; interfaces with hundreds of virtual functions need more.
const BUFFER: usize = 256 << 10;
/// The kernel answers at once; a driver may query its firmware first. A later answer is not expected.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends a request and waits until the kernel has processed it; returns the bodies of all messages of the answer, each
/// after its family's header. `dump` requests a list of all. It goes to the network namespace of the calling thread.
///
/// # Errors
/// The kernel's error: the family, the device or the route is unknown, the process may not change it, or the driver
/// has no answer.
pub(crate) fn exchange(family: NetlinkFamily, kind: u16, dump: bool, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    match family {
        NetlinkFamily::Route => Socket::open(None)?.converse(kind, dump, body),
        NetlinkFamily::Ethtool => {
            let mut socket = Socket::open(Some(GENERIC))?;
            let mut name = Vec::new();
            put(&mut name, FAMILY_NAME, b"ethtool\0");
            let answers = socket.generic(CONTROLLER, GET_FAMILY, false, &name)?;
            let id = answers.first().and_then(|answer| Attributes(answer).number32(FAMILY_ID)?.try_into().ok());
            let id = id.ok_or_else(|| io::Error::other("this kernel has no ethtool netlink (Linux 5.6)"))?;
            socket.generic(id, kind, dump, body)
        }
    }
}

/// The queueing disciplines of all interfaces of this network namespace.
pub(super) fn qdiscs() -> io::Result<Vec<Qdisc>> {
    let qdiscs = qdisc::request();
    let answers = exchange(qdiscs.family, qdiscs.kind, qdiscs.dump, &qdiscs.body)?;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let name = |index| netdevice::index_to_name(&socket, index).ok();
    Ok(answers.iter().filter_map(|answer| qdisc::read(answer, name)).collect())
}

struct Socket {
    socket: OwnedFd,
    sequence: u32,
}

impl Socket {
    /// Without a protocol: NETLINK_ROUTE, which is number 0.
    fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// A request to a generic family, whose header is added to the body and removed from the answers.
    fn generic(&mut self, family: u16, command: u16, dump: bool, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let command = u8::try_from(command).map_err(io::Error::other)?;
        let mut answers = self.converse(family, dump, &[&[command, 1, 0, 0], body].concat())?;
        for answer in &mut answers {
            answer.drain(..GENERIC_HEADER.min(answer.len()));
        }
        Ok(answers)
    }

    fn converse(&mut self, kind: u16, dump: bool, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.sequence += 1;
        let request = request(kind, dump, self.sequence, body);
        sendto(&self.socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut buffer = vec![0; BUFFER];
        let mut answers = Vec::new();
        loop {
            let (length, _) = recv(&self.socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            for message in Messages::new(&buffer[..length], self.sequence) {
                match message {
                    Message::Part(body) => answers.push(body.to_vec()),
                    Message::End => return Ok(answers),
                    Message::Refused(code) => return Err(io::Error::from_raw_os_error(code)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::link;

    #[test]
    fn the_dump_of_this_namespace_can_be_read() {
        // Each interface that is up has a discipline, except those that the kernel does not list (noqueue).
        for found in qdiscs().unwrap() {
            assert!(!found.interface.is_empty() && !found.kind.is_empty() && !found.parent.is_empty(), "{found:?}");
        }
    }

    #[test]
    fn one_is_answered_as_a_list_is_and_a_refusal_has_the_kernels_number() {
        let all = exchange(NetlinkFamily::Route, link::GET, true, &[0; link::HEADER]).unwrap();
        let named = |name: &[u8]| {
            let mut body = vec![0; link::HEADER];
            put(&mut body, link::NAME, name);
            exchange(NetlinkFamily::Route, link::GET, false, &body)
        };
        let one = named(b"lo\0").unwrap();
        assert_eq!(one.iter().filter_map(|answer| link::name(answer)).collect::<Vec<_>>(), ["lo"]);
        assert!(all.iter().any(|answer| link::index(answer) == link::index(&one[0])));
        assert_eq!(named(b"no-such-if\0").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
