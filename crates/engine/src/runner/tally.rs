//! What a trial returns.

use model::EndTally;

use crate::core::EngineError;

/// What one end counted in one leg, and what ended the trial early, if anything did.
#[derive(Debug)]
pub struct LegTally {
    /// One for each leg of the plan that began.
    pub legs: Vec<EndTally>,
    /// For each leg: first and last send, first and last arrival, in ns of this host's monotonic clock, 0 for never.
    /// They allow the tallies of several processes of one host to be added up.
    pub spans: Vec<[u64; 4]>,
    /// Why the trial ended early; `legs` has the counts until then.
    pub failure: Option<EngineError>,
    /// From the release of the threads to the end of the last one, ns.
    pub elapsed_ns: u64,
    /// Bytes that each of the plan's links had sent and received when the warm-up ended; empty without one.
    pub warm: Vec<[u64; 2]>,
}
