//! What the factors of a plan change: their effects with intervals, each as a dot.

use model::{Axis, Figure, Finding, FindingKind, Look, Point, Run, Scale, Series};

use super::super::Drawn;
use super::subtitle;
use crate::labels::percent;

/// Effects within this range are changes in percent. Beside a larger one all are ratios, on a logarithmic axis.
const PERCENT: std::ops::RangeInclusive<f64> = 0.5..=2.0;
/// The most effects: those that change most.
const MOST: usize = 24;
/// The colours of effects that are significant and of those that are not.
const CLEAR: Look = Look { colour: 0, dash: 0 };
const UNCLEAR: Look = Look { colour: 6, dash: 0 };

/// The effects of a plan's factors that have an interval.
pub(crate) struct Effects<'a> {
    /// Each as a finding, and as a ratio with its low and its high end.
    pub(crate) all: Vec<(&'a Finding, [f64; 3])>,
}

impl<'a> Effects<'a> {
    /// What the id of their figure begins with.
    pub(crate) const FIGURE: &'static str = "plan-effects";

    pub(crate) fn of(run: &'a Run) -> Self {
        let of = |finding: &'a Finding| {
            let ratio = finding.estimate.as_ref().filter(|estimate| estimate.unit == "ratio")?;
            Some((finding, [ratio.value, ratio.low?, ratio.high?]))
        };
        let effects = run.findings.iter().filter(|finding| finding.kind == FindingKind::Effect);
        Self { all: effects.filter_map(of).collect() }
    }

    /// Whether they are shown as ratios and not in percent.
    pub(crate) fn are_wide(&self) -> bool {
        self.all.iter().any(|(_, [value, ..])| !PERCENT.contains(value))
    }
}

/// The figure of all effects; `None` if there are none.
pub(super) fn figure(run: &Run) -> Option<Drawn> {
    let Effects { mut all } = Effects::of(run);
    let count = all.len();
    if count > MOST {
        let mut sizes: Vec<f64> = all.iter().map(|(_, ratio)| ratio[0].ln().abs()).collect();
        sizes.sort_by(|a, b| b.total_cmp(a));
        all.retain(|(_, ratio)| ratio[0].ln().abs() >= sizes[MOST - 1]);
        all.truncate(MOST);
    }
    let wide = Effects { all: all.clone() }.are_wide();
    let shown = |ratio: f64| if wide { ratio } else { 100.0 * (ratio - 1.0) };
    let names: Vec<String> = all.iter().map(|(finding, _)| name(finding)).collect();
    let places = || (0..).map(f64::from).zip(&all);
    let of = |name: &str, look: Look, wanted: bool| {
        // An interval without the ratio 1 is that of a significant effect.
        let own = places().filter(|(_, (_, [_, low, high]))| (*low > 1.0 || *high < 1.0) == wanted);
        let point = |(x, (_, ratio)): (f64, &(&Finding, [f64; 3]))| {
            let [y, low, high] = ratio.map(shown);
            Point { x, y, low: Some(low), high: Some(high) }
        };
        Series { name: name.to_owned(), points: own.map(point).collect(), look: Some(look), ..Series::default() }
    };
    let mut series = vec![of("significant", CLEAR, true), of("not significant", UNCLEAR, false)];
    series.retain(|series| !series.points.is_empty());
    let estimate = all.first()?.0.estimate.as_ref()?;
    let some = if count > all.len() { format!("; the {} largest of {count}", all.len()) } else { String::new() };
    let note =
        format!("changes with their {} % intervals, corrected for their number{some}", percent(estimate.confidence));
    let mut y = if wide { Axis::new("ratio", "", Scale::Log) } else { Axis::new("change", "%", Scale::Linear) };
    (y.low, y.high) = range(&all, shown);
    let figure = Figure {
        id: Effects::FIGURE.to_owned(),
        title: "Effects of the factors".to_owned(),
        subtitle: subtitle(run, &note),
        x: Axis::names("", &names),
        y,
        series,
        ..Figure::default()
    };
    Some(Drawn { figure, owners: Vec::new() })
}

/// An interval this many times as long as the largest effect is cut, because it would hide all effects.
const WIDEST: f64 = 3.0;
/// The least range of the axis to each side, as a logarithm of a ratio, and the room beyond what it shows.
const LEAST: f64 = 0.01;
const ROOM: f64 = 1.08;

