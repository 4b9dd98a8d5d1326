//! When a stop rule is checked: at few interim analyses, at geometric distances.

/// An analysis that comes less than this factor before the last one is left out.
const CLOSE_TO_LAST: f64 = 1.25;

/// The numbers of trials or rounds after which there is an analysis: from `first` on, each at `factor` times the one before, up to
/// `last`, which is always one.
pub(super) fn schedule(first: usize, last: usize, factor: f64) -> Vec<usize> {
    let mut analyses = Vec::new();
    let mut next = first as f64;
    while next.round() * CLOSE_TO_LAST < last as f64 {
        analyses.push(next.round() as usize);
        next *= factor;
    }
    analyses.push(last);
    analyses
}
