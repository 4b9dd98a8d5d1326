//! The history of a mesh that is measured again and again, and what a watch tells.

use std::collections::BTreeSet;

use model::{AlertEvent, AlertState, ChangePoint, FindingKind, HistorySeries, MeshHistory, Run, units};
use text::{Text, say};

use crate::grid::Grid;
use crate::{Layout, labels};

/// Most values of a line of bars.
const BARS: usize = 24;
/// Pairs without a change that are listed; of more only their number is told.
const MOST_EVEN: usize = 30;
/// The heights of a bar.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The history of a series: the answer, the alerts, the changes and the pairs.
#[must_use]
pub fn mesh_history(history: &MeshHistory, layout: Layout) -> String {
    let Some((first, last)) = history.passes.first().zip(history.passes.last()) else {
        return format!("No pass of {} is stored.\n", labels::plain(&history.name));
    };
    let span = last.started_unix_ns.saturating_sub(first.started_unix_ns);
    let pairs: Vec<&HistorySeries> = history.series.iter().filter(|series| is_pair(series)).collect();
    // A pair has a series for each figure.
    let number = |of: &mut dyn Iterator<Item = &&HistorySeries>| {
        of.map(|series| (&series.from, &series.to)).collect::<BTreeSet<_>>().len()
    };
    let all = number(&mut pairs.iter());
    let of = match number(&mut pairs.iter().filter(|series| !series.changes.is_empty())) {
        0 => format!("None of {}", counted(all, "pair", "pairs")),
        changed => format!("{changed} of {}", counted(all, "pair", "pairs")),
    };
    let mut text = format!(
        "{of} changed over {} in {}; {}.\n",
        duration(span),
        counted(history.passes.len(), "pass", "passes"),
        match history.alerts.len() {
            0 => "no alert is raised".to_owned(),
            1 => "1 alert is raised".to_owned(),
            many => format!("{many} alerts are raised"),
        }
    );
    section(&mut text, "Alerts", history.alerts.iter().map(|alert| layout.shown(&raised(alert))));
    let mut changes: Vec<(&HistorySeries, &ChangePoint)> =
        history.series.iter().flat_map(|series| series.changes.iter().map(move |change| (series, change))).collect();
    // The latest first; hosts before their pairs.
    changes.sort_by_key(|(series, change)| (std::cmp::Reverse(change.pass), is_pair(series)));
    section(
        &mut text,
        "Changes",
        changes.iter().map(|(series, change)| layout.shown(&changed_in_words(series, change))),
    );
    let (mut listed, even): (Vec<&HistorySeries>, Vec<&HistorySeries>) =
        pairs.iter().partition(|series| is_notable(history, series));
    let rest = if even.len() <= MOST_EVEN { 0 } else { number(&mut even.iter()) };
    if rest == 0 {
        listed.extend(even);
    }
    if !listed.is_empty() {
        let head = ["pair", "figure", "last", "median", "over time", "changes"].map(str::to_owned);
        let rows: Vec<Vec<String>> = listed.iter().map(|series| row(series, layout)).collect();
        let table = Grid { head: &head, rows: &rows, numeric: &[false, false, true, true, false, true], names: 2 };
        text += &format!("\n{}\n", table.text(layout.columns));
    }
    if rest > 0 {
        text += &format!("{}\n", layout.shown(&say!("And {rest} pairs without a change: `--json` has all.")));
    }
    text += &format!("\nLast pass: `thru show {}`\n", last.run);
    text
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.map(|line| format!("  {line}\n")).collect();
    if !lines.is_empty() {
        *text += &format!("\n{title}\n{}", lines.concat());
    }
}

