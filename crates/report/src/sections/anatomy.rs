//! The parts of round trips, by the kernel's time stamps.

use analysis::anatomy::name;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use model::stamps::{Part, Parts};
use model::units::seconds;
use model::{Anatomy, Outcome, PartFigures, Run};
use text::{Text, say};

use crate::lines::wrapped;
use crate::sections::limiter::name_of;
use crate::sections::sides;
use crate::{Layout, labels};

/// Widest bar, columns.
const BAR: usize = 72;
/// Shares are printed in these parts of the whole, so that they add up to 100 %.
const SHARES: f64 = 1_000.0;

/// How a part looks in a bar.
const FILLS: Parts<char> =
    Parts {
        near_send: '▒', network: '·', far_wakeup: '█', far_turnaround: '▚', far_send: '▓', near_wakeup: '▇'
    };

/// For each outcome whose round trips were divided: a bar, a table of the parts, and what the figures are based on. Empty without any.
pub(crate) fn in_text(run: &Run, layout: Layout) -> String {
    let mut text = String::new();
    for (outcome, anatomy, parts) in divided(run) {
        let title =
            name_of(run, outcome).map_or("Anatomy".to_owned(), |name| format!("{}, anatomy", layout.shown(&name)));
        let whole = anatomy.round_trip_ns.map(seconds).unwrap_or_default();
        text += &format!("\n{title} of a round trip, {whole}\n{}\n", bar(parts, layout.width().min(BAR)));
        text += &format!("{}\n", table(outcome, anatomy, parts, layout.columns));
        wrapped("", &basis(anatomy), layout, &mut text);
    }
    text
}

/// The same as lines.
pub(crate) fn of_run(run: &Run) -> Vec<Text> {
    let mut lines = Vec::new();
    for (outcome, anatomy, parts) in divided(run) {
        let side = name_of(run, outcome).map_or(Text::default(), |name| say!("{name}, "));
        let shares = shares(parts);
        for part in Part::ALL {
            let of = parts.get(part);
            let p99 = of.p99_ns.map_or(Text::default(), |ns| say!(", 99th percentile {}", seconds(ns as f64)));
            lines.push(say!(
                "{side}{}: {} ({}), median {}{p99}",
                name(part, outcome.spec.strategy),
                seconds(of.mean_ns),
                percent(*shares.get(part)),
                seconds(of.p50_ns as f64)
            ));
        }
        lines.push(say!("{side}{}", basis(anatomy)));
    }
    lines
}

fn divided(run: &Run) -> impl Iterator<Item = (&Outcome, &Anatomy, &Parts<PartFigures>)> {
    sides::shown(run).into_iter().filter_map(|outcome| {
        let anatomy = outcome.summary.anatomy.as_deref()?;
        Some((outcome, anatomy, anatomy.parts.as_ref()?))
    })
}

fn table(outcome: &Outcome, anatomy: &Anatomy, parts: &Parts<PartFigures>, columns: u16) -> String {
    let mut table = Table::new();
    table.load_style(labels::TABLE);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
    table.set_header(["", "part", "mean", "share", "median", "p99"]);
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| seconds(ns as f64));
    let shares = shares(parts);
    for part in Part::ALL {
        let of = parts.get(part);
        table.add_row([
            FILLS.get(part).to_string(),
            name(part, outcome.spec.strategy).to_owned(),
            seconds(of.mean_ns),
            percent(*shares.get(part)),
            time(Some(of.p50_ns)),
            time(of.p99_ns),
        ]);
    }
    table.add_row([
        String::new(),
        "round trip".to_owned(),
        anatomy.round_trip_ns.map(seconds).unwrap_or_default(),
        percent(SHARES as u64),
        time(anatomy.round_trip_p50_ns),
        time(anatomy.round_trip_p99_ns),
    ]);
    table.column_iter_mut().skip(2).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.trim_fmt()
}

/// How many exchanges the figures are of, and what the stamps cost.
fn basis(anatomy: &Anatomy) -> Text {
    let mut text = say!("Of {} stamped exchanges", anatomy.stamped);
    for (count, what) in [
        (anatomy.missing, "more lack a stamp"),
        (anatomy.stepped, "are left out because a wall clock was set"),
        (anatomy.hardware, "have the network's part by the NICs' clocks"),
    ] {
        if count > 0 {
            text += say!("; {count} {what}");
        }
    }
    let cost = anatomy.observer_ns.map_or(Text::default(), |ns| match ns {
        ns if ns < 0.0 => say!(" The median of the others in the same trials is {} longer.", seconds(-ns)),
        ns => {
            say!(" The median of the others in the same trials is {} shorter: the cost of the stamps.", seconds(ns))
        }
    });
    say!("{text}.{cost}")
}

