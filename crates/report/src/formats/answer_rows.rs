//! The answer of a run as rows, for reports that have the rest too: the page and Markdown.

use model::{FindingKind, Run, RunKind};
use text::Text;

use super::{answer, curve_screen, mesh_screen, pair_screen, traffic_screen};
use crate::sections::plan_answer;

/// The answer of a curve, a stream, a transfer or a round-trip test, as `thru` prints it; of a plan which levels are best,
/// which do not matter, and what limits which cells; of a comparison the figures of both sides. Empty for other runs.
pub(super) fn of(run: &Run) -> Vec<(&'static str, Text)> {
    match answer::of(run) {
        Some(outcome) => answer::whole_rows(run, outcome),
        None if run.header.kind == RunKind::Curve => curve_screen::whole_rows(run),
        None if pair_screen::is_of(run) => pair_screen::rows(run),
        None if traffic_screen::is_of(run) => traffic_screen::rows(run, ""),
        None if mesh_screen::is_of(run) => mesh_screen::rows(run, ""),
        // Groups of flows: how fair they were.
        None if run.findings.iter().any(|finding| finding.kind == FindingKind::Fairness) => {
            let fair = run.findings.iter().filter(|finding| finding.kind == FindingKind::Fairness);
            fair.map(|finding| ("Fairness", finding.statement.clone())).collect()
        }
        None if plan_answer::is_of(run) => plan_answer::rows(run),
        None => Vec::new(),
    }
}
