//! Random early detection, by figure 2 of the paper ([`spec::Red`]), with the queue measured in bytes.

use super::Fate;
use crate::emulator::random::Random;
use crate::emulator::spec;

/// The packet whose sending time is the step by which the average falls while the queue is empty (the paper's `s`),
/// bytes.
const TYPICAL_BYTES: u64 = 1_000;

#[derive(Debug)]
pub(super) struct Red {
    spec: spec::Red,
    /// Average queue, bytes.
    average: f64,
    /// Segments since the last one that was dropped or marked; `None` below the lower threshold.
    count: Option<u64>,
}

/// The gateway's view when a segment arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    /// Bytes in the queue before it.
    pub(super) backlog_bytes: u64,
    /// How long the queue has been empty, ns.
    pub(super) idle_ns: u64,
    pub(super) rate_bps: u64,
    pub(super) wire_bytes: u64,
    /// The largest segment, bytes on the wire.
    pub(super) largest_bytes: u64,
    /// Whether it may be marked.
    pub(super) allows: bool,
}

impl Red {
    pub(super) fn new(spec: &spec::Red) -> Self {
        Self { spec: *spec, average: 0.0, count: None }
    }

    pub(super) fn fate(&mut self, arrival: &Arrival, random: &mut Random) -> Fate {
        self.follow(arrival);
        let (min, max) = (self.spec.min as f64, self.spec.max as f64);
        if self.average < min {
            self.count = None;
            return Fate::Send;
        }
        if self.average >= max {
            self.count = Some(0);
            return Fate::Drop;
        }
        let count = self.count.map_or(0, |count| count + 1);
        self.count = Some(count);
        let share = (self.average - min) / (max - min);
        let size = arrival.wire_bytes as f64 / arrival.largest_bytes.max(1) as f64;
        let basic = self.spec.probability * share * size.min(1.0);
        // Spreads the drops evenly: the gaps between them are uniform, not geometric (the paper, section 7).
        let left = 1.0 - count as f64 * basic;
        let probability = if left > basic { basic / left } else { 1.0 };
        if basic > 0.0 && random.chance(probability) {
            self.count = Some(0);
            return if self.spec.ecn && arrival.allows { Fate::Mark } else { Fate::Drop };
        }
        Fate::Send
    }

    /// Includes an arrival in the average, whatever its fate.
    pub(super) fn follow(&mut self, arrival: &Arrival) {
        let weight = self.spec.weight;
        if arrival.backlog_bytes > 0 {
            self.average += weight * (arrival.backlog_bytes as f64 - self.average);
        } else {
            let typical_ns = TYPICAL_BYTES as f64 * 8e9 / arrival.rate_bps.max(1) as f64;
            self.average *= (1.0 - weight).powf(arrival.idle_ns as f64 / typical_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(backlog_bytes: u64) -> Arrival {
        Arrival {
            backlog_bytes,
            idle_ns: 0,
            rate_bps: 8_000_000,
            wire_bytes: 1_500,
            largest_bytes: 1_500,
            allows: true,
        }
    }

    /// How many of 10,000 segments have each fate with a queue that has long had this length.
    fn fates(spec: spec::Red, backlog: u64) -> [usize; 3] {
        let mut red = Red { average: backlog as f64, ..Red::new(&spec) };
        let mut random = Random::new(3);
        let fates: Vec<Fate> = (0..10_000).map(|_| red.fate(&arrival(backlog), &mut random)).collect();
        [Fate::Send, Fate::Mark, Fate::Drop].map(|wanted| fates.iter().filter(|fate| **fate == wanted).count())
    }

    #[test]
    fn below_the_thresholds_nothing_above_them_everything() {
        let spec = spec::Red { min: 30_000, max: 90_000, probability: 0.1, weight: 0.002, ecn: true };
        assert_eq!(fates(spec, 29_999), [10_000, 0, 0]);
        assert_eq!(fates(spec, 90_000), [0, 0, 10_000], "RFC 3168 does not want marks there");
    }

    #[test]
    fn between_them_the_gaps_are_even() {
        let spec = spec::Red { min: 30_000, max: 90_000, probability: 0.1, weight: 0.002, ecn: false };
        // Halfway pb is 0.05: gaps are uniform on 1 to 1/pb = 20 segments, 10.5 in the mean (the paper, section 7, method 2).
        let [_, marked, dropped] = fates(spec, 60_000);
        assert_eq!(marked, 0);
        assert!((900..1_010).contains(&dropped), "{dropped}");
        let [_, marked, dropped] = fates(spec::Red { ecn: true, ..spec }, 60_000);
        assert!((900..1_010).contains(&marked) && dropped == 0, "{marked}");
    }

    #[test]
    fn the_average_follows_slowly_and_falls_while_the_link_idles() {
        let spec = spec::Red { weight: 0.25, ..spec::Red::default() };
        let mut red = Red::new(&spec);
        red.follow(&arrival(16_000));
        red.follow(&arrival(16_000));
        assert!((red.average - 7_000.0).abs() < 1e-9, "{}", red.average);
        // 2 ms at 8 Mbit/s are two typical packets.
        red.follow(&Arrival { idle_ns: 2_000_000, ..arrival(0) });
        assert!((red.average - 7_000.0 * 0.75 * 0.75).abs() < 1e-9, "{}", red.average);
    }
}
