//! A curve over block sizes: interleaved passes over all sizes, with fresh connections for each pass. A size that has converged
//! gets no more trials.

use analysis::stats::SplitMix64;
use model::{Cell, Event, Order, Phase, Spec, Stop};

use super::ActiveRun;
use crate::ControlError;
use crate::proto::message::WireLeg;

/// How a curve is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurvePlan {
    /// Adds sizes where the curve bends or jumps.
    pub adaptive: bool,
    /// Length of a leg in ns; `None` for the budget's share.
    pub leg_ns: Option<u64>,
    /// NetPIPE's limit: no larger blocks once one takes longer than this, ns (half of a round trip).
    pub limit_ns: Option<u64>,
    /// Also measures copies in memory, as a ceiling.
    pub ceiling: bool,
}

/// Exchanges of each flow before the first timed one of a pass, so that slow start and cold caches are left out. NetPIPE makes
/// 100.
const WARM_UP: u64 = 50;
/// The shortest and the longest leg, ns.
const LEG_NS: (u64, u64) = (500_000, 10_000_000);
/// Legs of a size that a budget should suffice for. Short legs and many passes are better, because connections differ more than
/// times within one connection.
const LEGS_IN_BUDGET: u64 = 50;
/// Most sizes that `--adaptive` adds.
const ADDED_SIZES: usize = 32;
/// The first pass goes up in steps of this factor and checks the remaining time after each.
const FIRST_STEP: u64 = 8;
/// Passes of the memory ceiling, and the length of its legs.
const CEILING: (u32, u64) = (6, 1_000_000);

/// A leg of a pass and the cell that it is a trial of.
pub(super) type Planned = (Option<u32>, WireLeg);

