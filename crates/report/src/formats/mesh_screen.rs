//! The answer of a mesh, and of matrices from elsewhere: what stands out, what the pairs reach, and the matrices. Everything else is in the
//! whole report.

use std::collections::{BTreeMap, HashSet};

use analysis::limiter;
use model::{Factor, FindingKind, Run, RunKind};
use text::{Text, say};

use crate::lines::hanging;
use crate::screens::plan;
use crate::sections::{adapters, spread};
use crate::{Layout, labels};

/// Width of the titles.
const TITLE: usize = 14;
/// Hosts of a matrix that a terminal shows.
const MOST_HOSTS: usize = 16;
/// Findings that are shown.
const MOST_FINDINGS: usize = 8;

/// Whether a run has this answer: a mesh, or an import with such tables.
pub(super) fn is_of(run: &Run) -> bool {
    !run.outcomes.is_empty() && (is_mesh(run) || (run.header.origin.is_some() && !spread::shown(run).is_empty()))
}

fn is_mesh(run: &Run) -> bool {
    run.header.kind == RunKind::Mesh
}

/// The screen; `whole` is how to see the rest.
pub(super) fn screen(run: &Run, layout: Layout, whole: &str) -> String {
    let mut text = String::new();
    for (title, answer) in rows(run, whole) {
        hanging(&format!("{title:<0$}", TITLE - 1), &answer, TITLE, layout, &mut text);
    }
    let hosts = run.header.plan.as_ref().map_or(0, |plan| plan.from.len().max(plan.to.len()));
    if hosts <= MOST_HOSTS {
        text += &plan::matrices_in_text(run, layout, &spread::MEASURES);
    }
    text
}

