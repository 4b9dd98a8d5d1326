//! Whether a lab's emulator was on time.

use model::{EmulatedDirection, LabReport};

/// A packet delivered this long after its due time is late, ns.
const LATE_NS: u64 = 1_000_000;
/// More than one in so many packets must be late.
const ONE_IN: u64 = 100;
/// A single late packet happens on any machine.
const MIN_LATE: u64 = 2;
/// Directions with fewer packets than the busiest one's divided by this carried background traffic, not a measurement.
const IDLE_FRACTION: u64 = 10;
/// A direction with this many packets carried a measurement in any case: that of a slow pair of hosts beside a fast one.
const MANY: u64 = 1_000;

/// Whether more than 1 % of a direction's packets, and at least two, were delivered more than 1 ms late, so the measured path is
/// not the requested one. Directions of fewer than 100 packets are judged together, and directions that carried hardly any of the
/// measurement do not count.
///
/// Packets count as they were delivered, one for several segments that travel together: a direction of acknowledgements has about
/// as many packets as that of the data, but far fewer segments.
#[must_use]
pub fn emulator_late(report: &LabReport) -> bool {
    let most = report.directions.iter().map(|direction| direction.late_packets).max().unwrap_or(0);
    let used = |direction: &&EmulatedDirection| {
        direction.late_packets >= MANY || direction.late_packets.saturating_mul(IDLE_FRACTION) >= most
    };
    let counts =
        report.directions.iter().filter(used).map(|direction| (late_at_least(direction), direction.late_packets));
    let (few, many): (Vec<_>, Vec<_>) = counts.partition(|(_, packets)| *packets < ONE_IN);
    let together = few.into_iter().fold((0, 0), |sum, direction| (sum.0 + direction.0, sum.1 + direction.1));
    many.into_iter().chain([together]).any(|(late, packets)| late >= MIN_LATE && late.saturating_mul(ONE_IN) > packets)
}

/// A lower bound of a direction's late packets. The report does not count them, but if the packet at a percentile was late, so were
/// all above it. With fewer than 100 packets the 99th percentile is the latest packet and counts as one.
fn late_at_least(direction: &EmulatedDirection) -> u64 {
    let late = |ns: Option<u64>| ns.is_some_and(|ns| ns > LATE_NS);
    if late(direction.late_p50_ns) {
        direction.late_packets / 2 + 1
    } else if late(direction.late_p99_ns) {
        direction.late_packets / 100 + 1
    } else {
        u64::from(late(direction.late_max_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON_TIME: [u64; 3] = [20_000, 90_000, 94_000];

    /// A direction with the median, the 99th percentile and the maximum of its packets' lateness, ns.
    fn direction(packets: u64, [p50, p99, max]: [u64; 3]) -> EmulatedDirection {
        EmulatedDirection {
            arrived: packets,
            late_packets: packets,
            late_p50_ns: Some(p50),
            late_p99_ns: Some(p99),
            late_max_ns: Some(max),
            ..EmulatedDirection::default()
        }
    }

    fn is_late(directions: &[EmulatedDirection]) -> bool {
        emulator_late(&LabReport { directions: directions.to_vec(), ..LabReport::default() })
    }

    #[test]
    fn a_direction_is_late_beyond_a_millisecond() {
        assert!(!is_late(&[]));
        assert!(!is_late(&[EmulatedDirection { arrived: 100, ..EmulatedDirection::default() }]));
        assert!(!is_late(&[direction(100, [20_000, 1_000_000, 1_000_000]), direction(100, ON_TIME)]));
        assert!(is_late(&[direction(100, ON_TIME), direction(100, [20_000, 1_000_001, 1_000_001])]));
        // Fewer than one in a hundred.
        assert!(!is_late(&[direction(100_000, [20_000, 900_000, 5_000_000])]));
    }

    #[test]
    fn a_direction_that_carried_hardly_anything_does_not_count() {
        let late = [20_000, 5_000_000, 6_000_000];
        assert!(!is_late(&[direction(5_000, ON_TIME), direction(499, late)]));
        assert!(is_late(&[direction(5_000, ON_TIME), direction(500, late)]));
        // A slow pair beside a fast one.
        assert!(!is_late(&[direction(100_000, ON_TIME), direction(999, late)]));
        assert!(is_late(&[direction(100_000, ON_TIME), direction(1_000, late)]));
    }

    #[test]
    fn acknowledgements_count_by_packets() {
        let data = EmulatedDirection { arrived: 90_000, ..direction(2_000, ON_TIME) };
        assert!(is_late(&[data, direction(900, [20_000, 5_000_000, 6_000_000])]));
    }

    #[test]
    fn one_late_packet_is_not_a_late_emulator() {
        // The latest of 32 is their 99th percentile too.
        let one = direction(32, [20_000, 1_110_000, 1_110_000]);
        assert!(!is_late(&[direction(66, ON_TIME), direction(66, ON_TIME), one.clone()]));
        assert!(!is_late(std::slice::from_ref(&one)));
        assert!(!is_late(&[direction(1, [5_000_000; 3])]));
        // Two of them, of 64 packets and of 362.
        assert!(is_late(&[one.clone(), one.clone()]));
        let others = vec![direction(99, ON_TIME); 3];
        assert!(!is_late(&[others, vec![one.clone(), one]].concat()));
    }

    #[test]
    fn half_of_few_packets_are_enough() {
        assert!(is_late(&[direction(32, ON_TIME), direction(32, [1_200_000, 1_500_000, 1_500_000])]));
        assert!(is_late(&[direction(2, [1_200_000, 1_500_000, 1_500_000])]));
    }
}
