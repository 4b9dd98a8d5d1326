//! A trial whose flows are ready: releases all its threads at once, monitors them and adds up their counts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::tally::Window;
use model::{EndTally, FlowCounts, Interval, Live, Stop, Strategy, TcpSample, ThreadTime};

use super::gate::Gate;
use super::merge::ThreadLegs;
use super::meter::Meter;
use super::pace::{pace, settling_ns};
use super::readings::Counts;
use super::tally::LegTally;
use super::{merge, tcp, thread};
use crate::core::{Counters, EngineError, LinkPlan, Signals, Snapshot, TrialPlan, now_ns};
use crate::transport::{Breaker, Flow, FlowSetup};

/// How long flows may go on after the stop before they count as stalled.
const WATCH_STEP: Duration = Duration::from_millis(100);

/// The flows of one thread, and how it serves them.
pub(super) struct Threads {
    pub(super) plan: Arc<TrialPlan>,
    pub(super) strategy: Strategy,
    pub(super) flows: Vec<Box<dyn Flow>>,
}

impl Threads {
    pub(super) fn setup(&self, link_plan: LinkPlan, counters: Arc<Vec<Counters>>, slot: usize) -> FlowSetup {
        FlowSetup { plan: self.plan.clone(), link_plan, counters, slot, strategy: self.strategy }
    }
}

/// A trial whose flows are ready.
pub(super) struct Trial<'a> {
    pub(super) plan: &'a TrialPlan,
    pub(super) shared: &'a Arc<Vec<Counters>>,
    pub(super) breakers: &'a [Breaker],
    pub(super) signals: &'a Arc<Signals>,
}

/// The watching thread's results.
#[derive(Default)]
struct Watched {
    intervals: Vec<Interval>,
    measured: Option<Window>,
    /// The flows' counters when the warm-up ended.
    warm: Vec<Snapshot>,
    stalled: bool,
    /// TCP_INFO over time, by flow number.
    tcp: Vec<Vec<TcpSample>>,
    /// The counts of the flows that have no other series, by flow number.
    counts: Vec<Vec<FlowCounts>>,
}

