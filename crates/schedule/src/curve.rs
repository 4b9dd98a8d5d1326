//! A curve over block sizes: interleaved passes over all sizes, with fresh connections for each pass. A size that has converged
//! gets no more trials.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{Cell, Direction, Event, Leg, Order, Pattern, Phase, RunHeader, Shared, Spec, SplitMix64, Stop};

use crate::cells::CellState;
use crate::curve_check::{CHECK_SHARE, Check};
use crate::curve_leg::{Planned, TRIAL_NS, leg, leg_cost_ns, spec_of, warm_up};
use crate::state::RunState;
use crate::{Between, Completed, FailureKind, Machine, PassResult, RunEnd, Step, StepFailure, TestRequest, Tests};

/// What came of a step with one pass.
type Alone = Result<Option<PassResult>, StepFailure>;

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
    /// Also stamps round trips of the smallest block, for a part of the budget, if there is one.
    pub anatomy: bool,
    /// Also checks the peak by fresh passes and streams, for a part of the budget.
    pub check: bool,
}

/// Exchanges of each flow before the first timed one of a pass, so that slow start and cold caches are left out. NetPIPE makes
/// 100.
pub(crate) const WARM_UP: u64 = 50;
/// Longest warm-up, ns; a pass over a path with a long RTT has fewer exchanges in it.
const WARM_UP_NS: u64 = 20_000_000;
/// Warm-up exchanges of the first pass, which learns the RTT.
const FIRST_WARM_UP: u64 = 3;
/// Blocks up to this size, bytes, are expected to take about as long as a byte.
const SMALL: u64 = 4096;
/// The shortest and the longest leg, ns.
const LEG_NS: (u64, u64) = (500_000, 10_000_000);
/// Legs of a size that a budget should suffice for. Short legs and many passes are better, because connections and moments differ more
/// than times within one leg.
const LEGS_IN_BUDGET: u64 = 100;
/// Legs that each size should get, so that it has an interval.
const WANTED_LEGS: f64 = 12.0;
/// Legs of each size for which the budget must suffice, or larger sizes are left out: more than wanted, because a pass takes longer
/// than its legs.
const PLANNED_LEGS: u64 = 24;
/// The smallest share of the passes that a size takes part in for its cost.
const LEAST_SHARE: f64 = 0.125;
/// The share of the passes that a size takes part in after it has converged: the level that all sizes share moves on.
const SETTLED_SHARE: f64 = 0.25;
/// A leg of each size must fit into this part of the budget; otherwise sizes between are left out.
const PASS_SHARE: u64 = 5;
/// Where the next sizes need more than this part of the time that is left, their neighbours a few bytes beside are left out.
const NEIGHBOURS_SHARE: u64 = 3;
/// Sizes that are kept at least.
const LEAST_SIZES: usize = 8;
/// Most sizes that `--adaptive` adds.
const ADDED_SIZES: usize = 32;
/// The first pass goes up in steps of this factor and checks the remaining time after each.
const FIRST_STEP: u64 = 8;
/// Longest time of the stamped round trips, ns, and its largest part of the budget.
const ANATOMY: (u64, u64) = (1_000_000_000, 10);
/// Passes of the memory ceiling, and the length of its legs.
const CEILING: (u32, u64) = (10, 1_000_000);

/// A curve in progress.
#[derive(Debug)]
pub(crate) struct Curve {
    plan: CurvePlan,
    first: Spec,
    leg_ns: u64,
    random: SplitMix64,
    at: At,
    /// Passes over the sizes, apart from the first.
    pass: u32,
    /// Whether sizes are still to be added.
    adds: bool,
    /// Whether the ceiling is still to be measured.
    ceiling_due: bool,
    /// Whether the peak is still to be checked.
    check_due: bool,
    /// Round trips that are still to be stamped.
    anatomy_due: Option<Shared<Spec>>,
    /// RTT of the smallest block, ns; 0 before the first pass.
    rtt_ns: u64,
    /// Whether sizes were left out because of a long RTT.
    thinned: bool,
    /// For each size, the share of a pass that it is due.
    credit: BTreeMap<u32, f64>,
    /// A pass takes longer than its legs, by this factor: connections, agreement on each leg, and the results.
    stretch: f64,
    /// The pass in progress: its legs, its start and the time that its legs need, ns.
    planned: Vec<Planned>,
    begun: u64,
    needed_ns: u64,
}

