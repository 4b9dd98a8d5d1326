//! The peak rate, and the block that reaches half of it.

use model::{Estimate, Finding, FindingKind};
use text::{Text, say};

use super::wording;
use crate::curve::Group;
use crate::curve_fit::Fit;
use crate::stats::interval::t_critical;

/// The highest rate of the fitted curve: on the fresh passes that checked it, or without these as fitted. Where some sizes pass faster
/// than the path carries them, it is what streams carry.
pub(super) fn peak(fit: &Fit) -> Option<Finding> {
    if let (Some(carried), Some(moment), Some(last)) = (&fit.carried, fit.moment, fit.groups.last()) {
        let statement = say!(
            "The path carries {} (streams after their start); blocks up to {} pass faster for a moment, up to {}, as through a token \
             bucket, and do not show what the path carries.",
            wording::estimate(carried),
            wording::size(moment.largest),
            wording::value(moment.fastest_bps, "bit/s"),
        );
        return Some(finding(statement, carried.clone(), last));
    }
    let at = fit.top()?;
    let top = &fit.groups[at];
    let fresh = fit.check.as_ref().and_then(|(_, check)| check.fresh.clone());
    let (estimate, how) = match fresh {
        Some(fresh) => (fresh, "; on fresh passes"),
        None => (fitted(top, fit.rates[at])?, ""),
    };
    let what = if top.points[0].round_trip { "NetPIPE's rate: block size over half the RTT" } else { "goodput" };
    let statement = say!(
        "The peak rate is {} with blocks of {} ({what}{how}).",
        wording::estimate(&estimate),
        wording::size(top.block)
    );
    Some(finding(statement, estimate, top))
}

fn finding(statement: Text, estimate: Estimate, group: &Group) -> Finding {
    Finding {
        kind: FindingKind::Peak,
        statement,
        estimate: Some(estimate),
        block: Some(group.block),
        cells: group.cells(),
        comparison: None,
    }
}

/// The fitted rate of a group with the interval of its members' median.
fn fitted(group: &Group, ln_rate: f64) -> Option<Estimate> {
    let member = &group.points.first()?.rate;
    let reach = group.se.zip(t_critical(member.confidence, group.df)).map(|(se, critical)| se * critical);
    Some(Estimate {
        value: ln_rate.exp(),
        low: reach.map(|reach| (ln_rate - reach).exp()),
        high: reach.map(|reach| (ln_rate + reach).exp()),
        ..member.clone()
    })
}

/// The block at which half of the peak rate is reached (n1/2 of Hockney and Jesshope, 1981, "Parallel Computers"), interpolated on
/// the log-log curve between the last group below half and the first one above. `None` for fewer than two groups.
pub(super) fn half_peak(fit: &Fit) -> Option<Finding> {
    let (groups, rates) = (&fit.groups, &fit.rates);
    let highest = rates.iter().copied().max_by(f64::total_cmp)?;
    let stated = peak(fit)?.estimate.map_or(highest, |peak| peak.value.ln());
    // Half of a peak above the curve would be behind the saturation point.
    let (top, of) = if stated > highest { (highest, "the curve's highest rate") } else { (stated, "the peak rate") };
    let half = top - 2f64.ln();
    let reached = rates.iter().position(|rate| *rate >= half)?;
    let above = &groups[reached];
    if groups.len() < 2 {
        return None;
    }
    if reached == 0 {
        let statement = say!("The smallest block, {}, already reaches half of {of}.", wording::size(above.block));
        let block = Some(above.block);
        return Some(Finding {
            kind: FindingKind::HalfPeak,
            statement,
            estimate: None,
            block,
            cells: above.cells(),
            comparison: None,
        });
    }
    let below = &groups[reached - 1];
    let part = (half - rates[reached - 1]) / (rates[reached] - rates[reached - 1]);
    let block = (below.ln_block() + part * (above.ln_block() - below.ln_block())).exp().round();
    let statement = say!(
        "Half of {of}, {}, is reached with blocks of about {} (between {} and {}).",
        wording::value(half.exp(), "bit/s"),
        wording::rounded_size(block),
        wording::size(below.block),
        wording::size(above.block)
    );
    Some(Finding {
        kind: FindingKind::HalfPeak,
        statement,
        estimate: Some(Estimate {
            statistic: "block that reaches half of the peak rate (n1/2)".to_owned(),
            unit: "B".to_owned(),
            value: block,
            low: Some(below.block as f64),
            high: Some(above.block as f64),
            confidence: above.points[0].rate.confidence,
            method: "log-log interpolation; low and high are the neighbouring measured blocks".to_owned(),
            n: (below.points.len() + above.points.len()) as u32,
        }),
        block: Some(block as u64),
        cells: [below.cells(), above.cells()].concat(),
        comparison: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::points;
    use crate::curve::testing::*;
    use model::Pattern;

    fn fit(outcomes: &[model::Outcome]) -> Fit {
        Fit::new(&points(outcomes), outcomes)
    }

    #[test]
    fn half_the_peak_is_at_hockneys_block() {
        // Rate B / (t0 + B / r): half of r at B = t0 r = 10,000; the peak at 8 MiB is 0.12 % below r.
        for noise in [0.0, 0.01, 0.03] {
            let outcomes = curve(&netpipe(), hockney(10_000.0, 1.0), noise, 3);
            let found = half_peak(&fit(&outcomes)).unwrap();
            let block = found.block.unwrap() as f64;
            assert!((block / 10_000.0 - 1.0).abs() < 0.02 + 3.0 * noise, "{block}");
            let estimate = found.estimate.unwrap();
            assert!(estimate.low.unwrap() <= block && block <= estimate.high.unwrap());
        }
    }

    #[test]
    fn a_flat_curve_reaches_half_at_once() {
        let outcomes: Vec<_> = (0..4).map(|i| made(Pattern::Stream, i, 1000 << i, &[1e9; 6])).collect();
        let found = half_peak(&fit(&outcomes)).unwrap();
        assert_eq!((found.block, found.estimate), (Some(1000), None));
    }

    #[test]
    fn an_uncertain_rate_is_the_peak_only_if_its_interval_begins_higher() {
        let point = |rate: f64, width: f64, id: u32| {
            let values = [1.0 - width, 1.0, 1.0 + width].map(|factor| rate * factor);
            made(Pattern::Stream, id, 1024 << id, &[values, values].concat())
        };
        // A noisy host: large blocks have wide intervals, and many times the rate of the small ones.
        let noisy = [point(1e9, 0.01, 0), point(20e9, 0.4, 1), point(19e9, 0.6, 2)];
        assert_eq!(peak(&fit(&noisy)).unwrap().block, Some(2048));
        // The lucky one among level rates.
        let level = [point(10e9, 0.01, 0), point(11e9, 0.4, 1)];
        assert_eq!(peak(&fit(&level)).unwrap().block, Some(1024));
    }

    #[test]
    fn the_peak_names_its_block() {
        let outcomes: Vec<_> =
            [1e9, 3e9, 2e9].iter().zip(0..).map(|(bps, i)| made(Pattern::Stream, i, 1024 << i, &[*bps; 6])).collect();
        let found = peak(&fit(&outcomes)).unwrap();
        assert_eq!((found.block, found.cells), (Some(2048), vec![1]));
        assert!(
            found.statement.plain().contains("3.00 Gbit/s") && found.statement.plain().contains("2 KiB"),
            "{}",
            found.statement.plain()
        );
    }
}
