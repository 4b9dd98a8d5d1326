//! Delays of each way apart, in words.

use model::units::seconds;
use model::{Delay, OneWay, Run, WallClock};

use crate::sides;

/// Lines on each outcome of a run whose far end told its times, the sides of a comparison by their letter.
pub(crate) fn of_run(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    for outcome in sides::shown(run) {
        let Some(one_way) = &outcome.summary.one_way else { continue };
        let side = sides::side(run, outcome).map_or(String::new(), |side| format!("{side}, "));
        let summary = &outcome.summary;
        let sent = outcome.trials.iter().filter_map(|trial| trial.near.datagrams).map(|tally| tally.sent).sum::<u64>();
        let known =
            one_way.lost_outbound.zip(one_way.lost_return).map_or(0, |(outbound, return_trip)| outbound + return_trip);
        let elsewhere = match summary.packets_lost.unwrap_or(0).saturating_sub(known) {
            0 => String::new(),
            rest => format!("{rest} were lost on a way that nobody knows, "),
        };
        let whole = [
            format!("there: {}; {}", delay(&one_way.outbound), lost(one_way.lost_outbound)),
            format!("back: {}; {}", delay(&one_way.return_trip), lost(one_way.lost_return)),
            format!(
                "of {sent} datagrams {elsewhere}{} reordered, {} duplicated; {} within the far end at the median",
                summary.packets_reordered.unwrap_or(0),
                summary.packets_duplicated.unwrap_or(0),
                seconds(one_way.reflector_p50_ns as f64),
            ),
            clocks(one_way),
        ];
        lines.extend(whole.into_iter().map(|line| format!("{side}{line}")));
    }
    lines
}

/// `10.1 ms median, 10.0 ms least, 10.9 ms at the 99th percentile, 12.0 ms most`.
fn delay(delay: &Delay) -> String {
    let p99 = delay.p99_ns.map_or(String::new(), |ns| format!(", {} at the 99th percentile", signed(ns)));
    format!("{} median, {} least{p99}, {} most", signed(delay.p50_ns), signed(delay.min_ns), signed(delay.max_ns))
}

fn lost(lost: Option<u64>) -> String {
    lost.map_or("losses not known".to_owned(), |lost| format!("{lost} lost"))
}

fn clocks(one_way: &OneWay) -> String {
    let one = |clock: &WallClock| match (clock.follows_utc, clock.error_ns) {
        (true, Some(ns)) => format!("follows UTC to {}", seconds(ns as f64)),
        (true, None) => "follows UTC, nobody knows how closely".to_owned(),
        (false, _) => "does not follow UTC".to_owned(),
    };
    let bound = match one_way.clock_error_ns {
        Some(ns) => format!("so that each way is off by {} at most", seconds(ns as f64)),
        None => "so that nothing they say bounds the error of a way".to_owned(),
    };
    format!(
        "clocks: the near one {}, the far one {}, {bound}; by the shortest trips the far one is {} to {} ahead",
        one(&one_way.near_clock),
        one(&one_way.far_clock),
        signed(one_way.offset_ns.0),
        signed(one_way.offset_ns.1),
    )
}

/// A time that may be below zero.
fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", seconds(ns.unsigned_abs() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::Delays;

    fn of(delays: impl IntoIterator<Item = i64>) -> Delay {
        let mut all = Delays::default();
        delays.into_iter().for_each(|ns| all.record(ns));
        all.digest().unwrap()
    }

    fn reported(one_way: OneWay) -> Vec<String> {
        let mut run = sample::rr();
        let summary = &mut run.outcomes[0].summary;
        summary.packets_lost = Some(7);
        summary.one_way = Some(one_way);
        of_run(&run)
    }

    #[test]
    fn every_figure_of_a_way_is_told() {
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
        let lines = reported(one_way.clone());
        assert_eq!(
            lines[0],
            "there: 10.5 ms median, 10.0 ms least, 11.0 ms at the 99th percentile, 11.0 ms most; 4 lost"
        );
        assert_eq!(lines[1], "back: 30.0 ms median, -3.00 ms least, 31.0 ms most; 1 lost");
        assert!(
            lines[2].contains("2 were lost on a way that nobody knows") && lines[2].contains("5.00 us within"),
            "{lines:?}"
        );
        assert!(
            lines[3].contains("the near one follows UTC to 1.00 ms, the far one follows UTC to 2.00 ms"),
            "{lines:?}"
        );
        assert!(
            lines[3].contains("off by 3.00 ms at most") && lines[3].contains("-30.0 ms to 10.0 ms ahead"),
            "{lines:?}"
        );
        let unknown = WallClock { follows_utc: false, error_ns: None };
        let lines = reported(OneWay {
            lost_outbound: None,
            lost_return: None,
            clock_error_ns: None,
            far_clock: unknown,
            ..one_way
        });
        assert!(lines[0].ends_with("losses not known") && lines[1].ends_with("losses not known"), "{lines:?}");
        assert!(lines[3].contains("the far one does not follow UTC, so that nothing they say bounds"), "{lines:?}");
        assert!(of_run(&sample::rr()).is_empty());
    }
}
