//! A plan: rounds of all open cells. Each cell uses fresh connections between its two hosts, and the tests of one step run at
//! the same time.

mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use analysis::plan::Slot;
use model::{
    Cell, Event, Every, Factor, Finding, FindingKind, Order, Otherwise, Pass, Phase, Plan, Trial, Verdict, units,
};

use schedule::RunState;

use super::pass::cancelled;
use super::{ActiveRun, Fleet};
use crate::ControlError;
use step::Test;

/// How a plan's cells are measured.
pub struct PlanSchedule {
    /// The plan.
    pub plan: Plan,
    /// The cells, with the sizes of a curve in one slot: their combination of levels, and their hosts' numbers in the fleet.
    pub slots: Vec<Slot>,
    /// Trials of an earlier part of this run, which are kept.
    pub trials: Vec<Trial>,
    /// Passes of an earlier part of this run.
    pub passes: Vec<Pass>,
}

impl PlanSchedule {
    /// The first cell of the slot that contains this one.
    fn first_of(&self, cell: u32) -> u32 {
        self.slots.iter().find(|slot| slot.cells().contains(&cell)).map_or(cell, |slot| slot.cell)
    }
}

/// Pause between two steps, in which queues empty and timers expire.
const GAP: Duration = Duration::from_millis(10);
/// Interval of the checks of a requirement that is not met.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time without reading the messages of idle hosts.
const DRAIN_INTERVAL: Duration = Duration::from_secs(5);

