//! Evaluates the reflections of a test.

use std::collections::VecDeque;

use model::{Count, DatagramTally, Delays, EndTally, Histogram, OneWay, RttTally, WallClock};
use peer_wire::stamp::{ErrorEstimate, Reply, Timestamp};

/// Most requests that wait for a reflection; older ones are given up.
const MAX_PENDING: usize = 1 << 18;
/// The number of the first request. A stateful reflector answers it with 0, a stateless one copies it.
const FIRST: u32 = 1;

/// The reflections of a test.
#[derive(Default)]
pub(super) struct Trips {
    /// The latest requests, in order.
    requests: VecDeque<Sent>,
    rtt: Histogram,
    longest_ns: u64,
    outbound: Delays,
    return_trip: Delays,
    in_reflector: Delays,
    datagrams: DatagramTally,
    /// The highest reflected number.
    highest: Option<u32>,
    /// The highest number of the reflector's own count.
    own_highest: u32,
    /// Copies of requests that the reflector counted, each with a number of its own.
    copies: u64,
    /// Whether the reflector's numbers are its own.
    counts: bool,
    far_clock: Option<WallClock>,
}

/// A request.
struct Sent {
    /// Send time by the monotonic clock, ns.
    sent_ns: u64,
    /// The reflector's number for it, once reflected.
    own: Option<u32>,
}

/// A point in time by both clocks of this host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// The monotonic clock, ns.
    pub(super) ns: u64,
    /// The time of day.
    pub(super) wall: Timestamp,
}

/// Kinds of reflections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The first of its request.
    New,
    /// A duplicate, or not of this test.
    Other,
}

impl Trips {
    /// The number of the next request, which is sent now.
    pub(super) fn next(&mut self, sent_ns: u64) -> u32 {
        if self.requests.len() == MAX_PENDING {
            self.requests.pop_front();
        }
        self.requests.push_back(Sent { sent_ns, own: None });
        self.datagrams.sent += 1;
        FIRST.wrapping_add((self.datagrams.sent - 1) as u32)
    }

    pub(super) fn sent(&self) -> u64 {
        self.datagrams.sent
    }

    pub(super) fn received(&self) -> u64 {
        self.datagrams.received
    }

    /// Whether the reflector is stateful, judged by its numbers.
    pub(super) fn counts(&self) -> bool {
        self.counts
    }

    /// The longest round trip so far, ns; 0 before the first.
    pub(super) fn longest_ns(&self) -> u64 {
        self.longest_ns
    }

    /// Whether all requests so far were answered.
    pub(super) fn settled(&self) -> bool {
        self.datagrams.received == self.datagrams.sent
    }

    /// The request of that number, if it still waits for a reflection.
    fn requested(&mut self, number: u32) -> Option<&mut Sent> {
        let forgotten = self.datagrams.sent - self.requests.len() as u64;
        let at = u64::from(number).checked_sub(u64::from(FIRST) + forgotten)?;
        self.requests.get_mut(usize::try_from(at).ok()?)
    }

    /// Records a reflection that arrived at `arrived`.
    pub(super) fn take(&mut self, reply: &Reply, arrived: Moment) -> Arrival {
        let number = reply.request.sequence;
        let Some(requested) = self.requested(number) else { return Arrival::Other };
        let sent_ns = requested.sent_ns;
        if let Some(own) = requested.own {
            self.datagrams.duplicates += 1;
            self.copies += u64::from(own != reply.sequence);
            self.own_highest = self.own_highest.max(reply.sequence);
            return Arrival::Other;
        }
        requested.own = Some(reply.sequence);
        if self.highest.is_some_and(|highest| number < highest) {
            self.datagrams.reordered += 1;
        }
        self.highest = self.highest.max(Some(number));
        self.datagrams.received += 1;
        self.counts |= reply.sequence != number;
        self.own_highest = self.own_highest.max(reply.sequence);
        let clock = wall_clock_of(reply.error);
        self.far_clock = Some(self.far_clock.map_or(clock, |before| before.worse(clock)));
        let trip = reply.trip(arrived.wall);
        // This end's part of a round trip uses the monotonic clock.
        let elapsed_ns = arrived.ns.saturating_sub(sent_ns);
        self.longest_ns = self.longest_ns.max(elapsed_ns);
        // If the reflector's clock was set in between, its own time is invalid: count the whole time as the
        // path's.
        let in_reflector_ns =
            u64::try_from(trip.reflector_ns).ok().filter(|in_reflector| *in_reflector <= elapsed_ns).unwrap_or(0);
        self.rtt.record(elapsed_ns - in_reflector_ns);
        self.outbound.record(trip.there_ns);
        self.return_trip.record(trip.back_ns);
        self.in_reflector.record(trip.reflector_ns);
        Arrival::New
    }

