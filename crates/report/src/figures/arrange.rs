//! Few lines in a plot, and one colour for each level of a factor in all figures of a run.

use model::{Factor, Figure, Look, Panel, Run};

use super::Drawn;
use super::line::Line;

/// The most lines of a plot: more would repeat colours.
pub(super) const MOST: usize = 6;
/// The most plots of a figure.
const MOST_PANELS: usize = 24;

/// A factor beside those of the plan: the end whose host was observed.
pub(super) const END: &str = "end";

/// Level by factor, in the order of the plan.
pub(super) type OwnLevels = Vec<(String, String)>;

/// The colours of a plan's levels.
pub(super) struct Palette {
    factors: Vec<(String, Vec<String>)>,
}

impl Palette {
    pub(super) fn of(run: &Run) -> Self {
        let Some(plan) = &run.header.plan else { return Self { factors: Vec::new() } };
        let hosts = [(Factor::FROM, &plan.from), (Factor::TO, &plan.to)];
        let hosts = hosts.map(|(name, levels)| (name.to_owned(), levels.clone()));
        let factors = plan.factors.iter().map(|factor| (factor.name.clone(), factor.levels.clone()));
        let ends = (END.to_owned(), ["near", "far"].map(str::to_owned).to_vec());
        Self { factors: factors.chain(hosts).chain([ends]).collect() }
    }

    /// The number of a level's colour. The levels of a factor have different ones; the next factor goes on with the next ones.
    fn colour(&self, name: &str, level: &str) -> usize {
        let mut first = 0;
        for (factor, levels) in &self.factors {
            if factor == name {
                return first + levels.iter().position(|other| other == level).unwrap_or(levels.len());
            }
            first += levels.len();
        }
        first
    }
}

/// Arranges a figure whose series are those of `lines`: of one plan by their levels, otherwise one line in a panel if there are many.
pub(super) fn arranged(drawn: Drawn, runs: &[Run], lines: &[&Line<'_>]) -> Drawn {
    let first = lines.iter().find(|line| !line.reference);
    match first {
        Some(Line { run, .. }) if runs[*run].header.plan.is_some() && lines.iter().all(|line| line.run == *run) => {
            let levels: Vec<OwnLevels> = lines.iter().map(|line| line.levels.clone()).collect();
            by_levels(drawn, &levels, &Palette::of(&runs[*run]))
        }
        _ => one_each(drawn),
    }
}

/// The look of each line: of one plan the colour of its level of the factor with the most levels that differ, and dashes for those of the
/// other factors; otherwise a colour of its own.
pub(super) fn line_looks(runs: &[Run], lines: &[Line<'_>]) -> Vec<Look> {
    let own = || (0..lines.len()).map(|colour| Look { colour, dash: 0 }).collect();
    let Some(first) = lines.first().filter(|first| lines.iter().all(|line| line.run == first.run)) else {
        return own();
    };
    let levels: Vec<&OwnLevels> = lines.iter().map(|line| &line.levels).collect();
    let names = varied(&levels);
    let Some(coloured) = most_levels(&levels, &names) else { return own() };
    let palette = Palette::of(&runs[first.run]);
    let mut others: Vec<Vec<usize>> = Vec::new();
    levels
        .into_iter()
        .map(|own| {
            let rest = own.iter().filter(|(name, _)| name != coloured && names.contains(&name.as_str()));
            let rest: Vec<usize> = rest.map(|(name, level)| palette.colour(name, level)).collect();
            let dash = others.iter().position(|other| *other == rest).unwrap_or_else(|| {
                others.push(rest);
                others.len() - 1
            });
            let level = own.iter().find(|(name, _)| name == coloured).map_or("", |(_, level)| level);
            Look { colour: palette.colour(coloured, level), dash }
        })
        .collect()
}

/// How many levels of a factor there are.
fn distinct(levels: &[&OwnLevels], name: &str) -> usize {
    let mut all: Vec<&str> = Vec::new();
    for (_, level) in levels.iter().copied().flatten().filter(|(other, _)| other == name) {
        if !all.contains(&level.as_str()) {
            all.push(level);
        }
    }
    all.len()
}

/// The factors with several levels, in their order.
fn varied<'a>(levels: &[&'a OwnLevels]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in levels.iter().copied().flatten() {
        if !names.contains(&name.as_str()) && distinct(levels, name) > 1 {
            names.push(name);
        }
    }
    names
}