impl ActiveRun<'_, Fleet, RunState> {
    pub(super) async fn plan(&mut self, schedule: &PlanSchedule) -> Result<(), ControlError> {
        let mut rounds_done = self.adopt(schedule);
        let result = self.rounds(schedule, &mut rounds_done).await;
        // The settings are reverted after an interrupt and after any error as well.
        let reverted = self.pair.untune().await;
        result.and(reverted)
    }

    /// Adopts the trials of an earlier part of the run. Returns the rounds that each slot has had, by its first cell.
    fn adopt(&mut self, schedule: &PlanSchedule) -> BTreeMap<u32, u32> {
        let cut: BTreeSet<u32> = schedule.trials.iter().filter(|trial| is_cut(trial)).map(|trial| trial.pass).collect();
        let kept: BTreeSet<u32> = schedule.passes.iter().map(|pass| pass.index).collect();
        let points: BTreeSet<u32> = schedule.slots.iter().filter(|slot| slot.sizes > 1).flat_map(Slot::cells).collect();
        // A trial that was cut short is repeated; of a curve the whole pass.
        let whole = |trial: &&Trial| {
            !is_cut(trial)
                && (!points.contains(&trial.cell) || kept.contains(&trial.pass) && !cut.contains(&trial.pass))
        };
        for trial in schedule.trials.iter().filter(whole) {
            self.run.cells.adopt(trial.clone());
        }
        let rounds_done = schedule.slots.iter().map(|slot| (slot.cell, self.rounds_of(slot))).collect();
        let by_trial = schedule.trials.iter().map(|trial| trial.pass + 1).max();
        let by_pass = schedule.passes.iter().map(|pass| pass.index + 1).max();
        self.run.passes = by_trial.max(by_pass).unwrap_or(0);
        let with_round = |pass: &Pass| Pass { index: pass.index, round: pass.round, ..Pass::default() };
        self.run.pass_rounds = schedule.passes.iter().map(with_round).collect();
        let spent = schedule.passes.iter().map(|pass| pass.started_ns + pass.duration_ns).max().unwrap_or(0);
        self.started = Instant::now().checked_sub(Duration::from_nanos(spent)).unwrap_or(self.started);
        rounds_done
    }

    /// The trials of a slot; sizes of a curve that have converged have fewer than the others.
    fn rounds_of(&self, slot: &Slot) -> u32 {
        let trials = |cell: u32| self.run.cells.trials_of(cell).len() as u32;
        let open = slot.cells().filter(|cell| !self.run.cells.is_converged(*cell)).map(trials).min();
        open.or(slot.cells().map(trials).max()).unwrap_or(0)
    }

    async fn rounds(
        &mut self,
        schedule: &PlanSchedule,
        rounds_done: &mut BTreeMap<u32, u32>,
    ) -> Result<(), ControlError> {
        let rule = &self.header.stopping;
        let seed = (rule.order == Order::Random).then_some(rule.seed);
        let mut time = 0;
        let mut longest = 0;
        loop {
            self.settle(schedule, rounds_done)?;
            let mut open: Vec<u32> = self.run.cells.open().map(|state| schedule.first_of(state.cell.id)).collect();
            open.dedup();
            let Some(round) = open.iter().map(|cell| rounds_done.get(cell).copied().unwrap_or(0)).min() else {
                return Ok(());
            };
            if let Some(every) = schedule.plan.schedule
                && round.is_multiple_of(rule.min_trials.max(1))
            {
                match self.next_time(every, time, round > 0).await? {
                    Some(next) => time = next,
                    None => return Ok(()),
                }
            }
            let begun = self.elapsed_ns();
            if self.run.left_ns(self.elapsed_ns()) < longest {
                return Ok(());
            }
            for step in analysis::plan::round(&schedule.slots, seed, round) {
                let is_due = |cell: &u32| open.contains(cell) && rounds_done.get(cell) == Some(&round);
                let due: Vec<u32> = step.into_iter().filter(is_due).collect();
                if !due.is_empty() {
                    self.step(schedule, round, &due).await?;
                    for cell in due {
                        *rounds_done.entry(cell).or_default() += 1;
                    }
                    tokio::time::sleep(GAP).await;
                }
            }
            longest = longest.max(self.elapsed_ns() - begun);
        }
    }

    /// Closes the cells that have converged or have had all their rounds. With a schedule, all cells stay open to the end.
    fn settle(&mut self, schedule: &PlanSchedule, rounds_done: &BTreeMap<u32, u32>) -> Result<(), ControlError> {
        if schedule.plan.schedule.is_some() {
            return Ok(());
        }
        let most = self.header.stopping.max_trials;
        let over = |cell: &u32| rounds_done.get(&schedule.first_of(*cell)).is_some_and(|rounds| *rounds >= most);
        let ids: Vec<u32> = self.run.cells.open().map(|state| state.cell.id).collect();
        for id in ids.into_iter().filter(|id| over(id) || self.run.cells.is_converged(*id)).collect::<Vec<_>>() {
            self.run.finish(id, false);
        }
        self.send_events()
    }

    /// Waits for the next scheduled time and returns its number, from 1; `None` after the last one. Times that passed during a
    /// measurement are skipped.
    async fn next_time(&mut self, every: Every, last: u64, resumed: bool) -> Result<Option<u64>, ControlError> {
        let start = self.header.started_unix_ns;
        let passed = unix_ns().saturating_sub(start).div_ceil(every.every_ns.max(1));
        let next = if last == 0 && !resumed { 0 } else { passed.max(last) };
        if next >= every.times() {
            return Ok(None);
        }
        let due = start + next * every.every_ns;
        if due > unix_ns() {
            self.pair.release_machines().await?;
        }
        while let Some(left) = due.checked_sub(unix_ns()).filter(|left| *left > 0) {
            let activity = format!("waiting for repetition {} of {}", next + 1, every.times());
            self.report_phase(activity, Some(left))?;
            self.pair.drain_messages()?;
            let pause = Duration::from_nanos(left).min(DRAIN_INTERVAL);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = cancelled(&mut self.cancel) => return Err(ControlError::Interrupted),
            }
        }
        Ok(Some(next + 1))
    }

    /// One trial of each slot that starts with one of `cells`, all at the same time.
    async fn step(&mut self, schedule: &PlanSchedule, round: u32, cells: &[u32]) -> Result<(), ControlError> {
        self.interrupted()?;
        self.step_phase(schedule, round, cells)?;
        let sink = &mut *self.sink;
        let waits = |name: &str, ahead| {
            let activity = format!("{name} is busy: {ahead} ahead in the queue");
            // The phase is for the progress display only; a sink that fails reports it at the next trial.
            let _ = sink.event(&Event::Phase(Phase { activity, ..Phase::default() }));
        };
        self.pair.hold(waits).await?;
        let mut tests = self.tests(schedule, round, cells)?;
        for test in &tests {
            self.pair.tune(test.hosts, test.single_ended, &test.cell.spec.settings).await?;
        }
        self.wait_for_requirements(&schedule.plan, &mut tests, round).await?;
        self.idle(&tests).await?;
        if let Some(ns) = schedule.plan.warmup_ns {
            self.run_together(&tests, Some(ns), round).await?;
        }
        self.run_together(&tests, None, round).await?;
        self.interrupted()
    }

    /// Waits until the plan's requirements are met. A test whose requirements are not met in time is skipped, or ends the run.
    async fn wait_for_requirements(
        &mut self,
        plan: &Plan,
        tests: &mut Vec<Test>,
        round: u32,
    ) -> Result<(), ControlError> {
        let Some(require) = &plan.require else { return Ok(()) };
        let limit = Instant::now() + Duration::from_nanos(require.wait_ns);
        let hosts: Vec<usize> = tests.iter().flat_map(|test| test.hosts).collect();
        loop {
            let found = self.pair.read_conditions(&hosts).await?;
            let mut unmet: Vec<(usize, String)> = Vec::new();
            for (at, (test, found)) in tests.iter_mut().zip(found.chunks(2)).enumerate() {
                for (end, found) in found.iter().enumerate() {
                    test.conditions[end] = Some(*found);
                    let name = self.pair.end(test.hosts[end]).map_or("a host", |host| host.name.as_str());
                    unmet.extend(require.unmet(found).into_iter().map(|what| (at, format!("{name}: {what}"))));
                }
            }
            let Some((_, what)) = unmet.first().cloned() else { return Ok(()) };
            if Instant::now() >= limit {
                if require.otherwise == Otherwise::End {
                    return Err(ControlError::Unmet { what, waited: units::seconds(require.wait_ns as f64) });
                }
                let mut at = 0;
                tests.retain(|test| {
                    let why = unmet.iter().find(|(unmet, _)| *unmet == at).map(|(_, what)| what);
                    if let Some(what) = why {
                        let ids: Vec<u32> = test.legs.iter().filter_map(|(cell, _)| *cell).collect();
                        ids.iter().for_each(|id| self.run.cells.remark_on(*id, Verdict::Unmet));
                        self.run.notes.push(skipped(&test.cell, ids, round, what));
                    }
                    at += 1;
                    why.is_none()
                });
                return Ok(());
            }
            self.report_phase(format!("waiting: {what}"), None)?;
            tokio::select! {
                () = tokio::time::sleep(RETRY_INTERVAL) => {}
                () = cancelled(&mut self.cancel) => return Err(ControlError::Interrupted),
            }
        }
    }

    fn step_phase(&mut self, schedule: &PlanSchedule, round: u32, cells: &[u32]) -> Result<(), ControlError> {
        let of = |id: &u32| self.header.cells.iter().find(|cell| cell.id == *id);
        let first = cells.first().and_then(of);
        let levels = first.map(|cell| &cell.levels).into_iter().flatten();
        let curve = first.is_some_and(|cell| cell.spec.is_point());
        let several = |name: &str| {
            let hosts = [Factor::FROM, Factor::TO].contains(&name);
            (cells.len() > 1 && hosts) || (curve && name == Factor::SIZES)
        };
        let named: Vec<String> =
            levels.filter(|(name, _)| !several(name)).map(|(name, level)| format!("{name} {level}")).collect();
        let together =
            if cells.len() > 1 { format!(", {} host pairs at the same time", cells.len()) } else { String::new() };
        let separator = if named.is_empty() { "" } else { ": " };
        let activity = format!("round {}{separator}{}{together}", round + 1, named.join(", "));
        let trials: usize = self.run.cells.open().map(schedule::CellState::trials).sum::<usize>() + self.trials_done();
        let each = self.elapsed_ns().checked_div(trials as u64);
        let left = match schedule.plan.schedule {
            Some(every) => Some((self.header.started_unix_ns + every.for_ns).saturating_sub(unix_ns())),
            None => each.map(|each| {
                each.saturating_mul(self.run.cells.all_trials_left()).min(self.run.left_ns(self.elapsed_ns()))
            }),
        };
        self.report_phase(activity, left)
    }

    fn trials_done(&self) -> usize {
        self.run.cells.done().iter().map(|outcome| outcome.trials.len()).sum()
    }

    fn report_phase(&mut self, activity: String, left_ns: Option<u64>) -> Result<(), ControlError> {
        let cells = self.header.cells.len() as u32;
        let cells_done = self.run.cells.done().len() as u32;
        Ok(self.sink.event(&Event::Phase(Phase { activity, cells_done, cells, remaining_ns: left_ns }))?)
    }
}

fn is_cut(trial: &Trial) -> bool {
    trial.verdicts.contains(&Verdict::CutShort)
}

/// The note that a cell, or all sizes of a curve, have no trial in a round, and why.
fn skipped(cell: &Cell, cells: Vec<u32>, round: u32, what: &str) -> Finding {
    let levels: Vec<String> = cell.levels.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let of = if levels.is_empty() { String::new() } else { format!(" ({})", levels.join(", ")) };
    Finding {
        kind: FindingKind::Note,
        statement: format!("Cell {}{of} was skipped in round {}: {what}.", cell.id, round + 1),
        estimate: None,
        block: None,
        cells,
        comparison: None,
    }
}

/// Wall-clock time, ns since the Unix epoch.
fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
