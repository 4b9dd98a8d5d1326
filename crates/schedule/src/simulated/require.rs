//! Requirements that are not met.

use model::{Conditions, Otherwise, Require};

use super::{SECOND, plan};
use crate::{Completed, Preparation, Step, Tests};

/// How long a plan waits for requirements that are never met.
fn waited_ns() -> u64 {
    let require = Require {
        free_memory_bytes: Some(1),
        load: None,
        foreign_bps: None,
        wait_ns: 5 * SECOND,
        otherwise: Otherwise::Skip,
    };
    let (_, mut run) = plan(10_000 * SECOND, 1, &[], Some(require));
    let (mut now, mut waited, mut checking) = (0, 0, false);
    loop {
        let completed = match run.next(now) {
            Step::End(_) => return waited,
            Step::Pause(pause) => {
                now += pause.ns;
                waited += if checking { pause.ns } else { 0 };
                Completed::Done
            }
            Step::Prepare(Preparation { conditions, .. }) => {
                checking = true;
                let found = Conditions { free_memory_bytes: Some(0), ..Conditions::default() };
                Completed::Conditions(conditions.iter().map(|host| (format!("host {host}"), found)).collect())
            }
            Step::Run(Tests { tests, .. }) => {
                checking = false;
                assert!(tests.is_empty(), "its requirements are not met");
                Completed::Tests(Vec::new())
            }
        };
        assert!(now < 10_000 * SECOND);
        run.completed(completed, now);
    }
}

#[test]
fn a_cell_that_was_waited_for_in_vain_is_not_waited_for_again() {
    // Twelve cells between three hosts, one at a time, in eight rounds.
    assert_eq!(waited_ns(), 12 * 5 * SECOND);
}
