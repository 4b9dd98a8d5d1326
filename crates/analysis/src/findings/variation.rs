//! The sources of a stream's variation: between and within connections, and the losses or the reordering behind it.

use model::{Direction, EndTally, Finding, FindingKind, Outcome, Ratio, TcpSample, Trial};
use text::{Count, Rate, Text, say};

use crate::outcome::Headline;
use crate::stats::{VarianceSplit, batch_means, mean, quantile, t_quantile, variance_split};

/// Batches into which a trial's series is divided to split its variance.
const BATCHES: usize = 10;
/// Smallest relative size of an effect that is reported.
pub(super) const MIN_REPORTED: f64 = 0.01;

/// Fewest TCP_INFO readings of a trial in which its tenths can be told apart.
const LEAST_SAMPLES: usize = 3 * BATCHES;
/// Shares of the variance from which it goes partly or mostly with the congestion window.
const PART: f64 = 0.25;
const MOST: f64 = 0.5;
/// Error of the claim that it does. Tenths of one trial depend on each other, so it is smaller than usual.
const ERROR: f64 = 0.001;

/// The sources of a stream's variation: the shares between and within connections.
pub(super) fn of_outcome(outcome: &Outcome) -> Option<Finding> {
    let (split, centre) = connection_split(outcome)?;
    let relative = (split.within + split.between).sqrt() / centre;
    if relative < MIN_REPORTED {
        return None;
    }
    let spread = say!(
        "Means over a tenth of a trial vary by {} (standard deviation): {:.0} % of the variance is between connections, the rest \
         within them.",
        Ratio(relative),
        100.0 * split.share_between()
    );
    let statement = Text::join(std::iter::once(spread).chain(cause(outcome)), " ");
    Some(Finding {
        kind: FindingKind::Note,
        statement,
        estimate: None,
        block: None,
        cells: vec![outcome.cell],
        comparison: None,
    })
}

/// The variance of the trials' goodput series, each divided into ten batches, split between and within connections, and the mean
/// rate in bit/s. `None` unless two trials have ten intervals. The intervals are those of the receiving end.
fn connection_split(outcome: &Outcome) -> Option<(VarianceSplit, f64)> {
    if Headline::of(&outcome.spec) != Headline::Goodput {
        return None;
    }
    let groups: Vec<Vec<f64>> = outcome
        .trials
        .iter()
        .map(|trial| if trial.far.bytes_received > 0 { &trial.far } else { &trial.near })
        .map(|end| {
            let from_ns = end.steady_from_ns.unwrap_or(outcome.spec.warmup_ns);
            let complete = end.intervals.iter().filter(|interval| {
                let length = interval.end_ns.saturating_sub(interval.start_ns);
                // The last interval of a trial is often short.
                length * 2 > outcome.spec.interval_ns && interval.start_ns >= from_ns
            });
            complete
                .map(|interval| interval.bytes_received as f64 * 8e9 / (interval.end_ns - interval.start_ns) as f64)
                .collect()
        })
        .filter(|series: &Vec<f64>| series.len() >= BATCHES)
        .map(|series| batch_means(&series, series.len() / BATCHES))
        .collect();
    let split = variance_split(&groups)?;
    let centre = mean(&groups.concat()).filter(|centre| *centre > 0.0)?;
    Some((split, centre))
}

/// What a sender's TCP did in a tenth of a trial.
struct Tenth {
    /// Payload that was acknowledged, bit/s.
    rate_bps: f64,
    /// Mean of the congestion window, segments.
    cwnd: f64,
    /// Segments that TCP retransmitted.
    retransmits: f64,
    /// Of those, the ones that had arrived.
    spurious: f64,
}

