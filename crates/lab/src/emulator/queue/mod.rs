//! A link of a given rate behind a queue.
//!
//! Segments wait here without their bytes. The fate of one is decided when it leaves: only then are known the time it
//! waited, the link's rate at that time, and what arrived behind it.

mod codel;
mod red;

use std::collections::VecDeque;

use super::counts::DropLocation;
use super::random::Random;
use super::spec::{DirectionSpec, Discipline};
use codel::Codel;
use red::{Arrival, Red};

const BIT_NS: u128 = 8_000_000_000;

/// The discipline's decision for a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Send,
    Mark,
    Drop,
}

/// Neighbouring segments of one packet that wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    /// The packet's number in the ring.
    pub(crate) packet: u64,
    /// The first waiting one, and the end of the range.
    pub(crate) next: usize,
    pub(crate) end: usize,
    /// Bytes on the wire of each segment, and of the packet's last one.
    pub(crate) wire_bytes: u64,
    pub(crate) last: (usize, u64),
    pub(crate) arrived_ns: u64,
    /// They have been marked already.
    pub(crate) marked: bool,
    /// They may be marked.
    pub(crate) allows: bool,
}

impl Batch {
    fn head_bytes(&self) -> u64 {
        if self.next == self.last.0 { self.last.1 } else { self.wire_bytes }
    }
}

/// A segment that has left the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) packet: u64,
    pub(crate) segment: usize,
    pub(crate) wire_bytes: u64,
    /// Whether nothing of its batch waits any more.
    pub(crate) last: bool,
    /// When it has been sent and whether it was marked, or where it was dropped.
    pub(crate) outcome: Result<(u64, bool), DropLocation>,
}

#[derive(Debug)]
enum State {
    DropTail,
    Red(Red),
    Codel(Codel),
}

/// The queue and the link behind it.
///
/// Exact: fractions of a nanosecond are carried over to the next byte, so that no rate drifts while the link is busy.
#[derive(Debug)]
pub(crate) struct Link {
    rate_bps: Option<u64>,
    limit_bytes: u64,
    limit_packets: Option<u64>,
    /// The largest segment, bytes on the wire.
    largest_bytes: u64,
    free_ns: u64,
    /// What the link needs beyond `free_ns`, in units of 1/rate ns.
    rest: u128,
    waiting: VecDeque<Batch>,
    waiting_bytes: u64,
    waiting_packets: u64,
    /// When the segments passed to the link will have been sent.
    leaving: VecDeque<u64>,
    discipline: Discipline,
    state: State,
    random: Random,
}

impl Link {
    /// `mtu` is that of the hosts' interfaces, in bytes.
    pub(crate) fn new(direction: &DirectionSpec, mtu: u32, random: Random) -> Self {
        let mut link = Self {
            rate_bps: None,
            limit_bytes: 0,
            limit_packets: None,
            largest_bytes: u64::from(mtu + direction.framing_bytes),
            free_ns: 0,
            rest: 0,
            waiting: VecDeque::with_capacity(1 << 16),
            waiting_bytes: 0,
            waiting_packets: 0,
            leaving: VecDeque::with_capacity(1 << 12),
            discipline: Discipline::DropTail,
            state: State::DropTail,
            random,
        };
        link.set(direction);
        link
    }

    /// Changes the link from now on. The segment that is being sent keeps its time.
    pub(crate) fn set(&mut self, direction: &DirectionSpec) {
        if self.rate_bps != direction.rate_bps {
            self.rest = 0;
        }
        self.rate_bps = direction.rate_bps;
        self.limit_bytes = direction.queue_bytes;
        self.limit_packets = direction.queue_packets;
        if self.discipline != direction.discipline {
            self.discipline = direction.discipline;
            self.state = match &direction.discipline {
                Discipline::DropTail => State::DropTail,
                Discipline::Red(red) => State::Red(Red::new(red)),
                Discipline::Codel(codel) => State::Codel(Codel::new(codel)),
            };
        }
    }

