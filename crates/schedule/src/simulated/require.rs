//! Requirements that are not met.

use model::{Conditions, Otherwise, Require};

use super::{SECOND, plan};
use crate::{Completed, Step};

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
            Step::Pause(ns) => {
                now += ns;
                waited += if checking { ns } else { 0 };
                Completed::Done
            }
            Step::Conditions(hosts) => {
                checking = true;
                let found = Conditions { free_memory_bytes: Some(0), ..Conditions::default() };
                Completed::Conditions(hosts.iter().map(|host| (format!("host {host}"), found)).collect())
            }
            Step::Together { tests, .. } => {
                checking = false;
                assert!(tests.is_empty(), "its requirements are not met");
                Completed::Together(Vec::new())
            }
            _ => Completed::Done,
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
