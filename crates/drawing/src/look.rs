//! What a series looks like, and where it is among its neighbours.

use model::{Figure, Look, Scale};

/// The look of series `index`: its own, otherwise the colour of its position.
#[must_use]
pub fn look(figure: &Figure, index: usize) -> Look {
    figure.series[index].look.unwrap_or(Look { colour: index, dash: 0 })
}

/// Patterns of dashes after the solid one.
const DASHES: usize = 3;

/// The class of a series with this look.
pub(crate) fn class(look: Look) -> String {
    let colour = look.colour % super::theme::SERIES;
    match look.dash % (DASHES + 1) {
        0 => format!("s{colour}"),
        dash => format!("s{colour} d{dash}"),
    }
}

/// How far a series is moved sideways among categories, in the axis' unit, so that the intervals of several series are beside each
/// other. A series that is alone in its categories stays in their middle.
#[must_use]
pub fn shift(figure: &Figure, index: usize) -> f64 {
    if figure.x.scale != Scale::Names || figure.series[index].stacked {
        return 0.0;
    }
    let panel = figure.series[index].panel;
    let places = |series: usize| figure.series[series].points.iter().map(|point| point.x.round());
    let meets = |other: usize| other == index || places(other).any(|place| places(index).any(|own| own == place));
    let beside: Vec<usize> =
        (0..figure.series.len()).filter(|other| figure.series[*other].panel == panel && meets(*other)).collect();
    let at = beside.iter().position(|other| *other == index).unwrap_or(0);
    let step = (0.7 / beside.len() as f64).min(0.16);
    (at as f64 - (beside.len() as f64 - 1.0) / 2.0) * step
}

/// Whether the horizontal axis has the name of each series, so that no legend repeats them.
pub(crate) fn is_named_by_axis(figure: &Figure) -> bool {
    let named = |series: &model::Series| {
        let at = series.points.first().map(|point| point.x.round());
        figure.x.ticks.iter().any(|(tick, name)| Some(*tick) == at && *name == series.name)
    };
    figure.x.scale == Scale::Names && figure.series.iter().all(named)
}

/// Whether points are joined by a line: there is nothing between categories.
#[must_use]
pub fn joined(figure: &Figure) -> bool {
    figure.x.scale != Scale::Names
}