#[derive(Debug)]
enum At {
    /// The first pass; the sizes that are left, by size.
    First(VecDeque<(u32, u64)>),
    Passes,
    Check(Box<Check>),
    Anatomy(Shared<Spec>),
    /// An end refused to stamp round trips, or a stream.
    Refused,
    Ceiling(Box<Ceiling>),
    End(RunEnd),
}

/// The memory ceiling in progress.
#[derive(Debug)]
struct Ceiling {
    spec: Spec,
    passes: u32,
    /// The curve's open cells, set aside.
    kept: BTreeMap<u32, CellState>,
    /// Whether it is the end of the run.
    last: bool,
}

impl Curve {
    pub(crate) fn new(header: &RunHeader, plan: &CurvePlan) -> Self {
        let mut sizes: Vec<(u32, u64)> = header.cells.iter().map(|cell| (cell.id, cell.spec.block)).collect();
        sizes.sort_by_key(|(_, block)| *block);
        let first =
            header.cells.first().map_or_else(|| Spec::new("tcp", Pattern::Pingpong), |cell| Spec::clone(&cell.spec));
        Self {
            leg_ns: plan.leg_ns.unwrap_or_else(|| leg_ns(header)),
            random: SplitMix64::new(header.stopping.seed),
            at: if sizes.is_empty() { At::End(RunEnd::Finished) } else { At::First(sizes.into()) },
            pass: 0,
            adds: plan.adaptive,
            ceiling_due: plan.ceiling && first.transport != Spec::CEILING,
            check_due: plan.check,
            anatomy_due: anatomy_of(header).filter(|_| plan.anatomy).map(Shared::from),
            rtt_ns: 0,
            thinned: false,
            credit: BTreeMap::new(),
            stretch: 1.0,
            planned: Vec::new(),
            begun: 0,
            needed_ns: 0,
            plan: plan.clone(),
            first,
        }
    }

    fn after_pass(&mut self, state: &mut RunState, now: u64) {
        let took = (now - self.begun) as f64 / self.needed_ns.max(1) as f64;
        self.stretch = f64::midpoint(self.stretch, took.max(1.0));
        self.pass += 1;
        if state.cells.is_analysed(self.pass + 1) {
            state.cells.separate();
            state.cells.settle();
        }
        let enough = self.pass + 1 >= state.header.stopping.min_trials;
        if enough && std::mem::take(&mut self.adds) {
            self.add_sizes(state);
        }
        // After the first results, so that a short budget is spent on the path.
        if enough && self.ceiling_due {
            self.begin_ceiling(state, false);
        }
    }

    fn finish(&mut self, state: &mut RunState) {
        let check = if std::mem::take(&mut self.check_due) {
            Check::new(state, self.leg_ns, self.rtt_ns, self.warm_up_exchanges())
        } else {
            None
        };
        if let Some(check) = check {
            self.at = At::Check(Box::new(check));
        } else if let Some(spec) = self.anatomy_due.take() {
            self.at = At::Anatomy(spec);
        } else if self.ceiling_due {
            self.begin_ceiling(state, true);
        } else {
            self.at = At::End(RunEnd::Finished);
        }
    }

    /// Remaining time for passes at `now`, ns: what the check and the stamped round trips need is kept.
    fn left_ns(&self, state: &RunState, now: u64) -> u64 {
        let check = state.header.stopping.budget_ns.filter(|_| self.check_due).map_or(0, |budget| budget / CHECK_SHARE);
        let kept = check
            + match self.anatomy_due.as_ref().map(|spec| spec.stop) {
                Some(Stop::TimeNs(ns)) => ns + TRIAL_NS + 3 * self.rtt_ns,
                _ => 0,
            };
        state.left_ns(now).saturating_sub(kept)
    }