/// Losses or reordering, if TCP retransmitted in every trial and the rate follows the congestion window. A loss makes the window small
/// for long, so the tenth in which it happens says less.
fn cause(outcome: &Outcome) -> Option<Text> {
    let end: fn(&Trial) -> &EndTally = match outcome.spec.direction {
        Direction::Send => |trial| &trial.near,
        Direction::Reverse => |trial| &trial.far,
        Direction::Both => return None,
    };
    let trials: Vec<Vec<Tenth>> = outcome.trials.iter().filter_map(|trial| tenths(end(trial))).collect();
    let sum = |of: fn(&Tenth) -> f64| trials.iter().flatten().map(of).sum::<f64>();
    let (retransmits, spurious) = (sum(|tenth| tenth.retransmits), sum(|tenth| tenth.spurious));
    if trials.is_empty() || retransmits < trials.len() as f64 {
        return None;
    }
    let [rates, windows]: [Vec<f64>; 2] = [|tenth: &Tenth| tenth.rate_bps, |tenth: &Tenth| tenth.cwnd]
        .map(|of| trials.iter().flatten().map(of).collect());
    let correlation = correlation(&windows, &rates)?;
    let (explained, df) = (correlation.powi(2), rates.len() as f64 - 2.0);
    if correlation < 0.0
        || explained < PART
        || correlation * (df / (1.0 - explained)).sqrt() < t_quantile(1.0 - ERROR, df)?
    {
        return None;
    }
    let middle = quantile(&windows, 0.5)?;
    let half = |is_small: bool| {
        let own = rates.iter().zip(&windows).filter(|(_, window)| (**window < middle) == is_small);
        mean(&own.map(|(rate, _)| *rate).collect::<Vec<f64>>())
    };
    let is_sack = |option: &String| option == "sack";
    let mut flows = outcome.trials.iter().flat_map(|trial| &end(trial).flows);
    let all = Count::rounded(retransmits);
    let (name, evidence) = if spurious >= MOST * retransmits {
        let spurious = Count::rounded(spurious);
        (
            "reordering",
            say!("{spurious} of {all} retransmitted segments had arrived (D-SACK), so they had only been overtaken"),
        )
    } else if flows.any(|flow| flow.socket.negotiated.iter().any(is_sack)) {
        ("losses", say!("TCP retransmitted {all} segments, which SACK reported missing"))
    } else {
        ("losses", say!("TCP retransmitted {all} segments, without SACK"))
    };
    let share = if explained >= MOST { "Most" } else { "A part" };
    Some(say!(
        "{share} of it goes with the congestion window, which {name} reduced: the half of the tenths with the smaller windows carries {}, \
         the other half {}; {evidence}.",
        Rate(half(true)?),
        Rate(half(false)?)
    ))
}

/// Pearson's correlation; `None` without variance.
fn correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    let (x_mean, y_mean) = (mean(x)?, mean(y)?);
    let product = |one: &[f64], of: f64, other: &[f64], by: f64| {
        one.iter().zip(other).map(|(a, b)| (a - of) * (b - by)).sum::<f64>()
    };
    let scale = (product(x, x_mean, x, x_mean) * product(y, y_mean, y, y_mean)).sqrt();
    (scale > 0.0).then(|| product(x, x_mean, y, y_mean) / scale)
}

