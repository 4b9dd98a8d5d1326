//! Our local side at a remote one.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::transport::at_port;
use model::{Role, Spec, TransportName};
use peer_wire::Turn;
use peer_wire::nttcp::{FIRST_DATA_PORT, Local, LocalAction, NttcpError, Options, PEER, Statistics};

use super::{MARK, request, results, sort};
use crate::line::{Input, Line, Wait};
use crate::marks::{MarkTimes, MarkedDatagrams, stop_at_end};
use crate::plain::{self, Moved, Work};
use crate::{ProgramError, Sides, TrialObserver};

/// How long the remote side may take for each thing that it has to say or do.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Ports that are tried for our data socket.
const PORTS: u16 = 1000;
/// Interval between end marks, and their number.
const MARK_GAP: Duration = Duration::from_secs(2);
const END_MARKS: u32 = 3;

struct Session<'a> {
    spec: &'a Spec,
    line: Line,
    machine: Local,
    turn: Turn<LocalAction>,
    cancel: &'a AtomicBool,
    version: Option<String>,
    /// The last verbose line of the remote side: the reason, if it fails.
    verbose_line: Option<String>,
    port: Option<u16>,
    peer_statistics: Option<Statistics>,
    ended: bool,
}

/// Measures once.
pub(super) fn measure(
    spec: &Spec,
    host: &str,
    observer: &mut dyn TrialObserver,
    cancel: &AtomicBool,
) -> Result<Sides, ProgramError> {
    let options = request::options(spec)?;
    let begun = Instant::now();
    let line = Line::connect(PEER.name, host, PEER.port, spec.family)?;
    let mut turn = Turn::default();
    let machine = Local::open(&options, &mut turn).map_err(|error| line.peer_error(error))?;
    let (version, verbose_line, port, peer_statistics) = (None, None, None, None);
    let mut session =
        Session { spec, line, machine, turn, cancel, version, verbose_line, port, peer_statistics, ended: false };
    session.flush()?;
    let socket = if options.transmits { session.listen(&options)? } else { session.dial()? };
    observer.starting(begun.elapsed().as_nanos() as u64);
    let moved = session.run(socket, observer);
    observer.stopped();
    let mut moved = moved?;
    let peer_statistics = session.statistics(&moved)?;
    let near = session.near(&mut moved, &peer_statistics);
    let mut far = results::far(spec, &near, &peer_statistics);
    moved.idle.shorten(&mut far, spec.transport == TransportName::Udp);
    Ok(Sides {
        far,
        near,
        failure: moved.failure(),
        elapsed_ns: moved.legs.elapsed_ns,
        version: session.version.unwrap_or_else(|| PEER.name.into()),
    })
}

