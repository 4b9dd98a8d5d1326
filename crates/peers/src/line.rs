//! A control connection with time limits on every operation.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use engine::EngineError;
use engine::transport::{lacks_scope, programs, scope_hint};
use model::{Family, Spec};
use peer_wire::WireError;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::ProgramError;

/// How long a connection attempt to one address may take.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long a server may take to reopen its port.
const REOPENING_LIMIT: Duration = Duration::from_millis(300);
/// Time limit for the peer to accept written bytes.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// Interval between checks for cancellation.
const STEP: Duration = Duration::from_millis(50);

/// A control connection.
pub(crate) struct Line {
    socket: TcpStream,
    peer: SocketAddr,
}

/// How long to wait, for whom, and when to give up.
pub(crate) struct Wait<'a> {
    /// The program that is waited for.
    pub(crate) program: &'static str,
    /// At most this long.
    pub(crate) limit: Duration,
    /// The step, for the error message.
    pub(crate) during: &'static str,
    /// Whether to give up now.
    pub(crate) cancelled: &'a dyn Fn() -> bool,
}

/// The result of a read.
pub(crate) enum Input {
    /// So many bytes.
    Bytes(usize),
    /// The connection has ended.
    Ended,
    /// Nothing within the time.
    Nothing,
}

impl Line {
    /// Reaches `host`, at its own port or the program's.
    pub(crate) fn connect(program: &'static str, host: &str, port: u16, family: Family) -> Result<Self, ProgramError> {
        let mut last = None;
        for address in resolve(host, port, family)? {
            match dial(address) {
                Ok(socket) => return Self::over(socket, address),
                Err(source) => last = Some((address, source)),
            }
        }
        Err(match last {
            Some((address, source)) => {
                ProgramError::Unreachable { peer: program, address: address.to_string(), source }
            }
            None => {
                ProgramError::Resolve { host: host.into(), reason: "no address of the requested IP version".into() }
            }
        })
    }

    /// An established connection.
    pub(crate) fn over(socket: TcpStream, peer: SocketAddr) -> Result<Self, ProgramError> {
        let failed = |source| ProgramError::socket("prepare the connection to", peer, source);
        socket.set_nodelay(true).map_err(failed)?;
        socket.set_write_timeout(Some(WRITE_LIMIT)).map_err(failed)?;
        Ok(Self { socket, peer })
    }

    /// Connects with the spec's options for the near end, for programs that send data over the control
    /// connection. An address may take `limit` to answer.
    pub(crate) fn open(
        program: &'static str,
        spec: &Spec,
        host: &str,
        (port, limit): (u16, Duration),
    ) -> Result<Self, ProgramError> {
        let mut last = None;
        for address in resolve(host, port, spec.family)? {
            match dial_with(spec, address, limit) {
                Ok(socket) => return Self::over(socket.into(), address),
                Err(error) => last = Some((address, error)),
            }
        }
        Err(match last {
            Some((address, EngineError::Socket { source, .. })) => {
                ProgramError::Unreachable { peer: program, address: address.to_string(), source }
            }
            Some((_, error)) => error.into(),
            None => {
                ProgramError::Resolve { host: host.into(), reason: "no address of the requested IP version".into() }
            }
        })
    }

