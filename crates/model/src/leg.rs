//! A part of a pass, and what the ends of a pass measured.

use serde::{Deserialize, Serialize};
use text::Text;

use crate::{EndPass, EndTally, Spec, Stop};

/// A part of a pass over one set of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// Bytes of a block or request.
    pub block: u64,
    /// Bytes of a response.
    pub reply: u64,
    /// When it ends.
    pub stop: Stop,
    /// Expected time of one block or exchange, ns; 0 where unknown.
    #[serde(default)]
    pub expected_ns: u64,
}

impl Leg {
    /// The only leg of a trial of `spec`.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        Self { block: spec.block, reply: spec.reply_bytes(), stop: spec.stop, expected_ns: 0 }
    }

    /// The measurement with this leg's blocks in place of its own.
    #[must_use]
    pub fn with_blocks(&self, spec: &Spec) -> Spec {
        let reply = (spec.reply.is_some() || self.reply != self.block).then_some(self.reply);
        Spec { block: self.block, reply, ..spec.clone() }
    }
}

/// What is known of a path's times before a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathTimes {
    /// A round trip, ns; 0 if it is not known.
    pub round_trip_ns: u64,
    /// How much longer than on a short path without loss an answer may take, ns: deadlines are that much later.
    pub patience_ns: u64,
}

/// One end's result of a pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EndResult {
    /// One for each leg that was started.
    pub tallies: Vec<EndTally>,
    /// Why it ended early, if it did.
    pub failure: Option<Text>,
    /// From the start to the end at this end, ns.
    pub elapsed_ns: u64,
    /// Activity of the host.
    pub host: EndPass,
    /// Other measurements on its agent at the same time.
    #[serde(default)]
    pub overlapped_by: u32,
}

/// The results of both ends of a pass.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BothEnds {
    /// The near end's results.
    pub near: EndResult,
    /// The far end's results; `None` if the near end measured alone.
    pub far: Option<EndResult>,
    /// Why it ended early, if it did.
    pub failure: Option<Text>,
}
