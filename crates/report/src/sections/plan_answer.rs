//! The answer of a plan: the range of its values with the places of both ends, the figures of each curve, which levels are best and
//! which do not matter, pairs of hosts that differ, and what limits which cells.

use std::collections::BTreeSet;

use analysis::plan::{CellMean, tables};
use model::{Cell, Estimate, Factor, FactorKind, Finding, FindingKind, Outcome, Run, RunKind, units};
use text::{Count, Text, User, say};

use crate::labels;
use crate::screens::plan::value;
use crate::sections::usable::is_usable;
use crate::sections::{outcome_line, spread};

/// Entries of one title that a screen shows.
const MOST: usize = 6;
/// Statements on levels in the answer of one line.
const MOST_IN_LINE: usize = 2;

/// Whether a run has this answer: a plan whose tests are neither a mesh nor measured at the same time, and that was measured here.
pub(crate) fn is_of(run: &Run) -> bool {
    let plan = run.header.plan.as_ref();
    let own = plan.is_some_and(|plan| plan.groups().is_none() && plan.traffic.is_none());
    own && run.header.kind == RunKind::Run && run.header.origin.is_none() && !run.outcomes.is_empty()
}

/// The figures of each curve of a plan.
pub(crate) struct Curves {
    pub(crate) title: &'static str,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<Text>>,
    /// The first columns, which name the curves.
    pub(crate) names: usize,
}

/// The latency, peak, half peak and saturation of each curve; `None` without curves.
pub(crate) fn curves(run: &Run) -> Option<Curves> {
    let names: Vec<&str> = level_names(run);
    let mut rows: Vec<(Vec<&str>, [Option<Text>; 4])> = Vec::new();
    for finding in &run.findings {
        let Some(column) = FIGURES.iter().position(|(kind, _)| *kind == finding.kind) else { continue };
        let cell = finding.cells.first().and_then(|id| Cell::find(&run.header.cells, *id));
        let Some(cell) = cell.filter(|cell| cell.spec.is_point()) else { continue };
        let levels = names.iter().map(|name| cell.levels.get(*name).map_or("", String::as_str)).collect();
        let at = rows.iter().position(|(other, _)| *other == levels).unwrap_or_else(|| {
            rows.push((levels, [const { None }; 4]));
            rows.len() - 1
        });
        let doubt = if is_usable(run, finding) { "" } else { " (not trusted)" };
        rows[at].1[column] = figure(finding).map(|figure| figure + doubt);
    }
    let used: Vec<usize> = (0..FIGURES.len()).filter(|at| rows.iter().any(|(_, own)| own[*at].is_some())).collect();
    // A factor that does not vary between the curves is no column.
    let varied: Vec<usize> =
        (0..names.len()).filter(|at| rows.iter().any(|(levels, _)| levels[*at] != rows[0].0[*at])).collect();
    let head = varied.iter().map(|at| labels::plain(names[*at]));
    let head = head.chain(used.iter().map(|at| FIGURES[*at].1.to_owned())).collect();
    let row = |(levels, own): (Vec<&str>, [Option<Text>; 4])| {
        let levels = varied.iter().map(|at| Text::from(labels::plain(levels[*at])));
        levels.chain(used.iter().map(|at| own[*at].clone().unwrap_or_else(|| "-".into()))).collect()
    };
    let title = "Figures of each curve";
    (!rows.is_empty()).then(|| Curves { title, head, names: varied.len(), rows: rows.into_iter().map(row).collect() })
}

/// The figures of a curve with their columns.
const FIGURES: [(FindingKind, &str); 4] = [
    (FindingKind::Latency, "RTT"),
    (FindingKind::Peak, "peak"),
    (FindingKind::HalfPeak, "half peak at"),
    (FindingKind::Saturation, "saturation from"),
];

fn figure(finding: &Finding) -> Option<Text> {
    let estimate = finding.estimate.as_ref();
    match finding.kind {
        FindingKind::Latency => estimate.map(labels::estimated),
        FindingKind::Peak => Some(say!("{} at {}", labels::estimated(estimate?), labels::block(finding.block?))),
        FindingKind::HalfPeak => Some(match estimate {
            Some(estimate) => labels::block(rounded(estimate.value)).into(),
            None => say!("{} already", labels::block(finding.block?)),
        }),
        _ => finding.block.map_or(Some("not reached".into()), |block| Some(labels::block(block).into())),
    }
}

/// A size that was interpolated, to whole KiB where it has some.
pub(crate) fn rounded(bytes: f64) -> u64 {
    if bytes < 10_240.0 { bytes.round() as u64 } else { (bytes / 1024.0).round() as u64 * 1024 }
}

