//! iperf 2, its basics as version 2.1.8 speaks them.

mod client;
mod datagrams;
mod request;
mod results;
mod server;

use std::sync::atomic::AtomicBool;

use model::{Program, Spec, TransportName};
use peer_wire::iperf2::PEER;

use crate::{ProgramError, ProgramProtocol, ProgramServer, Service, Sides, TrialObserver};

/// The protocol.
pub(crate) struct Iperf2;

impl ProgramProtocol for Iperf2 {
    fn program(&self) -> Program {
        Program::Iperf2
    }

    fn port(&self) -> u16 {
        PEER.port
    }

    fn server(&self) -> &'static str {
        "iperf -s"
    }

    fn commands(&self) -> &'static [&'static str] {
        &["stream", "transfer"]
    }

    fn default_block(&self, transport: &TransportName, ipv6: bool) -> Option<u64> {
        // A server reads no more of a datagram than this without -l.
        (*transport == TransportName::Udp).then_some(if ipv6 { 1_450 } else { 1_470 })
    }

    fn check(&self, spec: &Spec) -> Result<(), ProgramError> {
        request::header(spec, PEER.port).map(drop)
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
}
