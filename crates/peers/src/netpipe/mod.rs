//! NetPIPE 3.7.2's NPtcp, in both roles. Its marks and its messages share a connection: our transmitter lets the engine's loops have
//! it for the messages of a trial, our receiver reads and sends back as NPtcp itself does.

mod client;
mod options;
mod pace;
mod server;

use std::sync::atomic::AtomicBool;

use model::{Program, Spec};
use peer_wire::netpipe::PEER;

use self::options::Options;
use crate::{CurveLimits, OpenCurve, ProgramError, ProgramProtocol, ProgramServer, Service};

/// The protocol.
pub(crate) struct NetPipe;

impl ProgramProtocol for NetPipe {
    fn program(&self) -> Program {
        Program::Netpipe
    }

    fn port(&self) -> u16 {
        PEER.port
    }

    fn server(&self) -> &'static str {
        "NPtcp, which serves one curve and ends"
    }

    fn commands(&self) -> &'static [&'static str] {
        &["curve"]
    }

    fn version(&self) -> Option<&'static str> {
        // Nothing of it crosses the wire; version 5 speaks otherwise.
        Some("NetPIPE 3 (NPtcp)")
    }

    fn check(&self, spec: &Spec) -> Result<(), ProgramError> {
        client::check(spec)
    }

    fn check_curve(&self, points: &[Spec]) -> Result<(), ProgramError> {
        client::plan(points).map(|_| ())
    }

    fn open_curve(
        &self,
        points: &[Spec],
        server: &ProgramServer<'_>,
        limits: CurveLimits,
        cancel: &AtomicBool,
    ) -> Result<Box<dyn OpenCurve>, ProgramError> {
        Ok(Box::new(client::open(points, server.host, limits, cancel)?))
    }

    fn check_options(&self, options: &str) -> Result<(), ProgramError> {
        Options::parse(options).map(|_| ())
    }

    fn serve(&self, service: &Service) -> Result<(), ProgramError> {
        server::serve(service)
    }
}
