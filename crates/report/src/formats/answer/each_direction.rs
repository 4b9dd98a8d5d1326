//! The figures of each direction of a stream in both, side by side.

use model::{Outcome, Summary, units};
use text::{Said, Text, Time, say};

use super::{flows, lost, retransmits};
use crate::lines::hanging;
use crate::{Layout, labels};

/// What a value that a direction does not have looks like.
const NONE: &str = "-";

/// What the directions are called.
const WAYS: [&str; 2] = ["outbound", "return"];

/// A title and the values of both directions, outbound first.
pub(in crate::formats) type Each = (&'static str, [Text; 2]);

/// The rows with a text each, for a page; none of one direction.
pub(super) fn rows(outcome: &Outcome) -> Vec<(&'static str, Text)> {
    each(outcome).iter().map(|(title, values)| (*title, one_text(WAYS, values))).collect()
}

/// The rows in lines, with titles of `title` columns.
pub(super) fn table(outcome: &Outcome, title: usize, layout: Layout) -> String {
    beside(&each(outcome), WAYS, title, layout)
}

/// Rows with a value for each direction, in lines: side by side where both values fit, otherwise as text.
pub(in crate::formats) fn beside(each: &[Each], ways: [&str; 2], title: usize, layout: Layout) -> String {
    let half = layout.width().saturating_sub(title) / 2;
    let shown: Vec<[String; 2]> =
        each.iter().map(|(_, values)| values.each_ref().map(|one| layout.shown(one))).collect();
    let fits = |values: &[String; 2]| values.iter().all(|value| value.chars().count() + 2 <= half);
    let beside = || shown.iter().filter(|values| fits(values));
    let second = beside().map(|[out, _]| out.chars().count()).max().unwrap_or(0).max(ways[0].len()) + 2;
    let line = |name: &str, [out, back]: [&str; 2]| format!("{name:<title$}{out:<second$}{back}\n");
    let mut text = String::new();
    if beside().next().is_some() {
        text.push_str(&line("", ways));
    }
    for ((name, values), shown) in each.iter().zip(&shown) {
        if fits(shown) {
            text.push_str(&line(name, [&shown[0], &shown[1]]));
        } else {
            hanging(&format!("{name:<0$}", title - 1), &one_text(ways, values), title, layout, &mut text);
        }
    }
    text
}

fn one_text([first, second]: [&str; 2], [out, back]: &[Text; 2]) -> Text {
    say!("{first} {out}; {second} {back}")
}

/// The rows in which a direction has a value.
fn each(outcome: &Outcome) -> Vec<Each> {
    let (Some(out), Some(back)) = (&outcome.summary.outbound, &outcome.summary.return_trip) else { return Vec::new() };
    let goodput = |direction| {
        let own = outcome.directions().find(|(of, _)| *of == direction);
        own.map(|(_, estimate)| labels::estimated(&estimate))
    };
    let goodputs = [model::Direction::Send, model::Direction::Reverse].map(goodput);
    let of = |figure: &dyn Fn(&Summary) -> Option<Text>| [figure(out), figure(back)];
    let rows = [
        ("Goodput", goodputs),
        ("RTT loaded", of(&|one| one.tcp_rtt_ns.map(|ns| Time(ns).say()))),
        ("cwnd", of(&|one| one.cwnd_bytes.map(|bytes| units::amount(bytes).into()))),
        ("Retransmits", of(&|one| retransmits(one, ""))),
        ("Lost", of(&lost)),
        ("Flows", of(&|one| flows(outcome.spec.flows, one))),
        ("Trust", of(&|one| one.trust.map(|trust| labels::trust(trust).into()))),
    ];
    let some = rows.into_iter().filter(|(_, values)| values.iter().any(Option::is_some));
    some.map(|(title, values)| (title, values.map(|value| value.unwrap_or_else(|| NONE.into())))).collect()
}

#[cfg(test)]
mod tests {
    use model::{Direction, Run, Trust};

    use super::*;
    use crate::sample;

    fn both() -> Run {
        let mut run = sample::stream();
        let outcome = &mut run.outcomes[0];
        outcome.spec.direction = Direction::Both;
        let of = |goodput: f64, retransmits, statement| Summary {
            goodput_bps: Some(goodput),
            ci95_low: Some(0.99 * goodput),
            ci95_high: Some(1.01 * goodput),
            tcp_rtt_ns: Some(20e6),
            retransmits: Some(retransmits),
            trust: Some(Trust::Fair),
            why: Some(sample::why(statement).into()),
            ..Summary::default()
        };
        outcome.summary.outbound = Some(Box::new(of(28.1e6, 1, "out")));
        outcome.summary.return_trip = Some(Box::new(of(4.7e6, 3_700, "back")));
        outcome.summary.why = None;
        run
    }

    fn shown(run: &Run, columns: u16) -> String {
        super::super::screen(
            run,
            &run.outcomes[0],
            Layout { columns, ..Layout::default() },
            &format!("`thru show {} -v`", run.header.id),
        )
    }

    #[test]
    fn the_directions_stand_side_by_side_before_their_sum() {
        let text = shown(&both(), 80);
        let first = "             outbound            return\n\
                     Goodput      28.1 Mbit/s ±1.0 %  4.70 Mbit/s ±1.0 %\n\
                     RTT loaded   20.0 ms             20.0 ms\n\
                     Retransmits  1                   3,700\n\
                     Trust        fair                fair\n\
                     Together     ";
        assert!(text.starts_with(first), "{text}");
        let limits = "Limited by   outbound: link rate (strong): out\nLimited by   return: link rate (strong): back\n";
        assert!(text.contains(limits) && text.contains("`thru why "), "{text}");
    }

    #[test]
    fn a_value_that_is_too_wide_is_a_text() {
        let text = shown(&both(), 44);
        assert!(text.lines().all(|line| line.chars().count() <= 44), "{text}");
        assert!(text.contains("Goodput      outbound 28.1 Mbit/s ±1.0 %;\n             return 4.70"), "{text}");
    }

    #[test]
    fn a_page_has_the_same_rows() {
        let run = both();
        let rows = super::super::whole_rows(&run, &run.outcomes[0]);
        let (title, values) = &rows[0];
        assert_eq!(
            (*title, values.plain().as_str()),
            ("Goodput", "outbound 28.1 Mbit/s ±1.0 %; return 4.70 Mbit/s ±1.0 %")
        );
        assert!(
            rows.iter().any(|(title, text)| *title == "Limited by" && text.plain().starts_with("return: link rate"))
        );
    }
}
