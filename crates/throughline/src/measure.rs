//! From flags to a finished run: connects to the agents, waits in their queues, measures, stores and prints.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use control::ControlError;
use control::agent::{Agent, AgentOptions, Captures, Limits, Machine, Tuning, Workers};
use control::coordinator::{self, Cancel, End, Pair, RunRequest, Schedule, Target};
use control::proto::auth::Token;
use engine::transport::Launcher;
use host::tune::Allowance;
use interop::Login;
use model::{Cell, Event, EventSink, Family, FindingKind, Run, RunHeader, SinkError, Spec, Stopping, Tool};
use store::Store;
use tokio::sync::watch;

use crate::citation;
use crate::failure::{self, Failure};
use crate::flags::{self, Output, Peer};
use crate::foreign;
use crate::launch::{self, Offer};
use crate::output;
use crate::scratch::Scratch;
use crate::settle;
use crate::signals::{Signals, StopRequest};
use crate::sinks::{Collect, Live, Progress};

/// A measurement that a subcommand requests.
pub struct Job<'a> {
    /// The subcommand.
    pub kind: &'static str,
    /// The cells, at least one; all of one transport.
    pub specs: Vec<Spec>,
    /// The stop rule.
    pub rule: Stopping,
    /// The schedule of the cells.
    pub schedule: Schedule,
    /// The hosts and addresses.
    pub peer: &'a Peer,
    /// The outputs.
    pub output: &'a Output,
    /// A NetPIPE file to write, too.
    pub np: Option<&'a Path>,
    /// The login to another program's server.
    pub login: Option<Arc<Login>>,
}

/// Measures and returns the exit code.
pub fn measure(job: &Job<'_>) -> Result<u8, Failure> {
    Ok(measure_run(job)?.1)
}

/// Measures and returns the run and the exit code. There is no run if another process conducted it (mpirun).
pub fn measure_run(job: &Job<'_>) -> Result<(Option<Run>, u8), Failure> {
    let peer_program = job.specs[0].speak.as_ref().map(|name| foreign::check(job, name.as_str())).transpose()?;
    if peer_program.is_none() {
        job.specs.iter().try_for_each(engine::pattern::check)?;
    }
    job.output.check(job.kind, &job.specs)?;
    if let Some(launcher) = engine::transport::transport(job.specs[0].transport.as_str())?.launcher() {
        if let Some(host) = job.peer.host.as_ref().or(job.peer.from.as_ref()) {
            return Err(Failure::usage(launch::no_host(launcher, host)));
        }
        if launcher == Launcher::Mpirun && launch::supervised().is_none() {
            return Ok((None, launch::mpi::run()?));
        }
    }
    // Checked now, not after ten minutes of measuring.
    let files: Vec<&Path> =
        job.output.json.iter().map(PathBuf::as_path).filter(|path| *path != Path::new("-")).chain(job.np).collect();
    files.iter().try_for_each(|path| output::check_writable(path))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    let (run, failed) = runtime.block_on(async {
        match peer_program {
            Some(program) => foreign::conduct(job, program).await,
            None => conduct(job).await,
        }
    })?;
    // A failed run may have nothing to show; its failure is reported in any case.
    let shown = show(job.output, job.np, &run);
    match failed {
        Some(failure) => Err(failure),
        None => Ok((Some(run), shown?)),
    }
}

/// Prints and writes a finished run. The exit code tells whether it can be trusted.
pub fn show(output: &Output, np: Option<&Path>, run: &Run) -> Result<u8, Failure> {
    let runs = std::slice::from_ref(run);
    let to_stdout = output.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = &output.json {
        crate::output::write_pieces("json", runs, Some(path), None)?;
    }
    if let Some(path) = np {
        crate::output::write_pieces("np", runs, Some(path), None)?;
    }
    if !output.quiet && !output.live && !to_stdout {
        // Scripts that read NetPIPE's file may read its screen output, too.
        let form = output.form.unwrap_or(if np.is_some() { "np-screen" } else { "text" });
        crate::output::write_pieces(form, runs, None, None)?;
    }
    let interrupted = run.ending.as_ref().is_some_and(|ending| ending.how == "interrupted");
    // The trials of a search may fail; its report says so.
    let untrusted = run.header.kind != "advise" && run.outcomes.iter().any(analysis::outcome::is_unusable);
    Ok(match () {
        () if interrupted => failure::INTERRUPTED,
        () if run.header.cells.iter().any(|cell| is_skipped(run, cell)) => failure::UNMET,
        () if untrusted => failure::UNTRUSTED,
        () => analysis::compare::answer_of(run).map_or(0, failure::of_answer),
    })
}

