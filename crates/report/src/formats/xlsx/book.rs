//! Sheets with tables: types, widths, frozen heads, and names that are allowed.

use std::collections::{BTreeMap, BTreeSet};

use rust_xlsxwriter::{
    Chart, ConditionalFormat3ColorScale, DocProperties, ExcelDateTime, Format, FormatAlign, Url, Workbook, Worksheet,
    XlsxError,
};
use text::{Spelling, Text};

use crate::formats::value::Value;
use crate::labels;

/// The most UTF-16 units of a cell, and the most rows below the head of a sheet.
const MOST_TEXT: usize = 32_767;
pub(super) const MOST_ROWS: usize = 1_048_575;
/// The most links of a sheet.
const MOST_LINKS: usize = 65_530;
/// The most characters of a sheet's name.
const MOST_NAME: usize = 31;
/// The narrowest and the widest column, in characters.
const WIDTHS: (usize, usize) = (9, 60);
/// The height of a line, in points, and the most lines of a row.
const LINE: f64 = 15.0;
const MOST_LINES: usize = 25;
/// Colours of the lowest, the middle and the highest value: distinguishable with any colour vision.
const LOW: u32 = 0x00F4_A582;
const MIDDLE: u32 = 0x00F7_F7F7;
const HIGH: u32 = 0x0092_C5DE;

/// The sheets of a workbook.
pub(super) struct Book {
    sheets: Vec<Sheet>,
    spelling: Spelling,
}

impl Book {
    /// A book without sheets, whose sentences have this spelling.
    pub(super) fn new(spelling: Spelling) -> Self {
        Self { sheets: Vec::new(), spelling }
    }

    /// A sentence.
    pub(super) fn said(&self, sentence: &Text) -> Option<Value> {
        Some(Value::Text(sentence.shown(self.spelling)))
    }

    /// A new sheet, whose name begins with `name`; `about` says what it has.
    pub(super) fn sheet(&self, name: &str, about: &str) -> Result<Sheet, XlsxError> {
        let taken: BTreeSet<String> = self.sheets.iter().map(|sheet| sheet.name.to_lowercase()).collect();
        Sheet::new(&free_name(name, &taken), about)
    }

    /// Adds a sheet behind the others.
    pub(super) fn push(&mut self, sheet: Sheet) {
        self.sheets.push(sheet);
    }

    /// Adds a sheet before the others.
    pub(super) fn push_first(&mut self, sheet: Sheet) {
        self.sheets.insert(0, sheet);
    }

    /// The name of each sheet, and what it has.
    pub(super) fn contents(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sheets.iter().map(|sheet| (sheet.name.as_str(), sheet.about.as_str()))
    }

    /// The file; `created_unix_ns` is its time.
    pub(super) fn into_bytes(self, created_unix_ns: u64) -> Result<Vec<u8>, XlsxError> {
        let mut workbook = Workbook::new();
        let mut properties = DocProperties::new().set_author("Throughline");
        if let Some(created) = date(created_unix_ns) {
            properties = properties.set_creation_datetime(&created);
        }
        workbook.set_properties(&properties);
        for sheet in self.sheets {
            workbook.push_worksheet(sheet.finished()?);
        }
        workbook.save_to_buffer()
    }
}

/// A name that no sheet has, without the characters that names of sheets must not have. A long one ends with a word.
fn free_name(name: &str, taken: &BTreeSet<String>) -> String {
    let kept = labels::plain(name).replace('\'', "’");
    let kept: String = kept.chars().map(|c| if "[]:*?/\\".contains(c) { '-' } else { c }).collect();
    let short = |room: usize| {
        let cut: String = kept.chars().take(room).collect();
        let is_cut = kept[cut.len()..].starts_with(|c| c != ' ');
        let word = cut.rsplit_once(' ').map(|(words, _)| words).filter(|words| is_cut && words.len() * 2 > cut.len());
        word.unwrap_or(&cut).to_owned()
    };
    let free = |name: &String| !taken.contains(&name.to_lowercase());
    let plain = std::iter::once(short(MOST_NAME));
    let numbered = (2..).map(|number| format!("{} {number}", short(MOST_NAME - 5)));
    plain.chain(numbered).find(free).unwrap_or_default()
}

/// A time as a date of a spreadsheet; none before 1900 and after 9999.
fn date(unix_ns: u64) -> Option<ExcelDateTime> {
    ExcelDateTime::from_timestamp(i64::try_from(unix_ns / 1_000_000_000).ok()?).ok()
}

/// A sheet, written from the top down.
pub(super) struct Sheet {
    worksheet: Worksheet,
    /// Its name, for the ranges of charts.
    pub(super) name: String,
    about: String,
    /// The next free row.
    pub(super) row: u32,
    widths: Vec<usize>,
    /// Texts of several lines by their row: the column and the length of each line.
    long: BTreeMap<u32, Vec<(usize, usize)>>,
    is_frozen: bool,
    links: usize,
    styles: Styles,
}

