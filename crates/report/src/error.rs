//! Why an output could not be made.

/// An output that cannot be made from the runs given. Each message names the format and what to do instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// There is nothing to report on.
    #[error("{format}: no run to report on: name at least one run, `thru runs` lists them")]
    NoRuns {
        /// The format that was asked for.
        format: &'static str,
    },
    /// The format holds block-size curves only.
    #[error("{format} holds block-size curves, and run {run} is '{kind}': write it as csv or json")]
    NotACurve {
        /// The format that was asked for.
        format: &'static str,
        /// The run's id.
        run: String,
        /// The run's kind.
        kind: String,
    },
    /// The format's tool has no such measurement.
    #[error("{format} has no form for {what} (run {run}): write it as text, csv or json")]
    NoForm {
        /// The format that was asked for.
        format: &'static str,
        /// The run's id.
        run: String,
        /// What it has no form for.
        what: String,
    },
    /// No figure can be drawn from these runs.
    #[error("{format}: nothing to draw: no outcome of these runs has a value; the text report tells why")]
    NothingToDraw {
        /// The format that was asked for.
        format: &'static str,
    },
    /// A figure was named that these runs do not have.
    #[error("{format}: these runs have no figure '{wanted}': choose from {available}")]
    NoFigure {
        /// The format that was asked for.
        format: &'static str,
        /// The figure that was named.
        wanted: String,
        /// The figures there are, separated by commas.
        available: String,
    },
    /// A run could not be written as JSON.
    #[error("writing run {run} as JSON")]
    Json {
        /// The run's id.
        run: String,
        /// What serde said.
        #[source]
        source: serde_json::Error,
    },
    /// The drawing could not be turned into pixels.
    #[error("drawing figure '{figure}' at {width} pixels: {why}: write svg instead, or choose another width")]
    Raster {
        /// The figure.
        figure: String,
        /// The width that was asked for.
        width: u32,
        /// What the rasteriser said.
        why: String,
    },
}