impl Session<'_> {
    fn flush(&mut self) -> Result<(), ProgramError> {
        let send = std::mem::take(&mut self.turn.send);
        self.line.send(&send)
    }

    /// Processes what the remote side sent.
    fn take(&mut self, heard: &[u8]) -> Result<(), ProgramError> {
        self.machine.receive(heard, &mut self.turn).map_err(|error| self.line.peer_error(error))?;
        for action in std::mem::take(&mut self.turn.actions) {
            match action {
                LocalAction::Listen => {}
                LocalAction::Transmit(port) => self.port = Some(port),
                LocalAction::PeerStatistics(peer_statistics) => self.peer_statistics = Some(peer_statistics),
                LocalAction::Verbose(line) => {
                    self.version = self.version.take().or_else(|| results::version(&line));
                    self.verbose_line = Some(line);
                }
            }
        }
        Ok(())
    }

    /// Waits for the remote side's next message.
    fn receive_next(&mut self, limit: Duration, during: &'static str) -> Result<(), ProgramError> {
        let (mut buffer, cancel) = ([0; 4096], self.cancel);
        let cancelled = || cancel.load(Ordering::SeqCst);
        let wait = Wait { program: PEER.name, limit, during, cancelled: &cancelled };
        match self.line.wait(&mut buffer, &wait)? {
            Some(count) => self.take(&buffer[..count]),
            None => Err(self.left()),
        }
    }

    /// The remote side closed the connection: its last verbose line has the reason, if there is one.
    fn left(&self) -> ProgramError {
        let closed = |what: NttcpError| PEER.error("before it reported statistics", what);
        let ended = self.machine.ended(true).err();
        let error = match (&self.verbose_line, ended) {
            (Some(line), _) => closed(NttcpError::ClosedAfter { line: line.clone() }),
            (None, Some(error)) => error,
            (None, None) => closed(NttcpError::Closed),
        };
        self.line.peer_error(error)
    }

    /// Opens the data socket and waits until the remote side uses it.
    fn listen(&mut self, options: &Options) -> Result<OwnedFd, ProgramError> {
        let (here, peer) = (self.line.local_address()?.ip(), self.line.peer().ip());
        let ports = FIRST_DATA_PORT..FIRST_DATA_PORT + PORTS;
        let deadline = Instant::now() + ANSWER_LIMIT;
        let spec = self.spec;
        let socket = if options.udp {
            let socket = plain::bind(here, ports, &self.spec.near)?;
            self.listening(socket.local_addr())?;
            plain::connect_to_first_sender(&socket, peer, &mut || self.waits(deadline))?.then(|| OwnedFd::from(socket))
        } else {
            let listener = plain::listen(here, ports, &spec.near)?;
            self.listening(listener.local_addr())?;
            plain::accept(&listener, peer, spec, Role::Active, &mut || self.waits(deadline))?
        };
        match socket {
            Some(socket) => Ok(socket),
            None if self.cancel.load(Ordering::SeqCst) => Err(ProgramError::Interrupted),
            None if self.ended => Err(self.left()),
            None => Err(ProgramError::Silent {
                address: self.line.peer().to_string(),
                peer: PEER.name,
                seconds: ANSWER_LIMIT.as_secs(),
                during: "while its data was expected: a firewall may block it".into(),
            }),
        }
    }

    fn listening(&mut self, address: std::io::Result<SocketAddr>) -> Result<(), ProgramError> {
        let address = address.map_err(|source| ProgramError::socket("receive data from", self.line.peer(), source))?;
        self.machine.listening(address.port(), &mut self.turn).map_err(|error| self.line.peer_error(error))?;
        self.flush()
    }

    /// Whether the remote side may still connect; processes its messages.
    fn waits(&mut self, deadline: Instant) -> bool {
        let mut buffer = [0; 4096];
        self.ended |= match self.line.try_receive(&mut buffer) {
            Ok(Input::Nothing) => false,
            Ok(Input::Bytes(count)) => self.take(&buffer[..count]).is_err(),
            Ok(Input::Ended) | Err(_) => true,
        };
        !self.ended && Instant::now() < deadline && !self.cancel.load(Ordering::SeqCst)
    }

    /// Connects to where the remote side listens.
    fn dial(&mut self) -> Result<OwnedFd, ProgramError> {
        let port = loop {
            if let Some(port) = self.port {
                break port;
            }
            self.receive_next(ANSWER_LIMIT, "while its data port was expected")?;
        };
        plain::dial(self.spec, at_port(self.line.peer(), port), 0)
    }

    fn run(&mut self, socket: OwnedFd, observer: &mut dyn TrialObserver) -> Result<Moved, ProgramError> {
        let work = Work::new(self.spec, Role::Active);
        let mut live = |report| observer.live(report);
        let mark_times = Arc::new(MarkTimes::default());
        let mut on_step = stop_at_end(mark_times.clone(), || !self.cancel.load(Ordering::SeqCst));
        if self.spec.transport != TransportName::Udp {
            return work.streams(vec![socket], &mut live, &mut on_step);
        }
        if plain::sends(self.spec, Role::Active) {
            plain::send_mark(&socket, &MARK);
            let moved = work.datagrams(socket, MarkedDatagrams::sent(mark_times), &mut live, &mut on_step)?;
            moved.sockets.iter().for_each(|socket| plain::send_mark(socket, &MARK));
            return Ok(moved);
        }
        work.datagrams(socket, MarkedDatagrams::new(sort(), mark_times), &mut live, &mut on_step)
    }

    /// Waits for the remote side's statistics; sends end marks again, because they may be lost.
    fn statistics(&mut self, moved: &Moved) -> Result<Statistics, ProgramError> {
        let marks = plain::sends(self.spec, Role::Active) && self.spec.transport == TransportName::Udp;
        let mut left = if marks { END_MARKS - 1 } else { 0 };
        loop {
            if let Some(peer_statistics) = self.peer_statistics {
                return Ok(peer_statistics);
            }
            let limit = if left > 0 { MARK_GAP } else { ANSWER_LIMIT };
            match self.receive_next(limit, "while its statistics were expected") {
                Err(ProgramError::Silent { .. }) if left > 0 => {
                    left -= 1;
                    moved.sockets.iter().for_each(|socket| plain::send_mark(socket, &MARK));
                }
                heard => heard?,
            }
        }
    }

    /// This end's tally; the other end's count shows which datagrams are missing.
    fn near(&self, moved: &mut Moved, peer_statistics: &Statistics) -> model::EndTally {
        let mut near = moved.tally();
        near.cut_short |= self.cancel.load(Ordering::SeqCst);
        if let Some(datagrams) = near.datagrams.as_mut().filter(|_| !plain::sends(self.spec, Role::Active)) {
            datagrams.missed = Some((peer_statistics.bytes / self.spec.block).saturating_sub(datagrams.received));
        }
        near
    }
}
