//! Our client at a server of nuttcp.

use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::transport::at_port;
use model::{Role, Spec, TransportName};
use peer_wire::Turn;
use peer_wire::nuttcp::{Client, ClientAction, PEER, PathMark, Report};

use super::interim::Numbered;
use super::{request, results, sort};
use crate::line::{Input, Line, Wait};
use crate::marks::{MarkTimes, MarkedDatagrams, stop_at_end};
use crate::plain::{self, Moved, Work};
use crate::{ProgramError, Sides, TrialObserver};

/// How long the server may take for each thing that it has to say or do.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Number of first ports that are tried for consecutive free ports.
const PORTS: u16 = 1000;
/// Intervals between the marks before and after the data.
pub(super) const BEGIN_GAP: Duration = Duration::from_millis(250);
pub(super) const END_GAP: Duration = Duration::from_millis(500);

struct Session<'a> {
    spec: &'a Spec,
    line: Line,
    machine: Client,
    turn: Turn<ClientAction>,
    cancel: &'a AtomicBool,
    run: bool,
    version: Option<String>,
    ended: bool,
}

/// The sockets for the server's data.
enum DataListener {
    Tcp(Vec<TcpListener>),
    Udp(UdpSocket),
}

/// Measures once.
pub(super) fn measure(
    spec: &Spec,
    host: &str,
    observer: &mut dyn TrialObserver,
    cancel: &AtomicBool,
) -> Result<Sides, ProgramError> {
    let begun = Instant::now();
    let line = Line::connect(PEER.name, host, PEER.port, spec.family)?;
    // nuttcp's own ports are consecutive as well.
    let control = line.peer().port();
    let first = control.checked_add(1 + spec.flows as u16).map_or(PEER.port, |_| control) + 1;
    let receives = !plain::sends(spec, Role::Active);
    let (data_listener, port) = match receives {
        true => DataListener::open(spec, line.local_address()?.ip(), first)
            .map(|(data_listener, port)| (Some(data_listener), port))?,
        false => (None, first),
    };
    let mut turn = Turn::default();
    let machine = Client::open(request::options(spec, port)?, &mut turn);
    let mut session = Session { spec, line, machine, turn, cancel, run: false, version: None, ended: false };
    session.negotiate()?;
    let sockets = match data_listener {
        Some(data_listener) => session.receive(data_listener)?,
        None => session.dial(port)?,
    };
    observer.starting(begun.elapsed().as_nanos() as u64);
    let moved = session.run(sockets, observer);
    observer.stopped();
    let mut moved = moved?;
    let theirs = session.report(&moved)?;
    let mut near = moved.tally();
    near.cut_short |= cancel.load(Ordering::SeqCst);
    let mut far = results::far(spec, &near, &theirs);
    moved.idle.shorten(&mut far, spec.transport == TransportName::Udp);
    if let (Some(datagrams), Some(sent), true) = (near.datagrams.as_mut(), far.datagrams, receives) {
        datagrams.missed = Some(sent.sent.saturating_sub(datagrams.received));
    }
    Ok(Sides {
        near,
        far,
        failure: moved.failure(),
        elapsed_ns: moved.legs.elapsed_ns,
        version: session.version.unwrap_or_else(|| PEER.name.into()),
    })
}

impl DataListener {
    /// Listens on one port per connection, consecutive; returns the first.
    fn open(spec: &Spec, here: IpAddr, first: u16) -> Result<(Self, u16), ProgramError> {
        let mut last = None;
        for port in (first..=u16::MAX).take(usize::from(PORTS)) {
            let opened = match spec.transport == TransportName::Udp {
                true => plain::bind(here, [port], &spec.near).map(Self::Udp),
                false => (0..spec.flows as u16)
                    .map(|flow| plain::listen(here, port.checked_add(flow), &spec.near))
                    .collect::<Result<_, _>>()
                    .map(Self::Tcp),
            };
            match opened {
                Ok(data_listener) => return Ok((data_listener, port)),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(ProgramError::Interrupted))
    }
}

impl Session<'_> {
    fn flush(&mut self) -> Result<(), ProgramError> {
        let send = std::mem::take(&mut self.turn.send);
        self.line.send(&send)
    }

