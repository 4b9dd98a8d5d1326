//! A plan: blocks of all open cells, each cell over fresh connections between the two hosts that it is about, those of one round
//! of hosts at the same time.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use analysis::plan::Place;
use model::{
    Cell, Conditions, EndPass, Event, EventSink, Every, Finding, FindingKind, Order, Otherwise, Pass, Phase, Plan,
    SinkError, Spec, Stop, Trial, Verdict, units,
};
use tokio::sync::mpsc;

use super::pass::{PassResult, cancelled};
use super::{Bench, Cancel, Fleet, Pair};
use crate::ControlError;
use crate::proto::message::WireLeg;

/// How a plan's cells are taken.
pub struct PlanSchedule {
    /// The plan.
    pub plan: Plan,
    /// Where each cell stands: its combinations of levels, and its hosts' numbers in the fleet.
    pub places: Vec<Place>,
    /// Trials of an earlier part of this run, which count.
    pub trials: Vec<Trial>,
    /// Passes of an earlier part of this run.
    pub passes: Vec<Pass>,
}

/// Pause between two steps, so that the second does not meet what the first left behind in queues and timers.
const GAP: Duration = Duration::from_millis(10);
/// How often a precondition that does not hold is looked at again.
const AGAIN: Duration = Duration::from_secs(1);
/// Idle hosts are heard at least this often.
const HEAR: Duration = Duration::from_secs(5);

/// A test of one step.
struct Test {
    cell: Cell,
    hosts: [usize; 2],
    single_ended: bool,
    conditions: [Option<Conditions>; 2],
}

/// A test that has ended, with the hosts it was lent.
type Ended = (usize, Pair, Result<PassResult, ControlError>);