    /// How many different requests reached a stateful reflector, up to the highest reflected number; `None` if
    /// it is stateless or counts other tests as well.
    fn reached(&self) -> Option<u64> {
        let most = u64::from(self.highest?).checked_sub(u64::from(FIRST))? + 1;
        let reached = (u64::from(self.own_highest) + 1).checked_sub(self.copies)?;
        (self.counts && (self.datagrams.received..=most).contains(&reached)).then_some(reached)
    }

    /// Both ends' tallies; the far one follows from the reflections. `near_clock` is this end's error estimate.
    pub(super) fn tallies(mut self, block: u64, near_clock: ErrorEstimate) -> [EndTally; 2] {
        let DatagramTally { sent, received, .. } = self.datagrams;
        let lost = sent - received;
        self.datagrams.replies_lost = lost;
        let counted = self.reached();
        let requested = self.highest.map_or(0, |highest| u64::from(highest) + 1 - u64::from(FIRST));
        let (lost_outbound, lost_return) = match (lost, counted) {
            (0, _) => (Some(0), Some(0)),
            (_, Some(reached)) => (Some(requested - reached), Some(reached - received)),
            (_, None) => (None, None),
        };
        let [near_clock, far_clock] = [wall_clock_of(near_clock), self.far_clock.unwrap_or_default()];
        let ends = near_clock.error_ns.zip(far_clock.error_ns);
        let clock_error_ns = ends
            .filter(|_| near_clock.follows_utc && far_clock.follows_utc)
            .map(|(near, far)| near.saturating_add(far));
        let in_reflector =
            self.in_reflector.digest().map_or(0, |in_reflector| u64::try_from(in_reflector.p50_ns).unwrap_or(0));
        let one_way = self.outbound.digest().zip(self.return_trip.digest()).map(|(outbound, return_trip)| OneWay {
            offset_ns: (-return_trip.min_ns, outbound.min_ns),
            outbound,
            return_trip,
            reflector_p50_ns: in_reflector,
            near_clock,
            far_clock,
            clock_error_ns,
            lost_outbound,
            lost_return,
        });
        let near = EndTally {
            bytes_sent: sent * block,
            bytes_received: received * block,
            calls_sent: sent,
            calls_received: received + self.datagrams.duplicates,
            blocks_sent: sent,
            transactions: received,
            rtt: RttTally::from_histogram(self.rtt, 1),
            datagrams: Some(self.datagrams),
            one_way,
            ..EndTally::default()
        };
        let reached = counted.unwrap_or(received);
        let datagrams = DatagramTally { sent: reached, received: reached, ..DatagramTally::default() };
        let mut far = EndTally { datagrams: Some(datagrams), ..EndTally::unreported() };
        far.report(Count::BytesReceived, reached * block);
        far.report(Count::BytesSent, reached * block);
        [near, far]
    }
}

