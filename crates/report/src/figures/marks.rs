//! The findings of a curve as labelled points of its figures.

use model::{ByteSize, Finding, FindingKind, Mark, Outcome, Point, Run, units};

use super::curve_points::CurvePoint;

/// One of a curve's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CurveFigure {
    /// Rate over block.
    Throughput,
    /// Time over block.
    Saturation,
    /// Rate over time.
    Signature,
}

impl CurveFigure {
    /// The coordinates of a point of the curve in this figure.
    pub(crate) fn point(self, point: &CurvePoint) -> Point {
        match self {
            Self::Throughput => point.rate.over(point.block as f64),
            Self::Saturation => point.time.over(point.block as f64),
            Self::Signature => point.rate.over(point.time.value),
        }
    }

    fn shows(self, kind: FindingKind) -> bool {
        match self {
            Self::Throughput => {
                matches!(kind, FindingKind::Latency | FindingKind::Peak | FindingKind::Saturation)
            }
            Self::Saturation => matches!(kind, FindingKind::Latency | FindingKind::Saturation),
            Self::Signature => matches!(kind, FindingKind::Latency | FindingKind::Peak),
        }
    }
}

/// The marks of `run`'s findings that belong to the line through `points`.
pub(crate) fn marks(run: &Run, outcomes: &[&Outcome], points: &[CurvePoint], figure: CurveFigure) -> Vec<Mark> {
    let for_a_moment = analysis::of_a_moment(&run.outcomes).is_some();
    run.findings
        .iter()
        .filter(|finding| figure.shows(finding.kind))
        .filter_map(|finding| {
            let block = block_of(finding, outcomes)?;
            let at = points.iter().min_by_key(|point| point.block.abs_diff(block))?;
            let Point { x, y, .. } = figure.point(at);
            let peak = peak_bps(finding);
            Some(Mark { x, y: peak.unwrap_or(y), label: label(finding, at, peak, for_a_moment) })
        })
        .collect()
}

/// The block of a finding; `None` if its cells belong to another line.
fn block_of(finding: &Finding, outcomes: &[&Outcome]) -> Option<u64> {
    let cited = outcomes.iter().find(|outcome| finding.cells.contains(&outcome.cell));
    if cited.is_none() && !finding.cells.is_empty() {
        return None;
    }
    // A latency without a block is that of the smallest blocks. Other findings without a block report the absence of a point, such
    // as of saturation.
    let smallest = || cited.or(outcomes.first()).map(|outcome| outcome.spec.block);
    finding.block.or_else(|| smallest().filter(|_| finding.kind == FindingKind::Latency))
}

/// The rate of a peak, bit/s. It is that of fresh passes, or of streams, and may lie beside the point of its size.
fn peak_bps(finding: &Finding) -> Option<f64> {
    let estimate =
        finding.estimate.as_ref().filter(|estimate| estimate.unit == "bit/s" && estimate.value.is_finite())?;
    (finding.kind == FindingKind::Peak).then_some(estimate.value)
}

/// `for_a_moment`: the path lets sizes through faster than it carries them for long.
fn label(finding: &Finding, at: &CurvePoint, peak: Option<f64>, for_a_moment: bool) -> String {
    let estimate = finding.estimate.as_ref().filter(|estimate| estimate.value.is_finite());
    match finding.kind {
        FindingKind::Latency => match estimate {
            Some(estimate) if estimate.unit == "ns" => format!("latency {} round trip", units::seconds(estimate.value)),
            _ => "latency".to_owned(),
        },
        FindingKind::Peak => {
            let rate = units::bits_per_second(peak.unwrap_or(at.rate.value));
            if for_a_moment { format!("carries {rate}") } else { format!("peak {rate} at {}", ByteSize(at.block)) }
        }
        _ => format!("saturation {}", ByteSize(at.block)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Measure, curve_points};
    use crate::sample;

    fn labels(run: &Run, figure: CurveFigure) -> Vec<String> {
        let outcomes: Vec<&Outcome> = run.outcomes.iter().collect();
        let points = curve_points(&outcomes, Measure::Netpipe);
        marks(run, &outcomes, &points, figure).into_iter().map(|mark| mark.label).collect()
    }

    #[test]
    fn each_figure_has_the_marks_that_it_can_show() {
        let run = sample::curve();
        let starts = |figure: CurveFigure, words: &[&str]| {
            let labels = labels(&run, figure);
            assert_eq!(labels.len(), words.len(), "{labels:?}");
            assert!(labels.iter().zip(words).all(|(label, word)| label.starts_with(word)), "{labels:?}");
        };
        starts(CurveFigure::Throughput, &["latency", "peak", "saturation"]);
        starts(CurveFigure::Saturation, &["latency", "saturation"]);
        starts(CurveFigure::Signature, &["latency", "peak"]);
    }

    #[test]
    fn a_curve_that_does_not_saturate_has_no_such_mark() {
        let mut run = sample::curve();
        for finding in run.findings.iter_mut().filter(|finding| finding.kind == FindingKind::Saturation) {
            finding.block = None;
            finding.cells = vec![123];
        }
        assert!(!labels(&run, CurveFigure::Throughput).iter().any(|label| label.starts_with("saturation")));
    }

    #[test]
    fn a_finding_on_another_line_is_not_marked_here() {
        let mut run = sample::curve();
        run.findings.iter_mut().for_each(|finding| finding.cells = vec![9_999]);
        assert_eq!(labels(&run, CurveFigure::Throughput), Vec::<String>::new());
    }
}
