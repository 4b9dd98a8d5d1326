//! The results that the agents of a fleet keep until the run has stored them. When a run is continued, they take the place of tests
//! whose results the coordinator has lost.

use std::collections::VecDeque;
use std::time::Duration;

use model::{BothEnds, Role, RunHeader, Stop};
use ring::digest::{self, SHA256};
use schedule::TestRequest;
use serde::Serialize;

use crate::agent::Time;
use crate::message::{KeptResult, ResultOf};

/// How long agents keep what is stored: longer than a bus takes to write to its disk what it has acknowledged (`sync_interval` of
/// JetStream, 2 min), so that a run can be continued from the bus after both the coordinator and the bus have lost power.
const LAG: Duration = Duration::from_secs(150);

/// What is known of the results that agents keep.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// The digest of the run; `None` if nothing is to be kept.
    pub(super) run: Option<String>,
    /// What the hosts, by number, have kept of an earlier part of the run.
    pub(super) found: Vec<(usize, KeptResult)>,
    /// Tests for which they were used.
    pub(super) used: usize,
    /// The times at which steps began, with the number of their first test: the results of those before are stored.
    begun: VecDeque<(Time, u32)>,
}

/// A test that was made in an earlier part of the run.
pub(super) struct Recalled {
    pub(super) pass: BothEnds,
    pub(super) duration_ns: u64,
    pub(super) started_unix_ns: u64,
}

impl Results {
    /// As what the agents are to keep the result of a test, by this attempt, that starts then; `None` if they are not to keep it.
    pub(super) fn of(&self, test: &TestRequest, attempt: u64, started_unix_ns: u64) -> Option<ResultOf> {
        // A search has several trials, and a capture is a file of the agent's.
        if test.spec.no_loss || test.spec.capture.is_some() {
            return None;
        }
        let (run, attempt) = (self.run.clone()?, format!("{attempt:016x}"));
        Some(ResultOf { run, test: digest_of(test)?, attempt, started_unix_ns })
    }

    /// For each test of a step the one that was made earlier, if both its ends have kept their results.
    pub(super) fn recall(&mut self, tests: &[TestRequest]) -> Vec<Option<Recalled>> {
        if self.found.is_empty() {
            return tests.iter().map(|_| None).collect();
        }
        let mut recalled: Vec<Option<Recalled>> = tests.iter().map(|test| self.take(test)).collect();
        // Tests that load each other belong together.
        if tests.iter().any(|test| test.shares_hosts) && recalled.iter().any(Option::is_none) {
            recalled.fill_with(|| None);
        }
        self.used += recalled.iter().flatten().count();
        recalled
    }

    fn take(&mut self, test: &TestRequest) -> Option<Recalled> {
        let digest = digest_of(test)?;
        let [near, far] = test.between.hosts;
        let of = |host: usize, role: Role| {
            let own = move |(from, kept): &&(usize, KeptResult)| *from == host && kept.role == role;
            self.found.iter().filter(own).map(|(_, kept)| kept)
        };
        let far_of = |attempt: &str| of(far, Role::Passive).find(|kept| kept.of.attempt == attempt);
        let mut nears = of(near, Role::Active).filter(|kept| kept.of.test == digest);
        let (near, far) = nears.find_map(|near| match far_of(&near.of.attempt) {
            _ if test.between.single_ended => Some((near, None)),
            far => Some((near, Some(far?))),
        })?;
        let duration_ns = near.done.elapsed_ns.max(far.map_or(0, |far| far.done.elapsed_ns));
        let pass = BothEnds { near: near.done.clone(), far: far.map(|far| far.done.clone()), failure: None };
        let ResultOf { attempt, started_unix_ns, .. } = near.of.clone();
        self.found.retain(|(_, kept)| kept.of.attempt != attempt);
        Some(Recalled { pass, duration_ns, started_unix_ns })
    }

    /// The agents keep the results of this run.
    pub(super) fn begin(&mut self, header: &RunHeader) {
        self.run = Some(digest(&(&header.id, header.started_unix_ns)));
    }

    /// A step begins whose first test has this number. Returns the number below which agents may forget all results.
    pub(super) fn step(&mut self, now: Time, first: u32) -> Option<u32> {
        self.begun.push_back((now, first));
        let old = self.begun.partition_point(|(begun, _)| now.saturating_sub(*begun) > LAG);
        self.begun.drain(..old).next_back().map(|(_, first)| first)
    }
}

/// What a test measures, in which round. The expected time of an exchange is the coordinator's guess.
fn digest_of(test: &TestRequest) -> Option<String> {
    let legs: Vec<(u64, u64, Stop)> = test.legs.iter().map(|leg| (leg.block, leg.reply, leg.stop)).collect();
    Some(digest(&(&test.spec, legs, test.round?)))
}

