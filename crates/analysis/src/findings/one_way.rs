//! What each way took, where a reflector told its times.

use model::units::seconds;
use model::{Finding, FindingKind, OneWay, Outcome};

/// What the delays of each way are worth, for an outcome whose trials have any.
pub(super) fn of_ways(outcome: &Outcome) -> Option<Finding> {
    let way = outcome.summary.one_way.as_ref()?;
    let statement = format!(
        "The way there takes {} and the way back {} at the median, by two clocks: {}; the shortest trips put the far clock {}{}.",
        signed(way.there.p50_ns),
        signed(way.back.p50_ns),
        worth(way),
        ahead(way.offset_ns),
        losses(way),
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
fn worth(way: &OneWay) -> String {
    let least = way.there.p50_ns.min(way.back.p50_ns);
    match way.clock_error_ns {
        None => {
            let who = match (way.near_clock.follows_utc, way.far_clock.follows_utc) {
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

fn losses(way: &OneWay) -> String {
    match (way.lost_there, way.lost_back) {
        (Some(0), Some(0)) => String::new(),
        (Some(there), Some(back)) => {
            format!("; of the datagrams {there} were lost on the way there and {back} on the way back")
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

    fn way(there: i64, back: i64, follows_utc: [bool; 2], clock_error_ns: Option<u64>) -> OneWay {
        let of = |ns| {
            let mut delays = Delays::default();
            delays.record(ns);
            delays.digest().unwrap()
        };
        let clock = |follows_utc| WallClock { follows_utc, error_ns: Some(1) };
        OneWay {
            there: of(there),
            back: of(back),
            reflector_p50_ns: 1,
            near_clock: clock(follows_utc[0]),
            far_clock: clock(follows_utc[1]),
            clock_error_ns,
            offset_ns: (-back, there),
            lost_there: None,
            lost_back: None,
        }
    }

    fn said(way: Option<OneWay>) -> String {
        let outcome = Outcome {
            cell: 0,
            spec: Spec::new("udp", "rr"),
            summary: Summary { one_way: way, ..Summary::default() },
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
            lost_there: Some(3),
            lost_back: Some(0),
            ..way(10 * ms, 30 * ms, [true; 2], Some(ms as u64))
        }));
        assert!(sure.contains("differ by 1.00 ms at most") && !sure.contains("only their sum"), "{sure}");
        assert!(sure.contains("3 were lost on the way there and 0 on the way back"), "{sure}");
        assert!(sure.contains("put the far clock -30.0 ms to 10.0 ms ahead"), "{sure}");
        let unsure = said(Some(way(10 * ms, 30 * ms, [true; 2], Some(10 * ms as u64))));
        assert!(unsure.contains("may differ by 10.0 ms, which is more than a way takes"), "{unsure}");
        assert!(unsure.contains("nobody knows on which way"), "{unsure}");
    }

    #[test]
    fn clocks_that_follow_nothing_are_named_and_nothing_is_cut() {
        let one = said(Some(way(-7_000, 90_000, [true, false], None)));
        assert!(one.contains("takes -7.00 us") && one.contains("the far one does not follow UTC"), "{one}");
        assert!(said(Some(way(1, 1, [false; 2], None))).contains("neither follows UTC"));
        assert!(said(Some(way(1, 1, [false, true], None))).contains("the near one does not follow UTC"));
        assert_eq!(said(None), "");
    }
}
