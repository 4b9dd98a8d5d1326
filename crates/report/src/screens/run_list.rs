//! The table of runs in a store.

use comfy_table::{ContentArrangement, Table};
use model::{Direction, Estimate, FindingKind, Run, RunKind, Trust};
use text::{Rate, RateUnit, Spelling, Text, Time, say};

use crate::labels;
use crate::sections::{outcome_line, spread};

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListedRun {
    /// The run's id.
    pub id: String,
    /// Wall-clock time of the start, ns since the Unix epoch.
    pub started_unix_ns: u64,
    /// The subcommand.
    pub kind: String,
    /// The far end as the user named it; `None` within one host.
    pub target: Option<String>,
    /// Transports, separated by `/`.
    pub transport: String,
    /// What distinguishes it from the other runs of the list.
    pub measured: String,
    /// The result in a few words.
    pub headline: Text,
    /// The worst trust among the outcomes; `None` where none has a value.
    pub trust: Option<Trust>,
}

impl From<&Run> for ListedRun {
    fn from(run: &Run) -> Self {
        Self {
            id: run.header.id.clone(),
            started_unix_ns: run.header.started_unix_ns,
            kind: run.header.kind.to_string(),
            target: run.header.target.clone(),
            transport: labels::distinct(run, |spec| spec.transport.to_string()),
            measured: String::new(),
            headline: headline(run),
            trust: labels::worst_trust(run),
        }
    }
}

/// A run's result in a few words, after its name: peak and latency of a curve, the range of a plan, otherwise the value of the first outcome. Says how a
/// run ended that did not finish.
#[must_use]
pub fn headline(run: &Run) -> Text {
    let mut parts: Vec<Text> = run.header.name.iter().map(|name| say!("{}:", labels::plain(name))).collect();
    parts.push(result(run));
    match &run.ending {
        Some(ending) if ending.how == "finished" => {}
        Some(ending) => parts.push(say!("({})", ending.how)),
        None => parts.push("(not finished)".into()),
    }
    Text::join(parts, " ")
}

/// What stands for a run of so many cells in a list of runs that are not loaded: its number with the interval, that it is the median of
/// several cells, or how many cells there are. Of payload in both directions, `directions` are the two numbers, outbound first, and
/// stand for it.
#[must_use]
pub fn listed(number: Option<&Estimate>, directions: [Option<&Estimate>; 2], cells: u64) -> Option<Text> {
    let words = number.map(labels::estimated);
    let each = [Direction::Send, Direction::Reverse].into_iter().zip(directions);
    let each = outcome_line::each_direction(each.filter_map(|(direction, one)| Some((direction, one?.clone()))));
    match number {
        _ if each.is_some() => each,
        Some(number) if number.statistic == Estimate::MEDIAN_OVER_CELLS => {
            Some(say!("median {} of {} cells", words?, number.n))
        }
        Some(_) => words,
        None => (cells > 1).then(|| say!("{cells} cells")),
    }
}

/// A run's result without its name and ending.
pub(crate) fn result(run: &Run) -> Text {
    let found = |kind, unit: &str| {
        let finding = run.findings.iter().find(|finding| finding.kind == kind)?;
        finding
            .estimate
            .as_ref()
            .filter(|estimate| estimate.unit == unit)
            .map(|estimate| estimate.value)
            .filter(|value| value.is_finite())
    };
    let peak = found(FindingKind::Peak, "bit/s").map(|bps| say!("peak {}", Rate(bps)));
    let latency = found(FindingKind::Latency, "ns").map(|ns| say!("RTT {}", Time(ns)));
    let found: Vec<Text> = peak.into_iter().chain(latency).collect();
    if run.header.kind == RunKind::Curve && !found.is_empty() {
        return Text::join(found, ", ");
    }
    if run.header.plan.is_some() && run.outcomes.len() > 1 {
        return spread::short(run)
            .unwrap_or_else(|| say!("{} of {} cells", run.outcomes.len(), run.header.cells.len()));
    }
    match run.outcomes.as_slice() {
        [a, b] if run.header.kind == RunKind::Ab => {
            let difference = run.findings.iter().find_map(|finding| {
                let answer = labels::answer(finding.comparison.as_ref()?.answer);
                let figure = finding.estimate.as_ref().map(|ratio| say!(" ({})", labels::estimated(ratio)));
                Some(say!("B {answer}{}: ", figure.unwrap_or_default()))
            });
            let short = |outcome| outcome_line::value(outcome).unwrap_or_else(|| "no value".into());
            say!("{}A {}, B {}", difference.unwrap_or_default(), short(a), short(b))
        }
        [] => "no outcome".into(),
        [only] => outcome_line::values(only),
        [first, rest @ ..] => say!("{}; {} more", outcome_line::values(first), rest.len()),
    }
}

/// The table of `thru runs`: id, start (UTC), kind, target, transport, what differs, headline and trust. Each line ends in a line end;
/// without rows there is only the head.
#[must_use]
pub fn run_list(rows: &[ListedRun], rates: RateUnit) -> String {
    let mut table = Table::new();
    table.load_style(labels::TABLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["id", "when (UTC)", "kind", "target", "transport", "differs in", "result", "trust"]);
    for row in rows {
        let when = labels::when(row.started_unix_ns);
        table.add_row([
            labels::plain(&row.id),
            when.trim_end_matches(" UTC").to_owned(),
            labels::plain(&row.kind),
            short(row.target.as_deref().unwrap_or("-"), 32),
            short(&row.transport, 24),
            short(&row.measured, 40),
            short(&row.headline.shown(Spelling { rates, ..Spelling::default() }), 90),
            row.trust.map_or("-", labels::trust).to_owned(),
        ]);
    }
    format!("{}\n", table.trim_fmt())
}

/// At most `room` characters, so that one long name does not push the other columns off the screen.
fn short(text: &str, room: usize) -> String {
    let text = labels::plain(text);
    if text.chars().count() <= room {
        return text;
    }
    text.chars().take(room - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_list_has_a_line_for_each_run() {
        let rows: Vec<ListedRun> =
            [sample::curve(), sample::stream(), sample::rr(), sample::hostile()].iter().map(ListedRun::from).collect();
        let list = run_list(&rows, RateUnit::Bits);
        for row in &rows {
            let line = list.lines().find(|line| line.contains(&row.id)).unwrap();
            assert!(line.contains(&row.kind), "{line}");
        }
        assert!(list.contains("2026-11-21 20:37:58") && list.contains("peak "), "{list}");
        assert!(!list.contains('\u{1b}'), "a name cannot move the cursor");
        assert!(list.lines().all(|line| line.chars().count() < 240), "{list}");
        assert_eq!(run_list(&[], RateUnit::Bits).matches("when (UTC)").count(), 1);
    }

    #[test]
    fn a_value_that_is_no_number_is_not_a_headline() {
        assert!(!headline(&sample::broken()).plain().contains("NaN"));
    }

    #[test]
    fn a_comparison_names_its_answer_and_both_sides() {
        let text = headline(&sample::pair());
        assert!(
            text.plain().starts_with("B not worse (B/A 1.0012 ±0.9 %): A goodput ")
                && text.plain().contains(", B goodput "),
            "{text:?}"
        );
        let mut killed = sample::pair();
        killed.findings.clear();
        assert!(headline(&killed).plain().starts_with("A goodput "), "{:?}", headline(&killed));
    }

    #[test]
    fn a_run_that_did_not_finish_says_so() {
        let mut run = sample::stream();
        run.ending = None;
        assert!(headline(&run).plain().ends_with("(not finished)"));
    }
}