/// Whether a cell has no trial because the preconditions of the plan did not hold.
fn is_skipped(run: &Run, cell: &Cell) -> bool {
    let requires = run.header.plan.as_ref().is_some_and(|plan| plan.require.is_some());
    let measured = run.outcomes.iter().any(|outcome| outcome.cell == cell.id && !outcome.trials.is_empty());
    // A note in the findings then names the cell.
    let noted = || run.findings.iter().any(|it| it.kind == FindingKind::Note && it.cells.contains(&cell.id));
    requires && !measured && noted()
}

async fn conduct(job: &Job<'_>) -> Result<(Run, Option<Failure>), Failure> {
    // Missing prerequisites of this host are found before the far host is occupied.
    let recorder = recorder(job.output)?;
    let token = token(job.peer.token_file.as_deref())?;
    let cancel = watch_for_interrupts()?;
    let mut progress = (!job.output.quiet && !job.output.live).then(Progress::new);
    let directory = socket_directory()?;
    // One for each end that may be within this process: each has its own queue and workers.
    let (mut local_near, mut local_far) = (local_options(directory.path())?, local_options(directory.path())?);
    for options in [&mut local_near, &mut local_far] {
        options.selftest = citation::from_store(job.output.store.clone());
        options.captures = Captures::AsRequested;
    }
    let offer = match engine::transport::transport(job.specs[0].transport.as_str())?.launcher() {
        Some(Launcher::Mpirun) => {
            local_near.workers = launch::waiting_worker()?;
            launch::supervised()
        }
        Some(Launcher::PvmSpawn) => Some(launch::pvm::start()?),
        None => None,
    };
    let agents = [Agent::local(local_near), Agent::local(local_far)];
    let mut interrupted = cancel.clone();
    let reached = tokio::select! {
        reached = reach(job, &agents, token.as_ref(), offer.as_ref(), progress.as_mut()) => reached,
        _ = interrupted.wait_for(|stop| *stop) => Err(ControlError::Interrupted.into()),
    };
    let mut pair = reached?;
    let mut collect = Collect::default();
    let sinks = Sinks::new(&mut collect, progress, job.output.live.then_some(Live), recorder);
    let measured = apply_and_measure(job, &mut pair, sinks, cancel).await;
    // Settings of the run are restored in any case, while the ends are still connected.
    for line in pair.put_back().await {
        errln!("thru: {line}");
    }
    let failed = measured?;
    engine::transport::pvm::leave();
    pair.near.release().await;
    if let Some(far) = pair.far {
        far.release().await;
    }
    let run = collect.0.ok_or_else(|| Failure::other("the run did not start"))?;
    let failed = failed.filter(|error| !matches!(error, ControlError::Interrupted)).map(Failure::from);
    Ok((run, failed))
}

/// Applies the settings of the specs, and measures. The error of a run that has begun is returned as a value.
async fn apply_and_measure(
    job: &Job<'_>,
    pair: &mut Pair,
    mut sinks: Sinks<'_>,
    cancel: Cancel,
) -> Result<Option<ControlError>, Failure> {
    let settings = pair.apply_all(&job.specs).await?;
    let specs = with_engines(&job.specs, pair, sinks.progress.as_mut(), &cancel).await?;
    let mut header = RunHeader { settings, ..header(job, specs, pair)? };
    if !job.peer.no_path {
        if let Some(progress) = &mut sinks.progress {
            progress.status("probing the path");
        }
        let spec = header.cells[0].spec.clone();
        let mut interrupted = cancel.clone();
        tokio::select! {
            probed = pair.probe_path(&mut header, &spec) => probed?,
            _ = interrupted.wait_for(|stop| *stop) => return Err(ControlError::Interrupted.into()),
        }
    }
    let request = RunRequest { header, schedule: schedule(&job.schedule) };
    Ok(coordinator::run(pair, &request, &mut sinks, cancel).await.1)
}

/// A copy of the job's schedule for the coordinator.
fn schedule(schedule: &Schedule) -> Schedule {
    match schedule {
        Schedule::Single => Schedule::Single,
        Schedule::Curve(plan) => Schedule::Curve(plan.clone()),
        Schedule::Paired(plan) => Schedule::Paired(plan.clone()),
        Schedule::Advise(plan) => Schedule::Advise(plan.clone()),
    }
}

