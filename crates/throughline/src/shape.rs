//! How a run is shown.

use std::path::Path;

/// How a run is shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shape<'a> {
    /// For a curve: also write this NetPIPE file.
    pub np: Option<&'a Path>,
    /// For a curve: print every row, not only the answer.
    pub all: bool,
    /// The lines while it runs.
    pub lines: Lines,
}

/// The lines of a run while it runs, about one each second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lines {
    /// None.
    #[default]
    Off,
    /// One for all flows.
    Sum,
    /// Also one for each flow.
    Each,
}
