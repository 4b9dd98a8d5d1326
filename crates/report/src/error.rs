//! Errors of rendering.

use model::{Pattern, RunKind, TransportName};
use text::Said;

/// An output that cannot be made from the given runs. Each message names the format and the remedy.
#[derive(Debug, thiserror::Error, Said)]
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
        what: NoForm,
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
    /// Cells can be chosen of plans only.
    #[error("`--cell`: run {run} is not one of a plan, so it has no levels to choose from")]
    NoPlan {
        /// The run's id.
        run: String,
    },
    /// No cell has this factor.
    #[error("`--cell`: run {run} has no factor '{factor}': use {factors}")]
    NoFactor {
        /// The run's id.
        run: String,
        /// The requested factor.
        factor: String,
        /// Those of the plan, separated by commas.
        factors: String,
    },
    /// No cell has this level.
    #[error("`--cell`: run {run} has no level '{level}' of {factor}: use {levels}")]
    NoLevel {
        /// The run's id.
        run: String,
        /// The factor.
        factor: String,
        /// The requested level.
        level: String,
        /// Those of the plan, separated by commas.
        levels: String,
    },
    /// No cell has all of these levels.
    #[error("`--cell {choice}`: run {run} has no cell with all of these levels")]
    NoCell {
        /// The run's id.
        run: String,
        /// The requested levels.
        choice: String,
    },
    /// An option of figures is for other formats.
    #[error("`--{option}` is for {}, not for {format}", users.join(", "))]
    Option {
        /// The option.
        option: &'static str,
        /// The formats that use it.
        users: Vec<&'static str>,
        /// The requested format.
        format: &'static str,
    },
    /// A range is not for the axis of any figure.
    #[error("`--{option} {range}`: {reason} (figure {})", figures.join(", "))]
    Range {
        /// The option.
        option: &'static str,
        /// Its value.
        range: String,
        /// What is wrong for the first figure.
        reason: Box<AxisError>,
        /// The figures.
        figures: Vec<String>,
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

/// What an output format has no form for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoForm {
    /// A run that is not a curve.
    #[error("a run of the kind {0}, which has no curve of block sizes")]
    Kind(RunKind),
    /// A pattern that the format's program does not have.
    #[error("the pattern {0}")]
    Pattern(Pattern),
    /// A transport that the format's program does not have.
    #[error("the transport {}", model::plain(.0.as_str()))]
    Transport(TransportName),
    /// Payload in both directions at the same time.
    #[error("both directions at once")]
    BothDirections,
    /// A result without its bytes, as of a table of rates.
    #[error("a rate without a count of bytes")]
    Uncounted,
    /// A trial without the CPU time that the format's program always prints.
    #[error("a trial whose CPU time was not measured")]
    CpuTime,
}

/// What is wrong with the requested range or scale of an axis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AxisError {
    /// Text that is not a range.
    #[error("'{text}' is not a range: write A:B, such as 64KiB:1MiB, 0:10Gbit or :5ms")]
    Range {
        /// What the user wrote.
        text: String,
    },
    /// Text that does not say which axes are logarithmic.
    #[error("'{text}' names no axes: use x, y, xy or none")]
    Log {
        /// What the user wrote.
        text: String,
    },
    /// There is no figure with axes.
    #[error("there is no such axis")]
    NoAxis,
    /// An axis of names.
    #[error("'{axis}' has names, and no range")]
    Names {
        /// The label of the axis.
        axis: String,
    },
    /// An end of the range that has another unit than the axis.
    #[error(
        "'{text}' is not a value of the axis '{axis}', whose unit is {}",
        if unit.is_empty() { "a number" } else { unit }
    )]
    Unit {
        /// What the user wrote.
        text: String,
        /// The label of the axis.
        axis: String,
        /// Its unit; empty for plain numbers.
        unit: String,
    },
    /// A range that does not ascend.
    #[error("the first value must be below the second")]
    Order,
    /// Zero or less on a logarithmic axis.
    #[error("the axis '{axis}' is logarithmic, so its values are above 0")]
    NotAboveZero {
        /// The label of the axis.
        axis: String,
    },
}
