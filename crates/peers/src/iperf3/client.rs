//! Our client at a server of iperf3.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::transport::programs;
use model::{Direction, Role, Spec, Stop, TransportName};
use peer_wire::Turn;
use peer_wire::iperf3::{COOKIE_BYTES, Client, ClientAction, PEER, Results, TestCookie, datagram};
use rustix::net::{RecvFlags, SendFlags};
use text::{Said, say};

use super::streams::{Ran, Streams};
use super::{Login, request, results};
use crate::legs::Idle;
use crate::line::{Input, Line, Wait, would_block};
use crate::{ProgramError, Sides, TrialObserver};

/// How long a server may take to answer; its own limit for reading a control item is 30 s.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for the answer to a stream's first datagram, in all and before it is sent again.
const UDP_OPEN_LIMIT: Duration = Duration::from_secs(10);
const UDP_OPEN_RETRY: Duration = Duration::from_secs(2);
/// How long a server that closes before its first byte is tried again: it opens its listener anew after each test,
/// and resets the connections that wait at the old one.
const REOPEN_LIMIT: Duration = Duration::from_secs(2);
/// Time between two such attempts.
const REOPEN_PAUSE: Duration = Duration::from_millis(20);
/// How long it may take to close at the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);
/// Interval between checks of the control connection while streams open and data flows.
const STEP: Duration = Duration::from_millis(50);

/// One test.
struct Test<'a> {
    spec: &'a Spec,
    line: Line,
    machine: Client,
    turn: Turn<ClientAction>,
    cookie: TestCookie,
    observer: &'a mut dyn TrialObserver,
    cancel: &'a AtomicBool,
    begun: Instant,
    streams: Option<Streams>,
    ran: Option<Ran>,
    peer_results: Option<Results>,
    cancelled: bool,
}

/// Measures once.
pub(super) fn measure(
    spec: &Spec,
    host: &str,
    login: Option<&Login>,
    observer: &mut dyn TrialObserver,
    cancel: &AtomicBool,
) -> Result<Sides, ProgramError> {
    let mut parameters = request::parameters(spec)?;
    parameters.token = login.map(Login::token).transpose()?;
    let begun = Instant::now();
    let random = engine::random::<{ COOKIE_BYTES - 1 }>()
        .map_err(|error| ProgramError::socket("make a cookie for", host, error))?;
    let cookie = TestCookie::of(&random);
    let mut turn = Turn::default();
    let machine = Client::open(&cookie, parameters, &mut turn);
    let line = greeted(spec, host, &std::mem::take(&mut turn.send), cancel)?;
    Test {
        spec,
        line,
        machine,
        turn,
        cookie,
        observer,
        cancel,
        begun,
        streams: None,
        ran: None,
        peer_results: None,
        cancelled: false,
    }
    .conduct()
}

/// A connection over which the server has received the cookie and said something, which is still to be read.
fn greeted(spec: &Spec, host: &str, cookie: &[u8], cancel: &AtomicBool) -> Result<Line, ProgramError> {
    let reopened_by = Instant::now() + REOPEN_LIMIT;
    loop {
        let mut line = match Line::connect(PEER.name, host, PEER.port, spec.family) {
            Ok(line) => line,
            Err(ProgramError::Unreachable { source, .. }) if is_reset(&source) && Instant::now() < reopened_by => {
                std::thread::sleep(REOPEN_PAUSE);
                continue;
            }
            Err(error) => return Err(error),
        };
        let answer_by = Instant::now() + ANSWER_LIMIT;
        // A reset connection refuses the cookie or swallows it.
        let mut heard = line.send(cookie).map_or(Input::Ended, |()| Input::Nothing);
        while let Input::Nothing = heard
            && Instant::now() < answer_by
            && !cancel.load(Ordering::SeqCst)
        {
            heard = line.peek(STEP)?;
        }
        match heard {
            Input::Ended if Instant::now() < reopened_by => std::thread::sleep(REOPEN_PAUSE),
            Input::Nothing if !cancel.load(Ordering::SeqCst) => {
                return Err(ProgramError::Silent {
                    address: line.peer().to_string(),
                    peer: PEER.name,
                    seconds: ANSWER_LIMIT.as_secs(),
                    during: "on its control connection".into(),
                });
            }
            _ => return Ok(line),
        }
    }
}

