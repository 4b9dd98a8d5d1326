//! Netlink as far as settings need it: requests with attributes, answers as attributes (linux/netlink.h, RFC 3549).

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

const NLM_F_REQUEST: u16 = 0x01;
const NLM_F_ACK: u16 = 0x04;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER: usize = 16;
/// The kernel's bit for an attribute that holds attributes.
const NLA_F_NESTED: u16 = 0x8000;
/// An answer that takes longer will not come.
const LIMIT: Duration = Duration::from_secs(5);

/// A netlink socket in the network namespace of the thread that opened it.
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens one of `protocol`; `None` is NETLINK_ROUTE, whose number is 0.
    pub(crate) fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(LIMIT))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends one request and collects the bodies of all answers until the kernel has confirmed it.
    pub(crate) fn ask(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.sequence += 1;
        let mut request = Vec::with_capacity(HEADER + body.len());
        request.extend_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
        request.extend_from_slice(&kind.to_ne_bytes());
        request.extend_from_slice(&(NLM_F_REQUEST | NLM_F_ACK | flags).to_ne_bytes());
        request.extend_from_slice(&self.sequence.to_ne_bytes());
        request.extend_from_slice(&0_u32.to_ne_bytes());
        request.extend_from_slice(body);
        rustix::net::sendto(&self.socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answers = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let (count, _) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            let mut rest = &buffer[..count];
            while let Some(message) = take(&mut rest) {
                match message {
                    (sequence, ..) if sequence != self.sequence => {}
                    (_, NLMSG_DONE, _) => return Ok(answers),
                    (_, NLMSG_ERROR, body) => {
                        let code = body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                        return if code == 0 { Ok(answers) } else { Err(io::Error::from_raw_os_error(-code)) };
                    }
                    (_, _, body) => answers.push(body.to_vec()),
                }
            }
        }
    }
}

/// Sequence number, type and body of the next message of a datagram.
fn take<'a>(rest: &mut &'a [u8]) -> Option<(u32, u16, &'a [u8])> {
    let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(rest.get(4..6)?.try_into().ok()?);
    let sequence = u32::from_ne_bytes(rest.get(8..12)?.try_into().ok()?);
    let body = rest.get(HEADER..length)?;
    *rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((sequence, kind, body))
}

/// Appends an attribute.
pub(crate) fn put(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend_from_slice(&((4 + value.len()) as u16).to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Appends an attribute that holds attributes.
pub(crate) fn nest(body: &mut Vec<u8>, kind: u16, inner: &[u8]) {
    put(body, kind | NLA_F_NESTED, inner);
}

/// The attributes of a body, kind and value.
pub(crate) fn attributes(body: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    let mut rest = body;
    while let (Some(length), Some(kind)) = (rest.first_chunk::<2>(), rest.get(2..4)) {
        let length = usize::from(u16::from_ne_bytes(*length));
        let kind = u16::from_ne_bytes([kind[0], kind[1]]) & !(NLA_F_NESTED | 0x4000);
        let Some(value) = rest.get(4..length) else { break };
        found.push((kind, value));
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// The value of the first attribute of a kind.
pub(crate) fn attribute(body: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(body).into_iter().find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// A number of an attribute: 1, 2 or 4 bytes.
pub(crate) fn number(value: &[u8]) -> Option<u32> {
    match value {
        [one] => Some(u32::from(*one)),
        [a, b] => Some(u32::from(u16::from_ne_bytes([*a, *b]))),
        _ => value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes)),
    }
}

/// The text of an attribute, without the zero at its end.
pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back_as_they_were_put() {
        let mut inner = Vec::new();
        put(&mut inner, 2, b"eth0\0");
        let mut body = Vec::new();
        nest(&mut body, 1, &inner);
        put(&mut body, 7, &9000_u32.to_ne_bytes());
        put(&mut body, 8, &[1]);
        assert_eq!(body.len() % 4, 0);
        assert_eq!(attribute(&body, 1).and_then(|inner| attribute(inner, 2)).map(text), Some("eth0".into()));
        assert_eq!(attribute(&body, 7).and_then(number), Some(9000));
        assert_eq!(attribute(&body, 8).and_then(number), Some(1));
        assert_eq!(attribute(&body, 9), None);
    }

    #[test]
    fn cut_off_messages_end_the_reading() {
        let mut rest: &[u8] = &[200, 0, 0, 0, 1, 0, 0, 0];
        assert!(take(&mut rest).is_none());
        assert!(attributes(&[40, 0, 1, 0, 9]).is_empty());
    }
}