/// The shares in parts of [`SHARES`], rounded so that they add up to it: those with the largest remainders are rounded up.
fn shares(parts: &Parts<PartFigures>) -> Parts<u64> {
    rounded(parts, SHARES)
}

fn rounded(parts: &Parts<PartFigures>, whole: f64) -> Parts<u64> {
    let exact = |part: Part| parts.get(part).share * whole;
    let mut shares = Parts::of(|part| exact(part) as u64);
    let sum: u64 = Part::ALL.into_iter().map(|part| *shares.get(part)).sum();
    let mut by_remainder = Part::ALL;
    by_remainder.sort_by(|a, b| exact(*b).fract().total_cmp(&exact(*a).fract()));
    let left = (whole as u64).saturating_sub(sum) as usize;
    by_remainder.into_iter().take(left).for_each(|part| *shares.get_mut(part) += 1);
    shares
}

/// One decimal: 41.6 %.
fn percent(share: u64) -> String {
    format!("{:.1} %", share as f64 * 100.0 / SHARES)
}

/// The parts in their order, each as wide as its share.
fn bar(parts: &Parts<PartFigures>, columns: usize) -> String {
    let widths = rounded(parts, columns as f64);
    Part::ALL.into_iter().map(|part| FILLS.get(part).to_string().repeat(*widths.get(part) as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{AnatomyTally, Strategy};
    use proptest::prelude::*;

    fn anatomy(parts: [u64; 6]) -> Anatomy {
        let mut tally = AnatomyTally { stamped: 1, missing: 2, ..AnatomyTally::default() };
        tally.round_trip.record(parts.iter().sum());
        Part::ALL.into_iter().zip(parts).for_each(|(part, ns)| tally.parts.get_mut(part).record(ns));
        tally.figures(Some(parts.iter().sum::<u64>() as f64 - 3_000.0))
    }

    fn run(strategy: Strategy) -> Run {
        let mut run = sample::rr();
        run.outcomes[0].summary.anatomy = Some(anatomy([2_400, 2_300, 21_400, 200, 2_600, 21_500]).into());
        run.outcomes[0].spec.strategy = strategy;
        run
    }

    #[test]
    fn a_bar_and_a_table_have_the_parts_in_their_order() {
        let text = in_text(&run(Strategy::Auto), Layout::default());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("Anatomy of a round trip, 50.4 "), "{text}");
        let bar = lines[2];
        assert_eq!((bar.chars().count(), bar.matches('█').count(), bar.chars().next()), (72, 31, Some('▒')), "{text}");
        assert!(
            text.contains("far wake-up and receive") && text.contains("42.5 %") && text.contains("100.0 %"),
            "{text}"
        );
        assert!(text.contains("Of 1 stamped exchanges; 2 more lack a stamp. The median of the others"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let spinning = in_text(&run(Strategy::Spin), Layout { columns: 60, ..Layout::default() });
        assert!(spinning.contains("far receive") && !spinning.contains("wake-up"), "{spinning}");
        assert!(spinning.lines().all(|line| line.chars().count() <= 60), "{spinning}");
        assert_eq!(in_text(&sample::rr(), Layout::default()), "");
    }

    #[test]
    fn lines_have_the_same_figures() {
        let lines = of_run(&run(Strategy::Auto));
        assert_eq!(lines.len(), 7);
        assert_eq!(lines[2].plain(), format!("far wake-up and receive: {0} (42.5 %), median {0}", seconds(21_400.0)));
        assert_eq!(of_run(&sample::rr()), []);
    }

    proptest! {
        #[test]
        fn shares_and_bars_are_whole(parts in prop::array::uniform6(1u64..1 << 30), columns in 1usize..120) {
            let anatomy = anatomy(parts);
            let parts = anatomy.parts.unwrap();
            let sum: u64 = Part::ALL.into_iter().map(|part| *shares(&parts).get(part)).sum();
            prop_assert_eq!(sum, 1_000);
            prop_assert_eq!(bar(&parts, columns).chars().count(), columns);
        }
    }
}
