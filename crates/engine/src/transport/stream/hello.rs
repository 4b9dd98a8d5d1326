//! The hello of a data connection over a stream socket, at both ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags};

use crate::core::EngineError;
use crate::transport::handshake::WELCOME;
use crate::transport::{Cookie, FlowHello, HELLO_BYTES};

/// How long a data connection may take to send its hello, on a path of usual length.
pub(crate) const HELLO_LIMIT: Duration = Duration::from_secs(5);

/// Active side: sends the hello and waits until the passive end has accepted the connection.
pub(crate) fn exchange_hello(
    socket: &socket2::Socket,
    hello: &FlowHello,
    address: &str,
    patience: Duration,
) -> Result<(), EngineError> {
    send_hello(socket, hello, address)?;
    receive_welcome(socket, address, patience)
}

/// Active side, first half: sends the hello.
pub(crate) fn send_hello(socket: &socket2::Socket, hello: &FlowHello, address: &str) -> Result<(), EngineError> {
    send_all(socket.as_fd(), &hello.encode())
        .map_err(|source| EngineError::socket("send the hello of a data connection to", address, source))
}

/// Active side, second half: waits until the passive end has accepted the connection.
pub(crate) fn receive_welcome(socket: &socket2::Socket, address: &str, patience: Duration) -> Result<(), EngineError> {
    let failed = |source: io::Error| EngineError::socket("send the hello of a data connection to", address, source);
    socket.set_read_timeout(Some(HELLO_LIMIT + patience)).map_err(failed)?;
    let mut answer = [0; 1];
    recv_all(socket.as_fd(), &mut answer).map_err(|source| match source.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => EngineError::Peer {
            peer: address.into(),
            what: "closed the data connection: it does not know this measurement, or has ended it".into(),
        },
        _ => failed(source),
    })?;
    socket.set_read_timeout(None).map_err(failed)?;
    if answer[0] == WELCOME {
        Ok(())
    } else {
        Err(EngineError::Peer { peer: address.into(), what: "is not a Throughline agent".into() })
    }
}

/// Passive side: reads the hello of a connection that a listener of its own accepted; `None` for one without the cookie.
pub(crate) fn read_hello(
    socket: &socket2::Socket,
    cookie: &Cookie,
    patience: Duration,
) -> io::Result<Option<FlowHello>> {
    socket.set_read_timeout(Some(HELLO_LIMIT + patience))?;
    let mut bytes = [0; HELLO_BYTES];
    recv_all(socket.as_fd(), &mut bytes)?;
    socket.set_read_timeout(None)?;
    Ok(FlowHello::decode(&bytes, [cookie]))
}

/// Passive side: confirms to the active end that its connection was accepted.
pub(crate) fn welcome(socket: impl AsFd) -> io::Result<()> {
    send_all(socket.as_fd(), &[WELCOME])
}

fn send_all(socket: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn recv_all(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < into.len() {
        match rustix::net::recv(socket, &mut into[filled..], RecvFlags::empty()) {
            Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((_, count)) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
