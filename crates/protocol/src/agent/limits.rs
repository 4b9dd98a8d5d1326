//! The limits that an agent sets for its coordinators.

use model::{BitRate, Leg, Nanos, Spec, Stop};
use text::Said;

/// Most legs of a trial: a curve has some hundreds.
const MAX_LEGS: usize = 5_000;
/// Shortest interval of a trial's series, and shortest stall time, ns.
const MIN_INTERVAL_NS: u64 = 1_000_000;

/// Limits; each refusal names the limit and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Coordinators connected at the same time.
    pub clients: usize,
    /// Nanoseconds that one coordinator may have the machine.
    pub hold_ns: u64,
    /// Flows of a measurement.
    pub flows: u32,
    /// Worker processes of a measurement.
    pub processes: u32,
    /// Bytes of buffers of a measurement.
    pub memory_bytes: u64,
    /// Rate of a stream in bit/s; `None` for no limit.
    pub rate_bps: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 256,
            hold_ns: 3_600_000_000_000,
            flows: Spec::MAX_FLOWS,
            processes: 64,
            memory_bytes: 8 << 30,
            rate_bps: None,
        }
    }
}

/// What a trial, or several simultaneous trials, use of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Load {
    flows: u64,
    processes: u64,
    memory_bytes: u64,
    /// Rate of streams, bit/s.
    rate_bps: u64,
}

impl Load {
    /// The load of a trial with these legs.
    pub(crate) fn of(spec: &Spec, legs: &[Leg]) -> Self {
        let threads = u64::from(spec.threads.unwrap_or(64).min(spec.flows));
        let of_legs = legs.iter().map(|leg| leg.block.max(leg.reply));
        let block = of_legs.chain([spec.block, spec.reply_bytes()]).max().unwrap_or_default();
        Self {
            flows: spec.flows.into(),
            processes: spec.processes.into(),
            memory_bytes: threads.saturating_mul(2).saturating_mul(block),
            rate_bps: if sends_a_stream(spec) { spec.rate_bps.unwrap_or_default() } else { 0 },
        }
    }

    /// Both at the same time.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            flows: self.flows.saturating_add(other.flows),
            processes: self.processes.saturating_add(other.processes),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
            rate_bps: self.rate_bps.saturating_add(other.rate_bps),
        }
    }
}

impl Limits {
    /// Checks a trial of `spec` with these legs. The other trials that the coordinator runs at the same time use `beside`.
    ///
    /// # Errors
    /// It exceeds a limit.
    pub(crate) fn check(&self, spec: &Spec, legs: &[Leg], beside: &Load) -> Result<(), LimitError> {
        let all = Load::of(spec, legs).and(beside);
        let together = *beside != Load::default();
        if all.flows > self.flows.into() {
            return Err(LimitError::Flows { flows: all.flows, together, limit: self.flows });
        }
        if all.processes > self.processes.into() {
            return Err(LimitError::Processes { processes: all.processes, together, limit: self.processes });
        }
        if legs.len() > MAX_LEGS {
            return Err(LimitError::Legs { legs: legs.len() });
        }
        // An interval of 0 means no series.
        if (1..MIN_INTERVAL_NS).contains(&spec.interval_ns) {
            return Err(LimitError::Interval { ns: spec.interval_ns });
        }
        if spec.stall_ns < MIN_INTERVAL_NS {
            return Err(LimitError::Stall { ns: spec.stall_ns });
        }
        if all.memory_bytes > self.memory_bytes {
            return Err(LimitError::Memory { bytes: all.memory_bytes, together, limit: self.memory_bytes });
        }
        self.check_time(spec, legs)?;
        self.check_rate(spec, all.rate_bps, together)
    }

    /// The times of the legs are added up.
    fn check_time(&self, spec: &Spec, legs: &[Leg]) -> Result<(), LimitError> {
        let time = |stop: &Stop| match stop {
            Stop::TimeNs(ns) | Stop::AboutNs(ns) => *ns,
            _ => 0,
        };
        let of_legs = legs.iter().fold(0_u64, |sum, leg| sum.saturating_add(time(&leg.stop)));
        let ns = of_legs.max(time(&spec.stop));
        if ns <= self.hold_ns {
            return Ok(());
        }
        Err(LimitError::Time { time: Nanos(ns), limit: Nanos(self.hold_ns) })
    }

    /// `all_bps` is the rate of all tests at the same time.
    fn check_rate(&self, spec: &Spec, all_bps: u64, together: bool) -> Result<(), LimitError> {
        match self.rate_bps {
            Some(limit) if sends_a_stream(spec) && (spec.rate_bps.is_none() || all_bps > limit) => {
                Err(LimitError::Rate { together, limit })
            }
            _ => Ok(()),
        }
    }
}

