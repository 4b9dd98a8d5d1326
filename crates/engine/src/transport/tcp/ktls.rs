//! TLS whose records the kernel encrypts and decrypts (the kernel's Documentation/networking/tls.rst). rustls makes
//! the handshake; then the keys of both directions go to the socket, and everything after that is a call on it.

mod crypto_info;

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use model::{Direction, Encryption, ReceiveBy, Role, SendBy, SocketFacts, Spec};
use rustix::net::SendFlags;
use rustls::Connection;
use socket2::{Domain, Socket, Type};
use text::{Text, say};

use self::crypto_info::crypto_info;
use super::over_tcp::{SEND_LIMIT, over_tcp};
use crate::core::{EngineError, Interest, Turn, initiates, not_now};
use crate::transport::sys::watched::WatchedSocket;
use crate::transport::{Breaker, Channel, Kind, TcpInfo, options, sys};

/// Types of records (RFC 8446, section 5.1).
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
/// The alert that ends one direction: level warning, close_notify (RFC 8446, section 6.1).
const CLOSE_NOTIFY: [u8; 2] = [1, 0];

/// Whether the spec requests kernel TLS at either end.
pub(super) fn is_requested(spec: &Spec) -> bool {
    spec.engine.send == SendBy::Ktls || spec.engine.receive == ReceiveBy::Ktls
}

/// Whether the kernel handles TLS at the end of `role` of a connection whose payload goes in this direction.
pub(super) fn serves(spec: &Spec, direction: Direction, role: Role) -> bool {
    spec.is_stream()
        && if initiates(direction, role) {
            spec.engine.send == SendBy::Ktls
        } else {
            spec.engine.receive == ReceiveBy::Ktls
        }
}

/// Whether this host's kernel has what the spec requests at the end of `role`.
pub(super) fn check(spec: &Spec, role: Role) -> Result<(), EngineError> {
    let wanted = match spec.direction {
        Direction::Both => serves(spec, Direction::Send, role) || serves(spec, Direction::Reverse, role),
        direction => serves(spec, direction, role),
    };
    if !wanted {
        return Ok(());
    }
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)
        .map_err(|source| EngineError::socket("open a socket for", "tls", source))?;
    match sys::ktls::attach(&socket) {
        Ok(()) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Ok(()),
        Err(error) => Err(EngineError::unsupported(say!("`--engine ktls` on this host"), remedy(&error))),
    }
}

fn remedy(error: &io::Error) -> Text {
    match error.raw_os_error() {
        Some(libc::ENOENT) => {
            say!(
                "this kernel has no TLS: `modprobe tls` as root (a kernel with CONFIG_TLS, Linux 5.1 or newer), or use `--engine copy`"
            )
        }
        _ => say!("{error}: use `--engine copy`"),
    }
}

/// A TCP connection with kernel TLS.
pub(super) struct KernelTls {
    socket: WatchedSocket<TcpStream>,
    encryption: Encryption,
    blocking: bool,
    /// This end will send no more, and the other end has not been informed yet.
    closing: bool,
    /// The other end has announced that it sends no more.
    ended: bool,
}

impl KernelTls {
    /// Hands the keys to the socket. The session must have sent all its data, and everything that it has not read must
    /// still be in the socket.
    pub(super) fn new(
        socket: WatchedSocket<TcpStream>,
        session: Connection,
        encryption: Encryption,
    ) -> Result<Self, EngineError> {
        let secrets = session.dangerous_extract_secrets().map_err(|error| {
            EngineError::unsupported("kernel TLS", say!("cannot get the keys of the TLS session: {error}"))
        })?;
        let failed = |what: &str| {
            let option = format!("kernel TLS ({what}) for {}", encryption.cipher);
            move |source| EngineError::Option { option, source, hint: hint() }
        };
        let info = |(sequence, secrets)| {
            crypto_info(sequence, &secrets).ok_or_else(|| failed("the cipher")(io::ErrorKind::Unsupported.into()))
        };
        let (sending, receiving) = (info(secrets.tx)?, info(secrets.rx)?);
        sys::ktls::attach(&socket).map_err(failed("TCP_ULP"))?;
        sys::ktls::encrypt(&socket, &sending).map_err(failed("TLS_TX"))?;
        sys::ktls::decrypt(&socket, &receiving).map_err(failed("TLS_RX"))?;
        let encryption = Encryption { in_kernel: true, ..encryption };
        Ok(Self { socket, encryption, blocking: true, closing: false, ended: false })
    }

