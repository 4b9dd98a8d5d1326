//! Several cells, one after another.

use model::{Direction, Phase};

use super::single::trial;
use super::*;

/// The steps of two streams, of which only that out has a probe: the length of each trial with its direction, and the time left that
/// each phase reported, s.
fn steps(start_up_ns: [u64; 2], interrupted_in: usize) -> (Vec<String>, Vec<u64>, RunEnd) {
    let out = Spec { steady: true, probe: Some(100), ..stream(4 * SECOND) };
    let back = Spec { direction: Direction::Reverse, probe: None, ..out.clone() };
    let mut header = header(vec![out, back], 20 * SECOND, 1);
    (header.stopping.min_trials, header.stopping.max_trials) = (1, 1);
    let plan = Unfixed { own_time: true, own_budget: true };
    let mut run = ScheduledRun::new(&header, &Schedule::Sequence(plan), Methods::default());
    let (mut now, mut steps) = (0, Vec::new());
    let end = loop {
        let result = match run.next(now) {
            Step::End(end) => break end,
            Step::Pause(pause) => {
                now += pause.ns;
                Completed::Done
            }
            Step::Prepare(_) => Completed::Done,
            Step::Run(tests) if !tests.recorded => {
                steps.push("idle".to_owned());
                Completed::Tests(vec![passed(Ok(PassResult::default()))])
            }
            Step::Run(tests) => {
                let spec = &tests.tests[0].spec;
                let length_ns = spec.timed_ns().unwrap();
                let start_up_ns = start_up_ns[usize::from(spec.direction == Direction::Reverse)];
                steps.push(format!("{:?} {}", spec.direction, length_ns / SECOND));
                now += length_ns;
                Completed::Tests(vec![passed(Ok(trial(spec, start_up_ns, now - length_ns)))])
            }
        };
        if steps.len() == interrupted_in {
            run.interrupt();
        }
        run.completed(result, now);
    };
    run.close(false);
    let left = run.events().into_iter().filter_map(|event| match event {
        Event::Phase(Phase { remaining_ns, .. }) => Some(remaining_ns.unwrap() / SECOND),
        _ => None,
    });
    (steps, left.collect(), end)
}

#[test]
fn each_cell_is_measured_as_if_it_were_the_only_one() {
    let (steps, left, end) = steps([MS; 2], 9);
    assert_eq!((steps, end), (vec!["idle".to_owned(), "Send 4".into(), "Reverse 4".into()], RunEnd::Finished));
    assert_eq!(left, [8, 8, 4]);
}

#[test]
fn a_cell_that_does_not_settle_is_lengthened_and_the_next_follows() {
    let (steps, ..) = steps([5 * SECOND, MS], 9);
    assert_eq!(steps, ["idle", "Send 4", "Send 8", "Reverse 4"]);
}

#[test]
fn an_interrupt_ends_all_of_them() {
    let (steps, _, end) = steps([MS; 2], 2);
    assert_eq!((steps.len(), end), (2, RunEnd::Interrupted));
}