/// Returns the factor with the most levels that one plot can show.
fn most_levels<'a>(levels: &[&OwnLevels], names: &[&'a str]) -> Option<&'a str> {
    let usable = names.iter().copied().filter(|name| distinct(levels, name) <= MOST);
    usable.rev().max_by_key(|name| distinct(levels, name))
}

/// Arranges the series of a plan by their levels: up to six in one plot, otherwise one factor is the lines, and the others the panels.
pub(super) fn by_levels(mut drawn: Drawn, levels: &[OwnLevels], palette: &Palette) -> Drawn {
    let figure = &mut drawn.figure;
    let all: Vec<&OwnLevels> = levels.iter().collect();
    let names = varied(&all);
    // It makes the fewest panels.
    let lines = most_levels(&all, &names);
    let words = |own: &OwnLevels, wanted: &dyn Fn(&str) -> bool| {
        let all = own.iter().filter(|(name, _)| names.contains(&name.as_str()) && wanted(name));
        let word = |(name, level): &(String, String)| {
            if name == END { format!("{level} {name}") } else { format!("{name} {level}") }
        };
        all.map(word).collect::<Vec<_>>().join(", ")
    };
    let Some(lines) = lines else {
        for (series, own) in figure.series.iter_mut().zip(levels).filter(|(series, _)| !series.reference) {
            let name = words(own, &|_| true);
            series.name = if name.is_empty() { std::mem::take(&mut series.name) } else { name };
        }
        return one_each(drawn);
    };
    let many = figure.series.len() > MOST;
    // The combinations of the other levels, in the order of the plan.
    let place = |own: &OwnLevels| -> Vec<usize> {
        let rest = own.iter().filter(|(name, _)| name != lines && names.contains(&name.as_str()));
        rest.map(|(name, level)| palette.colour(name, level)).collect()
    };
    let measured = figure.series.iter().zip(levels).filter(|(series, _)| !series.reference);
    let mut others: Vec<(Vec<usize>, String)> =
        measured.map(|(_, own)| (place(own), words(own, &|name| name != lines))).collect();
    others.sort();
    others.dedup();
    let others: Vec<String> = others.into_iter().map(|(_, words)| words).collect();
    for (series, own) in figure.series.iter_mut().zip(levels).filter(|(series, _)| !series.reference) {
        let rest = words(own, &|name| name != lines);
        let at = others.iter().position(|other| *other == rest).unwrap_or(0);
        let level = own.iter().find(|(name, _)| name == lines).map_or("", |(_, level)| level);
        let colour = palette.colour(lines, level);
        series.look = Some(Look { colour, dash: if many { 0 } else { at } });
        series.panel = many.then_some(at);
        series.name = words(own, &|name| !many || name == lines);
    }
    if many {
        // Factors that the plan does not combine may make as many panels as lines.
        if others.len() * 2 > figure.series.len() && others.len() > MOST {
            for (series, own) in figure.series.iter_mut().zip(levels).filter(|(series, _)| !series.reference) {
                series.name = words(own, &|_| true);
            }
            return one_each(drawn);
        }
        figure.panels = others.into_iter().map(Panel::from).collect();
        return limited(drawn);
    }
    drawn
}

/// Each series of a figure with too many lines has a panel of its own, before those of the others without colour.
pub(super) fn one_each(mut drawn: Drawn) -> Drawn {
    let figure = &mut drawn.figure;
    let measured = figure.series.iter().filter(|series| !series.reference).count();
    if measured <= MOST || figure.series.iter().any(|series| series.stacked) {
        return drawn;
    }
    figure.context = true;
    figure.panels.clear();
    for series in figure.series.iter_mut().filter(|series| !series.reference) {
        series.panel = Some(figure.panels.len());
        series.look = Some(Look::default());
        figure.panels.push(series.name.clone().into());
    }
    limited(drawn)
}