    /// Processes what the server sent.
    fn take(&mut self, heard: &[u8]) -> Result<(), ProgramError> {
        self.version = self.version.take().or_else(|| version(heard));
        self.machine.receive(heard, &mut self.turn).map_err(|error| self.line.peer_error(error))?;
        self.run |= std::mem::take(&mut self.turn.actions).contains(&ClientAction::Run);
        self.flush()
    }

    /// Waits for the server's next message; false at the end of the connection.
    fn receive_next(&mut self, limit: Duration, during: &'static str) -> Result<bool, ProgramError> {
        let (mut buffer, cancel) = ([0; 4096], self.cancel);
        let cancelled = || cancel.load(Ordering::SeqCst);
        let wait = Wait { program: PEER.name, limit, during, cancelled: &cancelled };
        match self.line.wait(&mut buffer, &wait)? {
            Some(count) => self.take(&buffer[..count]).map(|()| true),
            None => Ok(false),
        }
    }

    /// Sends the request and waits until the server accepts it.
    fn negotiate(&mut self) -> Result<(), ProgramError> {
        self.flush()?;
        while !self.run {
            if !self.receive_next(ANSWER_LIMIT, "while its OK was expected")? {
                self.machine.ended().map_err(|error| self.line.peer_error(error))?;
            }
        }
        Ok(())
    }

    fn dial(&mut self, port: u16) -> Result<Vec<OwnedFd>, ProgramError> {
        let (spec, host) = (self.spec, self.line.peer());
        (0..spec.flows).map(|flow| plain::dial(spec, at_port(host, port + flow as u16), flow)).collect()
    }

    /// Waits until the server has connected, or sent its first datagram.
    fn receive(&mut self, data_listener: DataListener) -> Result<Vec<OwnedFd>, ProgramError> {
        let (spec, peer, deadline) = (self.spec, self.line.peer().ip(), Instant::now() + ANSWER_LIMIT);
        let mut keep_waiting = || self.waits(deadline);
        let sockets = match data_listener {
            DataListener::Udp(socket) => {
                plain::connect_to_first_sender(&socket, peer, &mut keep_waiting)?.then(|| vec![OwnedFd::from(socket)])
            }
            DataListener::Tcp(listeners) => listeners
                .iter()
                .map(|listener| plain::accept(listener, peer, spec, Role::Active, &mut keep_waiting))
                .collect::<Result<Option<Vec<_>>, _>>()?,
        };
        match sockets {
            Some(sockets) => Ok(sockets),
            None if self.cancel.load(Ordering::SeqCst) => Err(ProgramError::Interrupted),
            None => {
                self.machine.ended().map_err(|error| self.line.peer_error(error))?;
                Err(ProgramError::Silent {
                    address: self.line.peer().to_string(),
                    peer: PEER.name,
                    seconds: ANSWER_LIMIT.as_secs(),
                    during: "while its data was expected: a firewall may block it".into(),
                })
            }
        }
    }

    /// Whether the server may still connect; processes its messages.
    fn waits(&mut self, deadline: Instant) -> bool {
        let mut buffer = [0; 4096];
        self.ended |= match self.line.try_receive(&mut buffer) {
            Ok(Input::Nothing) => false,
            Ok(Input::Bytes(count)) => self.take(&buffer[..count]).is_err(),
            Ok(Input::Ended) | Err(_) => true,
        };
        !self.ended && Instant::now() < deadline && !self.cancel.load(Ordering::SeqCst)
    }

