//! Where and how texts are shown.

use text::{Spelling, Text};

use crate::labels;

/// A place for lines of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Width in columns.
    pub columns: u16,
    /// How options and rates are spelled.
    pub spelling: Spelling,
}

impl Default for Layout {
    /// A hundred columns, flags, bits.
    fn default() -> Self {
        Self { columns: 100, spelling: Spelling::default() }
    }
}

impl Layout {
    /// The width in columns.
    pub(crate) fn width(self) -> usize {
        usize::from(self.columns)
    }

    /// The characters of a table.
    pub(crate) fn rows(self, rows: &[Vec<Text>]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| self.shown(cell)).collect()).collect()
    }

    /// The characters of a text, safe for a terminal.
    pub(crate) fn shown(self, text: &Text) -> String {
        labels::plain(&text.shown(self.spelling))
    }
}
