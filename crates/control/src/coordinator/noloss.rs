//! The highest rate at which no datagram is lost: the search of RFC 2544, section 26.1, on plain sockets.

use model::{Event, EventSink, Ledger, Phase, Spec};

use super::pass::PassResult;
use super::{Cancel, Pair};
use crate::ControlError;
use crate::proto::message::WireLeg;

/// Halvings of the range between a rate with loss and one without: to 1 % of the sender's full rate.
const STEPS: u32 = 7;
/// Most passes of one search; each has its own number.
const PASSES: u32 = 1 << 8;

/// A search between two hosts.
pub(super) struct Search<'a> {
    pub(super) pair: &'a mut Pair,
    pub(super) spec: &'a Spec,
    /// Its number among the run's passes.
    pub(super) number: u32,
    /// Remaining time of the run, ns.
    pub(super) left_ns: Option<u64>,
    pub(super) sink: &'a mut dyn EventSink,
    pub(super) cancel: &'a mut Cancel,
}

impl Search<'_> {
    /// The pass at the highest rate without loss. If every rate had loss, the pass at the lowest rate, with its losses.
    pub(super) async fn run(mut self) -> Result<PassResult, ControlError> {
        let full = self.try_rate(None, 0).await?;
        let sent_bps = full.near.tallies.first().zip(full.far.tallies.first()).and_then(|(near, far)| {
            let sender = if near.bytes_sent > 0 { near } else { far };
            let sent = sender.sends();
            (sent.ns > 0).then(|| sent.bytes as f64 * 8e9 / sent.ns as f64)
        });
        let Some(mut high) = sent_bps.filter(|_| full.failure.is_none() && loses(self.spec, &full)) else {
            return Ok(full);
        };
        let mut low = 0.0;
        let mut best = full;
        for step in 1..=STEPS {
            let rate = f64::midpoint(low, high);
            let pass = self.try_rate(Some(rate as u64), step).await?;
            if pass.failure.is_some() {
                return Ok(pass);
            }
            if loses(self.spec, &pass) {
                high = rate;
                if low == 0.0 {
                    best = pass;
                }
            } else {
                low = rate;
                best = pass;
            }
        }
        Ok(best)
    }

    async fn try_rate(&mut self, rate_bps: Option<u64>, step: u32) -> Result<PassResult, ControlError> {
        if *self.cancel.borrow() {
            return Err(ControlError::Interrupted);
        }
        let rate = rate_bps.map_or("full rate".into(), |bps| model::units::bits_per_second(bps as f64));
        let activity = format!("search {}, {rate}", self.number + 1);
        self.sink.event(&Event::Phase(Phase { activity, cells_done: 0, cells: 1, remaining_ns: self.left_ns }))?;
        let spec = Spec { rate_bps, no_loss: false, ..self.spec.clone() };
        let leg = WireLeg { block: spec.block, reply: spec.reply_bytes(), stop: spec.stop, expected_ns: 0 };
        self.pair.pass(self.number * PASSES + step, &spec, &[leg], self.sink, self.cancel).await
    }
}

/// Whether a datagram was lost.
fn loses(spec: &Spec, pass: &PassResult) -> bool {
    let ledger = |(near, far)| -> Ledger { analysis::ledger(spec, near, far) };
    pass.near.tallies.iter().zip(&pass.far.tallies).map(ledger).any(|ledger| ledger.lost > 0)
}
