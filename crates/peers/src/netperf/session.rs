//! One client at our netserver: one test after another.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::TrialPlan;
use engine::transport::{Link, programs};
use model::{EndOptions, Leg, Pattern, Role, Spec, Stop, TransportName};
use peer_wire::Turn;
use peer_wire::netperf::{Flags, OmniRequest, PEER, Ready, SendingEnd, Server, ServerAction};
use text::{Said, Text, say};

use super::host_cpu::HostCpu;
use super::unnumbered::{Unnumbered, send_end_marks};
use super::{STEP, request, results};
use crate::acceptor::{self, ClientSession};
use crate::legs::{self, Ran};
use crate::line::{Input, Line, would_block};
use crate::{ProgramError, Service, plain};

/// How long a client may be silent between two tests.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// Time limit for its data connection.
const DATA_LIMIT: Duration = Duration::from_secs(30);
/// EBUSY of Linux: netperf has no error number of its own for a busy server.
const BUSY: u32 = 16;

struct Session<'a, 'g> {
    service: &'g Service,
    line: &'a mut Line,
    machine: Server,
    turn: Turn<ServerAction>,
    deadline: Instant,
}

/// The listener for a test's data.
enum DataListener {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// What a session does next.
enum Next {
    Listen,
    Over,
}

/// Serves on all addresses until the service stops. Several clients may be connected at once. Each test is
/// admitted separately, so a connection counts as unauthenticated all the time.
pub(super) fn serve(service: &Service) -> Result<(), ProgramError> {
    check(service)?;
    acceptor::serve(service, PEER.name, &client)
}

/// Serves the client of a connection that inetd has accepted.
pub(super) fn serve_one(service: &Service, socket: TcpStream) -> Result<(), ProgramError> {
    check(service)?;
    acceptor::serve_one(service, PEER.name, socket, &client)
}

fn check(service: &Service) -> Result<(), ProgramError> {
    match service.limits.rate_bps {
        None => Ok(()),
        Some(_) => Err(ProgramError::unsupported(
            say!("`--speak netperf` with `--max-rate`"),
            "netperf's protocol has no rate; leave one of them out",
        )),
    }
}

/// Serves a client to its end.
fn client(client_session: &mut ClientSession<'_>) -> Result<Text, ProgramError> {
    let service = client_session.service;
    // Each test is admitted separately.
    client_session.session_deadline.extend(service.hold());
    let deadline = Instant::now() + service.hold();
    let line = &mut client_session.line;
    let machine = Server::default().with_cpus(HostCpu::now().map_or(0, |cpu| cpu.cpus()));
    let mut session = Session { service, line, machine, turn: Turn::default(), deadline };
    let result = session.conduct();
    // Send what the state machine queued, also after an error.
    let _ = session.line.send(&session.turn.send);
    result.map(|()| "ended".into())
}

impl Session<'_, '_> {
    fn conduct(&mut self) -> Result<(), ProgramError> {
        let mut buffer = [0; 1024];
        let mut silent = Instant::now() + IDLE_LIMIT;
        loop {
            let send = std::mem::take(&mut self.turn.send);
            self.line.send(&send)?;
            for action in std::mem::take(&mut self.turn.actions) {
                let ServerAction::Requested(requested) = action;
                if let Next::Over = self.test(&requested)? {
                    return Ok(());
                }
                silent = Instant::now() + IDLE_LIMIT;
            }
            if !self.turn.send.is_empty() {
                continue;
            }
            match self.line.receive(&mut buffer, STEP)? {
                Input::Bytes(count) => {
                    let heard = self.machine.receive(&buffer[..count], &mut self.turn);
                    heard.map_err(|error| self.line.peer_error(error))?;
                }
                Input::Ended => return self.machine.ended().map_err(|error| self.line.peer_error(error)),
                Input::Nothing if self.service.stopping() => return Ok(()),
                Input::Nothing if Instant::now() > silent.min(self.deadline) => {
                    return Err(self.silent(IDLE_LIMIT, "on its control connection"));
                }
                Input::Nothing => {}
            }
        }
    }