    /// Whether an arriving segment enters the queue, and whether it is marked; the caller then puts it into a batch
    /// for [`push`](Self::push). Segments due to leave before now have left.
    pub(crate) fn admit(&mut self, now_ns: u64, wire_bytes: u64, allows: bool) -> Result<bool, DropLocation> {
        let Some(rate_bps) = self.rate_bps else {
            self.entered(wire_bytes);
            return Ok(false);
        };
        let backlog_bytes = self.backlog_bytes(now_ns, rate_bps);
        let room = match self.limit_packets {
            Some(limit) => self.backlog_packets(now_ns) < limit,
            None => backlog_bytes + wire_bytes <= self.limit_bytes,
        };
        let mut marked = false;
        if let State::Red(red) = &mut self.state {
            let idle_ns = now_ns.saturating_sub(self.free_ns);
            let largest_bytes = self.largest_bytes;
            let arrival = Arrival { backlog_bytes, idle_ns, rate_bps, wire_bytes, largest_bytes, allows };
            match room {
                true => match red.fate(&arrival, &mut self.random) {
                    Fate::Send => {}
                    Fate::Mark => marked = true,
                    Fate::Drop => return Err(DropLocation::Aqm),
                },
                // The average is of all arrivals (the paper, figure 2).
                false => red.follow(&arrival),
            }
        }
        if !room {
            return Err(DropLocation::Queue);
        }
        self.entered(wire_bytes);
        Ok(marked)
    }

    fn entered(&mut self, wire_bytes: u64) {
        self.waiting_bytes += wire_bytes;
        self.waiting_packets += 1;
    }

    /// Takes back admitted segments.
    pub(crate) fn withdraw(&mut self, packets: u64, wire_bytes: u64) {
        self.waiting_packets -= packets;
        self.waiting_bytes -= wire_bytes;
    }

    /// Appends admitted segments to the queue.
    pub(crate) fn push(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    /// When the next segment leaves the queue for the link; `None` if none waits.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.waiting.front().map(|batch| batch.arrived_ns.max(self.free_ns))
    }

    /// Removes and returns the next segment if it leaves at `until_ns` or before.
    pub(crate) fn depart(&mut self, until_ns: u64) -> Option<Departure> {
        let leaves_ns = self.next_ns().filter(|leaves| *leaves <= until_ns)?;
        let head = self.waiting.front_mut()?;
        let (packet, segment, wire_bytes) = (head.packet, head.next, head.head_bytes());
        let (arrived_ns, allows, mut marked) = (head.arrived_ns, head.allows, head.marked);
        head.next += 1;
        let last = head.next == head.end;
        if last {
            self.waiting.pop_front();
        }
        self.waiting_bytes -= wire_bytes;
        self.waiting_packets -= 1;
        let fate = match (&mut self.state, self.rate_bps) {
            (State::Codel(codel), Some(_)) => {
                let more = self.waiting_bytes > self.largest_bytes;
                codel.fate(leaves_ns, leaves_ns - arrived_ns, more, allows)
            }
            _ => Fate::Send,
        };
        marked |= fate == Fate::Mark;
        let outcome = match fate {
            Fate::Drop => Err(DropLocation::Aqm),
            Fate::Send | Fate::Mark => Ok((self.send(leaves_ns, wire_bytes), marked)),
        };
        Some(Departure { packet, segment, wire_bytes, last, outcome })
    }

    /// Sends a segment from a time at which the link is free; returns when it has been sent.
    fn send(&mut self, from_ns: u64, wire_bytes: u64) -> u64 {
        let Some(rate_bps) = self.rate_bps else {
            self.free_ns = from_ns;
            return from_ns;
        };
        if self.free_ns < from_ns {
            (self.free_ns, self.rest) = (from_ns, 0);
        }
        let work = u128::from(wire_bytes) * BIT_NS + self.rest;
        self.free_ns += (work / u128::from(rate_bps)) as u64;
        self.rest = work % u128::from(rate_bps);
        if self.limit_packets.is_some() {
            self.leaving.push_back(self.free_ns);
        }
        self.free_ns
    }

