//! What limited each outcome, for a terminal: shares of time as bars, evidence, losses by location.

use std::collections::BTreeSet;

use analysis::limiter::first_cause;
use model::{CellWhy, Direction, Outcome, Pattern, Ratio, Run, RunWhy, SharedLimit, Why, WhyDocument};
use text::{Count, Text, say};

use crate::lines::{cut, hanging, wrapped};
use crate::sections::{outcome_line, sides};
use crate::{Layout, labels};

/// Columns of a bar of 100 %.
const BAR: usize = 40;
/// Pairs with the same limiter that are all named, and how many are named of more.
const MOST_PAIRS: usize = 8;
const SOME_PAIRS: usize = 4;

/// What limited each outcome, where it is known, such as `limited by: receive window (strong, 87 % of the sender's time): ...`.
/// If there are several outcomes, each carries the name of its side or its levels. `whole` adds lesser causes.
pub(crate) fn limiters(run: &Run, whole: bool) -> Vec<Text> {
    let shown = sides::shown(run);
    let lines = |outcome: &&Outcome| {
        let cell = name_of(run, outcome).map_or(Text::default(), |name| name + ", ");
        let of = |(direction, why): (Option<Direction>, &Why)| {
            let name = direction.map_or(cell.clone(), |direction| say!("{cell}{} ", direction.way()));
            let remedies = why.remedies.iter().map(|remedy| say!("{name}remedy: {}", remedy.statement));
            let lines = std::iter::once(say!(
                "{name}limited by: {}",
                if whole { why.statement.clone() } else { first_cause(why) }
            ))
            .chain(remedies);
            lines.collect::<Vec<_>>()
        };
        outcome.summary.limits().flat_map(of).collect::<Vec<_>>()
    };
    shown.iter().flat_map(lines).collect()
}

/// What limited an outcome, in a word or two; of both directions, of each.
#[cfg(any(feature = "xlsx", feature = "parquet"))]
pub(crate) fn kinds(outcome: &Outcome) -> Option<String> {
    let of = |(direction, why): (Option<Direction>, &Why)| {
        let way = direction.map_or(String::new(), |direction| format!("{}: ", direction.way()));
        format!("{way}{}", why.limiter.words())
    };
    let words: Vec<String> = outcome.summary.limits().map(of).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// The name of one of several outcomes: its side or its levels. `None` for the only one.
pub(crate) fn name_of(run: &Run, outcome: &Outcome) -> Option<Text> {
    match sides::side(run, outcome) {
        Some(side) => Some(side.into()),
        None => sides::are_several(run).then(|| cell_name(run, outcome)),
    }
}

/// The levels of an outcome's cell; without levels, what it measured.
fn cell_name(run: &Run, outcome: &Outcome) -> Text {
    let cell = model::Cell::find(&run.header.cells, outcome.cell);
    let levels = cell.into_iter().flat_map(|cell| &cell.levels).map(|(factor, level)| format!("{factor} {level}"));
    let levels = levels.collect::<Vec<_>>().join(", ");
    if levels.is_empty() { outcome_line::label(&outcome.spec) } else { levels.into() }
}

/// The report of `thru why`: a screen, which `more` says how to extend; without it everything.
#[must_use]
pub fn why_report(document: &WhyDocument, layout: Layout, more: Option<&str>) -> String {
    let mut text = String::new();
    for run in &document.runs {
        of_run(run, document.runs.len() > 1, layout, more.is_none(), &mut text);
    }
    let regions = document.regions.iter().map(|region| region.statement.clone());
    section("Best run by block size", regions, layout, &mut text);
    section("Differences between the runs", document.notes.iter().cloned(), layout, &mut text);
    if let Some(more) = more.filter(|_| document.runs.iter().any(|run| !run.cells.is_empty())) {
        if !text.ends_with("\n\n") && document.runs.iter().all(|run| run.limits.is_empty()) {
            text.push('\n');
        }
        hanging(
            "More:",
            &say!("{more}: all evidence with its sources, notes, what was not recorded"),
            2,
            layout,
            &mut text,
        );
    }
    text
}

fn of_run(run: &RunWhy, several: bool, layout: Layout, whole: bool, text: &mut String) {
    if several {
        let name = run.name.as_ref().map_or(String::new(), |name| format!(" ({})", labels::plain(name)));
        text.push_str(&format!("run {}{name}\n\n", labels::plain(&run.id)));
    }
    if run.limits.is_empty() {
        let shown = if whole { run.cells.len() } else { run.cells.len().min(MOST_TESTS) };
        let mut before: Option<&CellWhy> = None;
        for cell in run.cells.iter().take(shown) {
            // Both directions of a test have the same outcome.
            let is_told = !whole && before.is_some_and(|before| before.cell == cell.cell);
            if is_told && text.ends_with("\n\n") {
                text.pop();
            }
            of_test(cell, layout, detail(run, whole), !is_told, text);
            before = Some(cell);
        }
        if run.cells.len() > shown {
            text.push_str(&format!("{} more tests: -v\n", run.cells.len() - shown));
        }
    } else {
        of_many(run, layout, whole, text);
    }
    let changes = run.changes.iter().map(|finding| finding.statement.clone());
    section("Abrupt changes in the curve", changes, layout, text);
    if !run.changes.is_empty() {
        text.push('\n');
    }
    if run.cells.is_empty() && run.changes.is_empty() {
        text.push_str("The curve has no abrupt change.\n\n");
    }
}

/// Tests that a screen has.
const MOST_TESTS: usize = 6;
/// Entries and their lines of the evidence of a test on a screen.
const MOST_EVIDENCE: usize = 3;
const EVIDENCE_LINES: usize = 2;

/// How much of a test is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// What limited it.
    Limit,
    /// The main evidence too.
    Evidence,
    /// Everything.
    Whole,
}

