//! The value of each trial as a dot, and their mean with its interval beside them: what an interval rests on, and how runs and the sides
//! of a comparison differ.

use model::{Axis, Figure, Outcome, Point, Run, Scale, Series};

use super::Drawn;
use super::close_range::close_range;
use super::line::{Line, single_lines};
use super::subtitle::subtitle;
use crate::labels::{self, percent};

/// The part of a category's width over which its trials spread, in the order in which they were measured, and the place of the mean.
const SPREAD: [f64; 2] = [-0.34, 0.12];
const MEAN: f64 = 0.28;
/// The most dots of a line; of more trials each n-th is shown, and both extremes.
const MOST: usize = 500;
/// The most lines that are named with their result.
const MOST_RESULTS: usize = 6;

/// The units of headline values, and what they measure.
const UNITS: [(&str, &str); 3] = [("bit/s", "goodput"), ("1/s", "transactions per second"), ("ns", "round-trip time")];

/// A figure for each unit of the headline values, of runs other than curves and plans.
pub(super) fn figures(runs: &[Run]) -> Vec<Drawn> {
    let mut lines = single_lines(runs, |outcome| outcome.estimate.is_some());
    lines.retain(|line| runs[line.run].header.plan.is_none());
    let of = |unit: &str| -> Vec<&Line<'_>> {
        lines.iter().filter(|line| estimate(line).is_some_and(|own| own.unit == unit)).collect()
    };
    let all = UNITS.iter().filter_map(|(unit, label)| figure(runs, &of(unit), unit, label));
    let mut all: Vec<Drawn> = all.collect();
    if let Some(first) = all.first_mut() {
        first.figure.id = "trials".to_owned();
    }
    all
}

fn estimate<'a>(line: &Line<'a>) -> Option<&'a model::Estimate> {
    line.outcomes.first()?.estimate.as_ref()
}