    /// Bytes that have not left at a time, rounded up: those that wait, and the unsent rest of those passed to the
    /// link.
    fn backlog_bytes(&self, now_ns: u64, rate_bps: u64) -> u64 {
        let busy = u128::from(self.free_ns.saturating_sub(now_ns));
        let left = if self.free_ns >= now_ns { busy * u128::from(rate_bps) + self.rest } else { 0 };
        self.waiting_bytes + left.div_ceil(BIT_NS) as u64
    }

    fn backlog_packets(&mut self, now_ns: u64) -> u64 {
        while self.leaving.front().is_some_and(|left| *left <= now_ns) {
            self.leaving.pop_front();
        }
        self.waiting_packets + self.leaving.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::spec;
    use proptest::prelude::*;

    fn link(direction: &DirectionSpec) -> Link {
        Link::new(direction, 9_000, Random::new(1))
    }

    fn of(rate_bps: u64, queue_bytes: u64) -> DirectionSpec {
        DirectionSpec { rate_bps: Some(rate_bps), queue_bytes, ..DirectionSpec::default() }
    }

    /// A packet of one segment arrives.
    fn arrive(link: &mut Link, now_ns: u64, wire_bytes: u64) -> Result<bool, DropLocation> {
        let marked = link.admit(now_ns, wire_bytes, true)?;
        let last = (0, wire_bytes);
        let (packet, arrived_ns) = (0, now_ns);
        link.push(Batch { packet, next: 0, end: 1, wire_bytes, last, arrived_ns, marked, allows: true });
        Ok(marked)
    }

    fn all(link: &mut Link) -> Vec<Result<(u64, bool), DropLocation>> {
        std::iter::from_fn(|| link.depart(u64::MAX)).map(|departure| departure.outcome).collect()
    }

    proptest! {
        /// A link that never idles has sent exactly rate times time bits, to the nanosecond.
        #[test]
        fn a_busy_link_keeps_its_rate(rate in 1_000_u64..100_000_000_000, sizes in prop::collection::vec(60_u64..9_100, 1..200)) {
            let mut link = link(&of(rate, u64::MAX / 2));
            let mut sent = 0;
            for wire_bytes in sizes {
                sent += wire_bytes;
                prop_assert_eq!(arrive(&mut link, 0, wire_bytes), Ok(false));
                let (at_ns, _) = link.depart(u64::MAX).unwrap().outcome.unwrap();
                prop_assert_eq!(u128::from(at_ns), u128::from(sent) * BIT_NS / u128::from(rate));
            }
        }

        /// Nothing waits longer than the full queue takes, nothing overtakes, and what is refused did not fit, however
        /// far ahead of time segments are passed to the link.
        #[test]
        fn the_queue_is_as_long_as_it_says(
            arrivals in prop::collection::vec((0_u64..20_000, 60_u64..9_100), 1..300),
            ahead in 0_u64..100_000,
        ) {
            let (rate, limit) = (1_000_000_000, 30_000);
            let mut link = link(&of(rate, limit));
            // What precedes each segment, from a queue with packets in it: bytes and the times when they have left.
            let mut inside: Vec<(u64, u64)> = Vec::new();
            let (mut now, mut free, mut expected, mut left) = (0_u64, 0_u64, Vec::new(), Vec::new());
            for (gap, wire_bytes) in arrivals {
                now += gap;
                while let Some(departure) = link.depart(now) { left.push(departure.outcome.unwrap().0); }
                let waiting: f64 = inside.iter().map(|(left, bytes)| {
                    let tx = bytes * 8;
                    (left.saturating_sub(now)).min(tx) as f64 / 8.0
                }).sum();
                match arrive(&mut link, now, wire_bytes) {
                    Ok(_) => {
                        prop_assert!(waiting + wire_bytes as f64 <= limit as f64 + 1.0);
                        free = free.max(now) + wire_bytes * 8;
                        inside.push((free, wire_bytes));
                        expected.push(free);
                    }
                    Err(location) => {
                        prop_assert_eq!(location, DropLocation::Queue);
                        prop_assert!(waiting + wire_bytes as f64 > limit as f64 - 1.0);
                    }
                }
                while let Some(departure) = link.depart(now + ahead) { left.push(departure.outcome.unwrap().0); }
            }
            left.extend(all(&mut link).into_iter().map(|outcome| outcome.unwrap().0));
            prop_assert_eq!(left, expected);
        }
    }

    #[test]
    fn a_queue_in_packets_counts_packets_of_any_length() {
        let direction = DirectionSpec { queue_packets: Some(3), queue_bytes: 1, ..of(8_000_000, 0) };
        let mut link = link(&direction);
        // 1 ms each: one in sending and two that wait.
        let admitted: Vec<bool> = (0..5).map(|_| arrive(&mut link, 0, 1_000).is_ok()).collect();
        assert_eq!(admitted, [true, true, true, false, false]);
        // One passed to the link ahead of its time still counts until it has been sent.
        assert_eq!(link.depart(0).unwrap().outcome, Ok((1_000_000, false)));
        assert_eq!(arrive(&mut link, 999_999, 60), Err(DropLocation::Queue));
        assert!(arrive(&mut link, 1_000_000, 9_000).is_ok());
    }

    #[test]
    fn a_new_rate_applies_to_waiting_segments() {
        let mut link = link(&of(8_000_000, 100_000));
        (0..3).for_each(|_| assert!(arrive(&mut link, 0, 1_000).is_ok()));
        assert_eq!(link.depart(0).unwrap().outcome, Ok((1_000_000, false)));
        link.set(&of(80_000_000, 100_000));
        assert_eq!(link.depart(u64::MAX).unwrap().outcome, Ok((1_100_000, false)));
        link.set(&DirectionSpec::default());
        assert_eq!(link.depart(u64::MAX).unwrap().outcome, Ok((1_100_000, false)));
        assert_eq!(link.next_ns(), None);
    }

    #[test]
    fn codel_drops_segments_at_the_head_that_waited_too_long() {
        let discipline = Discipline::Codel(spec::Codel::default());
        let mut link = link(&DirectionSpec { discipline, ..of(8_000_000, 10_000_000) });
        // 1,000 segments of 1 ms at once: the queue is far above 5 ms until the last ten or so.
        (0..1_000).for_each(|_| assert!(arrive(&mut link, 0, 1_000).is_ok()));
        let outcomes = all(&mut link);
        let first = outcomes.iter().position(Result::is_err).unwrap();
        // Above the target since 5 ms, for 100 ms.
        assert_eq!(first, 105);
        assert_eq!(outcomes[first - 1], Ok((105_000_000, false)));
        assert_eq!(outcomes[first + 1], Ok((106_000_000, false)), "a dropped segment takes no time of the link");
        let dropped = outcomes.iter().filter(|outcome| **outcome == Err(DropLocation::Aqm)).count();
        // 100/sqrt(k) ms apart from 105 ms on: n drops take 200 ms * sqrt(n) less 146 ms, here some 870 ms.
        assert!((23..=29).contains(&dropped), "{dropped}");
    }

    #[test]
    fn red_decides_on_arrival_and_marks_travel_with_the_segment() {
        let red = spec::Red { min: 5_000, max: 1_000_000, probability: 1.0, weight: 1.0, ecn: true };
        let mut link = link(&DirectionSpec { discipline: Discipline::Red(red), ..of(8_000_000, 10_000_000) });
        let marked: Vec<bool> = (0..900).map(|_| arrive(&mut link, 0, 1_000).unwrap()).collect();
        assert!(marked[..5].iter().all(|marked| !marked) && marked.iter().filter(|marked| **marked).count() > 20);
        let left: Vec<bool> = all(&mut link).into_iter().map(|outcome| outcome.unwrap().1).collect();
        assert_eq!(left, marked);
    }
}