    /// Restores blocking mode and timeouts after the engine has used the connection.
    pub(crate) fn restore_blocking(&self) -> Result<(), ProgramError> {
        let failed = |source| ProgramError::socket("prepare the connection to", self.peer, source);
        self.socket.set_nonblocking(false).map_err(failed)?;
        self.socket.set_write_timeout(Some(WRITE_LIMIT)).map_err(failed)
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The address of this end.
    pub(crate) fn local_address(&self) -> Result<SocketAddr, ProgramError> {
        self.socket.local_addr().map_err(|source| ProgramError::socket("send to", self.peer, source))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), ProgramError> {
        self.socket.write_all(bytes).map_err(|source| ProgramError::socket("send to", self.peer, source))
    }

    /// Waits for bytes up to a limit and leaves them in the socket.
    pub(crate) fn peek(&self, limit: Duration) -> Result<Input, ProgramError> {
        let failed = |source| ProgramError::socket("receive from", self.peer, source);
        self.socket.set_read_timeout(Some(limit)).map_err(failed)?;
        input_of(self.socket.peek(&mut [0])).map_or(Ok(Input::Nothing), |heard| heard.map_err(failed))
    }

    /// Waits for bytes, at most this long.
    pub(crate) fn receive(&mut self, into: &mut [u8], limit: Duration) -> Result<Input, ProgramError> {
        let failed = |source| ProgramError::socket("receive from", self.peer, source);
        self.socket.set_read_timeout(Some(limit.max(Duration::from_millis(1)))).map_err(failed)?;
        self.read(into)
    }

    /// Waits for bytes; `None` at the end of the connection.
    pub(crate) fn wait(&mut self, into: &mut [u8], wait: &Wait<'_>) -> Result<Option<usize>, ProgramError> {
        let deadline = Instant::now() + wait.limit;
        loop {
            // Checked also for a peer that sends all the time.
            if (wait.cancelled)() {
                return Err(ProgramError::Interrupted);
            }
            match self.receive(into, STEP)? {
                Input::Bytes(count) => return Ok(Some(count)),
                Input::Ended => return Ok(None),
                Input::Nothing if Instant::now() > deadline => {
                    return Err(ProgramError::Silent {
                        address: self.peer.to_string(),
                        peer: wait.program,
                        seconds: wait.limit.as_secs(),
                        during: wait.during.into(),
                    });
                }
                Input::Nothing => {}
            }
        }
    }

    /// Reads without waiting.
    pub(crate) fn try_receive(&mut self, into: &mut [u8]) -> Result<Input, ProgramError> {
        let peer = self.peer;
        let failed = |source| ProgramError::socket("receive from", peer, source);
        self.socket.set_nonblocking(true).map_err(failed)?;
        let heard = self.read(into);
        self.socket.set_nonblocking(false).map_err(failed)?;
        heard
    }

    /// Sends and receives what is possible now, or within a limit: how many bytes were sent, and what was received.
    pub(crate) fn both_directions(
        &mut self,
        outgoing: &[u8],
        into: &mut [u8],
        limit: Duration,
    ) -> Result<(usize, Input), ProgramError> {
        let peer = self.peer;
        let failed = |source: io::Error| ProgramError::socket("exchange messages with", peer, source);
        let wanted = if outgoing.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let mut sockets = [PollFd::new(&self.socket, wanted)];
        let limit = Timespec { tv_sec: 0, tv_nsec: limit.as_nanos().min(999_999_999) as i64 };
        match rustix::event::poll(&mut sockets, Some(&limit)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok((0, Input::Nothing)),
            Ok(_) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
        let writable = sockets[0].revents().contains(PollFlags::OUT);
        self.socket.set_nonblocking(true).map_err(failed)?;
        let sent = match if writable { self.socket.write(outgoing) } else { Ok(0) } {
            Ok(sent) => sent,
            Err(error) if would_block(&error) => 0,
            Err(error) => return Err(failed(error)),
        };
        let heard = self.read(into);
        self.socket.set_nonblocking(false).map_err(failed)?;
        Ok((sent, heard?))
    }

    fn read(&mut self, into: &mut [u8]) -> Result<Input, ProgramError> {
        loop {
            if let Some(heard) = input_of(self.socket.read(into)) {
                return heard.map_err(|source| ProgramError::socket("receive from", self.peer, source));
            }
        }
    }

    /// A duplicate of the socket, for payload.
    pub(crate) fn socket(&self) -> Result<OwnedFd, ProgramError> {
        let socket = self
            .socket
            .try_clone()
            .map_err(|source| ProgramError::socket("duplicate the connection to", self.peer, source))?;
        Ok(socket.into())
    }

    /// Closes the sending direction.
    pub(crate) fn finish(&self) {
        // If it fails, the connection is already closed.
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }

    /// Closes the sending direction and waits until the peer has closed, up to a limit.
    pub(crate) fn close(mut self, limit: Duration) {
        self.finish_and_wait(limit);
    }

    /// Likewise, for a connection that will be replaced.
    pub(crate) fn finish_and_wait(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut rest = [0; 64];
        self.finish();
        while Instant::now() < deadline {
            if let Ok(Input::Ended) | Err(_) = self.receive(&mut rest, limit) {
                return;
            }
        }
    }

    /// A state machine's error with this peer's address.
    pub(crate) fn peer_error(&self, error: WireError) -> ProgramError {
        ProgramError::Peer { address: self.peer.to_string(), error }
    }
}

/// Classifies a read; `None` if it must be repeated.
fn input_of(read: io::Result<usize>) -> Option<io::Result<Input>> {
    Some(Ok(match read {
        Ok(0) => Input::Ended,
        Ok(count) => Input::Bytes(count),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Input::Nothing,
            ErrorKind::Interrupted => return None,
            // After a reset nothing more can be read: the connection has ended.
            ErrorKind::ConnectionReset => Input::Ended,
            _ => return Some(Err(error)),
        },
    }))
}

/// Whether a call can be repeated.
pub(crate) fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Connects within [`CONNECT_LIMIT`].
fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    until_open(|| TcpStream::connect_timeout(&address, CONNECT_LIMIT), |error| Some(error.kind()))
}

