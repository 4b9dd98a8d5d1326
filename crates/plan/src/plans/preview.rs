//! What a plan would measure, and how long a round of it takes.

use std::collections::BTreeMap;

use analysis::plan::{MOST_COMPARISONS, MOST_SUSPECTS, Slot, round};
use lab::topology::NodeKind;
use lab::{Discipline, Topology};
use model::{Factor, Order, Spec, Stop};

use super::earlier::Earlier;
use super::parsed::ParsedPlan;
use super::slots::{PlanHost, slots};
use crate::mistake::Mistake;

/// Time of a trial beyond its length, ns: connections and results. Between 30 and 150 ms on hosts of two cores, by their load.
const OVERHEAD_NS: u64 = 80_000_000;
/// Mean pause before the next step, ns.
const PAUSE_NS: u64 = 10_000_000;
/// Time to check the preconditions before a trial, ns.
const PRECONDITIONS_NS: u64 = 300_000_000;
/// Trials of one search for the highest rate without loss.
const SEARCH_TRIALS: u64 = 8;
/// Round trips of the control connection and of the set-up around a trial.
const ROUND_TRIPS: u64 = 8;

/// The cells of a plan and its first round.
#[derive(Debug)]
pub struct Preview {
    /// Each cell by its number, or a curve by the range of its sizes' numbers, with its levels.
    pub cells: Vec<(String, BTreeMap<String, String>)>,
    /// The steps of the first round: cells that run at the same time.
    pub steps: Vec<Vec<u32>>,
    /// Estimated duration of a round, ns.
    pub round_ns: u64,
    /// Longest time to test outliers again, ns; 0 if that is not done.
    pub retests_ns: u64,
    /// Cells whose send method is chosen by a short trial before the first round.
    pub probed_methods: usize,
    /// Cells whose trials end after a count and take an unknown time, which `round_ns` leaves out.
    pub untimed: usize,
    /// Whether tests are streams over links of an unknown rate, of which nothing tells how long their queues drain.
    pub drains: bool,
    /// The far ends that are other programs: the program, its host, and what has to run there.
    pub programs: Vec<[String; 3]>,
}

/// The network of a lab, as far as it determines how long a trial takes.
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    /// Rate of its slowest link.
    rate_bps: Option<f64>,
    rtt_ns: u64,
    /// How long the queue of that link drains, if nothing keeps it short.
    queue_ns: u64,
}

impl Path {
    /// The network of a cell.
    fn of(topology: Option<&Topology>, spec: &Spec) -> Self {
        let Some(topology) = topology.and_then(|topology| topology.adjusted(&spec.settings.links).ok()) else {
            return Self::default();
        };
        let directions = || topology.links.iter().flat_map(|link| &link.directions);
        let rates = directions().filter_map(|direction| direction.rate_bps);
        let slowest = directions().filter(|direction| direction.rate_bps.is_some()).min_by_key(|one| one.rate_bps);
        let queue_ns = slowest
            .filter(|one| one.discipline == Discipline::DropTail)
            .map_or(0, |one| (one.queue_bytes as f64 * 8e9 / one.rate_bps.unwrap_or(u64::MAX) as f64) as u64);
        let delays: Vec<u64> = topology
            .links
            .iter()
            .map(|link| link.directions.iter().map(|direction| direction.delay.as_nanos() as u64).sum())
            .collect();
        // Two hosts are joined by all links. Otherwise the longest link stands for a path.
        let pair = topology.nodes.iter().filter(|node| node.kind == NodeKind::Host).count() == 2;
        let rtt_ns = if pair { delays.iter().sum() } else { delays.iter().copied().max().unwrap_or(0) };
        Self { rate_bps: rates.min().map(|rate| rate as f64), rtt_ns, queue_ns }
    }

    /// How long these bytes take; `None` without a rate.
    fn bytes_ns(&self, bytes: u64) -> Option<u64> {
        self.rate_bps.map(|rate| (bytes as f64 * 8e9 / rate) as u64)
    }

    /// How long one block, or one request with its response, takes.
    fn exchange_ns(&self, spec: &Spec) -> Option<u64> {
        if spec.is_stream() {
            return self.bytes_ns(spec.block);
        }
        Some(self.rtt_ns + self.bytes_ns(spec.block + spec.reply_bytes())?)
    }

    /// How long a stream drains after its time: it has filled the queue of the path.
    fn drain_ns(&self, spec: &Spec) -> u64 {
        let fills = drains(spec) && spec.rate_bps.is_none_or(|rate| self.rate_bps.is_some_and(|own| rate as f64 > own));
        if fills { self.queue_ns } else { 0 }
    }

