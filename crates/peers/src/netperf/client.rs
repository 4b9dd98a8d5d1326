//! Our client at a netserver.

use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::TrialPlan;
use engine::transport::{Link, programs};
use model::{Direction, Leg, Pattern, Role, Spec, Stop, TransportName};
use peer_wire::Turn;
use peer_wire::netperf::{Client, ClientAction, Counted, PEER};
use text::Said;

use super::unnumbered::{Unnumbered, send_end_marks};
use super::{STEP, request, results};
use crate::legs::{self, Ran};
use crate::line::{Input, Line, Wait, would_block};
use crate::{ProgramError, Sides, TrialObserver, uncounted};

/// Time limit for a server's answer, as in netperf.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// How long a server that ends by itself may take beyond its time, ns.
const LATE_NS: u64 = 2_000_000_000;
/// How long it may take to close at the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// What this end keeps of the data connection that the engine uses.
enum Data {
    Tcp(TcpStream),
    Udp(UdpSocket),
    /// One connection for each transaction.
    Calls,
}

/// One of the simultaneous tests. Each has its own control connection, as if netperf were started several
/// times.
struct Call {
    /// Its own part of the measurement: one flow in one direction.
    spec: Spec,
    line: Line,
    machine: Client,
    turn: Turn<ClientAction>,
    counted: Option<Counted>,
}

/// Measures once.
pub(super) fn measure(
    spec: &Spec,
    host: &str,
    observer: &mut dyn TrialObserver,
    cancel: &AtomicBool,
) -> Result<Sides, ProgramError> {
    request::request(spec, 0)?;
    let begun = Instant::now();
    let mut calls = parts(spec).map(|part| Call::open(part, host)).collect::<Result<Vec<_>, _>>()?;
    let mut targets = Vec::new();
    for call in &mut calls {
        targets.push(call.ready(cancel)?);
    }
    // A sending server starts when its connection opens, so open all of them close together.
    let (mut data, mut links) = (Vec::new(), Vec::new());
    for (call, target) in calls.iter().zip(targets) {
        let (one, link) = open(&call.spec, target)?;
        data.push(one);
        links.push(link);
    }
    observer.starting(begun.elapsed().as_nanos() as u64);
    let mut cancelled = false;
    let mut wrong: Option<ProgramError> = None;
    let ran = legs::run(&plan(spec), links, STEP, &mut |report| observer.live(report), &mut |signals, _| {
        if cancel.load(Ordering::SeqCst) {
            cancelled = true;
            signals.stop();
        }
        if wrong.is_none() {
            wrong = calls.iter_mut().find_map(|call| call.poll_control().err());
        }
        if wrong.is_some() {
            signals.abort();
        }
    });
    if wrong.is_none() && ran.is_ok() {
        // At once: the server's clock runs on until it has the end of the data.
        data.iter().for_each(|data| close(data, cancel));
    }
    observer.stopped();
    if let Some(error) = wrong {
        return Err(error);
    }
    let Ran { legs: mut ran, idle } = ran?;
    drop(data);
    let mut counted = Vec::new();
    for mut call in calls {
        counted.push(call.counted(cancel)?);
        call.line.close(CLOSE_LIMIT);
    }
    let mut near = ran.legs.pop().unwrap_or_default();
    near.cut_short |= cancelled;
    let mut far = results::far(spec, &counted);
    if spec.pattern == Pattern::Stream && spec.transport != TransportName::Udp {
        idle.shorten(&mut far, false);
    }
    if spec.transport != TransportName::Udp && spec.pattern == Pattern::Stream && spec.direction != Direction::Send {
        // netserver's timer interrupts its last send, whose bytes it does not count.
        uncounted::add_sent(&near, &mut far, spec.block);
    }
    Ok(Sides {
        near,
        far,
        failure: ran.failure.map(|error| error.say()),
        elapsed_ns: ran.elapsed_ns,
        version: crate::ProgramProtocol::version(&super::Netperf).unwrap_or_default().into(),
    })
}

/// The tests that a measurement is made of, in the engine's order of their links.
fn parts(spec: &Spec) -> impl Iterator<Item = Spec> {
    let directions = match spec.direction {
        Direction::Both => vec![Direction::Send, Direction::Reverse],
        one => vec![one],
    };
    let one = Spec { flows: 1, rate_bps: None, ..spec.clone() };
    (0..spec.flows).flat_map(move |_| {
        let one = one.clone();
        directions.clone().into_iter().map(move |direction| Spec { direction, ..one.clone() })
    })
}

/// The measurement as this end runs it.
fn plan(spec: &Spec) -> TrialPlan {
    let spec = until(spec);
    let leg = Leg { block: spec.block, reply: spec.reply_bytes(), stop: spec.stop, expected_ns: 0 };
    TrialPlan {
        role: Role::Active,
        trial: 0,
        flows: 0..spec.flows,
        legs: vec![leg],
        path: model::PathTimes::default(),
        spec,
    }
}

