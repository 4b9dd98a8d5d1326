//! A plan: blocks of all open cells, each cell over fresh connections between the two hosts that it is about, those of one round
//! of hosts at the same time.

mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use analysis::plan::Slot;
use model::{
    Cell, Event, Every, Factor, Finding, FindingKind, Order, Otherwise, Pass, Phase, Plan, Trial, Verdict, units,
};

use super::pass::cancelled;
use super::{Conduct, Fleet};
use crate::ControlError;
use step::Test;

/// How a plan's cells are taken.
pub struct PlanSchedule {
    /// The plan.
    pub plan: Plan,
    /// Where the cells stand, those of a curve together: their combination of levels, and their hosts' numbers in the fleet.
    pub slots: Vec<Slot>,
    /// Trials of an earlier part of this run, which count.
    pub trials: Vec<Trial>,
    /// Passes of an earlier part of this run.
    pub passes: Vec<Pass>,
}

impl PlanSchedule {
    /// The first cell of those that are measured together with this one.
    fn first_of(&self, cell: u32) -> u32 {
        self.slots.iter().find(|slot| slot.cells().contains(&cell)).map_or(cell, |slot| slot.cell)
    }
}

/// Pause between two steps, so that the second does not meet what the first left behind in queues and timers.
const GAP: Duration = Duration::from_millis(10);
/// How often a precondition that does not hold is looked at again.
const AGAIN: Duration = Duration::from_secs(1);
/// Idle hosts are heard at least this often.
const HEAR: Duration = Duration::from_secs(5);

