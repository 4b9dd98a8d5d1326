//! The data files.

use std::fmt::Write as _;

use model::units::three_digits;
use model::{Figure, MatrixCell, Run, Series};
use text::RateUnit;

use super::comment;
use crate::labels;
use crate::view::safe_name;
use drawing::matrix;
use drawing::span::Span;

/// One run's points: a data set for each series, separated by two blank lines, for gnuplot's `index`.
pub(super) struct DataFile {
    owner: usize,
    pub(super) name: String,
    pub(super) text: String,
    data_sets: usize,
}

/// The data file of a run.
pub(super) fn data_file<'a>(files: &'a mut Vec<DataFile>, owner: usize, run: &Run) -> &'a mut DataFile {
    let at = files.iter().position(|file| file.owner == owner).unwrap_or_else(|| {
        let stem = safe_name(&run.header.id);
        let taken = files.iter().any(|file| file.name == format!("{stem}.dat"));
        let name = if taken { format!("{stem}-{}.dat", owner + 1) } else { format!("{stem}.dat") };
        let about = format!("{}: {}", labels::title(run), labels::hosts(run));
        let command = run.header.command.join(" ");
        let text = format!("# {}\n# {}\n", comment(&about), comment(&command));
        files.push(DataFile { owner, name, text, data_sets: 0 });
        files.len() - 1
    });
    &mut files[at]
}

impl DataFile {
    /// Begins a data set and returns its index.
    fn begin(&mut self, id: &str, name: &str) -> usize {
        if self.data_sets > 0 {
            self.text.push_str("\n\n");
        }
        let _ = writeln!(self.text, "# {}: {}", comment(id), comment(name));
        self.data_sets += 1;
        self.data_sets - 1
    }

    /// Writes a series and returns the index of its data set. An interval without a bound ends where the axis does.
    pub(super) fn append(&mut self, figure: &Figure, series: &Series, y_span: &Span) -> usize {
        let panel = series.panel.and_then(|panel| figure.panels.get(panel));
        let name = panel.filter(|panel| panel.title != series.name);
        let name = name.map_or(String::new(), |panel| format!("{}, ", panel.title));
        let data_set = self.begin(&figure.id, &format!("{name}{}", series.name));
        let (x, y) = (&figure.x, figure.y_axis(series));
        let _ = writeln!(
            self.text,
            "# {} ({}), {} ({}), low and high end of its interval ({}), ? for none",
            x.label, x.unit, y.label, y.unit, y.unit
        );
        let (mut begun, mut gap) = (false, false);
        for point in &series.points {
            if point.x.is_nan() || point.y.is_nan() {
                gap = begun;
                continue;
            }
            // An empty line is a gap in the line; two would end the series.
            if std::mem::take(&mut gap) {
                self.text.push('\n');
            }
            begun = true;
            let shown = Span::drawable(x.scale, point.x) && Span::drawable(y.scale, point.y);
            let end = |end: Option<f64>| {
                let end = end.filter(|end| shown && !end.is_nan())?;
                let beyond = if end > 0.0 { y_span.high } else { y_span.low };
                Some(if Span::drawable(y.scale, end) { end } else { beyond })
            };
            let coordinate = |value: f64| if shown { value.to_string() } else { "?".to_owned() };
            // An interval is drawn only if both ends can be.
            let ends = end(point.low).zip(end(point.high));
            let (low, high) = ends.map_or(("?".into(), "?".into()), |(low, high)| (low.to_string(), high.to_string()));
            let _ = writeln!(self.text, "{} {} {low} {high}", coordinate(point.x), coordinate(point.y));
        }
        data_set
    }

    /// Writes a panel of a matrix and returns the index of its data set.
    pub(super) fn append_matrix(&mut self, figure: &Figure, panel: usize, rates: RateUnit) -> usize {
        let title = figure.panels.get(panel).map_or("", |panel| panel.title.as_str());
        let data_set = self.begin(&figure.id, title);
        let Some(matrix) = &figure.matrix else { return data_set };
        let (from, to) = (&figure.y.label, &figure.x.label);
        let _ = writeln!(self.text, "# number of {to}, number of {from}, {} ({}), its text", matrix.label, matrix.unit);
        let (factor, _) = matrix::title(matrix, rates);
        for MatrixCell { row, column, value, .. } in matrix.cells.iter().filter(|cell| cell.panel == panel) {
            let _ = writeln!(self.text, "{column} {row} {value} {}", three_digits(value / factor));
        }
        data_set
    }
}
