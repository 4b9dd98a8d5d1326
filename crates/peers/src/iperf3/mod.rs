//! iperf3, versions 3.1 to 3.21.

mod acceptor;
mod client;
mod header;
mod keys;
mod login;
mod moments;
mod output;
mod process_cpu;
mod request;
mod results;
mod server;
mod session;
mod streams;

use std::sync::atomic::AtomicBool;

use model::{Program, Spec};
use peer_wire::iperf3::PEER;

pub use self::keys::Padding;
pub use self::login::{Login, SKEW_S, Users};

use crate::{ProgramError, ProgramProtocol, ProgramServer, Service, Sides, TrialObserver};

/// The protocol.
pub(crate) struct Iperf3;

impl ProgramProtocol for Iperf3 {
    fn program(&self) -> Program {
        Program::Iperf3
    }

    fn port(&self) -> u16 {
        PEER.port
    }

    fn server(&self) -> &'static str {
        "iperf3 -s"
    }

    fn commands(&self) -> &'static [&'static str] {
        &["stream"]
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
        client::measure(spec, server.host, server.login, observer, cancel)
    }

    fn check_login(&self) -> Result<(), ProgramError> {
        Ok(())
    }

    fn may_serve_once(&self) -> bool {
        true
    }

    fn serve(&self, service: &Service) -> Result<(), ProgramError> {
        server::serve(service)
    }
}
