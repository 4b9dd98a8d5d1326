//! The end of a mesh's schedule: what stands out is tested again, in turns with what it is compared with, one test at a time. Only the
//! pairs of a cluster are also tested several at a time, as those that they are compared with are.

use std::collections::{BTreeSet, VecDeque};

use analysis::plan::{MOST_SUSPECTS, Suspect, pair_name, suspects};
use model::{Finding, FindingKind, Outcome, Retest, RunHeader};

use crate::state::{RetestPlace, RunState};

/// The tests that are left.
#[derive(Debug)]
pub(crate) struct Retests {
    left: VecDeque<RetestStep>,
    all: usize,
    /// Time of one step, ns.
    each_ns: u64,
}

/// Tests that run at the same time, each with its cell.
pub(crate) type RetestStep = Vec<(RetestPlace, u32)>;

impl Retests {
    /// Decides what is tested again in `left_ns`, with `each_ns` for a step, and notes what is not.
    pub(crate) fn begin(state: &mut RunState, rounds: u32, left_ns: u64, each_ns: u64) -> Self {
        let time = (left_ns, each_ns);
        let (retests, skipped) = Self::new(&state.header, state.cells.done(), rounds, &state.retests, time);
        state.notes.extend(skipped);
        retests
    }

    /// The tests of a mesh whose rounds are over, `rounds` of each comparison, without those that are `done`. Everything is decided now:
    /// clusters, then hosts, then pairs, of each the greatest differences whose tests fit into `left_ns` with `each_ns` for a step. The
    /// finding says what does not.
    fn new(
        header: &RunHeader,
        outcomes: &[Outcome],
        rounds: u32,
        done: &[Retest],
        (left_ns, each_ns): (u64, u64),
    ) -> (Self, Option<Finding>) {
        let found = suspects(header, outcomes);
        let (chosen, skipped) = chosen(&found, rounds, done, left_ns / each_ns.max(1));
        let done: BTreeSet<RetestPlace> = done.iter().map(place_of).collect();
        let mut left = VecDeque::new();
        for round in 0..rounds {
            for number in &chosen {
                let suspect = &found[*number];
                for turn in suspect.turns() {
                    for control in [false, true] {
                        let test = |comparison: &u32| {
                            let pair = suspect.comparisons.get(*comparison as usize)?;
                            let cell = if control { pair.control } else { pair.suspect };
                            let suspect = *number as u32;
                            Some((RetestPlace { round, suspect, comparison: *comparison, control }, cell))
                        };
                        let step: RetestStep = turn.iter().filter_map(test).collect();
                        // Tests that belong together are repeated together.
                        if step.iter().any(|(place, _)| !done.contains(place)) {
                            left.push_back(step);
                        }
                    }
                }
            }
        }
        let all = left.len();
        (Self { left, all, each_ns }, skipped)
    }

    /// The next step: its tests, what it is, and the time that is left from its start, ns.
    pub(crate) fn next(&mut self, header: &RunHeader) -> Option<(RetestStep, String, u64)> {
        let step = self.left.pop_front()?;
        let (place, cell) = *step.first()?;
        let what = if place.control { "for comparison" } else { "stands out" };
        let number = self.all - self.left.len();
        let pairs = match step.len() {
            1 => pair_name(header, cell),
            count => format!("{count} host pairs at the same time"),
        };
        let activity = format!("re-test {number} of {}: {pairs} ({what})", self.all);
        Some((step, activity, self.each_ns.saturating_mul(self.left.len() as u64 + 1)))
    }
}

fn place_of(retest: &Retest) -> RetestPlace {
    let Retest { suspect, comparison, round, control, trial: _ } = retest;
    RetestPlace { round: *round, suspect: *suspect, comparison: *comparison, control: *control }
}

/// The suspects that are tested again, by their numbers, and the finding on those that are not: first those whose tests were begun in an
/// earlier part of the run, then by rank, then the greatest differences. `steps` is how many steps there is time for.
fn chosen(found: &[Suspect], rounds: u32, done: &[Retest], steps: u64) -> (Vec<usize>, Option<Finding>) {
    let begun = |number: &usize| done.iter().any(|retest| retest.suspect as usize == *number);
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|a, b| {
        let of_rank = found[*a].rank().cmp(&found[*b].rank());
        begun(b).cmp(&begun(a)).then(of_rank).then(found[*b].size().total_cmp(&found[*a].size()))
    });
    let mut left = steps;
    let (mut chosen, mut no_time, mut alone) = (Vec::new(), 0, 0);
    let (mut beyond, mut whole) = (0, false);
    for number in order {
        let cost = 2 * u64::from(rounds) * found[number].turns().len() as u64;
        let counted = usize::from(!found[number].is_quiet());
        if cost == 0 {
            alone += counted;
        } else if chosen.len() == MOST_SUSPECTS {
            beyond += counted;
        } else if begun(&number) || (cost <= left && !whole) {
            left = left.saturating_sub(cost);
            chosen.push(number);
        } else {
            // A smaller one does not go before a greater one because it fits.
            whole = true;
            no_time += counted;
        }
    }
    chosen.sort_unstable();
    let reasons: Vec<String> = [
        (no_time, "no time was left"),
        (alone, "no host pair is comparable"),
        (beyond, "clusters, hosts and larger differences go first"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, why)| format!("{count} because {why}"))
    .collect();
    let skipped = no_time + alone + beyond;
    let finding = (skipped > 0).then(|| Finding {
        kind: FindingKind::Note,
        statement: format!(
            "{skipped} of {} that stood out were not re-tested: {}.",
            found.iter().filter(|suspect| !suspect.is_quiet()).count(),
            reasons.join(", ")
        )
        .into(),
        estimate: None,
        block: None,
        cells: Vec::new(),
        comparison: None,
    });
    (chosen, finding)
}
