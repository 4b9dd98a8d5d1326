//! Why a text or a part of it is not imported. Faults of several formats are here; those of one family are in a file of their own.

mod contradiction;
mod document;
mod host;
mod iperf;
mod path;
mod stream;

pub use contradiction::Contradiction;
pub use document::DocumentError;
pub use host::HostError;
pub use iperf::IperfError;
pub use path::PathError;
pub use stream::{NetperfResultError, NetpipeLineError, QperfError, QperfFault, StreamError};

/// Why a text or a part of it is not imported.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Nothing but numbers.
    #[error("only numbers: the text does not say what they measure or in which unit")]
    NumbersAlone,
    /// No format reads it; the names of all formats.
    #[error("the format was not recognised; supported formats: {}", .0.join(", "))]
    UnknownFormat(Vec<&'static str>),
    /// A format without anything to import.
    #[error("no measurement found")]
    Nothing,
    /// More than is imported.
    #[error("more than {most} {what}; the others were not imported")]
    TooMany {
        /// The number that is imported.
        most: usize,
        /// What is counted: "lines", "rows" and others.
        what: &'static str,
    },
    /// The program that measured reports an error.
    #[error("{program}'s own error: {error}")]
    OwnError {
        /// The program.
        program: &'static str,
        /// Its words.
        error: String,
    },
    /// Nothing of this name, such as "bytes and no rate".
    #[error("no {0}")]
    Missing(&'static str),
    /// Something that lacks what belongs to it.
    #[error("{what} without {lacks}")]
    Without {
        /// What is there.
        what: &'static str,
        /// What is not.
        lacks: &'static str,
    },
    /// A word that cannot be read as what its place in the text demands.
    #[error("'{word}' is not {what}")]
    Word {
        /// As printed.
        word: String,
        /// What is expected: "a number", "an integer", "a size" or "a rate".
        what: &'static str,
    },
    /// The same, by the name of its place.
    #[error("{name} is not {what}")]
    Figure {
        /// The figure's name.
        name: &'static str,
        /// What is expected: "a number" or "an integer".
        what: &'static str,
    },
    /// A line of another number of columns.
    #[error("{found} columns instead of {expected}")]
    Columns {
        /// Those of the line.
        found: usize,
        /// Those that the program prints.
        expected: usize,
    },
    /// A row of another number of columns than its table.
    #[error("{found} {what}, but the table has {expected}")]
    Row {
        /// Those of the row.
        found: usize,
        /// What is counted: "columns" or "numbers".
        what: &'static str,
        /// Those of the table.
        expected: usize,
    },
    /// Figures that contradict each other.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// A fault of JSON, a run of this program, flent or a table.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A fault of iperf 2 or iperf3.
    #[error(transparent)]
    Iperf(#[from] IperfError),
    /// A fault of netperf.
    #[error(transparent)]
    Netperf(#[from] NetperfResultError),
    /// A fault of NetPIPE.
    #[error(transparent)]
    Netpipe(#[from] NetpipeLineError),
    /// A fault of a qperf test.
    #[error(transparent)]
    Qperf(#[from] Box<QperfError>),
    /// A fault of nttcp, nuttcp, rapid or sockperf.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A fault of round trips or hops.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A fault of a host's settings, interfaces or activity.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl ImportError {
    /// A word that is not `what`.
    pub(crate) fn word(word: impl Into<String>, what: &'static str) -> Self {
        Self::Word { word: word.into(), what }
    }
}
