//! The senders that a stateful reflector counts.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Most senders that are counted at the same time.
const MAX_SENDERS: usize = 4_096;
/// How long after its last request a sender is forgotten (REFWAIT of RFC 5357, 4.2).
const FORGET_AFTER: Duration = Duration::from_secs(900);
/// A session begins again where its numbers fall back to 0 or 1 from at least so far above: a smaller step back may be reordering,
const BACK: u32 = 3;
/// unless the sender has paused for this long.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval between searches for senders to forget when the table is full.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Counts the reflected requests of each sender's session (RFC 8762, 4.3.1).
pub(super) struct Senders {
    sessions: HashMap<(SocketAddr, u16), Session>,
    /// Longest duration of a session.
    hold: Duration,
    swept: Option<Instant>,
}

struct Session {
    next: u32,
    /// The highest number of a request.
    highest: u32,
    begun: Instant,
    last: Instant,
}

/// The reflector's sequence number for a request, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequenceNumber {
    /// Its number in its session, from 0.
    Next(u32),
    /// Too many senders: a sender would take any other number for a count.
    TooManySenders,
    /// The session has reached its time limit.
    SessionExpired,
}

impl Senders {
    pub(super) fn new(hold: Duration) -> Self {
        Self { sessions: HashMap::new(), hold, swept: None }
    }

    /// Counts the request with number `sequence` of `peer`'s session that arrived at `now`. Routers send all their sessions from one port
    /// without a pause, so a session also ends where its numbers begin again.
    pub(super) fn count(&mut self, peer: SocketAddr, session: u16, sequence: u32, now: Instant) -> SequenceNumber {
        let key = (peer, session);
        let ended = |known: &Session| {
            let pause = now.duration_since(known.last);
            let back = known.highest.saturating_sub(sequence);
            let again = sequence <= 1 && back > 0 && (back >= BACK || pause >= PAUSE);
            pause >= FORGET_AFTER || again
        };
        if self.sessions.get(&key).is_some_and(ended) {
            self.sessions.remove(&key);
        }
        if !self.sessions.contains_key(&key) && self.sessions.len() >= MAX_SENDERS {
            // A flood of senders causes one search per second.
            if self.swept.is_some_and(|swept| now.duration_since(swept) < SWEEP_INTERVAL) {
                return SequenceNumber::TooManySenders;
            }
            self.swept = Some(now);
            // Senders of a single request may be forged and are removed first.
            self.sessions.retain(|_, known| {
                let age = now.duration_since(known.last);
                age < if known.next > 1 { FORGET_AFTER } else { SWEEP_INTERVAL }
            });
            if self.sessions.len() >= MAX_SENDERS {
                return SequenceNumber::TooManySenders;
            }
        }
        let known = self.sessions.entry(key).or_insert(Session { next: 0, highest: sequence, begun: now, last: now });
        known.last = now;
        known.highest = known.highest.max(sequence);
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
            assert_eq!(senders.count(peer(1), 0, number, begun), SequenceNumber::Next(number));
        }
        assert_eq!(senders.count(peer(1), 7, 0, begun), SequenceNumber::Next(0), "another session of the same sender");
        assert_eq!(senders.count(peer(2), 0, 0, begun), SequenceNumber::Next(0));
        let soon = begun + FORGET_AFTER - SWEEP_INTERVAL;
        assert_eq!(senders.count(peer(1), 0, 3, soon), SequenceNumber::Next(3));
        assert_eq!(senders.count(peer(1), 0, 4, soon + FORGET_AFTER), SequenceNumber::Next(0));
    }

    #[test]
    fn a_session_whose_numbers_begin_again_is_counted_from_the_start() {
        let (mut senders, mut now) = (Senders::new(Duration::from_secs(100_000)), Instant::now());
        let mut of = |sequences: &[u32], pause: u64| -> Vec<SequenceNumber> {
            now += Duration::from_millis(pause);
            sequences.iter().map(|sequence| senders.count(peer(1), 0, *sequence, now)).collect()
        };
        let counted = |numbers: &[u32]| numbers.iter().map(|number| SequenceNumber::Next(*number)).collect::<Vec<_>>();
        assert_eq!(of(&[0, 1, 2, 3, 4], 0), counted(&[0, 1, 2, 3, 4]));
        assert_eq!(of(&[0, 1, 2], 10), counted(&[0, 1, 2]), "the same port at once");
        // A router's first request may be lost, and a short session is followed by the next one.
        assert_eq!(of(&[1, 2], 2_000), counted(&[0, 1]));
        assert_eq!(of(&[0], 2_000), counted(&[0]));
        // Reordering, and a duplicate.
        assert_eq!(of(&[1, 2, 1, 0, 3, 3], 10), counted(&[1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn a_session_ends_when_its_time_is_up() {
        let (mut senders, begun) = (Senders::new(Duration::from_secs(60)), Instant::now());
        assert_eq!(senders.count(peer(1), 0, 5, begun), SequenceNumber::Next(0));
        for seconds in [60, 600, 1_200] {
            assert_eq!(
                senders.count(peer(1), 0, 6, begun + Duration::from_secs(seconds)),
                SequenceNumber::SessionExpired
            );
        }
        assert_eq!(
            senders.count(peer(1), 0, 7, begun + Duration::from_secs(1_200) + FORGET_AFTER),
            SequenceNumber::Next(0)
        );
    }

    #[test]
    fn the_sender_table_is_bounded_and_entries_expire() {
        let (mut senders, begun) = (Senders::new(Duration::from_secs(100_000)), Instant::now());
        for number in 0..2 {
            assert!(
                (0..MAX_SENDERS).all(|port| senders.count(peer(port), 0, 9, begun) == SequenceNumber::Next(number))
            );
        }
        assert_eq!(senders.count(peer(MAX_SENDERS), 0, 9, begun), SequenceNumber::TooManySenders);
        assert_eq!(senders.count(peer(0), 0, 9, begun), SequenceNumber::Next(2), "known senders are kept");
        assert_eq!(senders.sessions.len(), MAX_SENDERS);
        assert_eq!(senders.count(peer(MAX_SENDERS), 0, 9, begun + FORGET_AFTER), SequenceNumber::Next(0));
    }

    #[test]
    fn forged_senders_do_not_keep_others_out() {
        let (mut senders, begun) = (Senders::new(Duration::from_secs(100_000)), Instant::now());
        assert_eq!(
            [senders.count(peer(0), 0, 9, begun), senders.count(peer(0), 0, 9, begun)]
                .map(|place| place != SequenceNumber::TooManySenders),
            [true; 2]
        );
        assert!((1..MAX_SENDERS).all(|port| senders.count(peer(port), 0, 9, begun) == SequenceNumber::Next(0)));
        assert_eq!(senders.count(peer(MAX_SENDERS), 0, 9, begun + SWEEP_INTERVAL), SequenceNumber::Next(0));
        assert_eq!(
            senders.count(peer(0), 0, 9, begun + SWEEP_INTERVAL),
            SequenceNumber::Next(2),
            "a sender of several requests is kept"
        );
    }
}
