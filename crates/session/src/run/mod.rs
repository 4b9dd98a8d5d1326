//! A run from its request to its document: the same steps for agents, other programs' servers, launchers and plans.

mod collect;
pub mod followers;
mod header;
pub mod on_bus;
mod pair;
mod path_only;
mod plan;
mod program;
mod request;
mod screen;
mod sinks;

use std::path::PathBuf;

use control::agent::{Agent, Captures};
use control::coordinator::Cancel;
use control::{Access, ControlError};
use engine::transport::Launcher;
use model::Run;
use protocol::coordinator::DialogueError;

pub use self::path_only::program_at;
pub use self::request::{Hosts, Request, Resumed, Work};
pub use self::screen::Screen;
use self::sinks::Sinks;
use crate::launch::{self, Offer};
use command::scratch::Scratch;
use command::setup::{
    access, access_with_code, local_options, recorder, runtime, socket_directory, watch_for_interrupts,
};
use command::{Failure, citation};

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Its document, with all that was measured.
    pub run: Run,
    /// What ended it before its time, if it was not the user.
    pub failure: Option<Failure>,
}

/// What the steps of every run need on this host.
struct Here<'s> {
    /// The agents within this process, one for each end that may be here: each has its own queue and workers.
    agents: [Agent; 2],
    /// The agent that a launcher started for the far end.
    offer: Option<Offer>,
    access: Access,
    /// The file with the token of agents that have no other.
    token_file: Option<PathBuf>,
    cancel: Cancel,
    sinks: Sinks<'s>,
    /// The folder of sockets, removed at the end.
    _folder: Scratch,
}

/// Refuses what cannot be measured, before anything is connected.
///
/// # Errors
/// A spec that this build, its transport or the other program does not have; hosts that a launcher does not take.
pub fn check(request: &Request) -> Result<(), Failure> {
    let Work::Measurement { specs, schedule, login, .. } = &request.work else { return Ok(()) };
    match specs.first().speak {
        Some(program) => program::check(program, specs, schedule, login.is_some(), &request.hosts)?,
        None => specs.iter().try_for_each(engine::pattern::check)?,
    }
    if let (Some(launcher), Some(host)) =
        (launcher(request)?, request.hosts.host.as_ref().or(request.hosts.from.as_ref()))
    {
        return Err(Failure::usage(launch::no_host(launcher, host)));
    }
    Ok(())
}

/// Whether this process is one that mpirun started, and must serve a command of its own that measures: [`launch::mpi::run`].
///
/// # Errors
/// The transport is unknown.
pub fn is_launched(request: &Request) -> Result<bool, Failure> {
    Ok(launcher(request)? == Some(Launcher::Mpirun) && launch::supervised().is_none())
}

/// What starts the ends of a measurement, if agents do not.
fn launcher(request: &Request) -> Result<Option<Launcher>, Failure> {
    match &request.work {
        Work::Measurement { specs, .. } => {
            Ok(engine::transport::transport(specs.first().transport.as_str())?.launcher())
        }
        Work::Plan { .. } | Work::Path => Ok(None),
    }
}

/// Conducts a run that [`check`] accepts. The failure of a run that has begun is part of what is returned.
///
/// # Errors
/// What keeps a run from beginning: hosts that are not reached, refuse, or cannot take part; files that cannot be written.
pub fn conduct(request: &Request, screen: &mut dyn Screen) -> Result<Finished, Failure> {
    let runtime = runtime()?;
    runtime.block_on(async {
        // Missing prerequisites of this host are found before the far host is occupied.
        let mut here = Here::open(request, screen)?;
        let failed = match &request.work {
            Work::Path => path_only::measure(request, &mut here).await?,
            Work::Plan { parsed, resumed } => plan::measure(request, parsed, resumed.as_deref(), &mut here).await?,
            Work::Measurement { specs, rule, schedule, login } => match specs.first().speak {
                Some(program) => {
                    let program = peers::protocol(program);
                    program::measure(request, (specs, rule, schedule), program, login.clone(), &mut here).await?
                }
                None => pair::measure(request, (specs, rule, schedule), &mut here).await?,
            },
        };
        let failure = failed
            .filter(|error| !matches!(error, ControlError::Dialogue(DialogueError::Interrupted)))
            .map(Failure::from);
        Ok(Finished { run: here.sinks.document()?, failure })
    })
}

impl<'s> Here<'s> {
    fn open(request: &Request, screen: &'s mut dyn Screen) -> Result<Self, Failure> {
        let recorder = if request.unstored { None } else { Some(recorder(request.store.as_deref())?) };
        let access = match &request.hosts.code {
            Some(code) => access_with_code(code)?,
            None => access(request.hosts.token_file.as_deref())?,
        };
        let cancel = watch_for_interrupts(request.exit)?;
        let folder = socket_directory()?;
        let (mut near, mut far) = (local_options(folder.path())?, local_options(folder.path())?);
        for options in [&mut near, &mut far] {
            options.selftest = citation::from_store(request.store.clone());
            options.captures = Captures::AsRequested;
        }
        let offer = match launcher(request)? {
            Some(Launcher::Mpirun) => {
                near.workers = launch::waiting_worker()?;
                launch::supervised()
            }
            Some(Launcher::PvmSpawn) => Some(launch::pvm::start()?),
            None => None,
        };
        let sinks = Sinks::new(screen, recorder);
        let token_file = request.hosts.token_file.clone();
        Ok(Self {
            agents: [Agent::local(near), Agent::local(far)],
            offer,
            access,
            token_file,
            cancel,
            sinks,
            _folder: folder,
        })
    }
}

/// The result of `work`, or [`DialogueError::Interrupted`] as soon as the user ends the run.
async fn unless_interrupted<T>(
    mut cancel: Cancel,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        result = work => result,
        _ = cancel.wait_for(|stop| *stop) => Err(DialogueError::Interrupted.into()),
    }
}
