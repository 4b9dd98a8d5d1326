//! The answer of hosts that sent at the same time: what their goodput does over their number, completion times, and a line for each
//! step. Everything else is in the whole report.

use analysis::plan::{GroupShare, RoundMean, TrafficCurve, TrafficStep, traffic_curves};
use model::{FindingKind, Run};
use text::{Rate, Said, Text, Time, say};

use super::mesh_screen::{caveats, limits, missing, next};
use crate::grid::Grid;
use crate::lines::hanging;
use crate::screens::plan;
use crate::{Layout, labels};

/// Width of the titles.
const TITLE: usize = 14;
/// Steps that a terminal shows.
const MOST_STEPS: usize = 48;
/// Sentences of a kind that are shown.
const MOST_FINDINGS: usize = 8;
/// Flows that are listed.
const MOST_FLOWS: usize = 8;
/// Hosts in the columns of a table of flows.
const MOST_HOSTS: usize = 16;

/// Whether a run is of hosts that sent at the same time.
pub(super) fn is_of(run: &Run) -> bool {
    run.header.plan.as_ref().is_some_and(|plan| plan.traffic.is_some()) && !run.outcomes.is_empty()
}

/// The screen; `whole` is how to see the rest.
pub(super) fn screen(run: &Run, layout: Layout, whole: &str) -> String {
    let mut text = String::new();
    for (title, answer) in rows(run, whole) {
        hanging(&format!("{title:<0$}", TITLE - 1), &answer, TITLE, layout, &mut text);
    }
    let curves = traffic_curves(&run.header, &run.outcomes, &run.passes);
    let steps: usize = curves.iter().map(|curve| curve.steps.len()).sum();
    if (1..=MOST_STEPS).contains(&steps) {
        text += &format!("\n{}\n", table(&curves, layout));
    }
    text += &slowest(&curves, layout);
    let streams = curves.iter().flat_map(|curve| &curve.steps).all(|step| step.completion.is_none());
    let hosts = run.header.plan.as_ref().map_or(0, |plan| plan.from.len().max(plan.to.len()));
    // The rate of a transfer alone says little about it.
    let numbers = curves.iter().all(|curve| curve.kind.has_hub());
    if streams && numbers && hosts <= MOST_HOSTS && curves.len() == 1 {
        text += &plan::matrices_in_text(run, layout, &["goodput"]);
    }
    text
}

/// The slowest flows of a ring, of permutations or of cuts: a matrix of them is mostly empty.
fn slowest(curves: &[TrafficCurve], layout: Layout) -> String {
    let mut flows: Vec<(f64, String)> = Vec::new();
    for curve in curves.iter().filter(|curve| !curve.kind.has_hub()) {
        for (step, number) in curve.steps.iter().zip(1..) {
            let draw = curve.kind.factor().map_or(String::new(), |factor| format!(" ({factor} {number})"));
            let named = |group: &GroupShare| (group.goodput_bps.value, format!("{}{draw}", group.name));
            flows.extend(step.shares.groups.iter().map(named));
        }
    }
    if flows.is_empty() {
        return String::new();
    }
    flows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let line = |(bps, name): &(f64, String)| format!("  {}\n", layout.shown(&say!("{name}: {}", Rate(*bps))));
    let lines: String = flows.iter().take(MOST_FLOWS).map(line).collect();
    format!("\nThe slowest of {} flows\n{lines}", flows.len())
}

