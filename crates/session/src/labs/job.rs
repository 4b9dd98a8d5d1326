//! A lab for the time of one command.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use command::signals::{CaughtSignals, StopRequest};
use command::{Failure, failure, setup};
use lab::Topology;
use model::{Change, LabReport, Setting};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;

use super::{RunningLab, on_host};
use crate::tuning::HostWide;

/// Time that a command has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);

/// A command, and the lab that it runs in.
#[derive(Debug)]
pub struct LabJob<'a> {
    /// The topology.
    pub topology: &'a Topology,
    /// The name of the lab; `None` for a generated one.
    pub name: Option<&'a str>,
    /// Whether an agent runs on each host.
    pub agents: bool,
    /// The host that the command runs on; `None` for the first.
    pub on: Option<&'a str>,
    /// The command and its arguments.
    pub command: &'a [String],
}

/// What happens to a lab while it is up.
#[derive(Debug)]
pub enum LabEvent<'a> {
    /// A setting of the whole machine is changed until the lab is removed.
    Changed(&'a Change),
    /// The command starts.
    Starts {
        /// The lab's name.
        lab: &'a str,
        /// The host that it runs on.
        host: &'a str,
    },
    /// Something that must be seen.
    Note(&'a str),
}

/// Builds a lab, runs a command in it and removes the lab, also on errors. Returns the counters of the emulated links and the
/// exit code of the command; the command does not start after a signal.
///
/// # Errors
/// The lab cannot be made or removed, or the command cannot be started.
pub fn within(job: &LabJob<'_>, tell: &dyn Fn(LabEvent<'_>)) -> Result<(LabReport, u8), Failure> {
    let runtime = setup::runtime()?;
    // From here on no signal ends this process before the lab is removed.
    let mut signals = CaughtSignals::catch()?;
    let lab = RunningLab::build(job.topology, job.name, job.agents, false)?;
    if signals.arrived() {
        return Ok((lab.close(|line| tell(LabEvent::Note(line)))?, failure::INTERRUPTED));
    }
    let ended = conduct(&runtime, &lab, job, &mut signals, tell);
    let report = lab.close(|line| tell(LabEvent::Note(line)))?;
    Ok((report, code(ended?)))
}

/// Builds the lab of a plan and runs this command again on its first host. That process knows from its environment that it is
/// in a lab.
///
/// # Errors
/// As [`within`]; the topology or a setting of the machine is wrong.
pub fn again_within(
    topology: &Topology,
    host_wide: &[Setting],
    command: &[String],
    tell: &dyn Fn(LabEvent<'_>),
) -> Result<(LabReport, u8), Failure> {
    // From here on no signal ends this process before the settings are restored.
    let _signals = CaughtSignals::catch()?;
    let changed = |change: &Change| tell(LabEvent::Changed(change));
    let _settings = HostWide::set(host_wide, &command.join(" "), changed, |line: &str| tell(LabEvent::Note(line)))?;
    within(&LabJob { topology, name: None, agents: true, on: None, command }, tell)
}

fn conduct(
    runtime: &Runtime,
    lab: &RunningLab,
    job: &LabJob<'_>,
    signals: &mut CaughtSignals,
    tell: &dyn Fn(LabEvent<'_>),
) -> Result<ExitStatus, Failure> {
    let network = lab.network();
    let host = match job.on {
        Some(name) => network.host(name)?,
        None => &network.hosts()[0],
    };
    tell(LabEvent::Starts { lab: network.name(), host: &host.name });
    let command = on_host(host, network, job.command)?;
    runtime.block_on(lab.serve_while(async {
        let mut child = Command::from(command)
            .spawn()
            .map_err(|error| Failure::host(format!("cannot start `ip netns exec`: {error}")))?;
        wait(&mut child, lab, signals).await.map_err(Failure::other)
    }))?
}

/// Waits for the command. The terminal sends Ctrl-C to the command as well, so the first one is left to it. The second one, and any
/// other signal, is passed on as SIGTERM.
async fn wait(child: &mut Child, lab: &RunningLab, signals: &mut CaughtSignals) -> std::io::Result<ExitStatus> {
    let mut interrupts = 0;
    loop {
        tokio::select! {
            status = child.wait() => return status,
            request = signals.next() => {
                interrupts += 1;
                if request != StopRequest::Interrupt || interrupts > 1 {
                    break;
                }
            }
            () = lab.removal_requested() => break,
        }
    }
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid as i32)) {
        let _ = kill_process(pid, Signal::TERM); // it may just have ended
    }
    match tokio::time::timeout(GRACE, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            child.start_kill()?;
            child.wait().await
        }
    }
}

/// The exit code of a command as in a shell: 128 plus the signal number if a signal ended it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
