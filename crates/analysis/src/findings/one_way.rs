//! What each way took, where a reflector told its times.

use model::units::seconds;
use model::{Finding, FindingKind, OneWay, Outcome};

/// What the delays of each way are worth, for an outcome whose trials have any.
pub(super) fn of_ways(outcome: &Outcome) -> Option<Finding> {
    let one_way = outcome.summary.one_way.as_ref()?;
    let statement = format!(
        "The way there takes {} and the way back {} at the median, by two clocks: {}; the shortest trips put the far clock {}{}.",
        signed(one_way.outbound.p50_ns),
        signed(one_way.return_trip.p50_ns),
        worth(one_way),
        ahead(one_way.offset_ns),
        losses(one_way),
    );
    Some(Finding {
        kind: FindingKind::Note,
        statement,
        estimate: None,
        comparison: None,
        block: None,
        cells: vec![outcome.cell],
    })
}

/// What the clocks' own words make of the delays.
fn worth(one_way: &OneWay) -> String {
    let least = one_way.outbound.p50_ns.min(one_way.return_trip.p50_ns);
    match one_way.clock_error_ns {
        None => {
            let who = match (one_way.near_clock.follows_utc, one_way.far_clock.follows_utc) {
                (true, _) => "the far one does not follow UTC",
                (_, true) => "the near one does not follow UTC",
                _ => "neither follows UTC",
            };
            format!("{who}, so that only their sum, the round trip, is sure")
        }
        Some(ns) if i64::try_from(ns).map_or(true, |ns| ns >= least) => format!(
            "these may differ by {}, which is more than a way takes, so that only their sum, the round trip, is sure",
            seconds(ns as f64)
        ),
        Some(ns) => format!("these differ by {} at most, as their hosts say", seconds(ns as f64)),
    }
}

/// Where the far clock is, as seen from the near one.
fn ahead((least, most): (i64, i64)) -> String {
    format!("{} to {} ahead of the near one", signed(least), signed(most))
}

fn losses(one_way: &OneWay) -> String {
    match (one_way.lost_outbound, one_way.lost_return) {
        (Some(0), Some(0)) => String::new(),
        (Some(outbound), Some(return_trip)) => {
            format!("; of the datagrams {outbound} were lost on the way there and {return_trip} on the way back")
        }
        _ => "; the reflector does not count, so that nobody knows on which way datagrams were lost".into(),
    }
}

/// A time that may be below zero.
fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", seconds(ns.unsigned_abs() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Delays, Spec, Summary, WallClock};

    fn one_way(outbound: i64, return_trip: i64, follows_utc: [bool; 2], clock_error_ns: Option<u64>) -> OneWay {
        let of = |ns| {
            let mut delays = Delays::default();
            delays.record(ns);
            delays.digest().unwrap()
        };
        let clock = |follows_utc| WallClock { follows_utc, error_ns: Some(1) };
        OneWay {
            outbound: of(outbound),
            return_trip: of(return_trip),
            reflector_p50_ns: 1,
            near_clock: clock(follows_utc[0]),
            far_clock: clock(follows_utc[1]),
            clock_error_ns,
            offset_ns: (-return_trip, outbound),
            lost_outbound: None,
            lost_return: None,
        }
    }

    fn said(one_way: Option<OneWay>) -> String {
        let outcome = Outcome {
            cell: 0,
            spec: Spec::new("udp", "rr"),
            summary: Summary { one_way: one_way, ..Summary::default() },
            estimate: None,
            histogram: None,
            trials: Vec::new(),
        };
        of_ways(&outcome).map_or(String::new(), |finding| finding.statement)
    }

    #[test]
    fn a_bound_beyond_the_delay_is_told() {
        let ms = 1_000_000;
        let sure = said(Some(OneWay {
            lost_outbound: Some(3),
            lost_return: Some(0),
            ..one_way(10 * ms, 30 * ms, [true; 2], Some(ms as u64))
        }));
        assert!(sure.contains("differ by 1.00 ms at most") && !sure.contains("only their sum"), "{sure}");
        assert!(sure.contains("3 were lost on the way there and 0 on the way back"), "{sure}");
        assert!(sure.contains("put the far clock -30.0 ms to 10.0 ms ahead"), "{sure}");
        let unsure = said(Some(one_way(10 * ms, 30 * ms, [true; 2], Some(10 * ms as u64))));
        assert!(unsure.contains("may differ by 10.0 ms, which is more than a way takes"), "{unsure}");
        assert!(unsure.contains("nobody knows on which way"), "{unsure}");
    }

    #[test]
    fn clocks_that_follow_nothing_are_named_and_nothing_is_cut() {
        let one = said(Some(one_way(-7_000, 90_000, [true, false], None)));
        assert!(one.contains("takes -7.00 us") && one.contains("the far one does not follow UTC"), "{one}");
        assert!(said(Some(one_way(1, 1, [false; 2], None))).contains("neither follows UTC"));
        assert!(said(Some(one_way(1, 1, [false, true], None))).contains("the near one does not follow UTC"));
        assert_eq!(said(None), "");
    }
}