/// Leaves out what is beyond the most panels, and says so.
fn limited(mut drawn: Drawn) -> Drawn {
    let Drawn { figure, owners } = &mut drawn;
    let count = figure.panels.len();
    if count > MOST_PANELS {
        let kept: Vec<bool> =
            figure.series.iter().map(|series| series.panel.is_none_or(|panel| panel < MOST_PANELS)).collect();
        let mut keep = kept.iter();
        figure.series.retain(|_| keep.next() == Some(&true));
        let mut keep = kept.iter();
        owners.retain(|_| keep.next() == Some(&true));
        figure.panels.truncate(MOST_PANELS);
        figure.subtitle += &format!("; the first {MOST_PANELS} of {count}");
    }
    drawn
}

/// Gives a figure a panel for each line of `groups` (the index of a line for each series), if there are several lines of several
/// quantities.
pub(super) fn panel_for_each(figure: &mut Figure, groups: &[usize], names: &[String]) {
    for (series, group) in figure.series.iter_mut().zip(groups) {
        series.panel = Some(*group);
    }
    figure.panels = names.iter().cloned().map(Panel::from).collect();
}

#[cfg(test)]
mod tests {
    use model::{Point, Series};

    use super::*;
    use crate::sample;

    fn drawn(names: &[&str]) -> Drawn {
        let point = Point { x: 1.0, y: 1.0, ..Point::default() };
        let series = |name: &&str| Series { name: (*name).to_owned(), points: vec![point], ..Series::default() };
        let series: Vec<Series> = names.iter().map(series).collect();
        Drawn { owners: vec![0; series.len()], figure: Figure { series, ..Figure::default() } }
    }

    fn palette(factors: &[(&str, usize)]) -> Palette {
        let levels = |count: usize| (0..count).map(|n| format!("l{n}")).collect();
        Palette { factors: factors.iter().map(|(name, count)| ((*name).to_owned(), levels(*count))).collect() }
    }

    fn titles(figure: &Figure) -> Vec<&str> {
        figure.panels.iter().map(|panel| panel.title.as_str()).collect()
    }

    /// Every combination of the levels of two factors.
    fn crossed(a: usize, b: usize) -> Vec<OwnLevels> {
        let own = |n: usize| vec![("a".to_owned(), format!("l{}", n / b)), ("b".to_owned(), format!("l{}", n % b))];
        (0..a * b).map(own).collect()
    }

    #[test]
    fn a_level_has_one_colour_wherever_it_is() {
        let palette = palette(&[("a", 2), ("b", 4)]);
        let few = by_levels(drawn(&["x"; 2]), &crossed(2, 1), &palette).figure;
        let many = by_levels(drawn(&["x"; 8]), &crossed(2, 4), &palette).figure;
        let colours = |figure: &Figure| -> Vec<(String, usize)> {
            figure.series.iter().map(|series| (series.name.clone(), series.look.unwrap().colour)).collect()
        };
        assert_eq!(colours(&few), [("a l0".to_owned(), 0), ("a l1".to_owned(), 1)]);
        assert!(colours(&many).contains(&("b l3".to_owned(), 5)), "{:?}", colours(&many));
        assert_eq!(titles(&many), ["a l0", "a l1"], "the factor with more levels is the lines");
        assert!(many.series.iter().enumerate().all(|(at, series)| series.panel == Some(at / 4)));
    }

