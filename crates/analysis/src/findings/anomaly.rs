//! Sizes at which a curve drops or jumps by more than its intervals explain.
//!
//! On the log-log graph of time against block a healthy curve only bends upward: its slope rises from 0 (start-up time only) to 1
//! (time per byte only). A group above the straight line between its neighbours is slower than any healthy curve, and one below
//! the line by more than the bend of Hockney's line is faster. Whether it fits one of its sides distinguishes a step from a dip.
//! It is reported if the distance is more than 5 % and significant, corrected for all tests of the curve (Bonferroni: one false
//! report in a hundred curves).

use model::{Finding, FindingKind};
use text::{Text, say};

use super::wording;
use crate::curve::{CurvePoint, Group};
use crate::stats::t_quantile;

/// Smallest relative distance that is reported, as a difference of natural logarithms.
const MIN_DISTANCE: f64 = 0.05;
/// Probability of any false report on a curve.
const FALSE_REPORTS: f64 = 0.01;
/// Neighbours farther apart than this factor in block size do not predict what lies between them.
const FAR: f64 = 4.5;
/// A dip or spike is off from both sides by at least this fraction of its distance from the line.
const BOTH_SIDES: f64 = 0.6;
/// Largest second derivative of Hockney's line on the log-log graph.
const BEND: f64 = 0.25;

/// How a suspect differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Slower than both sides.
    Dip,
    /// Faster than both sides.
    Spike,
    /// Slower from here on.
    StepDown,
    /// Faster from here on.
    StepUp,
}

/// A suspect group: its index, how it differs, and by how much (in natural logarithms).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Suspect {
    at: usize,
    shape: Shape,
    by: f64,
}

/// All anomalies of a curve, ascending by block: of groups against their neighbours, then of members against their group.
/// Groups without an interval are never reported.
pub(super) fn anomalies(groups: &[Group]) -> Vec<Finding> {
    let tests = groups.iter().map(|group| 3 + group.points.len()).sum::<usize>().max(1) as f64;
    let mut found: Vec<Finding> = suspects(groups, tests).iter().map(|suspect| statement(groups, *suspect)).collect();
    found.extend(groups.iter().filter_map(|group| odd_member(group, tests)));
    found.sort_by_key(|finding| finding.block);
    found
}

/// The suspects, without the weaker of two neighbours.
fn suspects(groups: &[Group], tests: f64) -> Vec<Suspect> {
    let mut all: Vec<Suspect> =
        (0..groups.len()).flat_map(|at| [off_the_line(groups, at, tests), step(groups, at, tests)]).flatten().collect();
    // A dip makes its neighbours look like steps, but a step does not make them look like dips.
    let both_sides = |suspect: &Suspect| matches!(suspect.shape, Shape::Dip | Shape::Spike);
    all.sort_by(|a, b| both_sides(b).cmp(&both_sides(a)).then(b.by.total_cmp(&a.by)));
    let mut kept: Vec<Suspect> = Vec::new();
    for suspect in all {
        if kept.iter().all(|other| other.at.abs_diff(suspect.at) > 1) {
            kept.push(suspect);
        }
    }
    kept
}

/// Whether a distance is significant, given the groups that it was computed from and their weights.
fn beyond(distance: f64, parts: &[(&Group, f64)], tests: f64) -> bool {
    let variance: Option<f64> = parts.iter().map(|(group, weight)| group.se.map(|se| (weight * se).powi(2))).sum();
    let df = parts.iter().map(|(group, _)| group.df).fold(f64::INFINITY, f64::min);
    let critical = t_quantile(1.0 - FALSE_REPORTS / (2.0 * tests), df);
    let Some((variance, critical)) = variance.zip(critical) else { return false };
    distance > MIN_DISTANCE && distance > critical * variance.sqrt()
}

/// A group off the line between its two neighbours.
fn off_the_line(groups: &[Group], at: usize, tests: f64) -> Option<Suspect> {
    let (before, here, after) = (groups.get(at.checked_sub(1)?)?, &groups[at], groups.get(at + 1)?);
    if after.block as f64 > FAR * before.block as f64 {
        return None;
    }
    let (left, right) = (here.ln_block() - before.ln_block(), after.ln_block() - here.ln_block());
    let weight = right / (left + right);
    let off = here.ln_time - (weight * before.ln_time + (1.0 - weight) * after.ln_time);
    let parts = [(before, weight), (here, 1.0), (after, 1.0 - weight)];
    // A healthy curve may lie below the line by its bend, but never above it.
    let sag = BEND / 2.0 * left * right;
    if !beyond(off, &parts, tests) && !beyond(-off - sag, &parts, tests) {
        return None;
    }
    let from_left = here.ln_time - extended(groups.get(at.wrapping_sub(2)), before, here.ln_block(), 0.0);
    let from_right = here.ln_time - extended(groups.get(at + 2), after, here.ln_block(), 1.0);
    let is_off = |side: f64| side * off.signum() >= BOTH_SIDES * off.abs();
    match (is_off(from_left), is_off(from_right)) {
        (true, true) => {
            let shape = if off > 0.0 { Shape::Dip } else { Shape::Spike };
            Some(Suspect { at, shape, by: off.abs() })
        }
        // If it fits the right side, the step is before it; if it fits the left side, the step is after it.
        (true, false) if off > 0.0 => Some(Suspect { at, shape: Shape::StepDown, by: off / weight }),
        (false, true) if off > 0.0 => Some(Suspect { at: at + 1, shape: Shape::StepUp, by: off / (1.0 - weight) }),
        _ => None,
    }
}