impl ActiveRun<'_> {
    pub(super) async fn curve(&mut self, plan: &CurvePlan) -> Result<(), ControlError> {
        let Some(first) = self.header.cells.first().map(|cell| cell.spec.clone()) else { return Ok(()) };
        let rule = self.header.stopping.clone();
        let leg_ns = plan.leg_ns.unwrap_or_else(|| self.leg_ns());
        self.first_pass(plan, &first, leg_ns).await?;
        let mut random = SplitMix64::new(rule.seed);
        let mut added = !plan.adaptive;
        let mut stretch = 1.0;
        let mut ceiling_due = plan.ceiling && first.transport != Spec::CEILING;
        for pass in 1..rule.max_trials {
            let planned = self.plan_pass(&first, leg_ns, rule.order, &mut random);
            let needed_ns: u64 = planned.iter().map(|(_, leg)| leg_cost_ns(&first, leg)).sum();
            // A pass takes longer than its legs: connections, agreement on each leg, and the results.
            if planned.len() <= 1 || (self.left_ns() as f64) < needed_ns as f64 * stretch {
                break;
            }
            self.curve_phase(pass, needed_ns)?;
            let begun_ns = self.elapsed_ns();
            self.curve_pass(&first, &planned).await?;
            let took = (self.elapsed_ns() - begun_ns) as f64 / needed_ns.max(1) as f64;
            stretch = f64::midpoint(stretch, took.max(1.0));
            self.cells.settle();
            if !added && pass + 1 >= rule.min_trials {
                added = true;
                self.add_sizes(&first)?;
            }
            // After the first results, so that a short budget is spent on the path.
            if ceiling_due && pass + 1 >= rule.min_trials {
                ceiling_due = false;
                self.ceiling(&first).await?;
            }
        }
        if ceiling_due {
            self.ceiling(&first).await?;
        }
        Ok(())
    }

    /// Length of a leg in ns, so that the budget suffices for [`LEGS_IN_BUDGET`] of each size.
    fn leg_ns(&self) -> u64 {
        let cells = self.header.cells.len().max(1) as u64;
        self.header
            .stopping
            .budget_ns
            .map_or(LEG_NS.1, |budget| budget / cells / LEGS_IN_BUDGET)
            .clamp(LEG_NS.0, LEG_NS.1)
    }

    /// The first pass goes up through the sizes in steps, because the path is not known yet. It leaves out sizes that the budget
    /// or NetPIPE's limit is too small for.
    async fn first_pass(&mut self, plan: &CurvePlan, first: &Spec, leg_ns: u64) -> Result<(), ControlError> {
        let mut cells: Vec<(u32, u64)> =
            self.cells.open().map(|state| (state.cell.id, state.cell.spec.block)).collect();
        cells.sort_by_key(|(_, block)| *block);
        let mut at = 0;
        while at < cells.len() {
            let top = cells[at].1.max(512).saturating_mul(FIRST_STEP);
            let step: Vec<(u32, u64)> = cells[at..].iter().copied().take_while(|(_, block)| *block <= top).collect();
            at += step.len();
            let mut planned = vec![warm_up(first)];
            planned.extend(step.iter().map(|(id, block)| (Some(*id), leg(*block, leg_ns, 0))));
            self.curve_phase(0, 0)?;
            self.curve_pass(first, &planned).await?;
            self.leave_out(plan, first);
            cells.retain(|(id, _)| self.cells.open().any(|state| state.cell.id == *id));
        }
        Ok(())
    }

    /// Leaves out larger sizes that would take too long.
    fn leave_out(&mut self, plan: &CurvePlan, first: &Spec) {
        let Some((block, exchange_ns)) = self
            .cells
            .open()
            .filter(|state| state.trials() > 0)
            .map(|state| (state.cell.spec.block, state.expected_ns()))
            .max()
        else {
            return;
        };
        let one_way_ns = if first.pattern == "pingpong" { exchange_ns / 2 } else { exchange_ns };
        if plan.limit_ns.is_some_and(|limit| one_way_ns > limit) {
            self.cells.give_up(|spec| spec.block > block);
            return;
        }
        // A size is started only if the passes that its interval needs fit into the remaining time. Time grows at most in
        // proportion to the size, which is a useful bound only for the sizes of the next step.
        let left = self.left_ns() as f64;
        let per_byte = exchange_ns as f64 / block.max(1) as f64;
        let passes = f64::from(self.header.stopping.min_trials);
        let mut next: Vec<u64> =
            self.cells.open().filter(|state| state.trials() == 0).map(|state| state.cell.spec.block).collect();
        next.retain(|next| *next <= block.saturating_mul(FIRST_STEP));
        next.sort_unstable();
        let mut spent = 0.0;
        let mut limit = u64::MAX;
        for size in next {
            let exchange = per_byte * size as f64;
            spent += exchange * engine::min_exchanges(first, exchange) as f64 * passes;
            if spent > left {
                limit = limit.min(size);
            }
        }
        self.cells.give_up(|spec| spec.block >= limit);
    }

    /// The next pass: each size that has not converged, once.
    fn plan_pass(&self, first: &Spec, leg_ns: u64, order: Order, random: &mut SplitMix64) -> Vec<Planned> {
        let mut legs: Vec<Planned> = self
            .cells
            .unsettled()
            .map(|state| (Some(state.cell.id), leg(state.cell.spec.block, leg_ns, state.expected_ns())))
            .collect();
        legs.sort_by_key(|(_, leg)| leg.block);
        if order == Order::Random {
            random.shuffle(&mut legs);
        }
        legs.insert(0, warm_up(first));
        legs
    }

    async fn curve_pass(&mut self, first: &Spec, planned: &[Planned]) -> Result<(), ControlError> {
        self.begin_links();
        let begun = self.elapsed_ns();
        let legs: Vec<WireLeg> = planned.iter().map(|(_, leg)| *leg).collect();
        let spec = spec_of(first, &legs);
        let result = self.pair.pass(self.passes, &spec, &legs, self.sink, &mut self.cancel).await?;
        let failure = result.failure;
        let positions: Vec<(Option<u32>, u32)> =
            planned.iter().zip(0..).map(|((cell, _), position)| (*cell, position)).collect();
        self.record_pass(begun, result.near, result.far, &positions)?;
        // The memory ceiling has its own passes, during which the curve's open cells are set aside.
        if self.header.cells.first().is_some_and(|cell| cell.spec.transport == first.transport) {
            self.cells.remove_pass_effects();
        }
        self.interrupted()?;
        match failure {
            Some(reason) => Err(ControlError::Trial { address: "the pass was cut short".into(), reason }),
            None => Ok(()),
        }
    }

    /// Adds sizes where the curve bends or jumps.
    fn add_sizes(&mut self, first: &Spec) -> Result<(), ControlError> {
        let outcomes = self.cells.preview();
        let mut cells = Vec::new();
        for (id, block) in (self.cells.next_id()..).zip(analysis::refine(&outcomes, ADDED_SIZES)) {
            let cell = Cell::new(id, Spec { block, ..first.clone() });
            self.cells.add(cell.clone());
            cells.push(cell);
        }
        if cells.is_empty() { Ok(()) } else { Ok(self.sink.event(&Event::Cells { cells })?) }
    }

    /// Measures copies in the near host's memory at the unperturbed sizes.
    async fn ceiling(&mut self, first: &Spec) -> Result<(), ControlError> {
        let spec = Spec {
            transport: Spec::CEILING.into(),
            direction: model::Direction::Send,
            flows: 1,
            processes: 1,
            threads: None,
            delayed_reads: false,
            ..first.clone()
        };
        let mut blocks: Vec<u64> =
            self.header.cells.iter().map(|cell| cell.spec.block).filter(|block| block.is_power_of_two()).collect();
        blocks.sort_unstable();
        let next = self.cells.next_id();
        let cells: Vec<Cell> =
            (next..).zip(&blocks).map(|(id, block)| Cell::new(id, Spec { block: *block, ..spec.clone() })).collect();
        self.sink.event(&Event::Cells { cells: cells.clone() })?;
        let far = self.pair.far.take();
        let result = self.ceiling_passes(&spec, &cells).await;
        self.pair.far = far;
        result
    }

    async fn ceiling_passes(&mut self, spec: &Spec, cells: &[Cell]) -> Result<(), ControlError> {
        let kept = self.cells.set_aside();
        cells.iter().cloned().for_each(|cell| self.cells.add(cell));
        let mut result = Ok(());
        for _ in 0..CEILING.0 {
            let mut planned = vec![warm_up(spec)];
            planned.extend(
                self.cells
                    .open()
                    .map(|state| (Some(state.cell.id), leg(state.cell.spec.block, CEILING.1, state.expected_ns()))),
            );
            result = self.curve_pass(spec, &planned).await;
            if result.is_err() {
                break;
            }
        }
        let early = result.is_err();
        for outcome in self.cells.finish_all(early) {
            self.sink.event(&Event::Outcome(outcome))?;
        }
        self.cells.take_back(kept);
        result
    }

    fn curve_phase(&mut self, pass: u32, pass_ns: u64) -> Result<(), ControlError> {
        let open = self.cells.unsettled().count();
        let most = self.cells.trials_left();
        let left_ns = (pass_ns > 0).then(|| (pass_ns * u64::from(most)).min(self.left_ns()));
        let done = self.cells.settled_count(&self.header.cells[0].spec.transport);
        let activity = if pass == 0 {
            "pass 1: all sizes".to_owned()
        } else {
            format!("pass {}: {open} {} left", pass + 1, if open == 1 { "size" } else { "sizes" })
        };
        let phase = Phase { activity, cells_done: done as u32, cells: (done + open) as u32, remaining_ns: left_ns };
        Ok(self.sink.event(&Event::Phase(phase))?)
    }
}

/// The spec of a pass over several sizes: the ends allocate buffers for its largest block.
pub(super) fn spec_of(first: &Spec, legs: &[WireLeg]) -> Spec {
    let block = legs.iter().map(|leg| leg.block).max().unwrap_or(1);
    Spec { block, reply: None, interval_ns: 0, ..first.clone() }
}

/// A leg of about `leg_ns`, or of a few exchanges if these take longer.
pub(super) fn leg(block: u64, leg_ns: u64, expected_ns: u64) -> WireLeg {
    WireLeg { block, reply: block, stop: Stop::AboutNs(leg_ns), expected_ns }
}

/// The leg before the first timed one.
pub(super) fn warm_up(first: &Spec) -> Planned {
    let block = if first.pattern == "pingpong" { 1 } else { 8 };
    let exchanges = WARM_UP * u64::from(first.flows);
    (None, WireLeg { block, reply: block, stop: Stop::Transactions(exchanges), expected_ns: 0 })
}

fn leg_cost_ns(first: &Spec, leg: &WireLeg) -> u64 {
    match leg.stop {
        Stop::AboutNs(ns) => ns.max(engine::min_exchanges(first, leg.expected_ns as f64) * leg.expected_ns),
        _ => 0,
    }
}
