//! Faults of the results of programs that measure streams.

use super::Contradiction;

/// A fault of a result of netperf.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetperfResultError {
    /// A test of a transport that this program does not have.
    #[error("transport {0} is not supported")]
    Transport(&'static str),
    /// A row with other words among its numbers.
    #[error("not a row of numbers")]
    NotNumbers,
    /// A duration that cannot be one, s.
    #[error("the duration is {0} s")]
    Duration(f64),
    /// A rate that netperf does not know.
    #[error("its rate is unknown")]
    NoRate,
    /// A size that cannot be one, bytes.
    #[error("the block size is {0} bytes")]
    Block(f64),
    /// A row whose number of columns no test of its kind has.
    #[error("no table of this test has {0} columns")]
    Columns(usize),
    /// A value that is not a number.
    #[error("{key} is '{value}', which is not a valid figure")]
    Figure {
        /// Its key.
        key: &'static str,
        /// As printed.
        value: String,
    },
}

/// A fault of a line of NetPIPE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetpipeLineError {
    /// A unit of another program, of "rate" or "time".
    #[error("the {0} has a unit that NetPIPE does not print")]
    Unit(&'static str),
    /// A line of a file without valid figures.
    #[error("not a line of np.out, or its figures contradict each other")]
    NotAPoint,
}

/// A fault of a test of qperf.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{test}: {fault}{}", own_error.as_ref().map_or(String::new(), |error| format!(": {error}")))]
pub struct QperfError {
    /// Name of the test.
    pub test: String,
    /// What is wrong.
    pub fault: QperfFault,
    /// The program's own error below it.
    pub own_error: Option<String>,
}

/// What is wrong with a test of qperf.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QperfFault {
    /// A figure that is there twice.
    #[error("two values of {0}")]
    Twice(String),
    /// A test without its result: "latency" or "bandwidth".
    #[error("no {0}")]
    Missing(&'static str),
    /// A test of something else.
    #[error("neither a latency nor a bandwidth")]
    Other,
    /// Figures that contradict each other.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
}

/// A fault of a result of nttcp, nuttcp, rapid or sockperf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// Not the bytes that were requested.
    #[error("{bytes} bytes instead of the requested {requested}")]
    Bytes {
        /// Those of the result.
        bytes: u64,
        /// The requested ones.
        requested: u64,
    },
    /// Lines of intervals alone; their number.
    #[error("{0} interval lines without a summary line")]
    IntervalsAlone(usize),
    /// A throughput that cannot be one.
    #[error("the throughput is not a number above 0")]
    Throughput,
    /// A test of sockperf that was cut short.
    #[error("no latency with percentiles, and no throughput: the test did not complete")]
    Incomplete,
    /// A higher percentile below a lower one.
    #[error("its percentiles are out of order")]
    Percentiles,
}