fn figure(runs: &[Run], lines: &[&Line<'_>], unit: &str, label: &str) -> Option<Drawn> {
    let (mut series, mut owners, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let mut trials = 0;
    for (at, line) in lines.iter().enumerate() {
        let (outcome, estimate) = (line.outcomes.first()?, estimate(line)?);
        let mut points = dots(outcome, at as f64);
        trials += points.len();
        // Without an interval a mean would look like one more trial.
        let mean = Point { x: at as f64 + MEAN, y: estimate.value, low: estimate.low, high: estimate.high };
        points.extend(mean.low.map(|_| mean));
        let name = match lines.len() {
            1..=MOST_RESULTS => format!("{}: {}", line.name, labels::estimated(estimate).plain()),
            _ => line.name.clone(),
        };
        series.push(Series { name: name.clone(), points, ..Series::default() });
        owners.push(line.run);
        names.push(name);
    }
    // The value of a single trial is the result.
    if trials < 2 {
        return None;
    }
    let confidence = lines.iter().find_map(|line| estimate(line).filter(|estimate| estimate.low.is_some()));
    let mean =
        |of: &model::Estimate| format!(", and at the right their mean with its {} % interval", percent(of.confidence));
    let note = format!("each trial in the order of measurement{}", confidence.map_or(String::new(), mean));
    let mut figure = Figure {
        id: format!("trials-{}", unit.replace('/', "-per-")),
        title: format!("{} of each trial", text::capitalised(label)),
        subtitle: subtitle(runs, lines, &note, None),
        x: Axis::names("", &names),
        y: Axis::new(label, unit, Scale::Linear),
        series,
        ..Figure::default()
    };
    close_range(&mut figure);
    Some(Drawn { figure, owners })
}

/// The trials with a value, around the place of their line.
fn dots(outcome: &Outcome, place: f64) -> Vec<Point> {
    let values: Vec<f64> = outcome.trials.iter().filter_map(|trial| trial.value).collect();
    let every = values.len().div_ceil(MOST).max(1);
    let [low, high] = [values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max)];
    let step = (SPREAD[1] - SPREAD[0]) / values.len().saturating_sub(1).max(1) as f64;
    // A single trial is in the middle of the others' places.
    let first = if values.len() == 1 { (SPREAD[0] + SPREAD[1]) / 2.0 } else { SPREAD[0] };
    let is_shown = |(at, value): &(usize, &f64)| at % every == 0 || Some(**value) == low || Some(**value) == high;
    let dot = |(at, y): (usize, &f64)| Point { x: place + first + step * at as f64, y: *y, ..Point::default() };
    values.iter().enumerate().filter(is_shown).map(dot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn of(runs: &[Run]) -> Vec<Figure> {
        figures(runs).into_iter().map(|drawn| drawn.figure).collect()
    }

    #[test]
    fn the_sides_of_a_comparison_have_their_trials_and_their_means() {
        let run = sample::pair();
        let figure = &of(std::slice::from_ref(&run))[0];
        let names: Vec<&str> = figure.x.ticks.iter().map(|(_, name)| name.as_str()).collect();
        assert!(names[0].starts_with("A --cc cubic: 9.") && names[1].starts_with("B --cc bbr: 9."), "{names:?}");
        assert!(names[0].contains('±') && figure.series[0].name == names[0], "no legend is needed: {names:?}");
        for (at, (series, outcome)) in figure.series.iter().zip(&run.outcomes).enumerate() {
            let (mean, dots) = series.points.split_last().unwrap();
            let values: Vec<f64> = outcome.trials.iter().filter_map(|trial| trial.value).collect();
            assert_eq!(dots.iter().map(|point| point.y).collect::<Vec<f64>>(), values);
            assert!(dots.windows(2).all(|pair| pair[0].x < pair[1].x && pair[1].low.is_none()));
            assert!(series.points.iter().all(|point| (point.x - at as f64).abs() < 0.5), "within its category");
            let estimate = outcome.estimate.as_ref().unwrap();
            assert_eq!((mean.y, mean.low, mean.high), (estimate.value, estimate.low, estimate.high));
        }
        assert!(figure.y.low > Some(9e9), "{:?}", figure.y);
    }

    #[test]
    fn runs_of_different_units_have_a_figure_each_and_curves_and_plans_none() {
        let ids = |runs: &[Run]| of(runs).into_iter().map(|figure| figure.id).collect::<Vec<_>>();
        assert_eq!(ids(&[sample::stream(), sample::rr()]), ["trials", "trials-1-per-s"]);
        assert_eq!(ids(&[sample::curve(), sample::planned(), sample::empty()]), [""; 0]);
    }

    #[test]
    fn a_single_trial_has_no_figure_and_of_a_thousand_each_third_and_the_extremes_are_shown() {
        let mut run = sample::stream();
        run.outcomes[0].trials.truncate(1);
        assert!(of(std::slice::from_ref(&run)).is_empty());
        assert_eq!(of(&[run.clone(), run.clone()]).len(), 1, "two runs of a trial each are compared");
        let mut unknown = sample::pair();
        unknown.outcomes.iter_mut().flat_map(|outcome| &mut outcome.estimate).for_each(|estimate| estimate.low = None);
        let figure = &of(&[unknown])[0];
        assert!(
            figure
                .series
                .iter()
                .flat_map(|series| &series.points)
                .all(|point| point.x.fract() < 0.2 || point.x.fract() > 0.6)
        );
        let trial = run.outcomes[0].trials[0].clone();
        run.outcomes[0].trials = (0..1_201)
            .map(|at| model::Trial { value: Some(if at == 700 { 1e6 } else { 1e9 + f64::from(at) }), ..trial.clone() })
            .collect();
        let dots = &of(&[run])[0].series[0].points;
        assert!((401..=405).contains(&dots.len()), "{}", dots.len());
        assert!(dots.iter().any(|point| point.y == 1e6));
    }
}
