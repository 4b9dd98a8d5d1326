//! From flags to a finished run: reaches the agents, waits in their queues, measures, keeps and shows.

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
use crate::signals::{Asks, Signals};
use crate::sinks::{Collect, Live, Progress};

/// What a subcommand wants measured.
pub struct Job<'a> {
    /// The subcommand.
    pub kind: &'static str,
    /// The cells, at least one; all of one transport.
    pub specs: Vec<Spec>,
    /// When it is enough.
    pub rule: Stopping,
    /// How cells are taken.
    pub schedule: Schedule,
    /// Where the far end is.
    pub peer: &'a Peer,
    /// Where results go.
    pub output: &'a Output,
    /// A NetPIPE file to write as well.
    pub np: Option<&'a Path>,
    /// Who logs in to another program's server.
    pub login: Option<Arc<Login>>,
}

/// Measures and returns the exit code.
pub fn measure(job: &Job<'_>) -> Result<u8, Failure> {
    Ok(measure_run(job)?.1)
}

/// Measures and returns the run, unless others conducted it (mpirun), and the exit code.
pub fn measure_run(job: &Job<'_>) -> Result<(Option<Run>, u8), Failure> {
    let speak = job.specs[0].speak.as_ref().map(|name| foreign::check(job, name.as_str())).transpose()?;
    if speak.is_none() {
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
    // Found out now, not after ten minutes of measuring.
    let files: Vec<&Path> =
        job.output.json.iter().map(PathBuf::as_path).filter(|path| *path != Path::new("-")).chain(job.np).collect();
    files.iter().try_for_each(|path| output::check_writable(path))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    let (run, failed) = runtime.block_on(async {
        match speak {
            Some(spoken) => foreign::conduct(job, spoken).await,
            None => conduct(job).await,
        }
    })?;
    // Of a run that failed there may be nothing to show, but why it failed is to be said.
    let shown = show(job.output, job.np, &run);
    match failed {
        Some(failure) => Err(failure),
        None => Ok((Some(run), shown?)),
    }
}

/// Prints and writes a finished run; the exit code says whether to trust it.
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
        // Who asks for NetPIPE's file has scripts that read its screen as well.
        let form = output.form.unwrap_or(if np.is_some() { "np-screen" } else { "text" });
        crate::output::write_pieces(form, runs, None, None)?;
    }
    let interrupted = run.ending.as_ref().is_some_and(|ending| ending.how == "interrupted");
    // A search tries what may fail, and says so.
    let untrusted = run.header.kind != "advise" && run.outcomes.iter().any(analysis::outcome::is_unusable);
    Ok(match () {
        () if interrupted => failure::INTERRUPTED,
        () if run.header.cells.iter().any(|cell| left_out(run, cell)) => failure::UNMET,
        () if untrusted => failure::UNTRUSTED,
        () => analysis::compare::answer_of(run).map_or(0, failure::of_answer),
    })
}

/// Whether a cell has no trial at all because what the plan requires did not hold.
fn left_out(run: &Run, cell: &Cell) -> bool {
    let requires = run.header.plan.as_ref().is_some_and(|plan| plan.require.is_some());
    let measured = run.outcomes.iter().any(|outcome| outcome.cell == cell.id && !outcome.trials.is_empty());
    // The plan's note of it names the cell.
    let noted = || run.findings.iter().any(|it| it.kind == FindingKind::Note && it.cells.contains(&cell.id));
    requires && !measured && noted()
}

