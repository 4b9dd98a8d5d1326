//! The threads of a trial: gives each flow its machine, releases all threads at once, monitors them and adds up their
//! counts.

mod buffer;
mod completions;
mod counters;
mod flow;
mod gate;
mod merge;
mod meter;
mod readiness;
mod rounds;
mod rtt;
mod stopwatch;
mod strategy;
mod sys;
mod tcp;
mod thread;
mod timers;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use model::tally::Window;
use model::{EndTally, Interval, Spec, Stop, Strategy, TcpSample, ThreadTime};

use crate::pattern::Pace;
use crate::plan::{LinkPlan, is_stream};
use crate::transport::{Breaker, Link, Transport};
use crate::{EngineError, TrialPlan, now_ns};

pub(crate) use buffer::PageBuffer;
pub(crate) use counters::{Counters, Snapshot, add};
pub(crate) use flow::{Flow, FlowLeg, FlowOf, FlowSetup, Scratch};
use gate::Gate;
use merge::ThreadLegs;
use meter::Meter;
pub(crate) use rtt::RttRecorder;
use strategy::MAX_THREADS;
pub(crate) use strategy::strategy;

/// How long flows may go on after the stop before they count as stalled.
const WATCH_STEP: Duration = Duration::from_millis(100);

/// What one end counted in one leg, and what ended the trial early, if anything did.
#[derive(Debug)]
pub struct LegTally {
    /// One for each leg of the plan that began.
    pub legs: Vec<EndTally>,
    /// For each leg: first and last send, first and last arrival, in ns of this host's monotonic clock, 0 for never.
    /// They allow the tallies of several processes of one host to be added up.
    pub spans: Vec<[u64; 4]>,
    /// Why the trial ended early; `legs` has the counts until then.
    pub failure: Option<EngineError>,
    /// From the release of the threads to the end of the last one, ns.
    pub elapsed_ns: u64,
    /// Bytes that each of the plan's links had sent and received when the warm-up ended; empty without one.
    pub warm: Vec<[u64; 2]>,
}

/// Flags shared by a trial's threads and whoever may end it.
#[derive(Debug, Default)]
pub struct Signals {
    stop: AtomicBool,
    abort: AtomicBool,
}

