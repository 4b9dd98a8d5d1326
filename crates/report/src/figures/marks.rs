//! The findings of a curve as labelled points of its pictures.

use model::{ByteSize, Finding, FindingKind, Mark, Outcome, Point, Run, units};

use super::curve::CurvePoint;

/// Which of a curve's pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// Rate over block.
    Throughput,
    /// Time over block.
    Saturation,
    /// Rate over time.
    Signature,
}

impl Position {
    /// Where a point of the curve stands in this picture.
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
pub(crate) fn marks(run: &Run, outcomes: &[&Outcome], points: &[CurvePoint], place: Position) -> Vec<Mark> {
    run.findings
        .iter()
        .filter(|finding| place.shows(finding.kind))
        .filter_map(|finding| {
            let block = block_of(finding, outcomes)?;
            let at = points.iter().min_by_key(|point| point.block.abs_diff(block))?;
            let Point { x, y, .. } = place.point(at);
            Some(Mark { x, y, label: label(finding, at) })
        })
        .collect()
}

/// The block that a finding is about, `None` when it rests on cells of another line.
fn block_of(finding: &Finding, outcomes: &[&Outcome]) -> Option<u64> {
    let cited = outcomes.iter().find(|outcome| finding.cells.contains(&outcome.cell));
    if cited.is_none() && !finding.cells.is_empty() {
        return None;
    }
    // The latency is that of the smallest blocks, if it does not say which. Any other finding without a block says that there
    // is none, such as a curve that does not saturate.
    let smallest = || cited.or(outcomes.first()).map(|outcome| outcome.spec.block);
    finding.block.or_else(|| smallest().filter(|_| finding.kind == FindingKind::Latency))
}

fn label(finding: &Finding, at: &CurvePoint) -> String {
    let estimate = finding.estimate.as_ref().filter(|estimate| estimate.value.is_finite());
    match finding.kind {
        FindingKind::Latency => match estimate {
            Some(estimate) if estimate.unit == "ns" => format!("latency {} round trip", units::seconds(estimate.value)),
            _ => "latency".to_owned(),
        },
        FindingKind::Peak => {
            let rate = estimate.filter(|estimate| estimate.unit == "bit/s").map_or(at.rate.value, |e| e.value);
            format!("peak {} at {}", units::bits_per_second(rate), ByteSize(at.block))
        }
        _ => format!("saturation {}", ByteSize(at.block)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Measure, curve_points};
    use crate::sample;

    fn labels(run: &Run, place: Position) -> Vec<String> {
        let outcomes: Vec<&Outcome> = run.outcomes.iter().collect();
        let points = curve_points(&outcomes, Measure::Netpipe);
        marks(run, &outcomes, &points, place).into_iter().map(|mark| mark.label).collect()
    }

    #[test]
    fn each_figure_has_the_marks_that_it_can_show() {
        let run = sample::curve();
        let starts = |place: Position, words: &[&str]| {
            let labels = labels(&run, place);
            assert_eq!(labels.len(), words.len(), "{labels:?}");
            assert!(labels.iter().zip(words).all(|(label, word)| label.starts_with(word)), "{labels:?}");
        };
        starts(Position::Throughput, &["latency", "peak", "saturation"]);
        starts(Position::Saturation, &["latency", "saturation"]);
        starts(Position::Signature, &["latency", "peak"]);
    }

    #[test]
    fn a_curve_that_does_not_saturate_has_no_such_mark() {
        let mut run = sample::curve();
        for finding in run.findings.iter_mut().filter(|finding| finding.kind == FindingKind::Saturation) {
            finding.block = None;
            finding.cells = vec![123];
        }
        assert!(!labels(&run, Position::Throughput).iter().any(|label| label.starts_with("saturation")));
    }

    #[test]
    fn a_finding_on_another_line_is_not_marked_here() {
        let mut run = sample::curve();
        run.findings.iter_mut().for_each(|finding| finding.cells = vec![9_999]);
        assert_eq!(labels(&run, Position::Throughput), Vec::<String>::new());
    }
}
