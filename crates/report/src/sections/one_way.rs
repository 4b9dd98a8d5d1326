//! Sentences on one-way delays.

use model::{Delay, OneWay, Run, WallClock};
use text::{Count, Text, Time, say};

use crate::sections::sides;

/// Lines on each outcome of a run whose far end reported its times; the sides of a comparison are named.
pub(crate) fn of_run(run: &Run) -> Vec<Text> {
    let mut lines = Vec::new();
    for outcome in sides::shown(run) {
        let Some(one_way) = &outcome.summary.one_way else { continue };
        let side = sides::side(run, outcome).map_or(Text::default(), |side| say!("{side}, "));
        let summary = &outcome.summary;
        let sent = outcome.trials.iter().filter_map(|trial| trial.near.datagrams).map(|tally| tally.sent).sum::<u64>();
        let known =
            one_way.lost_outbound.zip(one_way.lost_return).map_or(0, |(outbound, return_trip)| outbound + return_trip);
        let unlocated = match summary.packets_lost.unwrap_or(0).saturating_sub(known) {
            0 => Text::default(),
            lost => say!("{} lost in an unknown direction, ", Count(lost)),
        };
        let all = [
            say!("outbound: {}", outbound(one_way)),
            say!("return: {}", return_trip(one_way)),
            say!(
                "of {} datagrams: {unlocated}{} reordered, {} duplicated; median time in the far end {}",
                Count(sent),
                Count(summary.packets_reordered.unwrap_or(0)),
                Count(summary.packets_duplicated.unwrap_or(0)),
                Time(one_way.reflector_p50_ns as f64),
            ),
            clocks(one_way),
        ];
        lines.extend(all.into_iter().map(|line| say!("{side}{line}")));
    }
    lines
}

/// The delays and losses on the way out.
pub(crate) fn outbound(one_way: &OneWay) -> Text {
    say!("{}; {}", delay(&one_way.outbound), lost(one_way.lost_outbound))
}

/// Those on the way back.
pub(crate) fn return_trip(one_way: &OneWay) -> Text {
    say!("{}; {}", delay(&one_way.return_trip), lost(one_way.lost_return))
}

/// `median 10.1 ms, min 10.0 ms, p99 10.9 ms, max 12.0 ms`.
fn delay(delay: &Delay) -> Text {
    let p99 = delay.p99_ns.map_or(Text::default(), |ns| say!(", p99 {}", signed(ns)));
    say!("median {}, min {}{p99}, max {}", signed(delay.p50_ns), signed(delay.min_ns), signed(delay.max_ns))
}

fn lost(lost: Option<u64>) -> Text {
    lost.map_or("losses unknown".into(), |lost| say!("{} lost", Count(lost)))
}

fn clocks(one_way: &OneWay) -> Text {
    let one = |clock: &WallClock| match (clock.follows_utc, clock.error_ns) {
        (true, Some(ns)) => say!("is within {} of UTC", Time(ns as f64)),
        (true, None) => "is synchronised to UTC with an unknown error".into(),
        (false, _) => "is not synchronised to UTC".into(),
    };
    let bound = match one_way.clock_error_ns {
        Some(ns) => say!("so each one-way delay is off by at most {}", Time(ns as f64)),
        None => "so the error of the one-way delays has no known bound".into(),
    };
    say!(
        "clocks: the near one {}, the far one {}, {bound}; by the shortest round trips the far one is {} to {} ahead",
        one(&one_way.near_clock),
        one(&one_way.far_clock),
        signed(one_way.offset_ns.0),
        signed(one_way.offset_ns.1),
    )
}

/// A time that may be negative.
pub(crate) fn signed(ns: i64) -> Text {
    let sign = if ns < 0 { "-" } else { "" };
    say!("{sign}{}", Time(ns.unsigned_abs() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::Delays;

    fn of(delays: impl IntoIterator<Item = i64>) -> Delay {
        delays.into_iter().collect::<Delays>().digest().unwrap()
    }

    fn lines_of(one_way: OneWay) -> Vec<String> {
        let mut run = sample::rr();
        let summary = &mut run.outcomes[0].summary;
        summary.packets_lost = Some(7);
        summary.one_way = Some(one_way.into());
        of_run(&run).iter().map(Text::plain).collect()
    }

    #[test]
    fn every_figure_of_a_direction_is_printed() {
        let clock = |error_ns| WallClock { follows_utc: true, error_ns: Some(error_ns) };
        let one_way = OneWay {
            outbound: of((10_000_000..).step_by(1_000).take(1_000)),
            return_trip: of([-3_000_000, 30_000_000, 31_000_000]),
            reflector_p50_ns: 5_000,
            near_clock: clock(1_000_000),
            far_clock: clock(2_000_000),
            clock_error_ns: Some(3_000_000),
            offset_ns: (-30_000_000, 10_000_000),
            lost_outbound: Some(4),
            lost_return: Some(1),
        };
        let lines = lines_of(one_way.clone());
        assert_eq!(lines[0], "outbound: median 10.5 ms, min 10.0 ms, p99 11.0 ms, max 11.0 ms; 4 lost");
        assert_eq!(lines[1], "return: median 30.0 ms, min -3.00 ms, max 31.0 ms; 1 lost");
        assert!(
            lines[2].contains("2 lost in an unknown direction")
                && lines[2].ends_with("median time in the far end 5.00 µs"),
            "{lines:?}"
        );
        assert!(
            lines[3].contains("the near one is within 1.00 ms of UTC, the far one is within 2.00 ms of UTC"),
            "{lines:?}"
        );
        assert!(
            lines[3].contains("off by at most 3.00 ms") && lines[3].contains("-30.0 ms to 10.0 ms ahead"),
            "{lines:?}"
        );
        let unknown = WallClock { follows_utc: false, error_ns: None };
        let lines = lines_of(OneWay {
            lost_outbound: None,
            lost_return: None,
            clock_error_ns: None,
            far_clock: unknown,
            ..one_way
        });
        assert!(lines[0].ends_with("losses unknown") && lines[1].ends_with("losses unknown"), "{lines:?}");
        assert!(
            lines[3].contains("the far one is not synchronised to UTC, so the error of the one-way delays has no"),
            "{lines:?}"
        );
        assert!(of_run(&sample::rr()).is_empty());
    }
}
