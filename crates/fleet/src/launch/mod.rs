//! Starts the agents of a fleet, and stops them.

mod batch;
mod program;
mod request;
mod ssh;
mod state;

use protocol::coordinator::DialogueError;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use command::failure::{Failure, INTERRUPTED};
use command::setup;
use command::signals::CaughtSignals;
use model::Family;
use plan::{Fleet, FleetHost};

pub use self::request::{HostResult, UpRequest};
use self::state::State;
use crate::check::check;

/// How agents are started.
pub struct AgentLauncher {
    /// Its name.
    pub name: &'static str,
    /// What it does, for help.
    pub about: &'static str,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// One after the other host, from here, with a copy of this program.
    Ssh,
    /// All by one command, which a program that hosts share runs.
    Batch(batch::Batch),
}

/// Every launcher; the first one is the default.
pub static LAUNCHERS: &[AgentLauncher] = &[
    AgentLauncher { name: "ssh", about: "copies this program to each host over ssh", how: How::Ssh },
    AgentLauncher {
        name: "srun",
        about: "runs a step of the Slurm job; the hosts must share this program's file",
        how: How::Batch(batch::Batch::Srun),
    },
    AgentLauncher {
        name: "mpirun",
        about: "runs mpirun of Open MPI or MPICH; the hosts must share this program's file",
        how: How::Batch(batch::Batch::Mpirun),
    },
];

/// How long agents may take until they answer, once they are started.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// Starts an agent, with a token for the fleet, on each host that does not run one of this fleet. Each start is recorded on disk before the
/// next, so that [`down`] finds it. A signal stops the agents that have been started.
///
/// # Errors
/// The fleet has agents that one command started; the launcher is unknown or not installed; a file is no program; a signal.
pub fn up(
    fleet: &Fleet,
    hosts: &[&FleetHost],
    request: &UpRequest,
    tell: impl Fn(&str),
) -> Result<Vec<HostResult>, Failure> {
    let launcher = LAUNCHERS.iter().find(|launcher| launcher.name == request.via).ok_or_else(|| {
        let known: Vec<&str> = LAUNCHERS.iter().map(|launcher| launcher.name).collect();
        Failure::usage(format!("unknown launcher '{}': use one of {}", request.via, known.join(", ")))
    })?;
    let before = State::open(&fleet.source)?;
    let is_new = before.is_none();
    let mut state = match before {
        Some(before) if before.batch_process().is_some() || launcher.how != How::Ssh => {
            return Err(Failure::usage(format!(
                "agents of {0} have already been started: stop them with `thru fleet down {0}`, or see `thru fleet check {0}`",
                fleet.source
            )));
        }
        Some(mut before) => {
            before.configure(request)?;
            before
        }
        None => State::create(&fleet.source, request)?,
    };
    let running = if is_new { BTreeSet::new() } else { running(fleet, hosts, &state)? };
    running.iter().for_each(|name| tell(&format!("{name} is already running")));
    let all = hosts;
    let hosts: &[&FleetHost] = &hosts.iter().copied().filter(|host| !running.contains(&host.name)).collect::<Vec<_>>();
    let mut signals = CaughtSignals::catch()?;
    let started = setup::runtime()?.block_on(async {
        let work = async {
            match launcher.how {
                How::Ssh => ssh::up(hosts, request, &mut state, &tell).await,
                How::Batch(batch) => batch.up(hosts, request, &mut state).await,
            }
        };
        tokio::select! {
            started = work => started,
            _ = signals.next() => Err(DialogueError::Interrupted.into()),
        }
    });
    let results = started.and_then(|started| ready(fleet, hosts, &state, started, &signals));
    let failed = |results: &Vec<HostResult>| !results.is_empty() && results.iter().all(|result| result.error.is_some());
    if results.as_ref().map_or(true, failed) {
        // Those that ran before go on.
        let names = hosts.iter().map(|host| host.name.as_str()).collect();
        stop(state, (!is_new).then_some(&names), &tell)?;
    }
    let results = results.map_err(|failure| match failure.code() {
        INTERRUPTED => failure.saying("interrupted; the agents started by this command are stopped".into()),
        _ => failure,
    })?;
    let of = |host: &&FleetHost| {
        let found = results.iter().find(|result| result.name == host.name);
        found.cloned().unwrap_or_else(|| HostResult { name: host.name.clone(), error: None })
    };
    Ok(all.iter().map(of).collect())
}

/// The hosts of which an agent of this fleet answers.
fn running(fleet: &Fleet, hosts: &[&FleetHost], state: &State) -> Result<BTreeSet<String>, Failure> {
    let known = state.over(fleet.clone());
    let known: Vec<&FleetHost> = hosts
        .iter()
        .filter(|host| state.hosts().iter().any(|started| started.name == host.name))
        .filter_map(|host| known.host(&host.name))
        .collect();
    let answers = check(&known, Family::Any, None, |_, _| {})?.into_iter().filter(|check| check.error.is_none());
    Ok(answers.map(|check| check.name).collect())
}

/// Waits until the started agents answer.
fn ready(
    fleet: &Fleet,
    hosts: &[&FleetHost],
    state: &State,
    mut results: Vec<HostResult>,
    signals: &CaughtSignals,
) -> Result<Vec<HostResult>, Failure> {
    let begun = Instant::now();
    let running = state.over(fleet.clone());
    loop {
        if signals.arrived() {
            return Err(DialogueError::Interrupted.into());
        }
        let open: Vec<&FleetHost> = hosts
            .iter()
            .filter(|host| results.iter().any(|result| result.name == host.name && result.error.is_none()))
            .filter_map(|host| running.host(&host.name))
            .collect();
        if open.is_empty() {
            return Ok(results);
        }
        let checks = check(&open, Family::Any, None, |_, _| {})?;
        let lost: Vec<_> = checks.into_iter().filter(|check| check.error.is_some()).collect();
        if lost.is_empty() {
            return Ok(results);
        }
        if begun.elapsed() > READY_LIMIT {
            for check in lost {
                if let Some(result) = results.iter_mut().find(|result| result.name == check.name) {
                    result.error = check.error;
                }
            }
            return Ok(results);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Stops the agents that [`up`] started for the fleet that `named` names, and removes what it left on the hosts.
///
/// # Errors
/// No agents of this fleet are known.
pub fn down(named: &str, tell: impl Fn(&str)) -> Result<Vec<HostResult>, Failure> {
    let state = State::open(named)?
        .ok_or_else(|| Failure::usage(format!("no agents of {named} were started here: see `thru fleet up`")))?;
    stop(state, None, tell)
}

/// Stops the agents of these hosts; `None` for all.
fn stop(mut state: State, names: Option<&BTreeSet<&str>>, tell: impl Fn(&str)) -> Result<Vec<HostResult>, Failure> {
    let results = setup::runtime()?.block_on(async {
        match state.batch_process() {
            Some(process) => batch::down(process, &state).await,
            None => {
                let is_named = |name: &str| names.is_none_or(|names| names.contains(name));
                let hosts: Vec<_> = state.hosts().iter().filter(|started| is_named(&started.name)).collect();
                ssh::down(&state, &hosts, &tell).await
            }
        }
    });
    state.forget(&results)?;
    Ok(results)
}

/// The fleet with the tokens, keys and ports of the agents that were started for it.
pub(super) fn with_started(fleet: Fleet) -> Result<Fleet, Failure> {
    Ok(match State::open(&fleet.source)? {
        Some(state) => state.over(fleet),
        None => fleet,
    })
}
