//! Findings: what outcomes mean, in short statements with their figures.

mod anatomy;
mod anomaly;
mod connections;
mod latency;
mod modes;
mod one_way;
mod path;
mod peak;
mod rules;
mod saturation;
mod single;
mod variation;
pub(crate) mod wording;

use model::{Finding, FindingKind, Outcome};

pub use path::{Stolen, of_path};
pub use rules::of_rules;
pub use single::of_single;

use crate::curve;
use crate::curve_fit::Fit;

/// The findings of a curve over block sizes: latency and its two modes, if it has two (round trips only), peak, saturation point,
/// half-peak block, anomalies, the variation between connections. Outcomes may come in any order; those without a value are skipped.
/// Empty without points.
#[must_use]
pub fn of_curve(outcomes: &[Outcome]) -> Vec<Finding> {
    let all: Vec<&Outcome> = outcomes.iter().collect();
    let fit = Fit::new(&curve::points(outcomes), outcomes);
    let mut findings = figures(&all, &fit);
    let modes = modes::of_small_sizes(outcomes, latency::SMALL);
    let after_latency = findings.iter().take_while(|finding| finding.kind == FindingKind::Latency).count();
    findings.splice(after_latency..after_latency, modes);
    findings.extend(anomaly::anomalies(&fit.groups));
    findings.extend(connections::connections(outcomes));
    findings
}

/// The latency, the peak, the saturation point and the half-peak block of points of one curve.
pub(crate) fn of_points(outcomes: &[&Outcome]) -> Vec<Finding> {
    let fit = Fit::new(&curve::points(outcomes.iter().copied()), outcomes.iter().copied());
    figures(outcomes, &fit)
}

fn figures(outcomes: &[&Outcome], fit: &Fit) -> Vec<Finding> {
    [latency::latency(outcomes), peak::peak(fit), saturation::saturation(fit), peak::half_peak(fit)]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::*;
    use model::Pattern;

    #[test]
    fn a_clean_curve_has_four_findings() {
        let findings = of_curve(&curve(&netpipe(), hockney(10_000.0, 1.0), 0.01, 4));
        let kinds: Vec<FindingKind> = findings.iter().map(|finding| finding.kind).collect();
        use FindingKind::{HalfPeak, Latency, Peak, Saturation};
        assert_eq!(kinds, [Latency, Peak, Saturation, HalfPeak]);
        for finding in &findings {
            assert!(
                finding.statement.plain().ends_with('.') && !finding.statement.plain().contains(". "),
                "{}",
                finding.statement.plain()
            );
            assert!(!finding.cells.is_empty(), "{}", finding.statement.plain());
        }
    }

    #[test]
    fn an_empty_curve_has_no_findings() {
        assert_eq!(of_curve(&[]), []);
        assert_eq!(of_curve(&[made(Pattern::Pingpong, 0, 1, &[])]), []);
    }

    #[test]
    fn a_recorded_netpipe_curve_has_plausible_findings() {
        // NPtcp 3.7.2 over loopback on a small virtual machine: bytes, and seconds of half a round trip.
        let text = include_str!("../../testdata/netpipe372_loopback.txt");
        let row = |line: &str| {
            let mut fields = line.split_whitespace();
            let block: u64 = fields.next()?.parse().ok()?;
            let seconds: f64 = fields.next()?.parse().ok()?;
            Some((block, 2e9 * seconds))
        };
        let outcomes: Vec<Outcome> = text
            .lines()
            .filter_map(row)
            .enumerate()
            .map(|(cell, (block, ns))| {
                let spread = [0.98, 1.0, 1.02, 0.99, 1.01, 1.0].map(|factor| ns * factor);
                made(Pattern::Pingpong, cell as u32, block, &spread)
            })
            .collect();
        assert_eq!(outcomes.len(), 124);
        let findings = of_curve(&outcomes);
        let find = |kind| findings.iter().find(|finding| finding.kind == kind).unwrap();
        // NetPIPE's own figure for one byte is 9.96 us; the line through the small sizes is near it.
        let latency = find(FindingKind::Latency).estimate.as_ref().unwrap().value / 2.0;
        assert!((latency / 9_960.0 - 1.0).abs() < 0.05, "{}", find(FindingKind::Latency).statement.plain());
        // The rates from 1 to 2 MiB are level.
        assert!((1 << 20..=2 << 20).contains(&find(FindingKind::Peak).block.unwrap()));
        let saturation = find(FindingKind::Saturation).block.unwrap();
        assert!((200_000..800_000).contains(&saturation), "{saturation}");
        let half = find(FindingKind::HalfPeak).block.unwrap();
        assert!((90_000..200_000).contains(&half), "{half}");
    }
}
