//! Figures as vector graphics.

use model::Figure;

use crate::draw::{Use, draw};
use crate::{Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    Ok(view.figures("svg")?.iter().map(|figure| piece(figure, view.width())).collect())
}

/// A figure as a file.
pub(super) fn piece(figure: &Figure, width: u32) -> Piece {
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    let text = format!("{head}{}", draw(figure, Use::File, f64::from(width)));
    Piece::new(&figure.id, "svg", text.into_bytes())
}
