//! A curve on one screen: the answer in at most 25 lines. Every row is in the whole report.

use std::fmt::Write as _;

use analysis::anatomy::sentence;
use comfy_table::{ContentArrangement, Table};
use model::{
    Estimate, Figure, Finding, FindingKind, Outcome, Pattern, Run, Scale, Spec, Strategy, Verdict, median, units,
};
use text::{Rate, Text, Time, say};

use super::braille;
use crate::lines::cut;
use crate::lines::hanging;
use crate::sections::outcome_line;
use crate::sections::plan_answer::rounded;
use crate::{Layout, labels};

/// Lines of the answers and rows of the plot together, and fewest rows of the plot.
const UPPER_LINES: usize = 12;
const PLOT_ROWS: usize = 5;
/// Sizes that the table shows, in two columns.
const KEY_SIZES: usize = 6;
/// Width of the titles of the answers.
const TITLE: usize = 12;
/// Legs for an interval, with a margin for passes that leave a size out.
const ENOUGH_LEGS: f64 = 12.0;
/// Legs of a size for which a budget must suffice before it is begun, and the exchanges of a leg.
const PLANNED_LEGS: f64 = 24.0;
const LEG_EXCHANGES: f64 = 3.0;
/// Stamped round trips that take this factor longer or shorter than the others are not like them.
const ALIKE: f64 = 1.15;
/// Largest block whose round trip is mostly the hosts' reaction, bytes.
const SMALL: u64 = 4096;
/// Lines that an answer may have.
const WRAPPED: usize = 2;

/// The answers, a plot, key sizes, and what to do next; `whole` is how to see every row.
pub(super) fn screen(run: &Run, layout: Layout, whole: &str) -> String {
    let points = points(run);
    let mut text = String::new();
    for (title, answer) in answers(run, &points) {
        let mut row = String::new();
        titled(title, &answer, layout, &mut row);
        text += &cut(&row, WRAPPED, layout.width());
    }
    let rows = UPPER_LINES.saturating_sub(text.lines().count()).max(PLOT_ROWS);
    text.push_str(&plot(std::slice::from_ref(run), "throughput", layout.width(), rows));
    text.push_str(&key_sizes(&points, layout));
    // The file of another program cannot be measured again.
    if run.header.origin.is_none() {
        titled("Next", &next(run, &points), layout, &mut text);
    }
    titled("Every row", &say!("{whole}{}", anomalies(run)), layout, &mut text);
    text
}

/// The answers and what to do next, for a page that has the rest too.
pub(super) fn whole_rows(run: &Run) -> Vec<(&'static str, Text)> {
    let points = points(run);
    let mut rows = answers(run, &points);
    rows.extend(run.header.origin.is_none().then(|| ("Next", next(run, &points))));
    rows
}

/// The answers of several curves beside each other, and one plot of their times.
pub(super) fn side_by_side(runs: &[Run], layout: Layout) -> String {
    let all: Vec<Vec<(&str, Text)>> = runs.iter().map(|run| answers(run, &points(run))).collect();
    let mut titles: Vec<&str> = Vec::new();
    for (title, _) in all.iter().flatten() {
        if !titles.contains(title) {
            titles.push(title);
        }
    }
    let mut table = Table::new();
    table.load_style(labels::TABLE);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(layout.columns);
    table.set_header(std::iter::once(String::new()).chain(runs.iter().map(named)));
    for title in titles {
        let of = |answers: &Vec<(&str, Text)>| {
            let own = answers.iter().find(|(other, _)| *other == title);
            own.map_or("-".to_owned(), |(_, answer)| layout.shown(answer))
        };
        table.add_row(std::iter::once(title.to_owned()).chain(all.iter().map(of)));
    }
    format!("{}\n{}", table.trim_fmt(), plot(runs, "saturation", layout.width(), UPPER_LINES))
}

/// The name of a run, or its id.
fn named(run: &Run) -> String {
    labels::plain(run.header.name.as_deref().unwrap_or(&run.header.id))
}

/// The points of a curve, by size.
fn points(run: &Run) -> Vec<&Outcome> {
    let mut points: Vec<&Outcome> = run.outcomes.iter().filter(|outcome| is_measured(run, outcome)).collect();
    points.sort_by_key(|outcome| outcome.spec.block);
    points
}

/// One figure of the curves with logarithmic axes, if it has lines.
fn plot(runs: &[Run], id: &str, columns: usize, rows: usize) -> String {
    let lines = |figure: &Figure| figure.series.iter().any(|series| series.points.len() > 2);
    let Some(mut figure) = crate::figures(runs).into_iter().find(|figure| figure.id.starts_with(id)).filter(lines)
    else {
        return String::new();
    };
    // Rates of small sizes would all lie on a linear axis' zero.
    figure.y.scale = Scale::Log;
    // The ticks have units, and rows are few.
    figure.x.label.clear();
    braille::plot(&figure, columns, rows)
}

