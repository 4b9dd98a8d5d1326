//! What a probe beside a stream found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RttTally;

/// Round trips with and without the load of a stream on the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Responsiveness {
    /// Before the first trial, with nothing else sent; null where that could not be measured.
    pub idle: Option<RttTally>,
    /// During the trials.
    pub loaded: RttTally,
    /// Median under load less the median before it, ns: what the load added by standing in queues. Never below 0; null where one
    /// of the two rests on fewer than 10 round trips.
    pub bufferbloat_ns: Option<f64>,
    /// Round trips per minute under load: 60 s over the mean of the faster 95 % of the loaded round trips. The formula is that
    /// of draft-ietf-ippm-responsiveness for one kind of probe, request and response over an open connection of its own;
    /// the draft also averages in connection and TLS set-up and probes within the loaded connections.
    pub rpm: f64,
}

impl Responsiveness {
    /// Fewest round trips that a median of a probe may rest on.
    pub const MIN_SAMPLES: u64 = 10;
}