impl Signals {
    /// Fresh flags.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Ends the trial early: senders stop, connections are broken, and the counts are returned as cut short.
    pub fn abort(&self) {
        self.abort.store(true, Ordering::SeqCst);
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Whether senders and requesters should stop.
    #[inline]
    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn aborting(&self) -> bool {
        self.abort.load(Ordering::Relaxed)
    }

    /// Ends the trial as its clock does: senders and requesters stop, data in flight is counted.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// The cost of one clock read on this host in ns, measured once.
pub fn clock_cost_ns() -> f64 {
    static COST: OnceLock<f64> = OnceLock::new();
    *COST.get_or_init(|| {
        const READS: u32 = 2_000;
        let batch = |_| {
            let start = now_ns();
            for _ in 0..READS {
                std::hint::black_box(now_ns());
            }
            (now_ns() - start) as f64 / f64::from(READS)
        };
        // The smallest of a few batches: anything above it is other load.
        (0..9).map(batch).fold(f64::MAX, f64::min)
    })
}

/// Runs one end of a trial over its open links and returns when this end is finished. `live` receives each entry of
/// the interval series as it happens.
pub fn run(
    plan: &TrialPlan,
    transport: &dyn Transport,
    links: Vec<Link>,
    signals: &Arc<Signals>,
    live: &mut dyn FnMut(Interval),
) -> Result<LegTally, EngineError> {
    let capabilities = transport.capabilities();
    let strategy = strategy(&plan.spec, transport, links.len())?;
    let probe = plan.probe();
    let count = links.len() - usize::from(probe.is_some());
    let threads = match strategy {
        Strategy::Blocking => count,
        _ => plan.spec.threads.map_or(MAX_THREADS, |threads| threads as usize).min(count),
    };
    let shared: Arc<Vec<Counters>> = Arc::new((0..count).map(|_| Counters::default()).collect());
    let new_group = |plan: &TrialPlan, strategy| Threads { plan: Arc::new(plan.clone()), strategy, flows: Vec::new() };
    let mut groups: Vec<Threads> = (0..threads).map(|_| new_group(plan, strategy)).collect();
    let mut breakers = Vec::with_capacity(links.len());
    for (slot, (link, link_plan)) in links.into_iter().zip(plan.links()).enumerate() {
        let flow = match &probe {
            // The probe has its own counters and its own thread, so that it neither appears in the stream's figures
            // nor waits for its flows.
            Some(probe) if slot == count => {
                groups.push(new_group(probe, self::strategy(&probe.spec, transport, 1)?));
                let link_plan = LinkPlan { flow: 0, ..link_plan };
                groups[threads].setup(link_plan, Arc::new(vec![Counters::default()]), 0)
            }
            _ => groups[slot % threads].setup(link_plan, shared.clone(), slot),
        };
        let group = if slot == count { threads } else { slot % threads };
        let flow = link.into_flow(flow)?;
        breakers.push(flow.breaker());
        groups[group].flows.push(flow);
    }
    clock_cost_ns();
    let trial = Trial { plan, shared: &shared, breakers: &breakers, signals };
    let mut outcome = trial.run(groups, probe.is_some(), live)?;
    if capabilities.single_ended {
        outcome.legs.iter_mut().zip(&mut outcome.spans).for_each(|(tally, span)| merge::mirror(tally, span));
    }
    Ok(outcome)
}

/// The flows of one thread, and how it serves them.
struct Threads {
    plan: Arc<TrialPlan>,
    strategy: Strategy,
    flows: Vec<Box<dyn Flow>>,
}

impl Threads {
    fn setup(&self, link_plan: LinkPlan, counters: Arc<Vec<Counters>>, slot: usize) -> FlowSetup {
        FlowSetup { plan: self.plan.clone(), link_plan, counters, slot, strategy: self.strategy }
    }
}

/// A trial whose flows are ready.
struct Trial<'a> {
    plan: &'a TrialPlan,
    shared: &'a Arc<Vec<Counters>>,
    breakers: &'a [Breaker],
    signals: &'a Arc<Signals>,
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
}

impl Trial<'_> {
    fn run(&self, groups: Vec<Threads>, probed: bool, live: &mut dyn FnMut(Interval)) -> Result<LegTally, EngineError> {
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
            let probe = if probed { threads.pop() } else { None };
            let times = || threads.iter().filter_map(|thread| thread.time);
            (spent.threads, spent.busiest) = (times().reduce(ThreadTime::together), times().reduce(ThreadTime::busier));
            let series = merge::Series { tcp: std::mem::take(&mut watched.tcp), start_ns };
            let (mut legs, spans) = merge::merge(self.plan, threads, series);
            if let (Some(leg), Some(probe)) = (legs.last_mut(), probe) {
                leg.probe = probe.round_trips();
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
            if leg.measured.is_some() && is_stream(&self.plan.spec) && self.plan.spec.rate_bps.is_some() {
                leg.measured = self.beats_since(&watched.warm);
            }
            leg.stalled = watched.stalled;
            leg.cut_short = failed || (self.signals.aborting() && !watched.stalled);
        }
    }

    /// What arrived of paced flows after the last arrival of the warm-up, per flow.
    fn beats_since(&self, warm: &[Snapshot]) -> Option<Window> {
        let ended = self.shared.iter().map(Counters::snapshot).filter(|ended| ended.arrival_ns.0 > 0);
        let windows = warm.iter().zip(ended).map(|(warm, ended)| {
            let (from, bytes) = match warm.arrival_ns.1 {
                0 => (ended.arrival_ns.0, ended.first_bytes),
                last => (last, warm.bytes_received),
            };
            Window { bytes: ended.bytes_received.saturating_sub(bytes), ns: ended.arrival_ns.1.saturating_sub(from) }
        });
        merge::side_by_side(windows)
    }