/// The factors of a plan and its hosts, without the block sizes of curves.
fn level_names(run: &Run) -> Vec<&str> {
    let factors = run.header.plan.iter().flat_map(|plan| &plan.factors);
    let factors = factors.filter(|factor| factor.kind != FactorKind::Sizes).map(|factor| factor.name.as_str());
    factors.chain([model::Factor::FROM, model::Factor::TO]).collect()
}

/// The answer in a line: the figures' range, what stands out, and which levels are best, or that none is.
pub(crate) fn short(run: &Run) -> Text {
    let found = |kind| run.findings.iter().filter(move |finding| finding.kind == kind && is_usable(run, finding));
    let range = curves_in_line(run).or_else(|| spread::short(run));
    let asymmetric = || found(FindingKind::Asymmetry).filter(|finding| finding.estimate.is_some());
    let pairs = asymmetric().count();
    let pair = found(FindingKind::Outlier).next().or_else(|| asymmetric().next()).map(|first| {
        let more = if pairs > 1 { say!(" {pairs} pairs are asymmetric.") } else { Text::default() };
        first.statement.brief() + more
    });
    let mut best: Vec<&Finding> = found(FindingKind::Best).collect();
    best.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    best.truncate(MOST_IN_LINE);
    // What does not matter: factors whose levels do not differ in most of the cells.
    let of_most = |finding: &&Finding| 2 * finding.cells.len() > run.outcomes.len();
    let same = found(FindingKind::NoDifference).filter(of_most).take(MOST_IN_LINE);
    let levels = best.into_iter().chain(same).map(|finding| finding.statement.brief());
    let range = range.map(|range| range.capitalised() + ".");
    let parts: Vec<Text> = range.into_iter().chain(pair).chain(levels).collect();
    if parts.is_empty() { "no value".into() } else { Text::join(parts, " ") }
}

fn gain(finding: &Finding) -> f64 {
    finding.estimate.as_ref().map_or(0.0, |ratio| ratio.value)
}

/// `RTT 29.4 µs to 59.0 µs, peak 399 Mbit/s to 799 Mbit/s, saturation from 96 KiB to 128 KiB on`.
fn curves_in_line(run: &Run) -> Option<Text> {
    let of_point = |finding: &&Finding| {
        let cell = finding.cells.first().and_then(|id| Cell::find(&run.header.cells, *id));
        cell.is_some_and(|cell| cell.spec.is_point()) && is_usable(run, finding)
    };
    let of = |kind| run.findings.iter().filter(of_point).filter(move |finding| finding.kind == kind);
    let range = |kind, name: &str| {
        let mut all: Vec<&Estimate> = of(kind).filter_map(|finding| finding.estimate.as_ref()).collect();
        all.sort_by(|a, b| a.value.total_cmp(&b.value));
        let (first, last) = (all.first()?, all.last()?);
        let shown = |estimate: &Estimate| labels::quantity(estimate.value, &estimate.unit);
        let (low, high) = (shown(first), shown(last));
        Some(if low == high { say!("{name} {low}") } else { say!("{name} {low} to {high}") })
    };
    let blocks: BTreeSet<u64> = of(FindingKind::Saturation).filter_map(|finding| finding.block).collect();
    let saturation = match (blocks.first(), blocks.last()) {
        (Some(one), Some(other)) if one == other => Some(say!("saturation from {} on", labels::block(*one))),
        (Some(first), Some(last)) => {
            Some(say!("saturation between {} and {}", labels::block(*first), labels::block(*last)))
        }
        _ => None,
    };
    let parts = [range(FindingKind::Latency, "RTT"), range(FindingKind::Peak, "peak"), saturation];
    let parts: Vec<Text> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| Text::join(parts, ", "))
}

