//! Change points of a curve over block sizes: dips, steps, jaggedness.

use model::{Finding, FindingKind, Outcome, Run, RunKind, Spec};
use text::{Text, say};

use crate::curve::{CurvePoint, points};
use crate::findings::wording;
use crate::stats::changepoint::{LinePiece, MeasuredPoint, pieces};

/// Smallest jump that is reported, in natural logarithms: 10 %.
const MIN_JUMP: f64 = 0.095;
/// Lower limit of a point's standard error, and the standard error of one without an interval, in natural logarithms.
const MIN_SE: f64 = 0.01;
const UNKNOWN_SE: f64 = 0.03;
/// Largest ratio of a dip's last block to its first.
const DIP: f64 = 16.0;
/// Fewest jumps of a jagged curve.
const JAGGED: usize = 4;

/// A jump in a curve: the first point after it, and the change of the rate's logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Jump {
    at: usize,
    by: f64,
}

/// Findings from the change points of a curve: dips and humps that are several sizes wide, steps, jaggedness. The logarithm of the
/// rate over that of the block is divided into lines (see [`pieces`]) with slopes from 0 to 1, those of a healthy curve. Where two
/// lines meet the curve bends, where they do not it jumps. Empty for a healthy curve and for fewer than six points.
#[must_use]
pub fn changes(outcomes: &[Outcome]) -> Vec<Finding> {
    let points = points(outcomes);
    let jumps = jumps(&points);
    let mut found = Vec::new();
    if jumps.len() >= JAGGED {
        found.push(jagged(&points, &jumps));
    }
    let mut rest = jumps.as_slice();
    while let Some((first, behind)) = rest.split_first() {
        match behind.first().filter(|second| dips(&points, *first, **second)) {
            Some(second) => {
                found.push(dip(&points, *first, *second));
                rest = &behind[1..];
            }
            None => {
                found.push(step(&points, *first));
                rest = behind;
            }
        }
    }
    found
}

/// Fewest points of a curve that has a shape.
const LEAST_POINTS: usize = 6;

/// The jumps of a curve, ascending; none of a curve with too few points.
fn jumps(points: &[CurvePoint]) -> Vec<Jump> {
    let measured: Vec<MeasuredPoint> = points.iter().map(measured).collect();
    if measured.len() < LEAST_POINTS {
        return Vec::new();
    }
    pieces(&measured, &(0.0..=1.0)).windows(2).filter_map(|pair| jump(&measured, pair)).collect()
}

/// Says which of two sides is jagged, if the other one is smooth. A side has a name and runs, which are curves. Only the sizes that all
/// curves have count, so that a curve does not have more jumps just because it has more sizes.
#[must_use]
pub fn jagged_against_smooth(one: (&str, &[&Run]), other: (&str, &[&Run])) -> Option<Text> {
    if one.1.iter().chain(other.1).any(|run| run.header.kind != RunKind::Curve) {
        return None;
    }
    let is_measured = |outcome: &&Outcome| outcome.spec.transport != Spec::CEILING;
    let curve = |run: &&Run| points(run.outcomes.iter().filter(is_measured));
    let curves = |side: &[&Run]| side.iter().map(curve).collect::<Vec<_>>();
    let (mut first, mut second) = (curves(one.1), curves(other.1));
    let all: Vec<Vec<u64>> =
        first.iter().chain(&second).map(|curve| curve.iter().map(|point| point.block).collect()).collect();
    let is_common = |block: u64| all.iter().all(|blocks| blocks.binary_search(&block).is_ok());
    first.iter_mut().chain(&mut second).for_each(|curve| curve.retain(|point| is_common(point.block)));
    let enough = |side: &[Vec<CurvePoint>]| side.iter().all(|curve| curve.len() >= LEAST_POINTS) && !side.is_empty();
    if !enough(&first) || !enough(&second) {
        return None;
    }
    let counted = |side: &[Vec<CurvePoint>]| side.iter().map(|curve| jumps(curve)).collect::<Vec<_>>();
    let (jumps_of_first, jumps_of_second) = (counted(&first), counted(&second));
    let is_jagged = |side: &[Vec<Jump>]| side.iter().all(|jumps| jumps.len() >= JAGGED);
    let is_smooth = |side: &[Vec<Jump>]| side.iter().all(|jumps| jumps.len() <= JAGGED / 2);
    let (jagged, smooth) = if is_jagged(&jumps_of_first) && is_smooth(&jumps_of_second) {
        ((one.0, &first[0], &jumps_of_first[0]), (other.0, &second[0], &jumps_of_second[0]))
    } else if is_jagged(&jumps_of_second) && is_smooth(&jumps_of_first) {
        ((other.0, &second[0], &jumps_of_second[0]), (one.0, &first[0], &jumps_of_first[0]))
    } else {
        return None;
    };
    let calm = match smooth.2.as_slice() {
        [] => "is smooth".into(),
        jumps => say!("is smooth but for {}", extent(smooth.1, jumps)),
    };
    Some(say!("{} is jagged ({}), {} {calm}.", jagged.0, extent(jagged.1, jagged.2), smooth.0))
}

