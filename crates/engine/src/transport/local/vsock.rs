//! Stream sockets between a virtual machine and its host (AF_VSOCK), or within one machine if the kernel has the
//! loopback transport. The passive end announces its context id, so the user need not give one.

use std::fs::File;
use std::io;
use std::time::Duration;

use model::{Io, NamedTransport, Spec};
use socket2::{Domain, SockAddr, Socket, Type};
use text::say;

use crate::core::EngineError;
use crate::transport::stream::{StreamChannel, exchange_hello, read_hello, welcome};
use crate::transport::sys::sockopt;
use crate::transport::{
    Capabilities, Cookie, FlowHello, Greeting, Greetings, Link, ListenOptions, Listener, Rendezvous, Transport,
};

/// The transport.
pub(crate) struct Vsock;

/// Context ids and ports with a meaning (linux/vm_sockets.h).
const CID_ANY: u32 = u32::MAX;
const CID_LOCAL: u32 = 1;
const PORT_ANY: u32 = u32::MAX;

const BACKLOG: i32 = 4096;
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

impl Transport for Vsock {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::VSOCK
    }

    fn about(&self) -> &'static str {
        "vsock between a virtual machine and its host, or within one machine that has the loopback transport"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::STREAM
    }

    fn check_host(&self) -> Result<(), EngineError> {
        Socket::new(Domain::VSOCK, Type::STREAM, None).map(|_| ()).map_err(|error| {
            EngineError::unsupported(
                say!("vsock on this host ({error})"),
                say!("its kernel needs a vsock transport: `modprobe vhost_vsock` on a host of virtual machines, a vsock device \
                 in a guest, `modprobe vsock_loopback` within one machine"),
            )
        })
    }

    fn meets_in_sight(&self) -> bool {
        false
    }

    fn listen(&self, spec: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        let failed = |source: io::Error| EngineError::socket("listen on", "vsock", source);
        let socket = Socket::new(Domain::VSOCK, Type::STREAM, None).map_err(failed)?;
        let port = spec.far.port.map_or(PORT_ANY, u32::from);
        socket.bind(&SockAddr::vsock(CID_ANY, port)).map_err(failed)?;
        socket.listen(BACKLOG).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let bound = socket.local_addr().ok().and_then(|address| address.as_vsock_address());
        let (_, port) = bound.ok_or_else(|| failed(io::ErrorKind::AddrNotAvailable.into()))?;
        Ok(Box::new(VsockListener {
            socket,
            address: Address { cid: own_cid(), port },
            cookie: listen.cookie,
            io: spec.io,
            greetings: Greetings::new(),
        }))
    }

    fn connect(&self, spec: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        let target = Address::decode(&to.blob)
            .ok_or_else(|| EngineError::unsupported("a vsock rendezvous without an address", "this is a defect"))?;
        let failed = |source: io::Error| EngineError::socket("connect to", target.to_string(), source);
        let socket = Socket::new(Domain::VSOCK, Type::STREAM, None).map_err(failed)?;
        let target = target.seen_from(own_cid());
        if target.cid == CID_LOCAL {
            // Without the loopback transport the kernel would pass the connection to the hypervisor instead. A bind
            // shows it and sends nothing.
            socket.bind(&SockAddr::vsock(CID_LOCAL, PORT_ANY)).map_err(|_| no_loopback())?;
        }
        socket.connect_timeout(&SockAddr::vsock(target.cid, target.port), CONNECT_LIMIT).map_err(failed)?;
        exchange_hello(&socket, hello, &target.to_string(), Duration::ZERO)?;
        Ok(Link::of(StreamChannel::new(socket.into(), spec.io)))
    }
}

/// This machine's context id: that of a guest, 2 for a host of guests, [`CID_LOCAL`] if there is neither.
fn own_cid() -> u32 {
    let requested = File::open("/dev/vsock").and_then(|device| sockopt::local_cid(&device));
    requested.ok().filter(|cid| *cid != CID_ANY).unwrap_or(CID_LOCAL)
}

fn no_loopback() -> EngineError {
    EngineError::unsupported(
        "vsock within one machine",
        say!(
            "this kernel has no vsock loopback (`modprobe vsock_loopback`, Linux 5.6 or newer): measure between a virtual \
         machine and its host, or use `--transport unix`"
        ),
    )
}

/// A context id and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Address {
    cid: u32,
    port: u32,
}

impl Address {
    /// The loopback address where `self` is on the machine with context id `own`.
    fn seen_from(self, own: u32) -> Self {
        Self { cid: if self.cid == own { CID_LOCAL } else { self.cid }, ..self }
    }

    /// Its 8 bytes in a rendezvous; numbers are big-endian.
    fn encode(self) -> Vec<u8> {
        [self.cid.to_be_bytes(), self.port.to_be_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; 8] = bytes.try_into().ok()?;
        let number = u64::from_be_bytes(bytes);
        Some(Self { cid: (number >> 32) as u32, port: number as u32 })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "vsock:{}:{}", self.cid, self.port)
    }
}

struct VsockListener {
    /// Does not block.
    socket: Socket,
    address: Address,
    cookie: Cookie,
    io: Io,
    greetings: Greetings,
}

impl Listener for VsockListener {
    fn rendezvous(&self) -> Rendezvous {
        Rendezvous { cookie: self.cookie, blob: self.address.encode(), ..Rendezvous::default() }
    }

    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError> {
        let address = self.address;
        let failed = move |source: io::Error| EngineError::socket("accept on", address.to_string(), source);
        let accept = || {
            let (socket, _) = self.socket.accept()?;
            let (cookie, io) = (self.cookie, self.io);
            let greeting: Greeting = Box::new(move || {
                // An unauthenticated or broken connection is dropped; the right one is still to come.
                let hello = socket.set_nonblocking(false).and_then(|()| read_hello(&socket, &cookie, Duration::ZERO));
                let Ok(Some(hello)) = hello else { return Ok(None) };
                welcome(&socket).map_err(failed)?;
                Ok(Some((hello, Link::of(StreamChannel::new(socket.into(), io)))))
            });
            Ok(greeting)
        };
        self.greetings.next(&self.socket, deadline_ns, accept, failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_the_rendezvous() {
        let address = Address { cid: 3, port: 0x8000_0001 };
        assert_eq!(Address::decode(&address.encode()), Some(address));
        assert_eq!(Address::decode(&[0; 7]), None);
        assert_eq!(address.to_string(), "vsock:3:2147483649");
    }

    #[test]
    fn a_machine_reaches_itself_by_the_loopback_address_only() {
        let address = Address { cid: 3, port: 9 };
        assert_eq!(address.seen_from(3), Address { cid: CID_LOCAL, port: 9 });
        assert_eq!(address.seen_from(2), address);
    }
}
