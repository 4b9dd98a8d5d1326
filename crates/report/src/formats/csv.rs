//! One line for each outcome, for spreadsheets and scripts. Quoting and CR LF line ends follow RFC 4180.

use std::borrow::Cow;

use super::outcome_columns::OutcomeRows;
use super::value::Value;
use crate::view::stem;
use crate::{Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("csv")?;
    let outcomes = OutcomeRows::new(view.runs);
    let mut text = String::new();
    push_row(&mut text, outcomes.head().iter().map(String::as_str));
    for (_, _, row) in outcomes.rows() {
        let cells: Vec<String> = row.into_iter().map(|cell| cell.map_or(String::new(), Value::into_text)).collect();
        push_row(&mut text, cells.iter().map(String::as_str));
    }
    Ok(vec![Piece::new(stem(view.runs), "csv", text.into_bytes())])
}

fn push_row<'a>(text: &mut String, cells: impl Iterator<Item = &'a str>) {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            text.push(',');
        }
        let cell = guarded(cell);
        if cell.contains([',', '"', '\n', '\r']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(&cell);
        }
    }
    text.push_str("\r\n");
}

/// Text that a spreadsheet would run as a formula, with an apostrophe in front: names come from other hosts.
fn guarded(cell: &str) -> Cow<'_, str> {
    let acts = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    if acts { format!("'{cell}").into() } else { cell.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// A strict reader of RFC 4180, independent of the writer.
    fn parse(text: &str) -> Vec<Vec<String>> {
        let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
        let mut chars = text.chars().peekable();
        let mut quoted = false;
        while let Some(c) = chars.next() {
            match (quoted, c) {
                (true, '"') if chars.peek() == Some(&'"') => cell.push(chars.next().unwrap()),
                (true, '"') => quoted = false,
                (true, _) => cell.push(c),
                (false, '"') => {
                    assert!(cell.is_empty(), "a quote within a bare cell");
                    quoted = true;
                }
                (false, ',') => row.push(std::mem::take(&mut cell)),
                (false, '\r') => {
                    assert_eq!(chars.next(), Some('\n'));
                    row.push(std::mem::take(&mut cell));
                    rows.push(std::mem::take(&mut row));
                }
                (false, _) => cell.push(c),
            }
        }
        assert!(!quoted && row.is_empty(), "the last line ends");
        rows
    }

    #[test]
    fn cells_read_back() {
        let mut run = sample::hostile();
        run.header.name = Some("a \"quoted\",\r\nname".into());
        run.outcomes[0].spec.far.pin = vec![2, 3];
        run.outcomes[0].spec.near.cc = Some("bbr".into());
        let pieces = render(&View::new(std::slice::from_ref(&run))).unwrap();
        let rows = parse(std::str::from_utf8(&pieces[0].bytes).unwrap());
        assert_eq!(rows.len(), 1 + run.outcomes.len());
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
        let cell = |row: usize, name: &str| rows[row][rows[0].iter().position(|head| head == name).unwrap()].as_str();
        assert_eq!(cell(1, "name"), "a \"quoted\",\r\nname");
        assert_eq!((cell(1, "far_pin"), cell(1, "near_cc"), cell(1, "far_cc")), ("2 3", "bbr", ""));
    }

    #[test]
    fn text_is_no_formula() {
        for formula in ["=HYPERLINK(\"http://192.0.2.1\")", "+1+1", "-cmd|' /C calc'!A0", "@SUM(A1)", "\tx", "\rx"] {
            assert_eq!(guarded(formula), format!("'{formula}"));
        }
        for plain in ["", "a=b", "-1.5e-3", "+3", "b.example:6280"] {
            assert_eq!(guarded(plain), plain);
        }
        let mut run = sample::stream();
        run.header.name = Some("=1+1".into());
        let pieces = render(&View::new(std::slice::from_ref(&run))).unwrap();
        assert!(std::str::from_utf8(&pieces[0].bytes).unwrap().contains(",'=1+1,"));
    }

    #[test]
    fn numbers_read_back_exactly() {
        let run = sample::stream();
        let pieces = render(&View::new(std::slice::from_ref(&run))).unwrap();
        let rows = parse(std::str::from_utf8(&pieces[0].bytes).unwrap());
        let at = rows[0].iter().position(|head| head == "goodput_bps").unwrap();
        assert_eq!(rows[1][at].parse::<f64>().ok(), run.outcomes[0].summary.goodput_bps);
    }

    #[test]
    fn a_mix_of_sizes_is_told_from_its_largest_size() {
        let mut runs = [sample::stream(), sample::stream()];
        runs[1].outcomes[0].spec.mix = "imix:64*2,1518".parse::<model::Mix>().unwrap().steps(true);
        let pieces = render(&View::new(&runs)).unwrap();
        let rows = parse(std::str::from_utf8(&pieces[0].bytes).unwrap());
        let at = rows[0].iter().position(|head| head == "mix").unwrap();
        assert_eq!([&rows[1][at], &rows[2][at]], ["", "imix:64*2,1518"]);
    }

    #[test]
    fn ceiling_and_cost_have_columns_and_unmeasured_cells_are_empty() {
        let run = sample::pair();
        let pieces = render(&View::new(std::slice::from_ref(&run))).unwrap();
        let rows = parse(std::str::from_utf8(&pieces[0].bytes).unwrap());
        let cell = |name: &str| rows[1][rows[0].iter().position(|head| head == name).unwrap()].as_str();
        assert_eq!((cell("ceiling_bps"), cell("near_process_s_per_gb")), ("9414800000", "0.21"));
        assert_eq!((cell("far_cycles_per_byte"), cell("far_host_ns_per_transaction")), ("", ""));
    }
}
