//! Measuring paths in labs.

use std::path::{Path as FilePath, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use model::Run;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::judge::{By, Judged};
use crate::path::Path;
use crate::record::{self, Record};
use crate::{Produce, draw, setup};

/// Time limit of a measurement.
const LIMIT: Duration = Duration::from_secs(60);
/// Time limit for a lab to be removed after a signal.
const REMOVAL: Duration = Duration::from_secs(20);

/// How a measurement ended.
enum Ended {
    Measured(Box<Record>),
    Failed(String),
    Interrupted,
}

/// Measures the paths that the folder lacks. Returns whether a signal ended it.
pub fn produce(wanted: &Produce) -> Result<bool> {
    std::fs::create_dir_all(&wanted.folder)
        .with_context(|| format!("cannot create the folder {}", wanted.folder.display()))?;
    let thru = program(wanted.thru.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(all(wanted, &thru))
}

/// The thru to measure with: the given one, else the one in this program's folder.
fn program(given: Option<&FilePath>) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => std::env::current_exe().context("cannot find this program's path; use --thru")?.with_file_name("thru"),
    };
    path.canonicalize().with_context(|| format!("{} does not exist; build it, or use --thru", path.display()))
}

async fn all(wanted: &Produce, thru: &FilePath) -> Result<bool> {
    let paths: Vec<Path> = (0..wanted.paths)
        .map(|index| draw::path(wanted.seed, index))
        .filter(|path| wanted.only.as_ref().is_none_or(|text| path.name.contains(text)))
        .filter(|path| !record::file(&wanted.folder, path).exists())
        .collect();
    let (count, started) = (paths.len(), Instant::now());
    let mut failed = 0;
    for (done, path) in paths.into_iter().enumerate() {
        let elapsed = started.elapsed().as_secs_f64();
        if wanted.limit.is_some_and(|limit| elapsed >= limit as f64) {
            eprintln!("matrix: {} paths are left after {elapsed:.0} s; run it again for them", count - done);
            break;
        }
        let left = if done == 0 { 4.0 } else { elapsed / done as f64 } * (count - done) as f64;
        eprint!("[{done}/{count}, {} left] {} ... ", minutes(left), path.about());
        match measure(path, thru).await? {
            Ended::Measured(record) => {
                record::write(&wanted.folder, &record)?;
                let judged = Judged::of(*record, By::Rules);
                let right = judged
                    .right()
                    .map_or(judged.not_produced.unwrap_or("?"), |right| if right { "right" } else { "WRONG" });
                eprintln!("{} ({right})", judged.named.words());
            }
            Ended::Failed(reason) => {
                failed += 1;
                eprintln!("failed: {reason}");
            }
            Ended::Interrupted => {
                eprintln!("interrupted; run it again to continue");
                return Ok(true);
            }
        }
    }
    if failed > 0 {
        eprintln!("matrix: {failed} of {count} measurements failed; run it again to repeat them");
    }
    Ok(false)
}

fn minutes(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

/// Measures one path in a lab of its own.
async fn measure(path: Path, thru: &FilePath) -> Result<Ended> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("path.toml"), setup::topology(&path)).context("cannot write the topology")?;
    let script = setup::script(&path, "\"$THRU_PROGRAM\"", "\"$THRU_DOCUMENT\"");
    let errors = std::fs::File::create(file("errors")).context("cannot write the messages")?;
    let child = Command::new(thru)
        .args(["lab", "run", "--quiet"])
        .arg(file("path.toml"))
        .args(["--", "sh", "-c", &script])
        .env("THRU_PROGRAM", thru)
        .env("THRU_DOCUMENT", file("run.json"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors)
        // A terminal's Ctrl-C is for this program, which ends the lab.
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", thru.display()))?;
    let Some(status) = wait(child).await? else { return Ok(Ended::Interrupted) };
    let document: Option<Run> =
        std::fs::read(file("run.json")).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    match document {
        Some(run) if !run.outcomes.is_empty() => Ok(Ended::Measured(Box::new(Record { path, run }))),
        _ => {
            let said = std::fs::read_to_string(file("errors")).unwrap_or_default();
            Ok(Ended::Failed(format!("{status}: {}", said.lines().last().unwrap_or("no message"))))
        }
    }
}

/// Waits for a lab; `None` after a signal. A lab that takes too long is ended too.
async fn wait(mut child: Child) -> Result<Option<ExitStatus>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let ended = tokio::select! {
        status = child.wait() => return Ok(Some(status.context("cannot wait for the lab")?)),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
        () = tokio::time::sleep(LIMIT) => Some(()),
    };
    // SIGTERM ends the command in the lab, and then the lab is removed.
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        kill_process(pid, Signal::TERM).context("cannot end the lab")?;
    }
    match tokio::time::timeout(REMOVAL, child.wait()).await {
        Ok(status) => Ok(ended.and(Some(status.context("cannot wait for the lab")?))),
        Err(_) => bail!("the lab did not end within {} s after SIGTERM; `thru lab down` removes it", REMOVAL.as_secs()),
    }
}
