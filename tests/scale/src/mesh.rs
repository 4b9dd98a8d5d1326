//! The mesh: its hosts and pairs, and the results that its agents simulate.

use std::collections::BTreeMap;

use analysis::plan::{Slot, sample};
use clap::Args;
use model::{Cell, Pattern, Plan, RunHeader, RunKind, Spec, SplitMix64, Trial};
use serde::{Deserialize, Serialize};

/// What all processes know of the mesh.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Mesh {
    /// Number of hosts.
    #[arg(long, default_value_t = 24)]
    pub(crate) hosts: usize,
    /// The share of the pairs that is measured.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) share: f64,
    /// Rounds over the pairs.
    #[arg(long, default_value_t = 1)]
    pub(crate) rounds: u32,
    /// Seed of the pairs, of their order, of the results and of the kills.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// What a coordinator asks an agent for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) cell: u32,
    pub(crate) round: u32,
    /// How long the test takes, ms.
    pub(crate) time_ms: u64,
    /// The agent keeps the result, and answers with one that it has kept.
    pub(crate) keep: bool,
}

/// What the agent answers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) bytes: u64,
    /// It was measured before.
    pub(crate) kept: bool,
}

impl Mesh {
    pub(crate) fn name(host: usize) -> String {
        format!("n{host:04}")
    }

    /// Number of all trials.
    pub(crate) fn trials(&self) -> usize {
        self.pairs().len() * self.rounds as usize
    }

    /// What tells another process of it.
    pub(crate) fn flags(&self) -> Vec<String> {
        let values = [
            ("--hosts", self.hosts.to_string()),
            ("--share", self.share.to_string()),
            ("--rounds", self.rounds.to_string()),
            ("--seed", self.seed.to_string()),
        ];
        values.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
    }

    /// The pairs, each with the numbers of its hosts.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        let all = || (0..self.hosts).flat_map(|near| (0..self.hosts).map(move |far| (near, far)));
        if self.share < 1.0 {
            sample(&vec![0; self.hosts], self.share, self.seed)
        } else {
            all().filter(|(near, far)| near != far).collect()
        }
    }

    /// The slots of a plan with a cell for each pair.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        let slot = |((near, far), cell)| Slot {
            cell,
            sizes: 1,
            plot: 0,
            combination: 0,
            near,
            far,
            shared: Vec::new(),
            together: false,
        };
        self.pairs().into_iter().zip(0..).map(slot).collect()
    }

    pub(crate) fn header(&self, id: &str) -> RunHeader {
        let names: Vec<String> = (0..self.hosts).map(Self::name).collect();
        let cell = |((near, far), id): ((usize, usize), u32)| {
            let levels =
                BTreeMap::from([("from", near), ("to", far)].map(|(end, host)| (end.to_owned(), names[host].clone())));
            Cell { levels, ..Cell::new(id, Spec::new("tcp", Pattern::Stream)) }
        };
        let cells = self.pairs().into_iter().zip(0..).map(cell).collect();
        let plan = Plan { from: names.clone(), to: names.clone(), ..Plan::default() };
        RunHeader { id: id.into(), kind: RunKind::Mesh, cells, plan: Some(Box::new(plan)), ..RunHeader::default() }
    }

    /// The bytes that a host counts in a trial.
    pub(crate) fn bytes(&self, host: usize, cell: u32, round: u32) -> u64 {
        let mut random = SplitMix64::new(self.seed ^ (host as u64) << 40 ^ u64::from(cell) << 8 ^ u64::from(round));
        1_000_000_000 + random.next_u64() % 100_000_000
    }

    /// Whether a trial has what its hosts simulate for this round.
    pub(crate) fn is_right(&self, trial: &Trial, pair: (usize, usize), round: u32) -> bool {
        trial.near.bytes_sent == self.bytes(pair.0, trial.cell, round)
            && trial.far.bytes_received == self.bytes(pair.1, trial.cell, round)
    }
}
