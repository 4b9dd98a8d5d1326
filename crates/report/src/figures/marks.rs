//! The findings of a curve as labelled points of its pictures.

use model::{ByteSize, Finding, FindingKind, Mark, Outcome, Point, Run, units};

use super::curve::CurvePoint;

/// Which of a curve's pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Rate over block.
    Throughput,
    /// Time over block.
    Saturation,
    /// Rate over time.
    Signature,
}

impl Place {
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
pub(crate) fn marks(run: &Run, outcomes: &[&Outcome], points: &[CurvePoint], place: Place) -> Vec<Mark> {
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
    finding
        .block
        .or_else(|| cited.map(|outcome| outcome.spec.block))
        // The latency is that of the smallest blocks, if it does not say which.
        .or_else(|| outcomes.first().filter(|_| finding.kind == FindingKind::Latency).map(|first| first.spec.block))
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