impl Bench<'_, Fleet> {
    pub(super) async fn plan(&mut self, schedule: &PlanSchedule) -> Result<(), ControlError> {
        let mut turns = self.adopt(schedule);
        let result = self.blocks(schedule, &mut turns).await;
        // At Ctrl-C too, and whatever went wrong: hosts are left as they were found.
        let put_back = self.pair.untune().await;
        result.and(put_back)
    }

    /// Takes over what an earlier part of the run measured; the turns that each cell has had.
    fn adopt(&mut self, schedule: &PlanSchedule) -> BTreeMap<u32, u32> {
        let mut turns: BTreeMap<u32, u32> = self.header.cells.iter().map(|cell| (cell.id, 0)).collect();
        // One that an interrupt cut off is taken again.
        for trial in schedule.trials.iter().filter(|trial| !trial.verdicts.contains(&Verdict::CutShort)) {
            *turns.entry(trial.cell).or_default() += 1;
            self.cells.adopt(trial.clone());
        }
        let by_trial = schedule.trials.iter().map(|trial| trial.pass + 1).max();
        let by_pass = schedule.passes.iter().map(|pass| pass.index + 1).max();
        self.passes = by_trial.max(by_pass).unwrap_or(0);
        let block = |pass: &Pass| Pass { index: pass.index, block: pass.block, ..Pass::default() };
        self.blocks = schedule.passes.iter().map(block).collect();
        let spent = schedule.passes.iter().map(|pass| pass.started_ns + pass.duration_ns).max().unwrap_or(0);
        self.started = Instant::now().checked_sub(Duration::from_nanos(spent)).unwrap_or(self.started);
        turns
    }

    async fn blocks(&mut self, schedule: &PlanSchedule, turns: &mut BTreeMap<u32, u32>) -> Result<(), ControlError> {
        let rule = &self.header.stopping;
        let seed = (rule.order == Order::Random).then_some(rule.seed);
        let mut time = 0;
        let mut longest = 0;
        loop {
            self.settle(schedule, turns)?;
            let open: Vec<u32> = self.cells.open().map(|state| state.cell.id).collect();
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
            for step in analysis::plan::block(&schedule.places, seed, block) {
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
        let over = |cell: &u32| turns.get(cell).is_some_and(|turns| *turns >= most);
        let ids: Vec<u32> = self.cells.open().map(|state| state.cell.id).collect();
        for id in ids.into_iter().filter(|id| over(id) || self.cells.is_sure(*id)).collect::<Vec<_>>() {
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

    /// One trial of each of `cells`, all at the same time.
    async fn step(&mut self, schedule: &PlanSchedule, block: u32, cells: &[u32]) -> Result<(), ControlError> {
        self.interrupted()?;
        self.step_phase(schedule, block, cells)?;
        let sink = &mut *self.sink;
        let waits = |name: &str, ahead| {
            let doing = format!("{name} is busy: {ahead} before us");
            // The phase is for people; a sink that fails will say so at the next trial.
            let _ = sink.event(&Event::Phase(Phase { doing, ..Phase::default() }));
        };
        self.pair.hold(waits).await?;
        let mut tests = self.tests(schedule, cells)?;
        for test in &tests {
            self.pair.tune(test.hosts, test.single_ended, &test.cell.spec.settings).await?;
        }
        self.meet_conditions(&schedule.plan, &mut tests, block).await?;
        if let Some(ns) = schedule.plan.warmup_ns {
            self.at_once(&tests, Some(ns), block).await?;
        }
        self.at_once(&tests, None, block).await?;
        self.interrupted()
    }

    fn tests(&self, schedule: &PlanSchedule, cells: &[u32]) -> Result<Vec<Test>, ControlError> {
        let mut tests = Vec::with_capacity(cells.len());
        for id in cells {
            let cell = self.header.cells.iter().find(|cell| cell.id == *id);
            let place = schedule.places.iter().find(|place| place.cell == *id);
            if let (Some(cell), Some(place)) = (cell, place) {
                let transport = engine::transport::transport(cell.spec.transport.as_str())?;
                tests.push(Test {
                    cell: cell.clone(),
                    hosts: [place.near, place.far],
                    single_ended: transport.capabilities().single_ended,
                    conditions: [None; 2],
                });
            }
        }
        Ok(tests)
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
                        self.cells.remark_on(test.cell.id, Verdict::Unmet);
                        self.notes.push(left_out(&test.cell, block, what));
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

    /// Runs all tests at the same time and records each when it ends; with `warmup` ns they are shorter and nobody's result. The
    /// first error is told after all have ended.
    async fn at_once(&mut self, tests: &[Test], warmup: Option<u64>, block: u32) -> Result<(), ControlError> {
        let (relay, mut live) = mpsc::unbounded_channel();
        let mut running: Vec<Pin<Box<dyn Future<Output = Ended>>>> = Vec::new();
        let first = self.passes;
        let (begun, begun_unix) = (self.elapsed_ns(), unix_ns());
        for (at, test) in tests.iter().enumerate() {
            let Some(pair) = self.pair.lend(test.hosts, test.single_ended) else { continue };
            let spec = warmup.map_or_else(|| test.cell.spec.clone(), |ns| shortened(&test.cell.spec, ns));
            let heard = warmup.is_none().then(|| relay.clone());
            running.push(Box::pin(one(at, pair, spec, first + at as u32, Relay(heard), self.cancel.clone())));
        }
        if warmup.is_none() {
            self.passes += tests.len() as u32;
        }
        let mut result = Ok(());
        while !running.is_empty() {
            tokio::select! {
                Some(event) = live.recv() => result = result.and(self.sink.event(&event).map_err(ControlError::from)),
                (at, pair, ended) = next(&mut running) => {
                    let test = &tests[at];
                    self.pair.take_back(test.hosts, pair);
                    let started = Pass {
                        index: first + at as u32,
                        started_ns: begun,
                        started_unix_ns: Some(begun_unix),
                        block: Some(block),
                        ..Pass::default()
                    };
                    let recorded = match ended {
                        Ok(ended) if warmup.is_none() => self.record_test(test, &started, ended),
                        Ok(_) => Ok(()),
                        Err(error) => Err(error),
                    };
                    result = result.and(recorded);
                }
            }
        }
        result
    }

    fn record_test(&mut self, test: &Test, started: &Pass, ended: PassResult) -> Result<(), ControlError> {
        let before = |end: usize| EndPass {
            conditions: test.conditions[end],
            settings: self.pair.changes(test.hosts[end]),
            ..EndPass::default()
        };
        let pass = Pass { near: before(0), far: before(1), ..started.clone() };
        self.blocks.push(Pass { index: pass.index, block: pass.block, ..Pass::default() });
        let failure = ended.failure;
        self.record(pass, ended.near, ended.far, &[(Some(test.cell.id), 0)], test.single_ended)?;
        match failure.filter(|_| !*self.cancel.borrow()) {
            Some(reason) => Err(ControlError::Trial { address: "the trial was cut short".into(), reason }),
            None => Ok(()),
        }
    }

    fn step_phase(&mut self, schedule: &PlanSchedule, block: u32, cells: &[u32]) -> Result<(), ControlError> {
        let of = |id: &u32| self.header.cells.iter().find(|cell| cell.id == *id);
        let levels = cells.first().and_then(of).map(|cell| &cell.levels).into_iter().flatten();
        let hosts = |name: &str| cells.len() > 1 && [model::Factor::FROM, model::Factor::TO].contains(&name);
        let said: Vec<String> =
            levels.filter(|(name, _)| !hosts(name)).map(|(name, level)| format!("{name} {level}")).collect();
        let together =
            if cells.len() > 1 { format!(", {} pairs of hosts at once", cells.len()) } else { String::new() };
        let separator = if said.is_empty() { "" } else { ": " };
        let doing = format!("block {}{separator}{}{together}", block + 1, said.join(", "));
        let open = self.cells.open().count().max(1) as u64;
        let trials: usize = self.cells.open().map(super::cells::CellState::trials).sum::<usize>() + self.trials_done();
        let each = self.elapsed_ns().checked_div(trials as u64);
        let left = match schedule.plan.schedule {
            Some(every) => Some((self.header.started_unix_ns + every.for_ns).saturating_sub(unix_ns())),
            None => each.map(|each| (each * open * u64::from(self.cells.trials_left())).min(self.left_ns())),
        };
        self.tell(doing, left)
    }

    fn trials_done(&self) -> usize {
        self.cells.done().iter().map(|outcome| outcome.trials.len()).sum()
    }

    fn tell(&mut self, doing: String, left_ns: Option<u64>) -> Result<(), ControlError> {
        let cells = self.header.cells.len() as u32;
        let cells_done = self.cells.done().len() as u32;
        Ok(self.sink.event(&Event::Phase(Phase { doing, cells_done, cells, left_ns }))?)
    }
}

/// Says that a cell has no trial in a block, and why.
fn left_out(cell: &Cell, block: u32, what: &str) -> Finding {
    let levels: Vec<String> = cell.levels.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let of = if levels.is_empty() { String::new() } else { format!(" ({})", levels.join(", ")) };
    Finding {
        kind: FindingKind::Note,
        statement: format!("Cell {}{of} was left out of block {}: {what}.", cell.id, block + 1),
        estimate: None,
        block: None,
        cells: vec![cell.id],
        comparison: None,
    }
}

/// One test, which hands back what it was lent.
async fn one(at: usize, mut pair: Pair, spec: Spec, index: u32, mut relay: Relay, mut cancel: Cancel) -> Ended {
    let leg = WireLeg { block: spec.block, reply: spec.reply_bytes(), stop: spec.stop, expected_ns: 0 };
    let result = pair.pass(index, &spec, &[leg], &mut relay, &mut cancel).await;
    (at, pair, result)
}

/// A trial of another length, where lengths are times.
fn shortened(spec: &Spec, ns: u64) -> Spec {
    match spec.stop {
        Stop::TimeNs(_) => Spec { stop: Stop::TimeNs(ns), warmup_ns: 0, probe: None, ..spec.clone() },
        _ => spec.clone(),
    }
}

/// The next of several that ends.
async fn next(running: &mut Vec<Pin<Box<dyn Future<Output = Ended>>>>) -> Ended {
    std::future::poll_fn(|context| {
        for at in 0..running.len() {
            if let Poll::Ready(ended) = running[at].as_mut().poll(context) {
                drop(running.swap_remove(at));
                return Poll::Ready(ended);
            }
        }
        Poll::Pending
    })
    .await
}

/// Hands live readings of tests that run at the same time to the one sink.
struct Relay(Option<mpsc::UnboundedSender<Event>>);

impl EventSink for Relay {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Some(sink) = &self.0 {
            // Nobody listens any more once the step is over.
            let _ = sink.send(event.clone());
        }
        Ok(())
    }
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