fn anomalies(run: &Run) -> Text {
    match run.findings.iter().filter(|finding| finding.kind == FindingKind::Anomaly).count() {
        0 => Text::default(),
        1 => ", with an anomaly".into(),
        many => say!(", with {many} anomalies"),
    }
}

/// An answer behind its title.
fn titled(title: &str, answer: &Text, layout: Layout, text: &mut String) {
    // The space between the two is not part of the title.
    hanging(&format!("{title:<0$}", TITLE - 1), answer, TITLE, layout, text);
}

/// Whether an outcome is a point of the curve and not of its memory ceiling.
fn is_measured(run: &Run, outcome: &Outcome) -> bool {
    let only_ceiling = run.outcomes.iter().all(|one| one.spec.transport == Spec::CEILING);
    outcome.estimate.is_some() && (only_ceiling || outcome.spec.transport != Spec::CEILING)
}

fn answers(run: &Run, points: &[&Outcome]) -> Vec<(&'static str, Text)> {
    let find = |kind| run.findings.iter().find(move |finding| finding.kind == kind);
    let saturation = |finding: &Finding| Some(say!("from {} on", labels::block(finding.block?)));
    let half = find(FindingKind::HalfPeak).and_then(half_peak);
    let saturated = find(FindingKind::Saturation).and_then(saturation);
    // Both on one line, if both are known.
    let (half, saturated) = match (half, saturated) {
        (Some(half), Some(from)) => (Some(say!("{half}; saturation {from}")), None),
        one_or_none => one_or_none,
    };
    [
        ("Latency", find(FindingKind::Latency).and_then(latency)),
        ("Anatomy", anatomy(points, find(FindingKind::Latency))),
        ("Peak", find(FindingKind::Peak).and_then(|finding| peak(run, finding, points))),
        ("Half peak", half),
        ("Saturation", saturated),
        ("Precision", precision(points)),
        ("Path", find(FindingKind::Path).map(|finding| finding.statement.clone())),
    ]
    .into_iter()
    .filter_map(|(title, answer)| Some((title, answer?)))
    .collect()
}

fn latency(finding: &Finding) -> Option<Text> {
    let estimate = finding.estimate.as_ref()?;
    let half = Time(estimate.value / 2.0);
    Some(say!("{} RTT of small blocks (NetPIPE's latency: {half})", labels::estimated(estimate)))
}

/// What the time of a round trip goes to, and how the stamped round trips relate to the latency, which is of others.
fn anatomy(points: &[&Outcome], latency: Option<&Finding>) -> Option<Text> {
    let point = points.iter().find(|point| point.summary.anatomy.is_some())?;
    let text = sentence(point)?;
    let stamped = point.summary.anatomy.as_ref().and_then(|anatomy| anatomy.round_trip_ns);
    let relation = stamped.zip(latency.and_then(|finding| finding.estimate.as_ref())).and_then(|(stamped, latency)| {
        let factor = stamped / latency.value;
        // A latency within its interval is the same.
        let same = latency.low.zip(latency.high).is_some_and(|(low, high)| (low..=high).contains(&stamped));
        let alike = same || (1.0 / ALIKE..=ALIKE).contains(&factor);
        (!alike).then(|| say!(" Stamped apart, these took {factor:.1} times the latency above."))
    });
    Some(text + relation.unwrap_or_default())
}

fn peak(run: &Run, finding: &Finding, points: &[&Outcome]) -> Option<Text> {
    if let Some(moment) = analysis::of_a_moment(&run.outcomes) {
        return Some(say!(
            "{} is what the path carries; blocks up to {} pass at up to {} for a moment (token bucket)",
            labels::estimated(finding.estimate.as_ref()?),
            labels::block(moment.largest),
            Rate(moment.fastest_bps)
        ));
    }
    let what = if points.iter().any(|point| point.spec.pattern == Pattern::Pingpong) {
        " (block over half the RTT)"
    } else {
        ""
    };
    Some(say!("{} at {}{what}", labels::estimated(finding.estimate.as_ref()?), labels::block(finding.block?)))
}

fn half_peak(finding: &Finding) -> Option<Text> {
    match &finding.estimate {
        Some(estimate) => Some(say!("at about {}", labels::block(rounded(estimate.value)))),
        None => Some(say!("at {} already, the smallest block", labels::block(finding.block?))),
    }
}