async fn conduct(job: &Job<'_>) -> Result<(Run, Option<Failure>), Failure> {
    // What this host lacks is found out before another one is kept waiting.
    let recorder = recorder(job.output)?;
    let token = token(job.peer.token_file.as_deref())?;
    let cancel = watch_for_interrupts()?;
    let mut progress = (!job.output.quiet && !job.output.live).then(Progress::new);
    let directory = socket_directory()?;
    // One for each end that may be within this process: each has its own queue and workers.
    let (mut here, mut there) = (local_options(directory.path())?, local_options(directory.path())?);
    for options in [&mut here, &mut there] {
        options.selftest = citation::from_store(job.output.store.clone());
        options.captures = Captures::AsRequested;
    }
    let offer = match engine::transport::transport(job.specs[0].transport.as_str())?.launcher() {
        Some(Launcher::Mpirun) => {
            here.workers = launch::waiting_worker()?;
            launch::supervised()
        }
        Some(Launcher::PvmSpawn) => Some(launch::pvm::start()?),
        None => None,
    };
    let agents = [Agent::local(here), Agent::local(there)];
    let mut interrupted = cancel.clone();
    let reached = tokio::select! {
        reached = reach(job, &agents, token.as_ref(), offer.as_ref(), progress.as_mut()) => reached,
        _ = interrupted.wait_for(|wanted| *wanted) => Err(ControlError::Interrupted.into()),
    };
    let mut pair = reached?;
    let mut collect = Collect::default();
    let sinks = Sinks::new(&mut collect, progress, job.output.live.then_some(Live), recorder);
    let measured = measured(job, &mut pair, sinks, cancel).await;
    // However it went: what was set for the run is put back while the ends are still there.
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

/// Sets what the specs want set, and measures; the error of a run that was begun comes back as a value.
async fn measured(
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
            progress.say("looking at the path");
        }
        let spec = header.cells[0].spec.clone();
        let mut interrupted = cancel.clone();
        tokio::select! {
            looked = pair.probe_path(&mut header, &spec) => looked?,
            _ = interrupted.wait_for(|wanted| *wanted) => return Err(ControlError::Interrupted.into()),
        }
    }
    let request = RunRequest { header, schedule: schedule(&job.schedule) };
    Ok(coordinator::run(pair, &request, &mut sinks, cancel).await.1)
}

/// A schedule for the coordinator; it is borrowed from the job otherwise.
fn schedule(schedule: &Schedule) -> Schedule {
    match schedule {
        Schedule::Single => Schedule::Single,
        Schedule::Curve(plan) => Schedule::Curve(plan.clone()),
        Schedule::Paired(plan) => Schedule::Paired(plan.clone()),
        Schedule::Advise(plan) => Schedule::Advise(plan.clone()),
    }
}

/// Every sink of a run. A store that fails ends the run; the others have heard the event by then.
pub struct Sinks<'a> {
    collect: &'a mut Collect,
    progress: Option<Progress>,
    live: Option<Live>,
    recorder: Option<store::Recorder>,
    /// The beginning of a run that has no result yet.
    held: Option<Event>,
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
    /// The sinks that there are.
    pub fn new(
        collect: &'a mut Collect,
        progress: Option<Progress>,
        live: Option<Live>,
        recorder: Option<store::Recorder>,
    ) -> Self {
        Self { collect, progress, live, recorder, held: None }
    }
}

impl Sinks<'_> {
    /// Hands an event to the store. A run is only begun there with its first result: one that was refused before it measured
    /// anything is no run to come back to.
    fn keep(&mut self, event: &Event) -> Result<(), SinkError> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        match event {
            Event::Run(_) => {
                self.held = Some(event.clone());
                Ok(())
            }
            Event::Interval { .. } | Event::Phase(_) => Ok(()),
            Event::End(_) if self.held.is_some() => Ok(()),
            _ => {
                self.held.take().map_or(Ok(()), |begin| recorder.event(&begin))?;
                recorder.event(event)
            }
        }
    }
}

/// What keeps the run, unless nothing is to.
pub fn recorder(output: &Output) -> Result<Option<store::Recorder>, Failure> {
    if output.no_store {
        return Ok(None);
    }
    Ok(Some(open_store(output.store.as_deref())?.recorder()?))
}

