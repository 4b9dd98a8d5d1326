//! The tests of a step: all at the same time, from a common start where they share hosts.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use model::{BothEnds, Change, HostSettings, Shared, Spec};
use schedule::{Between, TestRequest, Tests};

use super::common_start::CommonStart;
use super::error::DialogueError;
use super::event::Answer;
use super::fleet::{Fleet, Lent};
use super::outside::Outside;
use super::pair::Shows;
use super::results::Recalled;
use super::work::Work;

/// A test that has ended.
#[derive(Debug)]
pub(super) struct TestEnded {
    /// Wall-clock time at its start, ns since the Unix epoch, if it is not that of all tests.
    pub(super) begun_unix_ns: Option<u64>,
    /// From the start of all tests to its end, ns.
    pub(super) duration_ns: u64,
    pub(super) result: Result<BothEnds, DialogueError>,
    /// Changes of its hosts' settings.
    pub(super) changes: [Vec<Change>; 2],
    /// See [`PassResult::repeats`](schedule::PassResult::repeats).
    pub(super) repeats: Vec<usize>,
}

/// The results of a test, and the number of trials of each leg.
type TestResult = Result<(BothEnds, Vec<usize>), DialogueError>;

impl Fleet {
    /// Makes all tests at the same time, and waits for all of them also after an error.
    pub(super) async fn make(&mut self, step: Tests, left_ns: Option<u64>) -> Vec<TestEnded> {
        let Tests { first, tests, recorded } = step;
        let outside = self.outside.clone();
        let hosts: Vec<[usize; 2]> = tests.iter().map(|test| test.between.hosts).collect();
        let recalled = if recorded {
            self.begin_step(first);
            self.results.recall(&tests)
        } else {
            tests.iter().map(|_| None).collect()
        };
        let mut taken = Vec::with_capacity(tests.len());
        for (test, recalled) in tests.iter().zip(recalled) {
            taken.push(match recalled {
                Some(recalled) => Err(self.ended_before(test, recalled)),
                None => self.take(test).await.map_err(TestEnded::failed),
            });
        }
        let mut ended: Vec<Option<TestEnded>> = tests.iter().map(|_| None).collect();
        let begun = outside.now();
        // Where tests share hosts, none runs while another is set up. One that cannot start costs others only if all start or none.
        let shared = tests.iter().any(|test| test.shares_hosts);
        let together = tests.iter().any(|test| test.starts_together);
        let starts = CommonStart::of(&outside, tests.len(), together).into_iter().map(|start| shared.then_some(start));
        let mut running = FuturesUnordered::new();
        for (at, ((test, lent), start)) in tests.into_iter().zip(taken).zip(starts).enumerate() {
            match lent {
                Ok(mut lent) => {
                    lent.pair.keep = self.results.of(&test, outside.random(), outside.unix_ns());
                    let number = first.saturating_add(at as u32);
                    // The passes of a search are not a plan's progress.
                    let shows = Shows { live: recorded, phases: recorded && test.round.is_none(), left_ns };
                    let outside = outside.clone();
                    running.push(async move {
                        let result = run(&outside, &mut lent, test, number, start, shows).await;
                        (at, lent, result)
                    });
                }
                // Each request has a result, in order.
                Err(without_test) => ended[at] = Some(without_test),
            }
        }
        while let Some((at, lent, result)) = running.next().await {
            let failed = result.as_ref().is_err_and(|error| !matches!(error, DialogueError::Interrupted));
            if failed && self.goes_on() {
                self.take_back_failed(hosts[at], lent).await;
            } else {
                self.take_back(hosts[at], lent);
            }
            let changes = hosts[at].map(|host| self.changes(host));
            let duration_ns = outside.now().saturating_sub(begun).as_nanos() as u64;
            let (result, repeats) = match result {
                Ok((pass, repeats)) => (Ok(pass), repeats),
                Err(error) => (Err(error), Vec::new()),
            };
            ended[at] = Some(TestEnded { begun_unix_ns: None, duration_ns, result, changes, repeats });
        }
        ended.into_iter().flatten().collect()
    }

    /// Takes the hosts of a test.
    async fn take(&mut self, test: &TestRequest) -> Result<Lent, DialogueError> {
        let Between { hosts, single_ended } = test.between;
        if test.shares_hosts {
            return self.share(hosts, single_ended).await;
        }
        match hosts.into_iter().find_map(|host| self.lost(host)) {
            Some(lost) => Err(lost),
            None => self
                .lend(hosts, single_ended)
                .ok_or_else(|| DialogueError::unsupported("tests of hosts that are in use")),
        }
    }

    /// A test whose result the agents had kept.
    fn ended_before(&self, test: &TestRequest, recalled: Recalled) -> TestEnded {
        let Recalled { pass, duration_ns, started_unix_ns } = recalled;
        let changes = test.between.hosts.map(|host| self.changes(host));
        TestEnded { begun_unix_ns: Some(started_unix_ns), duration_ns, result: Ok(pass), changes, repeats: Vec::new() }
    }
}

impl TestEnded {
    /// A test that was not begun.
    fn failed(error: DialogueError) -> Self {
        let (changes, repeats) = Default::default();
        Self { begun_unix_ns: None, duration_ns: 0, result: Err(error), changes, repeats }
    }
}

/// Makes one test.
async fn run(
    outside: &Outside,
    lent: &mut Lent,
    test: TestRequest,
    number: u32,
    mut start: Option<CommonStart>,
    shows: Shows,
) -> TestResult {
    let TestRequest { spec, legs, .. } = test;
    let Some(host) = lent.program else {
        let both = lent.pair.test(number, (&spec, &legs), &mut start, shows).await?;
        return Ok((both, Vec::new()));
    };
    // Its set-up and its start are one.
    if let Some(start) = start.take()
        && !start.wait(Duration::ZERO).await
    {
        return Err(DialogueError::Interrupted);
    }
    // Its settings are those of the near host, which have been made.
    let spec: Shared<Spec> = Spec { settings: HostSettings::default(), ..Spec::clone(&spec) }.into();
    match outside.ask(Work::Test { host, number, spec, legs, live: shows.live }).await {
        Answer::Tested(both, repeats) => Ok((*both, repeats)),
        Answer::Failed(fault) => Err(DialogueError::Outside(fault)),
        _ => Err(DialogueError::unsupported("tests with this program")),
    }
}
