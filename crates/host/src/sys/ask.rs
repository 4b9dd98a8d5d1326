//! A netlink socket that asks and changes nothing.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use crate::netlink::{Ask, Attributes, Family, GENERIC_HEADER, HEADER, put, u16_at, u32_at};

const FLAG_REQUEST: u16 = 0x1;
const FLAG_DUMP: u16 = 0x300;
const DONE: u16 = 3;
const ERROR: u16 = 2;

/// The generic family that knows the others (linux/genetlink.h), its question and two of its attributes.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// A dump's messages are at most 32 KiB, an answer about one device less than that.
const BUFFER: usize = 256 << 10;
/// The kernel answers at once; a driver may ask its firmware first.
const PATIENCE: Duration = Duration::from_secs(2);

/// The bodies of all messages that answer `ask`: each begins with the family's own header.
pub(super) fn ask(ask: &Ask) -> io::Result<Vec<Vec<u8>>> {
    match ask.family {
        Family::Route => converse(&Socket::open(None)?, ask.kind, ask.dump, &ask.body),
        Family::Ethtool => {
            let socket = Socket::open(Some(GENERIC))?;
            let family = family(&socket, b"ethtool\0")?;
            let command = u8::try_from(ask.kind).map_err(io::Error::other)?;
            let body = [&[command, 1, 0, 0], ask.body.as_slice()].concat();
            let answers = converse(&socket, family, ask.dump, &body)?;
            Ok(answers.into_iter().map(|answer| answer.get(GENERIC_HEADER..).unwrap_or_default().to_vec()).collect())
        }
    }
}

/// The number that this kernel gave a generic family.
fn family(socket: &Socket, name: &[u8]) -> io::Result<u16> {
    let mut body = vec![GET_FAMILY, 1, 0, 0];
    put(&mut body, FAMILY_NAME, name);
    let answers = converse(socket, CONTROLLER, false, &body)?;
    let id = answers.first().and_then(|answer| Attributes::after(answer, GENERIC_HEADER).number(FAMILY_ID));
    id.and_then(|id| id.try_into().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

struct Socket(OwnedFd);

impl Socket {
    /// Without a protocol: NETLINK_ROUTE, which is number 0.
    fn open(protocol: Option<rustix::net::Protocol>) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self(socket))
    }
}

fn converse(socket: &Socket, kind: u16, dump: bool, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let flags = if dump { FLAG_REQUEST | FLAG_DUMP } else { FLAG_REQUEST };
    let length = u32::try_from(HEADER + body.len()).map_err(io::Error::other)?;
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]); // sequence and port: one question to a socket, so that there is nothing to tell apart
    message.extend(body);
    sendto(&socket.0, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut buffer = vec![0; BUFFER];
    let mut answers = Vec::new();
    loop {
        let (_, length) = recv(&socket.0, buffer.as_mut_slice(), RecvFlags::empty())?;
        let mut rest = &buffer[..length.min(BUFFER)];
        while let Some(size) = u32_at(rest, 0).map(|size| size as usize) {
            let (Some(body), Some(kind)) = (rest.get(HEADER..size), u16_at(rest, 4)) else { break };
            match kind {
                DONE => return Ok(answers),
                ERROR => {
                    let code = u32_at(body, 0).map_or(0, u32::cast_signed);
                    return if code == 0 { Ok(answers) } else { Err(io::Error::from_raw_os_error(-code)) };
                }
                _ => answers.push(body.to_vec()),
            }
            rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
        }
        if !dump {
            return Ok(answers);
        }
    }
}
