//! Two cells in turns: blocks of four trials, ABBA or BAAB by a coin, until the ratio is sure enough.
//!
//! Within a block a drift that goes on steadily hits both cells alike; the coin makes whatever else goes on as likely to help
//! the one as the other, which is all that the randomisation test of the analysis rests on.

use std::time::Duration;

use analysis::compare::log_ratios;
use analysis::stats::{Paired, PairedDecision, SplitMix64};
use model::{Cell, Event, Finding, FindingKind, Phase, Verdict};

use super::Conduct;
use super::metrics::Metrics;
use crate::ControlError;

/// How two cells are taken in turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairedPlan {
    /// Pause between two trials in ns, always the same, so that no trial meets what the one before left in queues and timers.
    pub gap_ns: u64,
}

impl Conduct<'_> {
    pub(super) async fn paired(&mut self, plan: &PairedPlan) -> Result<(), ControlError> {
        let [a, b] = self.header.cells.as_slice() else { return Ok(()) };
        let rule = Paired::new(&self.header.stopping);
        let mut coin = SplitMix64::new(self.header.stopping.seed);
        let mut metrics = Metrics::of(self.header, self.pair);
        let most = rule.analyses().last().copied().unwrap_or(1);
        let mut result = Ok(());
        for block in 0..most {
            let begun = self.elapsed_ns();
            let turned = coin.next_u64() >> 63 == 1;
            let order = if turned { [b, a, a, b] } else { [a, b, b, a] };
            self.block_phase(block, most, turned)?;
            result = self.block(order, plan, &mut metrics).await;
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

    async fn block(&mut self, order: [&Cell; 4], plan: &PairedPlan, metrics: &mut Metrics) -> Result<(), ControlError> {
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
        if metrics.kept() {
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

    fn block_phase(&mut self, block: usize, most: usize, turned: bool) -> Result<(), ControlError> {
        let each = self.elapsed_ns().checked_div(block as u64);
        let left_ns = each.map(|each| (each * (most - block) as u64).min(self.left_ns()));
        let order = if turned { "B A A B" } else { "A B B A" };
        let doing = format!("block {} of at most {most}: {order}", block + 1);
        Ok(self.sink.event(&Event::Phase(Phase { activity: doing, cells_done: 0, cells: 1, remaining_ns: left_ns }))?)
    }
}
