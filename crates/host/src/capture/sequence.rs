//! The time sequence of the connection with the most payload, bounded in size while its packets arrive.

use std::net::SocketAddr;
use std::time::Duration;

use model::TimeSequence;

use super::packet::Segment;

/// Connections that are followed; later ones are only in the file.
const CONNECTIONS: usize = 16;
/// Entries of each list: together with [`RETRANSMITTED`] what [`TimeSequence::POINTS`] allows.
const ENTRIES: usize = 1_750;
const RETRANSMITTED: usize = TimeSequence::POINTS - 2 * ENTRIES;

/// All connections seen.
#[derive(Default)]
pub(super) struct Connections {
    all: Vec<Connection>,
    /// The connection of the last segment: the next one probably belongs to it too.
    recent: usize,
}

impl Connections {
    /// Takes a segment that passed at `at`.
    pub(super) fn see(&mut self, at: Duration, segment: &Segment) {
        let of = |connection: &Connection| connection.direction(segment.from, segment.to);
        let known = match self.all.get(self.recent).and_then(of) {
            Some(direction) => Some((self.recent, direction)),
            None => self.all.iter().enumerate().find_map(|(index, one)| Some((index, of(one)?))),
        };
        let (index, direction) = match known {
            Some(known) => known,
            None if self.all.len() < CONNECTIONS => {
                self.all.push(Connection::new(at, segment));
                (self.all.len() - 1, 0)
            }
            None => return,
        };
        self.recent = index;
        self.all[index].see(direction, at, segment);
    }

    /// The direction with the most payload; `None` if there was none.
    pub(super) fn longest(self) -> Option<TimeSequence> {
        let directions = self
            .all
            .into_iter()
            .flat_map(|Connection { ends: [a, b], directions: [there, back], .. }| [(a, b, there), (b, a, back)]);
        let (sender, receiver, direction) = directions
            .filter(|(_, _, direction)| direction.bytes > 0)
            .max_by_key(|(_, _, direction)| direction.bytes)?;
        Some(TimeSequence {
            sender: sender.to_string(),
            receiver: receiver.to_string(),
            data: direction.data.points,
            data_kept: direction.data.stride,
            acks: direction.acks.points,
            acks_kept: direction.acks.stride,
            retransmitted_at: direction.retransmitted_at.points,
            retransmitted_kept: direction.retransmitted_at.stride,
            retransmitted: direction.retransmitted_at.seen,
        })
    }
}

struct Connection {
    ends: [SocketAddr; 2],
    begun: Duration,
    /// From the first end to the second, and back.
    directions: [DirectionLog; 2],
}

impl Connection {
    fn new(at: Duration, segment: &Segment) -> Self {
        Self { ends: [segment.from, segment.to], begun: at, directions: [DirectionLog::new(), DirectionLog::new()] }
    }

    /// The direction of a segment between these two, if it belongs here.
    fn direction(&self, from: SocketAddr, to: SocketAddr) -> Option<usize> {
        match self.ends {
            [a, b] if (a, b) == (from, to) => Some(0),
            [a, b] if (b, a) == (from, to) => Some(1),
            _ => None,
        }
    }

    fn see(&mut self, direction: usize, at: Duration, segment: &Segment) {
        let at_ns = u64::try_from(at.saturating_sub(self.begun).as_nanos()).unwrap_or(u64::MAX);
        self.directions[direction].data(at_ns, segment);
        if let Some(number) = segment.acknowledged {
            self.directions[1 - direction].acknowledged(at_ns, number);
        }
    }
}

/// One direction's payload and its acknowledgements.
struct DirectionLog {
    numbers: Option<Numbers>,
    /// The end of what has been sent so far.
    highest: u64,
    bytes: u64,
    data: Thinned,
    acks: Thinned,
    retransmitted_at: Thinned,
    last_ack: u64,
}

impl DirectionLog {
    fn new() -> Self {
        let (data, acks, retransmitted_at) =
            (Thinned::new(ENTRIES), Thinned::new(ENTRIES), Thinned::new(RETRANSMITTED));
        Self { numbers: None, highest: 0, bytes: 0, data, acks, retransmitted_at, last_ack: 0 }
    }

    fn data(&mut self, at_ns: u64, segment: &Segment) {
        // A SYN takes one number (RFC 9293, 3.4): the payload begins after it.
        let first = segment.number.wrapping_add(u32::from(segment.syn));
        let numbers = self.numbers.get_or_insert(Numbers { first, last: 0 });
        if segment.payload == 0 {
            return;
        }
        let end = numbers.absolute(first.wrapping_add(segment.payload));
        self.bytes += u64::from(segment.payload);
        if end > self.highest {
            self.highest = end;
            self.data.push((at_ns, end));
        } else {
            self.retransmitted_at.push((at_ns, end));
        }
    }

    fn acknowledged(&mut self, at_ns: u64, number: u32) {
        let Some(numbers) = &mut self.numbers else { return };
        let end = numbers.absolute(number);
        // Acknowledgements that only confirm the window or repeat the last one add nothing.
        if end > self.last_ack {
            self.last_ack = end;
            self.acks.push((at_ns, end));
        }
    }
}

