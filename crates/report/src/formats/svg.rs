//! Figures as vector graphics.

use drawing::{Sheet, Use, draw};
use model::Figure;

use crate::{Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    Ok(view.figures("svg")?.iter().map(|figure| piece(figure, view.sheet())).collect())
}

/// A figure as a file.
pub(super) fn piece(figure: &Figure, sheet: Sheet) -> Piece {
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    let text = format!("{head}{}", draw(figure, Use::File, sheet).svg);
    Piece::new(&figure.id, "svg", text.into_bytes())
}