fn detail(run: &RunWhy, whole: bool) -> Detail {
    match run.cells.len() {
        _ if whole => Detail::Whole,
        1 => Detail::Evidence,
        _ => Detail::Limit,
    }
}

/// One test, or one direction of it, with its outcome if that `is_new`.
fn of_test(cell: &CellWhy, layout: Layout, detail: Detail, is_new: bool, text: &mut String) {
    let name = cell.name.as_ref().map_or(Text::default(), |name| say!("{name}: "));
    if is_new {
        wrapped("", &say!("{name}{}", cell.outcome), layout, text);
    }
    let way = cell.direction.map_or(String::new(), |direction| format!("{} ", direction.way()));
    match &cell.why {
        Some(why) if detail == Detail::Limit => {
            let mut limit = String::new();
            wrapped(&format!("{way}limited by:"), &first_cause(why), layout, &mut limit);
            text.push_str(&cut(&limit, EVIDENCE_LINES, layout.width()));
        }
        Some(why) => of_cell(&way, why, layout, detail == Detail::Whole, text),
        None => unknown_limiter(cell, text),
    }
    text.push('\n');
}

/// The tests of a mesh: what limits them, with the pairs of each limiter, and the worst pairs, in full if `whole`.
fn of_many(run: &RunWhy, layout: Layout, whole: bool, text: &mut String) {
    let name = |id: &u32| {
        let own = run.cells.iter().find(|cell| cell.cell == *id).and_then(|cell| cell.name.clone());
        own.unwrap_or_else(|| format!("cell {id}"))
    };
    let patterns: BTreeSet<Pattern> = run.limits.iter().map(|limit| limit.pattern).collect();
    for pattern in patterns {
        let own: Vec<&SharedLimit> = run.limits.iter().filter(|limit| limit.pattern == pattern).collect();
        let all = own.iter().flat_map(|limit| &limit.cells).collect::<BTreeSet<_>>().len();
        let entries = own.iter().map(|limit| {
            let limiter = limit.limiter.as_deref().unwrap_or("unknown: nothing recorded is evidence of a limiter");
            let names: Vec<String> = limit.cells.iter().take(MOST_PAIRS).map(name).collect();
            match limit.cells.len() {
                count if count == all => say!("{limiter}: all"),
                count if count > MOST_PAIRS || (count > SOME_PAIRS && !whole) => {
                    say!("{limiter}: {count}, such as {}", names[..SOME_PAIRS].join(", "))
                }
                count => say!("{limiter}: {count}: {}", names.join(", ")),
            }
        });
        let title = format!("What limits {all} {pattern} tests");
        if whole {
            section(&title, entries, layout, text);
        } else {
            brief_section(&title, &entries.collect::<Vec<_>>(), 1, layout, text);
        }
    }
    let worst = run.worst.len();
    text.push_str(&match worst {
        1 => "\nThe worst pair\n".to_owned(),
        count => format!("\nThe {count} worst pairs\n"),
    });
    if whole {
        text.push('\n');
    }
    for cell in run.worst.iter().flat_map(|id| run.cells.iter().filter(move |cell| cell.cell == *id)) {
        if whole {
            of_test(cell, layout, Detail::Whole, true, text);
        } else {
            in_two_lines(cell, layout, text);
        }
    }
    if !whole {
        text.push('\n');
    }
    let numbers = run.worst.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let more = say!(
        "Their cells are {numbers}; `thru why {0} --cell N` explains one of {1}, and `thru why {0} --json` all.",
        run.id,
        run.cells.iter().map(|cell| cell.cell).collect::<BTreeSet<_>>().len()
    );
    hanging("", &more, 1, layout, text);
    if whole {
        text.push('\n');
    }
}

