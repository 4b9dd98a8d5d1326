//! Figures as vector graphics.

use crate::draw::{Use, draw};
use crate::{Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    let figures = view.figures("svg")?;
    let piece = |figure: &model::Figure| {
        let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
        Piece::new(&figure.id, "svg", format!("{head}{}", draw(figure, Use::File, f64::from(view.pixels))).into_bytes())
    };
    Ok(figures.iter().map(piece).collect())
}
