//! The table of runs in a store.

use std::collections::{BTreeMap, BTreeSet};

use model::{Estimate, Run, RunSummary, Trust};
use text::{Text, say};

use crate::headline::summary;
use crate::{Layout, labels};

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListedRun {
    /// The run's id.
    pub id: String,
    /// The name that the user gave it.
    pub name: Option<String>,
    /// Wall-clock time of the start, ns since the Unix epoch.
    pub started_unix_ns: u64,
    /// The subcommand.
    pub kind: String,
    /// The far end as the user named it; `None` within one host.
    pub target: Option<String>,
    /// Transports, separated by `/`.
    pub transport: String,
    /// How it ended; `None` if it has not.
    pub ending: Option<String>,
    /// The answer; `None` until the run has ended.
    pub summary: Option<RunSummary>,
}

impl From<&Run> for ListedRun {
    fn from(run: &Run) -> Self {
        Self {
            id: run.header.id.clone(),
            name: run.header.name.clone(),
            started_unix_ns: run.header.started_unix_ns,
            kind: run.header.kind.to_string(),
            target: run.header.target.clone(),
            transport: labels::distinct(run, |spec| spec.transport.to_string()),
            ending: run.ending.as_ref().map(|ending| ending.how.clone()),
            summary: Some(summary(run)),
        }
    }
}

/// Most characters of a name, and of what was measured.
const NAME: usize = 20;
const WHAT: usize = 16;
/// Fewest characters of a result.
const RESULT: usize = 10;
/// Characters of a time, of a trust grade, and between two columns.
const WHEN: usize = 11;
const TRUST: usize = 5;
const GAP: usize = 2;

/// The table of `thru runs` in the width of the layout: name (otherwise id), start, what was measured, the answer and its trust. `more`
/// runs are not in it, and `all` is how to list them. Each line ends in a line end.
#[must_use]
pub fn run_list(rows: &[ListedRun], more: usize, all: &str, layout: Layout) -> String {
    let unique = unique_names(rows);
    let year = rows.iter().map(|row| year(row.started_unix_ns)).max().unwrap_or_default();
    let parts: Vec<[String; 2]> = rows.iter().map(|row| [handle(row, &unique), what(row, &unique)]).collect();
    let widest =
        |at: usize, most: usize| parts.iter().map(|part| part[at].chars().count()).max().unwrap_or(0).clamp(4, most);
    // A wide terminal has room for the names of hosts, a narrow one has less for them.
    let spare = layout.width().saturating_sub(80);
    let narrow = layout.width().saturating_sub(NAME + WHEN + TRUST + 4 * GAP + RESULT);
    let (name, kind) = (widest(0, NAME + spare / 4), widest(1, (WHAT + spare / 4).min(narrow.max(4))));
    let room = layout.width().saturating_sub(name + WHEN + kind + TRUST + 4 * GAP).max(RESULT);
    let line = |[handle, when, what, result, trust]: [&str; 5]| {
        let text = format!(
            "{:<name$}  {when:<WHEN$}  {:<kind$}  {:<room$}  {trust}",
            short(handle, name),
            short(what, kind),
            short(result, room)
        );
        format!("{}\n", text.trim_end())
    };
    let mut text = line(["run", "when (UTC)", "what", "result", "trust"]);
    text += &format!("{}\n", "─".repeat(layout.width()));
    for (row, [handle, what]) in rows.iter().zip(&parts) {
        let trust = row.summary.as_ref().and_then(|summary| summary.trust).map_or("-", labels::trust);
        text += &line([handle, &when(row.started_unix_ns, &year), what, &result(row, room, layout), trust]);
    }
    if more > 0 {
        text += &format!("{}\n", layout.shown(&say!("{} more: `{all}`", text::Count(more as u64))));
    }
    text
}

/// The names that only one run has: another name means no run.
fn unique_names(rows: &[ListedRun]) -> BTreeSet<&str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    rows.iter().filter_map(|row| row.name.as_deref()).for_each(|name| *counts.entry(name).or_default() += 1);
    counts.into_iter().filter(|(_, count)| *count == 1).map(|(name, _)| name).collect()
}

/// What other commands call the run.
fn handle(row: &ListedRun, unique: &BTreeSet<&str>) -> String {
    labels::plain(row.name.as_deref().filter(|name| unique.contains(name)).unwrap_or(&row.id))
}

