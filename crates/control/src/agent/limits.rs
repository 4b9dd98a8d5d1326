//! What an agent lets a coordinator do to its host.

use model::{Spec, Stop, units};

/// Bounds; each refusal names the one that was met and how to raise it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Coordinators connected at once.
    pub clients: usize,
    /// Nanoseconds that one coordinator may hold the machine.
    pub hold_ns: u64,
    /// Flows of a measurement.
    pub flows: u32,
    /// Worker processes of a measurement.
    pub processes: u32,
    /// Bytes of buffers of a measurement.
    pub memory_bytes: u64,
    /// Rate of a stream in bit/s; `None` for no bound.
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

impl Limits {
    /// Why `spec` is not allowed here, if it is not.
    pub(crate) fn refuse(&self, spec: &Spec) -> Option<String> {
        if spec.flows > self.flows {
            return Some(format!(
                "{} flows are over this agent's limit of {}; raise `thru serve --max-flows`",
                spec.flows, self.flows
            ));
        }
        if spec.processes > self.processes {
            return Some(format!(
                "{} processes are over this agent's limit of {}; use fewer --processes",
                spec.processes, self.processes
            ));
        }
        let threads = u64::from(spec.threads.unwrap_or(64).min(spec.flows));
        let memory = threads.saturating_mul(2).saturating_mul(spec.block.max(spec.reply_bytes()));
        if memory > self.memory_bytes {
            return Some(format!(
                "{memory} bytes of buffers are over this agent's limit of {}; use a smaller --block or fewer --threads",
                self.memory_bytes
            ));
        }
        if let Stop::TimeNs(ns) = spec.stop
            && ns > self.hold_ns
        {
            return Some(format!(
                "{} is over this agent's limit of {}; raise `thru serve --max-time`",
                units::seconds(ns as f64),
                units::seconds(self.hold_ns as f64)
            ));
        }
        match self.rate_bps {
            Some(limit)
                if spec.rate_bps.is_none_or(|rate| rate > limit)
                    && !matches!(spec.pattern.as_str(), "rr" | "crr" | "pingpong") =>
            {
                Some(format!(
                    "this agent carries at most {}; use --rate {limit} or less",
                    units::bits_per_second(limit as f64)
                ))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_is_named_with_its_remedy() {
        let limits = Limits { flows: 4, rate_bps: Some(1_000_000), memory_bytes: 1 << 20, ..Limits::default() };
        let spec = |change: fn(&mut Spec)| {
            let mut spec = Spec { rate_bps: Some(1_000), ..Spec::new("tcp", "stream") };
            change(&mut spec);
            spec
        };
        assert_eq!(limits.refuse(&spec(|_| {})), None);
        assert!(limits.refuse(&spec(|spec| spec.flows = 5)).is_some_and(|reason| reason.contains("--max-flows")));
        assert!(limits.refuse(&spec(|spec| spec.block = 1 << 20)).is_some_and(|reason| reason.contains("--block")));
        assert!(limits.refuse(&spec(|spec| spec.rate_bps = None)).is_some_and(|reason| reason.contains("--rate")));
        assert!(
            limits
                .refuse(&spec(|spec| spec.stop = Stop::TimeNs(u64::MAX)))
                .is_some_and(|reason| reason.contains("--max-time"))
        );
    }
}
