//! Two cells in turns: rounds of four trials, A B B A or B A A B at random, until the interval of the ratio is narrow enough.
//!
//! Within a round a steady drift affects both cells alike. The random order makes any other disturbance equally likely for both
//! cells, which is all that the randomisation test of the analysis needs.

use analysis::compare::log_ratios;
use analysis::stats::{Paired, PairedDecision};
use model::SplitMix64;
use model::{Cell, RunHeader};

use crate::fit::Unfixed;
use crate::state::RunState;
use crate::{Completed, Machine, RunEnd, Step};

/// How two cells are measured in turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairedPlan {
    /// Pause between two trials, ns, always the same, in which queues empty and timers expire.
    pub gap_ns: u64,
    /// What the path may change.
    pub unfixed: Unfixed,
}

/// Two cells in progress.
#[derive(Debug)]
pub(crate) struct PairedRun {
    gap_ns: u64,
    cells: Option<[Cell; 2]>,
    rule: Paired,
    coin: SplitMix64,
    /// Most rounds.
    most: usize,
    round: usize,
    /// Whether B comes first in this round.
    turned: bool,
    /// Trials of this round that are over.
    trials: usize,
    /// Start of this round.
    begun: u64,
    at: At,
}

#[derive(Debug)]
enum At {
    Round,
    Gap,
    Prepare,
    Trial,
    End(RunEnd),
}

impl PairedRun {
    pub(crate) fn new(header: &RunHeader, plan: &PairedPlan) -> Self {
        let cells: Option<[Cell; 2]> = header.cells.clone().try_into().ok();
        let rule = Paired::new(&header.stopping);
        let most = rule.analyses().last().copied().unwrap_or(1);
        let at = if cells.is_some() { At::Round } else { At::End(RunEnd::Finished) };
        let coin = SplitMix64::new(header.stopping.seed);
        Self { gap_ns: plan.gap_ns, cells, rule, coin, most, round: 0, turned: false, trials: 0, begun: 0, at }
    }

    /// The cell of the next trial: A B B A, or B A A B.
    fn cell(&self) -> Option<&Cell> {
        let b = matches!(self.trials, 1 | 2) != self.turned;
        self.cells.as_ref().map(|cells| &cells[usize::from(b)])
    }

    fn after_round(&mut self, state: &RunState, now: u64) -> At {
        self.round += 1;
        let [a, b] = [0, 1].map(|at| self.cells.as_ref().map_or(at as u32, |cells| cells[at].id));
        let logs = log_ratios(state.cells.trials_of(a), state.cells.trials_of(b));
        let decided = self.rule.decide(&logs) != PairedDecision::Continue;
        let over = decided || self.round >= self.most || state.left_ns(now) < now - self.begun;
        if over { At::End(RunEnd::Finished) } else { At::Round }
    }

    fn report(&self, state: &mut RunState, now: u64) {
        let (round, most) = (self.round, self.most);
        // Two trials of each of the two.
        let timed = || self.cells.iter().flatten().map(|cell| Some(2 * (cell.spec.timed_ns()? + self.gap_ns))).sum();
        let each: Option<u64> = now.checked_div(round as u64).or_else(timed);
        let left_ns = each.map(|each| (each * (most - round) as u64).min(state.left_ns(now)));
        let order = if self.turned { "B A A B" } else { "A B B A" };
        state.phase(format!("round {} of at most {most}: {order}", round + 1), left_ns);
    }
}

impl Machine for PairedRun {
    fn next(&mut self, state: &mut RunState, now: u64) -> Step {
        if matches!(self.at, At::Round) {
            (self.begun, self.trials) = (now, 0);
            self.turned = self.coin.next_u64() >> 63 == 1;
            self.report(state, now);
            self.at = if state.passes > 0 { At::Gap } else { At::Prepare };
        }
        match (&self.at, self.cell()) {
            (At::End(end), _) => Step::End(end.clone()),
            (At::Gap, _) => Step::pause(self.gap_ns),
            (At::Prepare, Some(cell)) => Step::afresh(&cell.spec),
            (_, Some(cell)) => Step::trial(state.passes, cell.spec.clone()),
            (_, None) => Step::End(RunEnd::Finished),
        }
    }

    fn completed(&mut self, state: &mut RunState, result: Completed, now: u64) {
        let Some(id) = self.cell().map(|cell| cell.id) else { return };
        let ended = state.pass(result.alone(), &[(Some(id), 0)]);
        self.at = match (ended, &self.at) {
            (Some(end), _) => At::End(end),
            (None, At::Gap) => At::Prepare,
            (None, At::Prepare) => At::Trial,
            (None, _) => {
                self.trials += 1;
                if self.trials < 4 { At::Gap } else { self.after_round(state, now) }
            }
        };
    }
}
