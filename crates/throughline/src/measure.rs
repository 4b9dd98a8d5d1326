//! From flags to a finished run: connects to the agents, waits in their queues, measures, stores and prints.

use std::path::{Path, PathBuf};

use control::ControlError;
use control::agent::{Agent, Captures};
use control::coordinator::{self, Cancel, End, Pair, RunRequest, Target};
use control::proto::auth::Token;
use engine::transport::Launcher;
use model::{Cell, Family, FindingKind, Run, RunHeader, Spec};

use crate::citation;
use crate::failure::{self, Failure};
use crate::flags::Output;
use crate::foreign;
use crate::job::{Job, header};
use crate::launch::{self, Offer};
use crate::output;
use crate::prepare::{local_options, recorder, socket_directory, token, watch_for_interrupts};
use crate::sinks::{Collect, Live, Progress, Sinks};

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
    let request = RunRequest { header, schedule: job.schedule.clone() };
    Ok(coordinator::run(pair, &request, &mut sinks, cancel).await.1)
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
