//! The report as Markdown, for wikis, issues and READMEs: tables and findings, without figures.

use model::{Run, RunSummary, units};
use text::{RateUnit, Span, Spelling, Text};

use super::answer_rows;
use super::table::OutcomeTable;
use crate::headline::{headline, summary};
use crate::screens::plan::text_tables;
use crate::sections::{anatomy, ceiling_cost, each_direction, host_activity, limiter, one_way, plan_answer, sides};
use crate::view::stem;
use crate::{Piece, ReportError, View, labels};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("md")?;
    let rates = view.layout.spelling.rates;
    let reports: Vec<String> = view.runs.iter().map(|run| report(run, rates)).collect();
    Ok(vec![Piece::new(stem(view.runs), "md", reports.join("\n").into_bytes())])
}

fn report(run: &Run, rates: RateUnit) -> String {
    let header = &run.header;
    let plan = header.plan.as_ref();
    let title = plan.and_then(|plan| plan.title.clone()).unwrap_or_else(|| labels::title(run));
    let mut text = format!("# {}\n\n", plain(&title));
    if !run.outcomes.is_empty() {
        text += &format!("{}\n\n", marked(&headline(run), rates));
    }
    text += &plan_curves(run, rates);
    text += &answer(run, rates);
    let name = header.name.as_ref().map_or(String::new(), |name| format!(" {}", code(name)));
    text += &format!(
        "Run{name} {}, {}, {}",
        plain(&header.id),
        plain(&labels::hosts(run)),
        labels::when(header.started_unix_ns)
    );
    text += &match &run.ending {
        None => ". It has not finished.\n".to_owned(),
        Some(ending) => {
            let why = ending.error.as_ref().map(|why| format!(": {}", marked(why, rates))).unwrap_or_default();
            format!(", {} after {}{why}.\n", plain(&ending.how), units::seconds(ending.duration_ns as f64))
        }
    };
    if let Some(lab) = plan.and_then(|plan| plan.lab.as_ref()) {
        text += &format!("Measured in a lab on one machine, `{}`.\n", plain(&lab.topology));
    }
    for one in text_tables(run) {
        let numeric: Vec<bool> = (0..one.head.len()).map(|column| column > 0).collect();
        text += &format!("\n{}\n\n{}", plain(&one.title), table(&one.head, &numeric, &one.rows, rates));
    }
    if !run.outcomes.is_empty() {
        let of = OutcomeTable::new(run);
        text += &format!("\n{}", table(&of.head, &of.numeric, &of.rows, rates));
        if !of.shared.is_empty() {
            text += &format!("\nAll outcomes: {}\n", labels::verdicts(&of.shared));
        }
    }
    let section = |title: &str, entries: &[Text]| section(title, entries, rates);
    let findings: Vec<Text> = run.findings.iter().map(|finding| finding.statement.clone()).collect();
    text += &section("Findings", &findings);
    text += &section("Anatomy of a round trip", &anatomy::of_run(run));
    text += &section("Directions", &each_direction::of_run(run));
    text += &section("One-way delay", &one_way::of_run(run));
    if plan.is_none() {
        text += &section("Ceiling and cost", &ceiling_cost::of_run(run));
    }
    text += &section("Host activity", &host_activity::notable(run));
    text += &section("Limits", &limiter::limiters(run, true));
    let verdicts = labels::verdicts_of(sides::shown(run));
    let meanings: Vec<Text> = verdicts.into_iter().map(|one| labels::meaning(run, one)).collect();
    text += &section("Verdicts", &meanings);
    text
}

/// The answer with what limited it and what to do next, before all tables.
fn answer(run: &Run, rates: RateUnit) -> String {
    let mut rows = answer_rows::of(run);
    let RunSummary { limited_by, next, .. } = summary(run);
    for (title, text) in [("Limited by", limited_by), ("Next", next)] {
        if let Some(text) = text.filter(|_| !rows.iter().any(|(other, _)| *other == title)) {
            rows.push((title, text));
        }
    }
    let line = |(title, text): &(&str, Text)| match *title {
        // One more entry of the row above.
        "" => format!("  - {}\n", marked(text, rates)),
        title => format!("- **{}:** {}\n", plain(title.trim_end_matches(':')), marked(text, rates)),
    };
    if rows.is_empty() { String::new() } else { format!("{}\n", rows.iter().map(line).collect::<String>()) }
}

