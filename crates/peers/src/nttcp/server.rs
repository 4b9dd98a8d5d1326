//! One client at our remote side.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::transport::at_port;
use model::{Role, Spec};
use peer_wire::nttcp::{FIRST_DATA_PORT, Options, PEER, Remote, RemoteAction, Statistics};
use peer_wire::{Turn, WireError};
use socket2::SockRef;
use text::{Text, say};

use super::{MARK, checked, request, results, sort};
use crate::acceptor::{self, ClientSession};
use crate::line::Wait;
use crate::marks::{MarkTimes, MarkedDatagrams, stop_at_end};
use crate::plain::{self, Work};
use crate::{ProgramError, Service};

/// How long a client may take for each thing that it has to say or do. nttcp waits 80 s for a connection.
const MESSAGE_LIMIT: Duration = Duration::from_secs(30);
/// A receiver uses the first free port of these.
const PORTS: std::ops::Range<u16> = FIRST_DATA_PORT..20_000;
/// Interval between end marks, and their number.
const MARK_GAP: Duration = Duration::from_secs(2);
const END_MARKS: u32 = 3;
/// How long the client may take to close.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Serves until the service stops.
pub(super) fn serve(service: &Service) -> Result<(), ProgramError> {
    acceptor::serve(service, PEER.name, &client)
}

/// Serves the client of a connection that inetd has accepted.
pub(super) fn serve_one(service: &Service, socket: TcpStream) -> Result<(), ProgramError> {
    acceptor::serve_one(service, PEER.name, socket, &client)
}

fn client(client_session: &mut ClientSession<'_>) -> Result<Text, ProgramError> {
    Session { client_session, machine: Remote::default(), turn: Turn::default() }.conduct()
}

struct Session<'a, 'g> {
    client_session: &'a mut ClientSession<'g>,
    machine: Remote,
    turn: Turn<RemoteAction>,
}

impl Session<'_, '_> {
    fn conduct(mut self) -> Result<Text, ProgramError> {
        let served = self.serve();
        // Send what the state machine queued, also after an error.
        let _ = self.flush();
        served
    }

    fn flush(&mut self) -> Result<(), ProgramError> {
        let send = std::mem::take(&mut self.turn.send);
        self.client_session.line.send(&send)
    }

    fn verbose_line(&mut self, requested: &Options, line: &str) {
        if requested.verbose {
            self.turn.send.extend_from_slice(format!("nttcp-{}: {line}\n\n", requested.number).as_bytes());
        }
    }

    /// The client's next request.
    fn next(&mut self) -> Result<RemoteAction, ProgramError> {
        let mut buffer = [0; 1024];
        while self.turn.actions.is_empty() {
            let ended = || self.machine.ended();
            let count = self.client_session.receive(PEER.name, MESSAGE_LIMIT, &mut buffer, ended)?;
            self.machine.receive(&buffer[..count], &mut self.turn).map_err(|error| self.peer_error(error))?;
        }
        Ok(self.turn.actions.remove(0))
    }

    fn peer_error(&self, error: WireError) -> ProgramError {
        self.client_session.line.peer_error(error)
    }

    fn serve(&mut self) -> Result<Text, ProgramError> {
        let requested = loop {
            if let RemoteAction::Requested(requested) = self.next()? {
                break requested;
            }
        };
        let spec = request::spec(&requested);
        let Some(admission) = self.client_session.admit() else {
            return Ok(self.refuse("another measurement is running"));
        };
        if let Some(why) = request::refusal(&requested, &spec, &self.client_session.service.limits) {
            return Ok(self.refuse(why));
        }
        self.verbose_line(&requested, &format!("thru {}, serving as nttcp", env!("CARGO_PKG_VERSION")));
        self.verbose_line(
            &requested,
            &format!("Pid={}, InetPeer= {}", std::process::id(), self.client_session.line.peer().ip()),
        );
        self.verbose_line(
            &requested,
            &format!("Optionline=\"{}\"", String::from_utf8_lossy(&requested.to_line()).trim_end()),
        );
        let socket = if requested.transmits { self.dial(&requested, &spec)? } else { self.listen(&requested, &spec)? };
        let (counted, sockets) = match requested.compare {
            true => (self.compare(&socket, &requested)?, vec![socket]),
            false => self.run(socket, &requested, &spec)?,
        };
        let moved = if requested.transmits { "transmitted" } else { "received" };
        self.verbose_line(&requested, &format!("{moved} {} bytes", counted.bytes));
        if requested.udp && !requested.transmits {
            self.verbose_line(&requested, "got EOF");
        }
        self.machine.counted(&counted, &mut self.turn).map_err(|error| self.peer_error(error))?;
        // The next client may follow as soon as this is sent.
        drop(admission);
        self.verbose_line(&requested, "exiting");
        self.flush()?;
        self.finish(&sockets, &requested);
        let rate = plain::rate(counted.bytes as f64 * 8.0 / counted.real_s.max(1e-9));
        Ok(say!("{moved} {} bytes over {} ({rate})", counted.bytes, spec.transport))
    }

    fn refuse(&mut self, why: impl Into<Text>) -> Text {
        let why = why.into();
        self.machine.refuse(&why.plain(), &mut self.turn);
        say!("refused: {why}")
    }

