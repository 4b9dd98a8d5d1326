//! Charts: their axes and their looks.

use model::{Axis, Look, Scale};
use rust_xlsxwriter::{
    Chart, ChartAxis, ChartAxisLabelPosition, ChartErrorBars, ChartErrorBarsType, ChartFont, ChartFormat,
    ChartLegendPosition, ChartLine, ChartLineDashType, ChartMarker, ChartMarkerType, ChartRange, ChartSeries,
    ChartSolidFill, ChartType, Color,
};

use crate::figures::TAIL_UNIT;
use crate::labels;
use drawing::span::Span;
use drawing::theme::{LIGHT, SERIES};
use drawing::ticks::Ticks;
use text::RateUnit;

/// Pixels of a chart.
const WIDTH: u32 = 900;
const HEIGHT: u32 = 460;
/// Rows that a chart and the gap below it cover.
pub(super) const ROWS: u32 = 24;
/// The most steps of an axis.
const MOST_TICKS: usize = 8;
/// The most points that have markers.
const MARKED: usize = 60;
const MARKERS: [ChartMarkerType; 4] =
    [ChartMarkerType::Circle, ChartMarkerType::Square, ChartMarkerType::Triangle, ChartMarkerType::Diamond];

/// A chart with its title, and a legend if it has several series.
pub(super) fn chart(kind: ChartType, title: &str, series: usize) -> Chart {
    let mut chart = Chart::new(kind);
    chart.set_width(WIDTH).set_height(HEIGHT);
    chart.title().set_name(&shown(title)).set_font(ChartFont::new().set_size(12));
    if series > 1 {
        chart.legend().set_position(ChartLegendPosition::Bottom);
    } else {
        chart.legend().set_hidden();
    }
    chart
}

/// A text within a chart. One that begins with `=` would be a reference to cells.
fn shown(text: &str) -> String {
    let text = labels::plain(text);
    let plain = text.trim_start_matches(['=', ' ']);
    plain.chars().take(200).collect()
}

/// The cells from a row to another one, of one column.
pub(super) fn range(sheet: &str, column: u16, rows: (u32, u32)) -> ChartRange {
    ChartRange::new_from_range(sheet, rows.0, column, rows.1, column)
}

/// The colour of the series that has this number.
pub(super) fn colour(number: usize) -> Color {
    let text = LIGHT.series[number % SERIES].trim_start_matches('#');
    Color::RGB(u32::from_str_radix(text, 16).unwrap_or_default())
}

/// A line of points; a reference is thin and has none.
pub(super) fn line_look(series: &mut ChartSeries, look: Look, reference: bool, points: usize) {
    let mut line = ChartLine::new();
    line.set_color(colour(look.colour)).set_width(if reference { 1.0 } else { 1.75 });
    if reference || look.dash > 0 {
        line.set_dash_type(if look.dash > 1 { ChartLineDashType::RoundDot } else { ChartLineDashType::Dash });
    }
    series.set_format(ChartFormat::new().set_line(&line));
    let mut marker = ChartMarker::new();
    if reference || points > MARKED {
        marker.set_none();
    } else {
        let mut fill = ChartFormat::new();
        fill.set_solid_fill(ChartSolidFill::new().set_color(colour(look.colour)));
        fill.set_line(ChartLine::new().set_color(colour(look.colour)));
        marker.set_type(MARKERS[look.colour % MARKERS.len()]).set_size(5).set_format(&mut fill);
    }
    series.set_marker(&marker);
}

/// A filled bar or area.
pub(super) fn fill_look(series: &mut ChartSeries, colour: Color) {
    series.set_format(ChartFormat::new().set_solid_fill(ChartSolidFill::new().set_color(colour)));
}

/// Bars from the low to the high end of the intervals, whose lengths are in two columns.
pub(super) fn error_bars(sheet: &str, below: u16, above: u16, rows: (u32, u32)) -> ChartErrorBars {
    let ends = ChartErrorBarsType::Custom(range(sheet, above, rows), range(sheet, below, rows));
    let mut bars = ChartErrorBars::new();
    bars.set_type(ends).set_format(ChartFormat::new().set_line(ChartLine::new().set_color(0x0057_606A_u32)));
    bars
}

