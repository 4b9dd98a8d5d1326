//! QUIC version 1 (RFC 9000) over UDP: a connection per flow, with one bidirectional stream. quinn-proto's state
//! machine runs on the measuring thread whenever that calls the channel; there is no other thread and no async
//! runtime.

mod channel;
mod session;
mod settings;

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use model::{NamedTransport, Spec};
use quinn_proto::ServerConfig;
use socket2::{Domain, Socket, Type};

use crate::core::{EngineError, now_ns};
use crate::transport::certificate::Identity;
use crate::transport::stream::HELLO_LIMIT;
use crate::transport::{
    Capabilities, Cookie, FlowHello, Greeting, Greetings, Link, ListenOptions, Listener, Rendezvous, Transport,
    hello_exchange, options, udp,
};
use channel::QuicChannel;
use session::{First, Session};

/// The transport.
pub(crate) struct Quic;

/// How long the passive end waits for its welcome to be acknowledged before it turns to the next connection.
const WELCOME_LIMIT: Duration = Duration::from_secs(1);

impl Transport for Quic {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::QUIC
    }

    fn about(&self) -> &'static str {
        "QUIC over UDP: a connection with one stream for each flow, encrypted by this process"
    }

    /// A port of its own at the passive end.
    fn capabilities(&self) -> Capabilities {
        Capabilities::STREAM
    }

    fn listen(&self, spec: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        let wanted = listen.wanted(spec);
        let failed = |source: io::Error| EngineError::socket("listen on", wanted, source);
        settings::congestion(&spec.far)?;
        let identity = Identity::new()?;
        let socket = Socket::new(Domain::for_address(wanted), Type::DGRAM, None).map_err(failed)?;
        // Each connection gets a socket of its own on the same port.
        socket.set_reuse_port(true).map_err(failed)?;
        options::before_handshake(socket.as_fd(), &spec.far, false)?;
        socket.bind(&wanted.into()).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().ok().and_then(|address| address.as_socket()).unwrap_or(wanted);
        Ok(Box::new(QuicListener {
            socket: socket.into(),
            address,
            fingerprint: identity.fingerprint(),
            config: settings::server(&identity, listen.patience)?,
            cookie: listen.cookie,
            patience: listen.patience,
            spec: Arc::new(spec.clone()),
            met: HashSet::new(),
            greetings: Greetings::new(),
        }))
    }

    fn connect(&self, spec: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        let target = to
            .address
            .ok_or_else(|| EngineError::unsupported("a quic rendezvous without an address", "this is a defect"))?;
        let failed = |source: io::Error| EngineError::socket("open a QUIC connection to", target, source);
        let socket = Socket::new(Domain::for_address(target), Type::DGRAM, None).map_err(failed)?;
        options::before_handshake(socket.as_fd(), &spec.near, false)?;
        udp::roomy(&socket, spec.near.rcvbuf.is_some());
        options::bind_near(&socket, &spec.near, target, Some(hello.link))?;
        socket.connect(&target.into()).map_err(failed)?;
        options::connected(socket.as_fd(), &spec.near, spec, false)?;
        let session = Session::connect(socket.into(), target, &to.blob, &spec.near)?;
        let mut channel =
            QuicChannel::open(session, hello_deadline(to.patience)).map_err(|source| match source.kind() {
                io::ErrorKind::TimedOut => EngineError::Peer {
                    peer: target.to_string(),
                    what: "did not answer on UDP: a firewall between the hosts may pass TCP only".into(),
                },
                _ => failed(source),
            })?;
        hello_exchange::exchange_hello(&mut channel, hello, &target.to_string(), to.patience)?;
        channel.session.acknowledge(WELCOME_LIMIT + to.patience).map_err(failed)?;
        Ok(Link::of(channel))
    }
}

fn hello_deadline(patience: Duration) -> u64 {
    now_ns() + (HELLO_LIMIT + patience).as_nanos() as u64
}

struct QuicListener {
    /// Does not block.
    socket: UdpSocket,
    address: SocketAddr,
    fingerprint: Vec<u8>,
    config: ServerConfig,
    cookie: Cookie,
    patience: Duration,
    spec: Arc<Spec>,
    /// Addresses that have their own socket by now; what they sent to this one before was also sent to theirs.
    met: HashSet<SocketAddr>,
    greetings: Greetings,
}

impl Listener for QuicListener {
    fn rendezvous(&self) -> Rendezvous {
        Rendezvous {
            address: Some(self.address),
            path: None,
            cookie: self.cookie,
            blob: self.fingerprint.clone(),
            ..Rendezvous::default()
        }
    }

    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError> {
        let Self { socket, address, config, cookie, patience, spec, met, greetings, .. } = self;
        let (address, patience) = (*address, *patience);
        let failed = move |source: io::Error| EngineError::socket("accept on", address, source);
        let mut first = vec![0; 1 << 16];
        let accept = || {
            let (count, from) = socket.recv_from(&mut first)?;
            let asked = if met.contains(&from) { First::Other } else { Session::first(from, &first[..count], config) };
            match asked {
                First::Retry(answer) => {
                    // If it is lost, the peer begins again.
                    let _ = socket.send_to(&answer, from);
                    Err(io::ErrorKind::Interrupted.into())
                }
                First::Proved => {
                    met.insert(from);
                    let (first, config, spec, cookie) =
                        (first[..count].to_vec(), config.clone(), spec.clone(), *cookie);
                    let greeting: Greeting = Box::new(move || {
                        let Some(session) = answer(address, from, &first, config, &spec)? else { return Ok(None) };
                        // An unauthenticated or broken connection is dropped; the right one is still to come.
                        let greeted = greet(session, &cookie, patience).ok().flatten();
                        Ok(greeted.map(|(hello, channel)| (hello, Link::of(channel))))
                    });
                    Ok(greeting)
                }
                First::Other => Err(io::ErrorKind::Interrupted.into()),
            }
        };
        greetings.next(&*socket, deadline_ns, accept, failed)
    }
}

/// Opens a socket for the peer and answers its first datagram; `None` if that opens no connection.
fn answer(
    address: SocketAddr,
    from: SocketAddr,
    first: &[u8],
    config: ServerConfig,
    spec: &Spec,
) -> Result<Option<Session>, EngineError> {
    let failed = |source: io::Error| EngineError::socket("answer", from, source);
    let socket = udp::connected_twin(address, from, Some(spec)).map_err(failed)?;
    udp::roomy(&socket, spec.far.rcvbuf.is_some());
    options::connected(socket.as_fd(), &spec.far, spec, false)?;
    Session::accept(socket.into(), from, first, config, &spec.far)
}

fn greet(session: Session, cookie: &Cookie, patience: Duration) -> io::Result<Option<(FlowHello, QuicChannel)>> {
    let mut channel = QuicChannel::accept(session, hello_deadline(patience))?;
    let Some(hello) = hello_exchange::read_hello(&mut channel, cookie, patience)? else { return Ok(None) };
    hello_exchange::welcome(&mut channel)?;
    channel.session.see_off(WELCOME_LIMIT + patience)?;
    Ok(Some((hello, channel)))
}