    /// Listens for the client's data and waits until it comes.
    fn listen(&mut self, requested: &Options, spec: &Spec) -> Result<OwnedFd, ProgramError> {
        let (here, peer) = (self.client_session.here.ip(), self.client_session.line.peer().ip());
        let data = if requested.udp {
            let socket = plain::bind(here, PORTS, &spec.far)?;
            let port = self.listening(socket.local_addr())?;
            let connected = plain::connect_to_first_sender(&socket, peer, &mut self.waits())?;
            connected.then(|| (OwnedFd::from(socket), port))
        } else {
            let listener = plain::listen(here, PORTS, &spec.far)?;
            let port = self.listening(listener.local_addr())?;
            let accepted = plain::accept(&listener, peer, spec, Role::Passive, &mut self.waits())?;
            accepted.map(|socket| (socket, port))
        };
        let Some((socket, port)) = data else { return Err(self.client_session.without_data(PEER.name, MESSAGE_LIMIT)) };
        self.verbose_line(requested, &format!("accept from {peer}"));
        self.ready(requested, &socket, port)?;
        Ok(socket)
    }

    fn listening(&mut self, address: std::io::Result<SocketAddr>) -> Result<u16, ProgramError> {
        let failed = |source| ProgramError::socket("receive data from", self.client_session.line.peer(), source);
        let port = address.map_err(failed)?.port();
        self.machine.listening(port, &mut self.turn).map_err(|error| self.peer_error(error))?;
        self.flush()?;
        Ok(port)
    }

    /// Whether the client's data may still come.
    fn waits(&mut self) -> impl FnMut() -> bool + '_ {
        let deadline = Instant::now() + MESSAGE_LIMIT;
        let mut may_continue = self.client_session.may_continue();
        move || may_continue() && Instant::now() < deadline
    }

    /// Connects to where the client listens.
    fn dial(&mut self, requested: &Options, spec: &Spec) -> Result<OwnedFd, ProgramError> {
        self.flush()?;
        let port = loop {
            if let RemoteAction::Transmit(port) = self.next()? {
                break port;
            }
        };
        let socket = plain::dial(spec, at_port(self.client_session.line.peer(), port), 0)?;
        self.ready(requested, &socket, port)?;
        Ok(socket)
    }

    /// Sends verbose lines about the data connection.
    fn ready(&mut self, requested: &Options, socket: &OwnedFd, port: u16) -> Result<(), ProgramError> {
        let socket = SockRef::from(socket);
        for (what, bytes) in [("send", socket.send_buffer_size()), ("receive", socket.recv_buffer_size())] {
            if let Ok(bytes) = bytes {
                self.verbose_line(requested, &format!("{what} window size = {bytes}"));
            }
        }
        let carrier = if requested.udp { "udp" } else { "tcp" };
        self.verbose_line(
            requested,
            &format!("buflen={}, bufcnt={}, dataport={port}/{carrier}", requested.bytes, requested.count),
        );
        self.flush()
    }

    fn run(
        &mut self,
        socket: OwnedFd,
        requested: &Options,
        spec: &Spec,
    ) -> Result<(Statistics, Vec<OwnedFd>), ProgramError> {
        let work = Work::new(spec, Role::Passive);
        let mark_times = Arc::new(MarkTimes::default());
        let mut on_step = stop_at_end(mark_times.clone(), self.client_session.may_continue());
        let mut live = |_| {};
        let mut moved = match (requested.udp, requested.transmits) {
            (false, _) => work.streams(vec![socket], &mut live, &mut on_step)?,
            (true, true) => {
                plain::send_mark(&socket, &MARK);
                let header = MarkedDatagrams::sent(mark_times.clone());
                let moved = work.datagrams(socket, header, &mut live, &mut on_step)?;
                moved.sockets.iter().for_each(|socket| plain::send_mark(socket, &MARK));
                moved
            }
            (true, false) => {
                work.datagrams(socket, MarkedDatagrams::new(sort(), mark_times.clone()), &mut live, &mut on_step)?
            }
        };
        let tally = moved.tally();
        let ns = match requested.transmits {
            true => tally.sending_ns,
            // Its time runs from the start to the end of the connection.
            false if !requested.udp => moved.legs.elapsed_ns + moved.idle.before_ns,
            false => mark_times.span_ns().unwrap_or(tally.receiving_ns),
        };
        Ok((results::ours(spec, &tally, Role::Passive, ns), moved.sockets))
    }

    /// Moves data with content checks (`-c`).
    fn compare(&mut self, socket: &OwnedFd, requested: &Options) -> Result<Statistics, ProgramError> {
        let (peer, service) = (self.client_session.line.peer(), self.client_session.service);
        let compared = {
            let mut may_continue = self.client_session.may_continue();
            checked::run(socket, requested, &mut || !may_continue())
        };
        let (counted, wrong) = compared.map_err(|source| ProgramError::socket("compare data with", peer, source))?;
        if wrong > 0 {
            self.verbose_line(requested, &format!("{wrong} bytes differ"));
            (service.log)(peer, &say!("{peer}: {} sent {wrong} bytes that differ from the pattern", PEER.name));
        }
        Ok(counted)
    }

    /// Closes in an order in which the client receives everything. Sends end marks again while the client
    /// listens, because they may be lost.
    fn finish(&mut self, sockets: &[OwnedFd], requested: &Options) {
        let marks = if requested.udp && requested.transmits { END_MARKS - 1 } else { 0 };
        for _ in 0..marks {
            if self.closes(MARK_GAP) {
                return;
            }
            sockets.iter().for_each(|socket| plain::send_mark(socket, &MARK));
        }
        self.client_session.line.finish();
        self.closes(CLOSE_LIMIT);
    }

    /// Whether the client closes within this time.
    fn closes(&mut self, limit: Duration) -> bool {
        let service = self.client_session.service;
        let cancelled = || service.stopping();
        let wait = Wait { program: PEER.name, limit, during: "at the end", cancelled: &cancelled };
        !matches!(self.client_session.line.wait(&mut [0; 64], &wait), Ok(Some(_)) | Err(ProgramError::Silent { .. }))
    }
}
