//! Runs while they are conducted, by the page or by any command of this user, and the stream of events that tells the page of them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::{Path as Address, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use model::Phase;
use report::{EstimateSoFar, LivePoint, LivePoints, SoFar};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;
use session::run::followers::{self, Line};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use crate::App;
use crate::answer::{Answer, Refusal};

/// The page hears of changes at most ten times a second.
const PACE: Duration = Duration::from_millis(100);
/// Time between two estimates of a running trial.
const ESTIMATED: Duration = Duration::from_secs(1);
/// How long a run that has ended stays in the list.
const STAYS: Duration = Duration::from_secs(60);
/// Points of a run beyond which those of single flows, then all, are left out.
const MOST_OF_FLOWS: usize = 20_000;
const MOST: usize = 200_000;

/// The runs of now.
#[derive(Debug)]
pub(crate) struct Hub {
    runs: Mutex<Vec<LiveRun>>,
    changed: watch::Sender<u64>,
    /// The socket, removed with this.
    socket: Option<PathBuf>,
}

#[derive(Debug)]
struct LiveRun {
    facts: Facts,
    process: Option<u32>,
    /// To stop that process and no later one with its number.
    handle: Option<OwnedFd>,
    store: Option<PathBuf>,
    points: Vec<LivePoint>,
    /// What it does, and since when.
    phase: (Phase, Instant),
    ended: Option<Instant>,
}

/// What the page shows of a run that is conducted.
#[derive(Debug, Clone, Serialize)]
struct Facts {
    id: String,
    name: Option<String>,
    kind: String,
    target: Option<String>,
    command: String,
    started_unix_ns: u64,
    cells: usize,
    activity: String,
    cells_done: u32,
    remaining_s: Option<f64>,
    /// How much of it is done, 0 to 1.
    share: Option<f64>,
    /// How busy the near and the far host are: of the busiest core, and of the one that handles most softirqs, 0 to 1.
    cores: [Option<[f64; 2]>; 2],
    /// What was found so far, with its interval.
    so_far: Vec<EstimateSoFar>,
    /// The width of the interval at which the run ends, relative to the value; null if that does not end it.
    ends_at: Option<f64>,
    /// Rises with each part that the store has.
    stored: u64,
    /// Whether the store will have it.
    kept: bool,
    /// How it ended.
    ended: Option<String>,
    error: Option<String>,
}

/// The time since a time of the wall clock, zero before it.
fn since(unix_ns: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_nanos(unix_ns))
}

/// A message to the page: a run, and the points that it does not have yet.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    facts: &'a Facts,
    /// The number of points before these.
    from: usize,
    points: &'a [LivePoint],
}

impl LiveRun {
    /// Writes its phase of this moment into its facts.
    fn tell_progress(&mut self) {
        let (phase, began) = &self.phase;
        let phase = phase.after(began.elapsed());
        self.facts.share = phase.share(since(self.facts.started_unix_ns));
        self.facts.remaining_s = phase.remaining_ns.map(|ns| ns as f64 / 1e9);
        self.facts.cells_done = phase.cells_done;
        self.facts.activity = phase.activity.plain();
    }
}

