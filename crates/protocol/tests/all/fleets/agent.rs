//! An agent of a simulated fleet, with its host.

use std::time::Duration;

use model::random::SplitMix64;
use protocol::agent::{Limits, Rules};

use super::super::host::Host;
use super::super::machine::Machine;
use super::Faults;

pub(super) struct AgentSide {
    pub(super) machine: Machine,
    pub(super) rules: Rules,
    pub(super) slots: usize,
    /// Number of the agent's process; `None` while none runs.
    pub(super) life: Option<u64>,
    pub(super) cut_off: bool,
    /// It sends what it likes.
    pub(super) hostile: bool,
}

impl AgentSide {
    pub(super) fn new(hostile: bool, faults: Faults, random: &mut SplitMix64) -> Self {
        let slots = 1 + random.below(8) / 7;
        let rules = Rules {
            limits: Limits::default(),
            allows_tuning: true,
            grace: Duration::from_secs(random.below(30) as u64),
        };
        let host = Host::with(10_u64.pow(5 + random.below(4) as u32), faults.fails_one_in.unwrap_or(usize::MAX));
        let machine = Machine::new(slots, rules.clone(), host);
        Self { machine, rules, slots, life: Some(0), cut_off: false, hostile }
    }
}