/// The command, the transport unless it is TCP, and the far end, after a name that several runs have.
fn what(row: &ListedRun, unique: &BTreeSet<&str>) -> String {
    let shared = row.name.as_deref().filter(|name| !unique.contains(name)).map(|name| format!("{name}:"));
    let transport = Some(row.transport.as_str()).filter(|transport| !["", "tcp"].contains(transport));
    let words = [shared.as_deref(), Some(row.kind.as_str()), transport, row.target.as_deref()];
    labels::plain(&words.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

fn year(unix_ns: u64) -> String {
    labels::when(unix_ns).chars().take(4).collect()
}

/// Day and time of this year, otherwise the date.
fn when(unix_ns: u64, this_year: &str) -> String {
    let whole = labels::when(unix_ns);
    let (from, to) = if whole.starts_with(this_year) { (5, 16) } else { (0, 10) };
    whole.get(from..to).unwrap_or(&whole).to_owned()
}

/// The answer without its trust, which may be cut; in a narrow column, the figure by itself.
fn result(row: &ListedRun, room: usize, layout: Layout) -> String {
    let Some(summary) = &row.summary else {
        return row.ending.clone().unwrap_or_else(|| "not finished".to_owned());
    };
    let headline = layout.shown(&without_trust(&summary.headline, summary.trust));
    let how = row.ending.as_deref().filter(|how| *how != "finished");
    let figure = figure(summary, layout);
    // A ratio without its sides says nothing, and round trips per minute are not the goodput beside them.
    let is_ratio = summary.estimate.as_ref().is_some_and(|estimate| estimate.unit == "ratio");
    let says_more = headline.contains(" RPM ") || (is_ratio && row.kind != "ab");
    match (figure, how) {
        (Some(figure), None) if room < WIDE && !says_more => figure,
        _ if headline.chars().count() <= room => headline,
        // What is not finished has no final interval.
        (Some(figure), Some(how)) => format!("{how}: {}", figure.split(" ±").next().unwrap_or_default()),
        (None, Some(how)) => format!("{how}: {headline}"),
        (_, None) => headline,
    }
}

/// Columns from which on a result has words.
const WIDE: usize = 40;

/// The figure of each direction, or the one that stands for the run.
fn figure(summary: &RunSummary, layout: Layout) -> Option<String> {
    let value = |estimate: &Estimate| labels::quantity(estimate.value, &estimate.unit);
    if let (Some(out), Some(back)) = (&summary.outbound, &summary.return_trip) {
        let [out, back] = [value(out), value(back)].map(|value| layout.shown(&value));
        // The unit once.
        let (first, unit) = out.split_once(' ').unwrap_or((&out, ""));
        return Some(if back.ends_with(unit) { format!("{first} / {back}") } else { format!("{out} / {back}") });
    }
    summary.estimate.as_ref().map(|estimate| layout.shown(&labels::estimated(estimate)))
}

fn without_trust(headline: &Text, trust: Option<Trust>) -> Text {
    let tail = trust.map(|trust| format!(", trust {}", labels::trust(trust)));
    let mut spans = headline.spans().to_vec();
    if let (Some(tail), Some(text::Span::Words(last))) = (tail, spans.last_mut()) {
        *last = last.replace(&tail, "");
    }
    spans.into_iter().fold(Text::default(), |mut all, span| {
        all.push(span);
        all
    })
}

/// At most `room` characters, so that one long name does not push the other columns off the screen.
fn short(text: &str, room: usize) -> String {
    let text = labels::plain(text);
    if text.chars().count() <= room {
        return text;
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headline::headline;
    use crate::sample;

    #[test]
    fn the_list_has_a_line_for_each_run() {
        let rows: Vec<ListedRun> =
            [sample::curve(), sample::stream(), sample::rr(), sample::hostile()].iter().map(ListedRun::from).collect();
        for columns in [60, 80, 120, 200] {
            let layout = Layout { columns, ..Layout::default() };
            let list = run_list(&rows, 1042, "thru runs -n 1046", layout);
            assert_eq!(list.lines().count(), rows.len() + 3, "{list}");
            assert!(list.lines().all(|line| line.chars().count() <= usize::from(columns)), "{list}");
            assert!(list.contains("11-21 20:37  curv"), "{list}");
            assert!(!list.contains('\u{1b}'), "a name cannot move the cursor");
            assert!(list.ends_with("\n1,042 more: `thru runs -n 1046`\n"), "{list}");
        }
        let wide = run_list(&rows, 0, "", Layout { columns: 160, ..Layout::default() });
        assert!(wide.contains(" peak ") && wide.contains(" fair") && !wide.contains(", trust "), "{wide}");
        assert_eq!(run_list(&[], 0, "", Layout::default()).matches("when (UTC)").count(), 1);
    }

    #[test]
    fn a_name_that_several_runs_have_is_no_handle() {
        let row = |name: &str, id: &str, days: u64| ListedRun {
            id: id.into(),
            name: Some(name.into()),
            started_unix_ns: days * 86_400_000_000_000,
            kind: "stream".into(),
            transport: "udp".into(),
            target: Some("beta".into()),
            ..ListedRun::default()
        };
        let rows = [row("nightly", "new", 20_700), row("nightly", "old", 20_000), row("once", "id", 20_700)];
        let list = run_list(&rows, 0, "", Layout { columns: 100, ..Layout::default() });
        let lines: Vec<&str> = list.lines().skip(2).collect();
        assert!(
            lines[0].starts_with("new   ") && lines[0].contains("  nightly: stream udp …  not finished "),
            "{list}"
        );
        assert!(lines[0].ends_with("  -") && lines[1].starts_with("old   2024-10-04   nightly: "), "{list}");
        assert!(lines[2].starts_with("once  ") && lines[2].contains("  stream udp beta "), "{list}");
    }

    #[test]
    fn a_value_that_is_no_number_is_not_a_headline() {
        assert!(!headline(&sample::broken()).plain().contains("NaN"));
    }

    #[test]
    fn a_comparison_names_its_answer_and_both_sides() {
        let text = headline(&sample::pair());
        assert!(
            text.plain().starts_with("B --cc bbr is not worse than A --cc cubic: goodput +0.1 % (")
                && text.plain().contains(", B goodput "),
            "{text:?}"
        );
        let mut killed = sample::pair();
        killed.findings.clear();
        assert!(headline(&killed).plain().starts_with("A --cc cubic goodput "), "{:?}", headline(&killed));
    }

    #[test]
    fn a_run_that_did_not_finish_says_so() {
        let mut run = sample::stream();
        run.ending = None;
        assert!(headline(&run).plain().ends_with("(not finished)"));
    }
}