/// The line of a pass: when, how many pairs, and what they reach.
#[must_use]
pub fn mesh_pass(history: &MeshHistory, run: &Run) -> Text {
    let mut parts = Vec::new();
    for (figure, title) in [("rtt", "RTT"), ("goodput", "goodput")] {
        let own = history.series.iter().filter(|series| is_pair(series) && series.figure == figure);
        let (mut values, mut all) = (Vec::new(), 0);
        for series in own {
            all += 1;
            values.extend(series.values.last().copied().flatten());
        }
        if let Some(middle) = model::median(&values) {
            let unit = if figure == "rtt" { "ns" } else { "bit/s" };
            let of = if values.len() == all { format!("{all}") } else { format!("{} of {all}", values.len()) };
            parts.push(say!("median {title} {} over {of} pairs", labels::quantity(middle, unit)));
        }
    }
    if parts.is_empty() {
        parts.push("no pair has a value".into());
    }
    let kinds = [FindingKind::Outlier, FindingKind::Asymmetry];
    let out = run.findings.iter().filter(|finding| kinds.contains(&finding.kind)).count();
    parts.extend((out > 0).then(|| say!("{out} stand out")));
    say!("{} {}: {}", labels::when(run.header.started_unix_ns), run.header.id, Text::join(parts, ", "))
}

/// The line of an alert that was raised or resolved.
#[must_use]
pub fn mesh_alert(event: &AlertEvent) -> Text {
    say!("{} {}: {}", labels::when(event.at_unix_ns), event.event, event.text)
}

/// The line of a change.
#[must_use]
pub fn mesh_change(series: &HistorySeries, change: &ChangePoint) -> Text {
    say!("changed: {}", changed_in_words(series, change))
}

/// The lines of what a watch begins with.
#[must_use]
pub fn mesh_watch(history: &MeshHistory) -> String {
    let name = labels::plain(&history.name);
    match history.passes.last() {
        None => format!("The series {name} begins."),
        Some(last) => format!(
            "The series {name} goes on after {}, the last one of {}; {} raised.",
            counted(history.passes.len(), "pass", "passes"),
            labels::when(last.started_unix_ns),
            counted(history.alerts.len(), "alert", "alerts")
        ),
    }
}

pub(crate) fn is_pair(series: &HistorySeries) -> bool {
    series.from.is_some() && series.to.is_some()
}

/// Whether it changed, or its pair has an alert.
pub(crate) fn is_notable(history: &MeshHistory, series: &HistorySeries) -> bool {
    !series.changes.is_empty()
        || history.alerts.iter().any(|alert| Some(&alert.from) == series.from.as_ref() && alert.to == series.to)
}

fn raised(alert: &AlertState) -> Text {
    let since = labels::when(alert.since_unix_ns);
    let Some(to) = &alert.to else { return say!("{} has no value since {since}", alert.from) };
    let levels = if alert.levels.is_empty() { String::new() } else { format!(" ({})", alert.levels) };
    let value = alert.value.map_or_else(Text::default, |value| say!(", was {}", labels::quantity(value, &alert.unit)));
    say!("{} → {to}{levels}: {} since {since}{value}", alert.from, alert.condition)
}

pub(crate) fn name(series: &HistorySeries) -> String {
    let levels = if series.levels.is_empty() { String::new() } else { format!(" ({})", series.levels) };
    let host = |host: &Option<String>| host.clone().unwrap_or_else(|| "all".into());
    format!("{} → {}{levels}", host(&series.from), host(&series.to))
}

/// `n1 → n2: goodput 0.52 times (0.50 to 0.54), from 94.1 Mbit/s to 49.0 Mbit/s since 2026-11-26 ...`.
fn changed_in_words(series: &HistorySeries, change: &ChangePoint) -> Text {
    let [ratio, low, high] = [change.ratio, change.low, change.high].map(units::three_digits);
    let [before, after] = [change.before, change.after].map(|value| labels::quantity(value, &series.unit));
    say!(
        "{}: {} {ratio} times ({low} to {high}), from {before} to {after}, since {}",
        name(series),
        title(series),
        labels::when(change.at_unix_ns)
    )
}

pub(crate) fn title(series: &HistorySeries) -> &str {
    if series.figure == "rtt" { "RTT" } else { &series.figure }
}

fn row(series: &HistorySeries, layout: Layout) -> Vec<String> {
    let shown = |value: Option<f64>| {
        value.map_or_else(|| "-".into(), |value| layout.shown(&labels::quantity(value, &series.unit)))
    };
    let known: Vec<f64> = series.values.iter().flatten().copied().collect();
    vec![
        labels::plain(&name(series)),
        title(series).to_owned(),
        shown(series.values.last().copied().flatten()),
        shown(model::median(&known)),
        bars(&series.values),
        if series.changes.is_empty() { "-".into() } else { series.changes.len().to_string() },
    ]
}