/// The two parts of the interval: that of a size, and that of the level which all share.
fn precision(points: &[&Outcome]) -> Option<Text> {
    let width = |estimate: Option<&Estimate>| estimate.and_then(Estimate::relative_half_width);
    let parts = |outcome: &&Outcome| {
        let (own, total) = (width(outcome.summary.within_pass.as_deref())?, width(outcome.estimate.as_ref())?);
        Some([own, (total * total - own * own).max(0.0).sqrt()])
    };
    let both: Vec<[f64; 2]> = points.iter().filter_map(parts).collect();
    let of = |part: usize| median(&both.iter().map(|parts| parts[part]).collect::<Vec<_>>()).map(units::plus_minus);
    Some(say!("{} of each size (median), {} of the level that all share in this run", of(0)?, of(1)?))
}

/// Sizes over the whole range, evenly in their logarithm, in two columns.
fn key_sizes(points: &[&Outcome], layout: Layout) -> String {
    let mut chosen: Vec<&Outcome> = Vec::new();
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        let ends = [first, last].map(|point| (point.spec.block as f64).ln());
        for index in 0..KEY_SIZES {
            let wanted = ends[0] + (ends[1] - ends[0]) * index as f64 / (KEY_SIZES - 1) as f64;
            let distance = |point: &&&Outcome| {
                // The neighbours of a power of two stand in for it only where there is no other size.
                let perturbed = if point.spec.block.is_power_of_two() { 0.0 } else { 1.0 };
                perturbed + ((point.spec.block as f64).ln() - wanted).abs()
            };
            let nearest = points.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
            chosen.extend(nearest.filter(|point| chosen.last().is_none_or(|last| last.cell != point.cell)));
        }
    }
    let rows = chosen.len().div_ceil(2);
    let head = format!("{:>8} {:>8} {:>12} {:>8}", "block", "RTT", "rate", "±");
    let mut text = format!("{head}  {head}\n");
    for row in 0..rows {
        let cells: Vec<String> = [Some(row), Some(row + rows)]
            .into_iter()
            .flatten()
            .filter_map(|index| chosen.get(index))
            .map(|outcome| key_size(outcome, layout))
            .collect();
        let _ = writeln!(text, "{}", cells.join("  "));
    }
    text
}

fn key_size(outcome: &Outcome, layout: Layout) -> String {
    let rate = outcome.summary.netpipe_bps.or(outcome.summary.goodput_bps);
    format!(
        "{:>8} {:>8} {:>12} {:>8}",
        labels::block(outcome.spec.block),
        outcome_line::rtt(outcome).map_or_else(|| "-".to_owned(), units::seconds),
        rate.map_or_else(|| "-".to_owned(), |bps| layout.spelling.rates.rate(bps)),
        labels::plus_minus(outcome),
    )
}

/// What limits the precision, and what to do about it.
fn next(run: &Run, points: &[&Outcome]) -> Text {
    let with = |verdict| points.iter().filter(|point| point.summary.verdicts.contains(&verdict)).count();
    let of = |count: usize| say!("{count} of {} sizes", points.len());
    let (noisy, drifting, missed, few) =
        (with(Verdict::Noisy), with(Verdict::Drifting), with(Verdict::TargetMissed), with(Verdict::FewTrials));
    let beyond = left_out(run, points).len();
    let spins = points.iter().any(|point| point.spec.strategy == Strategy::Spin);
    let first =
        points.iter().find(|point| point.summary.verdicts.contains(&Verdict::Noisy)).map(|point| point.spec.block);
    match first {
        _ if few > 0 || beyond > 0 => {
            let few =
                (few > 0).then(|| say!("{} were measured fewer than 10 times, so they have no interval", of(few)));
            let beyond = (beyond > 0).then(|| {
                let largest = points.last().map_or(String::new(), |point| labels::block(point.spec.block));
                match beyond {
                    1 => say!("one size beyond {largest} does not fit into the budget"),
                    many => say!("{many} sizes beyond {largest} do not fit into the budget"),
                }
            });
            let what: Vec<Text> = few.into_iter().chain(beyond).collect();
            say!("{}: {}", Text::join(what, "; "), enough(run, points))
        }
        Some(block) if block <= SMALL && !spins => {
            say!("{} vary too much: `--spin` leaves out the wake-ups of both hosts", of(noisy))
        }
        Some(block) => say!("{}, from {} on, vary too much for the budget", of(noisy), labels::block(block)),
        None if drifting > 0 => say!("the level moved during the run ({}): repeat the curve", of(drifting)),
        None if missed > 0 => say!("{} need a larger `--budget`", of(missed)),
        None => say!("all {} sizes are as precise as requested", points.len()),
    }
}

