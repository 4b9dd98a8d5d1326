//! The result of one measurement.

use serde::{Deserialize, Serialize};

use crate::peer::Reading;

/// The result of one measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The tool's numbers.
    pub reading: Reading,
    /// What its processes used.
    pub used: Used,
}

/// Resource usage of a tool's processes in a round, with all descendants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// CPU time of the client's end, ns.
    pub client_cpu_ns: u64,
    /// Of the server's end; null if the client starts both.
    pub server_cpu_ns: Option<u64>,
    /// The largest resident set of one process of the client's end, bytes.
    pub client_peak_bytes: u64,
    /// Of the server's end.
    pub server_peak_bytes: Option<u64>,
    /// Bytes or exchanges moved; null if not applicable.
    pub amount: Option<f64>,
}