    fn step(&self, state: &RunState, first: &Spec, near_only: bool) -> Step {
        let legs: Vec<Leg> = self.planned.iter().map(|(_, leg)| *leg).collect();
        let between = Between { single_ended: near_only, ..Between::PAIR };
        let test = TestRequest { between, ..TestRequest::of_pair(spec_of(first, &legs).into(), legs) };
        Step::Run(Tests { first: state.passes, tests: vec![test], recorded: true })
    }

    /// The next pass: each size. Where a budget limits the time, those that cost much or have converged take part in every k-th pass.
    fn plan_pass(&mut self, state: &RunState, now: u64) {
        let mut open: Vec<(&CellState, Leg)> =
            state.cells.open().map(|cell| (cell, leg(cell.cell.spec.block, self.leg_ns, cell.expected_ns()))).collect();
        open.sort_by_key(|(_, leg)| leg.block);
        let costs: Vec<u64> = open.iter().map(|(_, leg)| leg_cost_ns(&self.first, leg)).collect();
        let allowed = state.header.stopping.max_trials.saturating_sub(self.pass + 1).max(1);
        let passes_left = passes_left(&costs, self.left_ns(state, now), self.stretch).min(f64::from(allowed));
        let usual = median_cost(&costs).max(self.leg_ns);
        let shared = state.header.stopping.budget_ns.is_some();
        let mut legs: Vec<Planned> = Vec::new();
        while legs.is_empty() && !open.is_empty() {
            for ((cell, leg), cost) in open.iter().zip(&costs) {
                let random = &mut self.random;
                let least = (WANTED_LEGS - cell.trials() as f64) / passes_left;
                let settled = if cell.is_settled() { SETTLED_SHARE } else { 1.0 };
                let share = if shared { share(*cost, usual) * settled } else { 1.0 };
                // The sizes of every k-th pass begin at different passes.
                let credit = self
                    .credit
                    .entry(cell.cell.id)
                    .or_insert_with(|| random.below(1 << 20) as f64 / f64::from(1 << 20));
                *credit += share.max(least).min(1.0);
                if *credit >= 1.0 {
                    *credit -= 1.0;
                    legs.push((Some(cell.cell.id), *leg));
                }
            }
        }
        if state.header.stopping.order == Order::Random {
            self.random.shuffle(&mut legs);
        }
        legs.insert(0, warm_up(&self.first, self.warm_up_exchanges()));
        self.needed_ns = legs.iter().map(|(_, leg)| leg_cost_ns(&self.first, leg)).sum();
        self.planned = legs;
    }

    fn warm_up_exchanges(&self) -> u64 {
        WARM_UP_NS.checked_div(self.rtt_ns).map_or(FIRST_WARM_UP, |exchanges| exchanges.clamp(1, WARM_UP))
    }

    /// Keeps evenly spaced sizes if a leg of each does not fit into [`PASS_SHARE`] of the budget, as on a path with a long RTT.
    fn thin(&mut self, state: &mut RunState, sizes: &mut VecDeque<(u32, u64)>) {
        let Some(budget) = state.header.stopping.budget_ns else { return };
        let cost = leg_cost_ns(&self.first, &leg(1, self.leg_ns, self.rtt_ns));
        let fits = ((budget / PASS_SHARE / cost.max(1)) as usize).max(LEAST_SIZES);
        if fits >= sizes.len() {
            return;
        }
        let last = sizes.len() - 1;
        let kept: Vec<(u32, u64)> = (0..fits).map(|index| sizes[index * last / (fits - 1)]).collect();
        *sizes = kept.into();
        let kept: Vec<u32> = sizes.iter().map(|(id, _)| *id).collect();
        state.cells.thin(&kept);
        self.thinned = true;
    }

