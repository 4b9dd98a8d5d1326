//! What a plan would measure, and how long a round of it takes.

use std::collections::BTreeMap;

use analysis::plan::{Slot, round};
use model::{Factor, Order, Stop};

use super::plan::slots;
use super::request::ParsedPlan;
use crate::failure::Failure;

/// Time of a trial beyond its length, ns: connections and results.
const OVERHEAD_NS: u64 = 150_000_000;
/// Time to check the preconditions before a trial, ns.
const PRECONDITIONS_NS: u64 = 300_000_000;
/// Trials of one search for the highest rate without loss.
const SEARCH_TRIALS: u64 = 8;
/// Assumed length of a trial that ends by a count, ns.
const COUNTED_TRIAL_NS: u64 = 1_000_000_000;

/// The cells of a plan and its first round.
#[derive(Debug)]
pub struct Preview {
    /// Each cell by its number, or a curve by the range of its sizes' numbers, with its levels.
    pub cells: Vec<(String, BTreeMap<String, String>)>,
    /// The steps of the first round: cells that run at the same time.
    pub steps: Vec<Vec<u32>>,
    /// Estimated duration of a round, ns.
    pub round_ns: u64,
    /// Cells whose send method is chosen by a short trial before the first round.
    pub probed_methods: usize,
}

impl Preview {
    /// The preview of a plan.
    ///
    /// # Errors
    /// A cell has a transport that this build does not have.
    pub fn of(parsed: &ParsedPlan) -> Result<Self, Failure> {
        let (slots, _) = slots(&parsed.cells, &parsed.specs)?;
        let seed = (parsed.rule.order == Order::Random).then_some(parsed.rule.seed);
        let steps = round(&slots, seed, 0);
        let slot_ns = |first: &u32| {
            let slot = slots.iter().find(|slot| slot.cell == *first);
            slot.map_or(0, |slot| trials_ns(parsed, slot)) + extra_ns(parsed, *first)
        };
        // The pairs of a step run at the same time.
        let round_ns = steps.iter().map(|step| step.iter().map(slot_ns).max().unwrap_or(0)).sum();
        let probed = |slot: &&Slot| parsed.specs[slot.cell as usize].engine.auto;
        Ok(Self {
            cells: slots.iter().map(|slot| shown(parsed, slot)).collect(),
            probed_methods: slots.iter().filter(probed).count(),
            steps,
            round_ns,
        })
    }
}

/// The length of a slot's trials.
fn trials_ns(parsed: &ParsedPlan, slot: &Slot) -> u64 {
    let trial = |cell: u32| {
        let spec = &parsed.specs[cell as usize];
        match spec.stop {
            Stop::TimeNs(ns) if spec.no_loss => SEARCH_TRIALS * (ns + OVERHEAD_NS),
            Stop::TimeNs(ns) | Stop::AboutNs(ns) => ns,
            _ => COUNTED_TRIAL_NS,
        }
    };
    slot.cells().map(trial).sum()
}

/// The time around the trials of the slot that begins with the cell `first`.
fn extra_ns(parsed: &ParsedPlan, first: u32) -> u64 {
    let preconditions = parsed.plan.require.as_ref().map_or(0, |_| PRECONDITIONS_NS);
    let warmup = parsed.plan.warmup_ns.filter(|_| !parsed.specs[first as usize].is_point());
    OVERHEAD_NS + warmup.map_or(0, |ns| ns + OVERHEAD_NS) + preconditions
}

/// A cell by its number and its levels, or all sizes of a curve.
fn shown(parsed: &ParsedPlan, slot: &Slot) -> (String, BTreeMap<String, String>) {
    let (first, last) = (slot.cell as usize, slot.cells().end as usize - 1);
    let mut levels = parsed.cells[first].levels.clone();
    if last == first {
        return (first.to_string(), levels);
    }
    let size = |cell: usize| parsed.cells[cell].levels.get(Factor::SIZES).cloned().unwrap_or_default();
    levels.insert(Factor::SIZES.to_owned(), format!("{} to {} ({} sizes)", size(first), size(last), slot.sizes));
    (format!("{first} to {last}"), levels)
}
