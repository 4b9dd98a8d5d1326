//! One client at our server.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use engine::transport::programs;
use model::{EndOptions, Role, Spec, TransportName};
use peer_wire::Turn;
use peer_wire::iperf3::{PEER, Parameters, REFUSAL, Results, Server, ServerAction, ServerFault, TestCookie};
use rustix::net::SendFlags;
use text::{Said, Text, say};

use super::acceptor::{Acceptor, StreamLock, StreamSource, TestRegistration};
use super::streams::{Ran, Streams};
use super::{output, request, results};
use crate::line::{Input, Line, Wait};
use crate::session_deadline::SessionDeadline;
use crate::{ProgramError, Service, acceptor};

/// How long a client may take for each thing that it has to say; iperf3's own server waits as long.
const MESSAGE_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for all streams to open.
const STREAMS_LIMIT: Duration = Duration::from_secs(30);
/// Time that a test may take beyond its requested duration, as in iperf3's server.
const GRACE: Duration = Duration::from_secs(40);
/// Time limit for data in flight when the client ends the test.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(20);
/// Time limit for opening a test: the sum of the limits on its parts.
const OPENING: Duration = Duration::from_secs(60);

struct Session<'a> {
    acceptor: &'a Acceptor,
    service: &'a Service,
    session_deadline: &'a SessionDeadline,
    line: Line,
    machine: Server,
    turn: Turn<ServerAction>,
    registration: TestRegistration<'a>,
    requested: Option<(Parameters, Spec)>,
    ran: Option<Ran>,
}

/// What a session does next.
enum Next {
    Listen,
    Over,
}

/// Serves a client that has sent its cookie until it ends.
pub(super) fn serve(acceptor: &Acceptor, service: &Service, socket: TcpStream, peer: SocketAddr, cookie: TestCookie) {
    let session_deadline = acceptor.session_deadlines.take(&socket);
    let said = Line::over(socket, peer).and_then(|line| {
        let mut turn = Turn::default();
        let machine = Server::open(&mut turn);
        let registration = acceptor.expect(cookie);
        let mut session = Session {
            acceptor,
            service,
            session_deadline: &session_deadline,
            line,
            machine,
            turn,
            registration,
            requested: None,
            ran: None,
        };
        let result = session.conduct();
        // Send what the state machine queued, also after an error.
        let _ = session.line.send(&session.turn.send);
        result
    });
    acceptor::report(service, PEER.name, peer, &session_deadline, said.map(|()| say!("{} ended", PEER.name)));
}

