//! nttcp 1.47, from a description of its protocol; not tested against the original program.

mod checked;
mod client;
mod request;
mod results;
mod server;

use std::sync::atomic::AtomicBool;

use model::{Program, Spec, Stop};
use peer_wire::nttcp::{Datagrams, PEER, Seen};

use crate::marks::DatagramKind;
use crate::{ProgramError, ProgramProtocol, ProgramServer, ServeOne, Service, Sides, TrialObserver};

/// The protocol.
pub(crate) struct Nttcp;

/// Buffers of the pilot trial: nttcp has no time limit.
const PILOT_BUFFERS: u64 = 4;
/// A mark, whose content is nothing.
const MARK: [u8; 4] = [0; 4];
/// System calls that a sender and a receiver make for the marks, as nttcp counts them.
const MARK_CALLS: [u64; 2] = [3, 1];

impl ProgramProtocol for Nttcp {
    fn program(&self) -> Program {
        Program::Nttcp
    }

    fn port(&self) -> u16 {
        PEER.port
    }

    fn server(&self) -> &'static str {
        "nttcp -i"
    }

    fn commands(&self) -> &'static [&'static str] {
        &["transfer"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ProgramError> {
        request::options(spec).map(drop)
    }

    fn pilot(&self, spec: &Spec) -> Spec {
        Spec { stop: Stop::Blocks(PILOT_BUFFERS), warmup_ns: 0, ..spec.clone() }
    }

    fn measure(
        &self,
        spec: &Spec,
        server: &ProgramServer<'_>,
        observer: &mut dyn TrialObserver,
        cancel: &AtomicBool,
    ) -> Result<Sides, ProgramError> {
        client::measure(spec, server.host, observer, cancel)
    }

    fn serve(&self, service: &Service) -> Result<(), ProgramError> {
        server::serve(service)
    }

    fn of_inetd(&self) -> Option<ServeOne> {
        Some(server::serve_one)
    }
}

/// Distinguishes marks from data at a receiver.
fn sort() -> impl FnMut(&[u8]) -> DatagramKind + Send + 'static {
    let mut seen = Datagrams::default();
    move |datagram| match seen.take(datagram.len()) {
        Seen::Start => DatagramKind::Begin,
        Seen::Data => DatagramKind::Data,
        Seen::End => DatagramKind::End,
    }
}
