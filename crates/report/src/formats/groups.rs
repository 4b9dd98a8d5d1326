//! The answer of a stream with groups of flows: a line for each group, what all took together, how fair that is, and what to know before
//! relying on it. Everything else is in the whole report.

use analysis::plan::{GroupShare, group_shares};
use model::{Direction, FindingKind, Outcome, Run};
use text::{Rate, Said, Text, Time, say};

use crate::grid::Grid;
use crate::lines::wrapped;
use crate::sections::sides;
use crate::{Layout, figures, labels};

/// A column: its head, whether it is numeric, and its value.
type Column<'a> = (&'static str, bool, &'a dyn Fn(&Outcome) -> Option<Text>);

/// Whether a run's cells are groups of flows, and nothing else.
pub(super) fn is_of(run: &Run) -> bool {
    let plan = run.header.plan.as_ref();
    !run.outcomes.is_empty() && plan.is_some_and(|plan| plan.groups().is_some() && plan.factors.len() == 1)
}

/// The answer; `whole` is how to see the rest.
pub(super) fn screen(run: &Run, layout: Layout, whole: &str) -> String {
    let mut text = format!("{}\n\n", table(run, layout));
    for finding in run.findings.iter().filter(|finding| finding.kind == FindingKind::Fairness) {
        wrapped("", &finding.statement, layout, &mut text);
    }
    text.push('\n');
    for outcome in &run.outcomes {
        for (direction, why) in outcome.summary.limits() {
            let way = direction.map_or(String::new(), |direction| format!(" {}", direction.way()));
            let cause = analysis::limiter::first_cause(why);
            wrapped("", &say!("{}{way} is limited by: {cause}", name(run, outcome)), layout, &mut text);
        }
    }
    for verdict in labels::verdicts_of(sides::shown(run)) {
        wrapped("", &labels::meaning(run, verdict), layout, &mut text);
    }
    text.push_str(&format!("\n{whole}: series, hosts, cores, cost, all findings\n"));
    text
}

/// The name of an outcome's group.
fn name(run: &Run, outcome: &Outcome) -> String {
    let cell = model::Cell::find(&run.header.cells, outcome.cell);
    let level = cell.and_then(|cell| cell.levels.get(model::Factor::GROUP)).map_or("", String::as_str);
    format!("group {level}")
}

/// A row for each group: its goodput and its part of what all groups in its direction took.
fn table(run: &Run, layout: Layout) -> String {
    let sets = group_shares(&run.header, &run.outcomes, &run.passes);
    let share = |outcome: &Outcome| -> Option<&GroupShare> {
        sets.iter()
            .filter(|set| set.groups.len() > 1)
            .flat_map(|set| &set.groups)
            .find(|group| group.cell == outcome.cell)
    };
    let percent = |group: &GroupShare| {
        let half = group.share.interval.map_or(Text::default(), |[low, high]| say!(" ±{:.1}", 50.0 * (high - low)));
        say!("{:.1} %{half}", 100.0 * group.share.value)
    };
    let each = |outcome: &Outcome| {
        let value = outcome.estimate.as_ref()?.value / f64::from(outcome.spec.flows);
        (outcome.spec.flows > 1).then(|| Rate(value).say())
    };
    let all: [Column<'_>; 12] = [
        ("transport", false, &|outcome| Some(outcome.spec.transport.to_string().into())),
        ("direction", false, &|outcome| Some(figures::direction(outcome.spec.direction).into())),
        ("cc", false, &|outcome| share(outcome).and_then(|group| group.cc.as_deref().map(Text::from))),
        ("flows", true, &|outcome| Some(outcome.spec.flows.to_string().into())),
        ("goodput", true, &|outcome| outcome.estimate.as_ref().map(labels::estimated)),
        ("share", true, &|outcome| share(outcome).map(percent)),
        ("each flow", true, &each),
        ("RTT", true, &|outcome| outcome.summary.tcp_rtt_ns.map(|ns| Time(ns).say())),
        ("retransmits", true, &|outcome| outcome.summary.retransmits.map(|count| count.to_string().into())),
        ("lost", true, &|outcome| {
            outcome.summary.packets_lost.map(|lost| labels::lost(lost, outcome.summary.packets_sent).into())
        }),
        ("trials", true, &|outcome| Some(outcome.summary.trials.to_string().into())),
        ("trust", false, &|outcome| outcome.summary.trust.map(|trust| labels::trust(trust).into())),
    ];
    let shown = sides::shown(run);
    let differs = |value: &dyn Fn(&Outcome) -> Option<Text>| shown.windows(2).any(|two| value(two[0]) != value(two[1]));
    let plain = run.outcomes.iter().all(|outcome| outcome.spec.direction == Direction::Send);
    let wanted = |(head, _, value): &&Column<'_>| match *head {
        "transport" | "cc" | "trials" => differs(*value),
        "direction" => !plain && differs(*value),
        _ => shown.iter().any(|outcome| value(outcome).is_some()),
    };
    let chosen: Vec<&Column<'_>> = all.iter().filter(wanted).collect();
    let head: Vec<String> =
        std::iter::once("group").chain(chosen.iter().map(|(head, ..)| *head)).map(str::to_owned).collect();
    let numeric: Vec<bool> = std::iter::once(false).chain(chosen.iter().map(|(_, numeric, _)| *numeric)).collect();
    let row = |outcome: &&Outcome| -> Vec<Text> {
        let own = name(run, outcome);
        let own = own.trim_start_matches("group ").into();
        std::iter::once(own).chain(chosen.iter().map(|(.., value)| value(outcome).unwrap_or_default())).collect()
    };
    let rows: Vec<Vec<Text>> = shown.iter().map(row).collect();
    Grid { head: &head, rows: &layout.rows(&rows), numeric: &numeric, names: 1 }.text(layout.columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn each_group_has_a_line_with_its_share_and_findings_follow() {
        let run = sample::groups();
        assert!(is_of(&run) && !is_of(&sample::planned()) && !is_of(&sample::stream()));
        for columns in [60, 80, 100] {
            let text = screen(&run, Layout { columns, ..Layout::default() }, "`thru show x -v`");
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{text}");
            let line = text.lines().find(|line| line.trim_start().starts_with("bulk ")).unwrap();
            assert!(line.contains("bit/s ±"), "{text}");
            assert!(text.contains("75.0 %") && text.contains("25.0 %"), "{text}");
            let said = text.replace("\n  ", " ");
            assert!(said.contains("The groups together: ") && said.contains("Jain's fairness index"), "{text}");
            assert!(text.ends_with("`thru show x -v`: series, hosts, cores, cost, all findings\n"), "{text}");
        }
    }
}
