//! The first sheet: the result of each run, what limited it, the findings, and what the other sheets have.

use model::{Estimate, Run};
use rust_xlsxwriter::XlsxError;

use super::book::{Book, Sheet};
use crate::formats::value::{Value, count, number, text};
use crate::labels;
use crate::sections::{limiter, sides};

/// Adds it before all others.
pub(super) fn add(book: &mut Book, runs: &[Run]) -> Result<(), XlsxError> {
    let mut sheet = book.sheet("summary", "")?;
    results(book, &mut sheet, runs)?;
    sheet.row += 1;
    findings(book, &mut sheet, runs)?;
    verdicts(book, &mut sheet, runs)?;
    sheet.row += 1;
    sheet.head(0, ["sheet", "what it has"])?;
    for (name, about) in book.contents() {
        sheet.line([text(name), text(about)])?;
    }
    book.push_first(sheet);
    Ok(())
}

/// One line for each run, the answer first.
fn results(book: &Book, sheet: &mut Sheet, runs: &[Run]) -> Result<(), XlsxError> {
    sheet.head(
        1,
        [
            "run",
            "result",
            "value",
            "low",
            "high",
            "unit",
            "confidence",
            "trust",
            "limited by",
            "statistic",
            "trials",
            "kind",
            "transport",
            "hosts",
            "started (UTC)",
            "ended",
            "id",
        ],
    )?;
    for run in runs {
        let summary = crate::summary(run);
        let headline = summary.estimate.as_ref();
        let of = |figure: fn(&Estimate) -> Option<f64>| number(headline.and_then(figure));
        let header = &run.header;
        let trials: usize = run.outcomes.iter().map(|outcome| outcome.trials.len()).sum();
        let ended = run.ending.as_ref().map_or("not finished", |ending| ending.how.as_str());
        sheet.line([
            text(labels::title(run)),
            book.said(&summary.headline),
            of(|estimate| Some(estimate.value)),
            of(|estimate| estimate.low),
            of(|estimate| estimate.high),
            headline.and_then(|estimate| text(&estimate.unit)),
            of(|estimate| Some(estimate.confidence)),
            labels::worst_trust(run).and_then(|trust| text(labels::trust(trust))),
            limited_by(run),
            headline.and_then(|estimate| text(&estimate.statistic)),
            count(trials as u64),
            text(header.kind.name()),
            text(labels::distinct(run, |spec| spec.transport.to_string())),
            text(labels::hosts(run)),
            Some(Value::Time(header.started_unix_ns)),
            text(ended),
            text(&header.id),
        ])?;
    }
    Ok(())
}

/// What limited the outcomes, each once.
fn limited_by(run: &Run) -> Option<Value> {
    let mut words: Vec<String> = Vec::new();
    for outcome in sides::shown(run) {
        let why = limiter::kinds(outcome);
        words.extend(why.filter(|why| !words.contains(why)));
    }
    text(words.join(", "))
}

/// The findings of all runs, and what limited each outcome in words.
fn findings(book: &Book, sheet: &mut Sheet, runs: &[Run]) -> Result<(), XlsxError> {
    sheet.head(0, ["run", "finding", "value", "low", "high", "unit", "confidence", "kind", "block (B)"])?;
    for run in runs {
        for limiter in limiter::limiters(run, true) {
            sheet.line([text(labels::title(run)), book.said(&limiter)])?;
        }
        for finding in &run.findings {
            let of = |figure: fn(&Estimate) -> Option<f64>| number(finding.estimate.as_ref().and_then(figure));
            let kind = serde_json::to_value(finding.kind).ok();
            sheet.line([
                text(labels::title(run)),
                book.said(&finding.statement),
                of(|estimate| Some(estimate.value)),
                of(|estimate| estimate.low),
                of(|estimate| estimate.high),
                finding.estimate.as_ref().and_then(|estimate| text(&estimate.unit)),
                of(|estimate| Some(estimate.confidence)),
                kind.and_then(|kind| kind.as_str().and_then(text)),
                finding.block.and_then(count),
            ])?;
        }
    }
    Ok(())
}

/// What the verdicts mean.
fn verdicts(book: &Book, sheet: &mut Sheet, runs: &[Run]) -> Result<(), XlsxError> {
    let all = labels::verdicts_of(runs.iter().flat_map(sides::shown));
    if all.is_empty() {
        return Ok(());
    }
    sheet.row += 1;
    sheet.head(0, ["verdict", "what it means"])?;
    for verdict in all {
        sheet.line([text(labels::verdict(verdict)), book.said(&analysis::outcome::explain(verdict))])?;
    }
    Ok(())
}
