//! Measurements with other programs, in both roles. The protocols are state machines in `peer_wire`, and the engine
//! moves the data. This crate has the sockets, the timeouts and the translation between a [`Spec`] and each
//! program's own parameters.
//!
//! A protocol is one module with a [`ProgramProtocol`] and one line in [`protocol`]; the options that its server carries out list it in
//! their rows.

mod acceptor;
mod capabilities;
mod error;
mod iperf2;
mod iperf3;
mod legs;
mod line;
mod marks;
mod netperf;
mod netpipe;
mod nttcp;
mod nuttcp;
mod plain;
mod service;
mod session_deadline;
mod stamp;
mod uncounted;

use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use model::{EndTally, Live, Program, Spec, Stop, TransportName};
use text::{Text, say};

pub use error::ProgramError;
pub use iperf3::{Login, Padding, SKEW_S, Users};
pub use service::{Log, MachineUse, Service, ServiceLimits};

/// Length of the pilot trial, ns.
const PILOT_NS: u64 = 50_000_000;

/// The protocols of all supported programs.
pub fn protocols() -> impl Iterator<Item = &'static dyn ProgramProtocol> {
    Program::ALL.into_iter().map(protocol)
}

/// The protocol of a program.
#[must_use]
pub fn protocol(program: Program) -> &'static dyn ProgramProtocol {
    match program {
        Program::Iperf3 => &iperf3::Iperf3,
        Program::Netperf => &netperf::Netperf,
        Program::Netpipe => &netpipe::NetPipe,
        Program::Nttcp => &nttcp::Nttcp,
        Program::Nuttcp => &nuttcp::Nuttcp,
        Program::Iperf2 => &iperf2::Iperf2,
        Program::Stamp => &stamp::Stamp,
    }
}

/// The protocol of another program, in both roles.
pub trait ProgramProtocol: Sync {
    /// The program.
    fn program(&self) -> Program;

    /// Its name in options and records.
    fn name(&self) -> &'static str {
        self.program().name()
    }

    /// The default port of its servers.
    fn port(&self) -> u16;

    /// The server that runs at the far host, for the help.
    fn server(&self) -> &'static str;

    /// The commands of `thru` that measure with its server.
    fn commands(&self) -> &'static [&'static str];

    /// Refuses what the protocol cannot express; everything, if only the program's clients are supported.
    ///
    /// # Errors
    /// What, and what to leave out.
    fn check(&self, spec: &Spec) -> Result<(), ProgramError> {
        let _ = spec;
        let name = self.name();
        Err(ProgramError::unsupported(
            say!("`--speak {name}` with this command"),
            say!("thru supports only its clients: `thru serve --speak {name}`"),
        ))
    }

    /// The spec of a pilot trial: it shows whether the server runs, accepts such a test, and which version it
    /// is.
    fn pilot(&self, spec: &Spec) -> Spec {
        Spec { stop: Stop::TimeNs(PILOT_NS), warmup_ns: 0, ..spec.clone() }
    }

    /// Measures once with a server.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the test or breaks it off.
    fn measure(
        &self,
        spec: &Spec,
        server: &ProgramServer<'_>,
        observer: &mut dyn TrialObserver,
        cancel: &AtomicBool,
    ) -> Result<Sides, ProgramError> {
        let _ = (server, observer, cancel);
        Err(self.check(spec).err().unwrap_or(ProgramError::Interrupted))
    }

    /// Bytes of a block over `transport` if the spec does not say, where the program's differ from this program's.
    fn default_block(&self, transport: &TransportName, ipv6: bool) -> Option<u64> {
        let _ = (transport, ipv6);
        None
    }

    /// Sets what the program allows only one value for, such as the transport.
    fn shape(&self, spec: &mut Spec) {
        let _ = spec;
    }

    /// Refuses logins where the program has none.
    ///
    /// # Errors
    /// What to leave out.
    fn check_login(&self) -> Result<(), ProgramError> {
        let name = self.name();
        Err(ProgramError::unsupported(
            say!("a login with `--speak {name}`"),
            say!("{name} has no logins; leave it out"),
        ))
    }

    /// The servers' version, if the protocol alone determines it; otherwise the pilot trial finds it.
    fn version(&self) -> Option<&'static str> {
        None
    }

    /// Whether its server can be started to end after one test, of which a pilot trial would leave nothing.
    fn may_serve_once(&self) -> bool {
        false
    }

    /// Refuses a curve that the program cannot measure; `points` are the specs of its sizes, ascending.
    ///
    /// # Errors
    /// What, and what to do instead.
    fn check_curve(&self, points: &[Spec]) -> Result<(), ProgramError> {
        let _ = points;
        let name = self.name();
        Err(ProgramError::unsupported(
            say!("a curve with `--speak {name}`"),
            "only netpipe has curves; use thru stream or thru rr",
        ))
    }

    /// Opens the session of a curve: the server is there, and has said its first words.
    ///
    /// # Errors
    /// The server cannot be reached or refuses the session.
    fn open_curve(
        &self,
        points: &[Spec],
        server: &ProgramServer<'_>,
        limits: CurveLimits,
        cancel: &AtomicBool,
    ) -> Result<Box<dyn OpenCurve>, ProgramError> {
        let _ = (server, limits, cancel);
        Err(self.check_curve(points).err().unwrap_or(ProgramError::Interrupted))
    }

    /// Refuses options of the program that its server here does not have, see [`Service::options`].
    ///
    /// # Errors
    /// Which.
    fn check_options(&self, options: &str) -> Result<(), ProgramError> {
        if options.is_empty() {
            return Ok(());
        }
        let name = self.name();
        Err(ProgramError::unsupported(
            say!("`--speak {name}:{options}`"),
            say!("{name}'s server needs no options; leave them out"),
        ))
    }

    /// Serves the program's clients until the service stops.
    ///
    /// # Errors
    /// Where it cannot listen.
    fn serve(&self, service: &Service) -> Result<(), ProgramError>;

    /// What serves the client of one connection that inetd has accepted; `None` if the program's server needs its own port.
    fn of_inetd(&self) -> Option<ServeOne> {
        None
    }
}