/// A server that opens one direction's streams alone.
fn one_direction() -> ProgramError {
    ProgramError::unsupported(
        say!("`--both` with this server"),
        say!("iperf3 before 3.7 measures one direction at a time; use `--reverse`, or leave it out"),
    )
}

/// Whether both directions were requested and none but refusals, a byte for each stream, came back.
fn nothing_came_back(spec: &Spec, ran: &Ran) -> bool {
    let returned = ran.legs.legs.iter().map(|leg| leg.bytes_received).sum::<u64>();
    spec.direction == Direction::Both && returned <= u64::from(spec.flows)
}

/// The error of a server that closed the connection, which one of a single direction does when it hears of streams that it has refused.
fn explained(error: ProgramError, one_way: bool) -> ProgramError {
    match error {
        ProgramError::Peer { .. } if one_way => ProgramError::unsupported(
            say!("`--both` with this server"),
            say!(
                "it closed the connection without an answer, like iperf3 before 3.7, which measures one direction at a \
             time; use `--reverse`, or leave it out"
            ),
        ),
        error => error,
    }
}

/// Whether a connection was reset as soon as it stood. For a reset whose error another call has taken, the standard library has an
/// error without a number, as for a connection that timed out.
fn is_reset(source: &std::io::Error) -> bool {
    match source.kind() {
        ErrorKind::ConnectionReset => true,
        ErrorKind::TimedOut => false,
        _ => source.raw_os_error().is_none(),
    }
}