impl<'a> Session<'a> {
    fn conduct(&mut self) -> Result<(), ProgramError> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let send = std::mem::take(&mut self.turn.send);
            self.line.send(&send)?;
            for action in std::mem::take(&mut self.turn.actions) {
                if let Next::Over = self.act(action)? {
                    return Ok(());
                }
            }
            if self.turn.send.is_empty() && self.turn.actions.is_empty() {
                self.listen(&mut buffer)?;
            }
        }
    }

    fn listen(&mut self, buffer: &mut [u8]) -> Result<(), ProgramError> {
        let service = self.service;
        let cancelled = || service.stopping();
        let during = "on its control connection";
        let wait = Wait { program: PEER.name, limit: MESSAGE_LIMIT, during, cancelled: &cancelled };
        let heard = self.line.wait(buffer, &wait);
        let wrong = |error| self.line.peer_error(error);
        match heard {
            Ok(Some(count)) => self.machine.receive(&buffer[..count], &mut self.turn).map_err(wrong)?,
            Ok(None) => {
                self.machine.ended().map_err(wrong)?;
                self.turn.actions.push(ServerAction::Done);
            }
            Err(ProgramError::Interrupted) => {
                self.machine.terminate(&mut self.turn);
                self.turn.actions.push(ServerAction::Terminated);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn act(&mut self, action: ServerAction) -> Result<Next, ProgramError> {
        match action {
            ServerAction::Requested(requested) => return self.requested(*requested),
            ServerAction::End => {
                self.machine.exchange(&mut self.turn).map_err(|error| self.line.peer_error(error))?;
            }
            ServerAction::ProgramResults(_) => {
                let ours = self.results()?;
                self.machine.results(&ours, &mut self.turn).map_err(|error| self.line.peer_error(error))?;
            }
            ServerAction::Terminated | ServerAction::Done => return Ok(Next::Over),
        }
        Ok(Next::Listen)
    }

    /// Checks the client's request, accepts its streams and moves the data.
    fn requested(&mut self, requested: Parameters) -> Result<Next, ProgramError> {
        if let Some(users) = &self.service.users
            && !users.admits(requested.token.as_deref())
        {
            return Ok(self.refuse(ServerFault::Authorisation, "wrong user name, password or clock"));
        }
        let spec = request::spec(&requested);
        if let Some((fault, why)) = request::refusal(&requested, &spec, &self.service.limits) {
            return Ok(self.refuse(fault, why));
        }
        // From here on it is an admitted client.
        self.session_deadline.extend(self.service.hold().saturating_add(OPENING));
        let (udp, version) =
            (spec.transport == TransportName::Udp, requested.client_version.clone().unwrap_or_default());
        let early =
            EndOptions { sndbuf: spec.far.sndbuf, rcvbuf: spec.far.rcvbuf, mss: spec.far.mss, ..EndOptions::default() };
        let want = match (udp, early == EndOptions::default()) {
            (true, _) => StreamSource::Datagrams,
            (_, true) => StreamSource::Connections,
            _ => StreamSource::OwnListener,
        };
        let Some(stream_lock) = self.stream_lock(want)? else { return Ok(Next::Over) };
        let (own_listener, unauthenticated) = (want == StreamSource::OwnListener, self.service.limits.unauthenticated);
        if own_listener && let Err(error) = self.acceptor.reopen(&early, unauthenticated) {
            let fault = if early.mss.is_some() { ServerFault::Mss } else { ServerFault::Buffer };
            return Ok(self.refuse(fault, error.say()));
        }
        let streams = match requested.streams() {
            1 => "1 stream".to_owned(),
            count => format!("{count} streams"),
        };
        let (peer, transport) = (self.line.peer(), &spec.transport);
        (self.service.log)(peer, &say!("{peer}: {} {version} measures {transport} with {streams}", PEER.name));
        let accepted = self.accept_streams(&stream_lock, &spec, requested.wide_counters);
        if own_listener {
            // The options were for this test's streams only.
            self.acceptor.reopen(&EndOptions::default(), unauthenticated)?;
        }
        drop(stream_lock);
        let Some(streams) = accepted? else { return Ok(Next::Over) };
        self.requested = Some((requested, spec));
        self.machine.start(&mut self.turn).map_err(|error| self.line.peer_error(error))?;
        self.run(streams)
    }

    /// Waits for the lock under which this test's streams can be distinguished from others'; `None` if the test
    /// ends first.
    fn stream_lock(&mut self, want: StreamSource) -> Result<Option<StreamLock<'a>>, ProgramError> {
        let acceptor = self.acceptor;
        let deadline = Instant::now() + STREAMS_LIMIT;
        loop {
            if let Some(stream_lock) = acceptor.stream_lock(want) {
                return Ok(Some(stream_lock));
            }
            if client_left(&mut self.line, &mut self.machine, &mut self.turn)? {
                return Ok(None);
            }
            if self.service.stopping() {
                self.machine.terminate(&mut self.turn);
                return Ok(None);
            }
            if Instant::now() > deadline {
                let peer = self.line.peer();
                (self.service.log)(
                    peer,
                    &say!("{peer}: {} refused: another test is still opening its streams", PEER.name),
                );
                self.line.send(&REFUSAL)?;
                return Ok(None);
            }
            std::thread::sleep(STEP);
        }
    }

    /// Requests the streams and accepts them; `None` if the client gave up.
    fn accept_streams(
        &mut self,
        stream_lock: &StreamLock<'_>,
        spec: &Spec,
        wide: bool,
    ) -> Result<Option<Streams>, ProgramError> {
        let mut streams = Streams::new(Role::Passive, spec, wide);
        if !matches!(stream_lock, StreamLock::Datagrams(_)) {
            self.registration.want(streams.wanted());
        }
        self.machine.accept(&mut self.turn).map_err(|error| self.line.peer_error(error))?;
        let send = std::mem::take(&mut self.turn.send);
        self.line.send(&send)?;
        let deadline = Instant::now() + STREAMS_LIMIT;
        let mut arrived = Vec::new();
        while arrived.len() < streams.wanted() {
            match self.next_stream(stream_lock, spec, deadline)? {
                Some(arrival) => arrived.push(arrival),
                None => return Ok(None),
            }
        }
        // Only the order of the streams determines their numbers and directions.
        arrived.sort_by_key(|(sequence, _)| *sequence);
        arrived.into_iter().for_each(|(_, socket)| streams.push(socket));
        Ok(Some(streams))
    }

    fn refuse(&mut self, fault: ServerFault, why: impl Into<Text>) -> Next {
        let peer = self.line.peer();
        (self.service.log)(peer, &say!("{peer}: {} refused: {}", PEER.name, why.into()));
        self.machine.refuse(fault, &mut self.turn);
        Next::Over
    }

    /// The next stream with its position; `None` if the client gave up. UDP streams arrive in order.
    fn next_stream(
        &mut self,
        stream_lock: &StreamLock<'_>,
        spec: &Spec,
        deadline: Instant,
    ) -> Result<Option<(u64, OwnedFd)>, ProgramError> {
        let Self { line, machine, turn, service, acceptor, registration, .. } = self;
        let mut ended = Ok(false);
        let from = line.peer().ip();
        let mut keep_waiting = || {
            ended = client_left(line, machine, turn);
            matches!(ended, Ok(false)) && Instant::now() < deadline && !service.stopping()
        };
        let stream = if let StreamLock::Datagrams(udp) = stream_lock {
            acceptor.datagram_stream(udp, from, spec, &mut keep_waiting)?.map(|socket| (0, OwnedFd::from(socket)))
        } else {
            loop {
                match registration.streams.recv_timeout(STEP) {
                    Ok((sequence, socket)) => {
                        programs::prepare(socket.as_fd(), spec, Role::Passive)?;
                        break Some((sequence, OwnedFd::from(socket)));
                    }
                    Err(RecvTimeoutError::Timeout) if keep_waiting() => {}
                    Err(_) => break None,
                }
            }
        };
        match (stream, ended?) {
            (None, false) => Err(ProgramError::Silent {
                address: self.line.peer().to_string(),
                peer: PEER.name,
                seconds: STREAMS_LIMIT.as_secs(),
                during: "while its streams were expected".into(),
            }),
            (stream, _) => Ok(stream),
        }
    }

    /// Starts the client's clock and lets the data flow until the client ends it.
    fn run(&mut self, streams: Streams) -> Result<Next, ProgramError> {
        let Some((requested, _)) = &self.requested else { return Ok(Next::Over) };
        // The clock starts with this message, so it is sent when the payload is prepared and the threads wait.
        let (start, control) = (std::mem::take(&mut self.turn.send), self.line.socket()?);
        let begun = Arc::new(OnceLock::new());
        let clock = begun.clone();
        let first = move || {
            // A client that has gone is noticed at the next message.
            let _ = rustix::net::send(&control, &start, SendFlags::NOSIGNAL);
            let _ = clock.set(Instant::now());
        };
        let begun = || *begun.get_or_init(Instant::now);
        let limit = limit(requested, self.service.limits.hold_ns);
        // An amount counts whole, however late it arrives.
        let by_time = requested.bytes == 0 && requested.blocks == 0;
        let Self { line, machine, turn, service, .. } = self;
        let mut expired = false;
        let mut buffer = [0; 1024];
        // Whether the client or a limit has ended the test.
        let mut ends = |elapsed: Duration| match line.receive(&mut buffer, STEP)? {
            Input::Bytes(count) => {
                machine.receive(&buffer[..count], turn).map_err(|error| line.peer_error(error)).map(|()| true)
            }
            Input::Ended => machine.ended().map_err(|error| line.peer_error(error)).map(|()| true),
            Input::Nothing if service.stopping() => {
                machine.terminate(turn);
                turn.actions.push(ServerAction::Terminated);
                Ok(true)
            }
            Input::Nothing => {
                expired = elapsed > limit;
                Ok(expired)
            }
        };
        let mut over: Option<(Instant, Result<(), ProgramError>)> = None;
        let streams = streams.keeping_moments(requested.get_server_output);
        let ran = streams.run(first, Duration::ZERO, &mut |_| {}, &mut |signals, elapsed| {
            if let Some((since, _)) = &over {
                std::thread::sleep(Duration::from_millis(1));
                if since.elapsed() > DRAIN_LIMIT {
                    signals.abort();
                }
                return false;
            }
            match ends(elapsed) {
                Ok(false) => return false,
                Ok(true) => {
                    signals.stop();
                    over = Some((Instant::now(), Ok(())));
                }
                Err(error) => {
                    signals.abort();
                    over = Some((Instant::now(), Err(error)));
                }
            }
            by_time
        });
        // Everything is sent; wait for the client to confirm.
        let stalled = ran.as_ref().is_ok_and(|ran| ran.legs.legs.iter().any(|leg| leg.stalled));
        while over.is_none() && !stalled && ran.as_ref().is_ok_and(|ran| ran.legs.failure.is_none()) {
            match ends(begun().elapsed()) {
                Ok(false) => {}
                ended => over = Some((Instant::now(), ended.map(drop))),
            }
        }
        if let Some((_, Err(error))) = over {
            return Err(error);
        }
        if expired {
            return Ok(self.refuse(ServerFault::Expired, "the test ran beyond its end"));
        }
        if stalled && over.is_none() {
            // The streams are closed, so the client cannot end the test.
            return Ok(self.refuse(ServerFault::NoData, "no data moved for too long"));
        }
        match ran {
            Ok(mut ran) => {
                // The client ends the time, and what counts by it.
                if let Some((since, _)) = over {
                    ran.legs.elapsed_ns = since.duration_since(begun()).as_nanos() as u64;
                }
                // A client that receives reads until its streams end.
                ran.sockets.clear();
                self.ran = Some(ran);
                Ok(Next::Listen)
            }
            Err(error) => {
                self.machine.refuse(ServerFault::NoData, &mut self.turn);
                Err(error.into())
            }
        }
    }

    fn results(&self) -> Result<Results, ProgramError> {
        let (Some(ran), Some((requested, _))) = (&self.ran, &self.requested) else {
            return Err(ProgramError::Interrupted);
        };
        let mut results = results::ours(ran);
        if requested.get_server_output {
            results.server_output_text = Some(output::text(ran, &results, self.line.peer()));
        }
        Ok(results)
    }
}

/// How long a test may take. A count, or a time of 0, ends when the client says so.
fn limit(requested: &Parameters, hold_ns: u64) -> Duration {
    if requested.bytes > 0 || requested.blocks > 0 || requested.time_s == 0 {
        return Duration::from_nanos(hold_ns);
    }
    Duration::from_secs(u64::from(requested.time_s) + u64::from(requested.omit_s)) + GRACE
}

/// Receives control messages while streams open; true if the client left in good order.
fn client_left(line: &mut Line, machine: &mut Server, turn: &mut Turn<ServerAction>) -> Result<bool, ProgramError> {
    let mut buffer = [0; 1024];
    match line.try_receive(&mut buffer)? {
        Input::Nothing => Ok(false),
        Input::Bytes(count) => {
            machine.receive(&buffer[..count], turn).map_err(|error| line.peer_error(error))?;
            Ok(turn.actions.iter().any(|action| matches!(action, ServerAction::Terminated)))
        }
        Input::Ended => machine.ended().map_err(|error| line.peer_error(error)).map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::AtomicBool;

    use peer_wire::iperf3::Protocol;

    use super::*;
    use crate::ServiceLimits;

    #[test]
    fn a_test_without_an_end_of_its_own_has_the_services() {
        let hour = 3_600_000_000_000;
        let mut requested = Parameters::new(Protocol::Tcp, 5);
        requested.omit_s = 2;
        assert_eq!(limit(&requested, hour), Duration::from_secs(47));
        requested.time_s = 0;
        assert_eq!(limit(&requested, hour), Duration::from_secs(3600));
        (requested.time_s, requested.bytes) = (5, 1);
        assert_eq!(limit(&requested, hour), Duration::from_secs(3600));
    }

    #[test]
    fn a_test_that_stalls_is_refused_at_once() {
        let service = Service {
            addresses: Vec::new(),
            options: String::new(),
            users: None,
            limits: ServiceLimits {
                unauthenticated: 1,
                hold_ns: 20_000_000_000,
                flows: 1,
                rate_bps: None,
                memory_bytes: 8 << 30,
            },
            admit: Box::new(|| None),
            log: Box::new(|_, _| {}),
            listening: Box::new(|_| {}),
            stop: AtomicBool::new(false),
        };
        let pair = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            (TcpStream::connect(listener.local_addr().unwrap()).unwrap(), listener.accept().unwrap())
        };
        let ((_client, (control, peer)), (_sender, (data, _))) = (pair(), pair());
        // A count, which only the service's limit would end.
        let mut requested = Parameters::new(Protocol::Tcp, 0);
        requested.bytes = 1 << 20;
        let spec = Spec { stall_ns: 100_000_000, ..request::spec(&requested) };
        let mut streams = Streams::new(Role::Passive, &spec, true);
        streams.push(data.into());
        let acceptor = Acceptor::open("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut turn = Turn::default();
        let session_deadline = SessionDeadline::unlimited(&control);
        let mut session = Session {
            acceptor: &acceptor,
            service: &service,
            session_deadline: &session_deadline,
            line: Line::over(control, peer).unwrap(),
            machine: Server::open(&mut turn),
            turn: Turn::default(),
            registration: acceptor.expect(TestCookie::of(&[0; 36])),
            requested: Some((requested, spec)),
            ran: None,
        };
        assert!(matches!(session.run(streams), Ok(Next::Over)));
        assert_eq!(session.turn.send, [0xfe, 0, 0, 0, 144, 0, 0, 0, 0]);
    }
}