/// The clock that an error estimate describes.
fn wall_clock_of(error: ErrorEstimate) -> WallClock {
    WallClock {
        follows_utc: error.synchronised(),
        // Scale and multiplier express at most 2^31 s.
        error_ns: error.seconds().map(|seconds| (seconds * 1e9).ceil() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use peer_wire::stamp::StampRequest;

    const START_NS: u64 = 1_700_000_000_000_000_000;

    fn at(ns: u64) -> Timestamp {
        Timestamp::of_unix_ns(START_NS + ns)
    }

    /// By the near clock 440 ns after the request left.
    const ARRIVED: Moment = Moment { ns: 440, wall: Timestamp(0) };

    fn arrived() -> Moment {
        Moment { wall: at(1440), ..ARRIVED }
    }

    /// Outbound 300 ns by clocks that differ, 40 ns in the reflector, return 100 ns.
    fn reply(number: u32, own: u32, error: ErrorEstimate) -> Reply {
        let request = StampRequest { sequence: number, sent: at(1000), error, session: 0 };
        Reply { sequence: own, sent: at(1340), error, session: 0, received: at(1300), request, ttl: 255 }
    }

    fn one_way_of(sent: u32, replies: &[(u32, u32)]) -> ([EndTally; 2], OneWay) {
        let error = ErrorEstimate::covering(1_000, true);
        let mut trips = Trips::default();
        (0..sent).for_each(|number| assert_eq!(trips.next(0), FIRST + number));
        replies.iter().for_each(|(number, own)| {
            trips.take(&reply(*number, *own, error), arrived());
        });
        let tallies = trips.tallies(44, error);
        let one_way = tallies[0].one_way.clone().unwrap();
        (tallies, one_way)
    }

    #[test]
    fn losses_of_each_direction_need_a_stateful_reflector() {
        // StampRequest 2 and the reply to 3 are lost, 5 overtakes 4, and 6 is lost at the end, where the direction
        // is unknown.
        let ([near, far], one_way) = one_way_of(6, &[(1, 0), (5, 3), (4, 2), (4, 2)]);
        let datagrams = near.datagrams.unwrap();
        let DatagramTally { sent, received, duplicates, reordered, replies_lost, .. } = datagrams;
        assert_eq!((sent, received, duplicates, reordered, replies_lost), (6, 3, 1, 1, 3));
        assert_eq!((one_way.lost_outbound, one_way.lost_return), (Some(1), Some(1)));
        assert!(
            (one_way.outbound.p50_ns - 300).abs() <= 1 && (one_way.return_trip.p50_ns - 100).abs() <= 1,
            "{one_way:?}"
        );
        assert!(near.rtt.is_some_and(|rtt| (399..=401).contains(&rtt.p50_ns)));
        assert!(one_way.clock_error_ns.is_some_and(|ns| (2_000..2_100).contains(&ns)), "{one_way:?}");
        assert!(one_way.near_clock.follows_utc && one_way.near_clock == one_way.far_clock, "{one_way:?}");
        assert!((one_way.offset_ns.0 + 100).abs() <= 1 && (one_way.offset_ns.1 - 300).abs() <= 1, "{one_way:?}");
        assert_eq!((far.bytes_received, far.datagrams.map(|tally| tally.received)), (4 * 44, Some(4)));
    }

    #[test]
    fn a_reflector_that_counts_is_known_by_its_first_number() {
        for (sent, replies, lost) in [
            // All losses in the return direction, or all outbound.
            (4, &[(1, 0), (2, 1), (4, 3)][..], (Some(0), Some(1))),
            (4, &[(1, 0), (2, 1), (4, 2)], (Some(1), Some(0))),
            // A copy of request 2, which the reflector counts and answers.
            (4, &[(1, 0), (2, 1), (2, 2), (4, 3)], (Some(1), Some(0))),
            // One that copies numbers, and one that has counted others' requests as well.
            (4, &[(1, 1), (2, 2), (4, 4)], (None, None)),
            (4, &[(1, 7), (2, 8), (4, 10)], (None, None)),
            // No loss in either direction.
            (2, &[(1, 1), (2, 2)], (Some(0), Some(0))),
        ] {
            let (_, one_way) = one_way_of(sent, replies);
            assert_eq!((one_way.lost_outbound, one_way.lost_return), lost, "{replies:?}");
        }
    }

    #[test]
    fn setting_a_clock_does_not_change_the_round_trip() {
        let error = ErrorEstimate::covering(1_000, false);
        let mut trips = Trips::default();
        trips.next(0);
        let set_back = Reply { sent: at(300), ..reply(1, 1, error) };
        assert_eq!(trips.take(&set_back, Moment { wall: at(200), ..ARRIVED }), Arrival::New);
        assert_eq!(trips.take(&reply(0, 0, error), arrived()), Arrival::Other, "a number that was never sent");
        assert_eq!(trips.take(&reply(2, 2, error), arrived()), Arrival::Other, "a number that was not sent yet");
        let [near, _] = trips.tallies(44, error);
        assert_eq!(near.rtt.map(|rtt| rtt.p50_ns), Some(440));
        let one_way = near.one_way.unwrap();
        assert!(one_way.return_trip.p50_ns < 0, "{one_way:?}");
        assert_eq!((one_way.clock_error_ns, one_way.near_clock.follows_utc), (None, false));
        assert!(one_way.far_clock.error_ns.is_some(), "{one_way:?}");
    }

    #[test]
    fn old_requests_are_given_up() {
        let error = ErrorEstimate::covering(1_000, true);
        let mut trips = Trips::default();
        (0..MAX_PENDING + 2).for_each(|_| {
            trips.next(0);
        });
        assert_eq!(trips.take(&reply(2, 1, error), arrived()), Arrival::Other);
        assert_eq!(trips.take(&reply(3, 2, error), arrived()), Arrival::New);
        assert_eq!(trips.take(&reply(MAX_PENDING as u32 + 2, 3, error), arrived()), Arrival::New);
    }
}