    /// One test.
    fn test(&mut self, requested: &OmniRequest) -> Result<Next, ProgramError> {
        let spec = request::spec(requested);
        if let Some((number, why)) = request::refusal(requested, &spec, &self.service.limits) {
            return Ok(self.refuse(number, why));
        }
        let Some(_admission) = self.service.admit_soon() else {
            return Ok(self.refuse(BUSY, "another measurement is running"));
        };
        let before = HostCpu::now().filter(|_| requested.flags.has(Flags::CPU));
        let (data_listener, mut ready) = match self.open(requested, &spec) {
            Ok(opened) => opened,
            Err(error) => {
                return Ok(self.refuse(request::EINVAL, error.say()));
            }
        };
        let peer = self.line.peer();
        (self.service.log)(peer, &say!("{peer}: {} measures {} {}", PEER.name, spec.transport, spec.pattern));
        if before.is_none() {
            // Without CPU time its flag must be off, or netperf would print 0.
            ready.flags = ready.flags.and(Flags::NODELAY);
        }
        self.machine.ready(&ready, &mut self.turn).map_err(|error| self.line.peer_error(error))?;
        let send = std::mem::take(&mut self.turn.send);
        self.line.send(&send)?;
        let ended = Arc::new(AtomicBool::new(false));
        let (link, last) = self.data(data_listener, &spec, &ended)?;
        let ran = self.run(&spec, link, &ended)?;
        if let Some(socket) = last {
            send_end_marks(&socket);
        }
        let cpu = before.and_then(|before| Some(HostCpu::now()?.since(&before)));
        let tally = ran.legs.first().cloned().unwrap_or_default();
        let counted = results::counted(&tally, cpu);
        self.machine.counted(&counted, &mut self.turn).map_err(|error| self.line.peer_error(error))?;
        Ok(Next::Listen)
    }

    fn refuse(&mut self, number: u32, why: impl Into<Text>) -> Next {
        let peer = self.line.peer();
        (self.service.log)(peer, &say!("{peer}: {} refused: {}", PEER.name, why.into()));
        self.machine.refuse(number, &mut self.turn);
        Next::Over
    }

    /// Listens for a test's data on the address that the client has reached.
    fn open(&self, requested: &OmniRequest, spec: &Spec) -> Result<(DataListener, Ready), ProgramError> {
        let failed = |source| ProgramError::socket("listen for the data of", self.line.peer(), source);
        let mut address = self.line.local_address()?;
        address.set_port(requested.data_port);
        let early = EndOptions { sndbuf: spec.far.sndbuf, rcvbuf: spec.far.rcvbuf, ..EndOptions::default() };
        let (data_listener, address, buffers) = if requested.udp {
            let socket = UdpSocket::bind(address).map_err(failed)?;
            // netserver leaves the kernel's sizes where the client names none; netperf prints them.
            let kept = EndOptions { rcvbuf: Some(early.rcvbuf.unwrap_or(0)), ..spec.far.clone() };
            programs::prepare(socket.as_fd(), &Spec { far: kept, ..spec.clone() }, Role::Passive)?;
            plain::set_buffers(&socket2::SockRef::from(&socket), &early).map_err(failed)?;
            let address = socket.local_addr().map_err(failed)?;
            let buffers = buffers(socket.as_fd()).map_err(failed)?;
            (DataListener::Udp(socket), address, buffers)
        } else {
            let listener = TcpListener::from(programs::listen(address, &early)?);
            if spec.pattern == Pattern::Crr {
                // Accepted sockets inherit them.
                programs::prepare(listener.as_fd(), spec, Role::Passive)?;
            }
            let address = listener.local_addr().map_err(failed)?;
            let buffers = buffers(listener.as_fd()).map_err(failed)?;
            (DataListener::Tcp(listener), address, buffers)
        };
        let size = |bytes: u64| u32::try_from(bytes).ok();
        let (receives, sends) = match requested.direction {
            SendingEnd::Both => (size(spec.block), size(spec.reply_bytes())),
            SendingEnd::ServerSends => (None, size(spec.block)),
            SendingEnd::ServerReceives | SendingEnd::Neither => (size(spec.block), None),
        };
        let [receive_buffer, send_buffer] = buffers;
        let ready = Ready {
            receive_buffer,
            receive_size: receives,
            receive_width: requested.receive_width.max(1),
            send_buffer,
            send_size: sends,
            send_width: requested.send_width.max(1),
            data_port: address.port(),
            tos: requested.tos,
            flags: requested.flags,
        };
        Ok((data_listener, ready))
    }

