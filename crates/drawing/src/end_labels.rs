//! Names at the ends of the lines, so that readers need no key.

use model::Figure;

use crate::keys::sample;
use crate::look;
use crate::plot::Plot;
use crate::svg::{Svg, px};
use crate::text_width::{text_width, wrap};
use crate::{line, text};

/// Most names at line ends; more would hide which line each belongs to.
const MOST: usize = 7;
/// Height of a line of text, and of the gap between two names.
const LINE: f64 = 15.5;
const GAP: f64 = 4.0;
/// The ends of lines that have a stroke to their name are in this share of the plot at its right.
const NEAR: f64 = 0.14;
/// Length of the stroke from the end of a line to its name.
const LEAD: f64 = 20.0;

/// A name beside the plot.
pub struct EndLabel {
    /// The series.
    pub series: usize,
    /// Its lines.
    pub lines: Vec<String>,
    /// The middle of its height.
    pub middle: f64,
    /// The end of its line; `None` if that is not near, and the name has a piece of the line instead of a stroke from its end.
    pub from: Option<(f64, f64)>,
}

impl EndLabel {
    fn height(&self) -> f64 {
        LINE * self.lines.len() as f64
    }
}

/// The names beside a plot.
pub struct EndLabels {
    /// The width that they need.
    pub width: f64,
    /// Their left edge.
    pub left: f64,
    /// The names, from the top.
    pub labels: Vec<EndLabel>,
}

/// The names of a figure's lines, if they fit beside its only plot.
pub(crate) fn end_labels(figure: &Figure, width: f64) -> Option<EndLabels> {
    let fits = (2..=MOST).contains(&figure.series.len())
        && figure.panels.len() < 2
        && figure.matrix.is_none()
        && !look::is_named_by_axis(figure)
        && !figure.series.iter().any(|series| series.stacked);
    if !fits {
        return None;
    }
    let room = width * 0.27;
    let labels: Vec<EndLabel> = (0..)
        .zip(&figure.series)
        .map(|(series, of)| EndLabel { series, lines: wrap(&of.name, 13.0 * 1.12, room, 4), middle: 0.0, from: None })
        .collect();
    let cut = |label: &EndLabel| label.lines.join(" ") != figure.series[label.series].name.trim();
    let tall: f64 = labels.iter().map(|label| label.height() + GAP).sum();
    if labels.iter().any(cut) || tall > (width * 0.42).clamp(230.0, 400.0) {
        return None;
    }
    let lines = labels.iter().flat_map(|label| &label.lines);
    let widest = lines.map(|line| text_width(line, 13.0)).fold(0.0, f64::max) * 1.12;
    Some(EndLabels { width: widest + LEAD + 4.0, left: 0.0, labels })
}

impl EndLabels {
    /// The names at the heights of their lines' ends, apart from each other, right of `right`.
    pub(crate) fn placed(mut self, figure: &Figure, plot: &Plot, right: f64) -> Self {
        self.left = right + LEAD;
        let frame = plot.frame;
        for label in &mut self.labels {
            let points = figure.series[label.series].points.iter();
            let shift = look::shift(figure, label.series);
            let shown = points.filter_map(|point| plot.at(point.x + shift, point.y));
            let end = shown.filter(|at| frame.has(*at)).max_by(|a, b| a.0.total_cmp(&b.0));
            label.middle = end.map_or(frame.top, |(_, y)| y);
            // A longer stroke would cross other lines.
            label.from = end.filter(|(x, _)| frame.right - x < NEAR * (frame.right - frame.left));
        }
        self.labels.sort_by(|a, b| a.middle.total_cmp(&b.middle));
        let mut free = frame.top;
        for label in &mut self.labels {
            label.middle = label.middle.max(free + label.height() / 2.0);
            free = label.middle + label.height() / 2.0 + GAP;
        }
        // What went below the frame is moved up, with what is above it.
        let mut free = frame.bottom + LINE / 2.0;
        for label in self.labels.iter_mut().rev() {
            label.middle = label.middle.min(free - label.height() / 2.0);
            free = label.middle - label.height() / 2.0 - GAP;
        }
        self
    }
}

/// Draws the names at the ends of the lines.
pub(crate) fn draw(svg: &mut Svg<'_>, ends: &EndLabels, figure: &Figure) {
    for name in &ends.labels {
        svg.open("g", &[("class", &look::class(look::look(figure, name.series)))]);
        match name.from {
            Some((x, y)) => line(svg, "tail", (x + 5.0, y), (ends.left - 3.0, name.middle)),
            None => sample(svg, figure, name.series, (ends.left - LEAD + 2.0, ends.left - 4.0), name.middle),
        }
        let first = name.middle - LINE * (name.lines.len() as f64 - 1.0) / 2.0 + 4.5;
        for (row, content) in name.lines.iter().enumerate() {
            text(svg, "end", &px(ends.left), &px(first + LINE * row as f64), "start", content);
        }
        svg.close();
    }
}

#[cfg(test)]
mod tests {
    use model::{Axis, Point, Scale, Series};

    use super::*;
    use crate::layout::{Layout, NARROW, Sheet, WIDTH};

    fn figure(names: &[&str]) -> Figure {
        let series = |name: &&str| Series {
            name: (*name).to_owned(),
            points: [1.0, 2.0].map(|x| Point { x, y: 5.0, ..Point::default() }).to_vec(),
            ..Series::default()
        };
        Figure {
            x: Axis::new("x", "", Scale::Linear),
            y: Axis::new("y", "", Scale::Linear),
            series: names.iter().map(series).collect(),
            ..Figure::default()
        }
    }

    #[test]
    fn names_of_lines_that_end_together_are_apart_and_within_the_figure() {
        let figure = figure(&["cubic", "bbr", "reno", "highspeed with a long name", "htcp"]);
        for width in [NARROW, WIDTH] {
            let layout = Layout::new(&figure, Sheet::new(width));
            let ends = layout.ends.unwrap();
            assert!(ends.left > layout.plots[0].frame.right && ends.left + ends.width < width + LEAD);
            for pair in ends.labels.windows(2) {
                let apart = (pair[0].height() + pair[1].height()) / 2.0;
                assert!(pair[1].middle - pair[0].middle >= apart, "{} {}", pair[0].middle, pair[1].middle);
            }
            assert!(ends.labels.iter().all(|label| (0.0..layout.height).contains(&label.middle)));
            assert!(layout.keys.is_empty());
        }
    }

    #[test]
    fn a_line_that_ends_far_from_its_name_has_no_stroke_to_it() {
        let mut figure = figure(&["a", "b"]);
        figure.series[1].points.truncate(1);
        let ends = Layout::new(&figure, Sheet::new(WIDTH)).ends.unwrap();
        let stroke = |series: usize| ends.labels.iter().any(|label| label.series == series && label.from.is_some());
        assert!(stroke(0) && !stroke(1));
    }

    #[test]
    fn names_that_do_not_fit_are_in_a_legend() {
        let long = "a name that says at great length what every part of the path was set to, and why ".repeat(3);
        assert!(end_labels(&figure(&[&long, "b"]), WIDTH).is_none());
        assert!(end_labels(&figure(&["a"; 8]), WIDTH).is_none());
        assert_eq!(Layout::new(&figure(&["a", "b", &long]), Sheet::new(WIDTH)).keys.len(), 3);
    }
}
