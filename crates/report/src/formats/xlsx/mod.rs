//! A workbook: a summary, the outcomes of each kind, the figures with their data, the trials, and both hosts.
//!
//! All text is written as strings, also where it looks like a formula: names come from other hosts.

mod book;
mod charts;
mod environment;
mod figures;
mod host_cpu;
mod plans;
mod rows;
mod summary;

use crate::view::stem;
use crate::{Piece, ReportError, View};
use book::Book;
use rust_xlsxwriter::XlsxError;

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("xlsx")?;
    let bytes = workbook(view).map_err(|error| ReportError::Workbook { why: error.to_string() })?;
    Ok(vec![Piece::new(stem(view.runs), "xlsx", bytes)])
}

fn workbook(view: &View<'_>) -> Result<Vec<u8>, XlsxError> {
    let mut book = Book::new(view.layout.spelling);
    let places = rows::outcomes(&mut book, view.runs)?;
    figures::add(&mut book, crate::figures(view.runs))?;
    plans::add(&mut book, view.runs, &places)?;
    host_cpu::add(&mut book, view.runs)?;
    rows::trials(&mut book, view.runs)?;
    environment::add(&mut book, view.runs)?;
    summary::add(&mut book, view.runs)?;
    // The time of the file is that of the latest run: the same runs give the same bytes.
    book.into_bytes(view.runs.iter().map(|run| run.header.started_unix_ns).max().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use model::{Axis, Figure, Scale, Series};

    use super::*;
    use crate::sample;
    use text::Spelling;

    fn bytes(runs: &[model::Run]) -> Vec<u8> {
        render(&View::new(runs)).unwrap().remove(0).bytes
    }

    #[test]
    fn the_same_runs_give_the_same_bytes() {
        let runs = [sample::curve(), sample::planned(), sample::observed()];
        assert_eq!(bytes(&runs), bytes(&runs));
        assert!(bytes(&runs).starts_with(b"PK"));
    }
    #[test]
    fn a_figure_without_points_has_no_chart_and_the_workbook_is_written() {
        for (scale, stacked) in [(Scale::Linear, false), (Scale::Linear, true), (Scale::Names, false)] {
            let series = Series { name: "goodput".into(), stacked, ..Series::default() };
            for series in [vec![], vec![series]] {
                let x = Axis { scale, ..Axis::default() };
                let figure = Figure { id: "empty".into(), title: "Empty".into(), x, series, ..Figure::default() };
                let mut book = Book::new(Spelling::default());
                figures::add(&mut book, vec![figure]).unwrap();
                assert!(book.into_bytes(0).unwrap().starts_with(b"PK"));
            }
        }
    }
}