/// Which limit of an agent a trial exceeds, and the remedy. `together`: only together with the other trials that run at the same time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
pub(crate) enum LimitError {
    /// Too many flows.
    #[error("{flows} flows{} exceed this agent's limit of {limit}; raise `--max-flows` of the agent", at_once(*together))]
    Flows { flows: u64, together: bool, limit: u32 },
    /// Too many worker processes.
    #[error("{processes} processes{} exceed this agent's limit of {limit}; use fewer `--processes`", at_once(*together))]
    Processes { processes: u64, together: bool, limit: u32 },
    /// Too many sizes in a pass.
    #[error("{legs} sizes in a pass exceed this agent's limit of {MAX_LEGS}; use fewer sizes")]
    Legs { legs: usize },
    /// The entries of its series are too short.
    #[error("`--interval` of {ns} ns is below this agent's limit; use `--interval 1ms` or more")]
    Interval { ns: u64 },
    /// Its stall time is too short.
    #[error("`--stall` of {ns} ns is below this agent's limit; use `--stall 1ms` or more")]
    Stall { ns: u64 },
    /// Too much memory for its buffers.
    #[error(
        "{bytes} bytes of buffers{} exceed this agent's limit of {limit}; use a smaller `--block` or fewer `--threads`",
        at_once(*together)
    )]
    Memory { bytes: u64, together: bool, limit: u64 },
    /// Too long.
    #[error("{time} exceeds this agent's limit of {limit}; raise `--max-time` of the agent")]
    Time { time: Nanos, limit: Nanos },
    /// Too fast, or without a limit of its own.
    #[error("this agent's limit{} is {}; use `--rate {limit}` or less", at_once(*together), BitRate(*limit))]
    Rate { together: bool, limit: u64 },
}

fn at_once(together: bool) -> &'static str {
    if together { " in simultaneous tests" } else { "" }
}

/// Whether the limit of the rate applies.
fn sends_a_stream(spec: &Spec) -> bool {
    spec.pattern.is_bulk()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Message, ToAgent};
    use model::Pattern;

    #[test]
    fn each_limit_is_named_with_its_remedy() {
        let limits = Limits { flows: 4, rate_bps: Some(1_000_000), memory_bytes: 1 << 20, ..Limits::default() };
        let refused = |change: fn(&mut Spec)| {
            let mut spec = Spec { rate_bps: Some(1_000), ..Spec::new("tcp", Pattern::Stream) };
            change(&mut spec);
            limits.check(&spec, &[], &Load::default()).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refused(|_| {}), "");
        assert!(refused(|spec| spec.flows = 5).contains("`--max-flows`"));
        assert!(refused(|spec| spec.block = 1 << 20).contains("`--block`"));
        assert!(refused(|spec| spec.rate_bps = None).contains("`--rate "));
        assert!(refused(|spec| spec.stop = Stop::TimeNs(u64::MAX)).contains("`--max-time`"));
        assert!(refused(|spec| spec.interval_ns = 1_000).contains("`--interval`"));
        assert!(refused(|spec| spec.stall_ns = 0).contains("`--stall`"));
        assert_eq!(refused(|spec| spec.interval_ns = 0), "");
    }

    #[test]
    fn the_most_legs_fit_in_a_frame() {
        let leg = Leg { block: u64::MAX, reply: u64::MAX, stop: Stop::TimeNs(u64::MAX), expected_ns: u64::MAX };
        let legs = serde_json::to_vec(&vec![leg; MAX_LEGS]).unwrap();
        assert!(legs.len() < ToAgent::MAX_FRAME / 4 * 3, "{} bytes", legs.len());
    }

    #[test]
    fn legs_have_the_same_limits() {
        let limits = Limits { memory_bytes: 1 << 20, hold_ns: 10_000_000_000, ..Limits::default() };
        let spec = Spec::new("tcp", Pattern::Rr);
        let leg = Leg { block: 1, reply: 1, stop: Stop::TimeNs(4_000_000_000), expected_ns: 0 };
        let refused = |legs: &[Leg]| {
            limits.check(&spec, legs, &Load::default()).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refused(&[leg; 2]), "");
        assert!(refused(&[leg; 3]).contains("`--max-time`"), "their times add up");
        assert!(refused(&[Leg { block: 1 << 20, ..leg }]).contains("`--block`"));
        assert!(refused(&[leg, Leg { reply: 1 << 20, ..leg }]).contains("`--block`"));
        assert!(refused(&[Leg { stop: Stop::AboutNs(u64::MAX), ..leg }; 2]).contains("`--max-time`"));
        assert!(refused(&vec![Leg { stop: Stop::Blocks(1), ..leg }; MAX_LEGS + 1]).contains("sizes"));
    }
}