/// The store at `path`, or at its usual place.
pub fn open_store(path: Option<&Path>) -> Result<Store, Failure> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => Store::default_path()?,
    };
    Ok(Store::open(&path)?)
}

/// Becomes true at the first signal that asks for the end. The second one ends the process at once; one that tells of a terminal that
/// went away does not hurry it, for several come then, and what was set still goes back.
pub fn watch_for_interrupts() -> Result<watch::Receiver<bool>, Failure> {
    let mut signals = Signals::catch()?;
    let (wanted, cancel) = watch::channel(false);
    tokio::spawn(async move {
        let mut urgent = 0;
        loop {
            urgent += u32::from(signals.next().await != Asks::Hangup);
            if urgent > 1 {
                settle::leave();
                std::process::exit(i32::from(failure::INTERRUPTED));
            }
            let _ = wanted.send(true);
        }
    });
    Ok(cancel)
}

/// A folder for sockets between processes of this machine, gone with its owner.
pub fn socket_directory() -> Result<Scratch, Failure> {
    Scratch::new().map_err(|error| {
        Failure::host(format!("cannot make a folder for sockets: {error}; set TMPDIR to one that can be written"))
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
                "the token file {} holds no secret of 128 random bits or more: make one with `thru token new -o FILE`, for both hosts",
                path.display()
            ))
        })
}

/// Reaches both ends and waits for their machines.
async fn reach(
    job: &Job<'_>,
    [here, there]: &[Agent; 2],
    token: Option<&Token>,
    offer: Option<&Offer>,
    mut progress: Option<&mut Progress>,
) -> Result<Pair, Failure> {
    let capabilities = engine::transport::transport(job.specs[0].transport.as_str())?.capabilities();
    let remote = |host| Target::Remote { host, token, family: job.peer.family() };
    if let Some(progress) = &mut progress {
        progress.say("connecting");
    }
    let far = match &job.peer.host {
        _ if capabilities.single_ended => None,
        _ if offer.is_some() => offered(offer).await?,
        Some(host) => Some(End::connect(remote(host)).await?),
        None if capabilities.one_machine => Some(End::connect(Target::Local(there)).await?),
        None => {
            return Err(Failure::usage(format!(
                "{} needs a far host: thru {} HOST (and `thru serve` on HOST)",
                job.specs[0].transport, job.kind
            )));
        }
    };
    // A transport with one end is measured on the host that was named.
    let near = match job.peer.from.as_ref().or(job.peer.host.as_ref().filter(|_| capabilities.single_ended)) {
        Some(host) => End::connect(remote(host)).await?,
        None => End::connect(Target::Local(here)).await?,
    };
    if far.as_ref().is_some_and(|far| !far.instance.is_empty() && far.instance == near.instance) {
        return Err(Failure::usage(
            "HOST and --from are the same agent, which cannot wait for itself: leave --from out",
        ));
    }
    let mut pair = Pair { near, far };
    let purpose = format!("{} {}", job.kind, job.specs[0].transport);
    for end in std::iter::once(&mut pair.near).chain(pair.far.as_mut()) {
        let name = end.name.clone();
        let queued = |ahead| {
            if let Some(progress) = &mut progress {
                progress.say(&format!("{name} is busy: {ahead} before us"));
            }
        };
        end.acquire(&purpose, queued).await?;
    }
    Ok(pair)
}

/// The agent that a launcher started, at the first of its places that answers.
async fn offered(offer: Option<&Offer>) -> Result<Option<End>, Failure> {
    let Some(offer) = offer else { return Ok(None) };
    let token = offer.token();
    let mut failure = Failure::other("the far end listens nowhere");
    for place in &offer.places {
        match End::connect(Target::Remote { host: place, token: token.as_ref(), family: Family::Any }).await {
            Ok(end) => return Ok(Some(end)),
            Err(error) => failure = error.into(),
        }
    }
    Err(failure)
}

/// The specs with `--engine auto` settled by a short trial of each way.
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
                progress.say("trying the ways to send");
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
