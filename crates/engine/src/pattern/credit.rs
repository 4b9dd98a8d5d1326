//! Pacing to the receiver: a sender of datagrams has no more in flight than the path carries in a round trip plus what
//! the receiver's socket holds. A slow receiver then slows the sender down instead of losing datagrams.
//!
//! The receiver reports over the data connection up to which number every datagram has arrived or is lost, and how
//! many more its buffer holds. A later arrival shows that an earlier datagram is lost, so losses on the path cost no
//! credit and are counted as usual. If no grant arrives, the sender queries the receiver and sends no payload until it
//! answers. See ADR 0014.

use crate::core::now_ns;
use crate::transport::{Channel, Signal};

/// Grants per buffer of datagrams: few enough to cost nothing, enough to reach the sender in time.
const GRANTS: u64 = 8;
/// How long a sender without credit waits before each query.
const QUERY_NS: u64 = 20_000_000;

/// The receiver's half: when to grant, and how much.
#[derive(Debug)]
pub(super) struct Grants {
    leg: u32,
    /// Datagrams that the buffer is known to hold; halved after each overflow.
    room: u64,
    /// Every datagram below this number has arrived or is lost.
    passed: u64,
    /// Datagrams received.
    received: u64,
    /// What the last grant contained.
    reported: Option<u64>,
    /// Known drops at the socket.
    drops: u64,
}

impl Grants {
    /// For leg `leg` with blocks of `block` bytes. `None` if the channel's buffer cannot overflow.
    pub(super) fn new<C: Channel>(channel: &C, leg: u32, block: usize) -> Option<Self> {
        let room = channel.receive_room(block)?;
        // The first call makes the kernel record arrival times.
        channel.waited_ns();
        Some(Self { leg, room, passed: 0, received: 0, reported: None, drops: channel.socket_drops() })
    }

    /// All numbers below `passed` have arrived or are lost, and `received` datagrams have arrived; sends a grant when
    /// one is due.
    #[inline]
    pub(super) fn pass<C: Channel>(&mut self, passed: u64, received: u64, channel: &mut C) {
        self.passed = self.passed.max(passed);
        self.received = received;
        let due = self.reported.is_none_or(|reported| self.passed - reported >= (self.room / GRANTS).max(1));
        if due {
            self.send_grant(channel);
        }
    }

    /// The sender reports that it has sent `sent` datagrams and waits: what has not arrived by now is lost, or too
    /// late to count as in flight.
    pub(super) fn answer<C: Channel>(&mut self, sent: u64, channel: &mut C) {
        self.passed = self.passed.max(sent);
        self.send_grant(channel);
    }

    fn send_grant<C: Channel>(&mut self, channel: &mut C) {
        let drops = channel.socket_drops();
        self.judge(drops);
        let waited_ns = channel.waited_ns();
        let Self { leg, passed, room, received, .. } = *self;
        let credit = Signal::Credit { leg, passed, room, received, drops, waited_ns };
        // A grant that is not sent or is lost is replaced by the next one, or by the sender's query.
        if channel.send(&credit.encode(channel.nonce())).is_ok() {
            self.reported = Some(self.passed);
        }
    }

    /// A buffer that overflowed holds less than assumed.
    fn judge(&mut self, drops: u64) {
        if drops > self.drops {
            self.room = (self.room / 2).max(1);
            self.drops = drops;
        }
    }
}

/// What a receiver grants: see [`Signal::Credit`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    pub(super) passed: u64,
    pub(super) room: u64,
    pub(super) received: u64,
    pub(super) drops: u64,
    /// With the time that the grant waited in the sender's socket, ns.
    pub(super) waited_ns: u64,
}

/// The sender's half: how many datagrams may be in flight.
#[derive(Debug)]
pub(super) struct Credit {
    leg: u32,
    passed: u64,
    room: u64,
    received: u64,
    drops: u64,
    /// Datagrams in flight on the path itself: those delivered within its round trip.
    path: u64,
    /// `path` no longer grows: at this value the receiver's socket overflowed.
    path_limit: u64,
    shortest_ns: u64,
    sample: Option<Sample>,
    query_ns: u64,
}

/// The datagram that is being timed from its send to its grant.
#[derive(Debug)]
struct Sample {
    number: u64,
    sent_ns: u64,
    received: u64,
}

impl Credit {
    /// Without credit until the receiver has reported its buffer.
    pub(super) fn new(leg: u32) -> Self {
        Self {
            leg,
            passed: 0,
            room: 0,
            received: 0,
            drops: 0,
            path: 0,
            path_limit: u64::MAX,
            shortest_ns: u64::MAX,
            sample: None,
            query_ns: 0,
        }
    }

    /// How many datagrams may follow the `sent` ones now: a whole burst of `most` (or of the window, if smaller), or
    /// none, because many small bursts cost more calls.
    #[inline]
    pub(super) fn burst(&self, sent: u64, most: u64) -> u64 {
        let window = self.room.saturating_add(self.path);
        let burst = most.min(window);
        if (sent - self.passed.min(sent)).saturating_add(burst) <= window { burst } else { 0 }
    }

    /// The next datagrams are about to be sent; the first has number `number`.
    #[inline]
    pub(super) fn sending(&mut self, number: u64) {
        if self.sample.is_none() {
            self.sample = Some(Sample { number, sent_ns: now_ns(), received: self.received });
        }
    }

