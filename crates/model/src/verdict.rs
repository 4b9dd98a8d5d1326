//! What to know of a trial or an outcome before relying on it.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A flag on a trial or an outcome that says what to know before relying on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// Nothing moved for the stall time, which ended the trial.
    Stalled,
    /// Datagrams were sent for a whole trial, and none arrived.
    NothingArrived,
    /// The trial was too short for the clock, or had too few arrivals.
    ResolutionLimited,
    /// The two ends' byte counts do not add up.
    ByteCountMismatch,
    /// The sender of a paced stream fell behind its rate because its thread or its host was too slow: less was offered than
    /// requested.
    RateNotOffered,
    /// The rate had not settled: it was still growing after the start-up of the connections, or the trial was too short to see that it was
    /// not.
    NotSettled,
    /// The send buffer limited the only connection of the only trial. The kernel decides how much payload fits into the buffer, and a
    /// connection may change from one rate to another at any time.
    SendBufferLimited,
    /// The interval did not become as narrow as the target before the budget or the trials were spent. Only where the target could end
    /// the measurement, which a fixed number of trials excludes. A point of a curve has it only where a budget of at most four times
    /// as much would have sufficed.
    TargetMissed,
    /// The legs of a point of a curve vary too much for its interval to become as narrow as requested.
    Noisy,
    /// A point of a curve is as precise as requested relative to the other sizes, but the level that all sizes share moved; or the
    /// values of other trials rise or fall over the run.
    Drifting,
    /// Too few trials for an interval: 3, or 10 legs of a point of a curve.
    FewTrials,
    /// Ended before its stop rule was met (an interrupt or a lost peer).
    CutShort,
    /// Another measurement ran on one of the hosts at the same time.
    Overlapped,
    /// Round trips were timed in batches; percentiles are of batch means.
    BatchTimed,
    /// Datagrams were dropped at the receiver's socket: by the host, not by the path.
    SocketDrops,
    /// Datagrams were lost.
    Loss,
    /// NetPIPE's limit or the budget left out blocks larger than this one.
    SelfLimited,
    /// Sizes of the curve were left out between the others, because a leg of each did not fit into a fifth of the budget.
    Thinned,
    /// The two ends are threads or processes of one host without a network between them.
    SameHost,
    /// The kernel's TCP metrics cache of a sending end was on and was not flushed: a trial may have started with values that an
    /// earlier one left there.
    MetricsKept,
    /// The goodput is above its ceiling: the measurement or a figure behind the ceiling is wrong.
    AboveCeiling,
    /// A flow got nothing in a trial in which all flows had the same time.
    Starved,
    /// The plan's requirements were not met before at least one trial, which was skipped.
    Unmet,
    /// The lab's emulator delivered packets more than 1 ms late: the measured path is not the requested one.
    EmulatorLate,
    /// The lab did not report on its emulated links: whether they were on time is unknown.
    EmulatorUnreported,
    /// Receivers slept between their reads (`delayed_reads`), which applications do not do.
    DelayedReads,
    /// Connections were closed while the next ones were opened (`overlap_close`).
    OverlapClose,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 27] = [
        Self::Stalled,
        Self::NothingArrived,
        Self::ResolutionLimited,
        Self::ByteCountMismatch,
        Self::RateNotOffered,
        Self::NotSettled,
        Self::SendBufferLimited,
        Self::TargetMissed,
        Self::Noisy,
        Self::Drifting,
        Self::FewTrials,
        Self::CutShort,
        Self::Overlapped,
        Self::BatchTimed,
        Self::SocketDrops,
        Self::Loss,
        Self::SelfLimited,
        Self::Thinned,
        Self::SameHost,
        Self::MetricsKept,
        Self::AboveCeiling,
        Self::Starved,
        Self::Unmet,
        Self::EmulatorLate,
        Self::EmulatorUnreported,
        Self::DelayedReads,
        Self::OverlapClose,
    ];

    /// Its name in documents and on screens, such as `byte-count-mismatch`.
    #[must_use]
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_verdicts_are_listed() {
        // The message of an unknown one names those that exist.
        let known = serde_json::from_str::<Verdict>("\"x\"").unwrap_err().to_string();
        assert_eq!(known.matches('`').count() / 2 - 1, Verdict::ALL.len(), "{known}");
        assert!(Verdict::ALL.iter().all(|verdict| known.contains(&format!("`{}`", verdict.name()))), "{known}");
    }
}