/// The number of jumps, the largest, and where they are: `5 jumps of up to 33 % between 48 B and 1 MiB`.
fn extent(points: &[CurvePoint], jumps: &[Jump]) -> Text {
    let (first, last) = (jumps.first().map_or(0, |jump| jump.at), jumps.last().map_or(0, |jump| jump.at));
    let largest = wording::percent_of(-jumps.iter().map(|jump| jump.by.abs()).fold(0.0, f64::max), true);
    let (from, to) = (wording::size(points[first].block), wording::size(points[last].block));
    match jumps.len() {
        1 => say!("a jump of {largest} at {from}"),
        count => say!("{count} jumps of up to {largest} between {from} and {to}"),
    }
}

fn measured(point: &CurvePoint) -> MeasuredPoint {
    MeasuredPoint {
        x: point.ln_block(),
        y: point.ln_block() + 8e9f64.ln() - point.ln_time,
        se: point.se.unwrap_or(UNKNOWN_SE).max(MIN_SE),
    }
}

fn jump(points: &[MeasuredPoint], pair: &[LinePiece]) -> Option<Jump> {
    let [before, after] = pair else { return None };
    let between = f64::midpoint(points[after.from - 1].x, points[after.from].x);
    let by = after.at(between) - before.at(between);
    (by.abs() > MIN_JUMP).then_some(Jump { at: after.from, by })
}

/// Whether the second jump reverses at least half of the first one soon after it.
fn dips(points: &[CurvePoint], first: Jump, second: Jump) -> bool {
    let wide = points[second.at].block as f64 / points[first.at].block as f64;
    first.by * second.by < 0.0 && wide <= DIP && (0.5..=2.0).contains(&(second.by / first.by).abs())
}

fn dip(points: &[CurvePoint], first: Jump, second: Jump) -> Finding {
    let (from, to) = (&points[first.at], &points[second.at - 1]);
    let by = wording::percent_of(-f64::midpoint(first.by.abs(), second.by.abs()), first.by < 0.0);
    let side = if first.by < 0.0 { "below" } else { "above" };
    finding(
        points,
        first.at..second.at,
        say!(
            "From {} to {} the rate is {by} {side} that of the sizes on both sides.",
            wording::size(from.block),
            wording::size(to.block)
        ),
    )
}

fn step(points: &[CurvePoint], jump: Jump) -> Finding {
    let direction = if jump.by < 0.0 { "falls" } else { "rises" };
    let by = wording::percent_of(-jump.by.abs(), jump.by < 0.0);
    let (before, here) = (wording::size(points[jump.at - 1].block), wording::size(points[jump.at].block));
    finding(
        points,
        jump.at - 1..jump.at + 1,
        say!("Between {before} and {here} the rate {direction} by {by} and stays there."),
    )
}

