//! Faults of documents and tables.

use model::{Run, plain};

/// A fault of a JSON document, or of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Text that is not JSON, in the words of the parser.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// A key with two values, by its path.
    #[error("{} appears twice with different values", plain(.0))]
    TwoValues(String),
    /// A run that the text has again.
    #[error("run {} is already in line {first}: imported once", plain(id))]
    SameRun {
        /// Its id.
        id: String,
        /// The line of the first one.
        first: u32,
    },
    /// A document of the right schema that cannot be read, in the words of the parser.
    #[error("not a {schema} document: {0}", schema = Run::SCHEMA)]
    NotARun(String),
    /// A document of an unknown program.
    #[error("the document has no schema such as {}", Run::SCHEMA)]
    NoSchema,
    /// Another document of this program, by its schema.
    #[error("a {} document is not a run: import the runs that `thru export --format json` writes", plain(.0))]
    OtherKind(String),
    /// A run of another version of this program.
    #[error(
        "a Throughline document of schema version {}; this version of thru reads {own}: update thru",
        plain(version)
    )]
    Version {
        /// That of the document.
        version: String,
        /// The one that is read.
        own: &'static str,
    },
    /// A file of flent without its series.
    #[error("the file has no x_values and results")]
    NoSeries,
    /// Times of flent that are not in order.
    #[error("its x_values (times) go backwards")]
    Times,
    /// A series with more or fewer values than times.
    #[error("series '{series}' has {values} values for {times} times")]
    Values {
        /// Its name.
        series: String,
        /// Number of values.
        values: usize,
        /// Number of times.
        times: usize,
    },
    /// A series with an impossible value.
    #[error("series '{series}' has the value {value}")]
    Value {
        /// Its name.
        series: String,
        /// As in the document.
        value: String,
    },
    /// A series whose unit is not in the file.
    #[error("series '{0}': the unit is missing")]
    NoUnit(String),
    /// A series without values.
    #[error("series '{0}': no value")]
    NoValue(String),
    /// A series with another unit than a rate or a time.
    #[error("series '{series}': the unit '{unit}' is neither a rate nor a time")]
    Unit {
        /// Its name.
        series: String,
        /// As in the file.
        unit: String,
    },
    /// A table that is too large.
    #[error("a table of {rows} rows and {columns} columns: at most {most} of each are imported")]
    TooLarge {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// The number that is imported.
        most: usize,
    },
    /// A table without a unit.
    #[error(
        "the table has no unit: write it in the first cell, with the names of the factors, such as '{row} \\ {column} (Mbit/s)'"
    )]
    NoUnitOfTable {
        /// What the rows are of.
        row: String,
        /// What the columns are of.
        column: String,
    },
    /// A row of a table that is shorter or longer than its head.
    #[error("{cells} cells, but the first line has {head}")]
    Cells {
        /// Cells of the row.
        cells: usize,
        /// Cells of the head.
        head: usize,
    },
    /// A cell without a value that can be one.
    #[error("'{text}' at {} and {} is not a number above 0", at[0].join(" "), at[1].join(" "))]
    Cell {
        /// As in the table.
        text: String,
        /// The factor and the level of its row, and of its column.
        at: Box<[[String; 2]; 2]>,
    },
}
