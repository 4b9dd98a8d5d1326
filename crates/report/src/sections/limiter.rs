//! What limited each outcome, for a terminal: shares of time as bars, evidence, losses by location.

use std::collections::BTreeSet;

use analysis::limiter::first_cause;
use model::{CellWhy, Direction, Outcome, Pattern, Ratio, Run, RunWhy, SharedLimit, Why, WhyDocument};
use text::{Text, say};

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

/// The report of `thru why` in lines.
#[must_use]
pub fn why_report(document: &WhyDocument, layout: Layout) -> String {
    let mut text = String::new();
    for run in &document.runs {
        of_run(run, document.runs.len() > 1, layout, &mut text);
    }
    let regions = document.regions.iter().map(|region| region.statement.clone());
    section("Best run by block size", regions, layout, &mut text);
    section("Differences between the runs", document.notes.iter().cloned(), layout, &mut text);
    text
}

fn of_run(run: &RunWhy, several: bool, layout: Layout, text: &mut String) {
    if several {
        let name = run.name.as_ref().map_or(String::new(), |name| format!(" ({})", labels::plain(name)));
        text.push_str(&format!("run {}{name}\n\n", labels::plain(&run.id)));
    }
    if run.limits.is_empty() {
        run.cells.iter().for_each(|cell| of_test(cell, layout, text));
    } else {
        of_many(run, layout, text);
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

/// One test, or one direction of it.
fn of_test(cell: &CellWhy, layout: Layout, text: &mut String) {
    let name = cell.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
    text.push_str(&format!("{}{}\n", labels::plain(&name), layout.shown(&cell.outcome)));
    let way = cell.direction.map_or(String::new(), |direction| format!("{} ", direction.way()));
    match &cell.why {
        Some(why) => of_cell(&way, why, layout, text),
        None => unknown_limiter(cell, text),
    }
    text.push('\n');
}

/// The tests of a mesh: what limits them, with the pairs of each limiter, and the worst pairs in full.
fn of_many(run: &RunWhy, layout: Layout, text: &mut String) {
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
                count if count > MOST_PAIRS => {
                    say!("{limiter}: {count}, such as {}", names[..SOME_PAIRS].join(", "))
                }
                count => say!("{limiter}: {count}: {}", names.join(", ")),
            }
        });
        section(&format!("What limits {all} {pattern} tests"), entries, layout, text);
    }
    let worst = run.worst.len();
    text.push_str(&match worst {
        1 => "\nThe worst pair\n\n".to_owned(),
        count => format!("\nThe {count} worst pairs\n\n"),
    });
    for id in &run.worst {
        run.cells.iter().filter(|cell| cell.cell == *id).for_each(|cell| of_test(cell, layout, text));
    }
    let numbers = run.worst.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let more = say!(
        "Their cells are {numbers}; `thru why {0} --cell N` explains one of {1}, and `thru why {0} --json` all.",
        run.id,
        run.cells.iter().map(|cell| cell.cell).collect::<BTreeSet<_>>().len()
    );
    hanging("", &more, 1, layout, text);
    text.push('\n');
}

fn unknown_limiter(cell: &CellWhy, text: &mut String) {
    let of = cell.direction.map_or(String::new(), |direction| format!("the {} direction of ", direction.way()));
    text.push_str(&format!("The limiter of {of}cell {} is unknown: nothing recorded is evidence of one.\n", cell.cell));
}

fn of_cell(way: &str, why: &Why, layout: Layout, text: &mut String) {
    wrapped(&format!("{way}limited by: "), &why.statement, layout, text);
    text.push('\n');
    if !why.parts.is_empty() {
        text.push_str("  The sender's time by TCP_INFO\n");
    }
    for part in &why.parts {
        let filled = (part.share * BAR as f64).round() as usize;
        let bar: String = "█".repeat(filled) + &"·".repeat(BAR - filled.min(BAR));
        text.push_str(&format!("  {bar} {:>5.1} %  {}\n", 100.0 * part.share, part.of.words()));
    }
    if why.parts.is_empty() {
        text.push_str("  TCP_INFO does not divide the sender's time here; there is only the evidence below.\n");
    }
    let evidence = why.evidence.iter().map(|one| {
        let source = analysis::limiter::rule(&one.rule).map_or("a rule of another version", |rule| rule.source);
        say!("{} ({}, {}): {} [{source}]", one.of.words(), one.rule, one.grade.words(), one.statement)
    });
    section("Evidence", evidence, layout, text);
    if let Some(losses) = &why.losses {
        let locations = losses.locations.iter().map(|one| {
            let part = Ratio(one.packets as f64 / losses.packets.max(1) as f64);
            say!("{}: {} ({part}); {}", one.location.words(), one.packets, one.by)
        });
        let what =
            if losses.of == "segments" { "retransmitted segments".to_owned() } else { format!("lost {}", losses.of) };
        section(&format!("Locations of {} {what}", losses.packets), locations, layout, text);
    }
    section("Remedies", why.remedies.iter().map(|one| one.statement.clone()), layout, text);
    section("Notes", why.notes.iter().cloned(), layout, text);
    section("Not recorded", why.missing.iter().map(|what| what.as_str().into()), layout, text);
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

/// `start` and `entry`, wrapped at the width; further lines are indented by two.
pub(crate) fn wrapped(start: &str, entry: &Text, layout: Layout, text: &mut String) {
    hanging(start.trim_end(), entry, 2, layout, text);
}

/// `start` and `entry`, wrapped at the width; further lines are indented by `indent`, at least one.
pub(crate) fn hanging(start: &str, entry: &Text, indent: usize, layout: Layout, text: &mut String) {
    let entry = layout.shown(entry);
    let words: Vec<&str> = entry.split_whitespace().collect();
    let (first, further) = (if start.is_empty() { String::new() } else { format!("{start} ") }, " ".repeat(indent));
    let lines = textwrap::Options::new(layout.width())
        .initial_indent(&first)
        .subsequent_indent(&further)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    text.push_str(&textwrap::fill(&words.join(" "), lines));
    text.push('\n');
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
        let text = why_report(&document(Some(why())), Layout::default());
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
            let text = why_report(&document(Some(why())), Layout { columns, ..Layout::default() });
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns) + 12), "{text}");
        }
    }

    #[test]
    fn each_direction_has_its_own_limiter() {
        let each = vec![(Some(Direction::Send), Some(why())), (Some(Direction::Reverse), None)];
        let text = why_report(&document_of(each), Layout { columns: 120, ..Layout::default() });
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
        let text = why_report(&document, Layout { columns: 120, ..Layout::default() });
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
        let text = why_report(&document, Layout::default());
        assert!(text.contains("The limiter of cell 0 is unknown"), "{text}");
        assert!(text.ends_with("Best run by block size\n- 1 B to 1 KiB: no significant difference\n"), "{text}");
        document.runs[0].cells.clear();
        assert!(why_report(&document, Layout::default()).contains("no abrupt change"));
    }
}
