//! Which findings may be used.

use analysis::outcome::is_unusable;
use model::{Finding, Outcome, Run, Spec};

/// Whether all outcomes that a finding is based on may be used: its cells, or for a finding on a curve those of its size.
pub(crate) fn is_usable(run: &Run, finding: &Finding) -> bool {
    let is_base = |outcome: &Outcome| match finding.cells.as_slice() {
        [] => finding.block == Some(outcome.spec.block) && outcome.spec.transport != Spec::CEILING,
        cells => cells.contains(&outcome.cell),
    };
    !run.outcomes.iter().any(|outcome| is_base(outcome) && is_unusable(outcome))
}