    /// How long a trial takes; `None` if only its count is known.
    fn trial_ns(&self, spec: &Spec) -> Option<u64> {
        match spec.stop {
            Stop::TimeNs(ns) if spec.no_loss => Some(SEARCH_TRIALS * (ns + OVERHEAD_NS)),
            Stop::TimeNs(_) => spec.timed_ns(),
            Stop::AboutNs(ns) => {
                let each = self.exchange_ns(spec).unwrap_or(0);
                Some(ns.max(spec.min_exchanges(each as f64) * each))
            }
            Stop::Bytes(bytes) => Some(self.rtt_ns + self.bytes_ns(bytes)?),
            Stop::Blocks(count) => Some(self.rtt_ns + self.bytes_ns(count.saturating_mul(spec.block))?),
            Stop::Transactions(count) => Some(count.saturating_mul(self.exchange_ns(spec)?)),
        }
    }
}

/// Whether a test fills a queue that drains after its time.
fn drains(spec: &Spec) -> bool {
    spec.is_stream() && spec.is_over_tcp() && spec.timed_ns().is_some()
}

impl Preview {
    /// The preview of a plan, in the lab of this topology if there is one: its links' rates, delays and queues tell how long trials take
    /// that end after a count, and drain. An earlier run between the same hosts tells it as well.
    ///
    /// # Errors
    /// A cell has a transport that this build does not have.
    pub fn of(parsed: &ParsedPlan, topology: Option<&Topology>, earlier: Option<&Earlier>) -> Result<Self, Mistake> {
        let (slots, hosts) = slots(&parsed.plan, &parsed.cells)?;
        let seed = (parsed.rule.order == Order::Random).then_some(parsed.rule.seed);
        let steps = round(&slots, parsed.plan.light.map_or(1, |tests| tests as usize), seed, 0);
        let slot_ns = |first: &u32| {
            let slot = Slot::of_cell(&slots, *first);
            let path = Path::of(topology, parsed.spec(*first));
            slot.map_or(0, |slot| trials_ns(parsed, slot, &path)) + extra_ns(parsed, *first, &path, earlier)
        };
        // The pairs of a step run at the same time.
        let round_ns = steps.iter().map(|step| step.iter().map(slot_ns).max().unwrap_or(0) + PAUSE_NS).sum();
        let longest = slots.iter().map(|slot| slot_ns(&slot.cell) + PAUSE_NS).max().unwrap_or(0);
        let tests = 2 * MOST_SUSPECTS as u64 * MOST_COMPARISONS as u64;
        let retests_ns = parsed.plan.retests.map_or(0, |rounds| u64::from(rounds) * tests * longest);
        let probed = |slot: &&Slot| parsed.spec(slot.cell).engine.auto;
        Ok(Self {
            cells: slots.iter().map(|slot| shown(parsed, slot)).collect(),
            probed_methods: slots.iter().filter(probed).count(),
            untimed: parsed.specs().filter(|spec| Path::of(topology, spec).trial_ns(spec).is_none()).count(),
            programs: hosts.iter().filter_map(program).collect(),
            drains: topology.is_none()
                && parsed.specs().any(|spec| {
                    drains(spec)
                        && spec.rate_bps.is_none()
                        && earlier.and_then(|earlier| earlier.extra_ns(spec)).is_none()
                }),
            steps,
            round_ns,
            retests_ns,
        })
    }
}

/// A far end that is another program.
fn program(host: &PlanHost) -> Option<[String; 3]> {
    let PlanHost::Program { program, host } = host else { return None };
    Some([program.to_string(), host.clone(), peers::protocol(*program).server().to_owned()])
}

/// The length of a slot's trials, as far as it is known.
fn trials_ns(parsed: &ParsedPlan, slot: &Slot, path: &Path) -> u64 {
    slot.cells().filter_map(|cell| path.trial_ns(parsed.spec(cell))).sum()
}

/// The time around the trials of the slot that begins with the cell `first`.
fn extra_ns(parsed: &ParsedPlan, first: u32, path: &Path, earlier: Option<&Earlier>) -> u64 {
    let spec = parsed.spec(first);
    let preconditions = parsed.plan.require.as_ref().map_or(0, |_| PRECONDITIONS_NS);
    let warmup = parsed.plan.warmup_ns.filter(|_| !spec.is_point());
    let measured = earlier.filter(|_| !spec.is_point()).and_then(|earlier| earlier.extra_ns(spec));
    let around = measured.unwrap_or(OVERHEAD_NS + ROUND_TRIPS * path.rtt_ns + path.drain_ns(spec));
    around + warmup.map_or(0, |ns| ns + around) + preconditions
}

/// A cell by its number and its levels, or all sizes of a curve.
fn shown(parsed: &ParsedPlan, slot: &Slot) -> (String, BTreeMap<String, String>) {
    let (first, last) = (slot.cell as usize, slot.cells().end as usize - 1);
    let mut levels = parsed.cells[first].planned.levels.clone();
    if last == first {
        return (first.to_string(), levels);
    }
    let size = |cell: usize| parsed.cells[cell].planned.levels.get(Factor::SIZES).cloned().unwrap_or_default();
    levels.insert(Factor::SIZES.to_owned(), format!("{} to {} ({} sizes)", size(first), size(last), slot.sizes));
    (format!("{first} to {last}"), levels)
}