    fn run(&mut self, mut sockets: Vec<OwnedFd>, observer: &mut dyn TrialObserver) -> Result<Moved, ProgramError> {
        let Self { spec, line, machine, turn, cancel, ended, .. } = self;
        let work = Work::new(spec, Role::Active);
        let mark_times = Arc::new(MarkTimes::default());
        let mut live = |report| observer.live(report);
        // The server closes the connection behind its report, or dies.
        let mut server_lives = || {
            let mut buffer = [0; 4096];
            *ended |= match line.try_receive(&mut buffer) {
                Ok(Input::Nothing) => false,
                Ok(Input::Bytes(count)) => machine.receive(&buffer[..count], turn).is_err(),
                Ok(Input::Ended) | Err(_) => true,
            };
            !*ended || machine.ended().is_ok()
        };
        let may_continue = || !cancel.load(Ordering::SeqCst) && server_lives();
        let mut on_step = stop_at_end(mark_times.clone(), may_continue);
        if spec.transport != TransportName::Udp {
            return work.streams(sockets, &mut live, &mut on_step);
        }
        let Some(socket) = sockets.pop() else { return Err(ProgramError::Interrupted) };
        if !plain::sends(spec, Role::Active) {
            return work.datagrams(socket, MarkedDatagrams::new(sort, mark_times), &mut live, &mut on_step);
        }
        send_begin_marks(&socket);
        let moved = work.datagrams(socket, Numbered::new(mark_times, spec.block), &mut live, &mut on_step)?;
        moved.sockets.iter().for_each(|socket| plain::send_mark(socket, &PathMark::End(0).bytes()));
        Ok(moved)
    }

    /// Waits for the server's report; sends end marks again, because they may be lost.
    fn report(&mut self, moved: &Moved) -> Result<Report, ProgramError> {
        let marks = plain::sends(self.spec, Role::Active) && self.spec.transport == TransportName::Udp;
        let mut spare = (1..PathMark::ENDS).filter(|_| marks);
        let mut next = spare.next();
        while !self.ended {
            let limit = if next.is_some() { END_GAP } else { ANSWER_LIMIT };
            match (self.receive_next(limit, "while its report was expected"), next) {
                (Err(ProgramError::Silent { .. }), Some(number)) => {
                    moved.sockets.iter().for_each(|socket| plain::send_mark(socket, &PathMark::End(number).bytes()));
                    next = spare.next();
                }
                (heard, _) => self.ended = !heard?,
            }
        }
        self.machine.ended().map_err(|error| self.line.peer_error(error))
    }
}

/// Sends the marks before the data.
pub(super) fn send_begin_marks(socket: &OwnedFd) {
    for number in 0..PathMark::BEGINS {
        plain::send_mark(socket, &PathMark::Begin(number).bytes());
        if number + 1 < PathMark::BEGINS {
            std::thread::sleep(BEGIN_GAP);
        }
    }
}

/// The server's version, from its greeting.
fn version(heard: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(heard).ok()?;
    let number = text.strip_prefix("HELO nuttcp v")?.split_whitespace().next()?;
    Some(format!("{} {number}", PEER.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;

    #[test]
    fn a_version_is_in_the_greeting() {
        assert_eq!(version(b"HELO nuttcp v6.1.2\n").as_deref(), Some("nuttcp 6.1.2"));
        assert_eq!(version(b"OK v6.1.2\n"), None);
    }

    #[test]
    fn ports_in_a_row_are_found_behind_one_that_is_taken() {
        let spec = Spec { flows: 2, ..Spec::new("tcp", Pattern::Stream) };
        let here = IpAddr::from([127, 0, 0, 1]);
        let taken = TcpListener::bind((here, 0)).unwrap();
        let first = taken.local_addr().unwrap().port();
        let (data_listener, port) = DataListener::open(&spec, here, first).unwrap();
        assert!(port > first && matches!(data_listener, DataListener::Tcp(listeners) if listeners.len() == 2));
    }
}