/// All sinks of a run. An error of the store ends the run, after the other sinks have received the event.
pub struct Sinks<'a> {
    collect: &'a mut Collect,
    progress: Option<Progress>,
    live: Option<Live>,
    recorder: Option<store::Recorder>,
    /// The first event of a run that has no result yet.
    pending_start: Option<Event>,
}

impl EventSink for Sinks<'_> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.collect.event(event)?;
        if let Some(progress) = &mut self.progress {
            progress.event(event)?;
        }
        let kept = self.keep(event);
        let shown = self.live.as_mut().map_or(Ok(()), |live| live.event(event));
        kept.and(shown)
    }
}

impl<'a> Sinks<'a> {
    /// The sinks that are given.
    pub fn new(
        collect: &'a mut Collect,
        progress: Option<Progress>,
        live: Option<Live>,
        recorder: Option<store::Recorder>,
    ) -> Self {
        Self { collect, progress, live, recorder, pending_start: None }
    }
}

impl Sinks<'_> {
    /// Stores an event. A run is stored from its first result on: one that is refused before it measures anything is not stored.
    fn keep(&mut self, event: &Event) -> Result<(), SinkError> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        match event {
            Event::Run(_) => {
                self.pending_start = Some(event.clone());
                Ok(())
            }
            Event::Interval { .. } | Event::Phase(_) => Ok(()),
            Event::End(_) if self.pending_start.is_some() => Ok(()),
            _ => {
                self.pending_start.take().map_or(Ok(()), |start| recorder.event(&start))?;
                recorder.event(event)
            }
        }
    }
}

/// The recorder of the run; `None` with --no-store.
pub fn recorder(output: &Output) -> Result<Option<store::Recorder>, Failure> {
    if output.no_store {
        return Ok(None);
    }
    Ok(Some(open_store(output.store.as_deref())?.recorder()?))
}

/// The store at `path`, or the default one.
pub fn open_store(path: Option<&Path>) -> Result<Store, Failure> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => Store::default_path()?,
    };
    Ok(Store::open(&path)?)
}

/// Becomes true at the first signal that requests the end. The second one ends the process at once. SIGHUP does not count as a second
/// one: several arrive when a terminal closes, and the settings must still be restored.
pub fn watch_for_interrupts() -> Result<watch::Receiver<bool>, Failure> {
    let mut signals = Signals::catch()?;
    let (stop, cancel) = watch::channel(false);
    tokio::spawn(async move {
        let mut urgent = 0;
        loop {
            urgent += u32::from(signals.next().await != StopRequest::Hangup);
            if urgent > 1 {
                settle::restore_after_exit();
                std::process::exit(i32::from(failure::INTERRUPTED));
            }
            let _ = stop.send(true);
        }
    });
    Ok(cancel)
}

/// A folder for sockets between processes of this machine; it is removed when dropped.
pub fn socket_directory() -> Result<Scratch, Failure> {
    Scratch::new().map_err(|error| {
        Failure::host(format!("cannot make a folder for sockets: {error}; set TMPDIR to a writable folder"))
    })
}

/// Options of an agent within this process.
pub fn local_options(directory: &Path) -> Result<AgentOptions, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::other(format!("cannot find this program's own file: {error}")))?;
    Ok(AgentOptions {
        version: crate::VERSION.into(),
        workers: Workers::Program(program),
        token: None,
        machine: Machine::new(1),
        limits: Limits { hold_ns: u64::MAX / 2, ..Limits::default() },
        allow_stacks: true,
        tuning: Tuning { allowed: true, allowance: Allowance::All, journal: flags::journal(), grace: Duration::ZERO },
        directory: directory.to_owned(),
        once: false,
        captures: Captures::Refused,
        vanished_after: Duration::from_secs(2),
        selftest: citation::from_store(None),
        log: Box::new(|_| {}),
        listening: Box::new(|_| {}),
    })
}

/// Reads a token file.
pub fn token(path: Option<&Path>) -> Result<Option<Token>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read the token file {}: {error}", path.display())))?;
    Token::new(&text)
        .map(Some)
        .ok_or_else(|| {
            Failure::usage(format!(
                "the token file {} has no token of at least 128 random bits: make one with `thru token new -o FILE` and copy it to both hosts",
                path.display()
            ))
        })
}