/// Likewise, with a spec's options.
fn dial_with(spec: &Spec, address: SocketAddr, limit: Duration) -> Result<OwnedFd, EngineError> {
    let kind = |error: &EngineError| match error {
        EngineError::Socket { source, .. } => Some(source.kind()),
        _ => None,
    };
    until_open(|| programs::dial_within(spec, address, 0, limit), kind)
}

/// Connects again for a while where the server may be reopening its port, as some do after each test: a closed port refuses, and a port
/// that closes resets what it had queued, which `connect` reports if it has not returned yet.
fn until_open<T, E>(mut connect: impl FnMut() -> Result<T, E>, kind: impl Fn(&E) -> Option<ErrorKind>) -> Result<T, E> {
    let is_reopening = |kind| matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset);
    let deadline = Instant::now() + REOPENING_LIMIT;
    loop {
        match connect() {
            Err(error) if kind(&error).is_some_and(is_reopening) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

/// The addresses of `host`, written with or without a port. An IPv6 address may have a scope, as in `[fe80::1%eth0]:5201`.
pub(crate) fn resolve(host: &str, port: u16, family: Family) -> Result<Vec<SocketAddr>, ProgramError> {
    let failed = |reason: String| ProgramError::Resolve { host: host.into(), reason };
    let own = |text: &str| text.parse().map_err(|_| failed(format!("'{text}' is not a port")));
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (name, port) = match bracketed.or_else(|| host.split_once(':').filter(|(_, rest)| !rest.contains(':'))) {
        Some((name, "")) => (name, port),
        Some((name, rest)) => (name, own(rest.strip_prefix(':').unwrap_or(rest))?),
        None => (host, port),
    };
    let found = (name, port).to_socket_addrs().map_err(|source| failed(source.to_string()))?;
    let fits = |address: &SocketAddr| match family {
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
        Family::Any => true,
    };
    let found: Vec<SocketAddr> = found.filter(fits).collect();
    match found.iter().find(|address| lacks_scope(address)) {
        Some(address) => Err(failed(scope_hint(address.ip()))),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_have_a_port_and_an_address_its_scope() {
        let of = |host: &str| resolve(host, 5201, Family::Any).map(|found| found[0].to_string());
        for (host, address) in [
            ("192.0.2.1", "192.0.2.1:5201"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("2001:db8::1", "[2001:db8::1]:5201"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
            ("fe80::1%lo", "[fe80::1%1]:5201"),
            ("[fe80::1%lo]:80", "[fe80::1%1]:80"),
        ] {
            assert_eq!(of(host).unwrap(), address, "{host}");
        }
        assert!(of("[fe80::1]:80").unwrap_err().to_string().contains("fe80::1%"));
        assert!(of("192.0.2.1:http").unwrap_err().to_string().contains("'http' is not a port"));
    }

    #[test]
    fn a_port_that_is_being_reopened_is_tried_again() {
        let opened = |answers: &[Result<u8, ErrorKind>]| {
            let mut answers = answers.iter().copied();
            until_open(|| answers.next().unwrap(), |kind| Some(*kind))
        };
        assert_eq!(opened(&[Err(ErrorKind::ConnectionRefused), Err(ErrorKind::ConnectionReset), Ok(1)]), Ok(1));
        assert_eq!(opened(&[Err(ErrorKind::HostUnreachable), Ok(1)]), Err(ErrorKind::HostUnreachable));
    }
}
