//! Our reflector: sends each request back with its own times in it.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::transport::programs;
use peer_wire::stamp::{self, BASE_BYTES, Reply, SHORTEST_REPLY_BYTES, StampRequest, TTL_UNKNOWN, Timestamp};
use socket2::{Domain, Socket, Type};
use text::{Text, say};

use super::request::{self, ReflectorMode};
use super::senders::{Senders, SequenceNumber};
use super::wall;
use crate::{ProgramError, Service};

/// Interval between checks for the end.
const STEP: Duration = Duration::from_millis(50);
/// Interval between readings of the clock's error estimate.
const CLOCK_STEP: Duration = Duration::from_secs(1);
/// Services on lower ports may answer any datagram; senders use a higher port (RFC 8762, 4.1).
const LEAST_PORT: u16 = 1024;
/// Allowed burst at the rate limit, ns.
const BURST_NS: u64 = 100_000_000;
/// Replies that are longer than their requests, in bit/s, without the option `unpadded`: 100 datagrams per second.
/// Many senders do not pad; with so few, one who forges their address gains nothing.
const UNPADDED_BPS: u64 = 100 * 8 * BASE_BYTES as u64;

/// Serves on all addresses until the service stops. A reflection needs no admission: it is one datagram.
pub(super) fn serve(service: &Service) -> Result<(), ProgramError> {
    let mode = request::mode(&service.options)?;
    let mut sockets = Vec::new();
    for wanted in &service.addresses {
        let failed = |source| ProgramError::socket("reflect STAMP on", wanted, source);
        let socket = bound(*wanted).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        sockets.push((socket, address));
    }
    let rate_limit = RateLimit::new(service.limits.rate_bps);
    let short_limit = RateLimit::new((!mode.unpadded).then_some(UNPADDED_BPS));
    std::thread::scope(|scope| {
        for (socket, address) in &sockets {
            (service.listening)(*address);
            let reflector = Reflector {
                socket,
                service,
                rate_limit: &rate_limit,
                short_limit: &short_limit,
                mode,
                said: [false; 6],
                port: address.port(),
            };
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
    programs::make_roomy(socket.as_fd());
    programs::enable_arrival_info(socket.as_fd(), address.is_ipv6())?;
    Ok(socket.into())
}

/// A rate, over all addresses.
struct RateLimit {
    /// bit/s; `None` for no limit.
    rate_bps: Option<u64>,
    /// Time up to which the rate is used, ns of the monotonic clock.
    next_ns: AtomicU64,
}

impl RateLimit {
    fn new(rate_bps: Option<u64>) -> Self {
        Self { rate_bps, next_ns: AtomicU64::new(0) }
    }

    fn admits(&self, bytes: usize) -> bool {
        let Some(rate_bps) = self.rate_bps else { return true };
        let (now, cost) = (engine::now_ns(), (bytes as u64 * 8_000_000_000) / rate_bps.max(1));
        let taken = |next: u64| (next <= now + BURST_NS).then(|| next.max(now) + cost);
        self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }
}

/// Why a request is not answered.
#[derive(Clone, Copy)]
enum Refusal {
    Port,
    Reply,
    Rate,
    Room,
    TooManySenders,
    Time,
}

/// The reflector of one address.
struct Reflector<'a> {
    socket: &'a UdpSocket,
    service: &'a Service,
    rate_limit: &'a RateLimit,
    /// Of replies that are longer than their requests.
    short_limit: &'a RateLimit,
    mode: ReflectorMode,
    /// The addresses to listen on.
    port: u16,
    /// Which refusals were logged: one line for each kind, because anyone can cause them.
    said: [bool; 6],
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
            let Ok(arrived) = programs::receive(self.socket.as_fd(), &mut room) else { continue };
            let peer = arrived.peer;
            // Anything else on the port is not a request.
            let Ok(request) = StampRequest::read(&room[..arrived.bytes]) else { continue };
            // Without room for a reply there is no padding at all: RFC 8762, 4.6, has the whole reply sent.
            let short = arrived.bytes < SHORTEST_REPLY_BYTES;
            let count = if short { BASE_BYTES } else { arrived.bytes };
            // Another reflector would take the reply for a request: the two would loop forever.
            if peer.port() == self.port || peer.port() < LEAST_PORT {
                self.refuse(peer, Refusal::Port);
                continue;
            }
            if stamp::returns(&room[..arrived.bytes], Timestamp::of_unix_ns(arrived.unix_ns)) {
                self.refuse(peer, Refusal::Reply);
                continue;
            }
            if short && !self.short_limit.admits(count) {
                self.refuse(peer, Refusal::Room);
                continue;
            }
            if !self.rate_limit.admits(count) {
                self.refuse(peer, Refusal::Rate);
                continue;
            }
            let own = match senders
                .as_mut()
                .map(|senders| senders.count(peer, request.session, request.sequence, Instant::now()))
            {
                None => request.sequence,
                Some(SequenceNumber::Next(number)) => {
                    if number == 0 {
                        (self.service.log)(peer, &say!("{peer}: stamp counts this sender's requests"));
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
                .map(|()| programs::answer(self.socket.as_fd(), &room[..count], &arrived));
        }
    }

    fn refuse(&mut self, peer: SocketAddr, refusal: Refusal) {
        if std::mem::replace(&mut self.said[refusal as usize], true) {
            return;
        }
        let why: Text = match refusal {
            Refusal::Port => {
                "requests from ports below 1024 or from its own port, because they may come from another reflector"
                    .into()
            }
            Refusal::Reply => "replies to its own datagrams: another reflector sends them".into(),
            Refusal::Rate => say!("requests above `--max-rate`"),
            Refusal::Room => {
                say!(
                    "more than 100 requests per second of fewer than 41 bytes, because the reply is longer (use `--speak stamp:unpadded`)"
                )
            }
            Refusal::TooManySenders => "more than 4096 senders".into(),
            Refusal::Time => say!("a sender that sends for longer than `--max-time` without a pause"),
        };
        (self.service.log)(peer, &say!("{peer}: stamp does not answer {why}; logged once"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_lets_through_what_fits_in_its_time() {
        let rate_limit = RateLimit::new(None);
        assert!((0..100).all(|_| rate_limit.admits(60_000)));
        // One byte per second: the first datagram uses up the rate.
        let rate_limit = RateLimit::new(Some(8));
        assert_eq!((0..10).filter(|_| rate_limit.admits(1_000)).count(), 1);
        // Replies longer than their requests are few.
        let short_limit = RateLimit::new(Some(UNPADDED_BPS));
        assert!((0..1_000).filter(|_| short_limit.admits(BASE_BYTES)).count() < 1_000);
    }
}
