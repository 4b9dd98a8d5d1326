//! The result of a probe during a stream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RttTally;

/// Round trips with and without a stream on the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Responsiveness {
    /// Before the first trial, without load; null if that could not be measured.
    pub idle: Option<RttTally>,
    /// During the trials.
    pub loaded: RttTally,
    /// Median under load less median without load, ns: the delay that the load adds in queues. Never below 0; null if one of the
    /// medians is of fewer than 10 round trips.
    pub bufferbloat_ns: Option<f64>,
    /// Round trips per minute under load: 60 s over the mean of the faster 95 % of the loaded round trips. The formula is that
    /// of draft-ietf-ippm-responsiveness for one kind of probe: request and response over a separate open connection. The draft
    /// also averages connection and TLS set-up and probes within the loaded connections.
    pub rpm: f64,
}

impl Responsiveness {
    /// Fewest round trips for a median of a probe.
    pub const MIN_SAMPLES: u64 = 10;
}
