//! A transport of this program: a TCP connection of the standard library, on a listener of its own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use engine::transport::{
    Breaker, Capabilities, Channel, Cookie, FlowHello, Kind, Link, ListenOptions, Listener, Rendezvous, Transport,
    WatchedSocket, exchange_hello, read_hello, welcome,
};
use engine::{EngineError, now_ns};
use model::{Framing, IpProtocol, NamedTransport, SocketFacts, Spec, TransportFacts};

/// The transport.
pub(crate) struct Sluice;

const SLUICE: NamedTransport = NamedTransport {
    name: "sluice",
    facts: TransportFacts { ip: Some(IpProtocol::Tcp), framing: Some(Framing::Tcp), ..TransportFacts::OTHER },
};

/// Longest wait of a blocking send.
const SEND_LIMIT: Duration = Duration::from_millis(100);
/// Longest wait for a hello.
const HELLO_LIMIT: Duration = Duration::from_secs(5);

impl Transport for Sluice {
    fn named(&self) -> &'static NamedTransport {
        &SLUICE
    }

    fn about(&self) -> &'static str {
        "TCP through the standard library"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::STREAM
    }

    fn listen(&self, _: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        let failed = |source: io::Error| EngineError::socket("listen on", listen.address, source);
        let listener = TcpListener::bind((listen.address, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let rendezvous = Rendezvous { address: Some(address), cookie: listen.cookie, ..Rendezvous::default() };
        Ok(Box::new(SluiceListener { listener, rendezvous }))
    }

    fn connect(&self, _: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        let Some(address) = to.address else {
            return Err(EngineError::unsupported("a rendezvous without an address", "this is a defect"));
        };
        let failed = |source: io::Error| EngineError::socket("connect to", address, source);
        let mut channel = SluiceChannel::new(TcpStream::connect(address).map_err(failed)?).map_err(failed)?;
        exchange_hello(&mut channel, hello, &address.to_string(), to.patience)?;
        channel.stream.set_read_timeout(None).map_err(failed)?;
        Ok(Link::of(channel))
    }
}

struct SluiceListener {
    listener: TcpListener,
    rendezvous: Rendezvous,
}

impl Listener for SluiceListener {
    fn rendezvous(&self) -> Rendezvous {
        self.rendezvous.clone()
    }

    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError> {
        let failed = |source: io::Error| EngineError::socket("accept", "a data connection", source);
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if let Ok(Some(accepted)) = greet(stream, &self.rendezvous.cookie) {
                        return Ok(accepted);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && now_ns() < deadline_ns => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

/// The link of a connection that shows the cookie.
fn greet(stream: TcpStream, cookie: &Cookie) -> io::Result<Option<(FlowHello, Link)>> {
    stream.set_nonblocking(false)?;
    let mut channel = SluiceChannel::new(stream)?;
    let Some(hello) = read_hello(&mut channel, cookie, Duration::ZERO)? else { return Ok(None) };
    welcome(&mut channel)?;
    channel.stream.set_read_timeout(None)?;
    Ok(Some((hello, Link::of(channel))))
}

struct SluiceChannel {
    stream: WatchedSocket<TcpStream>,
}

impl SluiceChannel {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(HELLO_LIMIT))?;
        Ok(Self { stream: WatchedSocket::new(stream) })
    }
}

impl Channel for SluiceChannel {
    const KIND: Kind = Kind::Stream;
    const SHOWS_ALL: bool = true;

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.stream).write(bytes)
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&*self.stream).read(into)
    }

    fn set_nonblocking(&mut self, on: bool) -> io::Result<()> {
        self.stream.set_nonblocking(on)
    }

    fn limit_sends(&mut self) -> io::Result<()> {
        self.stream.set_write_timeout(Some(SEND_LIMIT))
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_fd())
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    fn facts(&self) -> SocketFacts {
        let text = |address: io::Result<std::net::SocketAddr>| address.ok().map(|address| address.to_string());
        SocketFacts {
            local: text(self.stream.local_addr()),
            peer: text(self.stream.peer_addr()),
            ..SocketFacts::default()
        }
    }

    fn breaker(&self) -> Breaker {
        Breaker::of(&self.stream)
    }
}
