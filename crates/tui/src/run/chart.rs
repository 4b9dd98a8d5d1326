//! The drawn part of a measurement.

use model::{ByteSize, Direction, units};
use ratatui::Frame;
use ratatui::layout::Rect;
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
    let middle = |[low, high]: [f64; 2]| ((low + high) / 2.0).round();
    let size = |power: f64| ByteSize(2_f64.powf(power) as u64).to_string();
    let rate = |power: f64| look.rate(10_f64.powf(power));
    let chart = Chart::new(sets)
        .x_axis(axis(look, x, [x[0], middle(x), x[1]].map(size)).title("block size"))
        .y_axis(axis(look, y, [y[0], middle(y), y[1]].map(rate)).title("rate: median and range of the passes"))
        .legend_position(None);
    frame.render_widget(chart, area);
}

/// Goodput, bit/s, or round trips, 1/s, over the measured time, s, from 0.
pub(super) fn over_time(
    frame: &mut Frame<'_>,
    area: Rect,
    look: ViewLook,
    lines: &[(Direction, Vec<(f64, f64)>)],
    trips: bool,
) {
    let ends = lines.iter().flat_map(|(_, values)| values);
    let (last, high) =
        ends.fold((0.0, 0.0), |(last, high), (time, value)| (f64::max(last, *time), f64::max(high, *value)));
    if high <= 0.0 {
        frame.render_widget(Paragraph::new("nothing has arrived yet"), area);
        return;
    }
    let (x, y) = ([0.0, f64::max(last, 10.0)], [0.0, above(high)]);
    let colours = [Color::Cyan, Color::Magenta];
    let sets = lines.iter().zip(colours).map(|((direction, values), colour)| {
        Dataset::default()
            .name(if lines.len() > 1 { direction.way() } else { "" })
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(look.colour(colour))
            .data(values)
    });
    let rate = |value: f64| if trips { format!("{}/s", units::count(value)) } else { look.rate(value) };
    let chart = Chart::new(sets.collect())
        .x_axis(axis(look, x, [0.0, x[1] / 2.0, x[1]].map(|s| units::seconds(s * 1e9))).title("measured time"))
        .y_axis(axis(look, y, [0.0, y[1] / 2.0, y[1]].map(rate)).title(if trips { "round trips" } else { "goodput" }))
        .legend_position(if lines.len() > 1 { Some(LegendPosition::BottomRight) } else { None });
    frame.render_widget(chart, area);
}

/// The next of 1, 1.2, 1.5, 2, 3, 5, 8 and their tenfolds that is higher.
fn above(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0, 10.0];
    unit * steps.into_iter().find(|step| step * unit > value).unwrap_or(12.0)
}

fn axis(look: ViewLook, bounds: [f64; 2], labels: [String; 3]) -> Axis<'static> {
    Axis::default().bounds(bounds).labels(labels.map(Span::raw)).style(look.weak())
}
