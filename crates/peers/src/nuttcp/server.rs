//! One client at our server.

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::transport::at_port;
use model::{Live, Role, Spec, TransportName};
use peer_wire::nuttcp::{Options, PEER, PathMark, Report, Server, ServerAction, Windows};
use peer_wire::{Turn, WireError};
use text::{Text, say};

use super::client::{END_GAP, send_begin_marks};
use super::interim::{InterimReports, Numbered, counted, skip_first_mark};
use super::{request, results};
use crate::acceptor::{self, ClientSession};
use crate::line::Wait;
use crate::marks::{MarkTimes, MarkedDatagrams, stop_at_end};
use crate::plain::{self, Work};
use crate::{ProgramError, Service};

/// How long a client may take for each thing that it has to say or do.
const MESSAGE_LIMIT: Duration = Duration::from_secs(30);

/// Serves until the service stops.
pub(super) fn serve(service: &Service) -> Result<(), ProgramError> {
    acceptor::serve(service, PEER.name, &client)
}

/// Serves the client of a connection that inetd has accepted.
pub(super) fn serve_one(service: &Service, socket: TcpStream) -> Result<(), ProgramError> {
    acceptor::serve_one(service, PEER.name, socket, &client)
}

fn client(client_session: &mut ClientSession<'_>) -> Result<Text, ProgramError> {
    Session { client_session, machine: Server::default(), turn: Turn::default() }.conduct()
}

struct Session<'a, 'g> {
    client_session: &'a mut ClientSession<'g>,
    machine: Server,
    turn: Turn<ServerAction>,
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

    fn peer_error(&self, error: WireError) -> ProgramError {
        self.client_session.line.peer_error(error)
    }

    /// The client's request.
    fn requested(&mut self) -> Result<Options, ProgramError> {
        let mut buffer = [0; 1024];
        loop {
            let ended = || self.machine.ended();
            let count = self.client_session.receive(PEER.name, MESSAGE_LIMIT, &mut buffer, ended)?;
            self.machine.receive(&buffer[..count], &mut self.turn).map_err(|error| self.peer_error(error))?;
            self.flush()?;
            if let Some(ServerAction::Requested(requested)) = self.turn.actions.pop() {
                return Ok(*requested);
            }
        }
    }

    fn serve(&mut self) -> Result<Text, ProgramError> {
        let requested = self.requested()?;
        let spec = request::spec(&requested);
        let Some(admission) = self.client_session.admit() else {
            return Ok(self.refuse("another measurement is running"));
        };
        if let Some(why) = request::refusal(&requested, &spec, &self.client_session.service.limits) {
            return Ok(self.refuse(why));
        }
        let sockets = self.open(&requested, &spec)?;
        let Some(sockets) = sockets else { return Ok(self.refuse("a data port is in use")) };
        let (report, sockets) = self.run(sockets, &requested, &spec)?;
        self.machine.counted(&report, &mut self.turn).map_err(|error| self.peer_error(error))?;
        // The next client may follow as soon as this is sent.
        drop(admission);
        self.flush()?;
        self.client_session.line.finish();
        if requested.udp && report.transmitted {
            self.spare_marks(&sockets);
        }
        let moved = if report.transmitted { "transmitted" } else { "received" };
        Ok(say!("{moved} {:.0} bytes over {} ({})", report.bytes, spec.transport, plain::rate(report.bps)))
    }

    fn refuse(&mut self, why: impl Into<Text>) -> Text {
        self.machine.refuse(&mut self.turn);
        say!("refused: {}", why.into())
    }

    /// Accepts the client and its data connections; `None` if a port is not free.
    fn open(&mut self, requested: &Options, spec: &Spec) -> Result<Option<Vec<OwnedFd>>, ProgramError> {
        let (here, peer) = (self.client_session.here.ip(), self.client_session.line.peer());
        let ports = || (requested.port..).take(requested.streams as usize);
        // The receiver listens, unless the client requests the reverse.
        if requested.client_transmits == (requested.reverse && !requested.udp) {
            self.accept()?;
            let dialled = ports().zip(0..).map(|(port, flow)| plain::dial(spec, at_port(peer, port), flow));
            return dialled.collect::<Result<Vec<_>, _>>().map(Some);
        }
        let sockets = if requested.udp {
            let Ok(socket) = plain::bind(here, ports(), &spec.far) else { return Ok(None) };
            self.accept()?;
            let mut waits = self.waits();
            let connected = plain::connect_to_first_sender(&socket, peer.ip(), &mut waits)?;
            if connected && requested.reports_interim() {
                skip_first_mark(&socket, &mut waits);
            }
            connected.then(|| vec![OwnedFd::from(socket)])
        } else {
            let listeners: Result<Vec<_>, _> = ports().map(|port| plain::listen(here, [port], &spec.far)).collect();
            let Ok(listeners) = listeners else { return Ok(None) };
            self.accept()?;
            let mut waits = self.waits();
            listeners
                .iter()
                .map(|listener| plain::accept(listener, peer.ip(), spec, Role::Passive, &mut waits))
                .collect::<Result<Option<Vec<_>>, _>>()?
        };
        sockets.map(Some).ok_or_else(|| self.client_session.without_data(PEER.name, MESSAGE_LIMIT))
    }