/// The last values as bars between 0 and their highest; a pass without one is a blank.
fn bars(values: &[Option<f64>]) -> String {
    let last = &values[values.len().saturating_sub(BARS)..];
    let most = last.iter().flatten().copied().fold(0.0, f64::max);
    let bar = |value: &Option<f64>| match value {
        Some(value) if most > 0.0 => LEVELS[((value / most * 7.0).round() as usize).min(7)],
        Some(_) => LEVELS[0],
        None => ' ',
    };
    last.iter().map(bar).collect()
}

/// A time in the largest unit that fits: `24 h`, `45 min`.
fn duration(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    let (unit, name) = [(86_400.0, "days"), (3_600.0, "h"), (60.0, "min")]
        .into_iter()
        .find(|(unit, _)| seconds >= 2.0 * unit)
        .unwrap_or((1.0, "s"));
    format!("{:.0} {name}", seconds / unit)
}

fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::HistoryPass;

    fn history() -> MeshHistory {
        let passes = (0..30).map(|at| HistoryPass { run: format!("r{at}"), started_unix_ns: 900_000_000_000 * at });
        let pair = |to: &str, values: Vec<Option<f64>>| HistorySeries {
            figure: "goodput".into(),
            unit: "bit/s".into(),
            from: Some("a".into()),
            to: Some(to.into()),
            values,
            ..HistorySeries::default()
        };
        let mut slow = pair("b", (0..30).map(|at| Some(if at < 20 { 9e8 } else { 3e8 })).collect());
        slow.changes.push(ChangePoint {
            pass: 20,
            at_unix_ns: 18_000_000_000_000,
            before: 9e8,
            after: 3e8,
            ratio: 0.333,
            low: 0.32,
            high: 0.35,
            confidence: 0.95,
        });
        let gaps = pair("c", (0..30).map(|at| (at % 3 > 0).then_some(9e8)).collect());
        let alert = AlertState {
            condition: "goodput<500Mbit".into(),
            from: "a".into(),
            to: Some("b".into()),
            value: Some(3e8),
            unit: "bit/s".into(),
            since_unix_ns: 18_000_000_000_000,
            ..AlertState::default()
        };
        MeshHistory { name: "w".into(), passes: passes.collect(), series: vec![slow, gaps], alerts: vec![alert] }
    }

    #[test]
    fn the_median_of_two_pairs_lies_between_them() {
        let mut history = history();
        history.series[0].values = vec![Some(3e8), Some(5e8)];
        history.series[1].values = vec![Some(8e8), Some(9e8)];
        let line = mesh_pass(&history, &Run::new(model::RunHeader::default()));
        assert!(line.plain().contains("median goodput 700 Mbit/s over 2 pairs"), "{line:?}");
        // So does that of a pair's passes.
        assert!(
            row(&history.series[0], Layout::default()).contains(&"400 Mbit/s".to_owned()),
            "{:?}",
            row(&history.series[0], Layout::default())
        );
    }

    #[test]
    fn the_answer_comes_first_then_alerts_changes_and_pairs() {
        let text = mesh_history(&history(), Layout { columns: 120, ..Layout::default() });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "1 of 2 pairs changed over 7 h in 30 passes; 1 alert is raised.", "{text}");
        assert!(text.contains("a → b: goodput<500Mbit since 1970-01-01 05:00:00 UTC, was 300 Mbit/s"), "{text}");
        let change =
            "a → b: goodput 0.333 times (0.320 to 0.350), from 900 Mbit/s to 300 Mbit/s, since 1970-01-01 05:00:00 UTC";
        assert!(text.contains(change), "{text}");
        assert!(text.contains("██████████████▃▃▃▃▃▃▃▃▃▃"), "{text}");
        assert!(text.contains("██ ██ "), "{text}");
        assert!(text.ends_with("Last pass: `thru show r29`\n"), "{text}");
        assert_eq!(
            mesh_history(&MeshHistory { name: "x".into(), ..MeshHistory::default() }, Layout::default()),
            "No pass of x is stored.\n"
        );
    }
}
