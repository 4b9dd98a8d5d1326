//! netperf 2.6 and 2.7: tests of the OMNI kind, in both roles. A control connection takes one test after another, each with a data
//! connection of its own.

mod client;
mod host_cpu;
mod request;
mod results;
mod session;
mod unnumbered;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use model::{Program, Spec};
use peer_wire::netperf::PEER;

use crate::{ProgramError, ProgramProtocol, ProgramServer, ServeOne, Service, Sides, TrialObserver};

/// Interval between checks of the control connection while data flows.
const STEP: Duration = Duration::from_millis(50);

/// The protocol.
pub(crate) struct Netperf;

impl ProgramProtocol for Netperf {
    fn program(&self) -> Program {
        Program::Netperf
    }

    fn port(&self) -> u16 {
        PEER.port
    }

    fn server(&self) -> &'static str {
        "netserver"
    }

    fn commands(&self) -> &'static [&'static str] {
        &["stream", "rr"]
    }

    fn version(&self) -> Option<&'static str> {
        // Its control messages say no version; those before 2.6 are of another length.
        Some("netserver 2.6 or 2.7")
    }

    fn check(&self, spec: &Spec) -> Result<(), ProgramError> {
        request::request(spec, 0).map(|_| ())
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
        session::serve(service)
    }

    fn of_inetd(&self) -> Option<ServeOne> {
        Some(session::serve_one)
    }
}
