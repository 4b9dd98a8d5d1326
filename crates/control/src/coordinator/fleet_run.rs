//! The steps of a plan between the hosts of a fleet.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use model::{Conditions, Event, EventSink, HostSettings, Phase, RttTally, SinkError, Spec};
use schedule::{Between, TestRequest};
use text::say;
use tokio::sync::mpsc;

use super::common_start::CommonStart;
use super::drive::{Ends, TestEnded, unsupported};
use super::fleet::Lent;
use super::program::ProgramTest;
use super::results::Recalled;
use super::{Cancel, ConnectedFleet};
use crate::ControlError;

/// A test that has ended: its index, the hosts it was lent, and its result.
type Ended = (usize, Lent, ProgramTest);

impl Ends for ConnectedFleet {
    fn drain(&mut self) -> Result<(), ControlError> {
        self.drain_messages()
    }

    async fn hold(&mut self, sink: &mut dyn EventSink) -> Result<(), ControlError> {
        let waits = |name: &str, ahead: u32| {
            let activity = say!("{name} is busy: {ahead} ahead in the queue");
            // The phase is for the progress display only; a sink that fails reports it at the next trial.
            let _ = sink.event(&Event::Phase(Phase { activity, ..Phase::default() }));
        };
        Self::hold(self, waits).await
    }

    async fn release(&mut self) -> Result<(), ControlError> {
        self.release_machines().await
    }

    async fn tune(&mut self, hosts: &[(Between, HostSettings)]) -> Result<(), ControlError> {
        for (between, settings) in hosts {
            Self::tune(self, between.hosts, between.single_ended, settings).await?;
        }
        Ok(())
    }

    async fn conditions(&mut self, hosts: &[usize]) -> Result<Vec<(String, Conditions)>, ControlError> {
        let found = self.read_conditions(hosts).await?;
        let name = |host: &usize| self.end(*host).map_or_else(|| "a host".to_owned(), |end| end.name.clone());
        Ok(hosts.iter().map(name).zip(found).collect())
    }

    async fn idle(
        &mut self,
        spec: &Spec,
        between: Between,
        _sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<Option<RttTally>, ControlError> {
        let Some(mut lent) = self.lend(between.hosts, between.single_ended) else { return Ok(None) };
        let found = lent.pair.idle_round_trips(spec, &mut Relay(None), cancel).await;
        self.take_back(between.hosts, lent);
        found
    }

    /// Runs all tests at the same time from a common start, and waits for all of them also after an error.
    async fn together(
        &mut self,
        first: u32,
        tests: Vec<TestRequest>,
        live: bool,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<Vec<TestEnded>, ControlError> {
        let (relay, mut readings) = mpsc::channel(READINGS_OF_TEST * tests.len().max(1));
        let mut running = FuturesUnordered::new();
        let hosts: Vec<[usize; 2]> = tests.iter().map(|test| test.between.hosts).collect();
        self.begin_step(first).await;
        let mut taken = Vec::with_capacity(tests.len());
        for (test, recalled) in tests.iter().zip(self.results.recall(&tests)) {
            taken.push(match recalled {
                Some(recalled) => Err(self.ended_before(test, recalled)),
                None => self.take(test).await.map_err(TestEnded::failed),
            });
        }
        let mut ended: Vec<Option<TestEnded>> = tests.iter().map(|_| None).collect();
        let begun = Instant::now();
        // Where tests share hosts, none runs while another is set up. One that cannot start costs others only if all start or none.
        let shared = tests.iter().any(|test| test.shares_hosts);
        let together = tests.iter().any(|test| test.starts_together);
        let starts = CommonStart::of(tests.len(), together).into_iter().map(|start| shared.then_some(start));
        for (at, ((test, lent), start)) in tests.into_iter().zip(taken).zip(starts).enumerate() {
            let relay = Relay(live.then(|| relay.clone()));
            match lent {
                Ok(mut lent) => {
                    lent.pair.keep = self.results.of(&test, engine::unix_ns());
                    let number = first + at as u32;
                    running.push(run_test(at, lent, test, number, start, relay, cancel.clone()));
                }
                // Each request has a result, in order.
                Err(without_test) => ended[at] = Some(without_test),
            }
        }
        let mut sent = Ok(());
        while !running.is_empty() {
            tokio::select! {
                Some(event) = readings.recv() => sent = sent.and(sink.event(&event)),
                Some((at, lent, result)) = running.next() => {
                    let failed = result.as_ref().is_err_and(|error| !matches!(error, ControlError::Interrupted));
                    if failed && self.goes_on() {
                        self.take_back_failed(hosts[at], lent).await;
                    } else {
                        self.take_back(hosts[at], lent);
                    }
                    let changes = hosts[at].map(|host| self.changes(host));
                    let duration_ns = begun.elapsed().as_nanos() as u64;
                    let (result, repeats) = match result {
                        Ok((pass, repeats)) => (Ok(pass), repeats),
                        Err(error) => (Err(error), Vec::new()),
                    };
                    ended[at] = Some(TestEnded { begun_unix_ns: None, duration_ns, result, changes, repeats });
                }
            }
        }
        sent?;
        Ok(ended.into_iter().flatten().collect())
    }
}

impl ConnectedFleet {
    /// Takes the hosts of a test.
    async fn take(&mut self, test: &TestRequest) -> Result<Lent, ControlError> {
        let Between { hosts, single_ended } = test.between;
        if test.shares_hosts {
            return self.share(hosts, single_ended).await;
        }
        match hosts.into_iter().find_map(|host| self.lost(host)) {
            Some(lost) => Err(lost),
            None => self.lend(hosts, single_ended).ok_or_else(|| unsupported("tests of hosts that are in use")),
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
    fn failed(error: ControlError) -> Self {
        let (changes, repeats) = Default::default();
        Self { begun_unix_ns: None, duration_ns: 0, result: Err(error), changes, repeats }
    }
}

/// Runs one test and returns its hosts.
async fn run_test(
    at: usize,
    mut lent: Lent,
    TestRequest { spec, legs, .. }: TestRequest,
    number: u32,
    mut start: Option<CommonStart>,
    mut relay: Relay,
    mut cancel: Cancel,
) -> Ended {
    if let Some(program) = &mut lent.program {
        // Its set-up and its start are one.
        if let Some(start) = start.take()
            && !start.wait(Duration::ZERO).await
        {
            return (at, lent, Err(ControlError::Interrupted));
        }
        // Its settings are those of the near host, which have been made.
        let spec = Spec { settings: HostSettings::default(), ..spec };
        let result = program.test(number, &spec, &legs, &mut relay, &mut cancel).await;
        return (at, lent, result);
    }
    let pair = &mut lent.pair;
    let result = if spec.no_loss {
        pair.trial_at((number, &spec), None, &mut start, &mut relay, &mut cancel).await
    } else {
        pair.pass(number, &spec, &legs, &mut start, &mut relay, &mut cancel).await
    };
    (at, lent, result.map(|pass| (pass, Vec::new())))
}

/// Live readings of each test that may wait for the sink: several seconds of them.
const READINGS_OF_TEST: usize = 16;

/// Passes live readings of simultaneous tests to the one sink.
struct Relay(Option<mpsc::Sender<Event>>);

impl EventSink for Relay {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        // The phases of a search belong to a trial and are not the plan's progress.
        if let Some(sink) = self.0.as_ref().filter(|_| !matches!(event, Event::Phase(_))) {
            // A sink that is this far behind shows fewer readings; after the step the receiver is gone.
            let _ = sink.try_send(event.clone());
        }
        Ok(())
    }
}