/// The line through two groups, extended to `ln_block`; with one group only, the line through it with `slope` (0 or 1, the limits
/// of a healthy curve).
fn extended(outer: Option<&Group>, inner: &Group, ln_block: f64, slope: f64) -> f64 {
    let slope = match outer {
        Some(outer) => ((inner.ln_time - outer.ln_time) / (inner.ln_block() - outer.ln_block())).clamp(0.0, 1.0),
        None => slope,
    };
    inner.ln_time + slope * (ln_block - inner.ln_block())
}

/// A group with a lower rate, or a shorter time, than the smaller block before it.
fn step(groups: &[Group], at: usize, tests: f64) -> Option<Suspect> {
    let (before, here) = (groups.get(at.checked_sub(1)?)?, &groups[at]);
    let parts = [(before, 1.0), (here, 1.0)];
    let slower = before.ln_rate() - here.ln_rate();
    let sooner = before.ln_time - here.ln_time;
    if beyond(slower, &parts, tests) {
        return Some(Suspect { at, shape: Shape::StepDown, by: slower });
    }
    beyond(sooner, &parts, tests).then_some(Suspect { at, shape: Shape::StepUp, by: sooner })
}

fn statement(groups: &[Group], suspect: Suspect) -> Finding {
    let here = &groups[suspect.at];
    let block = wording::size(here.block);
    let rate = |group: &Group| wording::value(group.ln_rate().exp(), "bit/s");
    let by = wording::percent(suspect.by);
    // A step always has a group before it.
    let before = &groups[suspect.at.saturating_sub(1)];
    let change = say!("from {} at {} to {}", rate(before), wording::size(before.block), rate(here));
    let statement = match suspect.shape {
        Shape::Dip => {
            say!("Blocks of {block} take {by} longer than their neighbours suggest: the rate dips to {}.", rate(here))
        }
        Shape::Spike => say!("Blocks of {block} are {by} faster than their neighbours suggest, at {}.", rate(here)),
        // A loss relative to the rate before it.
        Shape::StepDown => {
            let loss = wording::percent_of(-suspect.by.abs(), true);
            say!("At {block} the curve steps down by {loss}: the rate falls {change}.")
        }
        Shape::StepUp => say!("At {block} the curve steps up by {by}: the rate rises {change}."),
    };
    Finding {
        kind: FindingKind::Anomaly,
        statement,
        estimate: None,
        block: Some(here.block),
        cells: here.cells(),
        comparison: None,
    }
}

