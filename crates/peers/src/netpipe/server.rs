//! Our receiver for the real NPtcp's transmitter.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use peer_wire::netpipe::{Action, EndRole, Exchange, MARK, Mode, Netpipe, NetpipeError, PEER, SizePlan};
use peer_wire::{Turn, WireError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use text::say;

use super::options::Options;
use crate::session_deadline::{SessionDeadline, SessionDeadlines};
use crate::{ProgramError, Service, acceptor, plain};

const MARK_BYTES: usize = MARK.len();
/// Time limit for a transmitter's first mark, which NPtcp sends at once.
const MARK_LIMIT: Duration = Duration::from_secs(10);
/// Most connections that have not sent it; one more closes the oldest.
const MOST_ARRIVALS: usize = 64;
/// Interval between checks for the end.
const STEP: Duration = Duration::from_millis(50);
/// Time limit for the transmitter: longer than the longest message takes on a slow path.
const SILENCE: Duration = Duration::from_secs(30);

/// Serves on all addresses until the service stops.
pub(super) fn serve(service: &Service) -> Result<(), ProgramError> {
    if service.limits.rate_bps.is_some() {
        return Err(ProgramError::unsupported(
            say!("`--speak netpipe` with `--max-rate`"),
            "NetPIPE has no rate limit; leave one of them out",
        ));
    }
    let options = Options::parse(&service.options)?;
    let listeners = acceptor::open(service)?;
    let session_deadlines = SessionDeadlines::default();
    std::thread::scope(|scope| {
        scope.spawn(|| session_deadlines.watch(service));
        for (listener, address) in &listeners {
            (service.listening)(*address);
            let session_deadlines = &session_deadlines;
            scope.spawn(move || attend(listener, service, session_deadlines, &options));
        }
    });
    Ok(())
}

/// Serves one transmitter after another: only the order in time shows which connection belongs to a test.
fn attend(listener: &TcpListener, service: &Service, session_deadlines: &SessionDeadlines, options: &Options) {
    let mut arrivals = Arrivals::default();
    while !service.stopping() {
        let Some((socket, peer)) = arrivals.next(listener, service) else { continue };
        // NetPIPE's protocol has no refusal.
        let Some(admission) = (service.admit)() else {
            (service.log)(peer, &say!("{peer}: {} refused: another measurement is running", PEER.name));
            continue;
        };
        (service.log)(peer, &say!("{peer}: {} measures", PEER.name));
        let session_deadline = session_deadlines.take(&socket);
        session_deadline.extend(service.hold());
        let session = Session::new(service, listener, &session_deadline, socket, peer);
        let points = session.and_then(|session| session.conduct(options.plan()));
        let said = points.map(|points| say!("{} ended after {points} sizes", PEER.name));
        acceptor::report(service, PEER.name, peer, &session_deadline, said);
        drop(admission);
    }
}

/// Connections that have not sent NetPIPE's first mark yet. They hold nothing and wait for nobody.
#[derive(Default)]
struct Arrivals(VecDeque<Arrival>);

struct Arrival {
    socket: TcpStream,
    peer: SocketAddr,
    since: Instant,
}

impl Arrivals {
    /// The next connection whose first bytes are the mark. Others are closed.
    fn next(&mut self, listener: &TcpListener, service: &Service) -> Option<(TcpStream, SocketAddr)> {
        if let Some((socket, peer)) = plain::next(listener) {
            if self.0.len() >= MOST_ARRIVALS {
                self.0.pop_front();
            }
            self.0.push_back(Arrival { socket, peer, since: Instant::now() });
        }
        let mut ready = None;
        self.0.retain_mut(|arrival| match arrival.first_bytes() {
            FirstBytes::Mark if ready.is_none() => {
                ready = arrival.socket.try_clone().ok().map(|socket| (socket, arrival.peer));
                false
            }
            FirstBytes::Other => {
                let peer = arrival.peer;
                (service.log)(
                    peer,
                    &say!("{peer}: not a {} transmitter: it did not begin with the NetPIPE mark", PEER.name),
                );
                false
            }
            _ => arrival.since.elapsed() < MARK_LIMIT,
        });
        ready
    }
}

/// What a connection has sent.
enum FirstBytes {
    Mark,
    Other,
    /// Too few bytes to decide.
    Few,
}

impl Arrival {
    fn first_bytes(&self) -> FirstBytes {
        let mut bytes = [0; MARK_BYTES];
        let seen = recv(&self.socket, &mut bytes, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        // An end behind the bytes does not show while they are unread.
        let ended = poll(&mut [PollFd::new(&self.socket, PollFlags::RDHUP)], Some(&Timespec::default()));
        match seen {
            Ok((MARK_BYTES, _)) if &bytes == MARK => FirstBytes::Mark,
            Ok((count, _)) if count < MARK_BYTES && bytes[..count] == MARK[..count] && ended != Ok(1) => {
                FirstBytes::Few
            }
            Err(Errno::AGAIN) => FirstBytes::Few,
            _ => FirstBytes::Other,
        }
    }
}

struct Session<'a> {
    service: &'a Service,
    listener: &'a TcpListener,
    session_deadline: &'a SessionDeadline,
    socket: TcpStream,
    peer: SocketAddr,
    message: Vec<u8>,
    /// Bytes after a mark: the start of a message.
    ahead: Vec<u8>,
}

impl<'a> Session<'a> {
    fn new(
        service: &'a Service,
        listener: &'a TcpListener,
        session_deadline: &'a SessionDeadline,
        socket: TcpStream,
        peer: SocketAddr,
    ) -> Result<Self, ProgramError> {
        prepare(&socket, peer)?;
        Ok(Self { service, listener, session_deadline, socket, peer, message: Vec::new(), ahead: Vec::new() })
    }

    /// Answers until the transmitter quits; how many sizes it measured.
    fn conduct(mut self, plan: SizePlan) -> Result<u32, ProgramError> {
        let mut turn = Turn::default();
        let mut machine = Netpipe::open(EndRole::Receiver, plan, &mut turn);
        let mut points = 0;
        let mut buffer = [0; 4096];
        loop {
            let said = self.send(&std::mem::take(&mut turn.send));
            let actions = std::mem::take(&mut turn.actions);
            // A transmitter that ends before the receiver's last size takes the SyncMe for the answer to its
            // QUIT and closes.
            if !actions.contains(&Action::Done) {
                said?;
            }
            if actions.is_empty() {
                let mut input = std::mem::take(&mut self.ahead);
                if input.is_empty() {
                    let Some(count) = self.receive(&mut buffer)? else {
                        machine.ended().map_err(|error| self.peer_error(error))?;
                        return Ok(points);
                    };
                    input.extend_from_slice(&buffer[..count]);
                }
                let mut left = input.as_slice();
                machine.receive(&mut left, &mut turn).map_err(|error| self.peer_error(error))?;
                self.ahead = left.to_vec();
            }
            for action in actions {
                match action {
                    Action::Exchange(exchange) => {
                        let begun = Instant::now();
                        self.exchange(&exchange)?;
                        let seconds = begun.elapsed().as_secs_f64();
                        machine.exchanged(seconds, &mut turn).map_err(|error| self.peer_error(error))?;
                    }
                    Action::Point { .. } => points += 1,
                    // Only transmitters pass sizes.
                    Action::Pass(_) => {}
                    Action::Reset => {
                        self.reconnect()?;
                        machine.reconnected(&mut turn).map_err(|error| self.peer_error(error))?;
                    }
                    Action::Done => return Ok(points),
                }
            }
        }
    }

    /// Moves messages as this end of NPtcp does.
    fn exchange(&mut self, exchange: &Exchange) -> Result<(), ProgramError> {
        let size = usize::try_from(exchange.bytes).unwrap_or(usize::MAX);
        if self.message.len() < size {
            self.message.resize(size, 0);
        }
        let mut message = std::mem::take(&mut self.message);
        let moved = (0..exchange.count).try_for_each(|_| {
            if exchange.mode == Mode::Both {
                self.send(&message[..size])?;
            }
            self.take(&mut message[..size])?;
            if let Some(at) = exchange.first_wrong(&message[..size]) {
                let what = NetpipeError::Differs { bytes: size, at };
                return Err(self.peer_error(PEER.error("during an exchange", what)));
            }
            if exchange.mode == Mode::PingPong { self.send(&message[..size]) } else { Ok(()) }
        });
        self.message = message;
        moved
    }

    /// Fills a message.
    fn take(&mut self, message: &mut [u8]) -> Result<(), ProgramError> {
        let mut filled = self.ahead.len().min(message.len());
        message[..filled].copy_from_slice(&self.ahead[..filled]);
        self.ahead.drain(..filled);
        while filled < message.len() {
            let Some(count) = self.receive(&mut message[filled..])? else {
                return Err(ProgramError::socket("receive from", self.peer, ErrorKind::UnexpectedEof));
            };
            filled += count;
        }
        Ok(())
    }

    /// Goes on with the transmitter's next connection.
    fn reconnect(&mut self) -> Result<(), ProgramError> {
        self.ahead.clear();
        let _ = self.socket.shutdown(Shutdown::Both);
        let silent = Instant::now() + SILENCE;
        loop {
            match plain::next(self.listener) {
                // Connections from other hosts are closed.
                Some((socket, peer)) if peer.ip() == self.peer.ip() => {
                    prepare(&socket, peer)?;
                    self.session_deadline.move_to(&socket);
                    (self.socket, self.peer) = (socket, peer);
                    return Ok(());
                }
                _ => self.keep_waiting(silent)?,
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), ProgramError> {
        self.socket.write_all(bytes).map_err(|source| ProgramError::socket("send to", self.peer, source))
    }

    /// Reads the next bytes; `None` at the end.
    fn receive(&mut self, into: &mut [u8]) -> Result<Option<usize>, ProgramError> {
        let silent = Instant::now() + SILENCE;
        loop {
            match self.socket.read(into) {
                Ok(0) => return Ok(None),
                Ok(count) => return Ok(Some(count)),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(source) => return Err(ProgramError::socket("receive from", self.peer, source)),
            }
            self.keep_waiting(silent)?;
        }
    }

    /// Whether to go on waiting.
    fn keep_waiting(&self, silent: Instant) -> Result<(), ProgramError> {
        if self.session_deadline.was_cut() || self.service.stopping() {
            return Err(ProgramError::Interrupted);
        }
        if Instant::now() > silent {
            return Err(ProgramError::Silent {
                address: self.peer.to_string(),
                peer: PEER.name,
                seconds: SILENCE.as_secs(),
                during: say!(
                    "during its schedule: start both ends with the same -s, -2, -r, -i, -l, -u and -p (here, for example, `--speak 'netpipe:-s'`)"
                ),
            });
        }
        Ok(())
    }

    fn peer_error(&self, error: WireError) -> ProgramError {
        ProgramError::Peer { address: self.peer.to_string(), error }
    }
}

/// Sets NPtcp's options and our timeouts.
fn prepare(socket: &TcpStream, peer: SocketAddr) -> Result<(), ProgramError> {
    let failed = |source| ProgramError::socket("prepare the connection to", peer, source);
    socket.set_nodelay(true).map_err(failed)?;
    socket.set_read_timeout(Some(STEP)).map_err(failed)?;
    socket.set_write_timeout(Some(SILENCE)).map_err(failed)
}