/// What an axis shows: `axis` with its label, and the highest value on it.
pub(super) fn shape(of: &mut ChartAxis, axis: &Axis, values: (f64, f64)) {
    let (low, high) = values;
    of.set_label_position(ChartAxisLabelPosition::Low).set_major_gridlines(true);
    of.set_major_gridlines_line(ChartLine::new().set_color(0x00D9_DEE4_u32).set_width(0.75));
    let mut unit = axis.unit.clone();
    match axis.scale {
        Scale::Log => {
            // Spreadsheets label decades only, also of sizes.
            of.set_log_base(10).set_num_format(any_size(&axis.unit));
            if low > 0.0 && high >= low {
                // A rounding error must not add a decade.
                let least = (low.log10() + 1e-9).floor();
                of.set_min(10_f64.powf(least));
                of.set_max(10_f64.powf((high.log10() - 1e-9).ceil().max(least + 1.0)));
            }
            if axis.unit == "ns" {
                unit = String::new();
            }
            if axis.unit == TAIL_UNIT {
                unit = "one in N is above".to_owned();
            }
        }
        Scale::Linear => {
            let (format, prefixed) = one_size(&axis.unit, high);
            of.set_num_format(format);
            if low >= 0.0 {
                of.set_min(0.0);
            }
            unit = prefixed;
        }
        Scale::Date => {
            of.set_num_format("yyyy-mm-dd hh:mm").set_min(low).set_max(high);
        }
        Scale::Names => {}
    }
    let label = if unit.is_empty() { axis.label.clone() } else { format!("{} ({unit})", axis.label) };
    if !label.is_empty() {
        of.set_name(&shown(&label)).set_name_font(ChartFont::new().set_size(10));
    }
}

/// Gives a linear axis the range of the pictures in whole steps: without it a reference far above the values would set it.
pub(super) fn bound(of: &mut ChartAxis, axis: &Axis, span: Span) {
    if span.scale != Scale::Linear {
        return;
    }
    let ticks = Ticks::new(&Axis { ticks: Vec::new(), ..axis.clone() }, &span, MOST_TICKS, RateUnit::Bits).major;
    let [(first, _), (second, _), ..] = ticks[..] else { return };
    let step = second - first;
    if step > 0.0 {
        of.set_min((span.low / step + 1e-9).floor() * step).set_max((span.high / step - 1e-9).ceil() * step);
        of.set_major_unit(step);
    }
}

/// The format of numbers that differ by powers, each with its prefix.
fn any_size(unit: &str) -> &'static str {
    match unit {
        "bit/s" | "1/s" => "[>=1000000000]0,,,\" G\";[>=1000000]0,,\" M\";#,##0",
        "ns" => "[>=1000000]#,##0,,\" ms\";[>=1000]0,\" µs\";0\" ns\"",
        _ => "#,##0",
    }
}

/// The format of numbers of the same size, and the unit with the prefix.
fn one_size(unit: &str, high: f64) -> (&'static str, String) {
    let (commas, prefix) = match high {
        high if high >= 1e9 => (3, "G"),
        high if high >= 1e6 => (2, "M"),
        high if high >= 1e3 => (1, "k"),
        _ => (0, ""),
    };
    let step = high / 1_000_f64.powi(commas);
    let format = match (commas, step < 10.0) {
        (0, true) => "0.0",
        (0, false) => "#,##0",
        (1, true) => "0.0,",
        (1, false) => "0,",
        (2, true) => "0.0,,",
        (2, false) => "0,,",
        (_, true) => "0.0,,,",
        (_, false) => "0,,,",
    };
    let prefixed = match (unit, prefix) {
        ("ns", "G") => "s".to_owned(),
        ("ns", "M") => "ms".to_owned(),
        ("ns", "k") => "µs".to_owned(),
        ("1/s", "G") => "10^9/s".to_owned(),
        ("1/s", "M") => "10^6/s".to_owned(),
        ("1/s", "k") => "1000/s".to_owned(),
        ("bit/s" | "B" | "B/s", _) => format!("{prefix}{unit}"),
        (_, "") => unit.to_owned(),
        _ => return ("#,##0", unit.to_owned()),
    };
    (format, prefixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_title_is_a_reference() {
        assert_eq!(shown("=Summary!A1"), "Summary!A1");
        assert_eq!(shown("a = b"), "a = b");
    }

    #[test]
    fn an_axis_has_the_prefix_of_its_numbers() {
        assert_eq!(one_size("bit/s", 9.4e9), ("0.0,,,", "Gbit/s".to_owned()));
        assert_eq!(one_size("bit/s", 94e6), ("0,,", "Mbit/s".to_owned()));
        assert_eq!(one_size("ns", 2.0e6), ("0.0,,", "ms".to_owned()));
        assert_eq!(one_size("cores", 3.0), ("0.0", "cores".to_owned()));
        assert_eq!(one_size("1/s", 40e3), ("0,", "1000/s".to_owned()));
        assert_eq!(one_size("1/s", 4.0), ("0.0", "1/s".to_owned()));
    }
}
