//! ICMP echoes (RFC 792, RFC 4443 section 4) over a socket that this process may open.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

use socket2::{Domain, Protocol, Socket, Type};

use super::ready;
use crate::sys::probe;

/// Sockets opened so far, so that no two of this process have one identifier.
static OPENED: AtomicU16 = AtomicU16::new(0);

const REQUEST_4: u8 = 8;
const REPLY_4: u8 = 0;
const REQUEST_6: u8 = 128;
const REPLY_6: u8 = 129;
/// Type, code, checksum, identifier, sequence.
const HEADER: usize = 8;

/// A socket for echoes with one peer.
pub(super) struct Echo {
    socket: Socket,
    v6: bool,
    raw: bool,
    identifier: u16,
}

impl Echo {
    /// An ICMP socket (ping_group_range), else a raw one (CAP_NET_RAW).
    ///
    /// # Errors
    /// If neither may be opened.
    pub(super) fn open(peer: SocketAddr) -> io::Result<Self> {
        let v6 = peer.is_ipv6();
        let protocol = if v6 { Protocol::ICMPV6 } else { Protocol::ICMPV4 };
        let domain = if v6 { Domain::IPV6 } else { Domain::IPV4 };
        let (socket, raw) = match Socket::new(domain, Type::DGRAM, Some(protocol)) {
            Ok(socket) => (socket, false),
            Err(_) => (Socket::new(domain, Type::RAW, Some(protocol))?, true),
        };
        // A raw socket receives all replies of the peer, and two of ours may be open at once; the kernel gives an ICMP
        // socket its own identifier.
        let identifier = (std::process::id() as u16).wrapping_add(OPENED.fetch_add(1, Ordering::Relaxed));
        socket.connect(&peer.into())?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, v6, raw, identifier })
    }

    /// Sends unfragmented packets only, and receives the ICMP errors about them.
    pub(super) fn whole(&self) -> io::Result<()> {
        probe::prepare(self.fd(), self.v6)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// A name of this method for the user.
    pub(super) fn method(&self) -> &'static str {
        if self.raw { "raw-socket" } else { "icmp-socket" }
    }

    /// Bytes of the headers before the data of an echo.
    pub(super) fn overhead(&self) -> usize {
        HEADER + if self.v6 { 40 } else { 20 }
    }

    /// Sends an echo of `packet` bytes, IP header included.
    pub(super) fn send(&self, sequence: u16, packet: usize) -> io::Result<()> {
        let mut message = vec![0; packet.max(self.overhead()) - self.overhead() + HEADER];
        message[0] = if self.v6 { REQUEST_6 } else { REQUEST_4 };
        message[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        message[6..8].copy_from_slice(&sequence.to_be_bytes());
        if !self.v6 {
            // The kernel makes ICMPv6's, which covers addresses too.
            let sum = checksum(&message);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        // The next call reports an ICMP error about an earlier echo once.
        self.socket.send(&message).or_else(|_| self.socket.send(&message)).map(|_| ())
    }

    /// The sequence number of the next reply before `until`, or `None`; an ICMP error ends the wait as well.
    pub(super) fn receive(&self, until: Instant) -> Option<u16> {
        let mut buffer = [0; 128]; // the rest of a long reply may be cut off
        loop {
            match (&self.socket).read(&mut buffer) {
                Ok(length) => {
                    if let Some(sequence) = self.reply(&buffer[..length]) {
                        return Some(sequence);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return None,
                Err(_) => {
                    if !ready(&self.socket, until) {
                        return None;
                    }
                }
            }
        }
    }

    /// The sequence number of a reply to one of ours.
    fn reply(&self, message: &[u8]) -> Option<u16> {
        // A raw IPv4 socket gets the IP header too; its length in words is in the first byte.
        let skip = if self.raw && !self.v6 { usize::from(message.first()? & 0xf) * 4 } else { 0 };
        let message = message.get(skip..skip + HEADER)?;
        let kind = if self.v6 { REPLY_6 } else { REPLY_4 };
        let identifier = u16::from_be_bytes([message[4], message[5]]);
        let ours = message[0] == kind && (!self.raw || identifier == self.identifier);
        ours.then(|| u16::from_be_bytes([message[6], message[7]]))
    }
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // The example of its section 3, and a message together with its own sum, which gives zero.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        let sum = checksum(&[8, 0, 0, 0, 0x12, 0x34, 0, 1, 9]).to_be_bytes();
        assert_eq!(checksum(&[8, 0, sum[0], sum[1], 0x12, 0x34, 0, 1, 9]), 0);
    }
}