impl Conduct<'_, Fleet> {
    pub(super) async fn plan(&mut self, schedule: &PlanSchedule) -> Result<(), ControlError> {
        let mut turns = self.adopt(schedule);
        let result = self.blocks(schedule, &mut turns).await;
        // At Ctrl-C too, and whatever went wrong: hosts are left as they were found.
        let put_back = self.pair.untune().await;
        result.and(put_back)
    }

    /// Takes over what an earlier part of the run measured; the turns that each place has had, by its first cell.
    fn adopt(&mut self, schedule: &PlanSchedule) -> BTreeMap<u32, u32> {
        let cut: BTreeSet<u32> = schedule.trials.iter().filter(|trial| is_cut(trial)).map(|trial| trial.pass).collect();
        let kept: BTreeSet<u32> = schedule.passes.iter().map(|pass| pass.index).collect();
        let points: BTreeSet<u32> = schedule.slots.iter().filter(|slot| slot.sizes > 1).flat_map(Slot::cells).collect();
        // What an interrupt or a kill cut off is taken again, of a curve the whole pass.
        let whole = |trial: &&Trial| {
            !is_cut(trial)
                && (!points.contains(&trial.cell) || kept.contains(&trial.pass) && !cut.contains(&trial.pass))
        };
        for trial in schedule.trials.iter().filter(whole) {
            self.cells.adopt(trial.clone());
        }
        let turns = schedule.slots.iter().map(|slot| (slot.cell, self.turns_had(slot))).collect();
        let by_trial = schedule.trials.iter().map(|trial| trial.pass + 1).max();
        let by_pass = schedule.passes.iter().map(|pass| pass.index + 1).max();
        self.passes = by_trial.max(by_pass).unwrap_or(0);
        let block = |pass: &Pass| Pass { index: pass.index, round: pass.round, ..Pass::default() };
        self.blocks = schedule.passes.iter().map(block).collect();
        let spent = schedule.passes.iter().map(|pass| pass.started_ns + pass.duration_ns).max().unwrap_or(0);
        self.started = Instant::now().checked_sub(Duration::from_nanos(spent)).unwrap_or(self.started);
        turns
    }

    /// The trials of a place; sizes of a curve that are sure have had fewer than the others.
    fn turns_had(&self, slot: &Slot) -> u32 {
        let trials = |cell: u32| self.cells.trials_of(cell).len() as u32;
        let open = slot.cells().filter(|cell| !self.cells.is_converged(*cell)).map(trials).min();
        open.or(slot.cells().map(trials).max()).unwrap_or(0)
    }

    async fn blocks(&mut self, schedule: &PlanSchedule, turns: &mut BTreeMap<u32, u32>) -> Result<(), ControlError> {
        let rule = &self.header.stopping;
        let seed = (rule.order == Order::Random).then_some(rule.seed);
        let mut time = 0;
        let mut longest = 0;
        loop {
            self.settle(schedule, turns)?;
            let mut open: Vec<u32> = self.cells.open().map(|state| schedule.first_of(state.cell.id)).collect();
            open.dedup();
            let Some(block) = open.iter().map(|cell| turns.get(cell).copied().unwrap_or(0)).min() else {
                return Ok(());
            };
            if let Some(every) = schedule.plan.schedule
                && block.is_multiple_of(rule.min_trials.max(1))
            {
                match self.next_time(every, time, block > 0).await? {
                    Some(next) => time = next,
                    None => return Ok(()),
                }
            }
            let begun = self.elapsed_ns();
            if self.left_ns() < longest {
                return Ok(());
            }
            for step in analysis::plan::round(&schedule.slots, seed, block) {
                let due: Vec<u32> =
                    step.into_iter().filter(|cell| open.contains(cell) && turns.get(cell) == Some(&block)).collect();
                if !due.is_empty() {
                    self.step(schedule, block, &due).await?;
                    for cell in due {
                        *turns.entry(cell).or_default() += 1;
                    }
                    tokio::time::sleep(GAP).await;
                }
            }
            longest = longest.max(self.elapsed_ns() - begun);
        }
    }

    /// Closes the cells that are sure or have had all their turns. With times, all cells stay to the end.
    fn settle(&mut self, schedule: &PlanSchedule, turns: &BTreeMap<u32, u32>) -> Result<(), ControlError> {
        if schedule.plan.schedule.is_some() {
            return Ok(());
        }
        let most = self.header.stopping.max_trials;
        let over = |cell: &u32| turns.get(&schedule.first_of(*cell)).is_some_and(|turns| *turns >= most);
        let ids: Vec<u32> = self.cells.open().map(|state| state.cell.id).collect();
        for id in ids.into_iter().filter(|id| over(id) || self.cells.is_converged(*id)).collect::<Vec<_>>() {
            if let Some(outcome) = self.cells.finish(id, false) {
                self.sink.event(&Event::Outcome(outcome))?;
            }
        }
        Ok(())
    }

    /// Waits for the next time of the schedule and says its number, from 1 for the first; `None` when the last has passed. Times
    /// that passed while something else went on are left out.
    async fn next_time(&mut self, every: Every, last: u64, resumed: bool) -> Result<Option<u64>, ControlError> {
        let start = self.header.started_unix_ns;
        let passed = unix_ns().saturating_sub(start).div_ceil(every.every_ns.max(1));
        let next = if last == 0 && !resumed { 0 } else { passed.max(last) };
        if next >= every.times() {
            return Ok(None);
        }
        let due = start + next * every.every_ns;
        if due > unix_ns() {
            self.pair.rest().await?;
        }
        while let Some(left) = due.checked_sub(unix_ns()).filter(|left| *left > 0) {
            let doing = format!("waits for time {} of {}", next + 1, every.times());
            self.tell(doing, Some(left))?;
            self.pair.catch_up()?;
            let nap = Duration::from_nanos(left).min(HEAR);
            tokio::select! {
                () = tokio::time::sleep(nap) => {}
                () = cancelled(&mut self.cancel) => return Err(ControlError::Interrupted),
            }
        }
        Ok(Some(next + 1))
    }

    /// One trial of each of `cells` and of what is measured together with them, all at the same time.
    async fn step(&mut self, schedule: &PlanSchedule, block: u32, cells: &[u32]) -> Result<(), ControlError> {
        self.interrupted()?;
        self.step_phase(schedule, block, cells)?;
        let sink = &mut *self.sink;
        let waits = |name: &str, ahead| {
            let doing = format!("{name} is busy: {ahead} before us");
            // The phase is for people; a sink that fails will say so at the next trial.
            let _ = sink.event(&Event::Phase(Phase { activity: doing, ..Phase::default() }));
        };
        self.pair.hold(waits).await?;
        let mut tests = self.tests(schedule, block, cells)?;
        for test in &tests {
            self.pair.tune(test.hosts, test.single_ended, &test.cell.spec.settings).await?;
        }
        self.meet_conditions(&schedule.plan, &mut tests, block).await?;
        self.idle(&tests).await?;
        if let Some(ns) = schedule.plan.warmup_ns {
            self.at_once(&tests, Some(ns), block).await?;
        }
        self.at_once(&tests, None, block).await?;
        self.interrupted()
    }

    /// Waits for what the plan requires; a test for which it does not come to hold is taken out, or ends the run.
    async fn meet_conditions(&mut self, plan: &Plan, tests: &mut Vec<Test>, block: u32) -> Result<(), ControlError> {
        let Some(require) = &plan.require else { return Ok(()) };
        let limit = Instant::now() + Duration::from_nanos(require.wait_ns);
        let hosts: Vec<usize> = tests.iter().flat_map(|test| test.hosts).collect();
        loop {
            let found = self.pair.look(&hosts).await?;
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
                        ids.iter().for_each(|id| self.cells.remark_on(*id, Verdict::Unmet));
                        self.notes.push(left_out(&test.cell, ids, block, what));
                    }
                    at += 1;
                    why.is_none()
                });
                return Ok(());
            }
            self.tell(format!("waits: {what}"), None)?;
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                () = cancelled(&mut self.cancel) => return Err(ControlError::Interrupted),
            }
        }
    }

    fn step_phase(&mut self, schedule: &PlanSchedule, block: u32, cells: &[u32]) -> Result<(), ControlError> {
        let of = |id: &u32| self.header.cells.iter().find(|cell| cell.id == *id);
        let first = cells.first().and_then(of);
        let levels = first.map(|cell| &cell.levels).into_iter().flatten();
        let curve = first.is_some_and(|cell| cell.spec.is_point());
        let several = |name: &str| {
            let hosts = [Factor::FROM, Factor::TO].contains(&name);
            (cells.len() > 1 && hosts) || (curve && name == Factor::SIZES)
        };
        let said: Vec<String> =
            levels.filter(|(name, _)| !several(name)).map(|(name, level)| format!("{name} {level}")).collect();
        let together =
            if cells.len() > 1 { format!(", {} pairs of hosts at once", cells.len()) } else { String::new() };
        let separator = if said.is_empty() { "" } else { ": " };
        let doing = format!("block {}{separator}{}{together}", block + 1, said.join(", "));
        let trials: usize = self.cells.open().map(super::cells::CellState::trials).sum::<usize>() + self.trials_done();
        let each = self.elapsed_ns().checked_div(trials as u64);
        let left = match schedule.plan.schedule {
            Some(every) => Some((self.header.started_unix_ns + every.for_ns).saturating_sub(unix_ns())),
            None => each.map(|each| each.saturating_mul(self.cells.all_trials_left()).min(self.left_ns())),
        };
        self.tell(doing, left)
    }

    fn trials_done(&self) -> usize {
        self.cells.done().iter().map(|outcome| outcome.trials.len()).sum()
    }

    fn tell(&mut self, doing: String, left_ns: Option<u64>) -> Result<(), ControlError> {
        let cells = self.header.cells.len() as u32;
        let cells_done = self.cells.done().len() as u32;
        Ok(self.sink.event(&Event::Phase(Phase { activity: doing, cells_done, cells, remaining_ns: left_ns }))?)
    }
}

fn is_cut(trial: &Trial) -> bool {
    trial.verdicts.contains(&Verdict::CutShort)
}

/// Says that a cell, or all sizes of a curve, have no trial in a block, and why.
fn left_out(cell: &Cell, cells: Vec<u32>, block: u32, what: &str) -> Finding {
    let levels: Vec<String> = cell.levels.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let of = if levels.is_empty() { String::new() } else { format!(" ({})", levels.join(", ")) };
    Finding {
        kind: FindingKind::Note,
        statement: format!("Cell {}{of} was left out of block {}: {what}.", cell.id, block + 1),
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