    /// Leaves out larger sizes that would take too long.
    fn leave_out(&self, state: &mut RunState, now: u64) {
        let measured = state.cells.open().filter(|cell| cell.trials() > 0);
        let Some((block, exchange_ns)) = measured.map(|cell| (cell.cell.spec.block, cell.expected_ns())).max() else {
            return;
        };
        let one_way_ns = if self.first.pattern == Pattern::Pingpong { exchange_ns / 2 } else { exchange_ns };
        if self.plan.limit_ns.is_some_and(|limit| one_way_ns > limit) {
            state.cells.give_up(|spec| spec.block > block);
            return;
        }
        // A size is started only if the legs that its interval needs fit into the remaining time, beside those that the smaller sizes
        // still need. Time grows at most in proportion to the size, which is a useful bound only for the sizes of the next step.
        // A value of each size over the whole range says more than an interval of a few.
        let legs = if self.thinned { 1 } else { PLANNED_LEGS };
        let cost = |cell: &CellState, expected_ns: u64| {
            leg_cost_ns(&self.first, &leg(cell.cell.spec.block, self.leg_ns, expected_ns))
        };
        let measured = state.cells.open().filter(|cell| cell.trials() > 0);
        let kept: u64 = measured.map(|cell| cost(cell, cell.expected_ns()) * (legs - 1)).sum();
        let left = self.left_ns(state, now).saturating_sub(kept + (legs - 1) * TRIAL_NS);
        let per_byte = exchange_ns as f64 / block.max(SMALL) as f64;
        let untried = state.cells.open().filter(|cell| cell.trials() == 0);
        let mut next: Vec<(u64, u64)> = untried
            .filter(|cell| cell.cell.spec.block <= block.saturating_mul(FIRST_STEP))
            .map(|cell| {
                let size = cell.cell.spec.block;
                (size, legs * cost(cell, (per_byte * size.max(SMALL) as f64) as u64))
            })
            .collect();
        next.sort_unstable();
        // Neighbours double the certainty about a size. Where they are dear, a larger size says more.
        if next.iter().map(|(_, cost)| cost).sum::<u64>() > left / NEIGHBOURS_SHARE {
            let mut all: Vec<u64> = state.header.cells.iter().map(|cell| cell.spec.block).collect();
            all.sort_unstable();
            let usual = legs * self.leg_ns;
            let dear: BTreeSet<u64> = analysis::neighbours(&all)
                .into_iter()
                .filter(|size| next.iter().any(|(other, cost)| other == size && *cost > usual))
                .collect();
            next.retain(|(size, _)| !dear.contains(size));
            state.cells.leave_out(&dear);
        }
        let mut spent = 0;
        let mut fits = |cost: u64| {
            spent += cost;
            spent <= left
        };
        if let Some((limit, _)) = next.into_iter().find(|(_, cost)| !fits(*cost)) {
            state.cells.give_up(|spec| spec.block >= limit);
        }
    }

    /// Adds sizes where the curve bends or jumps.
    fn add_sizes(&self, state: &mut RunState) {
        let outcomes = state.cells.preview();
        let next = state.cells.next_id();
        let blocks = analysis::refine(&outcomes, ADDED_SIZES);
        let cells: Vec<Cell> =
            (next..).zip(blocks).map(|(id, block)| Cell::new(id, Spec { block, ..self.first.clone() })).collect();
        if !cells.is_empty() {
            state.add(cells);
        }
    }

    /// Begins to measure copies in the near host's memory at the unperturbed sizes.
    fn begin_ceiling(&mut self, state: &mut RunState, last: bool) {
        self.ceiling_due = false;
        let spec = Spec {
            transport: Spec::CEILING,
            direction: Direction::Send,
            flows: 1,
            processes: 1,
            threads: None,
            delayed_reads: false,
            ..self.first.clone()
        };
        let blocks = state.header.cells.iter().map(|cell| cell.spec.block);
        let mut blocks: Vec<u64> = blocks.filter(|block| block.is_power_of_two()).collect();
        blocks.sort_unstable();
        let next = state.cells.next_id();
        let of = |(id, block): (u32, &u64)| Cell::new(id, Spec { block: *block, ..spec.clone() });
        let cells: Vec<Cell> = (next..).zip(&blocks).map(of).collect();
        let kept = state.cells.set_aside();
        state.add(cells);
        self.at = At::Ceiling(Box::new(Ceiling { spec, passes: 0, kept, last }));
    }

