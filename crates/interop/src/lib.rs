//! Measurements with other programs, in both roles. What they say is in `speak`, as state machines; what moves the data are the
//! engine's loops; here are the sockets, the waiting, and the translation between a [`Spec`] and what the other program calls it.
//!
//! A protocol is one module with a [`PeerProtocol`] and one line in [`PROTOCOLS`].

mod acceptor;
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
mod unsupported;

use std::net::TcpStream;
use std::sync::atomic::AtomicBool;

use model::{EndTally, Interval, Spec, Stop};

pub use error::InteropError;
pub use iperf3::{Login, Padding, SKEW_S, Users};
pub use service::{Admission, Limits, Service};

/// Length of a moment's trial, ns.
const PILOT_NS: u64 = 50_000_000;

/// Every program that can be spoken to.
pub static PROTOCOLS: &[&dyn PeerProtocol] = &[
    &iperf3::Iperf3,
    &netperf::Netperf,
    &netpipe::NetPipe,
    &nttcp::Nttcp,
    &nuttcp::Nuttcp,
    &iperf2::Iperf2,
    &stamp::Stamp,
];

/// The program called `name`.
///
/// # Errors
/// Where there is none of that name; the message lists those there are.
pub fn protocol(name: &str) -> Result<&'static dyn PeerProtocol, InteropError> {
    PROTOCOLS.iter().copied().find(|protocol| protocol.name() == name).ok_or_else(|| InteropError::Unknown {
        name: name.into(),
        known: PROTOCOLS.iter().map(|protocol| protocol.name()).collect::<Vec<_>>().join(", "),
    })
}

/// What speaks one program's protocol.
pub trait PeerProtocol: Sync {
    /// The program's name in options and records.
    fn name(&self) -> &'static str;

    /// The port that its servers listen on where nothing else is said.
    fn port(&self) -> u16;

    /// Refuses what its protocol has no words for; of programs whose clients alone are served, everything.
    ///
    /// # Errors
    /// What, and what to leave out.
    fn check(&self, spec: &Spec) -> Result<(), InteropError> {
        let _ = spec;
        let name = self.name();
        Err(InteropError::unsupported(
            format!("--speak {name} here"),
            format!("its clients are served (thru serve --speak {name}), its servers are not measured with"),
        ))
    }

    /// A moment's trial of the same kind: finds out whether the server is there, takes such a test, and which version it is.
    fn pilot(&self, spec: &Spec) -> Spec {
        Spec { stop: Stop::TimeNs(PILOT_NS), warmup_ns: 0, ..spec.clone() }
    }

    /// Measures once with a server.
    ///
    /// # Errors
    /// Why there is no result.
    fn measure(
        &self,
        spec: &Spec,
        server: &Server<'_>,
        observer: &mut dyn TrialObserver,
        cancel: &AtomicBool,
    ) -> Result<Sides, InteropError> {
        let _ = (server, observer, cancel);
        Err(self.check(spec).err().unwrap_or(InteropError::Interrupted))
    }

    /// Makes of a spec what the program's nature leaves no choice in, such as its transport.
    fn shape(&self, spec: &mut Spec) {
        let _ = spec;
    }

    /// Refuses logins where the program has none.
    ///
    /// # Errors
    /// What to leave out.
    fn check_login(&self) -> Result<(), InteropError> {
        let name = self.name();
        Err(InteropError::unsupported(
            format!("a login with --speak {name}"),
            format!("{name} knows no users: leave it out"),
        ))
    }

    /// What is known of its servers' version before anything was said; nothing where a moment's trial is to find it out.
    fn version(&self) -> Option<&'static str> {
        None
    }

    /// Refuses what cannot be a curve with this program: the specs of its points, ascending.
    ///
    /// # Errors
    /// What, and what to do instead.
    fn check_curve(&self, points: &[Spec]) -> Result<(), InteropError> {
        let _ = points;
        let name = self.name();
        Err(InteropError::unsupported(
            format!("a curve with --speak {name}"),
            "it is for netpipe: use thru stream or thru rr",
        ))
    }

    /// Measures all points of a curve in one conversation.
    ///
    /// # Errors
    /// Why there is no result at all.
    fn curve(
        &self,
        points: &[Spec],
        server: &Server<'_>,
        observer: &mut dyn TrialObserver,
        cancel: &AtomicBool,
    ) -> Result<Curve, InteropError> {
        let _ = (server, observer, cancel);
        Err(self.check_curve(points).err().unwrap_or(InteropError::Interrupted))
    }

    /// Refuses options of the program that its server here does not have, see [`Service::options`].
    ///
    /// # Errors
    /// Which.
    fn check_options(&self, options: &str) -> Result<(), InteropError> {
        if options.is_empty() {
            return Ok(());
        }
        let name = self.name();
        Err(InteropError::unsupported(
            format!("--speak {name}:{options}"),
            format!("{name} tells its server all it needs: leave the options out"),
        ))
    }

    /// Serves the program's clients until the service is told to stop.
    ///
    /// # Errors
    /// Where it cannot listen.
    fn serve(&self, service: &Service) -> Result<(), InteropError>;

    /// Serves the one client of this connection, which inetd has accepted. The service's addresses are not looked at.
    ///
    /// # Errors
    /// Where it fails, and of programs whose servers need a port of their own.
    fn serve_one(&self, service: &Service, socket: TcpStream) -> Result<(), InteropError> {
        let _ = (service, socket);
        let name = self.name();
        Err(InteropError::unsupported(
            format!("--inetd with --speak {name}"),
            "its server needs a port of its own: leave --inetd out (netperf, nttcp and nuttcp can be started by inetd)",
        ))
    }
}

/// A server of another program.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a> {
    /// Its name or address, with or without a port.
    pub host: &'a str,
    /// Whom to log in as, where the program knows users.
    pub login: Option<&'a Login>,
}

/// Whoever is told how a trial goes.
pub trait TrialObserver {
    /// All connections are up: data flows from now on.
    fn starting(&mut self, setup_ns: u64);

    /// An entry of this end's series.
    fn interval(&mut self, interval: Interval);

    /// No data flows any more.
    fn stopped(&mut self);
}

/// What both sides of a trial counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Sides {
    /// As this end counted.
    pub near: EndTally,
    /// As the other program told; what it does not tell is absent.
    pub far: EndTally,
    /// Why the trial ended early, if it did.
    pub failure: Option<String>,
    /// From the start to the end at this end, ns.
    pub elapsed_ns: u64,
    /// What is known of the other program's version, such as `iperf3 3.2 to 3.13`.
    pub version: String,
}

/// What a curve's conversation brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Of each point that was reached, in their order: its trials as the near and the far end counted them.
    pub points: Vec<Vec<[EndTally; 2]>>,
    /// Why it ended early, if it did.
    pub failure: Option<String>,
    /// From the start to the end at this end, ns.
    pub elapsed_ns: u64,
}
