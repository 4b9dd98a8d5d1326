//! The end of a mesh's schedule: what stands out is tested again, in turns with what it is compared with, one test at a time.

use std::collections::{BTreeSet, VecDeque};

use analysis::plan::{MOST_SUSPECTS, Suspect, pair_name, suspects};
use model::{Finding, FindingKind, Outcome, Retest, RunHeader};

use crate::state::{RetestPlace, RunState};

/// The tests that are left.
#[derive(Debug)]
pub(crate) struct Retests {
    left: VecDeque<(RetestPlace, u32)>,
    all: usize,
    /// Time of one test, ns.
    each_ns: u64,
}

impl Retests {
    /// Decides what is tested again at `now`, `each_ns` for a test, and notes what is not.
    pub(crate) fn begin(state: &mut RunState, rounds: u32, now: u64, each_ns: u64) -> Self {
        let time = (state.left_ns(now), each_ns);
        let (retests, skipped) = Self::new(&state.header, state.cells.done(), rounds, &state.retests, time);
        state.notes.extend(skipped);
        retests
    }

    /// The tests of a mesh whose rounds are over, `rounds` of each comparison, without those that are `done`. Everything is decided now:
    /// the greatest differences whose tests fit into `left_ns` with `each_ns` for a test. The finding says what does not.
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
            for suspect in &chosen {
                for (comparison, pair) in (0..).zip(&found[*suspect].comparisons) {
                    for (control, cell) in [(false, pair.suspect), (true, pair.control)] {
                        let place = RetestPlace { round, suspect: *suspect as u32, comparison, control };
                        if !done.contains(&place) {
                            left.push_back((place, cell));
                        }
                    }
                }
            }
        }
        let all = left.len();
        (Self { left, all, each_ns }, skipped)
    }

    /// The next test: its place, its cell, what it is, and the time that is left from its start, ns.
    pub(crate) fn next(&mut self, header: &RunHeader) -> Option<(RetestPlace, u32, String, u64)> {
        let (place, cell) = self.left.pop_front()?;
        let what = if place.control { "for comparison" } else { "stands out" };
        let number = self.all - self.left.len();
        let activity = format!("re-test {number} of {}: {} ({what})", self.all, pair_name(header, cell));
        Some((place, cell, activity, self.each_ns.saturating_mul(self.left.len() as u64 + 1)))
    }
}

fn place_of(retest: &Retest) -> RetestPlace {
    let Retest { suspect, comparison, round, control, trial: _ } = retest;
    RetestPlace { round: *round, suspect: *suspect, comparison: *comparison, control: *control }
}

/// The suspects that are tested again, by their numbers, and the finding on those that are not: first those whose tests were begun in an
/// earlier part of the run, then the greatest differences.
fn chosen(found: &[Suspect], rounds: u32, done: &[Retest], tests: u64) -> (Vec<usize>, Option<Finding>) {
    let begun = |number: &usize| done.iter().any(|retest| retest.suspect as usize == *number);
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|a, b| begun(b).cmp(&begun(a)).then(found[*b].size().total_cmp(&found[*a].size())));
    let mut left = tests;
    let (mut chosen, mut no_time, mut alone) = (Vec::new(), 0, 0);
    let (mut beyond, mut whole) = (0, false);
    for number in order {
        let cost = 2 * u64::from(rounds) * found[number].comparisons.len() as u64;
        if cost == 0 {
            alone += 1;
        } else if chosen.len() == MOST_SUSPECTS {
            beyond += 1;
        } else if begun(&number) || (cost <= left && !whole) {
            left = left.saturating_sub(cost);
            chosen.push(number);
        } else {
            // A smaller one does not go before a greater one because it fits.
            whole = true;
            no_time += 1;
        }
    }
    chosen.sort_unstable();
    let reasons: Vec<String> = [
        (no_time, "the budget was spent"),
        (alone, "no pair of hosts is comparable"),
        (beyond, "the greater differences go first"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, why)| format!("{count} because {why}"))
    .collect();
    let skipped = no_time + alone + beyond;
    let finding = (skipped > 0).then(|| Finding {
        kind: FindingKind::Note,
        statement: format!(
            "{skipped} of {} that stood out were not tested again: {}.",
            found.len(),
            reasons.join(", ")
        ),
        estimate: None,
        block: None,
        cells: Vec::new(),
        comparison: None,
    });
    (chosen, finding)
}