    /// The link for the client's data, and over UDP the socket for the end marks.
    fn data(
        &mut self,
        data_listener: DataListener,
        spec: &Spec,
        ended: &Arc<AtomicBool>,
    ) -> Result<(Link, Option<UdpSocket>), ProgramError> {
        let limit = Instant::now() + DATA_LIMIT;
        match data_listener {
            DataListener::Tcp(listener) if spec.pattern == Pattern::Crr => {
                Ok((programs::callees(spec, listener)?, None))
            }
            DataListener::Tcp(listener) => loop {
                match plain::next(&listener) {
                    // Connections from other hosts are closed.
                    Some((socket, peer)) if peer.ip() == self.line.peer().ip() => {
                        programs::prepare(socket.as_fd(), spec, Role::Passive)?;
                        return Ok((programs::stream(socket.into(), spec), None));
                    }
                    _ => self.keep_waiting(limit)?,
                }
            },
            DataListener::Udp(socket) => {
                let client = self.line.peer();
                let failed = |source| ProgramError::socket("receive the data of", client, source);
                socket.set_read_timeout(Some(STEP)).map_err(failed)?;
                loop {
                    let mut byte = [0];
                    match socket.peek_from(&mut byte) {
                        Ok((_, peer)) if peer.ip() == self.line.peer().ip() => {
                            socket.connect(peer).map_err(failed)?;
                            let kept = socket.try_clone().map_err(failed)?;
                            let link = programs::datagrams(OwnedFd::from(socket), Unnumbered::new(ended.clone()))?;
                            return Ok((link, Some(kept)));
                        }
                        Ok(_) => {
                            let _ = socket.recv_from(&mut byte);
                        }
                        Err(error) if would_block(&error) => self.keep_waiting(limit)?,
                        Err(source) => return Err(failed(source)),
                    }
                }
            }
        }
    }

    /// Lets the data flow until the client ends it, or its time is over.
    fn run(&mut self, spec: &Spec, link: Link, ended: &AtomicBool) -> Result<engine::LegTally, ProgramError> {
        let left_ns = self.deadline.saturating_duration_since(Instant::now()).as_nanos() as u64;
        let stop = match spec.stop {
            Stop::TimeNs(ns) => Stop::TimeNs(ns.min(left_ns.max(1))),
            stop => stop,
        };
        let spec = Spec { stop, ..spec.clone() };
        let mut gone: Option<Result<(), ProgramError>> = None;
        let mut buffer = [0; 1024];
        let leg = Leg { block: spec.block, reply: spec.reply_bytes(), stop: spec.stop, expected_ns: 0 };
        let plan = TrialPlan {
            role: Role::Passive,
            trial: 0,
            flows: 0..1,
            legs: vec![leg],
            path: model::PathTimes::default(),
            spec,
        };
        let is_tcp = plan.spec.transport != TransportName::Udp;
        let Ran { legs: mut ran, idle } = legs::run(&plan, vec![link], STEP, &mut |_| {}, &mut |signals, _| {
            if ended.load(Ordering::Relaxed) {
                signals.stop();
            }
            if gone.is_some() {
                return;
            }
            gone = match self.line.try_receive(&mut buffer) {
                Ok(Input::Nothing) if self.service.stopping() => Some(Ok(())),
                Ok(Input::Nothing) => None,
                Ok(Input::Bytes(count)) => {
                    let heard = self.machine.receive(&buffer[..count], &mut self.turn);
                    heard.err().map(|error| Err(self.line.peer_error(error)))
                }
                Ok(Input::Ended) => Some(self.machine.ended().map_err(|error| self.line.peer_error(error))),
                Err(error) => Some(Err(error)),
            };
            if gone.is_some() {
                signals.abort();
            }
        })?;
        // netserver's time runs from the connection on. Over UDP it runs from the first datagram.
        let received = ran.legs.iter_mut().filter(|leg| is_tcp && leg.receiving_ns > 0);
        received.for_each(|leg| leg.receiving_ns += idle.before_ns);
        // A client that closes before the server has sent everything ends the test; that is not a failure.
        gone.unwrap_or(Ok(())).map(|()| ran)
    }

    /// Whether to go on waiting for data.
    fn keep_waiting(&mut self, limit: Instant) -> Result<(), ProgramError> {
        let mut buffer = [0; 1024];
        match self.line.try_receive(&mut buffer)? {
            Input::Ended => return self.machine.ended().map_err(|error| self.line.peer_error(error)),
            Input::Bytes(count) => {
                let heard = self.machine.receive(&buffer[..count], &mut self.turn);
                heard.map_err(|error| self.line.peer_error(error))?;
            }
            Input::Nothing => {}
        }
        if Instant::now() > limit || self.service.stopping() {
            return Err(self.silent(DATA_LIMIT, "while its data was expected"));
        }
        Ok(())
    }

    fn silent(&self, limit: Duration, during: &'static str) -> ProgramError {
        ProgramError::Silent {
            address: self.line.peer().to_string(),
            peer: PEER.name,
            seconds: limit.as_secs(),
            during: during.into(),
        }
    }
}

/// SO_RCVBUF and SO_SNDBUF as a socket has them, bytes.
fn buffers(socket: std::os::fd::BorrowedFd<'_>) -> std::io::Result<[u32; 2]> {
    let socket = socket2::SockRef::from(&socket);
    let word = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    Ok([word(socket.recv_buffer_size()?), word(socket.send_buffer_size()?)])
}