/// Title and text of each row, also for a page.
pub(super) fn rows(run: &Run, whole: &str) -> Vec<(&'static str, Text)> {
    let mut rows: Vec<(&'static str, Text)> = Vec::new();
    for (title, kind) in
        [("Goodput", FindingKind::Traffic), ("Fairness", FindingKind::Fairness), ("Effects", FindingKind::Effect)]
    {
        let found: Vec<Text> = run
            .findings
            .iter()
            .filter(|finding| finding.kind == kind)
            .map(|finding| finding.statement.brief())
            .collect();
        let more = found.len().saturating_sub(MOST_FINDINGS);
        let titles = std::iter::once(title).chain(std::iter::repeat(""));
        rows.extend(titles.zip(found.into_iter().take(MOST_FINDINGS)));
        if more > 0 {
            rows.push(("", say!("and {more} more")));
        }
    }
    rows.extend(limits(run).map(|limits| ("Limited by", limits)));
    rows.extend(missing(run).map(|missing| ("No value", missing)));
    rows.extend(caveats(run).map(|caveats| ("Caveats", caveats)));
    rows.extend(next(run, whole));
    rows
}

/// A column: its head, whether it is numeric, and its value.
type Column = (String, bool, Box<dyn Fn(&TrafficCurve, usize, &TrafficStep) -> Option<Text>>);

/// A line for each step.
fn table(curves: &[TrafficCurve], layout: Layout) -> String {
    let ns = |ns: f64| Time(ns).say();
    let column = |head: &str, numeric, value: fn(&TrafficStep) -> Option<Text>| -> Column {
        (head.to_owned(), numeric, Box::new(move |_, _, step| value(step)))
    };
    let mut all: Vec<Column> = Vec::new();
    for name in curves.iter().flat_map(|curve| curve.levels.keys()).collect::<std::collections::BTreeSet<_>>() {
        let name = name.clone();
        all.push((
            name.clone(),
            false,
            Box::new(move |curve, _, _| curve.levels.get(&name).map(|level| level.as_str().into())),
        ));
    }
    let kind = curves.first().map(|curve| curve.kind);
    if curves.windows(2).any(|two| two[0].hub != two[1].hub) {
        let head = if kind == Some(model::TrafficKind::FanOut) { "from" } else { "to" };
        all.push((head.to_owned(), false, Box::new(|curve, _, _| curve.hub.as_deref().map(Text::from))));
    }
    if let Some(factor) = kind.and_then(model::TrafficKind::factor) {
        let value = |_: &TrafficCurve, at: usize, step: &TrafficStep| {
            Some(step.number.map_or_else(|| (at + 1).to_string(), |number| number.to_string()).into())
        };
        all.push((factor.to_owned(), true, Box::new(value)));
    }
    all.push(column("goodput", true, |step| Some(with_half(&step.shares.total_bps, |bps| Rate(bps).say()))));
    // What one of several transfers has is its completion time.
    all.push(column("each flow", true, |step| {
        step.completion
            .is_none()
            .then(|| Rate(step.shares.total_bps.value / step.shares.groups.len().max(1) as f64).say())
    }));
    all.push(column("smallest", true, |step| {
        step.shares.smallest.map(|share| model::Ratio(rounded(share.value)).to_string().into())
    }));
    all.push(column("Jain", true, |step| step.shares.index.map(|index| say!("{:.3}", index.value))));
    all.push(("all ended".to_owned(), true, Box::new(move |_, _, step| Some(with_half(&step.completion?.all_ns, ns)))));
    all.push(("median".to_owned(), true, Box::new(move |_, _, step| Some(ns(step.completion?.p50_ns)))));
    all.push(("95 %".to_owned(), true, Box::new(move |_, _, step| step.completion?.p95_ns.map(ns))));
    all.push(("99 %".to_owned(), true, Box::new(move |_, _, step| step.completion?.p99_ns.map(ns))));
    all.push(("longest".to_owned(), true, Box::new(move |_, _, step| Some(ns(step.completion?.max_ns)))));
    all.push(column("starts within", true, |step| {
        step.shares.apart_ns.filter(|_| step.shares.groups.len() > 1).map(|apart| Time(apart.value).say())
    }));
    all.push(column("retransmits", true, |step| step.retransmits.map(|count| say!("{count:.0}"))));
    all.push(column("timeouts", true, |step| {
        step.timeouts.map(|[flows, waited]| model::Ratio(rounded(waited as f64 / flows as f64)).to_string().into())
    }));
    let steps: Vec<(&TrafficCurve, usize, &TrafficStep)> = curves
        .iter()
        .flat_map(|curve| curve.steps.iter().enumerate().map(move |(at, step)| (curve, at, step)))
        .collect();
    all.retain(|(.., value)| steps.iter().any(|(curve, at, step)| value(curve, *at, step).is_some()));
    let head: Vec<String> = all.iter().map(|(head, ..)| labels::plain(head)).collect();
    let numeric: Vec<bool> = all.iter().map(|(_, numeric, _)| *numeric).collect();
    let row = |(curve, at, step): &(&TrafficCurve, usize, &TrafficStep)| -> Vec<Text> {
        all.iter().map(|(.., value)| value(curve, *at, step).unwrap_or_default()).collect()
    };
    let rows: Vec<Vec<Text>> = steps.iter().map(row).collect();
    Grid { head: &head, rows: &layout.rows(&rows), numeric: &numeric, names: 1 }.text(layout.columns)
}

fn rounded(share: f64) -> f64 {
    (share * 1e3).round() / 1e3
}

/// `94.1 Mbit/s ±0.3 %`.
fn with_half(mean: &RoundMean, text: impl Fn(f64) -> Text) -> Text {
    let half = mean.interval.filter(|_| mean.value > 0.0).map(|[low, high]| (high - low) / 2.0 / mean.value);
    let half = half.map_or(Text::default(), |half| say!(" {}", model::units::plus_minus(half)));
    say!("{}{half}", text(mean.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{FactorKind, PlanTraffic, TrafficKind};

    /// Three hosts that send to each other one at the same time, with the findings on them.
    fn traffic(kind: TrafficKind) -> Run {
        let mut run = sample::between_hosts();
        let factor = kind.factor().unwrap();
        for cell in &mut run.header.cells {
            let level = cell.levels.remove("flows").unwrap();
            cell.levels.insert(factor.to_owned(), level);
        }
        let plan = run.header.plan.as_mut().unwrap();
        plan.traffic = Some(PlanTraffic { kind, seed: 1 });
        let own = plan.factors.iter_mut().find(|factor| factor.name == "flows").unwrap();
        (own.name, own.key, own.kind) = (factor.to_owned(), factor.to_owned(), FactorKind::Traffic);
        run.findings = analysis::of_plan(&run.header, &run.outcomes, &run.passes, &[]);
        run
    }

    #[test]
    fn an_incast_has_its_answer_and_a_line_for_each_number_of_senders() {
        let run = traffic(TrafficKind::Incast);
        assert!(is_of(&run) && !is_of(&sample::between_hosts()));
        for columns in [60, 80, 100] {
            let text = screen(&run, Layout { columns, ..Layout::default() }, "`thru show x -v`");
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{text}");
            assert!(text.starts_with("Goodput       Goodput into a "), "{text}");
            assert!(text.contains("Fairness      With 4 senders, Jain's fairness index is "), "{text}");
            assert!(text.contains(" senders ") && text.contains(" goodput "), "{text}");
            assert!(text.ends_with("all pairs with their intervals and limits\n") || text.contains("Jain"), "{text}");
        }
        let ids: Vec<String> = crate::figures(&[run]).into_iter().map(|figure| figure.id).collect();
        assert_eq!(ids[0], "plan-traffic-goodput", "{ids:?}");
    }

    #[test]
    fn a_permutation_lists_its_slowest_flows() {
        let text = screen(&traffic(TrafficKind::Permutation), Layout::default(), "");
        assert!(text.starts_with("Goodput       Permutation of 6 flows at the same time: "), "{text}");
        assert!(text.contains("The slowest of 12 flows\n") && text.contains(" (permutation 1): "), "{text}");
    }
}