/// Connects to both ends and waits for their machines.
async fn reach(
    job: &Job<'_>,
    [local_near, local_far]: &[Agent; 2],
    token: Option<&Token>,
    offer: Option<&Offer>,
    mut progress: Option<&mut Progress>,
) -> Result<Pair, Failure> {
    let transport = engine::transport::transport(job.specs[0].transport.as_str())?;
    let capabilities = transport.capabilities();
    let remote = |host| Target::Remote { host, token, family: job.peer.family() };
    if let Some(progress) = &mut progress {
        progress.status("connecting");
    }
    let far = match &job.peer.host {
        _ if capabilities.single_ended => None,
        _ if offer.is_some() => connect_to_offer(offer).await?,
        Some(host) => Some(End::connect(remote(host)).await?),
        None if transport.facts().one_host => Some(End::connect(Target::Local(local_far)).await?),
        None => {
            return Err(Failure::usage(format!(
                "{} needs a far host: run `thru serve` on HOST, then `thru {} HOST`",
                job.specs[0].transport, job.kind
            )));
        }
    };
    // A transport with one end is measured on the named host.
    let near = match job.peer.from.as_ref().or(job.peer.host.as_ref().filter(|_| capabilities.single_ended)) {
        Some(host) => End::connect(remote(host)).await?,
        None => End::connect(Target::Local(local_near)).await?,
    };
    if far.as_ref().is_some_and(|far| !far.instance.is_empty() && far.instance == near.instance) {
        return Err(Failure::usage("HOST and --from are the same agent, which cannot wait for itself: omit --from"));
    }
    let mut pair = Pair { near, far };
    let purpose = format!("{} {}", job.kind, job.specs[0].transport);
    for end in std::iter::once(&mut pair.near).chain(pair.far.as_mut()) {
        let name = end.name.clone();
        let queued = |ahead| {
            if let Some(progress) = &mut progress {
                progress.status(&format!("{name} is busy: {ahead} ahead in the queue"));
            }
        };
        end.acquire(&purpose, queued).await?;
    }
    Ok(pair)
}

/// Connects to the agent that a launcher started, at the first of its addresses that answers.
async fn connect_to_offer(offer: Option<&Offer>) -> Result<Option<End>, Failure> {
    let Some(offer) = offer else { return Ok(None) };
    let token = offer.token();
    let mut failure = Failure::other("the agent of the far end has no address");
    for address in &offer.addresses {
        match End::connect(Target::Remote { host: address, token: token.as_ref(), family: Family::Any }).await {
            Ok(end) => return Ok(Some(end)),
            Err(error) => failure = error.into(),
        }
    }
    Err(failure)
}

/// The specs, with `--engine auto` replaced by the fastest send method of a pilot trial each.
async fn with_engines(
    specs: &[Spec],
    pair: &mut Pair,
    mut progress: Option<&mut Progress>,
    cancel: &Cancel,
) -> Result<Vec<Spec>, Failure> {
    let mut settled = Vec::with_capacity(specs.len());
    for spec in specs {
        let mut spec = spec.clone();
        if spec.engine.auto {
            if let Some(progress) = &mut progress {
                progress.status("comparing send methods");
            }
            spec.engine = coordinator::choose_engine(pair, &spec, &mut cancel.clone()).await?;
        }
        settled.push(spec);
    }
    Ok(settled)
}

/// The beginning of a run.
pub fn header(job: &Job<'_>, specs: Vec<Spec>, pair: &Pair) -> Result<RunHeader, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started_unix_ns = now.as_nanos() as u64;
    let entropy = u16::from_be_bytes(control::proto::auth::random().map_err(Failure::other)?);
    let far = pair.far.as_ref().unwrap_or(&pair.near);
    Ok(RunHeader {
        id: store::new_run_id(started_unix_ns, entropy),
        name: job.output.name.clone(),
        kind: job.kind.into(),
        command: std::env::args().collect(),
        started_unix_ns,
        tool: Tool {
            near_version: pair.near.version.clone(),
            far_version: far.version.clone(),
            near_clock_ns: pair.near.clock_ns,
            far_clock_ns: far.clock_ns,
        },
        target: job.peer.host.clone().filter(|_| pair.far.is_some()),
        stopping: job.rule.clone(),
        cells: specs.into_iter().zip(0..).map(|(spec, id)| Cell::new(id, spec)).collect(),
        near: pair.near.inventory.clone(),
        far: far.inventory.clone(),
        ..RunHeader::default()
    })
}