/// A test and what limited it, a line each.
fn in_two_lines(cell: &CellWhy, layout: Layout, text: &mut String) {
    let name = cell.name.as_ref().map_or(Text::default(), |name| say!("{name}: "));
    let way = cell.direction.map_or(String::new(), |direction| format!("{} ", direction.way()));
    let cause = cell.why.as_ref().map_or_else(|| "unknown".into(), first_cause);
    for (start, sentence) in [(String::new(), say!("{name}{}", cell.outcome)), (format!("  {way}limited by:"), cause)] {
        let mut lines = String::new();
        wrapped(&start, &sentence, layout, &mut lines);
        text.push_str(&cut(&lines, 1, layout.width()));
    }
}

fn unknown_limiter(cell: &CellWhy, text: &mut String) {
    let of = cell.direction.map_or(String::new(), |direction| format!("the {} direction of ", direction.way()));
    text.push_str(&format!("The limiter of {of}cell {} is unknown: nothing recorded is evidence of one.\n", cell.cell));
}

fn of_cell(way: &str, why: &Why, layout: Layout, whole: bool, text: &mut String) {
    let statement = if whole { why.statement.clone() } else { first_cause(why) };
    wrapped(&format!("{way}limited by: "), &statement, layout, text);
    text.push('\n');
    bars(why, whole, text);
    let evidence = why.evidence.iter().map(|one| {
        let source = analysis::limiter::rule(&one.rule).map_or("a rule of another version", |rule| rule.source);
        if whole {
            say!("{} ({}, {}): {} [{source}]", one.of.words(), one.rule, one.grade.words(), one.statement)
        } else {
            say!("{} ({}): {}", one.of.words(), one.grade.words(), one.statement)
        }
    });
    if whole {
        section("Evidence", evidence, layout, text);
    } else {
        // The first cause is above.
        let others: Vec<Text> =
            evidence.zip(&why.evidence).filter(|(_, one)| one.of != why.limiter).map(|(text, _)| text).collect();
        brief_section("Other evidence", &others, EVIDENCE_LINES, layout, text);
    }
    if let Some(losses) = &why.losses {
        let locations = losses.locations.iter().map(|one| {
            let part = Ratio(one.packets as f64 / losses.packets.max(1) as f64);
            say!("{}: {} ({part}); {}", one.location.words(), Count(one.packets), one.by)
        });
        let what =
            if losses.of == "segments" { "retransmitted segments".to_owned() } else { format!("lost {}", losses.of) };
        section(&format!("Locations of {} {what}", Count(losses.packets)), locations, layout, text);
    }
    section("Remedies", why.remedies.iter().map(|one| one.statement.clone()), layout, text);
    if !whole {
        brief_section("Notes", &why.notes, EVIDENCE_LINES, layout, text);
        return;
    }
    section("Notes", why.notes.iter().cloned(), layout, text);
    section("Not recorded", why.missing.iter().map(|what| what.as_str().into()), layout, text);
}