fn jagged(points: &[CurvePoint], jumps: &[Jump]) -> Finding {
    let (first, last) = (jumps.first().map_or(0, |jump| jump.at), jumps.last().map_or(0, |jump| jump.at));
    let statement = say!("The curve is jagged: {}.", extent(points, jumps));
    finding(points, first..last + 1, statement)
}

fn finding(points: &[CurvePoint], cells: std::ops::Range<usize>, statement: Text) -> Finding {
    Finding {
        kind: FindingKind::Anomaly,
        statement,
        estimate: None,
        block: points.get(cells.start).map(|point| point.block),
        cells: points[cells].iter().map(|point| point.cell).collect(),
        comparison: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::*;
    use model::RunHeader;

    fn of(time: impl Fn(u64) -> f64, noise: f64, seed: u64) -> Vec<String> {
        changes(&curve(&netpipe(), time, noise, seed)).into_iter().map(|finding| finding.statement.plain()).collect()
    }

    fn plain(block: u64) -> f64 {
        hockney(10_000.0, 1.0)(block)
    }

    #[test]
    fn a_healthy_curve_bends_but_does_not_jump() {
        for seed in 0..40 {
            assert_eq!(of(plain, [0.003, 0.01, 0.03][seed as usize % 3], seed), [""; 0], "{seed}");
        }
    }

    #[test]
    fn a_dip_of_several_sizes_is_one_finding() {
        let found = of(|block| plain(block) * if (6_000..40_000).contains(&block) { 1.6 } else { 1.0 }, 0.01, 3);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("From 6141 B to 32771 B "), "{found:?}");
        assert!(found[0].contains("the rate is 37 % below that of the sizes"), "{found:?}");
    }

    #[test]
    fn a_step_stays() {
        let found = of(|block| plain(block) * if block >= 60_000 { 1.5 } else { 1.0 }, 0.01, 3);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("the rate falls by 33 %") && found[0].ends_with("stays there."), "{found:?}");
    }

    #[test]
    fn many_jumps_are_called_jagged() {
        let teeth = |block: u64| if (block.ilog2() / 2).is_multiple_of(2) { 1.0 } else { 1.5 };
        let found = of(|block| plain(block) * teeth(block), 0.01, 3);
        assert!(found[0].starts_with("The curve is jagged: "), "{found:?}");
    }

    #[test]
    fn a_jagged_curve_is_told_from_a_smooth_one() {
        let teeth = |block: u64| if (block.ilog2() / 2).is_multiple_of(2) { 1.0 } else { 1.5 };
        let run = |time: &dyn Fn(u64) -> f64, seed: u64| {
            let mut run = Run::new(RunHeader { kind: RunKind::Curve, ..RunHeader::default() });
            run.outcomes = curve(&netpipe(), time, 0.01, seed);
            run
        };
        let jagged = run(&|block| plain(block) * teeth(block), 3);
        let smooth = run(&plain, 4);
        let step = run(&|block| plain(block) * if block >= 60_000 { 1.5 } else { 1.0 }, 5);
        let mut short = smooth.clone();
        short.outcomes.truncate(5);
        let said =
            |one: &[&Run], other: &[&Run]| jagged_against_smooth(("A", one), ("B", other)).map(|text| text.plain());
        let text = said(&[&jagged], &[&smooth]).unwrap();
        assert!(text.starts_with("A is jagged (") && text.ends_with("), B is smooth."), "{text}");
        let text = said(&[&step], &[&jagged]).unwrap();
        assert!(
            text.starts_with("B is jagged (") && text.contains("), A is smooth but for a jump of 33 % at "),
            "{text}"
        );
        for (one, other) in [(&jagged, &jagged), (&smooth, &step)] {
            assert_eq!(said(&[one], &[other]), None);
        }
        // One of the side's runs is not jagged.
        assert_eq!(said(&[&jagged, &smooth], &[&smooth]), None);
        // Too few sizes in common.
        assert_eq!(said(&[&jagged], &[&short]), None);
    }
}
