//! The highest rate at which no datagram is lost: the search of RFC 2544, section 26.1, on plain sockets.

use model::{BothEnds, Ledger, Leg, Spec};
use text::{Rate, Said, Text, say};

/// Halvings of the range between a rate with loss and one without: to 1 % of the sender's full rate.
const STEPS: u32 = 7;
/// Most passes of one search; each has its own number.
const PASSES: u32 = 1 << 8;

/// A search, pass after pass.
#[derive(Debug)]
pub struct LossSearch {
    spec: Spec,
    /// Its number among the run's passes.
    number: u32,
    /// Passes that are over.
    passes: u32,
    /// The highest rate without loss and the lowest with loss so far, bit/s; `None` before the first pass.
    range: Option<(f64, f64)>,
    best: Option<BothEnds>,
    over: bool,
}

impl LossSearch {
    /// A search at `spec`, the `number`th pass of its run.
    #[must_use]
    pub fn new(spec: &Spec, number: u32) -> Self {
        let spec = Spec { no_loss: false, rate_bps: None, ..spec.clone() };
        Self { spec, number, passes: 0, range: None, best: None, over: false }
    }

    /// What the next pass does, for people: `search 2, 512 Mbit/s`.
    #[must_use]
    pub fn activity(&self) -> Text {
        let rate = self.rate_bps().map_or("full rate".into(), |bps| Rate(bps as f64).say());
        say!("search {}, {rate}", self.number + 1)
    }

    /// The number, spec and leg of the next pass; `None` when the search is over.
    #[must_use]
    pub fn next(&self) -> Option<(u32, Spec, Leg)> {
        let spec = Spec { rate_bps: self.rate_bps(), ..self.spec.clone() };
        let leg = Leg::of(&spec);
        (!self.over).then_some((self.number * PASSES + self.passes, spec, leg))
    }

    /// The rate of the next pass; `None` for the sender's full rate.
    fn rate_bps(&self) -> Option<u64> {
        self.range.map(|(low, high)| f64::midpoint(low, high) as u64)
    }

    /// Takes the result of the last pass.
    pub fn completed(&mut self, pass: BothEnds) {
        let loses = loses(&self.spec, &pass);
        match self.range {
            _ if pass.failure.is_some() => (self.best, self.over) = (Some(pass), true),
            None => {
                self.range = sent_bps(&pass).filter(|_| loses).map(|bps| (0.0, bps));
                self.over = self.range.is_none();
                self.best = Some(pass);
            }
            Some((low, high)) => {
                let rate = f64::midpoint(low, high);
                self.range = Some(if loses { (low, rate) } else { (rate, high) });
                // If every rate had loss, the lowest one counts.
                if !loses || low == 0.0 {
                    self.best = Some(pass);
                }
            }
        }
        self.passes += 1;
        self.over |= self.passes > STEPS;
    }

    /// The pass at the highest rate without loss. If every rate had loss, the pass at the lowest rate, with its losses. A pass that
    /// ended early is the search's own end.
    #[must_use]
    pub fn found(self) -> BothEnds {
        self.best.unwrap_or_default()
    }
}

/// The sender's rate, bit/s.
fn sent_bps(pass: &BothEnds) -> Option<f64> {
    let (near, far) = pass.near.tallies.first().zip(pass.far.as_ref()?.tallies.first())?;
    let sent = if near.bytes_sent > 0 { near } else { far }.sends();
    (sent.ns > 0).then(|| sent.bytes as f64 * 8e9 / sent.ns as f64)
}

/// Whether a datagram was lost.
fn loses(spec: &Spec, pass: &BothEnds) -> bool {
    let ledger = |(near, far)| -> Ledger { analysis::ledger(spec, near, far) };
    let far = pass.far.iter().flat_map(|far| &far.tallies);
    pass.near.tallies.iter().zip(far).map(ledger).any(|ledger| ledger.lost > 0)
}

#[cfg(test)]
mod tests {
    use model::{DatagramTally, EndResult, EndTally, Pattern};
    use proptest::prelude::*;

    use super::*;

    /// One pass over a link that carries `capacity` bit/s, by a sender of at most `full` bit/s.
    fn pass(rate_bps: Option<u64>, capacity: f64, full: f64) -> BothEnds {
        let sent = rate_bps.map_or(full, |bps| (bps as f64).min(full));
        let bytes = |bps: f64| (bps / 8.0) as u64;
        let datagrams = |bps: f64| (bps / 8e3) as u64;
        let near = EndTally {
            bytes_sent: bytes(sent),
            sending_ns: 1_000_000_000,
            datagrams: Some(DatagramTally { sent: datagrams(sent), ..DatagramTally::default() }),
            ..EndTally::default()
        };
        let arrived = sent.min(capacity);
        let far = EndTally {
            bytes_received: bytes(arrived),
            datagrams: Some(DatagramTally { received: datagrams(arrived), ..DatagramTally::default() }),
            ..EndTally::default()
        };
        let end = |tally| EndResult { tallies: vec![tally], ..EndResult::default() };
        BothEnds { near: end(near), far: Some(end(far)), failure: None }
    }

    fn search(capacity: f64, full: f64) -> (f64, u32) {
        let spec = Spec { no_loss: true, ..Spec::new("udp", Pattern::Stream) };
        let mut search = LossSearch::new(&spec, 3);
        let mut passes = 0;
        while let Some((number, spec, _)) = search.next() {
            assert_eq!((number, spec.no_loss), (3 * PASSES + passes, false));
            passes += 1;
            search.completed(pass(spec.rate_bps, capacity, full));
        }
        (sent_bps(&search.found()).unwrap(), passes)
    }

    #[test]
    fn without_loss_at_full_rate_there_is_one_pass() {
        assert_eq!(search(1e9, 5e8), (5e8, 1));
    }

    #[test]
    fn a_pass_that_ends_early_ends_the_search() {
        let mut search = LossSearch::new(&Spec::new("udp", Pattern::Stream), 0);
        search.completed(BothEnds { failure: Some("lost".into()), ..BothEnds::default() });
        assert!(search.next().is_none());
        assert_eq!(search.found().failure, Some("lost".into()));
    }

    proptest! {
        #[test]
        fn the_rate_found_is_below_the_capacity_and_within_a_percent_of_the_full_rate(
            capacity in 1e7..1e9f64, full in 1e9..1e10f64
        ) {
            let (found, passes) = search(capacity, full);
            prop_assert_eq!(passes, 1 + STEPS);
            // Where the capacity is below the last step, only rates with loss were tried.
            let step = full / f64::from(1 << STEPS);
            prop_assert!(found <= capacity.max(step) + 1e4, "{} of {}", found, capacity);
            prop_assert!(capacity - found <= step + 1e4, "{} of {}", found, capacity);
        }
    }
}