/// Title and text of each row, also for a page.
pub(super) fn rows(run: &Run, whole: &str) -> Vec<(&'static str, Text)> {
    let mut rows: Vec<(&'static str, Text)> = Vec::new();
    let of = |kinds: &[FindingKind]| -> Vec<Text> {
        let found = run.findings.iter().filter(|finding| kinds.contains(&finding.kind));
        found.map(|finding| finding.statement.brief()).collect()
    };
    let outliers = of(&[FindingKind::Outlier, FindingKind::Asymmetry]);
    let more = outliers.len().saturating_sub(MOST_FINDINGS);
    // What others measured is not judged: it has no rounds.
    if outliers.is_empty() && is_mesh(run) {
        rows.push(("Stands out", nothing(run)));
    }
    let mut shown = outliers.into_iter().take(MOST_FINDINGS);
    rows.extend(shown.next().map(|first| ("Stands out", first)));
    rows.extend(shown.map(|finding| ("", finding)));
    if more > 0 {
        rows.push(("", say!("and {more} more")));
    }
    let spreads = spread::shown(run);
    rows.extend(spreads.iter().filter_map(|table| Some((spread::title(table), spread::sentence(table)?))));
    let unconfirmed = of(&[FindingKind::Unconfirmed]).into_iter().enumerate();
    rows.extend(unconfirmed.map(|(at, finding)| (if at == 0 { "Unconfirmed" } else { "" }, finding)));
    rows.extend(of(&[FindingKind::Path]).into_iter().map(|finding| ("Between", finding)));
    rows.extend(adapters::of_run(run).map(|adapters| ("Adapters", adapters)));
    if run.header.origin.is_some() {
        let notes = run.findings.iter().filter(|finding| finding.kind == FindingKind::Note);
        let titles = std::iter::once("Import").chain(std::iter::repeat(""));
        rows.extend(titles.zip(notes.map(|finding| finding.statement.clone())));
    }
    rows.extend(limits(run).map(|limits| ("Limited by", limits)));
    rows.extend(missing(run).map(|missing| ("No value", missing)));
    rows.extend(caveats(run).map(|caveats| ("Caveats", caveats)));
    rows.extend(next(run, whole));
    rows
}

/// What to do next; `whole` is how to see the rest.
pub(super) fn next(run: &Run, whole: &str) -> Vec<(&'static str, Text)> {
    let mut rows = Vec::new();
    // A run that is not stored cannot be asked about.
    if whole.contains(&run.header.id) && is_mesh(run) {
        rows.push(("Next", say!("`thru why {}` (what limits each pair, with the evidence)", run.header.id)));
    }
    if !whole.is_empty() {
        let rest = if is_mesh(run) {
            "all pairs with their intervals and limits"
        } else {
            "every value with its trials and trust"
        };
        rows.push(("More", say!("{whole}: {rest}")));
    }
    rows
}

fn nothing(run: &Run) -> Text {
    let hosts = run.header.plan.as_ref().map_or(0, |plan| plan.from.len().min(plan.to.len()));
    if hosts < 4 {
        "not judged: that needs four hosts or more, each with three partners".into()
    } else if run.findings.iter().any(|finding| finding.kind == FindingKind::Unconfirmed) {
        // The matrices show what the next line is about.
        "nothing that is confirmed or significant".into()
    } else {
        "no host, pair or cluster by 1.25 times or more".into()
    }
}

/// What limits the tests of each pattern, with their number: `30 stream tests by link rate (28), receiver CPU (2)`.
pub(super) fn limits(run: &Run) -> Option<Text> {
    let mut patterns: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for outcome in &run.outcomes {
        if let Some(limit) = outcome.summary.why.as_deref().map(limiter::words) {
            *patterns.entry(outcome.spec.pattern.name()).or_default().entry(limit).or_default() += 1;
        }
    }
    let one = |(pattern, counts): (&str, BTreeMap<&str, usize>)| {
        let total: usize = counts.values().sum();
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let parts: Vec<Text> = counts.iter().map(|(name, count)| say!("{name} ({count})")).collect();
        say!("{total} {pattern} tests by {}", Text::join(parts, ", "))
    };
    let parts: Vec<Text> = patterns.into_iter().map(one).collect();
    (!parts.is_empty()).then(|| Text::join(parts, "; "))
}

/// The pairs without a value, with what is known of them.
pub(super) fn missing(run: &Run) -> Option<Text> {
    const MOST: usize = 4;
    let with: HashSet<u32> =
        run.outcomes.iter().filter(|outcome| outcome.estimate.is_some()).map(|outcome| outcome.cell).collect();
    let without: Vec<String> = run
        .header
        .cells
        .iter()
        .filter(|cell| !with.contains(&cell.id))
        .map(|cell| {
            let level = |name: &str| cell.levels.get(name).map_or("", String::as_str);
            format!("{} {} → {}", cell.spec.pattern, level(Factor::FROM), level(Factor::TO))
        })
        .collect();
    let more = without.len().saturating_sub(MOST);
    let more = if more > 0 { say!(" and {more} more") } else { Text::default() };
    let shown = without[..without.len().min(MOST)].join(", ");
    (!without.is_empty()).then(|| say!("{} of {} tests: {shown}{more}", without.len(), run.header.cells.len()))
}

/// Verdicts, with the number of tests that have them where those are not all.
pub(super) fn caveats(run: &Run) -> Option<Text> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let all = run.outcomes.iter().flat_map(|outcome| &outcome.summary.verdicts);
    for verdict in all {
        *counts.entry(labels::verdict(*verdict)).or_default() += 1;
    }
    let all = run.outcomes.len();
    let one = |(name, count): (&String, &usize)| {
        if *count == all { name.clone() } else { format!("{name} ({count} of {all} tests)") }
    };
    let parts: Vec<String> = counts.iter().map(one).collect();
    (!parts.is_empty()).then(|| parts.join(", ").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Finding, Plan, RunHeader};

    #[test]
    fn a_mesh_with_differences_is_not_said_to_have_none() {
        let names: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
        let plan = Plan { from: names.clone(), to: names, ..Plan::default() };
        let header = RunHeader { kind: RunKind::Mesh, plan: Some(Box::new(plan)), ..RunHeader::default() };
        let mut run = Run::new(header);
        let row = |run: &Run| rows(run, "").into_iter().find(|(title, _)| *title == "Stands out").unwrap().1;
        assert_eq!(row(&run), "no host, pair or cluster by 1.25 times or more".into());
        run.findings.push(Finding {
            kind: FindingKind::Unconfirmed,
            statement: text::say!("not significant: 2 of 12 pairs differ{}.", text::Aside("from the median".into())),
            estimate: None,
            block: None,
            cells: Vec::new(),
            comparison: None,
        });
        assert_eq!(row(&run), "nothing that is confirmed or significant".into());
        let unconfirmed = ("Unconfirmed", "not significant: 2 of 12 pairs differ.".into());
        assert!(rows(&run, "").contains(&unconfirmed), "{:?}", rows(&run, ""));
    }
}
