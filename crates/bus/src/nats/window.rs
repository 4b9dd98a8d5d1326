//! The two halves of a stream's bookkeeping, without I/O and clock: what was sent and not acknowledged, and what is expected.
//!
//! A bus delivers a message at most once, and loses those that are sent while it is down. So each is kept until it is acknowledged, and
//! all that are kept are sent again after a while (go-back-N).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::packet::Packet;

/// Most messages that are not acknowledged.
const MOST_UNACKNOWLEDGED: usize = 64;
/// Time without an acknowledgement until they are sent again.
const RESEND_AFTER: Duration = Duration::from_millis(500);
/// Time without an acknowledgement until the stream is given up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// What was sent.
pub(super) struct Sent {
    next: u64,
    kept: VecDeque<Packet>,
    /// The last time that something was acknowledged, or that the first message was kept.
    progress: Instant,
    /// The last time that messages were sent again.
    resent: Instant,
}

/// What must be done now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing before this time.
    Wait(Instant),
    /// Nothing before a message is sent.
    Idle,
    /// All that [`Sent::kept`] returns is sent again.
    Resend,
    /// The other end does not answer.
    GiveUp,
}

impl Sent {
    /// Nothing was sent; the next message has this number.
    pub(super) fn new(next: u64, now: Instant) -> Self {
        Self { next, kept: VecDeque::new(), progress: now, resent: now }
    }

    pub(super) fn has_room(&self) -> bool {
        self.kept.len() < MOST_UNACKNOWLEDGED
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Gives a message its number, and keeps it.
    pub(super) fn send(&mut self, numbered: impl FnOnce(u64) -> Packet, now: Instant) -> Packet {
        if self.kept.is_empty() {
            (self.progress, self.resent) = (now, now);
        }
        let packet = numbered(self.next);
        self.next += 1;
        self.kept.push_back(packet.clone());
        packet
    }

    /// Forgets what has arrived. An acknowledgement of what was not sent yet says nothing.
    pub(super) fn acknowledged(&mut self, expected: u64, now: Instant) {
        if expected > self.next {
            return;
        }
        let before = self.kept.len();
        self.kept.retain(|packet| packet.number().is_some_and(|number| number >= expected));
        if self.kept.len() < before {
            (self.progress, self.resent) = (now, now);
        }
    }

    pub(super) fn due(&mut self, now: Instant) -> Due {
        if self.kept.is_empty() {
            return Due::Idle;
        }
        if now >= self.progress + GIVE_UP_AFTER {
            return Due::GiveUp;
        }
        let next = self.resent + RESEND_AFTER;
        if now < next {
            return Due::Wait(next);
        }
        self.resent = now;
        Due::Resend
    }

    pub(super) fn kept(&self) -> impl Iterator<Item = &Packet> {
        self.kept.iter()
    }
}

/// What is expected.
#[derive(Debug, Default)]
pub(super) struct Expected(u64);

impl Expected {
    /// The next message has this number.
    pub(super) fn new(next: u64) -> Self {
        Self(next)
    }

    /// Whether this is the next message; it then counts as arrived.
    pub(super) fn take(&mut self, number: u64) -> bool {
        let is_next = number == self.0;
        self.0 += u64::from(is_next);
        is_next
    }

    /// The acknowledgement of all that has arrived.
    pub(super) fn ack(&self) -> Packet {
        Packet::Ack(self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is lost or repeated in both directions, all data arrive once and in order.
        #[test]
        fn all_data_arrive_once_and_in_order(lots in proptest::collection::vec(0_u8..4, 1..400), count in 1_u64..150) {
            let start = Instant::now();
            let mut now = start;
            let (mut sent, mut expected) = (Sent::new(1, now), Expected::new(1));
            let (mut arrived, mut lots, mut queued) = (Vec::new(), lots.into_iter().cycle(), 0);
            let mut turns = 0;
            let mut delivered_lately = 0;
            while arrived.len() < count as usize {
                turns += 1;
                prop_assume!(turns < 20_000);
                let mut flight = Vec::new();
                while sent.has_room() && queued < count {
                    queued += 1;
                    flight.push(sent.send(|number| Packet::Data(number, queued.to_be_bytes().to_vec().into()), now));
                }
                match sent.due(now) {
                    Due::Resend => flight.extend(sent.kept().cloned()),
                    Due::GiveUp => prop_assume!(false),
                    Due::Wait(then) => now = now.max(then),
                    Due::Idle => {}
                }
                for packet in flight {
                    // 0: lost, 1: twice, else once. One in every eight arrives in any case.
                    delivered_lately += 1;
                    let lot = if delivered_lately % 8 == 0 { 2 } else { lots.next().unwrap() };
                    for _ in 0..[0, 2, 1, 1][usize::from(lot)] {
                        let Packet::Data(number, data) = &packet else { unreachable!() };
                        if expected.take(*number) {
                            arrived.push(u64::from_be_bytes(data[..].try_into().unwrap()));
                        }
                        let Packet::Ack(next) = expected.ack() else { unreachable!() };
                        if lots.next() != Some(0) {
                            sent.acknowledged(next, now);
                        }
                    }
                }
            }
            prop_assert_eq!(arrived, (1..=count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_silent_end_is_given_up() {
        let start = Instant::now();
        let mut sent = Sent::new(0, start);
        assert_eq!(sent.due(start), Due::Idle);
        sent.send(|_| Packet::Open, start);
        assert_eq!(sent.due(start), Due::Wait(start + RESEND_AFTER));
        assert_eq!(sent.due(start + RESEND_AFTER), Due::Resend);
        assert_eq!(sent.due(start + RESEND_AFTER), Due::Wait(start + 2 * RESEND_AFTER));
        assert_eq!(sent.due(start + GIVE_UP_AFTER), Due::GiveUp);
        sent.acknowledged(7, start);
        assert!(!sent.is_empty(), "it was never sent");
        sent.acknowledged(1, start);
        assert!(sent.is_empty());
    }
}