    #[test]
    fn few_lines_of_two_factors_differ_in_dashes() {
        let figure = by_levels(drawn(&["x"; 4]), &crossed(2, 2), &palette(&[("a", 2), ("b", 2)])).figure;
        let looks: Vec<(usize, usize)> =
            figure.series.iter().map(|series| series.look.unwrap()).map(|look| (look.colour, look.dash)).collect();
        assert_eq!(looks, [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert!(figure.panels.is_empty() && figure.series[3].name == "a l1, b l1");
    }

    #[test]
    fn a_lines_own_reference_stays_in_its_panel_and_a_common_one_is_in_all() {
        let mut figure = drawn(&["a", "a's limit", "b", "b's limit"]).figure;
        figure.series[1].reference = true;
        figure.series[3].reference = true;
        assert!(figure.series[3].is_in(0) && figure.series[3].is_in(1));
        panel_for_each(&mut figure, &[0, 0, 1, 1], &["a", "b"].map(str::to_owned));
        let shown = [0, 1].map(|panel| figure.series.iter().map(|one| one.is_in(panel)).collect::<Vec<_>>());
        assert_eq!(shown, [[true, true, false, false], [false, false, true, true]].map(|row| row.to_vec()));
    }

    #[test]
    fn panels_are_in_the_order_of_the_plan() {
        let mut levels = crossed(2, 4);
        levels.rotate_left(5);
        let figure = by_levels(drawn(&["x"; 8]), &levels, &palette(&[("a", 2), ("b", 4)])).figure;
        assert_eq!(titles(&figure), ["a l0", "a l1"]);
        assert_eq!(figure.series[0].panel, Some(1));
    }

    #[test]
    fn lines_without_a_factor_of_few_levels_are_one_in_a_panel() {
        let figure = by_levels(drawn(&["x"; 9]), &crossed(9, 1), &palette(&[("a", 9)])).figure;
        assert!(figure.context && figure.panels.len() == 9 && figure.panels[3].title == "a l3", "{:?}", figure.panels);
        assert!(!one_each(drawn(&["x"; 6])).figure.context);
    }

    #[test]
    fn a_figure_has_at_most_24_panels_and_says_what_is_left_out() {
        let names: Vec<String> = (0..30).map(|n| format!("run {n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let Drawn { figure, owners } = one_each(drawn(&names));
        assert_eq!((figure.panels.len(), figure.series.len(), owners.len()), (24, 24, 24));
        assert!(figure.subtitle.ends_with("the first 24 of 30"), "{}", figure.subtitle);
    }

    #[test]
    fn lines_of_a_plan_have_the_colour_of_their_level_and_dashes_for_other_factors() {
        let mut run = sample::planned();
        let crossed = [("128KiB", "64KiB"), ("64KiB", "64KiB"), ("128KiB", "1MiB"), ("64KiB", "1MiB")];
        let line = |(block, sndbuf): &(&str, &str)| {
            let levels = [("block", block), ("sndbuf", sndbuf)].map(|(name, level)| (name.into(), (*level).into()));
            Line { run: 0, name: String::new(), outcomes: Vec::new(), reference: false, levels: levels.to_vec() }
        };
        let looks = |runs: &[Run], lines: &[Line<'_>]| -> Vec<(usize, usize)> {
            line_looks(runs, lines).iter().map(|look| (look.colour, look.dash)).collect()
        };
        let lines: Vec<Line<'_>> = crossed.iter().map(line).collect();
        let palette = Palette::of(&run);
        let [small, large] = ["64KiB", "128KiB"].map(|level| palette.colour("block", level));
        assert_eq!(looks(std::slice::from_ref(&run), &lines), [(large, 0), (small, 0), (large, 1), (small, 1)]);
        run.header.plan = None;
        let alone: Vec<Line<'_>> = lines.into_iter().map(|line| Line { levels: Vec::new(), ..line }).collect();
        assert_eq!(looks(&[run], &alone), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    }

    #[test]
    fn the_palette_goes_on_from_factor_to_factor() {
        let palette = Palette::of(&sample::planned());
        assert_eq!([("block", "128KiB"), ("sndbuf", "64KiB")].map(|(name, level)| palette.colour(name, level)), [1, 2]);
    }
}
