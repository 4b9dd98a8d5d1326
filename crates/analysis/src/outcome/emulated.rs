//! Whether a lab's emulator was on time.

use model::{EmulatedWay, LabReport};

/// What 99 % of a way's packets must stay below, ns.
const LATE_NS: u64 = 1_000_000;
/// Ways that carried less than this part of the busiest one's segments carried no measurement.
const PART: u64 = 100;

/// Whether more than one in a hundred of a way's packets was handed over more than 1 ms after its time, so that what was measured
/// is not the path that was asked for. A way that carried next to nothing does not count.
#[must_use]
pub fn emulator_late(report: &LabReport) -> bool {
    let most = report.ways.iter().map(|way| way.arrived).max().unwrap_or(0);
    let used = |way: &&EmulatedWay| way.arrived.saturating_mul(PART) >= most;
    report.ways.iter().filter(used).any(|way| way.late_p99_ns.is_some_and(|ns| ns > LATE_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(arrived: u64, late_p99_ns: Option<u64>) -> EmulatedWay {
        EmulatedWay { arrived, late_p99_ns, ..EmulatedWay::default() }
    }

    #[test]
    fn a_way_is_late_beyond_a_millisecond_if_it_carried_anything() {
        for (ways, late) in [
            (vec![], false),
            (vec![way(100, Some(1_000_000)), way(100, None)], false),
            (vec![way(100, Some(20_000)), way(100, Some(1_000_001))], true),
            (vec![way(100_000, Some(20_000)), way(999, Some(5_000_000))], false),
            (vec![way(100_000, Some(20_000)), way(1_000, Some(5_000_000))], true),
        ] {
            let report = LabReport { ways, ..LabReport::default() };
            assert_eq!(emulator_late(&report), late, "{report:?}");
        }
    }
}