    fn accept(&mut self) -> Result<(), ProgramError> {
        self.machine.accept(&mut self.turn).map_err(|error| self.peer_error(error))?;
        self.flush()
    }

    /// Whether the client's data may still come.
    fn waits(&mut self) -> impl FnMut() -> bool + '_ {
        let deadline = Instant::now() + MESSAGE_LIMIT;
        let mut may_continue = self.client_session.may_continue();
        move || may_continue() && Instant::now() < deadline
    }

    fn run(
        &mut self,
        mut sockets: Vec<OwnedFd>,
        requested: &Options,
        spec: &Spec,
    ) -> Result<(Report, Vec<OwnedFd>), ProgramError> {
        let work = Work::new(spec, Role::Passive);
        let windows = sockets.last().and_then(windows);
        let mark_times = Arc::new(MarkTimes::default());
        let interim = requested.reports_interim().then(|| self.client_session.line.socket()).transpose()?;
        let mut interim = interim.map(|line| InterimReports::new(line, spec, requested.parse));
        let sent = interim.as_ref().map(|interim| interim.sent.clone());
        let mut live = |report| {
            if let (Some(interim), Live::Interval(interval)) = (&mut interim, report) {
                interim.report(&interval);
            }
        };
        let mut on_step = stop_at_end(mark_times.clone(), self.client_session.may_continue());
        let transmits = plain::sends(spec, Role::Passive);
        let datagrams = if spec.transport == TransportName::Udp { sockets.pop() } else { None };
        let mut moved = match datagrams {
            None => work.streams(sockets, &mut live, &mut on_step)?,
            Some(socket) if transmits => {
                send_begin_marks(&socket);
                let header = Numbered::new(mark_times.clone(), spec.block);
                let moved = work.datagrams(socket, header, &mut live, &mut on_step)?;
                moved.sockets.iter().for_each(|socket| plain::send_mark(socket, &PathMark::End(0).bytes()));
                moved
            }
            Some(socket) => {
                let header = MarkedDatagrams::new(counted(sent), mark_times.clone());
                work.datagrams(socket, header, &mut live, &mut on_step)?
            }
        };
        let tally = moved.tally();
        let ns = match transmits {
            true => tally.sending_ns,
            // Its time runs from the start to the end of the connection.
            false if spec.transport != TransportName::Udp => moved.legs.elapsed_ns + moved.idle.before_ns,
            false => mark_times.span_ns().unwrap_or(tally.receiving_ns),
        };
        Ok((Report { windows, ..results::ours(spec, &tally, ns) }, moved.sockets))
    }

    /// Sends end marks again while the client listens, because they may be lost.
    fn spare_marks(&mut self, sockets: &[OwnedFd]) {
        let service = self.client_session.service;
        let cancelled = || service.stopping();
        let wait = Wait { program: PEER.name, limit: END_GAP, during: "at the end", cancelled: &cancelled };
        for number in 1..PathMark::ENDS {
            let heard = self.client_session.line.wait(&mut [0; 64], &wait);
            if !matches!(heard, Ok(Some(_)) | Err(ProgramError::Silent { .. })) {
                return;
            }
            sockets.iter().for_each(|socket| plain::send_mark(socket, &PathMark::End(number).bytes()));
        }
    }
}

/// The buffers of a data socket as it is opened.
fn windows(socket: &OwnedFd) -> Option<Windows> {
    let socket = socket2::SockRef::from(socket);
    let sizes = [socket.send_buffer_size().ok()?, socket.recv_buffer_size().ok()?].map(|size| size as u64);
    let scale = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_adv_win_scale").ok()?;
    Some(Windows::new(sizes, scale.trim().parse().ok()?))
}
