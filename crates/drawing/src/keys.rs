//! The entries of a legend: one for each look and name.

use model::Figure;

use crate::look::{joined, look};
use crate::svg::{Svg, px};
use crate::{line, marker};

/// The series of each entry. Those that look the same and have the same name, in several panels, share one. The title of a panel that shows
/// one series is its name.
#[must_use]
pub(crate) fn groups(figure: &Figure) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, series) in figure.series.iter().enumerate() {
        let same = |group: &&mut Vec<usize>| {
            group.first().is_some_and(|first| {
                figure.series[*first].name == series.name && look(figure, *first) == look(figure, index)
            })
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    // As they lie on each other.
    if !figure.series.is_empty() && figure.series.iter().all(|series| series.stacked) {
        groups.reverse();
    }
    groups
}

/// A piece of what a series looks like, between two places at a height.
pub(crate) fn sample(svg: &mut Svg<'_>, figure: &Figure, index: usize, (left, right): (f64, f64), y: f64) {
    let series = &figure.series[index];
    if series.stacked {
        let (x, top, width) = (px(left), px(y - 6.0), px(right - left));
        svg.leaf("rect", &[("class", "segment"), ("x", &x), ("y", &top), ("width", &width), ("height", "12")]);
    } else if joined(figure) {
        let class = if series.reference { "ceiling" } else { "line" };
        line(svg, class, (left, y), (right, y));
    }
    if !series.reference && !series.stacked && !series.steps {
        let look = look(figure, index);
        let (class, path) = marker::marker(look.colour + 2 * look.dash, (left + right) / 2.0, y, 3.8);
        svg.leaf("path", &[("class", class), ("d", &path)]);
    }
}
