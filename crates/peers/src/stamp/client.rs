//! Our sender at a reflector.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::transport::programs::{self, Arrived};
use model::{FlowTally, Interval, Live, SocketFacts, Spec, Stop};
use peer_wire::WireError;
use peer_wire::stamp::{self, ErrorEstimate, PEER, Reply, StampRequest};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::trips::{Arrival, Moment, Trips};
use super::{request, wall};
use crate::line::{resolve, would_block};
use crate::{ProgramError, Sides, TrialObserver};

/// Longest wait for a reflection, also before the first one arrived. Without a rate the next request follows
/// then, and after the last request the test ends.
const MAX_REPLY_WAIT: Duration = Duration::from_secs(2);
/// Shortest wait.
const MIN_REPLY_WAIT: Duration = Duration::from_millis(100);
/// Interval between checks for the end.
const STEP: Duration = Duration::from_millis(50);

/// Measures once.
pub(super) fn measure(
    spec: &Spec,
    host: &str,
    observer: &mut dyn TrialObserver,
    cancel: &AtomicBool,
) -> Result<Sides, ProgramError> {
    request::check(spec)?;
    let begun = Instant::now();
    let Some(target) = resolve(host, PEER.port, spec.family)?.first().copied() else {
        return Err(ProgramError::Resolve {
            host: host.into(),
            reason: "no address of the requested IP version".into(),
        });
    };
    let failed = |source| ProgramError::socket("send to the reflector at", target, source);
    let socket = UdpSocket::from(programs::dial(spec, target, 0)?);
    // A datagram that poll(2) reported can be dropped for a wrong checksum.
    socket.set_read_timeout(Some(STEP)).map_err(failed)?;
    programs::enable_arrival_info(socket.as_fd(), target.is_ipv6()).map_err(failed)?;
    let local = socket.local_addr().ok().map(|address| address.to_string());
    observer.starting(begun.elapsed().as_nanos() as u64);
    let mut datagram = vec![0; spec.block as usize];
    stamp::pad(&mut datagram);
    let mut test = Test {
        spec,
        socket,
        trips: Trips::default(),
        datagram,
        error: wall::error(),
        refused: false,
        unread: None,
        started: Instant::now(),
    };
    let clock = test.conduct(observer, cancel).map_err(failed);
    observer.stopped();
    let Clock { sending_ns, receiving_ns, intervals } = clock?;
    let cancelled = cancel.load(Ordering::SeqCst);
    if test.trips.received() == 0 {
        return Err(match cancelled {
            true => ProgramError::Interrupted,
            false => match test.unread.take() {
                Some(error) => ProgramError::Peer { address: target.to_string(), error },
                None => {
                    ProgramError::Unreachable { peer: PEER.name, address: target.to_string(), source: test.silence() }
                }
            },
        });
    }
    let elapsed_ns = test.started.elapsed().as_nanos() as u64;
    let counts = test.trips.counts();
    let dropped = programs::dropped(test.socket.as_fd());
    let [mut near, far] = test.trips.tallies(spec.block, test.error);
    let socket = SocketFacts { local, peer: Some(target.to_string()), ..SocketFacts::default() };
    near.flows = vec![FlowTally {
        bytes_sent: near.bytes_sent,
        bytes_received: near.bytes_received,
        transactions: near.transactions,
        socket,
        ..FlowTally::default()
    }];
    (near.sending_ns, near.receiving_ns, near.intervals, near.cut_short) =
        (sending_ns, receiving_ns, intervals, cancelled);
    near.datagrams.iter_mut().for_each(|tally| tally.socket_drops = dropped);
    // A reflection does not name its program.
    let version = format!("a {} reflector of STAMP or TWAMP Light", if counts { "stateful" } else { "stateless" });
    Ok(Sides { near, far, failure: None, elapsed_ns, version })
}

struct Test<'a> {
    spec: &'a Spec,
    socket: UdpSocket,
    trips: Trips,
    datagram: Vec<u8>,
    /// The error estimate of this host's clock.
    error: ErrorEstimate,
    /// Whether the host reported the port as closed.
    refused: bool,
    /// The error of the last datagram that was not a reflection.
    unread: Option<WireError>,
    started: Instant,
}

/// Times and series of a test.
#[derive(Default)]
struct Clock {
    sending_ns: u64,
    receiving_ns: u64,
    intervals: Vec<Interval>,
}