/// The ends of the axis: no effect, all effects, and their intervals but for those that are far wider.
fn range(all: &[(&Finding, [f64; 3])], shown: impl Fn(f64) -> f64) -> (Option<f64>, Option<f64>) {
    let logs = |end: usize| all.iter().map(move |(_, ratio)| ratio[end].ln()).filter(|log| log.is_finite());
    let most = WIDEST * logs(0).map(f64::abs).fold(LEAST, f64::max);
    let low = logs(1).map(|log| log.max(-most)).fold(-LEAST, f64::min);
    let high = logs(2).map(|log| log.min(most)).fold(LEAST, f64::max);
    let end = |log: f64| Some(shown((ROOM * log).exp()));
    (end(low), end(high))
}

/// The step of a finding such as `flows 1 → 4: goodput +2.7 % ± 0.4 %`.
fn name(finding: &Finding) -> String {
    let brief = finding.statement.brief().plain();
    brief.split_once(": ").map_or(brief.as_str(), |(step, _)| step).to_owned()
}

#[cfg(test)]
mod tests {
    use model::Estimate;

    use super::*;
    use crate::sample;

    fn run(ratios: &[[f64; 3]]) -> Run {
        let mut run = sample::planned();
        let finding = |(at, [value, low, high]): (usize, &[f64; 3])| {
            let estimate =
                Estimate { unit: "ratio".into(), value: *value, low: Some(*low), high: Some(*high), ..sample::blank() };
            sample::finding(FindingKind::Effect, &format!("flows {at} → 4: goodput +3 %."), Some(estimate), None)
        };
        run.findings = ratios.iter().enumerate().map(finding).collect();
        run
    }

    #[test]
    fn effects_are_changes_with_intervals_and_named_by_their_step() {
        let figure = figure(&run(&[[1.03, 1.02, 1.04], [1.0, 0.99, 1.01], [0.9, 0.8, 0.97]])).unwrap().figure;
        let names: Vec<&str> = figure.x.ticks.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["flows 0 → 4", "flows 1 → 4", "flows 2 → 4"]);
        let of =
            |at: usize| figure.series[at].points.iter().map(|point| (point.x, point.y.round())).collect::<Vec<_>>();
        assert_eq!((figure.series[0].name.as_str(), of(0)), ("significant", vec![(0.0, 3.0), (2.0, -10.0)]));
        assert_eq!((figure.series[1].name.as_str(), of(1)), ("not significant", vec![(1.0, 0.0)]));
        assert_eq!((figure.y.unit.as_str(), figure.y.scale), ("%", Scale::Linear));
        assert!(figure.y.low < Some(-20.0) && figure.y.high > Some(4.0), "{:?}", figure.y);
    }

    #[test]
    fn an_interval_of_any_width_does_not_hide_the_others() {
        let figure = figure(&run(&[[0.91, 0.2, 4.1], [1.01, 1.0, 1.02]])).unwrap().figure;
        assert_eq!(figure.y.scale, Scale::Linear);
        assert!(figure.y.low > Some(-30.0) && figure.y.high < Some(40.0), "{:?}", figure.y);
    }

    #[test]
    fn beside_a_large_effect_all_are_ratios() {
        let figure = figure(&run(&[[3.8, 3.3, 4.4], [1.01, 0.99, 1.03]])).unwrap().figure;
        assert_eq!((figure.series[0].points[0].y, figure.y.scale), (3.8, Scale::Log));
    }

    #[test]
    fn of_many_the_largest_are_shown_and_a_plan_without_effects_has_no_figure() {
        let many: Vec<[f64; 3]> =
            (0..40).map(|at| 1.0 + 0.01 * f64::from(at)).map(|r| [r, r - 0.001, r + 0.001]).collect();
        let figure = figure(&run(&many)).unwrap().figure;
        assert_eq!((figure.x.ticks.len(), figure.x.ticks[0].1.as_str()), (24, "flows 16 → 4"));
        assert!(figure.subtitle.ends_with("the 24 largest of 40"), "{}", figure.subtitle);
        assert!(super::figure(&sample::planned()).is_none());
    }
}
