//! One-way delays, if a reflector reported its times.

use model::units::seconds;
use model::{Finding, FindingKind, OneWay, Outcome};

/// The delays of both directions and how far to rely on them; `None` for an outcome without any.
pub(super) fn of_directions(outcome: &Outcome) -> Option<Finding> {
    let one_way = outcome.summary.one_way.as_ref()?;
    let statement = format!(
        "The median one-way delay is {} outbound and {} return, by two clocks: {}. By the shortest delays the far clock is {}.{}",
        signed(one_way.outbound.p50_ns),
        signed(one_way.return_trip.p50_ns),
        accuracy(one_way),
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

/// How accurate the delays are, by what the hosts report of their clocks.
fn accuracy(one_way: &OneWay) -> String {
    let least = one_way.outbound.p50_ns.min(one_way.return_trip.p50_ns);
    match one_way.clock_error_ns {
        None => {
            let who = match (one_way.near_clock.follows_utc, one_way.far_clock.follows_utc) {
                (true, _) => "the far clock does not follow UTC",
                (_, true) => "the near clock does not follow UTC",
                _ => "neither clock follows UTC",
            };
            format!("{who}, so only the sum of the two delays, the RTT, is certain")
        }
        Some(ns) if i64::try_from(ns).map_or(true, |ns| ns >= least) => format!(
            "the clocks may differ by {}, more than one of the delays, so only their sum, the RTT, is certain",
            seconds(ns as f64)
        ),
        Some(ns) => format!("the hosts report that these differ by at most {}", seconds(ns as f64)),
    }
}

/// The range of the far clock's offset from the near one.
fn ahead((least, most): (i64, i64)) -> String {
    format!("{} to {} ahead of the near one", signed(least), signed(most))
}

fn losses(one_way: &OneWay) -> String {
    match (one_way.lost_outbound, one_way.lost_return) {
        (Some(0), Some(0)) => String::new(),
        (Some(outbound), Some(return_trip)) => {
            let datagrams =
                if outbound == 1 { "1 datagram was".to_owned() } else { format!("{outbound} datagrams were") };
            format!(" {datagrams} lost outbound and {return_trip} on the return.")
        }
        _ => " The reflector does not count datagrams, so the direction of losses is unknown.".into(),
    }
}

/// A time that may be negative.
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
            summary: Summary { one_way, ..Summary::default() },
            estimate: None,
            histogram: None,
            trials: Vec::new(),
        };
        of_directions(&outcome).map_or(String::new(), |finding| finding.statement)
    }

    #[test]
    fn a_clock_error_larger_than_a_delay_is_reported() {
        let ms = 1_000_000;
        let accurate = said(Some(OneWay {
            lost_outbound: Some(3),
            lost_return: Some(0),
            ..one_way(10 * ms, 30 * ms, [true; 2], Some(ms as u64))
        }));
        assert!(accurate.contains("differ by at most 1.00 ms") && !accurate.contains("only their sum"), "{accurate}");
        assert!(accurate.contains("3 datagrams were lost outbound and 0 on the return."), "{accurate}");
        assert!(accurate.contains("the far clock is -30.0 ms to 10.0 ms ahead"), "{accurate}");
        let inaccurate = said(Some(one_way(10 * ms, 30 * ms, [true; 2], Some(10 * ms as u64))));
        assert!(inaccurate.contains("may differ by 10.0 ms, more than one of the delays"), "{inaccurate}");
        assert!(inaccurate.contains("the direction of losses is unknown"), "{inaccurate}");
    }

    #[test]
    fn clocks_that_do_not_follow_utc_are_named_and_negative_delays_are_kept() {
        let one = said(Some(one_way(-7_000, 90_000, [true, false], None)));
        let outbound = format!("-{} outbound", seconds(7_000.0));
        assert!(one.contains(&outbound) && one.contains("the far clock does not follow UTC"), "{one}");
        assert!(said(Some(one_way(1, 1, [false; 2], None))).contains("neither clock follows UTC"));
        assert!(said(Some(one_way(1, 1, [false, true], None))).contains("the near clock does not follow UTC"));
        assert_eq!(said(None), "");
    }
}
