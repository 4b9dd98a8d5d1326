//! The passes of a watch as curves over time: each pair that changed in a panel of its own, with its levels.

use model::{Axis, Figure, HistorySeries, Look, MeshHistory, Point, Scale, Series};

use crate::labels;
use crate::screens::fleet_history::{is_notable, is_pair, name, title};

/// The most panels; pairs that changed or have an alert come first.
const MOST_PANELS: usize = 24;
/// The colours of a pair's passes and of its levels.
const PASSES: Look = Look { colour: 0, dash: 0 };
const LEVELS: Look = Look { colour: 1, dash: 0 };

/// A figure for the goodput and one for the RTT, as far as pairs have them. Values are those of single passes, without intervals; a level
/// is the median between two changes.
#[must_use]
pub fn history_figures(history: &MeshHistory) -> Vec<Figure> {
    let names: [(&str, &str); 2] = [("goodput", "Goodput over time"), ("rtt", "RTT over time")];
    names.iter().filter_map(|(figure, words)| of(history, figure, words)).collect()
}

fn of(history: &MeshHistory, figure: &str, words: &str) -> Option<Figure> {
    let has_values = |series: &&HistorySeries| series.figure == figure && series.values.iter().any(Option::is_some);
    let all: Vec<&HistorySeries> = history.series.iter().filter(|series| is_pair(series)).filter(has_values).collect();
    let (notable, even): (Vec<&HistorySeries>, Vec<&HistorySeries>) =
        all.iter().copied().partition(|series| is_notable(history, series));
    let shown: Vec<&HistorySeries> = notable.into_iter().chain(even).take(MOST_PANELS).collect();
    let first = *shown.first()?;
    let mut of_which = format!("{} passes of {}", history.passes.len(), labels::plain(&history.name));
    if shown.len() < all.len() {
        of_which += &format!("; {} of {} pairs, those that changed first", shown.len(), all.len());
    }
    let series = shown.iter().enumerate().flat_map(|(panel, series)| {
        let line = |name: &str, points, look, reference| Series {
            name: name.to_owned(),
            points,
            look: Some(look),
            reference,
            panel: Some(panel),
            ..Series::default()
        };
        [
            line("each pass", passes(history, series), PASSES, false),
            line("level", levels(history, series), LEVELS, true),
        ]
    });
    Some(Figure {
        id: format!("history-{figure}"),
        title: words.to_owned(),
        subtitle: format!("{of_which}; a level is the median between two significant changes"),
        x: Axis::new("start of the pass", "ns", Scale::Date),
        y: Axis::new(title(first), &first.unit, Scale::Linear),
        series: series.filter(|line| !line.points.is_empty()).collect(),
        panels: shown.iter().map(|series| labels::plain(&name(series)).into()).collect(),
        ..Figure::default()
    })
}

fn point(started_unix_ns: u64, y: f64) -> Point {
    Point { x: started_unix_ns as f64, y, low: None, high: None }
}

fn passes(history: &MeshHistory, series: &HistorySeries) -> Vec<Point> {
    let values = history.passes.iter().zip(&series.values);
    values.filter_map(|(pass, value)| Some(point(pass.started_unix_ns, (*value)?))).collect()
}

/// A line that steps at each change; empty without one.
fn levels(history: &MeshHistory, series: &HistorySeries) -> Vec<Point> {
    let at = |pass: usize| history.passes.get(pass).map_or(0, |pass| pass.started_unix_ns);
    let mut points = Vec::new();
    for (index, change) in series.changes.iter().enumerate() {
        let until = series.changes.get(index + 1).map_or(history.passes.len(), |next| next.pass as usize);
        if index == 0 {
            points.push(point(at(0), change.before));
            points.push(point(change.at_unix_ns, change.before));
        }
        points.push(point(change.at_unix_ns, change.after));
        points.push(point(at(until.min(history.passes.len().saturating_sub(1))), change.after));
    }
    points
}

#[cfg(test)]
mod tests {
    use model::{ChangePoint, HistoryPass};

    use super::*;

    fn series(to: &str, values: &[f64], changes: Vec<ChangePoint>) -> HistorySeries {
        HistorySeries {
            figure: "goodput".into(),
            unit: "bit/s".into(),
            from: Some("h1".into()),
            to: Some(to.into()),
            values: values.iter().copied().map(Some).collect(),
            changes,
            ..HistorySeries::default()
        }
    }

    #[test]
    fn pairs_that_changed_come_first_and_their_level_steps() {
        let pass = |at: u64| HistoryPass { run: format!("r{at}"), started_unix_ns: 1_000 * at };
        let change = ChangePoint { pass: 2, at_unix_ns: 2_000, before: 9.0, after: 3.0, ..ChangePoint::default() };
        let history = MeshHistory {
            name: "watch".into(),
            passes: (0..4).map(pass).collect(),
            series: vec![series("h2", &[5.0; 4], vec![]), series("h3", &[9.0, 9.0, 3.0, 3.0], vec![change])],
            alerts: vec![],
        };
        let figures = history_figures(&history);
        assert_eq!(figures.len(), 1, "no pair has an RTT");
        let titles: Vec<&str> = figures[0].panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["h1 → h3", "h1 → h2"]);
        let level: Vec<(f64, f64)> = figures[0].series[1].points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(level, [(0.0, 9.0), (2_000.0, 9.0), (2_000.0, 3.0), (3_000.0, 3.0)]);
        assert_eq!(figures[0].series.len(), 3, "a pair without a change has no level: {:?}", figures[0].series);
    }
}
