//! The answer of a run as rows, for reports that have the rest too: the page and Markdown.

use model::{FindingKind, Run, RunKind};
use text::Text;

use super::{answer, curve_screen, mesh_screen, traffic_screen};

/// The most lines of the answer of a plan.
const MOST_BEST: usize = 4;

/// The answer of a curve, a stream, a transfer or a round-trip test, as `thru` prints it; of a plan what was best. Empty for other runs.
pub(super) fn of(run: &Run) -> Vec<(&'static str, Text)> {
    match answer::of(run) {
        Some(outcome) => answer::whole_rows(run, outcome),
        None if run.header.kind == RunKind::Curve => curve_screen::whole_rows(run),
        None if traffic_screen::is_of(run) => traffic_screen::rows(run, ""),
        None if mesh_screen::is_of(run) => mesh_screen::rows(run, ""),
        // Groups of flows: how fair they were.
        None if run.findings.iter().any(|finding| finding.kind == FindingKind::Fairness) => {
            let fair = run.findings.iter().filter(|finding| finding.kind == FindingKind::Fairness);
            fair.map(|finding| ("Fairness", finding.statement.clone())).collect()
        }
        None => {
            // Where something is best, that is the answer, and not where nothing is.
            let best = |finding: &&model::Finding| finding.kind == FindingKind::Best;
            let some = run.findings.iter().filter(best).any(|finding| finding.estimate.is_some());
            let best = run.findings.iter().filter(best).filter(|finding| !some || finding.estimate.is_some());
            best.take(MOST_BEST).map(|finding| ("Best", finding.statement.clone())).collect()
        }
    }
}
