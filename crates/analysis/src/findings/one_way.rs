//! One-way delays, if a reflector reported its times.

use model::{Finding, FindingKind, OneWay, Outcome};
use text::{Text, Time, say};

/// The delays of both directions and how far to rely on them; `None` for an outcome without any.
pub(super) fn of_directions(outcome: &Outcome) -> Option<Finding> {
    let one_way = outcome.summary.one_way.as_ref()?;
    let statement = say!(
        "The median one-way delay is {} outbound and {} return, by two clocks: {}. The shortest delays put the far clock {}.{}{}",
        signed(one_way.outbound.p50_ns),
        signed(one_way.return_trip.p50_ns),
        accuracy(one_way),
        ahead(one_way.offset_ns),
        contradiction(outcome, one_way).map_or(Text::default(), |what| say!(" That is impossible: {what}.")),
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
fn accuracy(one_way: &OneWay) -> Text {
    let least = one_way.outbound.p50_ns.min(one_way.return_trip.p50_ns);
    match one_way.clock_error_ns {
        None => {
            let who = match (one_way.near_clock.follows_utc, one_way.far_clock.follows_utc) {
                (true, _) => "the far clock does not follow UTC",
                (_, true) => "the near clock does not follow UTC",
                _ => "neither clock follows UTC",
            };
            say!("{who}, so only the sum of the two delays, the RTT, is certain")
        }
        Some(ns) if i64::try_from(ns).map_or(true, |ns| ns >= least) => say!(
            "the clocks may differ by {}, which exceeds a delay, so only the sum of the delays, the RTT, is certain",
            Time(ns as f64)
        ),
        Some(ns) => say!("the hosts report that they differ by at most {}", Time(ns as f64)),
    }
}

/// Why the delays are impossible: no delay is negative, so within a trial the lower bound of the difference
/// is below the upper one, one difference fits all trials, and it is no larger than both hosts report. `None` if all of this holds.
fn contradiction(outcome: &Outcome, all: &OneWay) -> Option<Text> {
    let trials = || {
        let ends = |trial: &'_ model::Trial| trial.near.one_way.clone().or_else(|| trial.far.one_way.clone());
        outcome.trials.iter().filter_map(ends)
    };
    let crossed = |(least, most): (i64, i64)| least > most;
    let within = trials().filter(|trial| crossed(trial.offset_ns)).count().max(usize::from(crossed(all.offset_ns)));
    if within > 0 {
        let trials = if within == 1 { "a trial".to_owned() } else { format!("{within} trials") };
        return Some(say!(
            "the shortest delays of {trials} have a negative sum, so a clock was set meanwhile; only the RTT is certain"
        ));
    }
    let offsets = || trials().map(|trial| trial.offset_ns);
    let common = (offsets().map(|offset| offset.0).max(), offsets().map(|offset| offset.1).min());
    if let (Some(least), Some(most)) = common
        && crossed((least, most))
    {
        let apart = Time(least.abs_diff(most) as f64);
        return Some(say!(
            "no single clock offset fits all trials (they are {apart} apart), so a clock was set or drifts; only the RTT is certain"
        ));
    }
    let error_ns = i64::try_from(all.clock_error_ns?).ok()?;
    let (least, most) = all.offset_ns;
    let beyond = least.saturating_sub(error_ns).max(most.saturating_neg().saturating_sub(error_ns));
    (beyond > 0).then(|| {
        let (reported, apart) = (Time(error_ns as f64), Time((beyond + error_ns) as f64));
        say!("the hosts report an offset of at most {reported}, but it is at least {apart}; only the RTT is certain")
    })
}

/// The range of the far clock's offset from the near one.
fn ahead((least, most): (i64, i64)) -> Text {
    say!("{} to {} ahead of the near one", signed(least), signed(most))
}

fn losses(one_way: &OneWay) -> Text {
    match (one_way.lost_outbound, one_way.lost_return) {
        (Some(0), Some(0)) => Text::default(),
        (Some(outbound), Some(return_trip)) => {
            let datagrams =
                if outbound == 1 { "1 datagram was".to_owned() } else { format!("{outbound} datagrams were") };
            say!(" {datagrams} lost outbound and {return_trip} on the return path.")
        }
        _ => " The reflector does not count datagrams, so the direction of losses is unknown.".into(),
    }
}

/// A time that may be negative.
fn signed(ns: i64) -> Text {
    let sign = if ns < 0 { "-" } else { "" };
    say!("{sign}{}", Time(ns.unsigned_abs() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Delays, EndTally, Ledger, Pattern, Spec, Summary, Trial, WallClock};

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
        said_of(one_way, &[])
    }

    /// What is said of an outcome with these differences of the clocks in its trials.
    fn said_of(one_way: Option<OneWay>, offsets: &[(i64, i64)]) -> String {
        let trial = |(pass, offset_ns): (u32, &(i64, i64))| {
            let near = EndTally {
                one_way: one_way.clone().map(|one_way| OneWay { offset_ns: *offset_ns, ..one_way }),
                ..EndTally::default()
            };
            Trial {
                cell: 0,
                pass,
                position: 0,
                near: near.into(),
                far: EndTally::default().into(),
                ledger: Ledger::default(),
                value: None,
                verdicts: Vec::new(),
            }
        };
        let trials = (0..).zip(offsets).map(trial).collect();
        let outcome = Outcome {
            cell: 0,
            spec: Spec::new("udp", Pattern::Rr).into(),
            summary: Summary { one_way: one_way.map(Box::new), ..Summary::default() },
            estimate: None,
            histogram: None,
            trials,
        };
        of_directions(&outcome).map_or(String::new(), |finding| finding.statement.plain())
    }

    #[test]
    fn a_clock_error_larger_than_a_delay_is_reported() {
        let ms = 1_000_000;
        let accurate = said(Some(OneWay {
            lost_outbound: Some(3),
            lost_return: Some(0),
            ..one_way(10 * ms, 30 * ms, [true; 2], Some(ms as u64))
        }));
        assert!(accurate.contains("differ by at most 1.00 ms") && !accurate.contains("only the sum"), "{accurate}");
        assert!(accurate.contains("3 datagrams were lost outbound and 0 on the return path."), "{accurate}");
        assert!(accurate.contains("put the far clock -30.0 ms to 10.0 ms ahead"), "{accurate}");
        let inaccurate = said(Some(one_way(10 * ms, 30 * ms, [true; 2], Some(10 * ms as u64))));
        assert!(inaccurate.contains("may differ by 10.0 ms, which exceeds a delay"), "{inaccurate}");
        assert!(inaccurate.contains("the direction of losses is unknown"), "{inaccurate}");
    }

    #[test]
    fn impossible_differences_of_the_clocks_are_named() {
        let ms = 1_000_000;
        let of = |outbound: i64, return_trip: i64, error: Option<i64>| {
            one_way(outbound * ms, return_trip * ms, [true; 2], error.map(|error| (error * ms) as u64))
        };
        let possible = of(10, 30, Some(1));
        assert!(!said_of(Some(possible.clone()), &[possible.offset_ns; 2]).contains("impossible"));
        // -20 ms outbound and 5 ms return: together less than nothing.
        let crossed = said(Some(of(-20, 5, Some(1))));
        assert!(crossed.contains("put the far clock -5.00 ms to -20.0 ms ahead of the near one. That is impossible: the shortest delays of a trial have a negative"), "{crossed}");
        let crossed = said_of(Some(of(10, 30, None)), &[(5 * ms, -ms), (6 * ms, -ms)]);
        assert!(crossed.contains("the shortest delays of 2 trials have a negative"), "{crossed}");
        let between = said_of(Some(of(10, 30, None)), &[(-30 * ms, 10 * ms), (15 * ms, 40 * ms)]);
        assert!(between.contains("no single clock offset fits all trials (they are 5.00 ms apart)"), "{between}");
        // A delay of -7 ms, where the hosts claim 1 ms.
        let claimed = said(Some(of(-7, 90, Some(1))));
        assert!(claimed.contains("at most 1.00 ms, but it is at least 7.00 ms; only the RTT"), "{claimed}");
        assert!(said(Some(of(90, -7, Some(1)))).contains("at least 7.00 ms"));
        assert!(!said(Some(of(-1, 90, Some(1)))).contains("impossible"), "within the reported error");
    }

    #[test]
    fn clocks_that_do_not_follow_utc_are_named_and_negative_delays_are_kept() {
        let one = said(Some(one_way(-7_000, 90_000, [true, false], None)));
        let outbound = format!("-{} outbound", Time(7_000.0));
        assert!(one.contains(&outbound) && one.contains("the far clock does not follow UTC"), "{one}");
        assert!(said(Some(one_way(1, 1, [false; 2], None))).contains("neither clock follows UTC"));
        assert!(said(Some(one_way(1, 1, [false, true], None))).contains("the near clock does not follow UTC"));
        assert_eq!(said(None), "");
    }
}
