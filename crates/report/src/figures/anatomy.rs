//! The parts of round trips, one on the other, by block size.

use analysis::anatomy::name;
use model::stamps::Part;
use model::{Axis, Figure, Outcome, Point, Run, Scale, Series, Strategy};

use super::Drawn;
use super::line::Line;
use super::subtitle::subtitle;
use crate::labels;
use crate::sections::sides;

/// A figure for each set of outcomes that differ in the block only. Empty if no round trips were divided.
pub(crate) fn figures(runs: &[Run]) -> Vec<Drawn> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (run, of) in runs.iter().enumerate() {
        let divided = |outcome: &&Outcome| outcome.summary.anatomy.as_ref().is_some_and(|one| one.parts.is_some());
        for outcome in sides::shown(of).into_iter().filter(divided) {
            let fits = |line: &&mut Line<'_>| {
                line.run == run && line.outcomes.iter().all(|other| differ_in_block(other, outcome))
            };
            match lines.iter_mut().find(fits) {
                Some(line) => line.outcomes.push(outcome),
                None => lines.push(Line {
                    run,
                    name: words(of, outcome),
                    outcomes: vec![outcome],
                    reference: false,
                    levels: Vec::new(),
                }),
            }
        }
    }
    let several = lines.len() > 1;
    lines.iter().zip(1..).map(|(line, number)| figure(runs, line, several.then_some(number))).collect()
}

fn differ_in_block(a: &Outcome, b: &Outcome) -> bool {
    let (a, b) = (&a.spec, &b.spec);
    a.block != b.block && a.transport == b.transport && (a.strategy == Strategy::Spin) == (b.strategy == Strategy::Spin)
}

/// What tells the outcomes of a figure from those of another one.
fn words(run: &Run, outcome: &Outcome) -> String {
    let waits = if outcome.spec.strategy == Strategy::Spin { "spinning" } else { "blocking" };
    sides::name(run, outcome).unwrap_or_else(|| format!("{}, {waits}", outcome.spec.transport))
}

fn figure(runs: &[Run], line: &Line<'_>, number: Option<u32>) -> Drawn {
    let strategy = line.outcomes.first().map_or(Strategy::Auto, |outcome| outcome.spec.strategy);
    let mut series: Vec<Series> = Part::ALL
        .into_iter()
        .map(|part| Series {
            name: name(part, strategy).to_owned(),
            points: line.outcomes.iter().filter_map(|outcome| segment(outcome, part)).collect(),
            stacked: true,
            ..Series::default()
        })
        .collect();
    let mut x = Axis::new("block size", "B", Scale::Log);
    // One size needs no scale.
    if let [only] = line.outcomes.as_slice() {
        x = Axis::names(&x.label, &[labels::block(only.spec.block)]);
        series.iter_mut().flat_map(|series| &mut series.points).for_each(|point| point.x = 0.0);
    }
    let owners = vec![line.run; series.len()];
    let figure = Figure {
        id: number.filter(|number| *number > 1).map_or("anatomy".to_owned(), |number| format!("anatomy-{number}")),
        title: match number {
            None => "Anatomy of a round trip".to_owned(),
            Some(_) => format!("Anatomy of a round trip: {}", line.name),
        },
        subtitle: subtitle(runs, &[line], "means of the stamped exchanges of all trials", None),
        x,
        y: Axis::new("time", "ns", Scale::Linear),
        series,
        ..Figure::default()
    };
    Drawn { figure, owners }
}

/// The segment of a part, on those before it.
fn segment(outcome: &Outcome, part: Part) -> Option<Point> {
    let parts = outcome.summary.anatomy.as_ref()?.parts.as_ref()?;
    let low: f64 = Part::ALL.into_iter().take_while(|other| *other != part).map(|other| parts.get(other).mean_ns).sum();
    let y = parts.get(part).mean_ns;
    Some(Point { x: outcome.spec.block as f64, y, low: Some(low), high: Some(low + y) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::AnatomyTally;

    fn divided(blocks: &[(u64, Strategy)]) -> Run {
        let mut run = sample::rr();
        let first = run.outcomes[0].clone();
        run.outcomes = blocks
            .iter()
            .zip(0..)
            .map(|((block, strategy), cell)| {
                let mut outcome = Outcome { cell, ..first.clone() };
                (outcome.spec.block, outcome.spec.strategy) = (*block, *strategy);
                let mut tally = AnatomyTally { stamped: 1, ..AnatomyTally::default() };
                tally.round_trip.record(21_000);
                Part::ALL.into_iter().zip(1..).for_each(|(part, n)| tally.parts.get_mut(part).record(n * 1_000));
                outcome.summary.anatomy = Some(tally.figures(None).into());
                outcome
            })
            .collect();
        run
    }

    #[test]
    fn segments_are_on_each_other_up_to_the_round_trip() {
        let figures = figures(&[divided(&[(1, Strategy::Auto), (1_024, Strategy::Auto)])]);
        let figure = &figures[0].figure;
        assert_eq!((figures.len(), figure.id.as_str(), figure.series.len()), (1, "anatomy", 6));
        let ends: Vec<_> = figure.series.iter().map(|series| (series.points[1].low, series.points[1].high)).collect();
        assert_eq!((ends[0], ends[5]), ((Some(0.0), Some(1_000.0)), (Some(15_000.0), Some(21_000.0))));
        assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ends:?}");
        assert!(figure.series.iter().all(|series| series.stacked && series.points.len() == 2));
    }

    #[test]
    fn outcomes_that_differ_in_more_than_the_block_have_figures_of_their_own() {
        let (auto, spin) = (Strategy::Auto, Strategy::Spin);
        let ids = |run: Run| figures(&[run]).into_iter().map(|drawn| drawn.figure.id).collect::<Vec<_>>();
        assert_eq!(ids(divided(&[(1, auto), (1, spin), (64, auto), (64, spin)])), ["anatomy", "anatomy-2"]);
        assert_eq!(ids(sample::rr()), [""; 0]);
    }
}