/// Title and text of each row.
pub(crate) fn rows(run: &Run) -> Vec<(&'static str, Text)> {
    let mut rows: Vec<(&'static str, Text)> = Vec::new();
    if curves(run).is_none() {
        rows.extend(extremes(run));
    }
    if rows.is_empty() && curves(run).is_none() {
        // One cell has no table.
        let value = |outcome| outcome_line::value(outcome).map(|value| ("Value", value));
        rows.extend(run.outcomes.iter().take(1).filter_map(value));
    }
    rows.extend(busy(run).map(|busy| ("Over time", busy)));
    rows.extend(retransmits(run).map(|differ| ("Retransmits", differ)));
    let kinds = [
        (FindingKind::Outlier, "Stands out"),
        (FindingKind::Asymmetry, "Asymmetric"),
        (FindingKind::Best, "Best"),
        (FindingKind::NoDifference, "No clear best"),
        (FindingKind::Limits, "Limits"),
        (FindingKind::Path, "Between"),
    ];
    for (kind, title) in kinds {
        let found: Vec<&Finding> = run.findings.iter().filter(|finding| finding.kind == kind).collect();
        let titles = std::iter::once(title).chain(std::iter::repeat(""));
        rows.extend(titles.zip(found.iter().take(MOST).map(|finding| finding.statement.clone())));
        if found.len() > MOST {
            rows.push(("", say!("and {} more", found.len() - MOST)));
        }
    }
    rows
}

/// The cells with the highest and the lowest value of each measure, as the tables have them.
fn extremes(run: &Run) -> Vec<(&'static str, Text)> {
    let all = tables(&run.header, &run.outcomes);
    let of = |(measure, title): (&str, &'static str)| {
        let own = all.iter().filter(|table| table.measure == measure);
        let mut means: Vec<(CellMean, &str)> =
            own.flat_map(|table| table.cells.iter().flatten().flatten().map(|mean| (*mean, table.unit))).collect();
        means.sort_by(|a, b| a.0.value.total_cmp(&b.0.value));
        let shown = |(mean, unit): &(CellMean, &str)| say!("{} ({})", value(mean, unit), levels_of(run, mean.cell));
        let (low, high) = (means.first()?, means.last()?);
        let [first, last] = if title == "RTT" { [low, high] } else { [high, low] };
        if low.0.cell == high.0.cell {
            return Some((title, shown(first)));
        }
        let words = if title == "RTT" { ["shortest", "longest"] } else { ["highest", "lowest"] };
        Some((title, say!("{} {}; {} {}", words[0], shown(first), words[1], shown(last))))
    };
    [("median round trip", "RTT"), ("goodput", "Goodput")].into_iter().filter_map(of).collect()
}

/// The lowest and the highest reading of a plan with a schedule, and the longest time below [`BUSY`] of the median; of the first cell.
fn busy(run: &Run) -> Option<Text> {
    run.header.plan.as_ref()?.schedule?;
    let outcome = run.outcomes.first()?;
    let unit = outcome.estimate.as_ref()?.unit.as_str();
    let started = |pass: u32| run.passes.iter().find(|one| one.index == pass)?.started_unix_ns;
    let mut readings: Vec<(u64, f64)> = outcome
        .trials
        .iter()
        .filter_map(|trial| Some((started(trial.pass)?.saturating_sub(run.header.started_unix_ns), trial.value?)))
        .collect();
    readings.sort_by_key(|(at_ns, _)| *at_ns);
    let median = model::median(&readings.iter().map(|(_, value)| *value).collect::<Vec<f64>>())?;
    let by_value = |a: &&(u64, f64), b: &&(u64, f64)| a.1.total_cmp(&b.1);
    let (low, high) = (readings.iter().min_by(by_value)?, readings.iter().max_by(by_value)?);
    let at = |(at_ns, value): &(u64, f64)| {
        say!("{} after {}", labels::quantity(*value, unit), units::seconds(*at_ns as f64))
    };
    let longest = readings.chunk_by(|a, b| (a.1 < BUSY * median) == (b.1 < BUSY * median));
    let longest = longest.filter(|part| part[0].1 < BUSY * median).max_by_key(|part| part.len());
    let busy = longest.map_or(Text::default(), |part| {
        let (from, to) = (part[0].0 as f64, part[part.len() - 1].0 as f64);
        let count = if part.len() == 1 { "1 reading".to_owned() } else { format!("{} readings", part.len()) };
        say!("; longest below 90 % of it from {} to {} ({count})", units::seconds(from), units::seconds(to))
    });
    let median = labels::quantity(median, unit);
    Some(say!("median {median} of {} readings; lowest {}; highest {}{busy}", readings.len(), at(low), at(high)))
}

/// The first factor between whose levels the segments that were sent again differ by [`MANY_TIMES`], with those of each level.
fn retransmits(run: &Run) -> Option<Text> {
    let of_trial = |outcome: &Outcome| {
        let trials = outcome.summary.trials.max(1);
        outcome.summary.retransmits.map(|count| count as f64 / f64::from(trials))
    };
    let of_level = |factor: &Factor, level: &str| {
        let has_level = |outcome: &&Outcome| {
            let cell = Cell::find(&run.header.cells, outcome.cell);
            cell.is_some_and(|cell| cell.levels.get(&factor.name).is_some_and(|own| own == level))
        };
        let counts: Vec<f64> = run.outcomes.iter().filter(has_level).filter_map(of_trial).collect();
        model::median(&counts)
    };
    run.header.plan.as_ref()?.factors.iter().find_map(|factor| {
        let levels = factor.levels.iter().filter_map(|level| Some((level.as_str(), of_level(factor, level)?)));
        let levels: Vec<(&str, f64)> = levels.collect();
        let fewest = levels.iter().map(|(_, count)| *count).reduce(f64::min)?;
        let most = levels.iter().map(|(_, count)| *count).fold(0.0, f64::max);
        let each = levels.iter().map(|(level, count)| say!("{} {}", User(level), Count::rounded(*count)));
        let each = Text::join(each, ", ");
        (most >= MANY_TIMES * fewest.max(1.0)).then(|| say!("segments of a trial by {}: {each}", User(&factor.name)))
    })
}

/// How many times as many segments make a difference that an answer mentions.
const MANY_TIMES: f64 = 10.0;

/// Share of the median below which a path is busy.
const BUSY: f64 = 0.9;

/// `mtu 9000, window 1MiB`: the levels of a cell in the order of the plan, without those that all cells have.
fn levels_of(run: &Run, cell: u32) -> String {
    let cell = Cell::find(&run.header.cells, cell);
    let varies = |name: &str| run.header.cells.windows(2).any(|two| two[0].levels.get(name) != two[1].levels.get(name));
    let factors = run.header.plan.iter().flat_map(|plan| &plan.factors).map(|factor| factor.name.as_str());
    let names = factors.chain([model::Factor::FROM, model::Factor::TO]).filter(|name| varies(name));
    let words = names.filter_map(|name| Some(format!("{name} {}", cell?.levels.get(name)?)));
    labels::plain(&words.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn levels_that_send_ten_times_as_many_segments_again_are_in_the_answer() {
        let mut run = sample::planned();
        let factor = run.header.plan.as_ref().unwrap().factors[0].clone();
        let row = |run: &Run| rows(run).into_iter().find(|(title, _)| *title == "Retransmits");
        for outcome in &mut run.outcomes {
            outcome.summary.retransmits = Some(3 * u64::from(outcome.summary.trials));
        }
        assert_eq!(row(&run), None);
        let cells = run.header.cells.clone();
        for outcome in &mut run.outcomes {
            if Cell::find(&cells, outcome.cell).unwrap().levels[&factor.name] == factor.levels[0] {
                outcome.summary.retransmits = Some(1_200 * u64::from(outcome.summary.trials));
            }
        }
        let expected =
            format!("segments of a trial by {}: {} 1,200, {} 3", factor.name, factor.levels[0], factor.levels[1]);
        assert!(row(&run).unwrap().1.plain().starts_with(&expected), "{:?}", row(&run));
    }

    #[test]
    fn a_plan_with_a_schedule_says_when_it_was_slow() {
        let mut run = sample::scheduled();
        run.outcomes.truncate(1);
        let slow: Vec<u32> = run.outcomes[0].trials.iter().map(|trial| trial.pass).skip(1).take(2).collect();
        for trial in &mut run.outcomes[0].trials {
            trial.value = Some(if slow.contains(&trial.pass) { 5e8 } else { 1e9 });
        }
        let rows = rows(&run);
        let (_, text) = rows.iter().find(|(title, _)| *title == "Over time").unwrap();
        assert!(
            text.plain().starts_with("median 1.00 Gbit/s of ") && text.plain().contains("; lowest 500 Mbit/s after "),
            "{text:?}"
        );
        assert!(text.plain().ends_with("(2 readings)"), "{text:?}");
        assert!(!super::rows(&sample::planned()).iter().any(|(title, _)| *title == "Over time"));
    }

    #[test]
    fn a_plan_names_its_extremes_its_best_levels_and_what_does_not_matter() {
        let mut run = sample::planned();
        run.findings = analysis::of_plan(&run.header, &run.outcomes, &run.passes, &[]);
        let rows = rows(&run);
        let text = |title: &str| rows.iter().find(|(other, _)| *other == title).map(|(_, text)| text.plain());
        let goodput = text("Goodput").unwrap();
        assert!(goodput.starts_with("highest ") && goodput.contains("; lowest "), "{goodput}");
        assert!(goodput.contains("block ") && goodput.contains("sndbuf "), "{goodput}");
        assert!(text("Best").or(text("No clear best")).is_some(), "{rows:?}");
        assert!(is_of(&run) && curves(&run).is_none());
        assert!(!is_of(&sample::stream()) && !is_of(&sample::groups()));
    }
}