impl Test<'_> {
    fn conduct(mut self) -> Result<Sides, ProgramError> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let send = std::mem::take(&mut self.turn.send);
            self.line.send(&send)?;
            let mut done = false;
            for action in std::mem::take(&mut self.turn.actions) {
                done |= self.act(action)?;
            }
            if done {
                self.line.send(&self.turn.send)?;
                return self.sides();
            }
            // The actions may have queued more output, and the server may continue before it has seen the last
            // stream.
            if !self.turn.send.is_empty() || !self.turn.actions.is_empty() {
                continue;
            }
            let ran = self.ran.as_ref();
            let one_way = ran.is_some_and(|ran| nothing_came_back(self.spec, ran));
            self.listen(&mut buffer).map_err(|error| explained(error, one_way))?;
        }
    }

    /// Receives the server's next message.
    fn listen(&mut self, buffer: &mut [u8]) -> Result<(), ProgramError> {
        let (cancel, measured) = (self.cancel, self.ran.is_some());
        let cancelled = || cancel.load(Ordering::SeqCst) && !measured;
        let during = "on its control connection";
        let wait = Wait { program: PEER.name, limit: ANSWER_LIMIT, during, cancelled: &cancelled };
        let heard = self.line.wait(buffer, &wait);
        if let Err(ProgramError::Interrupted) = heard {
            self.machine.terminate(&mut self.turn);
            self.line.send(&self.turn.send)?;
        }
        let wrong = |error| self.line.peer_error(error);
        match heard? {
            Some(count) => self.machine.receive(&buffer[..count], &mut self.turn).map_err(wrong),
            None => self.machine.ended().map_err(wrong).and(Err(ProgramError::Interrupted)),
        }
    }

    /// Carries out an action; true when the session is complete.
    fn act(&mut self, action: ClientAction) -> Result<bool, ProgramError> {
        match action {
            ClientAction::OpenStreams => {
                self.streams = Some(self.open()?);
                // The server's clock runs from its next message on.
                self.observer.starting(self.begun.elapsed().as_nanos() as u64);
            }
            ClientAction::Run => {
                let streams = self.streams.take().ok_or(ProgramError::Interrupted)?;
                let ran = self.run(streams);
                self.observer.stopped();
                self.ran = Some(ran?);
            }
            ClientAction::Results => {
                let ours = self.ran.as_ref().map(results::ours).ok_or(ProgramError::Interrupted)?;
                self.machine.results(&ours, &mut self.turn).map_err(|error| self.line.peer_error(error))?;
            }
            ClientAction::ProgramResults(peer_results) => self.peer_results = Some(peer_results),
            ClientAction::Done => return Ok(true),
        }
        Ok(false)
    }

    fn open(&mut self) -> Result<Streams, ProgramError> {
        let mut streams = Streams::new(Role::Active, self.spec, true);
        let target = self.line.peer();
        for number in 0..streams.wanted() {
            self.poll_control()?;
            if self.started_in_one_direction() {
                return Err(one_direction());
            }
            let socket = programs::dial(self.spec, target, number as u32)?;
            let socket = if self.spec.transport == TransportName::Udp {
                self.open_udp(socket)?
            } else {
                self.send_cookie(socket)?
            };
            streams.push(socket);
        }
        Ok(streams)
    }

    /// Whether the server has started before all streams of both directions were open.
    fn started_in_one_direction(&self) -> bool {
        self.machine.is_started() && self.spec.direction == Direction::Both
    }

    /// Checks for messages of the server and for cancellation while streams open.
    fn poll_control(&mut self) -> Result<(), ProgramError> {
        if self.cancel.load(Ordering::SeqCst) {
            self.machine.terminate(&mut self.turn);
            self.line.send(&self.turn.send)?;
            return Err(ProgramError::Interrupted);
        }
        let mut buffer = [0; 1024];
        match self.line.try_receive(&mut buffer)? {
            Input::Nothing => Ok(()),
            Input::Bytes(count) => {
                self.machine.receive(&buffer[..count], &mut self.turn).map_err(|error| self.line.peer_error(error))
            }
            Input::Ended => {
                self.machine.ended().map_err(|error| self.line.peer_error(error)).and(Err(ProgramError::Interrupted))
            }
        }
    }

    /// Opens a UDP stream: sends the request until the server answers. With reverse, data may arrive before the
    /// answer.
    fn open_udp(&mut self, socket: OwnedFd) -> Result<OwnedFd, ProgramError> {
        let target = self.line.peer();
        let failed = |source: std::io::Error| ProgramError::socket("open a stream to", target, source);
        socket2::SockRef::from(&socket).set_read_timeout(Some(STEP)).map_err(failed)?;
        let mut due = Instant::now();
        let deadline = due + UDP_OPEN_LIMIT;
        let mut buffer = vec![0; 1 << 16];
        while Instant::now() < deadline {
            self.poll_control()?;
            if Instant::now() >= due {
                rustix::net::send(&socket, &datagram::REQUEST, SendFlags::NOSIGNAL)
                    .map_err(|errno| failed(errno.into()))?;
                due = Instant::now() + UDP_OPEN_RETRY;
            }
            match rustix::net::recv(&socket, &mut *buffer, RecvFlags::empty()) {
                Ok((_, count)) if datagram::is_reply(&buffer[..count]) => return Ok(socket),
                // It has started without this stream, and closed its port.
                Err(errno) if !would_block(&errno.into()) && self.started_in_one_direction() => {
                    return Err(one_direction());
                }
                Err(errno) if !would_block(&errno.into()) => {
                    // The port is not open yet, which ICMP reports at once.
                    std::thread::sleep(STEP);
                    due = Instant::now();
                }
                _ => {}
            }
        }
        if self.started_in_one_direction() {
            return Err(one_direction());
        }
        Err(ProgramError::Silent {
            address: target.to_string(),
            peer: PEER.name,
            seconds: UDP_OPEN_LIMIT.as_secs(),
            during: "over UDP: a firewall may block UDP".into(),
        })
    }

    /// Sends the cookie on a TCP stream; the server answers only to refuse.
    fn send_cookie(&self, socket: OwnedFd) -> Result<OwnedFd, ProgramError> {
        let mut left: &[u8] = self.cookie.bytes();
        while !left.is_empty() {
            let sent = rustix::net::send(&socket, left, SendFlags::NOSIGNAL)
                .map_err(|source| ProgramError::socket("open a stream to", self.line.peer(), source))?;
            left = &left[sent..];
        }
        Ok(socket)
    }

    fn run(&mut self, streams: Streams) -> Result<Ran, ProgramError> {
        let Self { line, machine, turn, cancel, observer, cancelled, .. } = self;
        let mut wrong: Option<ProgramError> = None;
        let mut buffer = [0; 1024];
        let mut live = |report| observer.live(report);
        let ran = streams.run(|| {}, STEP, &mut live, &mut |signals, _| {
            if cancel.load(Ordering::SeqCst) {
                *cancelled = true;
                signals.stop();
            }
            if wrong.is_some() {
                return false;
            }
            // A message at this point means that the server stops or has an error.
            wrong = match line.try_receive(&mut buffer) {
                Ok(Input::Nothing) => None,
                Ok(Input::Bytes(count)) => {
                    machine.receive(&buffer[..count], turn).err().map(|error| line.peer_error(error))
                }
                Ok(Input::Ended) => machine.ended().err().map(|error| line.peer_error(error)),
                Err(error) => Some(error),
            };
            if wrong.is_some() {
                signals.abort();
            }
            // This end's clock decides what counts.
            false
        });
        if let Some(error) = wrong {
            return Err(explained(error, ran.is_ok_and(|ran| nothing_came_back(self.spec, &ran))));
        }
        let ran = ran?;
        if !matches!(self.spec.stop, Stop::TimeNs(_)) {
            // A fixed amount must arrive completely. Data in flight at the end of a timed test is not counted,
            // as in iperf3.
            ran.drain(Duration::from_nanos(self.spec.stall_ns));
        }
        // At once: the server's clock runs on until it has this.
        self.machine.end(&mut self.turn).map_err(|error| self.line.peer_error(error))?;
        let send = std::mem::take(&mut self.turn.send);
        self.line.send(&send)?;
        Ok(ran)
    }

    fn sides(self) -> Result<Sides, ProgramError> {
        let (Some(mut ran), Some(peer_results)) = (self.ran, self.peer_results) else {
            return Err(ProgramError::Interrupted);
        };
        // It turned the others away, perhaps only after it had started the test.
        if self.spec.direction == Direction::Both && (1..ran.received.len()).contains(&peer_results.streams.len()) {
            return Err(one_direction());
        }
        let mut near = ran.legs.legs.pop().unwrap_or_default();
        near.cut_short |= self.cancelled;
        results::add_received(&mut near, &ran);
        let has_time = peer_results.streams.iter().any(|stream| stream.end_time_s.is_some_and(|seconds| seconds > 0.0));
        let own_ns = ran.legs.elapsed_ns.saturating_sub(self.spec.warmup_ns);
        let mut far = results::far(self.spec, &peer_results, own_ns);
        results::add_warm_up(self.spec, &near, &mut far, &ran);
        // A warm-up ends by each end's own clock.
        let warm = self.spec.warmup_ns > 0;
        let idle = Idle { before_ns: if warm { 0 } else { ran.idle.before_ns }, ..ran.idle };
        idle.lengthen(&mut near);
        if has_time {
            idle.shorten(&mut far, self.spec.transport == TransportName::Udp);
        }
        // Without this there would be a trial without a value.
        let silent = self.spec.transport != TransportName::Udp
            && near.bytes_sent > 0
            && far.bytes_received == 0
            && !self.cancelled;
        let unreported = silent.then(|| say!("{} reports that it received no data", PEER.name));
        // The server is free for the next test once it has closed; close the streams first.
        ran.sockets.clear();
        self.line.close(CLOSE_LIMIT);
        Ok(Sides {
            near,
            far,
            failure: ran.legs.failure.map(|error| error.say()).or(unreported),
            elapsed_ns: ran.legs.elapsed_ns,
            version: results::version(&peer_results),
        })
    }
}
