//! The time left that is told before the first trial.

use analysis::stats::Paired;
use model::{Event, Spec, SplitMix64, Stop};

use super::{MS, Path, SECOND, World, header, mesh, schedules, stream};
use crate::{Completed, Methods, Preparation, Schedule, ScheduledRun, Step, Unfixed};

/// The time left in the phase of the first trial, ns.
fn at_first(mut run: ScheduledRun) -> Option<u64> {
    let path = Path::new(1);
    let mut world = World { random: SplitMix64::new(1), path, now: 0, refused: 0 };
    for _ in 0..100 {
        let step = run.next(world.now);
        let result = match &step {
            Step::Run(tests) if tests.first < u32::MAX => {
                let mut told = run.events().into_iter().filter_map(|event| match event {
                    Event::Phase(phase) => Some(phase.remaining_ns),
                    _ => None,
                });
                return told.next_back().expect("a phase is told before a trial");
            }
            Step::Run(idle) => world.tests(idle),
            Step::Prepare(Preparation { conditions, .. }) if !conditions.is_empty() => world.conditions(conditions),
            _ => Completed::Done,
        };
        run.completed(result, world.now);
    }
    panic!("no trial begins");
}

#[test]
fn one_trial_takes_its_own_time() {
    let of = |stop, most| {
        let mut header = header(vec![Spec { stop, warmup_ns: SECOND, ..stream(SECOND) }], 100 * SECOND, 1);
        (header.stopping.min_trials, header.stopping.max_trials) = (1, most);
        at_first(ScheduledRun::new(&header, &Schedule::Single(Unfixed::default()), Methods::default()))
    };
    assert_eq!(of(Stop::TimeNs(10 * SECOND), 1), Some(10 * SECOND), "its warm-up is part of it");
    assert_eq!(of(Stop::TimeNs(10 * SECOND), 3), Some(30 * SECOND), "as many as there may be");
    assert_eq!(of(Stop::TimeNs(10 * SECOND), 30), Some(100 * SECOND), "not more than the budget");
    assert_eq!(of(Stop::Bytes(1_000_000), 1), None, "nobody knows");
}

#[test]
fn a_comparison_takes_four_trials_a_round() {
    let paired = schedules(10_000 * SECOND, 1).swap_remove(2);
    let rounds = Paired::new(&paired.0.stopping).analyses().last().copied().unwrap() as u64;
    let left = at_first(ScheduledRun::new(&paired.0, &paired.1, Methods::default()));
    assert_eq!(left, Some(rounds * 4 * (500 + 50) * MS));
}

#[test]
fn simultaneous_tests_of_a_mesh_share_the_time() {
    // 30 pairs of six hosts, three at a time, two trials of 100 ms each.
    let left = at_first(mesh::begun(&mesh::header(None)));
    assert_eq!(left, Some(30 / 3 * 2 * 100 * MS));
}