impl Call {
    /// Requests a test.
    fn open(spec: Spec, host: &str) -> Result<Self, ProgramError> {
        let mut line = Line::connect(PEER.name, host, PEER.port, spec.family)?;
        let request = request::request(&spec, if line.peer().is_ipv4() { 4 } else { 6 })?;
        let mut turn = Turn::default();
        let machine = Client::open(&request, &mut turn);
        line.send(&std::mem::take(&mut turn.send))?;
        Ok(Self { spec, line, machine, turn, counted: None })
    }

    /// Waits until the server is ready; returns its data address.
    fn ready(&mut self, cancel: &AtomicBool) -> Result<SocketAddr, ProgramError> {
        loop {
            if let ClientAction::Run(ready) = self.next(cancel)? {
                let mut target = self.line.peer();
                target.set_port(ready.data_port);
                return Ok(target);
            }
        }
    }

    /// Receives control messages while data flows. A server that has reported has closed its data connection.
    fn poll_control(&mut self) -> Result<(), ProgramError> {
        if self.counted.is_some() {
            return Ok(());
        }
        let mut buffer = [0; 1024];
        match self.line.try_receive(&mut buffer)? {
            Input::Nothing => {}
            Input::Bytes(count) => self.process(&buffer[..count])?,
            Input::Ended => self.machine.ended().map_err(|error| self.line.peer_error(error))?,
        }
        self.counted = self.turn.actions.drain(..).find_map(counts);
        Ok(())
    }

    /// What the server counted.
    fn counted(&mut self, cancel: &AtomicBool) -> Result<Counted, ProgramError> {
        loop {
            match self.counted.take() {
                Some(counted) => return Ok(counted),
                None => self.counted = counts(self.next(cancel)?),
            }
        }
    }

    fn process(&mut self, bytes: &[u8]) -> Result<(), ProgramError> {
        self.machine.receive(bytes, &mut self.turn).map_err(|error| self.line.peer_error(error))
    }

    /// The server's next message.
    fn next(&mut self, cancel: &AtomicBool) -> Result<ClientAction, ProgramError> {
        let mut buffer = [0; 1024];
        let cancelled = || cancel.load(Ordering::SeqCst);
        let during = "on its control connection";
        let wait = Wait { program: PEER.name, limit: ANSWER_LIMIT, during, cancelled: &cancelled };
        loop {
            if let Some(action) = self.turn.actions.pop() {
                return Ok(action);
            }
            match self.line.wait(&mut buffer, &wait)? {
                Some(count) => self.process(&buffer[..count])?,
                None => {
                    self.machine.ended().map_err(|error| self.line.peer_error(error))?;
                    return Err(ProgramError::Interrupted);
                }
            }
        }
    }
}

fn counts(action: ClientAction) -> Option<Counted> {
    match action {
        ClientAction::Counted(counted) => Some(counted),
        ClientAction::Run(_) => None,
    }
}

/// The measurement as this end runs it: a sending server ends it shortly after the requested time.
fn until(spec: &Spec) -> Spec {
    let stop = match spec.stop {
        Stop::TimeNs(ns) if spec.direction == Direction::Reverse => Stop::TimeNs(ns + LATE_NS),
        stop => stop,
    };
    Spec { stop, ..spec.clone() }
}

fn open(spec: &Spec, target: SocketAddr) -> Result<(Data, Link), ProgramError> {
    let failed = |source| ProgramError::socket("duplicate the connection to", target, source);
    if spec.pattern == Pattern::Crr {
        return Ok((Data::Calls, programs::callers(spec, target)?));
    }
    let socket: OwnedFd = programs::dial(spec, target, 0)?;
    let kept = socket.try_clone().map_err(failed)?;
    if spec.transport == TransportName::Udp {
        return Ok((Data::Udp(kept.into()), programs::datagrams(socket, Unnumbered::default())?));
    }
    Ok((Data::Tcp(kept.into()), programs::stream(socket, spec)))
}

/// Ends the data and waits until the server has read everything and closed.
fn close(data: &Data, cancel: &AtomicBool) {
    match data {
        Data::Calls => {}
        Data::Udp(socket) => send_end_marks(socket),
        Data::Tcp(socket) => {
            let deadline = Instant::now() + ANSWER_LIMIT;
            let (mut socket, mut rest) = (socket, vec![0; 64 << 10]);
            // If the server has closed, the control connection shows why.
            let _ = socket.shutdown(Shutdown::Write);
            let _ = socket.set_nonblocking(false);
            let _ = socket.set_read_timeout(Some(STEP));
            while Instant::now() < deadline && !cancel.load(Ordering::SeqCst) {
                match socket.read(&mut rest) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(error) if would_block(&error) => {}
                    Err(_) => return,
                }
            }
        }
    }
}