    /// Sleeps until the trial is over, waking up for the series, the end of the warm-up, the stop and stalls.
    fn watch(
        &self,
        start_ns: u64,
        running: &Mutex<usize>,
        done: &std::sync::Condvar,
        live: &mut dyn FnMut(Interval),
    ) -> Watched {
        let spec = &self.plan.spec;
        let series = self.plan.legs.len() == 1 && spec.interval_ns > 0;
        let stop_at = match self.plan.legs.last().map(|leg| leg.stop) {
            Some(Stop::TimeNs(ns)) => start_ns + ns,
            _ => u64::MAX,
        };
        let mut watched = Watched::default();
        let mut readings = tcp::Readings::start(self.plan, &self.breakers[..self.shared.len()], start_ns);
        let mut last = Snapshot::default();
        let mut next_entry = if series { start_ns + spec.interval_ns } else { u64::MAX };
        let warm_at = if spec.warmup_ns > 0 { start_ns + spec.warmup_ns } else { u64::MAX };
        let mut progress = Progress { moved: u64::MAX, unsent: u64::MAX, since_ns: start_ns };
        let mut entry_start = 0;
        let mut lock = running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while *lock > 0 {
            let now = now_ns();
            let pending_stop = if self.signals.stopping() { u64::MAX } else { stop_at };
            let pending_warm = if watched.measured.is_some() { u64::MAX } else { warm_at };
            let wake = next_entry.min(readings.due_ns()).min(pending_stop).min(pending_warm);
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
                live(entry);
                watched.intervals.push(entry);
                (last, entry_start) = (sum, now - start_ns);
                while next_entry <= now {
                    next_entry += spec.interval_ns;
                }
            }
            if now >= readings.due_ns() {
                readings.take();
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
        watched.tcp = readings.finish();
        if series {
            let sum = self.sum();
            let end = now_ns() - start_ns;
            let entry = sum.since(&last, entry_start, end);
            if entry.bytes_sent + entry.bytes_received + entry.transactions > 0 || watched.intervals.is_empty() {
                live(entry);
                watched.intervals.push(entry);
            }
        }
        watched
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
        let drains = is_stream(&self.plan.spec) && moved == progress.moved;
        let unsent = drains.then(|| self.breakers.iter().map(Breaker::unsent).sum::<u64>());
        if moved != progress.moved || unsent.is_some_and(|unsent| unsent != progress.unsent) {
            *progress = Progress { moved, unsent: unsent.unwrap_or(progress.unsent), since_ns: now };
        }
        now - progress.since_ns > limit.max(paced_gap)
    }
}

/// When something last moved.
struct Progress {
    /// Bytes counted, and bytes that the other ends had not acknowledged at the last query.
    moved: u64,
    unsent: u64,
    since_ns: u64,
}

/// One flow's share of `bps` over all flows.
pub(crate) fn pace(spec: &Spec, bps: u64) -> Pace {
    let own = bps.max(1) as f64 / f64::from(spec.flows.max(1));
    let gap_ns = spec.block as f64 * 8e9 / own;
    match spec.burst {
        Some(bytes) => Pace { gap_ns, catch_up_ns: bytes as f64 * 8e9 / own, min_gap_ns: 0.0 },
        // If only one block may be made up, nothing needs spacing.
        None if gap_ns >= CATCH_UP_NS => Pace { gap_ns, catch_up_ns: CATCH_UP_NS, min_gap_ns: 0.0 },
        None => Pace { gap_ns, catch_up_ns: CATCH_UP_NS, min_gap_ns: MIN_GAP * gap_ns },
    }
}

/// One flow's share of the rate of a reader, all flows together.
pub(crate) fn drain(spec: &Spec, bps: u64) -> Pace {
    let own = bps.max(1) as f64 / f64::from(spec.flows.max(1));
    let gap_ns = crate::pattern::DRAIN_READ as f64 * 8e9 / own;
    Pace { gap_ns, catch_up_ns: READER_CATCH_UP_NS, min_gap_ns: 0.0 }
}

/// How much a reader makes up after a delay: its data waits for it, so the mean rate is kept.
const READER_CATCH_UP_NS: f64 = 100_000_000.0;

/// How much a paced sender makes up after a delay if the spec does not say: a thread that was off its core for longer
/// has missed its rate, and the outcome says so.
const CATCH_UP_NS: f64 = 1_000_000.0;
/// Spacing of the blocks that make up a delay, as a part of the normal gap, unless a burst was requested: the mean
/// rate is kept, and the path never gets more than 125 % of it.
const MIN_GAP: f64 = 0.8;
