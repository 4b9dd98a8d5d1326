//! The table of runs in a store.

use comfy_table::{ContentArrangement, Table};
use model::Run;
use text::{RateUnit, Spelling, Text, User, say};

use crate::headline::headline;
use crate::labels;

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
    /// The answer.
    pub headline: Text,
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
            headline: run.header.name.as_ref().map_or(Text::default(), |name| say!("{}: ", User(name))) + headline(run),
        }
    }
}

/// The table of `thru runs`: id, start (UTC), kind, target, transport, what differs, and the answer. Each line ends in a line end;
/// without rows there is only the head.
#[must_use]
pub fn run_list(rows: &[ListedRun], rates: RateUnit) -> String {
    let mut table = Table::new();
    table.load_style(labels::TABLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["id", "when (UTC)", "kind", "target", "transport", "differs in", "result"]);
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
            text.plain().starts_with("B --cc bbr is not worse than A --cc cubic (B/A 1.0012 ±0.9 %): A goodput ")
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
