//! Our reflector: sends each request back with its own times in it.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::transport::foreign;
use peer_wire::stamp::{BASE_BYTES, Reply, Request, SHORTEST_REPLY_BYTES, Timestamp};
use socket2::{Domain, Socket, Type};

use super::request::{self, ReflectorMode};
use super::senders::{Senders, SequenceNumber};
use super::wall;
use crate::{InteropError, Limits, Service};

/// Interval between checks for the end.
const STEP: Duration = Duration::from_millis(50);
/// Interval between readings of the clock's error estimate.
const CLOCK_STEP: Duration = Duration::from_secs(1);
/// The value for an unknown time to live (RFC 5357, 4.2.1).
const TTL_UNKNOWN: u8 = 255;
/// Services on lower ports may answer any datagram; senders use a higher port (RFC 8762, 4.1).
const LEAST_PORT: u16 = 1024;
/// Allowed burst at the rate limit, ns.
const BURST_NS: u64 = 100_000_000;

/// Serves on all addresses until the service stops. A reflection needs no admission: it is one datagram.
pub(super) fn serve(service: &Service) -> Result<(), InteropError> {
    let mode = request::mode(&service.options)?;
    let mut sockets = Vec::new();
    for wanted in &service.addresses {
        let failed = |source| InteropError::socket("reflect STAMP on", wanted, source);
        let socket = bound(*wanted).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        sockets.push((socket, address));
    }
    let rate_limit = RateLimit { limits: &service.limits, next_ns: AtomicU64::new(0) };
    std::thread::scope(|scope| {
        for (socket, address) in &sockets {
            (service.listening)(*address);
            let reflector =
                Reflector { socket, service, rate_limit: &rate_limit, mode, said: [false; 5], port: address.port() };
            scope.spawn(move || reflector.reflect());
        }
    });
    Ok(())
}

fn bound(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if address.is_ipv6() {
        // Each IP version has its own socket, like each of the agent's addresses.
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.set_read_timeout(Some(STEP))?;
    foreign::make_roomy(socket.as_fd());
    foreign::enable_arrival_info(socket.as_fd(), address.is_ipv6())?;
    Ok(socket.into())
}

/// The rate that the agent allows, over all addresses.
struct RateLimit<'a> {
    limits: &'a Limits,
    /// Time up to which the rate is used, ns of the monotonic clock.
    next_ns: AtomicU64,
}

impl RateLimit<'_> {
    fn admits(&self, bytes: usize) -> bool {
        let Some(rate_bps) = self.limits.rate_bps else { return true };
        let (now, cost) = (engine::now_ns(), (bytes as u64 * 8_000_000_000) / rate_bps.max(1));
        let taken = |next: u64| (next <= now + BURST_NS).then(|| next.max(now) + cost);
        self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }
}

/// Why a request is not answered.
#[derive(Clone, Copy)]
enum Refusal {
    Port,
    Rate,
    Room,
    TooManySenders,
    Time,
}

/// The reflector of one address.
struct Reflector<'a> {
    socket: &'a UdpSocket,
    service: &'a Service,
    rate_limit: &'a RateLimit<'a>,
    mode: ReflectorMode,
    /// The addresses to listen on.
    port: u16,
    /// Which refusals were logged: one line for each kind, because anyone can cause them.
    said: [bool; 5],
}

impl Reflector<'_> {
    fn reflect(mut self) {
        let mut senders = self.mode.stateful.then(|| Senders::new(Duration::from_nanos(self.service.limits.hold_ns)));
        let mut room = vec![0; 1 << 16];
        let (mut error, mut requested) = (wall::error(), Instant::now());
        while !self.service.stopping() {
            if requested.elapsed() > CLOCK_STEP {
                (error, requested) = (wall::error(), Instant::now());
            }
            let Ok(arrived) = foreign::receive(self.socket.as_fd(), &mut room) else { continue };
            let peer = arrived.peer;
            // Anything else on the port is not a request.
            let Ok(request) = Request::read(&room[..arrived.bytes]) else { continue };
            let count = if self.mode.unpadded { arrived.bytes.max(BASE_BYTES) } else { arrived.bytes };
            // Another reflector would take the reply for a request: the two would loop forever.
            if peer.port() == self.port || peer.port() < LEAST_PORT {
                self.refuse(peer, Refusal::Port);
                continue;
            }
            if count < SHORTEST_REPLY_BYTES {
                self.refuse(peer, Refusal::Room);
                continue;
            }
            if !self.rate_limit.admits(count) {
                self.refuse(peer, Refusal::Rate);
                continue;
            }
            let own = match senders.as_mut().map(|senders| senders.count(peer, request.session, Instant::now())) {
                None => request.sequence,
                Some(SequenceNumber::Next(number)) => {
                    if number == 0 {
                        (self.service.log)(&format!("{peer}: stamp counts this sender's requests"));
                    }
                    number
                }
                Some(SequenceNumber::TooManySenders) => {
                    self.refuse(peer, Refusal::TooManySenders);
                    continue;
                }
                Some(SequenceNumber::SessionExpired) => {
                    self.refuse(peer, Refusal::Time);
                    continue;
                }
            };
            let reply = Reply {
                sequence: own,
                sent: wall::now(),
                error,
                session: request.session,
                received: Timestamp::of_unix_ns(arrived.unix_ns),
                request,
                ttl: arrived.ttl.unwrap_or(TTL_UNKNOWN),
            };
            // The reply fits, and a reply that cannot be sent is a loss, which the sender measures.
            let _ = reply
                .write(&mut room[..count])
                .map(|()| foreign::answer(self.socket.as_fd(), &room[..count], &arrived));
        }
    }

    fn refuse(&mut self, peer: SocketAddr, refusal: Refusal) {
        if std::mem::replace(&mut self.said[refusal as usize], true) {
            return;
        }
        let why = match refusal {
            Refusal::Port => {
                "requests from ports below 1024 or from its own port, because they may come from another reflector"
            }
            Refusal::Rate => "requests above `max-rate`",
            Refusal::Room => {
                "requests of fewer than 41 bytes, because the reply would be longer (use `speak stamp:unpadded` to answer them)"
            }
            Refusal::TooManySenders => "more than 4096 senders",
            Refusal::Time => "a sender for longer than `max-time` without a pause",
        };
        (self.service.log)(&format!("{peer}: stamp does not answer {why}; logged once"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_lets_through_what_fits_in_its_time() {
        let limits = |rate_bps| Limits { unauthenticated: 1, hold_ns: 1, flows: 1, rate_bps, memory_bytes: 8 << 30 };
        let open = limits(None);
        let rate_limit = RateLimit { limits: &open, next_ns: AtomicU64::new(0) };
        assert!((0..100).all(|_| rate_limit.admits(60_000)));
        // One byte per second: the first datagram uses up the rate.
        let tight = limits(Some(8));
        let rate_limit = RateLimit { limits: &tight, next_ns: AtomicU64::new(0) };
        assert_eq!((0..10).filter(|_| rate_limit.admits(1_000)).count(), 1);
    }
}