    /// A curve has all its points by now, so it does without a check that an end refuses or that fails.
    fn after_check(&mut self, state: &mut RunState, result: Alone) {
        let At::Check(check) = &mut self.at else { return };
        let (positions, over) = match &result {
            Err(failure) if failure.kind == FailureKind::Setup => {
                self.at = At::Refused;
                return;
            }
            Err(failure) if failure.kind == FailureKind::Trial => return self.finish(state),
            Ok(Some(result)) => (check.take(result), check.step(0).is_none()),
            Ok(None) | Err(_) => (Vec::new(), true),
        };
        let (cell, found) = check.found(&state.header.stopping);
        state.cells.check(cell, found);
        match state.pass(result, &positions) {
            Some(end) => self.at = At::End(end),
            None if over => self.finish(state),
            None => {}
        }
    }

    /// A curve has all its points by now, so it does without an anatomy that an end refuses or that fails.
    fn after_anatomy(&mut self, state: &mut RunState, spec: &Spec, result: Alone) {
        match &result {
            Err(failure) if failure.kind == FailureKind::Setup => return self.at = At::Refused,
            Err(failure) if failure.kind == FailureKind::Trial => return self.finish(state),
            Ok(Some(result)) => state.cells.anatomy(spec, result),
            _ => {}
        }
        match state.pass(result, &[(None, 0)]) {
            Some(end) => self.at = At::End(end),
            None => self.finish(state),
        }
    }

    fn end_ceiling(&mut self, state: &mut RunState, ended: Option<RunEnd>) {
        state.finish_all(ended.is_some());
        let At::Ceiling(ceiling) = std::mem::replace(&mut self.at, At::Passes) else { return };
        state.cells.take_back(ceiling.kept);
        if let Some(end) = ended.or(ceiling.last.then_some(RunEnd::Finished)) {
            self.at = At::End(end);
        }
    }

    fn report(&self, state: &mut RunState, now: u64, pass_ns: u64) {
        let open = state.cells.unsettled().count();
        let most = state.cells.trials_left();
        let left_ns = (pass_ns > 0).then(|| (pass_ns * u64::from(most)).min(state.left_ns(now)));
        let done = state.cells.settled_count(&self.first.transport);
        let activity = if matches!(self.at, At::First(_)) {
            "pass 1: all sizes".to_owned()
        } else {
            format!("pass {}: {open} {} left", self.pass + 2, if open == 1 { "size" } else { "sizes" })
        };
        let (cells_done, cells) = (done as u32, (done + open) as u32);
        state.event(Event::Phase(Phase { activity: activity.into(), cells_done, cells, remaining_ns: left_ns }));
    }
}

impl Machine for Curve {
    fn next(&mut self, state: &mut RunState, now: u64) -> Step {
        self.begun = now;
        loop {
            match &mut self.at {
                At::First(sizes) => match sizes.front() {
                    None => self.at = At::Passes,
                    Some((_, smallest)) => {
                        // The smallest size alone tells how long an exchange takes at least.
                        let step = if state.passes == 0 { 1 } else { (*smallest).max(512).saturating_mul(FIRST_STEP) };
                        let top = step.max(*smallest);
                        let fits = sizes.iter().take_while(|(_, block)| *block <= top).count();
                        let sizes: Vec<(u32, u64)> = sizes.drain(..fits).collect();
                        let legs = sizes.into_iter().map(|(id, block)| (Some(id), leg(block, self.leg_ns, 0)));
                        self.planned =
                            std::iter::once(warm_up(&self.first, self.warm_up_exchanges())).chain(legs).collect();
                        self.report(state, now, 0);
                        return self.step(state, &self.first, false);
                    }
                },
                At::Passes => {
                    self.plan_pass(state, now);
                    let wanted = state.cells.unsettled().next().is_some();
                    let fits = self.left_ns(state, now) as f64 >= self.needed_ns as f64 * self.stretch;
                    if self.pass + 1 < state.header.stopping.max_trials && wanted && fits {
                        self.report(state, now, self.needed_ns);
                        return self.step(state, &self.first, false);
                    }
                    self.finish(state);
                }
                At::Check(check) => match check.step(state.passes) {
                    Some(step) => {
                        state.phase("the peak again", None);
                        return step;
                    }
                    None => self.finish(state),
                },
                At::Anatomy(spec) => {
                    let activity = "the anatomy of a round trip";
                    let (number, spec) = (state.passes, spec.clone());
                    state.phase(activity, None);
                    return Step::trial(number, spec);
                }
                At::Refused => return Step::reset(),
                At::Ceiling(ceiling) => {
                    let of = |cell: &CellState| {
                        (Some(cell.cell.id), leg(cell.cell.spec.block, CEILING.1, cell.expected_ns()))
                    };
                    let spec = ceiling.spec.clone();
                    self.planned = std::iter::once(warm_up(&spec, WARM_UP)).chain(state.cells.open().map(of)).collect();
                    return self.step(state, &spec, true);
                }
                At::End(end) => return Step::End(end.clone()),
            }
        }
    }