/// The member of a triple that differs most from the mean of the others, if significant.
fn odd_member(group: &Group, tests: f64) -> Option<Finding> {
    if group.points.len() < 3 {
        return None;
    }
    let difference = |member: &CurvePoint| {
        let others: Vec<&CurvePoint> = group.points.iter().filter(|other| other.block != member.block).collect();
        let count = others.len() as f64;
        // Per byte, so that the different sizes in a triple of small blocks do not count as a difference.
        let per_byte = |point: &CurvePoint| point.ln_time - point.ln_block();
        let time = member.ln_time - others.iter().map(|other| other.ln_time).sum::<f64>() / count;
        let cost = per_byte(member) - others.iter().map(|other| per_byte(other)).sum::<f64>() / count;
        let least = if time * cost <= 0.0 { 0.0 } else { time.signum() * time.abs().min(cost.abs()) };
        let squares: Option<f64> = others.iter().map(|other| other.se.map(|se| (se / count).powi(2))).sum();
        (least, squares.zip(member.se).map(|(squares, se)| (squares + se * se).sqrt()))
    };
    let (member, (off, se)) = group
        .points
        .iter()
        .map(|member| (member, difference(member)))
        .max_by(|(_, a), (_, b)| a.0.abs().total_cmp(&b.0.abs()))?;
    let critical = t_quantile(1.0 - FALSE_REPORTS / (2.0 * tests), group.df)?;
    if off.abs() <= MIN_DISTANCE || off.abs() <= critical * se? {
        return None;
    }
    let others: Vec<Text> = group
        .points
        .iter()
        .filter(|other| other.block != member.block)
        .map(|other| wording::size(other.block))
        .collect();
    let statement = say!(
        "Blocks of {} are {} {} than those of {}.",
        wording::size(member.block),
        wording::percent(off),
        if off > 0.0 { "slower" } else { "faster" },
        Text::join(others, " and ")
    );
    let (block, cells) = (Some(member.block), group.cells());
    Some(Finding { kind: FindingKind::Anomaly, statement, estimate: None, block, cells, comparison: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::*;
    use crate::curve::{groups, points};
    use model::Pattern;

    fn of(sizes: &[u64], time: impl Fn(u64) -> f64, noise: f64, seed: u64) -> Vec<Finding> {
        anomalies(&groups(&points(&curve(sizes, time, noise, seed))))
    }

    fn blocks(found: &[Finding]) -> Vec<u64> {
        found.iter().filter_map(|finding| finding.block).collect()
    }

    fn plain(block: u64) -> f64 {
        hockney(10_000.0, 1.0)(block)
    }

    #[test]
    fn noise_alone_is_almost_never_reported() {
        let powers: Vec<u64> = (0..24).map(|i| 1 << i).collect();
        let mut reports = 0;
        for seed in 0..120 {
            let noise = [0.003, 0.01, 0.03, 0.08][seed as usize % 4];
            reports += of(&netpipe(), plain, noise, seed).len();
            reports += of(&powers, hockney(300.0, 4.0), noise, 1000 + seed).len();
        }
        assert!(reports <= 2, "{reports} false reports in 240 curves");
    }

    #[test]
    fn a_dip_is_found_wherever_it_lies() {
        for centre in [64u64, 1024, 8192, 49_152, 1 << 20] {
            let dipped = |block: u64| plain(block) * if block.abs_diff(centre) <= 3 { 1.3 } else { 1.0 };
            let found = of(&netpipe(), dipped, 0.01, centre);
            assert_eq!(blocks(&found), [centre], "{found:?}");
            assert!(
                found[0].statement.plain().contains("longer than their neighbours suggest"),
                "{}",
                found[0].statement.plain()
            );
        }
    }

    #[test]
    fn a_step_is_distinguished_from_a_dip() {
        let slower = |block: u64| plain(block) * if block >= 60_000 { 1.4 } else { 1.0 };
        let found = of(&netpipe(), slower, 0.01, 5);
        assert_eq!(blocks(&found), [65_536], "{found:?}");
        assert!(found[0].statement.plain().contains("steps down"), "{}", found[0].statement.plain());
        let faster = |block: u64| plain(block) * if block >= 6_100 { 0.7 } else { 1.0 };
        let found = of(&netpipe(), faster, 0.01, 5);
        assert_eq!(blocks(&found), [6_144], "{found:?}");
        assert!(found[0].statement.plain().contains("steps up"), "{}", found[0].statement.plain());
    }

    #[test]
    fn a_fast_block_is_found() {
        let fast = |block: u64| plain(block) * if block.abs_diff(4096) <= 3 { 0.75 } else { 1.0 };
        let found = of(&netpipe(), fast, 0.01, 5);
        assert_eq!(blocks(&found), [4096], "{found:?}");
        assert!(found[0].statement.plain().contains("faster than their neighbours"), "{}", found[0].statement.plain());
    }

    #[test]
    fn one_odd_member_of_a_triple_is_reported() {
        let odd = |block: u64| plain(block) * if block == 8195 { 1.2 } else { 1.0 };
        let found = of(&netpipe(), odd, 0.01, 6);
        assert_eq!(blocks(&found), [8195], "{found:?}");
        let statement = &found[0].statement.plain();
        assert!(statement.contains("slower than those of 8189 B and 8 KiB"), "{statement}");
    }

    #[test]
    fn differences_within_the_intervals_are_not_reported() {
        let dipped = |block: u64| plain(block) * if block.abs_diff(8192) <= 3 { 1.10 } else { 1.0 };
        // Twenty times the noise of the tests above, with no more trials than the rule allows.
        assert!(of(&netpipe(), dipped, 0.4, 7).is_empty());
    }

    #[test]
    fn points_without_intervals_are_never_reported() {
        let outcomes: Vec<_> =
            (0..8).map(|i| made(Pattern::Pingpong, i, 1 << i, &[if i == 4 { 9e4 } else { 2e4 }; 2])).collect();
        assert_eq!(anomalies(&groups(&points(&outcomes))), []);
    }
}
