//! The senders that a stateful reflector counts.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Senders that are counted at a time.
const MOST: usize = 4_096;
/// How long after its last request a sender is forgotten (REFWAIT of RFC 5357, 4.2).
const FORGET: Duration = Duration::from_secs(900);
/// Between two looks for senders to forget, where all places are taken.
const SWEEP: Duration = Duration::from_secs(1);

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
pub(super) enum Place {
    /// Its number in its session, from 0.
    Number(u32),
    /// There are too many senders: a number that is not a count would be taken for one.
    None,
    /// The session has lasted for as long as it may.
    TimeIsUp,
}

impl Senders {
    pub(super) fn new(hold: Duration) -> Self {
        Self { of: HashMap::new(), hold, swept: None }
    }

    /// Counts a request of `peer`'s session that came at `now`.
    pub(super) fn count(&mut self, peer: SocketAddr, session: u16, now: Instant) -> Place {
        let key = (peer, session);
        if self.of.get(&key).is_some_and(|known| now.duration_since(known.last) >= FORGET) {
            self.of.remove(&key);
        }
        if !self.of.contains_key(&key) && self.of.len() >= MOST {
            // A flood of senders costs one look a second.
            if self.swept.is_some_and(|swept| now.duration_since(swept) < SWEEP) {
                return Place::None;
            }
            self.swept = Some(now);
            // Whoever sent one request and no more may have been made up, and makes room.
            self.of.retain(|_, known| {
                let age = now.duration_since(known.last);
                age < if known.next > 1 { FORGET } else { SWEEP }
            });
            if self.of.len() >= MOST {
                return Place::None;
            }
        }
        let known = self.of.entry(key).or_insert(Session { next: 0, begun: now, last: now });
        known.last = now;
        if now.duration_since(known.begun) >= self.hold {
            return Place::TimeIsUp;
        }
        let number = known.next;
        known.next = number.wrapping_add(1);
        Place::Number(number)
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
            assert_eq!(senders.count(peer(1), 0, begun), Place::Number(number));
        }
        assert_eq!(senders.count(peer(1), 7, begun), Place::Number(0), "another session of the same sender");
        assert_eq!(senders.count(peer(2), 0, begun), Place::Number(0));
        let soon = begun + FORGET - SWEEP;
        assert_eq!(senders.count(peer(1), 0, soon), Place::Number(3));
        assert_eq!(senders.count(peer(1), 0, soon + FORGET), Place::Number(0));
    }

    #[test]
    fn a_session_ends_when_its_time_is_up() {
        let (mut senders, begun) = (Senders::new(Duration::from_secs(60)), Instant::now());
        assert_eq!(senders.count(peer(1), 0, begun), Place::Number(0));
        for seconds in [60, 600, 1_200] {
            assert_eq!(senders.count(peer(1), 0, begun + Duration::from_secs(seconds)), Place::TimeIsUp);
        }
        assert_eq!(senders.count(peer(1), 0, begun + Duration::from_secs(1_200) + FORGET), Place::Number(0));
    }

    #[test]
    fn places_are_bounded_and_come_back() {
        let (mut senders, begun) = (Senders::new(Duration::from_secs(100_000)), Instant::now());
        for number in 0..2 {
            assert!((0..MOST).all(|port| senders.count(peer(port), 0, begun) == Place::Number(number)));
        }
        assert_eq!(senders.count(peer(MOST), 0, begun), Place::None);
        assert_eq!(senders.count(peer(0), 0, begun), Place::Number(2), "those that have a place keep it");
        assert_eq!(senders.of.len(), MOST);
        assert_eq!(senders.count(peer(MOST), 0, begun + FORGET), Place::Number(0));
    }

    #[test]
    fn senders_that_were_made_up_do_not_keep_others_out() {
        let (mut senders, begun) = (Senders::new(Duration::from_secs(100_000)), Instant::now());
        assert_eq!(
            [senders.count(peer(0), 0, begun), senders.count(peer(0), 0, begun)].map(|place| place != Place::None),
            [true; 2]
        );
        assert!((1..MOST).all(|port| senders.count(peer(port), 0, begun) == Place::Number(0)));
        assert_eq!(senders.count(peer(MOST), 0, begun + SWEEP), Place::Number(0));
        assert_eq!(senders.count(peer(0), 0, begun + SWEEP), Place::Number(2), "who has sent more keeps its place");
    }
}