    fn completed(&mut self, state: &mut RunState, result: Completed, now: u64) {
        let result = result.alone();
        match &self.at {
            At::Anatomy(spec) => {
                let spec = spec.clone();
                return self.after_anatomy(state, &spec, result);
            }
            At::Check(_) => return self.after_check(state, result),
            At::Refused => return self.finish(state),
            _ => {}
        }
        let positions: Vec<(Option<u32>, u32)> =
            self.planned.iter().zip(0..).map(|((cell, _), position)| (*cell, position)).collect();
        let ended = state.pass(result, &positions);
        match (&mut self.at, ended) {
            (At::Ceiling(one), ended) => {
                one.passes += 1;
                if ended.is_some() || one.passes == CEILING.0 {
                    self.end_ceiling(state, ended);
                }
            }
            (_, Some(end)) => self.at = At::End(end),
            (At::First(_), None) => {
                if self.rtt_ns == 0 {
                    self.rtt_ns = state.cells.open().map(CellState::expected_ns).max().unwrap_or(0);
                    if let At::First(sizes) = &mut self.at {
                        let mut sizes = std::mem::take(sizes);
                        self.thin(state, &mut sizes);
                        self.at = At::First(sizes);
                    }
                }
                self.leave_out(state, now);
                if let At::First(sizes) = &mut self.at {
                    sizes.retain(|(id, _)| state.cells.open().any(|open| open.cell.id == *id));
                }
            }
            (_, None) => self.after_pass(state, now),
        }
    }
}

/// Length of a leg in ns, so that the budget suffices for [`LEGS_IN_BUDGET`] of each size.
fn leg_ns(header: &RunHeader) -> u64 {
    let cells = header.cells.len().max(1) as u64;
    let share = header.stopping.budget_ns.map_or(LEG_NS.1, |budget| budget / cells / LEGS_IN_BUDGET);
    share.clamp(LEG_NS.0, LEG_NS.1)
}

/// The stamped round trips of a curve: of its smallest block, for a second or a tenth of the budget. `None` without a budget.
#[must_use]
pub fn anatomy_of(header: &RunHeader) -> Option<Spec> {
    let ns = ANATOMY.0.min(header.stopping.budget_ns? / ANATOMY.1);
    let smallest = Spec::clone(&header.cells.iter().min_by_key(|cell| cell.spec.block)?.spec);
    // The points of a curve have no series.
    let interval_ns = Spec::new("tcp", Pattern::Rr).interval_ns;
    let stop = Stop::TimeNs(ns);
    Some(Spec { pattern: Pattern::Rr, reply: None, stop, interval_ns, anatomy: true, capture: None, ..smallest })
}

/// The share of the passes that a size takes part in: the variance of all sizes together is smallest if the share falls with the
/// square root of the cost (Neyman, 1934), so that a few large blocks do not take most of the time.
fn share(cost: u64, usual: u64) -> f64 {
    if cost <= 2 * usual { 1.0 } else { (usual as f64 / cost as f64).sqrt().max(LEAST_SHARE) }
}

/// Passes that fit into the remaining time.
fn passes_left(costs: &[u64], left_ns: u64, stretch: f64) -> f64 {
    let usual = median_cost(costs);
    let pass: f64 = costs.iter().map(|cost| *cost as f64 * share(*cost, usual)).sum();
    (left_ns as f64 / (pass * stretch).max(1.0)).max(1.0)
}

fn median_cost(costs: &[u64]) -> u64 {
    let costs: Vec<f64> = costs.iter().map(|cost| *cost as f64).collect();
    model::median(&costs).map_or(0, |ns| ns as u64)
}
