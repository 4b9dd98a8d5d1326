//! Faults of iperf's results.

use super::Contradiction;

/// A fault of a result of iperf 2 or iperf3.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum IperfError {
    /// An interval that ends before it begins.
    #[error("it ends at {end_s} s, before it begins at {start_s} s")]
    Backwards {
        /// Its start, s.
        start_s: f64,
        /// Its end, s.
        end_s: f64,
    },
    /// A connection, by its number if it is known, without a total.
    #[error("{} has no line for the whole test: it did not complete", named(*.0))]
    NoTotal(Option<u32>),
    /// Totals of some connections only.
    #[error("only {totals} of {connections} connections have a total: the text is cut off")]
    Totals {
        /// Connections.
        connections: usize,
        /// Those with a total.
        totals: usize,
    },
    /// A line of the CSV whose address, time or connection cannot be read.
    #[error("its time, an address or its connection number is invalid")]
    Connection,
    /// A line of the CSV of another number of columns.
    #[error("{0} columns instead of 9 or 14")]
    Columns(usize),
    /// A line that is cut.
    #[error("not a line of iperf CSV")]
    NotCsv,
    /// Lines of a receiver that are reports of some senders only.
    #[error("{reports} of {lines} receiver lines are server reports on the {senders} senders")]
    Reports {
        /// Lines that are reports.
        reports: usize,
        /// Lines of a receiver.
        lines: usize,
        /// Senders.
        senders: usize,
    },
    /// Text of iperf3 without a summary.
    #[error("iperf3's output has no summary: the test did not complete")]
    NoSummary,
    /// A summary of some connections only.
    #[error("the summary lacks lines for some connections: the text is cut off")]
    CutSummary,
    /// Events without the last one.
    #[error("the events stop before the end of the test")]
    CutEvents,
    /// The test of an earlier document, with other figures.
    #[error("the same test as in line {0}, by its cookie, with different figures")]
    SameCookie(u32),
    /// An error instead of a result, in the program's words.
    #[error("iperf3 ended with an error: {0}")]
    Ended(String),
    /// A document of a test that did not start.
    #[error("no start.test_start: the test did not start")]
    NotStarted,
    /// A client's document without the receiver's figures.
    #[error("no end.sum_received: the test did not complete")]
    NotReceived,
    /// A transport that this program does not have.
    #[error("protocol '{0}' is not supported")]
    Protocol(String),
    /// A test without an end.
    #[error("no duration, bytes or blocks to end the test")]
    Endless,
    /// A sum without valid figures.
    #[error("end.{name}{suffix} has no valid bytes, seconds and rate")]
    BadSum {
        /// The sum's key.
        name: &'static str,
        /// What the key of the second direction ends with.
        suffix: &'static str,
    },
    /// A sum that other figures contradict.
    #[error("end.{name}{suffix}: {contradiction}")]
    Sum {
        /// The sum's key.
        name: &'static str,
        /// What the key of the second direction ends with.
        suffix: &'static str,
        /// The figures.
        contradiction: Contradiction,
    },
    /// Sums of one name, and a stream without figures.
    #[error("the sums of both directions have the same names (iperf3 before 3.10), and a stream lacks figures")]
    Stream,
    /// Sums of one name, and no stream of one of the directions.
    #[error("the sums of both directions have the same names (iperf3 before 3.10), and one direction has no stream")]
    NoStream,
}

fn named(connection: Option<u32>) -> String {
    connection.map_or_else(|| "a connection".to_owned(), |number| format!("connection {number}"))
}
