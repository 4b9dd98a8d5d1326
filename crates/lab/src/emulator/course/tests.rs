//! Courses in simulated time.

use std::time::Duration;

use proptest::prelude::*;

use super::super::packet::tests::build;
use super::super::packet::{NEEDS_CHECKSUM, VIRTIO};
use super::super::spec::{Bursts, Codel, Discipline, Jitter, LinkChange, Red, Reorder};
use super::*;
use crate::emulator::counts::PathCounts;

const MS: u64 = 1_000_000;
const MTU: u32 = 1_500;
/// Bytes of the headers of IPv4 and TCP that `build` makes.
const HEADERS: usize = 52;

/// A course, its clock, and its output: times and packets.
struct Sim {
    course: Course,
    counters: Arc<Counters>,
    out: Vec<(u64, Vec<u8>)>,
}

impl Sim {
    fn new(direction: &DirectionSpec) -> Self {
        assert!(direction.check(MTU).is_ok(), "{direction:?}");
        let counters = Arc::new(Counters::default());
        Self { course: Course::new(direction, MTU, 3, Arc::clone(&counters)), counters, out: Vec::new() }
    }

    /// Advances to a time, like a thread that is never late.
    fn until(&mut self, end_ns: u64) {
        loop {
            let next = self.course.due_ns().into_iter().chain(self.course.work_ns()).min();
            let Some(now) = next.filter(|next| *next <= end_ns) else { break };
            self.course.advance(now);
            while let Some(packet) = self.course.due(now) {
                self.out.push((now, packet.to_vec()));
                self.course.handed(now, true);
            }
        }
    }

    fn arrive(&mut self, now_ns: u64, packet: &[u8]) {
        self.until(now_ns);
        self.course.slot()[..packet.len()].copy_from_slice(packet);
        self.course.arrive(packet.len(), now_ns);
    }

    fn end(&mut self) -> PathCounts {
        self.until(u64::MAX / 2);
        self.counters.read()
    }
}

/// A TCP packet of this many full segments, and the length of each on the link.
fn packet(segments: usize) -> (Vec<u8>, u64) {
    let payload = MTU as usize - HEADERS;
    (build(false, false, payload, payload * segments), u64::from(MTU) + 38)
}

/// Segments of a packet that was delivered.
fn segments(packet: &[u8]) -> u64 {
    Layout::of(packet).segments() as u64
}

/// TCP's sequence numbers of the segments of a delivered packet, relative to the first one of `build`.
fn numbers(packet: &[u8]) -> Vec<usize> {
    let transport = &packet[VIRTIO + 20..];
    let number = u32::from_be_bytes(transport[4..8].try_into().unwrap());
    let first = number.wrapping_sub(0xffff_f000) as usize / (MTU as usize - HEADERS);
    (first..first + segments(packet) as usize).collect()
}

/// Whether the receiver would find the transport's checksum wrong.
fn broken(packet: &[u8]) -> bool {
    let ip = &packet[VIRTIO..];
    let pseudo = super::super::checksum::pseudo_header(&ip[12..20], 6, ip.len() - 20);
    packet[0] & NEEDS_CHECKSUM == 0 && super::super::checksum::add(u32::from(pseudo), &ip[20..]) != 0xffff
}

fn disciplines() -> impl Strategy<Value = Discipline> {
    let codel = Codel { target: Duration::from_micros(200), interval: Duration::from_millis(2), ecn: true };
    let red = Red { min: 5_000, max: 60_000, probability: 0.3, weight: 0.1, ecn: true };
    prop_oneof![
        Just(Discipline::DropTail),
        Just(Discipline::Codel(codel)),
        Just(Discipline::Codel(Codel { ecn: false, ..codel })),
        Just(Discipline::Red(red)),
        Just(Discipline::Red(Red { ecn: false, ..red })),
    ]
}

