//! The line under a figure's title.

use model::Run;

use super::line::Line;
use crate::labels::{distinct, hosts, percent, when};

/// The line under a figure's title: what was measured, between which hosts, when, and how to read it.
pub(crate) fn subtitle(runs: &[Run], lines: &[&Line<'_>], note: &str, interval: Option<String>) -> String {
    let mut of: Vec<usize> = lines.iter().map(|line| line.run).collect();
    of.dedup();
    let mut parts = Vec::new();
    if let [only] = of[..] {
        let run = &runs[only];
        let what = format!(
            "{} {}, {}",
            distinct(run, |spec| spec.transport.to_string()),
            distinct(run, |spec| spec.pattern.to_string()),
            hosts(run)
        );
        parts.extend([what, when(run.header.started_unix_ns)]);
    } else {
        parts.push(format!("{} runs", of.len()));
    }
    parts.push(note.to_owned());
    parts.extend(interval);
    parts.join("; ")
}

/// `with 95 % intervals` if the outcomes of `lines` have intervals.
pub(crate) fn interval_note(lines: &[&Line<'_>]) -> Option<String> {
    let outcomes = lines.iter().flat_map(|line| &line.outcomes);
    let estimate = outcomes.filter_map(|outcome| outcome.estimate.as_ref()).find(|estimate| estimate.low.is_some())?;
    Some(format!("with {} % intervals", percent(estimate.confidence)))
}
