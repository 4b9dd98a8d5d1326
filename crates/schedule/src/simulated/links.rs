//! Verdicts on the emulated links of a lab.

use model::{Pass, Verdict};

use super::*;
use crate::{RunState, ScheduleKind};

/// The verdicts of two trials at the same time, the second with one end only, with this verdict on the links.
fn verdicts(links: Option<Verdict>) -> [Vec<Verdict>; 2] {
    let header = header(vec![stream(SECOND), stream(SECOND)], SECOND, 1);
    let mut state = RunState::new(&header, ScheduleKind::Plan);
    for (index, single_ended) in [(0, false), (1, true)] {
        let end = || EndResult { tallies: vec![EndTally::default()], ..EndResult::default() };
        let pass = Pass { index, ..Pass::default() };
        state.record(pass, end(), (!single_ended).then(end), &[(Some(index), 0)], links);
    }
    let trials = state.events().into_iter().filter_map(|event| match event {
        Event::Trial(trial) => Some(trial.verdicts),
        _ => None,
    });
    trials.collect::<Vec<_>>().try_into().unwrap()
}

#[test]
fn a_verdict_on_links_is_for_trials_that_use_them() {
    for verdict in [Verdict::EmulatorLate, Verdict::EmulatorUnreported] {
        let [two_ends, one_end] = verdicts(Some(verdict));
        assert!(two_ends.contains(&verdict) && !one_end.contains(&verdict), "{two_ends:?} {one_end:?}");
    }
    let none = verdicts(None);
    let emulated = [Verdict::EmulatorLate, Verdict::EmulatorUnreported];
    assert!(none.iter().flatten().all(|verdict| !emulated.contains(verdict)), "{none:?}");
}
