//! The drawn part of a measurement.

use model::{ByteSize, Direction};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Color;
use ratatui::symbols::Marker;
use ratatui::text::Span;
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, LegendPosition, Paragraph};

use crate::parts::ViewLook;

/// NetPIPE's rate or goodput by block size, both logarithmic, with the range of the passes around it. `points` are block, bytes, and
/// lowest, median and highest rate, bit/s.
pub(super) fn curve(frame: &mut Frame<'_>, area: Rect, look: ViewLook, mut points: Vec<(f64, [f64; 3])>) {
    points.retain(|(block, rates)| *block > 0.0 && rates.iter().all(|rate| *rate > 0.0));
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        frame.render_widget(Paragraph::new("no size has been measured yet"), area);
        return;
    };
    let x = [first.0.log2().floor(), last.0.log2().ceil().max(first.0.log2().floor() + 1.0)];
    let all = points.iter().flat_map(|(_, rates)| rates);
    let (low, high) = all.fold((f64::INFINITY, 0.0), |(low, high), rate| (f64::min(low, *rate), f64::max(high, *rate)));
    let y = [low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0)];
    let line =
        |part: usize| points.iter().map(|(block, rates)| (block.log2(), rates[part].log10())).collect::<Vec<_>>();
    let [lowest, median, highest] = [0, 1, 2].map(line);
    let plain = |data, name: &'static str, kind| {
        Dataset::default().name(name).marker(Marker::Braille).graph_type(kind).data(data)
    };
    let sets = vec![
        plain(&lowest, "", GraphType::Scatter).style(look.weak()),
        plain(&highest, "", GraphType::Scatter).style(look.weak()),
        plain(&median, "", GraphType::Line).style(look.colour(Color::Cyan)),
    ];
    let places = |[low, high]: [f64; 2]| [low, ((low + high) / 2.0).round(), high];
    let size = |power: f64| ByteSize(2_f64.powf(power) as u64).to_string();
    let rate = |power: f64| look.rate(10_f64.powf(power));
    let chart = Chart::new(sets)
        .x_axis(axis(look, places(x).map(size).into(), &x).title("block size"))
        .y_axis(axis(look, places(y).map(rate).into(), &y).title("rate: median and range of the passes"))
        .legend_position(None);
    frame.render_widget(chart, area);
}

/// A quantity over the measured time.
pub(super) struct OverTime<'a> {
    pub(super) title: &'static str,
    /// Values by the time in s, of each direction.
    pub(super) lines: Vec<(Direction, Vec<(f64, f64)>)>,
    /// A value as text.
    pub(super) text: &'a dyn Fn(f64) -> String,
}

/// Rows for each label of the vertical axis.
const LABEL_ROWS: u16 = 4;

impl OverTime<'_> {
    /// Draws it from 0 on, under its title.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, look: ViewLook) {
        let ends = self.lines.iter().flat_map(|(_, values)| values);
        let (last, high) =
            ends.fold((0.0, 0.0), |(last, high), (time, value)| (f64::max(last, *time), f64::max(high, *value)));
        let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
        frame.render_widget(Paragraph::new(Span::styled(self.title, look.strong())), above);
        let x = halves(f64::max(last, 10.0));
        let y = ticks(high, usize::from(below.height / LABEL_ROWS).clamp(1, 5));
        let colours = [Color::Cyan, Color::Magenta];
        let sets = self.lines.iter().zip(colours).map(|((direction, values), colour)| {
            Dataset::default()
                .name(if self.lines.len() > 1 { direction.way() } else { "" })
                .marker(Marker::Braille)
                .graph_type(GraphType::Line)
                .style(look.colour(colour))
                .data(values)
        });
        let text = |value: &f64| if *value == 0.0 { "0".to_owned() } else { (self.text)(*value) };
        let chart = Chart::new(sets.collect())
            .x_axis(axis(look, x.iter().map(|s| format!("{s} s")).collect(), &x))
            .y_axis(axis(look, y.iter().map(text).collect(), &y))
            .legend_position(if self.lines.len() > 1 { Some(LegendPosition::BottomRight) } else { None });
        frame.render_widget(chart, below);
    }
}

/// 0, and two equal steps that reach `high`. The chart puts the middle one of three labels where its value is, and no other.
fn halves(high: f64) -> [f64; 3] {
    let power = 10_f64.powf((high / 2.0).log10().floor());
    let digits = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0];
    let step = digits.into_iter().map(|digit| digit * power).find(|step| 2.0 * step >= high).unwrap_or(10.0 * power);
    [0.0, step, 2.0 * step]
}

/// Values from 0 to at least `high` in at most `most` equal steps of 1, 2 or 5 times a power of ten.
fn ticks(high: f64, most: usize) -> Vec<f64> {
    let high = if high > 0.0 { high } else { 1.0 };
    let rough = high / most as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|step| step * most as f64 >= high);
    let step = step.unwrap_or(10.0 * power);
    let count = (high / step).ceil().max(1.0) as u32;
    (0..=count).map(|number| f64::from(number) * step).collect()
}

/// An axis with labels at equal distances from its first to its last value.
fn axis(look: ViewLook, labels: Vec<String>, values: &[f64]) -> Axis<'static> {
    let bounds = [values.first().copied().unwrap_or(0.0), values.last().copied().unwrap_or(1.0)];
    Axis::default().bounds(bounds).labels(labels.into_iter().map(Span::raw).collect::<Vec<_>>()).style(look.weak())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_few_and_reach_the_highest_value() {
        assert_eq!(ticks(144e6, 4), [0.0, 50e6, 100e6, 150e6]);
        assert_eq!(ticks(10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(10.4, 2), [0.0, 10.0, 20.0]);
        assert_eq!(ticks(0.0, 3), [0.0, 0.5, 1.0]);
        assert_eq!([10.0, 14.0, 61.0, 190.0].map(|high| halves(high)[1]), [5.0, 8.0, 40.0, 100.0]);
        for high in [0.003, 7.0, 99.0, 1.01e9] {
            for most in 1..=5 {
                let ticks = ticks(high, most);
                assert!(ticks.len() <= most + 1 && ticks.last() >= Some(&high), "{high} {most}: {ticks:?}");
            }
        }
    }
}
