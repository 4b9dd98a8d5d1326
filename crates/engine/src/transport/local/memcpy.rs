//! Copies within one process: an upper bound for every path through memory.

use std::io;
use std::os::fd::BorrowedFd;

use model::{NamedTransport, SocketFacts, Spec};

use crate::core::EngineError;
use crate::transport::{
    Breaker, Capabilities, Channel, FlowHello, Kind, Link, ListenOptions, Listener, Rendezvous, Transport,
};

/// The transport. A send copies the block into a second buffer, a receive copies it back; a round trip is two copies.
pub(crate) struct Memcpy;

impl Transport for Memcpy {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::MEMCPY
    }

    fn about(&self) -> &'static str {
        "copies in memory within one process: an upper bound for curves"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pollable: false, single_ended: true, ..Capabilities::STREAM }
    }

    fn listen(&self, _: &Spec, _: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        Err(EngineError::unsupported("a passive end for memcpy", "it has only one end; this is a defect"))
    }

    fn connect(&self, spec: &Spec, _: &Rendezvous, _: &FlowHello) -> Result<Link, EngineError> {
        let size = usize::try_from(spec.block.max(spec.reply_bytes())).unwrap_or(usize::MAX);
        Ok(Link::of(CopyChannel { there: vec![0; size] }))
    }
}

struct CopyChannel {
    there: Vec<u8>,
}

impl Channel for CopyChannel {
    const KIND: Kind = Kind::Alone;

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.there.len() < bytes.len() {
            self.there.resize(bytes.len(), 0);
        }
        self.there[..bytes.len()].copy_from_slice(bytes);
        // The copy is the work: the compiler must not see that its result is unused.
        std::hint::black_box(&mut self.there);
        Ok(bytes.len())
    }

    #[inline]
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.there.len() < into.len() {
            self.there.resize(into.len(), 0);
        }
        into.copy_from_slice(&self.there[..into.len()]);
        std::hint::black_box(into.as_mut_ptr());
        Ok(into.len())
    }

    fn set_nonblocking(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn facts(&self) -> SocketFacts {
        SocketFacts::default()
    }

    fn breaker(&self) -> Breaker {
        Breaker::default()
    }
}
