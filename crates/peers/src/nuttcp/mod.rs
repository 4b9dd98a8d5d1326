//! nuttcp, as version 6.1.2 speaks it.

mod client;
mod interim;
mod request;
mod results;
mod server;

use std::sync::atomic::AtomicBool;

use model::{Program, Spec};
use peer_wire::nuttcp::{PEER, PathMark, mark};

use crate::marks::DatagramKind;
use crate::{ProgramError, ProgramProtocol, ProgramServer, ServeOne, Service, Sides, TrialObserver};

/// The protocol.
pub(crate) struct Nuttcp;

impl ProgramProtocol for Nuttcp {
    fn program(&self) -> Program {
        Program::Nuttcp
    }

    fn port(&self) -> u16 {
        PEER.port
    }

    fn server(&self) -> &'static str {
        "nuttcp -S"
    }

    fn commands(&self) -> &'static [&'static str] {
        &["stream", "transfer"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ProgramError> {
        request::options(spec, PEER.port + 1).map(drop)
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

    fn may_serve_once(&self) -> bool {
        true
    }

    fn serve(&self, service: &Service) -> Result<(), ProgramError> {
        server::serve(service)
    }

    fn of_inetd(&self) -> Option<ServeOne> {
        Some(server::serve_one)
    }
}

/// Distinguishes marks from data at a receiver.
fn sort(datagram: &[u8]) -> DatagramKind {
    match mark(datagram) {
        None => DatagramKind::Data,
        Some(PathMark::Begin(_)) => DatagramKind::Begin,
        Some(PathMark::End(_)) => DatagramKind::End,
    }
}