/// The tenths of a trial after its start-up, summed over the sending flows; `None` unless the kernel reports all of it often enough.
fn tenths(end: &EndTally) -> Option<Vec<Tenth>> {
    let flows: Vec<&[TcpSample]> =
        end.flows.iter().filter(|flow| flow.bytes_sent > 0).map(|flow| flow.tcp.as_slice()).collect();
    let begin = end.steady_from_ns.unwrap_or(0).max(flows.iter().filter_map(|flow| Some(flow.first()?.at_ns)).max()?);
    let last = flows.iter().filter_map(|flow| Some(flow.last()?.at_ns)).min()?;
    let length = last.checked_sub(begin)? / BATCHES as u64;
    if length == 0 || flows.iter().any(|flow| flow.iter().filter(|one| one.at_ns >= begin).count() < LEAST_SAMPLES) {
        return None;
    }
    let within = |number: u64| {
        let mut tenth = Tenth { rate_bps: 0.0, cwnd: 0.0, retransmits: 0.0, spurious: 0.0 };
        for flow in &flows {
            let at = |ns: u64| flow.iter().rfind(|one| one.at_ns <= ns);
            let (from, to) = (begin + number * length, begin + (number + 1) * length);
            let (first, last) = (at(from)?, at(to)?);
            let windows = flow.iter().filter(|one| (from..=to).contains(&one.at_ns)).map(|one| f64::from(one.cwnd));
            tenth.cwnd += mean(&windows.collect::<Vec<f64>>())?;
            let ns = last.at_ns.checked_sub(first.at_ns).filter(|ns| *ns > 0)?;
            tenth.rate_bps += last.bytes_acked?.saturating_sub(first.bytes_acked?) as f64 * 8e9 / ns as f64;
            tenth.retransmits += last.retransmits.saturating_sub(first.retransmits) as f64;
            tenth.spurious += last.spurious.unwrap_or(0).saturating_sub(first.spurious.unwrap_or(0)) as f64;
        }
        Some(tenth)
    };
    (0..BATCHES as u64).map(within).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::made;
    use crate::findings::of_single;
    use model::{FlowTally, Interval, Pattern, SplitMix64};

    #[test]
    fn variation_between_connections_is_found() {
        let mut random = SplitMix64::new(2);
        let mut outcome = made(Pattern::Stream, 0, 1024, &[1e9; 12]);
        for trial in &mut outcome.trials {
            let connection = 1e9 * (1.0 + 0.1 * random.normal());
            let reading = |i: u64| Interval {
                start_ns: i * 100_000_000,
                end_ns: (i + 1) * 100_000_000,
                bytes_received: ((connection + 1e7 * random.normal()) / 80.0) as u64,
                ..Interval::default()
            };
            trial.far =
                EndTally { bytes_received: 1, intervals: (0..30).map(reading).collect(), ..EndTally::default() }.into();
        }
        let (split, centre) = connection_split(&outcome).unwrap();
        assert!(split.share_between() > 0.95 && (centre / 1e9 - 1.0).abs() < 0.2);
        let findings = of_single(&[outcome]);
        assert!(!findings[1].statement.plain().contains("goes with"), "there is no TCP_INFO");
        assert!(findings[1].statement.plain().contains("between connections"), "{}", findings[1].statement.plain());
    }

    /// What is said of 4 trials whose rate falls to `slow` of 1 Gbit/s in the tenths with 50 retransmissions and half of the window,
    /// `spurious` of the 50 needless.
    fn said(slow: f64, spurious: u64) -> String {
        let mut random = SplitMix64::new(7);
        let mut outcome = made(Pattern::Stream, 0, 1024, &[1e9; 4]);
        for trial in &mut outcome.trials {
            let (mut bytes, mut retransmits, mut needless) = (0, 0, 0);
            let mut tcp = vec![TcpSample { bytes_acked: Some(0), spurious: Some(0), ..TcpSample::default() }];
            let mut intervals = Vec::new();
            for number in 1..=40_u64 {
                let lossy = (number - 1) / 4 % 3 == 0;
                let rate = if lossy { slow } else { 1.0 } * (1.0 + 0.05 * random.normal());
                let arrived = (12_500_000.0 * rate) as u64;
                bytes += arrived;
                if lossy && number % 4 == 1 {
                    (retransmits, needless) = (retransmits + 50, needless + spurious);
                }
                let at_ns = number * 100_000_000;
                let sample = TcpSample {
                    at_ns,
                    cwnd: if lossy { 40 } else { 80 },
                    retransmits,
                    bytes_acked: Some(bytes),
                    spurious: Some(needless),
                    ..TcpSample::default()
                };
                tcp.push(sample);
                let start_ns = at_ns - 100_000_000;
                intervals.push(Interval { start_ns, end_ns: at_ns, bytes_received: arrived, ..Interval::default() });
            }
            let mut flow = FlowTally { bytes_sent: bytes, tcp, ..FlowTally::default() };
            flow.socket.negotiated = vec!["sack".into()];
            trial.near = EndTally { flows: vec![flow], ..EndTally::default() }.into();
            trial.far = EndTally { bytes_received: bytes, intervals, ..EndTally::default() }.into();
        }
        of_outcome(&outcome).map_or(String::new(), |finding| finding.statement.plain())
    }

    #[test]
    fn losses_and_reordering_are_named_if_the_rate_varies_with_them() {
        let lost = said(0.5, 0);
        assert!(lost.contains("Most of it goes with the congestion window, which losses reduced: the half"), "{lost}");
        assert!(lost.contains("; TCP retransmitted 800 segments, which SACK reported missing."), "{lost}");
        let overtaken = said(0.5, 45);
        assert!(overtaken.contains("which reordering reduced:"), "{overtaken}");
        assert!(overtaken.contains("720 of 800 retransmitted segments had arrived (D-SACK)"), "{overtaken}");
        let level = said(1.0, 0);
        assert!(level.contains("Means over a tenth") && !level.contains("goes with"), "{level}");
        let faster = said(1.5, 0);
        assert!(faster.contains("Means over a tenth") && !faster.contains("goes with"), "{faster}");
    }
}
