//! A table of texts for a terminal: words stay whole, and columns that do not fit beside each other follow below.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};

use crate::labels;

/// A table.
pub(crate) struct Grid<'a> {
    /// The head of each column.
    pub(crate) head: &'a [String],
    pub(crate) rows: &'a [Vec<String>],
    /// Whether a column is numeric: right-aligned, and its values are not wrapped.
    pub(crate) numeric: &'a [bool],
    /// The first columns, which name the rows: each block of columns has them.
    pub(crate) names: usize,
}

/// Spaces around the text of a column.
const PADDING: usize = 2;

impl Grid<'_> {
    /// The table in at most `columns`, if no single column is wider.
    pub(crate) fn text(&self, columns: u16) -> String {
        let blocks = self.blocks(usize::from(columns));
        blocks.iter().map(|block| self.block(block, columns)).collect::<Vec<_>>().join("\n\n")
    }

    /// The least width of a column, without the spaces around it.
    fn least(&self, column: usize) -> usize {
        let word = |text: &String| text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
        let numeric = self.numeric.get(column).copied().unwrap_or(false);
        let cell = |text: &String| if numeric { text.chars().count() } else { word(text) };
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(cell);
        cells.chain(self.head.get(column).map(word)).max().unwrap_or(0)
    }

    /// The columns of each block.
    fn blocks(&self, columns: usize) -> Vec<Vec<usize>> {
        // Columns are separated by a space.
        let width = |chosen: &[usize]| chosen.iter().map(|column| self.least(*column) + PADDING + 1).sum::<usize>() - 1;
        let names: Vec<usize> = (0..self.names.min(self.head.len())).collect();
        let mut blocks = Vec::new();
        let mut block = names.clone();
        for column in names.len()..self.head.len() {
            block.push(column);
            if width(&block) > columns && block.len() > names.len() + 1 {
                block.pop();
                blocks.push(std::mem::replace(&mut block, names.clone()));
                block.push(column);
            }
        }
        blocks.push(block);
        blocks
    }

    fn block(&self, block: &[usize], columns: u16) -> String {
        let of = |row: &[String]| -> Vec<String> {
            block.iter().map(|column| row.get(*column).cloned().unwrap_or_default()).collect()
        };
        let mut table = Table::new();
        table.load_style(labels::TABLE);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        table.set_header(of(self.head));
        table.add_rows(self.rows.iter().map(|row| of(row)));
        for (column, shown) in block.iter().zip(table.column_iter_mut()) {
            let least = u16::try_from(self.least(*column) + PADDING).unwrap_or(u16::MAX);
            if least < columns {
                shown.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
            if self.numeric.get(*column).copied().unwrap_or(false) {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(columns: u16, count: usize) -> String {
        let head: Vec<String> =
            std::iter::once("window".to_owned()).chain((0..count).map(|index| format!("goodput {index}"))).collect();
        let row = |name: &str| -> Vec<String> {
            std::iter::once(name.to_owned())
                .chain((0..count).map(|index| format!("{index}.41 Gbit/s ±1.2 %")))
                .collect()
        };
        let rows = [row("64 KiB"), row("1 MiB")];
        let numeric: Vec<bool> = (0..=count).map(|column| column > 0).collect();
        Grid { head: &head, rows: &rows, numeric: &numeric, names: 1 }.text(columns)
    }

    #[test]
    fn no_word_is_broken_and_what_does_not_fit_follows() {
        for columns in [60, 80, 100, 180] {
            let text = text(columns, 12);
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{text}");
            assert_eq!(text.matches("goodput").count(), 12, "{text}");
            assert_eq!(text.matches(" Gbit/s ±1.2 %").count(), 24, "{text}");
            let blocks = text.matches("window").count();
            assert_eq!(text.matches("64 KiB").count(), blocks, "each block names its rows:\n{text}");
            assert_eq!(blocks, text.split("\n\n").count());
        }
        assert_eq!(text(180, 3).split("\n\n").count(), 1);
    }

    #[test]
    fn a_column_wider_than_the_terminal_is_wrapped() {
        let (head, rows) = (vec!["remarks".to_owned()], [vec!["one two three four five six seven".to_owned()]]);
        let text = Grid { head: &head, rows: &rows, numeric: &[false], names: 0 }.text(20);
        assert!(text.lines().count() > 3, "{text}");
    }
}