    /// A grant for leg `leg` arrived.
    pub(super) fn granted(&mut self, leg: u32, grant: Grant, now_ns: u64) {
        if leg != self.leg {
            return;
        }
        self.query_ns = now_ns + QUERY_NS;
        self.passed = self.passed.max(grant.passed);
        // The first grant contains the drops before this leg.
        if grant.drops > self.drops && self.room > 0 {
            self.path_limit = self.path / 2;
        }
        (self.room, self.drops) = (grant.room, grant.drops);
        self.received = self.received.max(grant.received);
        if let Some(Sample { sent_ns, received, .. }) = self.sample.take_if(|sample| self.passed > sample.number) {
            let took_ns = now_ns.saturating_sub(sent_ns).max(1);
            // A datagram that waits for a thread to wake up is in a socket, not on the path.
            self.shortest_ns = self.shortest_ns.min(took_ns.saturating_sub(grant.waited_ns));
            let delivered = u128::from(self.received - received);
            self.path = (delivered * u128::from(self.shortest_ns) / u128::from(took_ns)) as u64;
        }
        self.path = self.path.min(self.path_limit);
    }

    /// When to query the receiver, if not now. A query that is due moves the next one.
    pub(super) fn query_at(&mut self, now_ns: u64) -> Option<u64> {
        if now_ns < self.query_ns {
            return Some(self.query_ns);
        }
        let first = self.query_ns == 0;
        self.query_ns = now_ns + QUERY_NS;
        // The receiver sends its first grant unasked.
        first.then_some(self.query_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Of a path that loses nothing.
    fn grant(passed: u64, room: u64, drops: u64) -> Grant {
        Grant { passed, room, received: passed, drops, waited_ns: 0 }
    }

    #[test]
    fn no_more_is_in_flight_than_the_receiver_holds() {
        let mut credit = Credit::new(3);
        assert_eq!(credit.burst(0, 1), 0, "nothing before the first grant");
        credit.granted(2, grant(0, 99, 0), 1_000);
        assert_eq!(credit.burst(0, 1), 0, "another leg's grant is none");
        credit.granted(3, grant(0, 100, 0), 1_000);
        assert_eq!((credit.burst(60, 40), credit.burst(61, 40)), (40, 0));
        assert_eq!((credit.burst(0, 500), credit.burst(1, 500)), (100, 0), "never more than the whole window");
    }

    /// The window's part for the path after `number`, sent at `sent_ns`, was granted at `now_ns`.
    fn path_after(credit: &mut Credit, number: u64, sent_ns: u64, grant: Grant, now_ns: u64) -> u64 {
        credit.sample = Some(Sample { number, sent_ns, received: number });
        credit.granted(0, grant, now_ns);
        credit.path
    }

    #[test]
    fn a_long_path_widens_the_window_and_a_standing_queue_does_not() {
        let asleep = Grant { waited_ns: 49_000, ..grant(100, 100, 7) };
        assert_eq!(path_after(&mut Credit::new(0), 0, 0, asleep, 50_000), 2, "time in a socket is not the path's");
        let mut credit = Credit::new(0);
        let mut path = |number, sent_ns, grant, now_ns| path_after(&mut credit, number, sent_ns, grant, now_ns);
        assert_eq!(path(0, 0, grant(100, 100, 7), 1_000_000), 100, "100 in the shortest round trip");
        assert_eq!(path(100, 1_000_000, grant(300, 100, 7), 3_000_000), 100, "200 in 2 ms are no more");
        assert_eq!(path(300, 3_000_000, grant(500, 50, 8), 4_000_000), 50, "the receiver dropped something");
        assert_eq!(path(500, 4_000_000, grant(900, 50, 8), 5_000_000), 50, "and that is remembered");
    }

    #[test]
    fn a_silent_receiver_is_queried_repeatedly() {
        let mut credit = Credit::new(0);
        let first = credit.query_at(5);
        assert_eq!(first, Some(5 + QUERY_NS));
        assert_eq!(credit.query_at(5 + QUERY_NS), None);
        assert_eq!(credit.query_at(6 + QUERY_NS), Some(5 + 2 * QUERY_NS));
    }

    #[test]
    fn a_receiver_that_dropped_grants_less() {
        let mut grants = Grants { leg: 0, room: 8, passed: 0, received: 0, reported: None, drops: 5 };
        grants.judge(5);
        assert_eq!(grants.room, 8);
        for _ in 0..9 {
            grants.judge(grants.drops + 1);
        }
        assert_eq!(grants.room, 1, "never nothing");
    }

    proptest! {
        #[test]
        fn the_window_stays_within_room_and_what_was_delivered(
            steps in prop::collection::vec((0u64..500, 1u64..1_000_000, 1u64..5_000), 1..100),
        ) {
            let mut credit = Credit::new(0);
            let (mut passed, mut now) = (0, 1);
            for (more, took, room) in steps {
                credit.sending(passed);
                credit.sample = credit.sample.take().map(|sample| Sample { sent_ns: now, ..sample });
                (passed, now) = (passed + more, now + took);
                credit.granted(0, grant(passed, room, 0), now);
                prop_assert!(credit.path <= passed);
                prop_assert_eq!(credit.burst(passed + room + credit.path, 1), 0);
                prop_assert_eq!(credit.burst(passed, 1), 1);
            }
        }
    }
}
