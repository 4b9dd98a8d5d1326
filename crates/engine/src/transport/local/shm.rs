//! Shared memory: two processes, one segment with a byte ring in each direction.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use model::{EndOptions, NamedTransport, SocketFacts, Spec};

use crate::core::EngineError;
use crate::transport::local::{self, LocalListener};
use crate::transport::stream::welcome;
use crate::transport::sys::ring::SharedRings;
use crate::transport::{
    Breaker, Capabilities, Channel, FlowHello, Kind, Link, ListenOptions, Listener, Rendezvous, Transport,
};

/// The transport.
pub(crate) struct SharedMemory;

/// Ring size if the passive end has no `--sndbuf`: small enough for a second-level cache.
const DEFAULT_RING: u64 = 256 << 10;
/// Polls of the ring before a thread sleeps: about 20 µs, the cost of a sleep and a wake-up.
const BLOCKING_POLLS: u32 = 2_000;
/// Polls of a spinning thread before it turns to its other flows, if any: under 1 µs.
const POLLS: u32 = 32;
/// How long a sleeping thread waits before its machine checks the stop flag.
const SLEEP_NS: u64 = 20_000_000;

impl Transport for SharedMemory {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::SHM
    }

    fn about(&self) -> &'static str {
        "a ring in memory shared by two processes of one machine"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pollable: false, ..Capabilities::STREAM }
    }

    fn listen(&self, spec: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        Ok(Box::new(ShmListener { listener: LocalListener::open(listen)?, ring: ring_bytes(&spec.far) }))
    }

    fn connect(&self, _: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        let through = local::connect(to, hello)?;
        let failed = |source: io::Error| EngineError::socket("map the segment of", "the other end", source);
        let mut size = [0; 8];
        let (_, segment) = local::recv_fd(&through, &mut size).map_err(failed)?;
        let segment = segment
            .ok_or_else(|| EngineError::Peer { peer: "the other end".into(), what: "offered no segment".into() })?;
        let capacity = usize::try_from(u64::from_be_bytes(size)).unwrap_or(0);
        Ok(Link::of(ShmChannel { rings: SharedRings::join(segment, capacity).map_err(failed)?, blocking: true }))
    }
}

fn ring_bytes(end: &EndOptions) -> usize {
    let requested = end.sndbuf.or(end.rcvbuf).unwrap_or(DEFAULT_RING).clamp(4 << 10, 256 << 20);
    usize::try_from(requested.next_power_of_two()).unwrap_or(1 << 20)
}

struct ShmListener {
    listener: LocalListener,
    ring: usize,
}

impl Listener for ShmListener {
    fn rendezvous(&self) -> Rendezvous {
        self.listener.rendezvous()
    }

    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError> {
        let (hello, stream) = self.listener.accept(deadline_ns)?;
        let failed = |source: io::Error| EngineError::socket("share memory for data connection", hello.link, source);
        let rings = SharedRings::create(self.ring).map_err(failed)?;
        welcome(&stream).map_err(failed)?;
        local::send_fd(&stream, rings.fd().as_fd(), &(self.ring as u64).to_be_bytes()).map_err(failed)?;
        Ok((hello, Link::of(ShmChannel { rings, blocking: true })))
    }
}

struct ShmChannel {
    rings: SharedRings,
    blocking: bool,
}

impl ShmChannel {
    fn polls(&self) -> u32 {
        if self.blocking { BLOCKING_POLLS } else { POLLS }
    }
}

impl Channel for ShmChannel {
    const KIND: Kind = Kind::Stream;

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pushed = self.rings.push(bytes);
        let mut polls = self.polls();
        while pushed == 0 && polls > 0 {
            std::hint::spin_loop();
            pushed = self.rings.push(bytes);
            polls -= 1;
        }
        if pushed == 0 && self.blocking {
            self.rings.wait_space(SLEEP_NS);
            pushed = self.rings.push(bytes);
        }
        if pushed == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(pushed) }
    }

    #[inline]
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut popped = self.rings.pop(into);
        let mut polls = self.polls();
        while popped == 0 && polls > 0 {
            std::hint::spin_loop();
            popped = self.rings.pop(into);
            polls -= 1;
        }
        if popped == 0 && self.blocking {
            self.rings.wait_data(SLEEP_NS);
            popped = self.rings.pop(into);
        }
        if popped > 0 || self.rings.at_end() { Ok(popped) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    fn set_nonblocking(&mut self, on: bool) -> io::Result<()> {
        self.blocking = !on;
        self.rings.spin(on);
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.rings.finish();
        Ok(())
    }

    fn facts(&self) -> SocketFacts {
        SocketFacts { local: Some("shared memory".into()), ..SocketFacts::default() }
    }

    fn breaker(&self) -> Breaker {
        Breaker::default()
    }
}
