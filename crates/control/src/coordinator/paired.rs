//! Two cells in turns: rounds of four trials, A B B A or B A A B at random, until the interval of the ratio is narrow enough.
//!
//! Within a round a steady drift affects both cells alike. The random order makes any other disturbance equally likely for both
//! cells, which is all that the randomisation test of the analysis needs.

use std::time::Duration;

use analysis::compare::log_ratios;
use analysis::stats::{Paired, PairedDecision, SplitMix64};
use model::{Cell, Event, Finding, FindingKind, Phase, Verdict};

use super::ActiveRun;
use super::metrics::Metrics;
use crate::ControlError;

/// How two cells are measured in turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairedPlan {
    /// Pause between two trials, ns, always the same, in which queues empty and timers expire.
    pub gap_ns: u64,
}

impl ActiveRun<'_> {
    pub(super) async fn paired(&mut self, plan: &PairedPlan) -> Result<(), ControlError> {
        let [a, b] = self.header.cells.as_slice() else { return Ok(()) };
        let rule = Paired::new(&self.header.stopping);
        let mut coin = SplitMix64::new(self.header.stopping.seed);
        let mut metrics = Metrics::of(self.header, self.pair);
        let most = rule.analyses().last().copied().unwrap_or(1);
        let mut result = Ok(());
        for round in 0..most {
            let begun = self.elapsed_ns();
            let turned = coin.next_u64() >> 63 == 1;
            let order = if turned { [b, a, a, b] } else { [a, b, b, a] };
            self.round_phase(round, most, turned)?;
            result = self.round(order, plan, &mut metrics).await;
            if result.is_err() {
                break;
            }
            let logs = log_ratios(self.cells.trials_of(a.id), self.cells.trials_of(b.id));
            let took = self.elapsed_ns() - begun;
            if rule.decide(&logs) != PairedDecision::Continue || self.left_ns() < took {
                break;
            }
        }
        self.remark_metrics(&metrics);
        result
    }

    async fn round(&mut self, order: [&Cell; 4], plan: &PairedPlan, metrics: &mut Metrics) -> Result<(), ControlError> {
        for cell in order {
            if self.passes > 0 {
                tokio::time::sleep(Duration::from_nanos(plan.gap_ns)).await;
            }
            metrics.flush().await;
            self.one_trial(cell).await?;
        }
        Ok(())
    }

    fn remark_metrics(&mut self, metrics: &Metrics) {
        let Some(statement) = metrics.statement() else { return };
        if metrics.may_carry_over() {
            self.cells.remark(Verdict::MetricsKept);
        }
        self.notes.push(Finding {
            kind: FindingKind::Note,
            statement,
            estimate: None,
            block: None,
            cells: self.header.cells.iter().map(|cell| cell.id).collect(),
            comparison: None,
        });
    }

    fn round_phase(&mut self, round: usize, most: usize, turned: bool) -> Result<(), ControlError> {
        let each = self.elapsed_ns().checked_div(round as u64);
        let left_ns = each.map(|each| (each * (most - round) as u64).min(self.left_ns()));
        let order = if turned { "B A A B" } else { "A B B A" };
        let activity = format!("round {} of at most {most}: {order}", round + 1);
        Ok(self.sink.event(&Event::Phase(Phase { activity, cells_done: 0, cells: 1, remaining_ns: left_ns }))?)
    }
}