impl Hub {
    /// Listens for runs. Without a place to listen, the page shows stored runs only.
    pub(crate) fn start() -> Arc<Self> {
        let listener = followers::directory().and_then(|directory| listen(&directory));
        let (changed, _) = watch::channel(0);
        let (listener, socket) = listener.unzip();
        let hub = Arc::new(Self { runs: Mutex::default(), changed, socket });
        if let Some(listener) = listener {
            let hub = hub.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(hub.clone().follow(stream));
                }
            });
        }
        hub
    }

    fn runs(&self) -> MutexGuard<'_, Vec<LiveRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a run is conducted now.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.runs().iter().any(|run| run.facts.id == id && run.ended.is_none())
    }

    /// The store of a run that is conducted now.
    pub(crate) fn store_of(&self, id: &str) -> Option<PathBuf> {
        self.runs().iter().find(|run| run.facts.id == id && run.ended.is_none())?.store.clone()
    }

    /// Waits for the run of a process.
    pub(crate) async fn run_of(&self, process: Option<u32>) -> String {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(id) = self.last_run_of(process) {
                return id;
            }
            if changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The run of a process, if it has begun one.
    pub(crate) fn last_run_of(&self, process: Option<u32>) -> Option<String> {
        let runs = self.runs();
        runs.iter().rev().find(|run| process.is_some() && run.process == process).map(|run| run.facts.id.clone())
    }

    /// Reads what a run says until it ends.
    async fn follow(self: Arc<Self>, stream: UnixStream) {
        let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let mut lines = BufReader::new(stream).lines();
        let mut points = LivePoints::with_series();
        let mut so_far = (SoFar::default(), Instant::now());
        let mut id = None;
        while let Ok(Some(line)) = lines.next_line().await {
            let Ok(line) = serde_json::from_str::<Line>(&line) else { continue };
            if let Line::Run(began) = &line {
                id = Some(began.header.id.clone());
                let begins = model::Event::Run(began.header.clone());
                points.event(&begins);
                so_far.0.event(&begins);
            }
            if let Some(id) = &id {
                if let Line::Event { event } = &line {
                    self.estimate(id, event, &mut so_far);
                }
                self.take(id, line, process, &mut points);
            }
        }
        // A process that was killed says nothing at its end.
        if let Some(id) = id {
            self.change(&id, |run| {
                if run.ended.is_none() {
                    run.ended = Some(Instant::now());
                    run.facts.ended = Some("its process ended".to_owned());
                }
            });
        }
    }

    /// Takes the estimate so far: after each trial, and about once a second in between.
    fn estimate(&self, id: &str, event: &model::Event, (so_far, at): &mut (SoFar, Instant)) {
        so_far.event(event);
        if matches!(event, model::Event::Trial(_)) || at.elapsed() >= ESTIMATED {
            *at = Instant::now();
            let estimates = so_far.estimates();
            self.change(id, |run| run.facts.so_far = estimates);
        }
    }

    fn take(&self, id: &str, line: Line, process: Option<i32>, points: &mut LivePoints) {
        match line {
            Line::Run(began) => {
                let handle = process.and_then(Pid::from_raw).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
                let header = began.header;
                let mut runs = self.runs();
                // A run that is continued stands once.
                runs.retain(|run| run.facts.id != header.id && run.ended.is_none_or(|ended| ended.elapsed() < STAYS));
                runs.push(LiveRun {
                    process: process.and_then(|pid| u32::try_from(pid).ok()),
                    handle,
                    points: Vec::new(),
                    phase: (Phase::default(), Instant::now()),
                    ended: None,
                    facts: Facts {
                        id: header.id,
                        name: header.name,
                        kind: header.kind.to_string(),
                        target: header.target,
                        command: report::command_line(&header.command),
                        started_unix_ns: header.started_unix_ns,
                        cells: began.cells,
                        activity: String::new(),
                        cells_done: 0,
                        remaining_s: None,
                        share: None,
                        cores: [None, None],
                        so_far: Vec::new(),
                        ends_at: header.stopping.has_target().then_some(header.stopping.target),
                        stored: 0,
                        kept: began.store.is_some(),
                        ended: None,
                        error: None,
                    },
                    store: began.store,
                });
                drop(runs);
                self.changed.send_modify(|version| *version += 1);
            }
            Line::Stored => self.change(id, |run| run.facts.stored += 1),
            Line::End(ending) => self.change(id, |run| {
                run.ended = Some(Instant::now());
                run.facts.ended = Some(ending.how);
                run.facts.error = ending.error.map(|error| error.plain());
            }),
            Line::Event { event } => {
                let new = points.event(&event);
                self.change(id, |run| {
                    match event {
                        model::Event::Phase(phase) => run.phase = (phase, Instant::now()),
                        model::Event::Reading { end, reading, .. } => {
                            if let Some(cpu) = &reading.cpu {
                                run.facts.cores[usize::from(end != "near")] = Some(cpu.busiest());
                            }
                        }
                        _ => {}
                    }
                    for point in new {
                        let most = if point.flow.is_some() { MOST_OF_FLOWS } else { MOST };
                        if run.points.len() < most {
                            run.points.push(point);
                        }
                    }
                });
            }
        }
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut LiveRun)) {
        if let Some(run) = self.runs().iter_mut().find(|run| run.facts.id == id) {
            change(run);
        }
        self.changed.send_modify(|version| *version += 1);
    }

    /// All runs as JSON, with the points that a reader with `seen` does not have; notes in it what the reader has then.
    fn told(&self, seen: &mut HashMap<String, usize>) -> String {
        let mut runs = self.runs();
        runs.iter_mut().filter(|run| run.ended.is_none()).for_each(LiveRun::tell_progress);
        seen.retain(|id, _| runs.iter().any(|run| run.facts.id == *id));
        let told: Vec<Told<'_>> = runs
            .iter()
            .map(|run| {
                let from = seen.insert(run.facts.id.clone(), run.points.len()).unwrap_or(0).min(run.points.len());
                Told { facts: &run.facts, from, points: &run.points[from..] }
            })
            .collect();
        serde_json::to_string(&told).unwrap_or_default()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// Listens in the directory, and removes what processes that were killed left there.
fn listen(directory: &Path) -> Option<(UnixListener, PathBuf)> {
    host::own_directory(directory).ok()?;
    for path in std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path()) {
        let owner = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u32>().ok());
        if owner.is_some_and(|owner| !host::process::runs(owner)) {
            let _ = std::fs::remove_file(path);
        }
    }
    let path = directory.join(format!("{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    Some((UnixListener::bind(&path).ok()?, path))
}

/// All runs of now, at once and after each change.
pub(crate) async fn events(State(app): State<Arc<App>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut changed = app.hub.changed.subscribe();
    changed.mark_changed();
    let stream =
        futures_util::stream::unfold((app, changed, HashMap::new()), |(app, mut changed, mut seen)| async move {
            changed.changed().await.ok()?;
            if !seen.is_empty() {
                tokio::time::sleep(PACE).await;
            }
            changed.mark_unchanged();
            let data = app.hub.told(&mut seen);
            Some((Ok(Event::default().event("runs").data(data)), (app, changed, seen)))
        });
    Sse::new(stream).keep_alive(KeepAlive::default())
}

/// Stops a run as Ctrl-C does: its results are kept and its settings put back.
pub(crate) async fn stop(State(app): State<Arc<App>>, Address(id): Address<String>) -> Answer<Json<()>> {
    let runs = app.hub.runs();
    let run = runs.iter().find(|run| run.facts.id == id && run.ended.is_none());
    let run = run.ok_or_else(|| Refusal::bad("the run has ended"))?;
    let handle = run.handle.as_ref().ok_or_else(|| Refusal::bad("the run's process cannot be reached"))?;
    pidfd_send_signal(handle, Signal::INT)
        .map_err(|error| Refusal::bad(format!("the run cannot be stopped: {error}")))?;
    Ok(Json(()))
}