prop_compose! {
    fn directions()(
        (rate, queue, packets) in (prop::option::of(10_000_000_u64..3_000_000_000), 2_000_u64..200_000, prop::option::of(1_u64..60)),
        discipline in disciplines(),
        (loss, corrupt, duplicate, kept) in (0.0..0.2, 0.0..0.2, 0.0..0.2, 0.0..0.2),
        p in prop_oneof![Just(0.0), 0.0..0.3],
        (delay, spread, overtake) in (0_u64..20, 0_u64..4, any::<bool>()),
        changes in prop::collection::vec((0_u64..30, prop::option::of(prop::option::of(10_000_000_u64..3_000_000_000)), 0.0..0.2), 0..4),
    ) -> DirectionSpec {
        let mut at = 0;
        let changes = changes.into_iter().map(|(gap, rate_bps, loss)| {
            at += gap;
            LinkChange { at: Duration::from_millis(at), rate_bps, loss: Some(loss), ..LinkChange::default() }
        });
        DirectionSpec {
            delay: Duration::from_millis(delay),
            jitter: Jitter { spread: Duration::from_millis(spread), overtake, ..Jitter::default() },
            rate_bps: rate,
            queue_bytes: queue,
            queue_packets: packets,
            discipline,
            loss,
            bursts: Bursts { p, r: 0.3, h: 0.1, k: 1.0 },
            corrupt,
            duplicate,
            reorder: Reorder { probability: kept, by: Duration::from_millis(1) },
            changes: changes.collect(),
            ..DirectionSpec::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// On any path, every segment and every copy is delivered or counted at one location once the path is empty; and
    /// the counts match the output.
    #[test]
    fn every_segment_is_accounted_for(
        direction in directions(),
        arrivals in prop::collection::vec((0_u64..2 * MS, 1_usize..44, any::<bool>()), 1..60),
    ) {
        let mut sim = Sim::new(&direction);
        let (mut now, mut sent) = (0, 0);
        for (gap, segments, allows) in arrivals {
            now += gap;
            let (mut packet, _) = packet(segments);
            packet[VIRTIO + 1] |= if allows { 2 } else { 0 };
            sim.arrive(now, &packet);
            sent += segments as u64;
        }
        let counts = sim.end();
        prop_assert_eq!(counts.arrived, sent);
        prop_assert_eq!(counts.arrived + counts.duplicated, counts.delivered + counts.dropped());
        prop_assert_eq!((counts.refused, counts.dropped_ring, counts.dropped_mtu), (0, 0, 0));
        let came: u64 = sim.out.iter().map(|(_, packet)| segments(packet)).sum();
        prop_assert_eq!(came, counts.delivered);
        let wrong = sim.out.iter().filter(|(_, packet)| broken(packet)).count() as u64;
        prop_assert_eq!(wrong, counts.corrupted);
        // Marked segments may be lost behind the queue.
        let marked: u64 = sim.out.iter().filter(|(_, packet)| packet[VIRTIO + 1] & 3 == 3).map(|(_, packet)| segments(packet)).sum();
        prop_assert!(marked <= counts.marked + counts.duplicated, "{marked} of {}", counts.marked);
        prop_assert_eq!(counts.late.max_ns(), Some(0).filter(|_| counts.late.count() > 0));
    }

    /// Without noise and with enough room, the stream arrives complete and in order with any delay, and each segment
    /// at its time or at most the time later that segments wait for each other.
    #[test]
    fn a_quiet_path_keeps_order_and_time(
        rate in 100_000_000_u64..10_000_000_000,
        spread in 0_u64..3,
        arrivals in prop::collection::vec((0_u64..MS, 1_usize..44), 1..40),
    ) {
        let jitter = Jitter { spread: Duration::from_millis(spread), ..Jitter::default() };
        let delay = Duration::from_millis(5);
        let mut sim = Sim::new(&DirectionSpec { delay, jitter, rate_bps: Some(rate), queue_bytes: 1 << 23, ..DirectionSpec::default() });
        let (mut now, mut free, mut due) = (0, 0.0_f64, Vec::new());
        for (gap, segments) in arrivals {
            now += gap;
            let (packet, wire_bytes) = packet(segments);
            sim.arrive(now, &packet);
            for segment in 0..segments {
                free = free.max(now as f64) + wire_bytes as f64 * 8e9 / rate as f64;
                due.push((segment, free + 5e6));
            }
        }
        let counts = sim.end();
        let came: Vec<(usize, u64)> =
            sim.out.iter().flat_map(|(at, packet)| numbers(packet).into_iter().map(|number| (number, *at))).collect();
        prop_assert_eq!(came.iter().map(|(number, _)| *number).collect::<Vec<_>>(), due.iter().map(|(number, _)| *number).collect::<Vec<_>>());
        prop_assert_eq!(counts.reordered, 0);
        for ((_, at), (_, due)) in came.iter().zip(&due).filter(|_| spread == 0) {
            let late = *at as f64 - due;
            prop_assert!((-2.0..=TOGETHER_NS as f64 + 2.0).contains(&late), "late by {} ns", late);
        }
    }
}

#[test]
fn segments_that_are_kept_back_are_overtaken_and_counted() {
    let reorder = Reorder { probability: 0.1, by: Duration::from_millis(3) };
    let mut sim = Sim::new(&DirectionSpec { delay: Duration::from_millis(1), reorder, ..DirectionSpec::default() });
    for ms in 0..50 {
        sim.arrive(ms * MS, &packet(10).0);
    }
    let counts = sim.end();
    assert_eq!(counts.delivered, 500);
    assert!(counts.kept_back > 20, "{counts:?}");
    // The last ones have nothing behind them that could overtake.
    let last =
        sim.out.iter().rev().take_while(|(at, _)| *at > 50 * MS).map(|(_, packet)| segments(packet)).sum::<u64>();
    assert!(counts.reordered <= counts.kept_back && counts.reordered + last >= counts.kept_back, "{counts:?} {last}");
}

#[test]
fn copies_are_those_of_their_segments() {
    let mut sim = Sim::new(&DirectionSpec { duplicate: 1.0, ..DirectionSpec::default() });
    sim.arrive(5, &packet(3).0);
    let counts = sim.end();
    assert_eq!((counts.duplicated, counts.delivered, counts.reordered), (3, 6, 0));
    let numbers: Vec<usize> = sim.out.iter().flat_map(|(_, packet)| numbers(packet)).collect();
    assert_eq!(numbers, [0, 0, 1, 1, 2, 2]);
}

#[test]
fn a_packet_that_is_too_long_for_the_path_is_dropped_whole() {
    let mut sim = Sim::new(&DirectionSpec { mtu: Some(1_499), ..DirectionSpec::default() });
    sim.arrive(0, &packet(3).0);
    sim.arrive(0, &build(false, false, 1_447, 1_447 * 2));
    let counts = sim.end();
    assert_eq!((counts.dropped_mtu, counts.delivered), (3, 2));
}

#[test]
fn a_changed_rate_applies_to_the_queue_and_a_changed_delay_to_leaving_segments() {
    let change = |ms, rate, delay| LinkChange {
        at: Duration::from_millis(ms),
        rate_bps: Some(Some(rate)),
        delay: Some(Duration::from_millis(delay)),
        ..LinkChange::default()
    };
    // A segment of 1,538 bytes takes 1 ms, then 2 ms.
    let rate = 1_538 * 8_000;
    let direction = DirectionSpec {
        rate_bps: Some(rate),
        delay: Duration::from_millis(10),
        queue_bytes: 1 << 20,
        changes: vec![change(3, rate / 2, 20), change(7, rate, 0)],
        ..DirectionSpec::default()
    };
    let arrivals = |sim: &mut Sim| {
        let times: Vec<u64> = sim.out.iter().map(|(at, _)| at / MS).collect();
        sim.out.clear();
        times
    };
    let mut sim = Sim::new(&direction);
    sim.arrive(0, &packet(7).0);
    assert_eq!(sim.end().delivered, 7);
    // Sent at 1, 2, 3; at 5, 7, after which the delay is 20; then at 8 and 9 without delay, but not before those.
    assert_eq!(arrivals(&mut sim), [11, 12, 13, 25, 27, 27, 27]);
    // And once more: the times of the changes count from the restart.
    sim.course.restart(100 * MS);
    sim.arrive(100 * MS, &packet(4).0);
    sim.end();
    assert_eq!(arrivals(&mut sim), [111, 112, 113, 125]);
}

#[test]
fn dropped_segments_of_a_packet_take_no_memory() {
    let direction = DirectionSpec {
        rate_bps: Some(1_000_000),
        queue_bytes: 4_000,
        delay: Duration::from_secs(1),
        ..DirectionSpec::default()
    };
    let mut sim = Sim::new(&direction);
    // 40 MiB into a ring of some 4 MiB.
    for _ in 0..660 {
        sim.arrive(0, &packet(43).0);
    }
    let counts = sim.end();
    assert_eq!((counts.dropped_ring, counts.delivered), (0, 2));
    assert_eq!(counts.dropped_queue, 660 * 43 - 2);
}

#[test]
fn ecn_marks_instead_of_drops() {
    let codel = Codel { target: Duration::from_millis(1), interval: Duration::from_millis(10), ecn: true };
    let direction = DirectionSpec {
        rate_bps: Some(12_304_000),
        queue_bytes: 1 << 20,
        discipline: Discipline::Codel(codel),
        ..DirectionSpec::default()
    };
    for allows in [true, false] {
        let mut sim = Sim::new(&direction);
        let (mut packet, _) = packet(40);
        packet[VIRTIO + 1] |= if allows { 1 } else { 0 };
        (0..4).for_each(|_| sim.arrive(0, &packet));
        let counts = sim.end();
        assert_eq!((counts.marked > 10, counts.dropped_aqm > 10), (allows, !allows), "{counts:?}");
        let marked: u64 =
            sim.out.iter().filter(|(_, packet)| packet[VIRTIO + 1] & 3 == 3).map(|(_, packet)| segments(packet)).sum();
        assert_eq!(marked, counts.marked);
    }
}