impl Test<'_> {
    /// Sends requests and receives reflections until all are sent and answered or given up.
    fn conduct(&mut self, observer: &mut dyn TrialObserver, cancel: &AtomicBool) -> std::io::Result<Clock> {
        let gap =
            self.spec.rate_bps.map(|bps| Duration::from_secs_f64(self.spec.block as f64 * 8.0 / bps.max(1) as f64));
        let mut clock = Clock::default();
        let (mut due, mut last) = (self.started, self.started);
        let mut first: [Option<Instant>; 2] = [None; 2];
        let mut entry = Interval::default();
        let mut room = vec![0; 1 << 16];
        loop {
            let now = Instant::now();
            let over = self.over(now) || cancel.load(Ordering::SeqCst);
            let reply_wait = self.reply_wait();
            if over && (self.trips.settled() || now >= last + reply_wait) {
                break;
            }
            if !over && now >= due {
                self.send()?;
                last = Instant::now();
                clock.sending_ns = last.duration_since(*first[0].get_or_insert(last)).as_nanos() as u64;
                entry.bytes_sent += self.spec.block;
                // The schedule is fixed from the start: a late request does not delay later ones.
                due = gap.map_or(last + reply_wait, |gap| due + gap);
            }
            let until = if over { last + reply_wait } else { due };
            let Some(arrived) = self.receive(&mut room, until)? else {
                self.entry(&mut clock, &mut entry, observer, false);
                continue;
            };
            let moment = wall::moment_of(arrived.unix_ns);
            let reply = match Reply::read(&room[..arrived.bytes]) {
                Ok(reply) => reply,
                Err(error) => {
                    self.unread = Some(error);
                    continue;
                }
            };
            if self.trips.take(&reply, moment) == Arrival::New {
                let came = Instant::now();
                clock.receiving_ns = came.duration_since(*first[1].get_or_insert(came)).as_nanos() as u64;
                entry.bytes_received += self.spec.block;
                entry.transactions += 1;
                if gap.is_none() && self.trips.settled() {
                    due = came;
                }
            }
            self.entry(&mut clock, &mut entry, observer, false);
        }
        self.entry(&mut clock, &mut entry, observer, true);
        Ok(clock)
    }

    fn over(&self, now: Instant) -> bool {
        match self.spec.stop {
            Stop::TimeNs(ns) | Stop::AboutNs(ns) => now.duration_since(self.started).as_nanos() as u64 >= ns,
            Stop::Bytes(bytes) => self.trips.sent() * self.spec.block >= bytes,
            Stop::Blocks(count) | Stop::Transactions(count) => self.trips.sent() >= count,
        }
    }

    /// A multiple of the longest round trip so far.
    fn reply_wait(&self) -> Duration {
        match self.trips.longest_ns() {
            // An error already shows that no reflection will arrive.
            0 if self.refused || self.unread.is_some() => MIN_REPLY_WAIT,
            0 => MAX_REPLY_WAIT,
            ns => Duration::from_nanos(ns.saturating_mul(4)).clamp(MIN_REPLY_WAIT, MAX_REPLY_WAIT),
        }
    }

    /// Why no reflection arrived.
    fn silence(&self) -> std::io::Error {
        if self.refused {
            return ErrorKind::ConnectionRefused.into();
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let what = format!("no reply within {seconds:.1} s; a firewall may block UDP");
        std::io::Error::new(ErrorKind::TimedOut, what)
    }

    fn send(&mut self) -> std::io::Result<()> {
        let Moment { ns, wall } = wall::moment();
        let request = StampRequest { sequence: self.trips.next(ns), sent: wall, error: self.error, session: 0 };
        request.write(&mut self.datagram).map_err(|error| std::io::Error::other(error.to_string()))?;
        match self.socket.send(&self.datagram) {
            // An ICMP error of an earlier datagram is reported here instead of sending this one; the path may
            // still work.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.refused = true;
                self.socket.send(&self.datagram).map(|_| ())
            }
            sent => sent.map(|_| ()),
        }
    }

    /// Receives until the given time, at most [`STEP`].
    fn receive(&mut self, room: &mut [u8], until: Instant) -> std::io::Result<Option<Arrived>> {
        let left = until.saturating_duration_since(Instant::now()).min(STEP);
        // Socket timeouts are rounded to timer ticks; this wait is not.
        let limit = Timespec { tv_sec: 0, tv_nsec: left.as_nanos() as i64 };
        let mut wanted = [PollFd::new(&self.socket, PollFlags::IN)];
        match rustix::event::poll(&mut wanted, Some(&limit)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        match programs::receive(self.socket.as_fd(), room) {
            Ok(arrived) => Ok(Some(arrived)),
            Err(error) if would_block(&error) => Ok(None),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.refused = true;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Completes an entry of the series when its time or the test is over.
    fn entry(&self, clock: &mut Clock, entry: &mut Interval, observer: &mut dyn TrialObserver, last: bool) {
        let now_ns = self.started.elapsed().as_nanos() as u64;
        let full = self.spec.interval_ns > 0 && now_ns >= entry.start_ns + self.spec.interval_ns;
        if !(full || last) || self.spec.interval_ns == 0 {
            return;
        }
        let done = Interval { end_ns: now_ns, ..*entry };
        if done.bytes_sent + done.bytes_received + done.transactions > 0 || !last {
            observer.live(Live::Interval(done));
            clock.intervals.push(done);
        }
        *entry = Interval { start_ns: now_ns, ..Interval::default() };
    }
}