struct Styles {
    head: Format,
    title: Format,
    text: Format,
    time: Format,
    whole: Format,
    /// From 1 on, and below.
    fine: [Format; 2],
}

impl Styles {
    fn new() -> Self {
        let top = || Format::new().set_align(FormatAlign::Top);
        Self {
            head: Format::new()
                .set_bold()
                .set_text_wrap()
                .set_align(FormatAlign::Top)
                .set_background_color(0x00E6_ECF2_u32),
            title: Format::new().set_bold().set_font_size(14),
            text: top().set_text_wrap(),
            time: top().set_num_format("yyyy-mm-dd hh:mm:ss"),
            whole: top().set_num_format("#,##0"),
            fine: ["#,##0.00", "0.00##"].map(|format| top().set_num_format(format)),
        }
    }

    /// Of a number: no decimals where they do not matter.
    fn number(&self, number: f64) -> &Format {
        match number.abs() {
            size if size >= 1_000.0 || size.fract() == 0.0 => &self.whole,
            size if size >= 1.0 => &self.fine[0],
            _ => &self.fine[1],
        }
    }
}

impl Sheet {
    fn new(name: &str, about: &str) -> Result<Self, XlsxError> {
        let mut worksheet = Worksheet::new();
        worksheet.set_name(name)?.set_landscape().set_print_fit_to_pages(1, 0);
        Ok(Self {
            worksheet,
            name: name.to_owned(),
            about: about.to_owned(),
            row: 0,
            widths: Vec::new(),
            long: BTreeMap::new(),
            is_frozen: false,
            links: 0,
            styles: Styles::new(),
        })
    }

    /// A line in large type.
    pub(super) fn title(&mut self, text: &str) -> Result<(), XlsxError> {
        self.worksheet.write_string_with_format(self.row, 0, fitting(text), &self.styles.title)?;
        self.row += 1;
        Ok(())
    }

    /// The head of a table; returns its row. The first one of the sheet stays in view, with the first `names` columns.
    pub(super) fn head<T: AsRef<str>>(
        &mut self,
        names: u16,
        head: impl IntoIterator<Item = T>,
    ) -> Result<u32, XlsxError> {
        let row = self.row;
        for (column, text) in (0..).zip(head) {
            let text = fitting(text.as_ref());
            // A long head is wrapped.
            self.widen(column, text.split(' ').map(|word| word.chars().count()).max().unwrap_or(0) + 3);
            self.long.entry(self.row).or_default().push((column.into(), text.chars().count()));
            self.worksheet.write_string_with_format(self.row, column, text, &self.styles.head)?;
        }
        self.row += 1;
        if !self.is_frozen {
            self.worksheet.set_freeze_panes(self.row, names)?;
            self.is_frozen = true;
        }
        Ok(row)
    }

    /// Lets the reader filter and sort the rows below a head by each of `columns` columns. A sheet can have one such table.
    pub(super) fn filter(&mut self, head: u32, columns: usize) -> Result<(), XlsxError> {
        let last = u16::try_from(columns.saturating_sub(1)).unwrap_or(u16::MAX);
        if self.row > head + 1 && columns > 0 {
            self.worksheet.autofilter(head, 0, self.row - 1, last)?;
        }
        Ok(())
    }

    /// The next row of the table; returns its number.
    pub(super) fn line(&mut self, values: impl IntoIterator<Item = Option<Value>>) -> Result<u32, XlsxError> {
        let row = self.row;
        for (column, value) in (0..).zip(values) {
            self.cell(row, column, value)?;
        }
        self.row += 1;
        Ok(row)
    }

    fn cell(&mut self, row: u32, column: u16, value: Option<Value>) -> Result<(), XlsxError> {
        let (sheet, styles) = (&mut self.worksheet, &self.styles);
        let width = match value {
            None => 0,
            Some(Value::Text(text)) => {
                let text = fitting(&text);
                let lines: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
                let width = lines.iter().copied().max().unwrap_or(0);
                if lines.len() > 1 || width > WIDTHS.1 {
                    self.long.entry(row).or_default().extend(lines.iter().map(|line| (usize::from(column), *line)));
                }
                sheet.write_string_with_format(row, column, text, &styles.text)?;
                width
            }
            Some(Value::Count(count)) => {
                sheet.write_number_with_format(row, column, count as f64, &styles.whole)?;
                digits(count as f64)
            }
            Some(Value::Number(number)) => {
                sheet.write_number_with_format(row, column, number, styles.number(number))?;
                digits(number)
            }
            Some(Value::Flag(is)) => {
                sheet.write_boolean_with_format(row, column, is, &styles.text)?;
                5
            }
            Some(Value::Time(unix_ns)) => {
                match date(unix_ns) {
                    Some(date) => sheet.write_datetime_with_format(row, column, &date, &styles.time)?,
                    None => sheet.write_string_with_format(row, column, labels::when(unix_ns), &styles.text)?,
                };
                19
            }
        };
        self.widen(column, width + 1);
        Ok(())
    }