/// The figures of a plan's curves.
fn plan_curves(run: &Run, rates: RateUnit) -> String {
    let Some(curves) = plan_answer::curves(run).filter(|_| plan_answer::is_of(run)) else { return String::new() };
    let numeric: Vec<bool> = (0..curves.head.len()).map(|column| column >= curves.names).collect();
    format!("{}\n", table(&curves.head, &numeric, &curves.rows, rates))
}

fn section(title: &str, entries: &[Text], rates: RateUnit) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let lines: String = entries.iter().map(|entry| format!("- {}\n", marked(entry, rates))).collect();
    format!("\n## {title}\n\n{lines}")
}

fn table(head: &[String], numeric: &[bool], rows: &[Vec<Text>], rates: RateUnit) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<&str> = numeric.iter().map(|numeric| if *numeric { "---:" } else { "---" }).collect();
    let rows: String = rows.iter().map(|row| line(row.iter().map(|cell| marked(cell, rates)).collect())).collect();
    format!("{}| {} |\n{rows}", line(head.iter().map(|cell| plain(cell)).collect()), rule.join(" | "))
}

/// A text on one line: code as code, and everything else with its markup escaped.
fn marked(text: &Text, rates: RateUnit) -> String {
    spans(text.spans(), rates)
}

fn spans(all: &[Span], rates: RateUnit) -> String {
    let spelling = Spelling { rates, ..Spelling::default() };
    let one = |span: &Span| match span {
        Span::Aside(aside) => format!(" ({})", spans(aside, rates)),
        span if span.is_code() => code(&span.spelled(spelling)),
        span => plain(&span.spelled(spelling)),
    };
    all.iter().map(one).collect()
}

/// Code. Its fence is longer than any backticks within it.
fn code(text: &str) -> String {
    let text = labels::plain(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let (fence, space) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
    format!("{fence}{space}{}{space}{fence}", text.replace('|', "\\|"))
}

/// Words on one line with all markup escaped, because names may come from other hosts.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in labels::plain(text).chars() {
        if matches!(c, '<' | '>' | '*' | '_' | '[' | ']' | '`' | '\\' | '|' | '~') {
            plain.push('\\');
        }
        plain.push(if c == '\n' { ' ' } else { c });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn rendered(run: Run) -> String {
        let pieces = render(&View::new(&[run])).unwrap();
        String::from_utf8(pieces.into_iter().next().unwrap().bytes).unwrap()
    }

    #[test]
    fn a_plan_has_its_tables_outcomes_and_findings() {
        let run = sample::planned();
        let text = rendered(run.clone());
        assert!(text.contains("\n| block \\\\ sndbuf | ") && text.contains("\n| --- | ---: | ---: |\n"), "{text}");
        assert!(text.contains("\n| block | sndbuf | goodput |"), "{text}");
        let rows = text.lines().filter(|line| line.starts_with("| ")).count();
        assert_eq!(rows, 2 + 2 + 2 + run.outcomes.len(), "{text}");
    }

    #[test]
    fn the_answer_its_limit_and_the_next_step_come_before_the_tables() {
        let mut run = sample::stream();
        run.outcomes[0].summary.why = Some(Box::new(sample::why("the link carries no more")));
        let text = rendered(run);
        let (above, _) = text.split_once("\n| ").unwrap();
        for part in
            ["- **Goodput:** 9.4", "- **Limited by:** link rate (strong): the link carries no more", "- **Next:** "]
        {
            assert!(above.contains(part), "{part}: {above}");
        }
        assert_eq!(text.matches("**Next:**").count(), 1, "{text}");
    }

    #[test]
    fn findings_are_a_list() {
        let run = sample::curve();
        let text = rendered(run.clone());
        let (_, behind) = text.split_once("\n## Findings\n\n").unwrap();
        assert_eq!(behind.lines().take_while(|line| line.starts_with("- ")).count(), run.findings.len(), "{text}");
    }

    #[test]
    fn markup_in_names_is_escaped() {
        let text = rendered(sample::hostile());
        assert!(!text.contains('\u{1b}') && !text.contains("<script"), "{text:?}");
        assert_eq!(plain("a*b_<i>\\"), "a\\*b\\_\\<i\\>\\\\");
    }
}