/// The shares of the sender's time as bars.
fn bars(why: &Why, whole: bool, text: &mut String) {
    if !why.parts.is_empty() {
        text.push_str("  The sender's time by TCP_INFO\n");
    }
    let is_shown = |share: f64| whole || share >= 0.005;
    for part in why.parts.iter().filter(|part| is_shown(part.share)) {
        let filled = (part.share * BAR as f64).round() as usize;
        let bar: String = "█".repeat(filled) + &"·".repeat(BAR - filled.min(BAR));
        text.push_str(&format!("  {bar} {:>5.1} %  {}\n", 100.0 * part.share, part.of.words()));
    }
    if why.parts.is_empty() && whole {
        text.push_str("  TCP_INFO does not divide the sender's time here; there is only the evidence below.\n");
    }
}

/// A section of a few entries, each of so many lines.
fn brief_section(title: &str, entries: &[Text], most: usize, layout: Layout, text: &mut String) {
    if entries.is_empty() {
        return;
    }
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
    text.push_str(&format!("{title}\n"));
    for entry in entries.iter().take(MOST_EVIDENCE) {
        let mut lines = String::new();
        wrapped("- ", entry, layout, &mut lines);
        text.push_str(&cut(&lines, most, layout.width()));
    }
}

/// A title and its entries; nothing if there are none.
fn section(title: &str, entries: impl Iterator<Item = Text>, layout: Layout, text: &mut String) {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return;
    }
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
    text.push_str(&format!("{title}\n"));
    entries.for_each(|entry| wrapped("- ", &entry, layout, text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{BestRegion, Evidence, Grade, LimiterKind, LocatedLoss, LossLocation, Losses, Pattern, TimePart};

    fn why() -> Why {
        let part = |of, share| TimePart { of, share, method: "by the clocks".into() };
        Why {
            limiter: LimiterKind::ReceiveWindow,
            grade: Some(Grade::Strong),
            statement: "receive window (strong, 87 % of the sender's time): 64 KiB window over 20.0 ms carries at most 26.2 Mbit/s"
                .into(),
            parts: vec![part(LimiterKind::ReceiveWindow, 0.87), part(LimiterKind::Network, 0.13)],
            evidence: vec![Evidence {
                of: LimiterKind::ReceiveWindow,
                rule: "window-over-rtt".into(),
                statement: "64 KiB window over 20.0 ms carries at most 26.2 Mbit/s".into(),
                grade: Grade::Strong,
                share: None,
            }],
            also: Vec::new(),
            remedies: Vec::new(),
            losses: Some(Losses {
                packets: 12,
                of: "segments".into(),
                locations: vec![LocatedLoss { location: LossLocation::Path, packets: 12, by: "no counter".into() }],
            }),
            notes: vec!["A note with \u{1b}[31m in it.".into()],
            missing: vec!["the counters of the receiver's host".into()],
        }
    }

    fn document(why: Option<Why>) -> WhyDocument {
        document_of(vec![(None, why)])
    }

    fn document_of(each: Vec<(Option<Direction>, Option<Why>)>) -> WhyDocument {
        let outcome = "tcp stream 128 KiB: goodput 25.0 Mbit/s";
        let cell = |(direction, why)| CellWhy { cell: 0, name: None, outcome: outcome.into(), direction, why };
        let cells = each.into_iter().map(cell).collect();
        let (id, limits, worst, changes) = ("20261121-203758-4f1a".into(), Vec::new(), Vec::new(), Vec::new());
        let run = RunWhy { id, name: None, cells, limits, worst, changes };
        WhyDocument { schema: WhyDocument::SCHEMA.into(), runs: vec![run], regions: Vec::new(), notes: Vec::new() }
    }

    #[test]
    fn a_report_has_bars_evidence_losses_and_what_is_missing() {
        let text = why_report(&document(Some(why())), Layout::default(), None);
        let bar = text.lines().find(|line| line.contains('█')).unwrap();
        assert_eq!((bar.matches('█').count(), bar.matches('·').count()), (35, 5), "{bar}");
        assert!(bar.ends_with(" 87.0 %  receive window"), "{bar}");
        assert!(
            text.contains("limited by: receive window (strong, 87 %") && text.contains("(window-over-rtt, strong)"),
            "{text}"
        );
        assert!(
            text.contains(
                "Locations of 12 retransmitted segments\n- the path between the hosts: 12 (100 %); no counter"
            ),
            "{text}"
        );
        assert!(text.contains("Not recorded\n- the counters") && !text.contains('\u{1b}'), "{text}");
        for columns in [60, 80] {
            let text = why_report(&document(Some(why())), Layout { columns, ..Layout::default() }, None);
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns) + 12), "{text}");
        }
    }

    #[test]
    fn a_screen_has_the_main_evidence_without_its_sources() {
        let mut why = why();
        let other = |of| Evidence {
            of,
            rule: "full-thread".into(),
            grade: Grade::Likely,
            statement: "It ran. ".repeat(60).into(),
            share: None,
        };
        why.evidence.extend((0..9).map(|_| other(LimiterKind::SenderCpu)));
        let layout = Layout { columns: 80, ..Layout::default() };
        let text = why_report(&document(Some(why)), layout, Some("`thru why last -v`"));
        assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\nOther evidence\n- sender CPU (likely): It ran."), "{text}");
        assert!(!text.contains("window-over-rtt") && !text.contains("Not recorded"), "{text}");
        assert!(text.contains("\nMore: `thru why last -v`: all evidence"), "{text}");
    }

    #[test]
    fn each_direction_has_its_own_limiter() {
        let each = vec![(Some(Direction::Send), Some(why())), (Some(Direction::Reverse), None)];
        let text = why_report(&document_of(each), Layout { columns: 120, ..Layout::default() }, None);
        assert!(text.contains("\noutbound limited by: receive window (strong"), "{text}");
        assert!(text.contains("\nThe limiter of the return direction of cell 0 is unknown"), "{text}");
    }

    #[test]
    fn a_mesh_has_its_limiters_with_their_pairs_and_the_worst_pairs_in_full() {
        let mut document = document(None);
        let run = &mut document.runs[0];
        run.cells = (0..20)
            .map(|cell| CellWhy {
                cell,
                name: Some(format!("n1 → n{cell}")),
                outcome: "tcp stream 128 KiB: goodput 25.0 Mbit/s".into(),
                direction: None,
                why: Some(why()),
            })
            .collect();
        let limit = |pattern, limiter: Option<&str>, cells: std::ops::Range<u32>| SharedLimit {
            pattern,
            limiter: limiter.map(str::to_owned),
            cells: cells.collect(),
        };
        run.limits = vec![
            limit(Pattern::Rr, Some("link rate"), 0..3),
            limit(Pattern::Stream, Some("receive window"), 3..15),
            limit(Pattern::Stream, None, 15..17),
        ];
        run.worst = vec![4, 16];
        let text = why_report(&document, Layout { columns: 120, ..Layout::default() }, None);
        for part in [
            "What limits 3 rr tests\n- link rate: all\n",
            "\nWhat limits 14 stream tests\n- receive window: 12, such as n1 → n3, n1 → n4, n1 → n5, n1 → n6\n",
            "- unknown: nothing recorded is evidence of a limiter: 2: n1 → n15, n1 → n16\n",
            "\nThe 2 worst pairs\n\nn1 → n4: tcp stream 128 KiB: goodput 25.0 Mbit/s\nlimited by: receive window",
            "Their cells are 4, 16; `thru why 20261121-203758-4f1a --cell N` explains one of 20",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert_eq!(text.matches("limited by: ").count(), 2, "{text}");
        let screen = why_report(&document, Layout { columns: 80, ..Layout::default() }, Some("`thru why last -v`"));
        assert!(screen.lines().count() <= 24 && !screen.contains("Evidence"), "{screen}");
        assert!(
            screen.contains("\nn1 → n4: tcp stream 128 KiB: goodput 25.0 Mbit/s\n  limited by: receive window"),
            "{screen}"
        );
    }

    #[test]
    fn an_unknown_limiter_is_named_and_regions_come_last() {
        let mut document = document(None);
        document.regions.push(BestRegion {
            from: 1,
            to: 1024,
            best: None,
            over: None,
            ratio: None,
            low: None,
            high: None,
            statement: "1 B to 1 KiB: no significant difference".into(),
        });
        let text = why_report(&document, Layout::default(), None);
        assert!(text.contains("The limiter of cell 0 is unknown"), "{text}");
        assert!(text.ends_with("Best run by block size\n- 1 B to 1 KiB: no significant difference\n"), "{text}");
        document.runs[0].cells.clear();
        assert!(why_report(&document, Layout::default(), None).contains("no abrupt change"));
    }
}