/// Serves the client of one connection that inetd has accepted. Ignores the service's addresses.
pub type ServeOne = fn(&Service, TcpStream) -> Result<(), ProgramError>;

/// Serves the client of one connection that inetd has accepted, as the server of a program.
///
/// # Errors
/// Where it fails, or the program's server needs its own port.
pub fn serve_one(program: &dyn ProgramProtocol, service: &Service, socket: TcpStream) -> Result<(), ProgramError> {
    match program.of_inetd() {
        Some(serve) => serve(service, socket),
        None => Err(ProgramError::unsupported(
            say!("`--inetd` with `--speak {}`", program.name()),
            say!("its server needs its own port; leave `--inetd` out (it works with {})", started_by_inetd()),
        )),
    }
}

/// The programs whose servers inetd can start, for a message: `netperf, nttcp or nuttcp`.
#[must_use]
pub fn started_by_inetd() -> String {
    let programs = protocols().filter(|program| program.of_inetd().is_some());
    model::alternatives(&programs.map(ProgramProtocol::name).collect::<Vec<_>>())
}

/// A server of another program.
#[derive(Debug, Clone, Copy)]
pub struct ProgramServer<'a> {
    /// Its name or address, with or without a port.
    pub host: &'a str,
    /// The login, for programs with users.
    pub login: Option<&'a Login>,
}

/// Observer of a trial's progress.
pub trait TrialObserver {
    /// All connections are open: data flows from now on.
    fn starting(&mut self, setup_ns: u64);

    /// A report of this end while data flows.
    fn live(&mut self, report: Live);

    /// No data flows any more.
    fn stopped(&mut self);
}

/// What both ends of a trial counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Sides {
    /// As this end counted.
    pub near: EndTally,
    /// As the other program reported; unreported counts are absent.
    pub far: EndTally,
    /// Why the trial ended early, if it did.
    pub failure: Option<Text>,
    /// From the start to the end at this end, ns.
    pub elapsed_ns: u64,
    /// The other program's version as far as known, such as `iperf3 3.2 to 3.13`.
    pub version: String,
}

/// The time limits of a curve.
#[derive(Debug, Clone, Copy)]
pub struct CurveLimits {
    /// For a connection to an address of the server.
    pub connect: Duration,
    /// For the server's first words.
    pub answer: Duration,
    /// From then on; `None` for as long as all points take. At its end the points that are measured are the curve.
    pub whole: Option<Duration>,
}

impl Default for CurveLimits {
    fn default() -> Self {
        Self { connect: line::CONNECT_LIMIT, answer: Duration::from_secs(10), whole: None }
    }
}

/// A curve's session whose server waits for the first point.
pub trait OpenCurve: Send {
    /// Measures all points in this session.
    ///
    /// # Errors
    /// The session ended before its first point.
    fn measure(self: Box<Self>, observer: &mut dyn TrialObserver, cancel: &AtomicBool) -> Result<Curve, ProgramError>;
}

/// The result of a curve's session.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Of each point that was reached, in their order: its trials as the near and the far end counted them.
    pub points: Vec<Vec<[EndTally; 2]>>,
    /// Why it ended early, if it did.
    pub failure: Option<Text>,
    /// From the start to the end at this end, ns.
    pub elapsed_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;

    /// A spec of a pattern that each program with a command for it can measure.
    fn spec(protocol: &dyn ProgramProtocol, pattern: Pattern) -> Spec {
        let plain = Spec { block: 1_000, stall_ns: 10_000_000_000, ..Spec::new("tcp", pattern) };
        let mut spec = match pattern {
            Pattern::Transfer => Spec { stop: Stop::Blocks(10), ..plain },
            Pattern::Rr => Spec { block: 1, ..plain },
            _ => plain,
        };
        protocol.shape(&mut spec);
        spec
    }

    #[test]
    fn a_protocol_measures_with_its_commands_only() {
        for protocol in protocols() {
            assert!(!protocol.commands().is_empty() && !protocol.server().is_empty(), "{}", protocol.name());
            for pattern in [Pattern::Stream, Pattern::Rr, Pattern::Transfer] {
                let checked = protocol.check(&spec(protocol, pattern));
                let name = protocol.name();
                let expected = protocol.commands().contains(&pattern.name());
                assert_eq!(checked.is_ok(), expected, "{name} {pattern}: {checked:?}");
            }
            let sizes = model::NetpipeSizes { last: 64, ..model::NetpipeSizes::DEFAULT }.list();
            let point = |block| Spec { block, stop: Stop::AboutNs(1_000_000), ..Spec::new("tcp", Pattern::Pingpong) };
            let points: Vec<Spec> = sizes.into_iter().map(point).collect();
            let checked = protocol.check_curve(&points);
            let name = protocol.name();
            assert_eq!(checked.is_ok(), protocol.commands().contains(&"curve"), "{name} curve: {checked:?}");
        }
    }
}