/// The sizes of a curve, bytes, that would have taken too long.
fn left_out(run: &Run, points: &[&Outcome]) -> Vec<u64> {
    let Some(last) = points.last().filter(|last| last.summary.verdicts.contains(&Verdict::SelfLimited)) else {
        return Vec::new();
    };
    run.header.cells.iter().map(|cell| cell.spec.block).filter(|block| *block > last.spec.block).collect()
}

/// What gives each size an interval: the budget at which the size with the fewest legs has enough of them, and at which the sizes that
/// were left out have as many, whose time grows in proportion to their bytes.
fn enough(run: &Run, points: &[&Outcome]) -> Text {
    let fewest = points.iter().map(|point| point.summary.trials).min().unwrap_or(0);
    match run.header.stopping.budget_ns {
        Some(ns) if fewest > 0 => {
            let ns_per_byte = points.last().and_then(|last| match last.estimate.as_ref()? {
                time if time.unit == "ns" => Some(time.value / last.spec.block as f64),
                rate => Some(8e9 / rate.value),
            });
            let bytes: u64 = left_out(run, points).iter().sum();
            let added = bytes as f64 * ns_per_byte.unwrap_or(0.0) * LEG_EXCHANGES * PLANNED_LEGS;
            let own = ns as f64 * (ENOUGH_LEGS / f64::from(fewest)).max(1.0);
            let seconds = ((own + added) / 1e9).ceil();
            let budget =
                if seconds > 120.0 { format!("{}min", (seconds / 60.0).ceil()) } else { format!("{seconds}s") };
            say!("`--budget {budget}` gives all of them one")
        }
        Some(_) => say!("a larger `--budget` gives all of them one"),
        None => say!("`--trials {ENOUGH_LEGS}` gives all of them one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::AnatomyTally;
    use model::stamps::Part;

    #[test]
    fn sizes_that_do_not_fit_into_the_budget_are_counted_with_the_budget_that_they_need() {
        let mut run = sample::curve();
        run.header.stopping.budget_ns = Some(15_000_000_000);
        let mut points: Vec<Outcome> = points(&run).into_iter().cloned().collect();
        points.iter_mut().for_each(|point| (point.summary.verdicts, point.summary.trials) = (Vec::new(), 12));
        let last = points.last_mut().unwrap();
        last.summary.verdicts = vec![Verdict::SelfLimited];
        last.estimate =
            Some(Estimate { unit: "ns".into(), value: last.spec.block as f64, ..last.estimate.clone().unwrap() });
        // A nanosecond for each byte: 72 exchanges of 2^30 bytes.
        let mut beyond = run.header.cells[0].clone();
        beyond.spec = Spec { block: 1 << 30, ..Spec::clone(&beyond.spec) }.into();
        run.header.cells.push(beyond);
        let text = next(&run, &points.iter().collect::<Vec<_>>());
        let largest = labels::block(points.last().unwrap().spec.block);
        assert_eq!(
            text.plain(),
            format!("one size beyond {largest} does not fit into the budget: `--budget 93s` gives all of them one")
        );
        points[0].summary.verdicts = vec![Verdict::FewTrials];
        points[0].summary.trials = 6;
        let text = next(&run, &points.iter().collect::<Vec<_>>());
        assert!(
            text.plain().contains("; one size beyond")
                && text.plain().ends_with("`--budget 108s` gives all of them one"),
            "{text:?}"
        );
    }

    #[test]
    fn a_curve_fits_on_a_screen() {
        let mut run = sample::curve();
        let mut tally = AnatomyTally { stamped: 1, ..AnatomyTally::default() };
        tally.round_trip.record(50_400);
        for (part, ns) in Part::ALL.into_iter().zip([2_400, 2_300, 21_400, 200, 2_600, 21_500]) {
            tally.parts.get_mut(part).record(ns);
        }
        run.outcomes[0].summary.anatomy = Some(tally.figures(None).into());
        for columns in [80, 100] {
            let text = screen(&run, Layout { columns, ..Layout::default() }, "`thru show last --all`");
            // Two lines and an empty one say what was measured.
            assert!(text.lines().count() <= 22, "{text}");
            for title in ["Latency", "Anatomy", "Peak", "Saturation", "Next"] {
                assert!(text.lines().any(|line| line.starts_with(title)), "{title} in:\n{text}");
            }
            assert!(text.contains("µs waking up and receiving"), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{text}");
            assert_eq!(text.matches("8 MiB").count(), 1, "{text}");
        }
    }

    #[test]
    fn a_curve_of_one_size_has_no_plot() {
        let mut run = sample::curve();
        run.outcomes.truncate(1);
        run.findings.clear();
        let text = screen(&run, Layout::default(), "`thru show last --all`");
        assert!(text.contains("1 of 1 sizes") || text.contains("all 1 sizes"), "{text}");
    }
}