/// 128 bits of SHA-256 over the JSON of a value, in hex.
fn digest(value: &impl Serialize) -> String {
    hex::encode(&digest::digest(&SHA256, &serde_json::to_vec(value).unwrap_or_default()).as_ref()[..16])
}

#[cfg(test)]
mod tests {
    use model::{EndResult, Leg, Pattern, Spec};
    use schedule::Between;

    use super::*;

    fn test(block: u64, round: Option<u32>) -> TestRequest {
        let spec = Spec { block, ..Spec::new("tcp", Pattern::Stream) };
        let legs = vec![Leg::of(&spec)];
        let between = Between { hosts: [1, 2], single_ended: false };
        TestRequest { between, round, ..TestRequest::of_pair(spec.into(), legs) }
    }

    fn results() -> Results {
        Results { run: Some("run".into()), ..Results::default() }
    }

    fn kept(of: &ResultOf, host: usize, role: Role, elapsed_ns: u64) -> (usize, KeptResult) {
        let done = EndResult { elapsed_ns, ..EndResult::default() };
        (host, KeptResult { of: of.clone(), trial: 0, role, done })
    }

    #[test]
    fn only_tests_of_a_round_are_kept() {
        let results = results();
        assert!(results.of(&test(1, Some(0)), 7, 7).is_some_and(|of| of.started_unix_ns == 7));
        assert_eq!(results.of(&test(1, None), 7, 7), None);
        let search = TestRequest {
            spec: Spec { no_loss: true, ..Spec::new("udp", Pattern::Stream) }.into(),
            ..test(1, Some(0))
        };
        assert_eq!(results.of(&search, 7, 7), None);
        assert_eq!(Results::default().of(&test(1, Some(0)), 7, 7), None);
    }

    #[test]
    fn a_test_is_recalled_once_from_both_ends_of_one_attempt() {
        let mut results = results();
        let wanted = test(1, Some(3));
        let [first, second] = [5, 6].map(|started| results.of(&wanted, started, started).unwrap());
        assert_eq!(first.test, second.test);
        assert_ne!(first.attempt, second.attempt);
        // The near end of one attempt and the far end of another one are no trial.
        results.found = vec![kept(&first, 1, Role::Active, 10), kept(&second, 2, Role::Passive, 20)];
        assert!(results.recall(std::slice::from_ref(&wanted))[0].is_none());
        // Both ends may be in each host's answer, if their agents share a file.
        results.found = vec![kept(&second, 1, Role::Passive, 20), kept(&second, 1, Role::Active, 10)];
        results.found.extend([kept(&second, 2, Role::Passive, 20), kept(&second, 2, Role::Active, 10)]);
        for other in [test(2, Some(3)), test(1, Some(4)), test(1, None)] {
            assert!(results.recall(&[other])[0].is_none());
        }
        let recalled = results.recall(&[wanted.clone(), wanted]);
        assert!(recalled[0].as_ref().is_some_and(|one| one.duration_ns == 20 && one.started_unix_ns == 6));
        assert!(recalled[1].is_none());
        assert_eq!(results.used, 1);
    }

    #[test]
    fn an_attempt_of_which_one_end_is_missing_does_not_hide_a_whole_one() {
        let mut results = results();
        let wanted = test(1, Some(0));
        let [half, whole] = [5, 6].map(|started| results.of(&wanted, started, started).unwrap());
        results.found = vec![
            kept(&half, 1, Role::Active, 10),
            kept(&whole, 1, Role::Active, 10),
            kept(&whole, 2, Role::Passive, 20),
        ];
        assert!(results.recall(&[wanted])[0].as_ref().is_some_and(|one| one.started_unix_ns == 6));
    }

    #[test]
    fn tests_that_load_each_other_are_recalled_together() {
        let mut results = results();
        let [one, other] = [1, 2].map(|block| TestRequest { shares_hosts: true, ..test(block, Some(0)) });
        let of = results.of(&one, 5, 5).unwrap();
        results.found = vec![kept(&of, 1, Role::Active, 10), kept(&of, 2, Role::Passive, 20)];
        assert!(results.recall(&[one, other]).iter().all(Option::is_none));
        assert_eq!(results.used, 0);
    }

    #[test]
    fn results_are_forgotten_long_after_they_were_stored() {
        let mut results = results();
        let later = LAG + Duration::from_secs(2);
        assert_eq!(results.step(Duration::ZERO, 0), None);
        assert_eq!(results.step(Duration::from_secs(1), 5), None);
        assert_eq!(results.step(later, 9), Some(5));
        assert_eq!(results.step(later, 12), None);
    }
}