    /// Makes the number in a cell (row and column) a link to the first cell of a row of another sheet. A sheet has room for so many links.
    pub(super) fn lead(&mut self, cell: (u32, u16), number: f64, to: (&str, u32)) -> Result<(), XlsxError> {
        if self.links == MOST_LINKS {
            return Ok(());
        }
        self.links += 1;
        let url = Url::new(format!("internal:'{}'!A{}", to.0, to.1 + 1));
        self.worksheet.write_url(cell.0, cell.1, url)?;
        // The link has a text; the number takes its place, and the link stays.
        self.worksheet.write_number_with_format(cell.0, cell.1, number, self.styles.number(number)).map(drop)
    }

    fn widen(&mut self, column: u16, width: usize) {
        let at = usize::from(column);
        if self.widths.len() <= at {
            self.widths.resize(at + 1, WIDTHS.0);
        }
        self.widths[at] = self.widths[at].max(width).min(WIDTHS.1);
    }

    /// The first column behind the tables.
    pub(super) fn free_column(&self) -> u16 {
        u16::try_from(self.widths.len() + 1).unwrap_or(u16::MAX)
    }

    /// A chart with its corner at this cell.
    pub(super) fn chart(&mut self, row: u32, column: u16, chart: &Chart) -> Result<(), XlsxError> {
        self.worksheet.insert_chart(row, column, chart).map(drop)
    }

    /// Colours the numbers from the lowest to the highest; `low_is_good` turns the colours round.
    pub(super) fn colours(
        &mut self,
        rows: (u32, u32),
        columns: (u16, u16),
        low_is_good: bool,
    ) -> Result<(), XlsxError> {
        let (low, high) = if low_is_good { (HIGH, LOW) } else { (LOW, HIGH) };
        let scale = ConditionalFormat3ColorScale::new()
            .set_minimum_color(low)
            .set_midpoint_color(MIDDLE)
            .set_maximum_color(high);
        self.worksheet.add_conditional_format(rows.0, columns.0, rows.1, columns.1, &scale).map(drop)
    }

    fn finished(mut self) -> Result<Worksheet, XlsxError> {
        for (column, width) in (0..).zip(&self.widths) {
            self.worksheet.set_column_width(column, *width as f64 + 1.0)?;
        }
        for (row, lines) in self.long {
            let mut by_column: BTreeMap<usize, usize> = BTreeMap::new();
            for (column, length) in lines {
                // A line breaks between words, so it has less room than its column.
                let room = self.widths.get(column).map_or(WIDTHS.0, |width| (*width).max(WIDTHS.0) - 1);
                *by_column.entry(column).or_default() += length.div_ceil(room).max(1);
            }
            let most = by_column.values().copied().max().unwrap_or(1).min(MOST_LINES);
            if most > 1 {
                self.worksheet.set_row_height(row, most as f64 * LINE)?;
            }
        }
        Ok(self.worksheet)
    }
}

/// The characters of a number with separators.
fn digits(number: f64) -> usize {
    let whole = number.abs().max(1.0).log10() as usize + 1;
    whole + whole / 3 + if whole < 4 { 5 } else { 1 }
}

/// A text that fits in a cell, with control characters made visible.
fn fitting(text: &str) -> String {
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        units <= MOST_TEXT
    };
    model::plain_lines(text).chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sheets_are_short_allowed_and_different() {
        let mut taken = BTreeSet::new();
        for (name, expected) in [
            ("throughput", "throughput"),
            ("Throughput", "Throughput 2"),
            ("a/b [c]: 'd'*?", "a-b -c-- ’d’--"),
            ("Retransmitted segments of every flow", "Retransmitted segments of every"),
            (&"x".repeat(40), &"x".repeat(31)),
            (&"x".repeat(40), &format!("{} 2", "x".repeat(26))),
        ] {
            let found = free_name(name, &taken);
            assert_eq!(found, expected);
            taken.insert(found.to_lowercase());
        }
    }

    #[test]
    fn a_text_fits_in_a_cell() {
        assert_eq!(fitting(&"a".repeat(40_000)).len(), MOST_TEXT);
        assert_eq!(fitting(&"\u{1f600}".repeat(40_000)).encode_utf16().count(), MOST_TEXT - 1);
        assert!(!fitting("a\u{1b}[31m\u{0}").contains(['\u{1b}', '\u{0}']));
    }
}