    /// Sends the end announcement to the other end, if it is due; `WouldBlock` while the socket has no room for it.
    ///
    /// The socket is not shut down for sending: records that wait for room in it would be lost (net/tls/tls_sw.c sends
    /// them later), and close_notify has the same meaning.
    fn flush(&mut self) -> io::Result<()> {
        if self.closing {
            sys::ktls::send_record(&self.socket, ALERT, &CLOSE_NOTIFY)?;
            self.closing = false;
        }
        Ok(())
    }

    /// Meaning of a record that is not payload, whose first bytes are `body`.
    fn heed(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        // An alert has two bytes. A small buffer takes one of them; the other one follows.
        let mut second = [0; 1];
        let alert = match (kind, body) {
            (ALERT, [_, description, ..]) => Some(*description),
            (ALERT, [_]) => (sys::ktls::receive(&self.socket, &mut second)?.0 == 1).then_some(second[0]),
            _ => None,
        };
        self.ended = alert == Some(CLOSE_NOTIFY[1]);
        if self.ended { Ok(()) } else { Err(trouble(kind, alert)) }
    }
}

fn hint() -> Text {
    say!("; it takes Linux 5.1 or newer with this cipher (`modprobe tls`, and gcm for AES), or use `--engine copy`")
}

/// Why a record that is neither payload nor the end stops the trial.
fn trouble(kind: u8, alert: Option<u8>) -> io::Error {
    let what = match (kind, alert) {
        (ALERT, Some(description)) => {
            format!("the other end ended TLS with alert {description} (RFC 8446, section 6.2)")
        }
        (HANDSHAKE, _) => {
            "the other end changed its TLS keys, but this end's kernel cannot: use `--engine ktls,ktls`, or \
                send less than 2^24 records"
                .into()
        }
        _ => format!("the other end sent a TLS record of type {kind}"),
    };
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Channel for KernelTls {
    const KIND: Kind = Kind::Stream;

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL)?)
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.flush() {
            // A read might block for ever while the other end waits for the announcement.
            Err(error) if self.blocking || !not_now(&error) => return Err(error),
            _ => {}
        }
        while !self.ended {
            match sys::ktls::receive(&self.socket, into)? {
                // Without a close_notify a third party may have ended it (RFC 8446, section 6.1).
                (0, None) => return Err(io::ErrorKind::UnexpectedEof.into()),
                (0, Some(APPLICATION_DATA)) => {}
                (count, None | Some(APPLICATION_DATA)) => return Ok(count),
                (count, Some(kind)) => self.heed(kind, &into[..count])?,
            }
        }
        Ok(0)
    }

    fn waiting(&mut self, turn: Turn) -> io::Result<Turn> {
        Ok(match turn {
            Turn::Wait(_, until) if self.closing => Turn::Wait(Interest::Both, until),
            turn => turn,
        })
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.closing = true;
        self.settled().map(|_| ())
    }

    fn facts(&self) -> SocketFacts {
        SocketFacts { encryption: Some(self.encryption.clone()), ..options::facts(self.socket.as_fd()) }
    }

    over_tcp!();
}

#[cfg(test)]
mod tests {
    use model::{Engine, Pattern};

    use super::*;

    #[test]
    fn each_end_needs_the_kernel_for_its_own_part_only() {
        let engine = Engine { send: SendBy::Ktls, receive: ReceiveBy::Copy, auto: false };
        let spec = Spec { engine, ..Spec::new("tls", Pattern::Stream) };
        assert!(serves(&spec, Direction::Send, Role::Active) && !serves(&spec, Direction::Send, Role::Passive));
        assert!(serves(&spec, Direction::Reverse, Role::Passive) && !serves(&spec, Direction::Reverse, Role::Active));
        let spec = Spec { engine: Engine { send: SendBy::Copy, receive: ReceiveBy::Ktls, auto: false }, ..spec };
        assert!(!serves(&spec, Direction::Send, Role::Active) && serves(&spec, Direction::Send, Role::Passive));
        // Round trips beside a stream are not its payload.
        assert!(!serves(&Spec { pattern: Pattern::Rr, ..spec.clone() }, Direction::Send, Role::Passive));
        assert!(is_requested(&spec) && !is_requested(&Spec::new("tls", Pattern::Stream)));
    }

    #[test]
    fn records_that_are_not_payload_are_named() {
        assert!(trouble(ALERT, Some(20)).to_string().contains("alert 20"));
        assert!(trouble(HANDSHAKE, None).to_string().contains("changed its TLS keys"));
        assert!(trouble(99, None).to_string().contains("type 99"));
        assert!(remedy(&io::Error::from_raw_os_error(libc::ENOENT)).plain().contains("modprobe tls"));
        assert!(remedy(&io::Error::from_raw_os_error(libc::EPERM)).plain().contains("Operation not permitted"));
    }
}