impl Trial<'_> {
    /// Runs it to its end.
    pub(super) fn run(
        &self,
        groups: Vec<Threads>,
        probes: usize,
        live: &mut dyn FnMut(Live),
    ) -> Result<LegTally, EngineError> {
        let gate = Gate::default();
        let running = Mutex::new(groups.len());
        let done = std::sync::Condvar::new();
        let pin = &self.plan.spec.end(self.plan.role).pin;
        let mut meter = Meter::new(&self.plan.spec);
        std::thread::scope(|scope| {
            let mut handles = Vec::with_capacity(groups.len());
            for (index, Threads { plan, strategy, flows }) in groups.into_iter().enumerate() {
                let core = (!pin.is_empty()).then(|| pin[index % pin.len()]);
                let job = thread::Job { plan, strategy, signals: self.signals, core };
                let (gate, running, done) = (&gate, &running, &done);
                let body = move || {
                    let result = job.run(flows, gate);
                    *running.lock().unwrap_or_else(std::sync::PoisonError::into_inner) -= 1;
                    done.notify_all();
                    result
                };
                let spawned = std::thread::Builder::new().name(format!("flow-{index}")).spawn_scoped(scope, body);
                handles.push(
                    spawned.map_err(|error| EngineError::Thread(format!("cannot start a measuring thread: {error}"))),
                );
            }
            if let Some(position) = handles.iter().position(Result::is_err) {
                // The threads that did start find the trial aborted and their connections broken.
                let error = handles.swap_remove(position).err();
                self.signals.abort();
                self.breakers.iter().for_each(Breaker::break_now);
                gate.open(handles.iter().flatten().count());
                return Err(error.unwrap_or_else(|| EngineError::Thread("cannot start a measuring thread".into())));
            }
            gate.gather(handles.len());
            self.signals.ready();
            meter.release();
            gate.open(handles.len());
            let start_ns = now_ns();
            let mut watched = self.watch(start_ns, &running, &done, live);
            let mut threads: Vec<ThreadLegs> = Vec::new();
            let mut failure = None;
            for handle in handles.into_iter().flatten() {
                let (legs, error) =
                    handle.join().map_err(|_| EngineError::Thread("a measuring thread panicked".into()))?;
                threads.push(legs);
                failure = failure.or(error);
            }
            let elapsed_ns = now_ns() - start_ns;
            let mut spent = meter.finish();
            let probe = threads.split_off(threads.len().saturating_sub(probes));
            let times = || threads.iter().filter_map(|thread| thread.time);
            (spent.threads, spent.busiest) = (times().reduce(ThreadTime::together), times().reduce(ThreadTime::busier));
            let (tcp, counts) = (std::mem::take(&mut watched.tcp), std::mem::take(&mut watched.counts));
            let series = merge::Series { tcp, counts, start_ns };
            let (mut legs, spans) = merge::merge(self.plan, threads, series);
            if let Some(leg) = legs.last_mut() {
                (leg.probe, leg.probes) = merge::round_trips(probe, start_ns);
            }
            let warm = watched.warm.iter().map(|one| [one.bytes_sent, one.bytes_received]).collect();
            self.finish(&mut legs, watched, failure.is_some());
            if let ([leg], 1) = (legs.as_mut_slice(), self.plan.legs.len()) {
                leg.spent = Some(spent);
            }
            Ok(LegTally { legs, spans, failure, elapsed_ns, warm })
        })
    }

    /// Adds the watching thread's data to the last leg.
    fn finish(&self, legs: &mut [EndTally], watched: Watched, failed: bool) {
        if let Some(leg) = legs.last_mut() {
            leg.intervals = watched.intervals;
            leg.measured = watched.measured.map(|window| Window {
                ns: leg.receiving_ns.saturating_sub(window.ns),
                bytes: leg.bytes_received.saturating_sub(window.bytes),
            });
            if leg.measured.is_some() && self.plan.spec.is_stream() && self.plan.spec.rate_bps.is_some() {
                self.paced_since(&watched.warm, leg);
            }
            leg.stalled = watched.stalled;
            leg.cut_short = failed || (self.signals.aborting() && !watched.stalled);
        }
    }

    /// Of paced flows: what arrived and what was sent after the warm-up, from block to block of each flow, and what
    /// of the schedule was given up.
    fn paced_since(&self, warm: &[Snapshot], leg: &mut EndTally) {
        let ended: Vec<Snapshot> = self.shared.iter().map(Counters::snapshot).collect();
        let flows = || warm.iter().zip(&ended);
        let arrived = flows().filter(|(_, ended)| ended.arrival_ns.0 > 0);
        leg.measured = merge::side_by_side(arrived.map(|(warm, ended)| ended.beats_since(Some(warm))));
        let sent = flows().filter(|(_, ended)| ended.begun.0 > 0);
        leg.before_last = merge::side_by_side(sent.map(|(warm, ended)| ended.begun_since(Some(warm))));
        if let Some(pacing) = &mut leg.pacing {
            let sum = |of: fn(&Snapshot) -> u64| flows().map(|(warm, ended)| of(ended) - of(warm)).sum();
            pacing.asleep_ns = sum(|one| one.given_up_ns.0);
            pacing.blocked_ns = sum(|one| one.given_up_ns.1);
        }
    }

    /// Sleeps until the trial is over, waking up for the series, the end of the warm-up, the stop and stalls.
    fn watch(
        &self,
        start_ns: u64,
        running: &Mutex<usize>,
        done: &std::sync::Condvar,
        live: &mut dyn FnMut(Live),
    ) -> Watched {
        let spec = &self.plan.spec;
        let series = self.plan.legs.len() == 1 && spec.interval_ns > 0;
        let mut watched = Watched::default();
        let mut readings = tcp::Readings::start(self.plan, &self.breakers[..self.shared.len()], start_ns);
        let settling_ns = self.settling_ns(&readings);
        let stop_at = match self.plan.legs.last().map(|leg| leg.stop) {
            Some(Stop::TimeNs(ns)) => start_ns + ns + settling_ns.saturating_sub(spec.warmup_ns),
            _ => u64::MAX,
        };
        let mut last = Snapshot::default();
        let mut next_entry = if series { start_ns + spec.interval_ns } else { u64::MAX };
        let mut counts = Counts::new(self.plan, start_ns, stop_at);
        let warmup_ns = spec.warmup_ns.max(settling_ns);
        let warm_at = if warmup_ns > 0 { start_ns + warmup_ns } else { u64::MAX };
        let mut progress = Progress { moved: u64::MAX, unsent: u64::MAX, since_ns: start_ns };
        let mut entry_start = 0;
        let mut lock = running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while *lock > 0 {
            let now = now_ns();
            let pending_stop = if self.signals.stopping() { u64::MAX } else { stop_at };
            let pending_warm = if watched.measured.is_some() { u64::MAX } else { warm_at };
            let wake = next_entry.min(readings.due_ns()).min(counts.due_ns()).min(pending_stop).min(pending_warm);
            let wake = wake.min(now + WATCH_STEP.as_nanos() as u64);
            let pause = Duration::from_nanos(wake.saturating_sub(now));
            if !pause.is_zero() {
                lock = done.wait_timeout(lock, pause).unwrap_or_else(std::sync::PoisonError::into_inner).0;
            }
            let now = now_ns();
            if now >= pending_stop {
                self.signals.stop();
            }
            let sum = self.sum();
            if now >= pending_warm {
                let first = self.shared.iter().filter_map(Counters::first_arrival).min().unwrap_or(now);
                watched.warm = self.shared.iter().map(Counters::snapshot).collect();
                watched.measured = Some(Window { bytes: sum.bytes_received, ns: now.saturating_sub(first) });
            }
            if now >= next_entry {
                let entry = sum.since(&last, entry_start, now - start_ns);
                live(Live::Interval(entry));
                watched.intervals.push(entry);
                (last, entry_start) = (sum, now - start_ns);
                while next_entry <= now {
                    next_entry += spec.interval_ns;
                }
            }
            if now >= readings.due_ns() {
                readings.take();
            }
            if now >= counts.due_ns()
                && let Some(reading) = counts.take(self.shared, self.breakers)
            {
                live(Live::Reading(reading));
            }
            if self.stalled(&mut progress, &sum, now) {
                watched.stalled |= !self.signals.aborting();
                self.signals.abort();
            }
            if self.signals.aborting() {
                self.breakers.iter().for_each(Breaker::break_now);
            }
        }
        drop(lock);
        (watched.tcp, watched.counts) = (readings.finish(), counts.finish());
        if series {
            let sum = self.sum();
            let end = now_ns() - start_ns;
            let entry = sum.since(&last, entry_start, end);
            if entry.bytes_sent + entry.bytes_received + entry.transactions > 0 || watched.intervals.is_empty() {
                live(Live::Interval(entry));
                watched.intervals.push(entry);
            }
        }
        watched
    }

    /// How long paced flows that run for a time need until they keep their rate: it is left out, and the trial takes
    /// that much longer. Both ends know it alike, by the round trip of the handshake.
    fn settling_ns(&self, readings: &tcp::Readings<'_>) -> u64 {
        let timed = matches!(self.plan.legs.as_slice(), [leg] if matches!(leg.stop, Stop::TimeNs(_)));
        let first = readings.first_round_trip().filter(|_| timed);
        first.map_or(0, |(rtt_ns, mss)| settling_ns(&self.plan.spec, rtt_ns, mss))
    }

    fn sum(&self) -> Snapshot {
        self.shared.iter().map(Counters::snapshot).fold(Snapshot::default(), |sum, one| sum + one)
    }

    /// Whether nothing has moved for the spec's stall time: no byte counted, none acknowledged.
    fn stalled(&self, progress: &mut Progress, sum: &Snapshot, now: u64) -> bool {
        let limit = match self.plan.role {
            model::Role::Active => self.plan.spec.stall_ns,
            // The active end decides first; this one only makes sure that the trial ends.
            model::Role::Passive => self.plan.spec.stall_ns + self.plan.spec.stall_ns / 2,
        };
        let paced_gap = self.plan.spec.rate_bps.map_or(0, |bps| 2 * pace(&self.plan.spec, bps).gap_ns as u64);
        let moved = sum.bytes_sent + sum.bytes_received;
        // The kernel is queried, one call per flow, only if nothing else shows progress.
        let drains = self.plan.spec.is_stream() && moved == progress.moved;
        let unsent = drains.then(|| self.breakers.iter().map(Breaker::unsent).sum::<u64>());
        if moved != progress.moved || unsent.is_some_and(|unsent| unsent != progress.unsent) {
            *progress = Progress { moved, unsent: unsent.unwrap_or(progress.unsent), since_ns: now };
        }
        now - progress.since_ns > limit.max(paced_gap) + self.plan.path.patience_ns
    }
}

/// When something last moved.
struct Progress {
    /// Bytes counted, and bytes that the other ends had not acknowledged at the last query.
    moved: u64,
    unsent: u64,
    since_ns: u64,
}
