//! Errors of rendering.

use model::RunKind;

/// An output that cannot be made from the given runs. Each message names the format and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// No run was given.
    #[error("{format}: no run given: name at least one; `thru runs` lists them")]
    NoRuns {
        /// The requested format.
        format: &'static str,
    },
    /// The format holds block-size curves only.
    #[error("{format} holds only block-size curves, and run {run} is of the kind '{kind}': use csv or json")]
    NotACurve {
        /// The requested format.
        format: &'static str,
        /// The run's id.
        run: String,
        /// The run's kind.
        kind: RunKind,
    },
    /// The format's program has no such measurement.
    #[error("{format} has no form for {what} (run {run}): use text, csv or json")]
    NoForm {
        /// The requested format.
        format: &'static str,
        /// The run's id.
        run: String,
        /// What the format cannot express.
        what: String,
    },
    /// No figure can be drawn from these runs.
    #[error("{format}: no outcome of these runs has a value to draw: see the text report for the reason")]
    NothingToDraw {
        /// The requested format.
        format: &'static str,
    },
    /// The named figure does not exist for these runs.
    #[error("{format}: these runs have no figure '{requested}': use one of {available}")]
    NoFigure {
        /// The requested format.
        format: &'static str,
        /// The requested figure.
        requested: String,
        /// The available figures, separated by commas.
        available: String,
    },
    /// An option of figures is not for the format, or its value not for the axes.
    #[error("{what}")]
    Option {
        /// The option, its value and the reason.
        what: String,
    },
    /// A run could not be written as JSON.
    #[error("writing run {run} as JSON")]
    Json {
        /// The run's id.
        run: String,
        /// The error of serde.
        #[source]
        source: serde_json::Error,
    },
    /// The workbook could not be written.
    #[error("xlsx: {why}: use csv or json")]
    Workbook {
        /// The error of the writer.
        why: String,
    },
    /// The Parquet file could not be written.
    #[error("parquet: {why}: use csv or json")]
    Parquet {
        /// The error of the writer.
        why: String,
    },
    /// The drawing could not be turned into pixels.
    #[error("figure '{figure}' cannot be drawn at {width} pixels: {why}: use svg, or another width")]
    Raster {
        /// The figure.
        figure: String,
        /// The requested width.
        width: u32,
        /// The rasteriser's error.
        why: String,
    },
}
