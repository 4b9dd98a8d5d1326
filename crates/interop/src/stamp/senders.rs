//! The senders that a stateful reflector counts.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Senders that are counted at a time.
const MAX_SENDERS: usize = 4_096;
/// How long after its last request a sender is forgotten (REFWAIT of RFC 5357, 4.2).
const FORGET_AFTER: Duration = Duration::from_secs(900);
/// Between two looks for senders to forget, where all places are taken.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// How many requests each sender's session has had reflected (RFC 8762, 4.3.1).
pub(super) struct Senders {
    of: HashMap<(SocketAddr, u16), Session>,
    /// How long a session may last.
    hold: Duration,
    swept: Option<Instant>,
}

struct Session {
    next: u32,
    begun: Instant,
    last: Instant,
}

/// What a request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequenceNumber {
    /// Its number in its session, from 0.
    Next(u32),
    /// There are too many senders: a number that is not a count would be taken for one.
    TooManySenders,
    /// The session has lasted for as long as it may.
    SessionExpired,
}

impl Senders {
    pub(super) fn new(hold: Duration) -> Self {
        Self { of: HashMap::new(), hold, swept: None }
    }

    /// Counts a request of `peer`'s session that came at `now`.
    pub(super) fn count(&mut self, peer: SocketAddr, session: u16, now: Instant) -> SequenceNumber {
        let key = (peer, session);
        if self.of.get(&key).is_some_and(|known| now.duration_since(known.last) >= FORGET_AFTER) {
            self.of.remove(&key);
        }
        if !self.of.contains_key(&key) && self.of.len() >= MAX_SENDERS {
            // A flood of senders costs one look a second.
            if self.swept.is_some_and(|swept| now.duration_since(swept) < SWEEP_INTERVAL) {
                return SequenceNumber::TooManySenders;
            }
            self.swept = Some(now);
            // Whoever sent one request and no more may have been made up, and makes room.
            self.of.retain(|_, known| {
                let age = now.duration_since(known.last);
                age < if known.next > 1 { FORGET_AFTER } else { SWEEP_INTERVAL }
            });
            if self.of.len() >= MAX_SENDERS {
                return SequenceNumber::TooManySenders;
            }
        }
        let known = self.of.entry(key).or_insert(Session { next: 0, begun: now, last: now });
        known.last = now;
        if now.duration_since(known.begun) >= self.hold {
            return SequenceNumber::SessionExpired;
        }
        let number = known.next;
        known.next = number.wrapping_add(1);
        SequenceNumber::Next(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: usize) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port as u16))
    }

    #[test]
    fn each_session_is_counted_by_itself_until_it_pauses() {
        let (mut senders, begun) = (Senders::new(Duration::from_secs(100_000)), Instant::now());
        for number in 0..3 {
            assert_eq!(senders.count(peer(1), 0, begun), SequenceNumber::Next(number));
        }
        assert_eq!(senders.count(peer(1), 7, begun), SequenceNumber::Next(0), "another session of the same sender");
        assert_eq!(senders.count(peer(2), 0, begun), SequenceNumber::Next(0));
        let soon = begun + FORGET_AFTER - SWEEP_INTERVAL;
        assert_eq!(senders.count(peer(1), 0, soon), SequenceNumber::Next(3));
        assert_eq!(senders.count(peer(1), 0, soon + FORGET_AFTER), SequenceNumber::Next(0));
    }

    #[test]
    fn a_session_ends_when_its_time_is_up() {
        let (mut senders, begun) = (Senders::new(Duration::from_secs(60)), Instant::now());
        assert_eq!(senders.count(peer(1), 0, begun), SequenceNumber::Next(0));
        for seconds in [60, 600, 1_200] {
            assert_eq!(senders.count(peer(1), 0, begun + Duration::from_secs(seconds)), SequenceNumber::SessionExpired);
        }
        assert_eq!(
            senders.count(peer(1), 0, begun + Duration::from_secs(1_200) + FORGET_AFTER),
            SequenceNumber::Next(0)
        );
    }

    #[test]
    fn places_are_bounded_and_come_back() {
        let (mut senders, begun) = (Senders::new(Duration::from_secs(100_000)), Instant::now());
        for number in 0..2 {
            assert!((0..MAX_SENDERS).all(|port| senders.count(peer(port), 0, begun) == SequenceNumber::Next(number)));
        }
        assert_eq!(senders.count(peer(MAX_SENDERS), 0, begun), SequenceNumber::TooManySenders);
        assert_eq!(senders.count(peer(0), 0, begun), SequenceNumber::Next(2), "those that have a place keep it");
        assert_eq!(senders.of.len(), MAX_SENDERS);
        assert_eq!(senders.count(peer(MAX_SENDERS), 0, begun + FORGET_AFTER), SequenceNumber::Next(0));
    }

    #[test]
    fn senders_that_were_made_up_do_not_keep_others_out() {
        let (mut senders, begun) = (Senders::new(Duration::from_secs(100_000)), Instant::now());
        assert_eq!(
            [senders.count(peer(0), 0, begun), senders.count(peer(0), 0, begun)]
                .map(|place| place != SequenceNumber::TooManySenders),
            [true; 2]
        );
        assert!((1..MAX_SENDERS).all(|port| senders.count(peer(port), 0, begun) == SequenceNumber::Next(0)));
        assert_eq!(senders.count(peer(MAX_SENDERS), 0, begun + SWEEP_INTERVAL), SequenceNumber::Next(0));
        assert_eq!(
            senders.count(peer(0), 0, begun + SWEEP_INTERVAL),
            SequenceNumber::Next(2),
            "who has sent more keeps its place"
        );
    }
}
