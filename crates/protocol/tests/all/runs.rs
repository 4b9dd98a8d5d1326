//! Runs of the simulated fleets: what they measure, what is stored of them, and what must be stored at their end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use analysis::plan::Slot;
use model::random::SplitMix64;
use model::{Cell, Event, HostSettings, Pass, Pattern, Plan, Retest, RunHeader, Setting, Spec, Stop, Stopping, Trial};
use protocol::coordinator::{DialogueError, RunOrder};
use schedule::{Methods, PairedPlan, PlanSchedule, Schedule, ScheduledRun, Unfixed};

/// What a run measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Cells between any two of its hosts, in rounds.
    Plan { per_host: u32, together: bool },
    /// One cell between two hosts, or a host and another program.
    Single,
    /// Two cells with different settings, in turns.
    Paired,
}

pub(super) struct Run {
    kind: Kind,
    header: RunHeader,
    slots: Vec<Slot>,
    /// The agents of its hosts; `None` for another program.
    pub(super) hosts: Vec<Option<usize>>,
    /// Its parts so far.
    pub(super) parts: usize,
    /// Why parts ended early.
    pub(super) errors: Vec<DialogueError>,
    trials: Vec<Trial>,
    passes: Vec<Pass>,
    retests: Vec<Retest>,
    /// The cells that have an outcome in this part.
    outcomes: BTreeSet<u32>,
    /// Whether this part has ended.
    is_closed: bool,
    over: bool,
}

/// Rounds of each cell.
const ROUNDS: u32 = 3;

impl Run {
    pub(super) fn new(number: usize, hosts: usize, random: &mut SplitMix64) -> Self {
        let kind = match random.below(5) {
            0 => Kind::Single,
            1 => Kind::Paired,
            _ => Kind::Plan { per_host: 1 + random.below(3) as u32 / 2, together: random.below(4) == 0 },
        };
        let count = match kind {
            Kind::Plan { .. } => 2 + random.below(hosts - 1),
            Kind::Single | Kind::Paired => 2,
        };
        let mut all: Vec<usize> = (0..hosts).collect();
        random.shuffle(&mut all);
        Self::of(number, kind, &all[..count], random)
    }

    /// A run over these hosts; a single measurement may be with another program.
    pub(super) fn of(number: usize, kind: Kind, hosts: &[usize], random: &mut SplitMix64) -> Self {
        let mut hosts: Vec<Option<usize>> = hosts.iter().copied().map(Some).collect();
        if kind == Kind::Single && random.below(2) == 0 {
            hosts[1] = None;
        }
        let slots =
            if let Kind::Plan { together, .. } = kind { slots(hosts.len(), together, random) } else { Vec::new() };
        let cells = match kind {
            Kind::Plan { .. } => slots.len(),
            Kind::Single => 1,
            Kind::Paired => 2,
        };
        let cell = |id: usize| {
            let key = Setting { key: "sysctl.net.core.somaxconn".into(), value: format!("{}", id % 2) };
            let near = if id % 3 == 1 && hosts[1].is_some() { vec![key] } else { Vec::new() };
            let settings = HostSettings { near, ..HostSettings::default() };
            let (stop, probe) = (Stop::TimeNs(1_000_000_000), (id % 4 == 2).then_some(100));
            Cell::new(id as u32, Spec { stop, settings, probe, ..Spec::new("tcp", Pattern::Stream) })
        };
        let stopping = Stopping {
            min_trials: ROUNDS,
            max_trials: ROUNDS,
            budget_ns: None,
            seed: random.next_u64(),
            ..Stopping::default()
        };
        let header = RunHeader {
            id: format!("run {number}"),
            cells: (0..cells).map(cell).collect(),
            stopping: if kind == Kind::Paired {
                Stopping { min_trials: 12, max_trials: 12, ..stopping }
            } else {
                stopping
            },
            ..RunHeader::default()
        };
        let (trials, passes, retests, errors, outcomes) = Default::default();
        Self {
            kind,
            header,
            slots,
            hosts,
            parts: 0,
            errors,
            trials,
            passes,
            retests,
            outcomes,
            is_closed: false,
            over: false,
        }
    }

    /// The first two hosts send to the third one at the same time, once.
    pub(super) fn incast(hosts: &[usize; 3]) -> Self {
        let kind = Kind::Plan { per_host: 1, together: true };
        let own = Self::of(0, kind, hosts, &mut SplitMix64::new(0));
        let mut header = own.header;
        header.cells.truncate(2);
        header.cells.iter_mut().for_each(|cell| {
            cell.spec = Spec { settings: HostSettings::default(), ..Spec::clone(&cell.spec) }.into();
        });
        (header.stopping.min_trials, header.stopping.max_trials) = (1, 1);
        let from = |cell: usize| Slot { cell: cell as u32, near: cell, far: 2, ..own.slots[0].clone() };
        Self { header, slots: vec![from(0), from(1)], ..own }
    }

