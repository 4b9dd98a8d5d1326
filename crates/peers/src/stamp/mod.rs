//! STAMP (RFC 8762) and TWAMP Light, unauthenticated, in both roles. There is no control connection: the
//! protocol consists of a request and its reflection.

mod client;
mod reflector;
mod request;
mod senders;
mod trips;
mod wall;

use std::sync::atomic::AtomicBool;

use model::{Program, Spec};
use peer_wire::stamp::{BASE_BYTES, PEER};

use crate::{ProgramError, ProgramProtocol, ProgramServer, Service, Sides, TrialObserver};

/// The protocol.
pub(crate) struct Stamp;

impl ProgramProtocol for Stamp {
    fn program(&self) -> Program {
        Program::Stamp
    }

    fn port(&self) -> u16 {
        PEER.port
    }

    fn server(&self) -> &'static str {
        "a STAMP or TWAMP Light reflector, over UDP"
    }

    fn commands(&self) -> &'static [&'static str] {
        &["rr"]
    }

    fn shape(&self, spec: &mut Spec) {
        spec.transport = "udp".into();
        // The default request is one byte; other sizes that are too small are refused.
        if spec.block == 1 {
            spec.block = BASE_BYTES as u64;
        }
    }

    fn check(&self, spec: &Spec) -> Result<(), ProgramError> {
        request::check(spec)
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

    fn check_options(&self, options: &str) -> Result<(), ProgramError> {
        request::mode(options).map(|_| ())
    }

    fn serve(&self, service: &Service) -> Result<(), ProgramError> {
        reflector::serve(service)
    }
}
