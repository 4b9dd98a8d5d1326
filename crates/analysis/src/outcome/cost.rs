//! The CPU time of an outcome.

use model::{Cost, EndCost, EndTally, Spec, Spent, Trial, Verdict};

use super::Headline;
use super::ends::{one_ended, requester};

/// Sums over the trials of one end.
#[derive(Default)]
struct Sums {
    /// Payload bytes sent or received, or transactions.
    amount: u64,
    spent: Option<Spent>,
}

/// The cost of a cell from its trials; those that were cut short count only if there are no others. `None` if no trial has
/// figures of its own (curves, and agents that do not report them).
pub(crate) fn cost(spec: &Spec, trials: &[Trial]) -> Option<Cost> {
    let complete: Vec<&Trial> = trials.iter().filter(|trial| !trial.verdicts.contains(&Verdict::CutShort)).collect();
    let trials = if complete.is_empty() { trials.iter().collect() } else { complete };
    let bulk = Headline::of(spec) == Headline::Goodput;
    let amount = |trial: &Trial, end: &EndTally| match bulk {
        false => requester(&trial.near, &trial.far).transactions,
        // A copy within one end is one transfer, although it counts as sent and as received.
        true if one_ended(&trial.near, &trial.far) => end.bytes_received,
        true => end.bytes_sent.saturating_add(end.bytes_received),
    };
    let (mut near, mut far) = (Sums::default(), Sums::default());
    for trial in trials {
        near.add(&trial.near, amount(trial, &trial.near));
        far.add(&trial.far, amount(trial, &trial.far));
    }
    Some(Cost { near: near.each(bulk)?, far: far.each(bulk) })
}

impl Sums {
    fn add(&mut self, end: &EndTally, amount: u64) {
        let Some(spent) = &end.spent else { return };
        self.amount = self.amount.saturating_add(amount);
        let sum = match self.spent.take() {
            None => spent.clone(),
            Some(sum) => Spent {
                // If one trial lacks the host's time there is no total: the sum would be too small.
                host_ns: sum.host_ns.zip(spent.host_ns).map(|(sum, own)| sum.saturating_add(own)),
                ..sum.together(spent.clone())
            },
        };
        self.spent = Some(sum);
    }

    /// The sums per byte or transaction; `None` if there are no figures or nothing was transferred.
    fn each(self, bulk: bool) -> Option<EndCost> {
        let spent = self.spent.filter(|_| self.amount > 0)?;
        let each = |total: u64| total as f64 / self.amount as f64;
        let (process, host) = (each(spent.process_ns), spent.host_ns.map(each));
        Some(EndCost {
            // A nanosecond per byte is a second per 10^9 bytes.
            process_s_per_gb: bulk.then_some(process),
            host_s_per_gb: host.filter(|_| bulk),
            cycles_per_byte: spent.cycles.map(each).filter(|_| bulk),
            process_ns_per_transaction: (!bulk).then_some(process),
            host_ns_per_transaction: host.filter(|_| !bulk),
            host_resolution_ns: spent.host_resolution_ns.filter(|_| host.is_some()),
            cycles_missing: spent.cycles_missing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{pingpong_trial, stream_trial};
    use super::*;
    use model::Pattern;

    fn spent(process_ns: u64, host_ns: Option<u64>) -> Option<Spent> {
        let resolution = host_ns.map(|_| 10_000_000);
        Some(Spent {
            process_ns,
            cycles: Some(3 * process_ns),
            host_ns,
            host_resolution_ns: resolution,
            ..Spent::default()
        })
    }

    #[test]
    fn a_stream_costs_seconds_for_a_gigabyte_at_each_end() {
        let spec = Spec::new("tcp", Pattern::Stream);
        // 8 Gbit/s for a second are 10^9 bytes.
        let mut trials = [stream_trial(&spec, 8_000), stream_trial(&spec, 8_000)];
        for trial in &mut trials {
            trial.near.spent = spent(200_000_000, Some(500_000_000));
            trial.far.spent = spent(400_000_000, None);
        }
        let cost = cost(&spec, &trials).unwrap();
        let far = cost.far.unwrap();
        assert_eq!((cost.near.process_s_per_gb, cost.near.host_s_per_gb), (Some(0.2), Some(0.5)));
        assert_eq!((far.process_s_per_gb, far.host_s_per_gb, far.host_resolution_ns), (Some(0.4), None, None));
        assert_eq!((cost.near.cycles_per_byte, cost.near.process_ns_per_transaction), (Some(0.6), None));
    }

    #[test]
    fn round_trips_cost_time_each_at_both_ends() {
        let spec = Spec::new("tcp", Pattern::Pingpong);
        let mut trial = pingpong_trial(&spec, 10_000, 1_000);
        trial.near.spent = spent(5_000_000, Some(9_000_000));
        trial.far.spent = spent(4_000_000, None);
        let cost = cost(&spec, &[trial]).unwrap();
        assert_eq!(cost.near.process_ns_per_transaction, Some(5_000.0));
        assert_eq!((cost.near.host_ns_per_transaction, cost.near.process_s_per_gb), (Some(9_000.0), None));
        assert_eq!(cost.far.unwrap().process_ns_per_transaction, Some(4_000.0));
    }

    #[test]
    fn a_copy_within_one_end_is_counted_once_and_no_figures_are_no_cost() {
        let spec = Spec::new("memcpy", Pattern::Stream);
        let mut trial = stream_trial(&spec, 8_000);
        assert_eq!(cost(&spec, std::slice::from_ref(&trial)), None);
        trial.near.bytes_received = trial.near.bytes_sent;
        trial.near.spent = spent(100_000_000, None);
        trial.far = EndTally::default().into();
        let cost = cost(&spec, &[trial]).unwrap();
        assert_eq!((cost.near.process_s_per_gb, cost.far), (Some(0.1), None));
    }

    #[test]
    fn an_interrupted_trial_counts_only_where_there_is_no_other() {
        let spec = Spec::new("tcp", Pattern::Stream);
        let of = |ns, verdicts| {
            let mut trial = stream_trial(&spec, 8_000);
            trial.near.spent = spent(ns, None);
            Trial { verdicts, ..trial }
        };
        let cut = of(900_000_000, vec![Verdict::CutShort]);
        let alone = cost(&spec, std::slice::from_ref(&cut)).unwrap();
        let beside = cost(&spec, &[cut, of(100_000_000, Vec::new())]).unwrap();
        assert_eq!((alone.near.process_s_per_gb, beside.near.process_s_per_gb), (Some(0.9), Some(0.1)));
    }
}