    /// The next part of the run, and whether an earlier one has begun it.
    pub(super) fn order(&mut self, unix_ns: u64) -> (RunOrder, bool) {
        (self.outcomes, self.is_closed) = Default::default();
        let resumed = self.header.started_unix_ns > 0;
        if !resumed {
            self.header.started_unix_ns = unix_ns;
        }
        let Kind::Plan { per_host, .. } = self.kind else {
            // Only a plan is continued.
            (self.trials, self.passes) = Default::default();
            let schedule = match self.kind {
                Kind::Paired => Schedule::Paired(PairedPlan { gap_ns: 50_000_000, unfixed: Unfixed::default() }),
                _ => Schedule::Single(Unfixed::default()),
            };
            let schedule = ScheduledRun::new(&self.header, &schedule, Methods::default());
            return (RunOrder { header: self.header.clone(), schedule, spent: Duration::ZERO }, false);
        };
        let plan = PlanSchedule {
            plan: Plan { light: (per_host > 1).then_some(per_host), ..Plan::default() },
            slots: self.slots.clone(),
            trials: self.trials.clone(),
            passes: self.passes.clone(),
            retests: self.retests.clone(),
        };
        let spent = Duration::from_nanos(plan.spent_ns());
        let schedule = ScheduledRun::plan(&self.header, plan, BTreeSet::new(), unix_ns);
        (RunOrder { header: self.header.clone(), schedule, spent }, resumed)
    }

    /// Stores what is shown. What is stored survives the process.
    pub(super) fn store(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Trial(trial) => {
                if trial.near.bytes_sent != trial.far.bytes_received {
                    return Err(format!("the ends of trial {} are of two attempts", trial.pass));
                }
                if self.trials.iter().any(|other| other.pass == trial.pass && other.position == trial.position) {
                    return Err(format!("pass {} of {} is stored twice", trial.pass, self.header.id));
                }
                self.trials.push(trial);
            }
            Event::Pass(pass) => self.passes.push(pass),
            Event::Retest(retest) => self.retests.push(retest),
            Event::Outcome(outcome) => {
                self.outcomes.insert(outcome.cell);
            }
            Event::End(_) => self.is_closed = true,
            _ => {}
        }
        Ok(())
    }

    /// A part has come to the end of its plan.
    pub(super) fn finished(&mut self) -> Result<(), String> {
        self.over = true;
        if !self.is_closed {
            return Err(format!("{} has ended without an ending", self.header.id));
        }
        Ok(())
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether all that it measures is stored.
    pub(super) fn is_whole(&self) -> bool {
        let of = |cell: &Cell| self.trials.iter().filter(|trial| trial.cell == cell.id).count() as u32;
        self.over && self.header.cells.iter().all(|cell| of(cell) >= self.header.stopping.max_trials)
    }

    /// Whether it has come to the end of its plan, in its first part unless each of its tests needs one and the same host.
    pub(super) fn has_survived_a_lost_host(&self) -> bool {
        let needed = |host: usize| self.slots.iter().all(|slot| [slot.near, slot.far].contains(&host));
        self.over && (self.parts == 1 || (0..self.hosts.len()).any(needed))
    }

    /// How far it is, for a message.
    pub(super) fn state(&self) -> String {
        let (trials, cells) = (self.trials.len(), self.header.cells.len());
        format!("{trials} trials of {cells} cells in {} parts, over: {}, {:?}", self.parts, self.over, self.errors)
    }

    /// What is stored at the end: of a run without faults, everything.
    pub(super) fn check_end(&self, faultless: bool) -> Result<(), String> {
        let mut counts: BTreeMap<u32, u32> = self.header.cells.iter().map(|cell| (cell.id, 0)).collect();
        for trial in &self.trials {
            *counts.entry(trial.cell).or_default() += 1;
        }
        let most = self.header.stopping.max_trials;
        // Of tests that belong together, those of a part that was killed while it stored them are made again.
        let again = if matches!(self.kind, Kind::Plan { together: true, .. }) { self.parts as u32 } else { 0 };
        if let Some((cell, count)) = counts.iter().find(|(_, count)| **count > most + again) {
            return Err(format!("cell {cell} of {} ({:?}) has {count} trials of {most}", self.header.id, self.kind));
        }
        if !faultless {
            return Ok(());
        }
        let least = counts.values().min().copied().unwrap_or(0);
        let whole = self.over && least >= most && self.outcomes.len() == self.header.cells.len();
        if !whole || self.parts > 1 || !self.errors.is_empty() {
            return Err(format!(
                "{} is not whole: over {}, trials {counts:?}, outcomes {:?}, errors {:?}",
                self.header.id, self.over, self.outcomes, self.errors
            ));
        }
        Ok(())
    }
}

/// Cells between some pairs of hosts.
fn slots(hosts: usize, together: bool, random: &mut SplitMix64) -> Vec<Slot> {
    let mut pairs: Vec<[usize; 2]> =
        (0..hosts).flat_map(|near| (0..hosts).filter(move |far| *far != near).map(move |far| [near, far])).collect();
    random.shuffle(&mut pairs);
    pairs.truncate(2 + random.below(hosts + 4));
    let slot = |(cell, [near, far]): (usize, [usize; 2])| Slot {
        cell: cell as u32,
        sizes: 1,
        plot: 0,
        combination: 0,
        near,
        far,
        shared: Vec::new(),
        together,
    };
    pairs.into_iter().enumerate().map(slot).collect()
}
