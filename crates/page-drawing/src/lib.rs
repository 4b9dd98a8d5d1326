//! Draws figures for the script of the page of reports, within the browser (scripts/web.sh builds web/dist/drawing.wasm from this).
//!
//! The script writes a request into memory and reads the answer: JSON, in a request behind its length (32 bits, little endian) and, on
//! the next multiple of 8 bytes, before columns of numbers.

mod sys;

use std::collections::HashMap;

use drawing::view::View;
use model::{Figure, MatrixCell, Point};
use serde::{Deserialize, Serialize};

/// What the script asks for.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Request {
    /// Keep a figure under a name.
    Keep {
        key: String,
        figure: Box<Figure>,
        /// The columns of each series.
        columns: Vec<Columns>,
        /// Cells of the matrix, as five columns behind those of the series: panel, row, column, value, standing.
        cells: usize,
    },
    /// Forget it.
    Forget { key: String },
    /// Draw it for the page.
    Show { key: String, view: View },
    /// Draw it as a file.
    File { key: String, view: View },
}

/// The columns of a series behind the request, in this order: x, y, low, high.
#[derive(Deserialize)]
struct Columns {
    count: usize,
    low: bool,
    high: bool,
}

/// The answer.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Done {},
    Shown(Box<drawing::view::Shown>),
    File { svg: String },
    Failed { error: String },
}

/// The figures that are kept, and the memory that is shared with the script.
#[derive(Default)]
struct State {
    figures: HashMap<String, Figure>,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl State {
    /// Answers the request in `input` in `output`.
    fn answer(&mut self) {
        let input = std::mem::take(&mut self.input);
        let answer = self.answered(&input).unwrap_or_else(|error| Answer::Failed { error });
        self.output = serde_json::to_vec(&answer).unwrap_or_default();
    }

    fn answered(&mut self, input: &[u8]) -> Result<Answer, String> {
        let (length, rest) = input.split_first_chunk().ok_or("no request")?;
        let length = u32::from_le_bytes(*length) as usize;
        let json = rest.get(..length).ok_or("the request is cut")?;
        let request = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let missing = |key: &str| format!("no figure {key}");
        Ok(match request {
            Request::Keep { key, mut figure, columns, cells } => {
                let mut numbers = input.get((4 + length).next_multiple_of(8)..).unwrap_or_default();
                for (series, columns) in figure.series.iter_mut().zip(&columns) {
                    series.points = points(&mut numbers, columns).ok_or("the columns are cut")?;
                }
                if let Some(matrix) = &mut figure.matrix {
                    matrix.cells = matrix_cells(numbers, cells).ok_or("the cells are cut")?;
                }
                self.figures.insert(key, *figure);
                Answer::Done {}
            }
            Request::Forget { key } => {
                self.figures.remove(&key);
                Answer::Done {}
            }
            Request::Show { key, view } => {
                Answer::Shown(Box::new(view.shown(self.figures.get(&key).ok_or_else(|| missing(&key))?)))
            }
            Request::File { key, view } => {
                Answer::File { svg: view.file(self.figures.get(&key).ok_or_else(|| missing(&key))?) }
            }
        })
    }
}

fn values(bytes: &[u8]) -> impl Iterator<Item = f64> {
    bytes.chunks_exact(8).map(|bytes| bytes.try_into().map_or(f64::NAN, f64::from_le_bytes))
}

fn matrix_cells(numbers: &[u8], count: usize) -> Option<Vec<MatrixCell>> {
    let column = |at: usize| Some(values(numbers.get(8 * count * at..8 * count * (at + 1))?));
    let places = column(0)?.zip(column(1)?).zip(column(2)?);
    let cell = |((((panel, row), column), value), standing)| MatrixCell {
        panel: panel as usize,
        row: row as usize,
        column: column as usize,
        value,
        standing,
    };
    Some(places.zip(column(3)?).zip(column(4)?).map(cell).collect())
}

/// Takes the columns of a series off the numbers. NaN is an end that is not there.
fn points(numbers: &mut &[u8], columns: &Columns) -> Option<Vec<Point>> {
    let mut column = || {
        let (own, rest) = numbers.split_at_checked(8 * columns.count)?;
        *numbers = rest;
        Some(values(own))
    };
    let (x, y) = (column()?, column()?);
    let mut end = |is_there: bool| if is_there { column().map(Some) } else { Some(None) };
    let (mut low, mut high) = (end(columns.low)?, end(columns.high)?);
    let mut next = |ends: bool| {
        let column = if ends { &mut high } else { &mut low };
        column.as_mut().and_then(Iterator::next).filter(|end| !end.is_nan())
    };
    Some(x.zip(y).map(|(x, y)| Point { x, y, low: next(false), high: next(true) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(state: &mut State, json: &str, numbers: &[f64]) -> serde_json::Value {
        let mut input = u32::try_from(json.len()).unwrap().to_le_bytes().to_vec();
        input.extend_from_slice(json.as_bytes());
        input.resize(input.len().next_multiple_of(8), 0);
        input.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        state.input = input;
        state.answer();
        serde_json::from_slice(&state.output).unwrap()
    }

    #[test]
    fn a_kept_figure_is_drawn_and_one_that_is_not_is_named() {
        let mut state = State::default();
        let keep = r#"{"keep":{"key":"a","figure":{"id":"rate","y":{"label":"rate","unit":"bit/s","scale":"linear"},
            "series":[{"name":"one"}]},"columns":[{"count":3,"low":true,"high":false}],"cells":0}}"#;
        let numbers = [0.0, 1.0, 2.0, 5e9, 6e9, 7e9, 4e9, f64::NAN, 6e9];
        assert_eq!(ask(&mut state, keep, &numbers), serde_json::json!({}));
        let point = state.figures["a"].series[0].points[1];
        assert_eq!(point, Point { x: 1.0, y: 6e9, low: None, high: None });
        assert_eq!(state.figures["a"].series[0].points[2].low, Some(6e9));
        let shown = ask(&mut state, r#"{"show":{"key":"a","view":{"width":700}}}"#, &[]);
        assert!(shown["svg"].as_str().unwrap().contains("rate (Gbit/s)"), "{shown}");
        assert_eq!((shown["plots"].as_array().unwrap().len(), shown["keys"][0]["name"].as_str()), (1, Some("one")));
        let file = ask(&mut state, r#"{"file":{"key":"a","view":{"width":700,"in_bytes":true}}}"#, &[]);
        assert!(file["svg"].as_str().unwrap().contains("rate (MB/s)"), "{file}");
        let matrix = r#"{"keep":{"key":"m","figure":{"matrix":{"label":"","unit":"","usual":[],"cells":[]}},"columns":[],"cells":1}}"#;
        ask(&mut state, matrix, &[0.0, 2.0, 3.0, 9e9, -1.0]);
        let cells = &state.figures["m"].matrix.as_ref().unwrap().cells;
        assert_eq!(cells, &[MatrixCell { panel: 0, row: 2, column: 3, value: 9e9, standing: -1.0 }]);
        ask(&mut state, r#"{"forget":{"key":"a"}}"#, &[]);
        assert_eq!(ask(&mut state, r#"{"show":{"key":"a","view":{}}}"#, &[])["error"], "no figure a");
        assert_eq!(ask(&mut state, keep, &numbers[..4])["error"], "the columns are cut");
        assert!(ask(&mut state, "{", &[])["error"].is_string());
    }
}