/// Sequence numbers, which start anywhere and wrap around at 2^32, as bytes since the first.
struct Numbers {
    first: u32,
    /// The highest so far.
    last: u64,
}

impl Numbers {
    fn absolute(&mut self, number: u32) -> u64 {
        // Within 2^31 of the highest one, on either side (RFC 9293, 3.4).
        let expected = self.first.wrapping_add(self.last as u32);
        let step = i64::from(number.wrapping_sub(expected) as i32);
        let absolute = self.last.saturating_add_signed(step);
        self.last = self.last.max(absolute);
        absolute
    }
}

/// A bounded list: when full, every other entry is dropped, and from then on only every other one is added.
struct Thinned {
    limit: usize,
    stride: u64,
    seen: u64,
    points: Vec<(u64, u64)>,
}

impl Thinned {
    fn new(limit: usize) -> Self {
        Self { limit, stride: 1, seen: 0, points: Vec::new() }
    }

    fn push(&mut self, point: (u64, u64)) {
        if self.seen.is_multiple_of(self.stride) {
            if self.points.len() == self.limit {
                let mut keep = false;
                self.points.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.points.push(point);
            }
        }
        self.seen += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment(forth: bool, number: u32, acknowledged: u32, payload: u32) -> Segment {
        let [a, b] = ["10.0.0.1:4000", "10.0.0.2:6280"].map(|end| end.parse().unwrap());
        let (from, to) = if forth { (a, b) } else { (b, a) };
        Segment { from, to, number, acknowledged: Some(acknowledged), syn: false, payload }
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn payload_acknowledgements_and_retransmissions_are_distinguished() {
        let mut connections = Connections::default();
        let syn = Segment { syn: true, acknowledged: None, ..segment(true, u32::MAX - 500, 0, 0) };
        connections.see(MS, &syn);
        connections.see(2 * MS, &Segment { syn: true, ..segment(false, 9, u32::MAX - 499, 0) });
        // Numbers wrap around in the second segment.
        let first = u32::MAX - 499;
        connections.see(3 * MS, &segment(true, first, 10, 400));
        connections.see(4 * MS, &segment(true, first.wrapping_add(400), 10, 400));
        connections.see(5 * MS, &segment(false, 10, first.wrapping_add(400), 0));
        connections.see(6 * MS, &segment(true, first, 10, 400));
        connections.see(7 * MS, &segment(false, 10, first.wrapping_add(800), 20));
        let longest = connections.longest().unwrap();
        let ms = 1_000_000;
        assert_eq!((longest.sender.as_str(), longest.receiver.as_str()), ("10.0.0.1:4000", "10.0.0.2:6280"));
        assert_eq!(longest.data, [(2 * ms, 400), (3 * ms, 800)]);
        assert_eq!(longest.acks, [(4 * ms, 400), (6 * ms, 800)]);
        assert_eq!((longest.retransmitted_at, longest.retransmitted), (vec![(5 * ms, 400)], 1));
        assert_eq!((longest.data_kept, longest.acks_kept), (1, 1));
    }

    #[test]
    fn the_connection_that_carries_most_is_the_one() {
        let mut connections = Connections::default();
        for round in 0..50 {
            let control = Segment { from: "10.0.0.1:1".parse().unwrap(), ..segment(true, round * 10, 0, 10) };
            connections.see(MS * round, &control);
            connections.see(MS * round, &segment(false, round * 1_000, 0, 1_000));
        }
        let longest = connections.longest().unwrap();
        assert_eq!((longest.sender.as_str(), longest.data.len()), ("10.0.0.2:6280", 50));
        assert!(Connections::default().longest().is_none());
        // Connections beyond the followed ones are not kept.
        let mut connections = Connections::default();
        for port in 1..100 {
            connections.see(MS, &Segment { from: SocketAddr::from(([10, 0, 0, 1], port)), ..segment(true, 0, 0, 10) });
        }
        assert_eq!(connections.all.len(), CONNECTIONS);
    }

    proptest! {
        #[test]
        fn a_list_stays_short_and_evenly_spread(count in 0_u64..20_000, limit in 1_usize..50) {
            let mut list = Thinned::new(limit);
            (0..count).for_each(|index| list.push((index, index)));
            prop_assert!(list.points.len() <= limit && list.seen == count);
            let expected: Vec<(u64, u64)> = (0..count).step_by(list.stride as usize).map(|n| (n, n)).collect();
            prop_assert_eq!(list.points, expected);
        }

        #[test]
        fn numbers_are_unwrapped_whatever_the_first_is(first in any::<u32>(), steps in prop::collection::vec(0_u32..1 << 30, 1..30)) {
            let mut numbers = Numbers { first, last: 0 };
            let mut sum = 0_u64;
            for step in steps {
                sum += u64::from(step);
                prop_assert_eq!(numbers.absolute(first.wrapping_add(sum as u32)), sum);
            }
        }
    }
}
