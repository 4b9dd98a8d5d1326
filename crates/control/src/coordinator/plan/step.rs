//! The tests of one step, each between two hosts, all at the same time.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use analysis::plan::Slot;
use model::{Cell, Conditions, EndPass, Event, EventSink, Order, Pass, SinkError, Spec, Stop};
use schedule::{Leg, Planned, RatePass, RunState, leg, spec_of, warm_up};
use tokio::sync::mpsc;

use super::{PlanSchedule, unix_ns};
use crate::ControlError;
use crate::coordinator::{ActiveRun, Cancel, Fleet, Pair};

/// A test of one step: a cell, or the open sizes of a curve.
pub(super) struct Test {
    /// The first of its cells.
    pub(super) cell: Cell,
    /// Its legs, each with its cell.
    pub(super) legs: Vec<Planned>,
    pub(super) hosts: [usize; 2],
    pub(super) single_ended: bool,
    pub(super) conditions: [Option<Conditions>; 2],
}

/// A test that has ended, with the hosts it was lent.
type Ended = (usize, Pair, Result<RatePass, ControlError>);

impl ActiveRun<'_, Fleet, RunState> {
    /// The tests of the slots that start with these cells.
    pub(super) fn tests(&self, schedule: &PlanSchedule, round: u32, cells: &[u32]) -> Result<Vec<Test>, ControlError> {
        let mut tests = Vec::with_capacity(cells.len());
        for id in cells {
            let cell = self.header.cells.iter().find(|cell| cell.id == *id);
            let slot = schedule.slots.iter().find(|slot| slot.cell == *id);
            if let (Some(cell), Some(slot)) = (cell, slot) {
                let transport = engine::transport::transport(cell.spec.transport.as_str())?;
                tests.push(Test {
                    cell: cell.clone(),
                    legs: self.legs(cell, slot, round),
                    hosts: [slot.near, slot.far],
                    single_ended: transport.capabilities().single_ended,
                    conditions: [None; 2],
                });
            }
        }
        Ok(tests)
    }

    /// The legs over one set of connections: one leg, or a warm-up leg and those of a curve's open sizes.
    fn legs(&self, cell: &Cell, slot: &Slot, round: u32) -> Vec<Planned> {
        let spec = &cell.spec;
        if !spec.is_point() {
            return vec![(Some(cell.id), Leg::of(spec))];
        }
        let rule = &self.header.stopping;
        let order = analysis::plan::size_order(slot, (rule.order == Order::Random).then_some(rule.seed), round);
        let of = |id: u32| {
            let state = self.run.cells.open().find(|state| state.cell.id == id)?;
            let Stop::AboutNs(ns) = state.cell.spec.stop else { return None };
            Some((Some(id), leg(state.cell.spec.block, ns, state.expected_ns())))
        };
        std::iter::once(warm_up(spec)).chain(order.into_iter().filter_map(of)).collect()
    }

    /// Measures the round trips without load of cells with a probe that have none yet, one cell after the other.
    pub(super) async fn idle(&mut self, tests: &[Test]) -> Result<(), ControlError> {
        for test in tests.iter().filter(|test| test.cell.spec.probe.is_some()) {
            let id = test.cell.id;
            if !self.run.cells.open().any(|state| state.cell.id == id && state.idle.is_none()) {
                continue;
            }
            let Some(mut pair) = self.pair.lend(test.hosts, test.single_ended) else { continue };
            let found = pair.idle(&test.cell.spec, &mut Relay(None), &mut self.cancel).await;
            self.pair.take_back(test.hosts, pair);
            self.run.cells.idle(id, found?);
        }
        Ok(())
    }

    /// Runs all tests at the same time and records them when all have ended, because a lab's report covers all of them. With
    /// `warmup` they run for that many ns and are not recorded. The first error is returned after all have ended.
    pub(super) async fn run_together(
        &mut self,
        tests: &[Test],
        warmup: Option<u64>,
        round: u32,
    ) -> Result<(), ControlError> {
        let (relay, mut live) = mpsc::unbounded_channel();
        let mut running: Vec<Pin<Box<dyn Future<Output = Ended>>>> = Vec::new();
        let first = self.run.passes;
        if warmup.is_none() {
            self.begin_links();
        }
        let (begun, begun_unix) = (self.elapsed_ns(), unix_ns());
        for (at, test) in tests.iter().enumerate() {
            // A curve has warm-up legs of its own.
            if warmup.is_some() && test.cell.spec.is_point() {
                continue;
            }
            let Some(pair) = self.pair.lend(test.hosts, test.single_ended) else { continue };
            let (spec, legs) = spec_and_legs(test, warmup);
            let relay = Relay(warmup.is_none().then(|| relay.clone()));
            running.push(Box::pin(run_test(at, pair, (spec, legs), first + at as u32, relay, self.cancel.clone())));
        }
        if warmup.is_none() {
            self.run.passes += tests.len() as u32;
        }
        let mut result = Ok(());
        let mut over = Vec::new();
        while !running.is_empty() {
            tokio::select! {
                Some(event) = live.recv() => result = result.and(self.sink.event(&event).map_err(ControlError::from)),
                (at, pair, ended) = next(&mut running) => {
                    self.pair.take_back(tests[at].hosts, pair);
                    over.push((at, self.elapsed_ns() - begun, ended));
                }
            }
        }
        let lab = if warmup.is_none() { self.read_links() } else { None };
        for (at, duration_ns, ended) in over {
            let recorded = match ended {
                Ok(ended) if warmup.is_none() => {
                    let pass = Pass {
                        index: first + at as u32,
                        started_ns: begun,
                        started_unix_ns: Some(begun_unix),
                        duration_ns,
                        round: Some(round),
                        lab: lab.clone(),
                        ..Pass::default()
                    };
                    self.record_test(&tests[at], pass, ended)
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            result = result.and(recorded);
        }
        result
    }

    fn record_test(&mut self, test: &Test, over: Pass, ended: RatePass) -> Result<(), ControlError> {
        let before = |end: usize| EndPass {
            conditions: test.conditions[end],
            settings: self.pair.changes(test.hosts[end]),
            ..EndPass::default()
        };
        let pass = Pass { near: before(0), far: before(1), ..over };
        self.run.pass_rounds.push(Pass { index: pass.index, round: pass.round, ..Pass::default() });
        // A stall ends its pass, and the failure that follows is that stall, which the trial already records.
        let stalled = [Some(&ended.near), ended.far.as_ref()]
            .into_iter()
            .flatten()
            .flat_map(|end| &end.tallies)
            .any(|tally| tally.stalled);
        let failure = ended.failure.filter(|_| !stalled);
        let slots: Vec<(Option<u32>, u32)> = test.legs.iter().zip(0..).map(|((cell, _), at)| (*cell, at)).collect();
        let links = self.links;
        self.run.record(pass, ended.near, ended.far, &slots, links);
        self.send_events()?;
        match failure.filter(|_| !*self.cancel.borrow()) {
            Some(reason) => Err(ControlError::Trial { address: "the trial was cut short".into(), reason }),
            None => Ok(()),
        }
    }
}

/// The spec and the legs of a test, or of the `warmup` ns before it.
fn spec_and_legs(test: &Test, warmup: Option<u64>) -> (Spec, Vec<Leg>) {
    let legs: Vec<Leg> = test.legs.iter().map(|(_, leg)| *leg).collect();
    let spec = &test.cell.spec;
    if spec.is_point() {
        return (spec_of(spec, &legs), legs);
    }
    let Some(ns) = warmup else { return (spec.clone(), legs) };
    let spec = shortened(spec, ns);
    let legs = legs.into_iter().map(|leg| Leg { stop: spec.stop, ..leg }).collect();
    (spec, legs)
}

/// Runs one test and returns its hosts.
async fn run_test(
    at: usize,
    mut pair: Pair,
    (spec, legs): (Spec, Vec<Leg>),
    index: u32,
    mut relay: Relay,
    mut cancel: Cancel,
) -> Ended {
    let result = if spec.no_loss {
        pair.trial(index, &spec, None, &mut relay, &mut cancel).await
    } else {
        let legs: Vec<_> = legs.into_iter().map(Into::into).collect();
        pair.rated(index, &spec, &legs, &mut relay, &mut cancel).await
    };
    (at, pair, result)
}

/// The spec with another trial length, if the length is a time.
fn shortened(spec: &Spec, ns: u64) -> Spec {
    match spec.stop {
        Stop::TimeNs(_) => Spec { stop: Stop::TimeNs(ns), warmup_ns: 0, probe: None, no_loss: false, ..spec.clone() },
        _ => spec.clone(),
    }
}

/// The next test that ends.
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

/// Passes live readings of simultaneous tests to the one sink.
struct Relay(Option<mpsc::UnboundedSender<Event>>);

impl EventSink for Relay {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        // The phases of a search belong to a trial and are not the plan's progress.
        if let Some(sink) = self.0.as_ref().filter(|_| !matches!(event, Event::Phase(_))) {
            // After the step the receiver is gone.
            let _ = sink.send(event.clone());
        }
        Ok(())
    }
}
