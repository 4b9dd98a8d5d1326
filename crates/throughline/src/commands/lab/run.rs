//! `thru lab run`: a lab for the time of one command.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use clap::Args;
use lab::Topology;
use model::LabReport;
use session::Failure;
use session::running_lab::{RunningLab, on_host};
use session::signals::{Signals, StopRequest};
use tokio::process::Child;

use super::Build;
use super::close;
use crate::console;
use crate::output;

/// Flags of `thru lab run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo thru lab run crossover -- thru curve b
  sudo thru lab run dsl -- thru stream server --probe
  sudo thru lab run nordunet-2002 --on norway -- ping -c 5 finland
  sudo thru lab run my.toml -- sh -c 'iperf3 -s -D; ...'

The command runs on the first host of the topology, or on the host of --on. Host names resolve within
the lab: NAME is the IPv4 address, NAME-v6 the IPv6 address. `thru` finds the agents' token in its
environment. The counters of the emulated links are printed at the end. The exit code is that of the
command.")]
pub struct RunArgs {
    #[command(flatten)]
    build: Build,

    /// Host to run the command on [default: the first].
    #[arg(long, value_name = "HOST")]
    on: Option<String>,

    /// Write the counters of the emulated links to FILE as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Print only the output of the command.
    #[arg(long, short)]
    quiet: bool,

    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Time that a command has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);

/// Runs it.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let topology = args.build.topology()?;
    if let Some(path) = &args.json {
        output::check_writable(path)?;
    }
    let job = Job {
        topology: &topology,
        name: args.build.name.as_deref(),
        agents: !args.build.no_agents,
        on: args.on.as_deref(),
        command: &args.command,
        quiet: args.quiet,
    };
    let (report, code) = within(&job)?;
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::other)? + "\n";
        std::fs::write(path, text)
            .map_err(|error| Failure::output(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(code)
}

/// A lab for the time of a command.
#[derive(Debug)]
pub struct Job<'a> {
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
    /// Whether only the command prints.
    pub quiet: bool,
}

/// Builds a lab, runs a command in it and removes the lab, also on errors. Returns the counters of the emulated links and the
/// exit code of the command.
///
/// # Errors
/// The lab cannot be made or removed, or the command cannot be started.
pub fn within(job: &Job<'_>) -> Result<(LabReport, u8), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    // From here on no signal ends this process before the lab is removed.
    let mut signals = Signals::catch()?;
    let lab = RunningLab::build(job.topology, job.name, job.agents, false)?;
    let ended = conduct(&runtime, &lab, job, &mut signals);
    let report = close(lab)?;
    let status = ended?;
    if !job.quiet {
        err!("{}", report::lab_report(&report));
    }
    Ok((report, code(status)))
}

fn conduct(
    runtime: &tokio::runtime::Runtime,
    lab: &RunningLab,
    job: &Job<'_>,
    signals: &mut Signals,
) -> Result<ExitStatus, Failure> {
    let network = lab.network();
    let host = match job.on {
        Some(name) => network.host(name)?,
        None => &network.hosts()[0],
    };
    if !job.quiet {
        let line = format!("thru: lab {}, `{}` on {}", network.name(), job.command.join(" "), host.name);
        // A command such as `time` is no option.
        console::err(&(model::plain(&line) + "\n"));
    }
    let command = on_host(host, network, job.command)?;
    runtime.block_on(lab.serve_while(async {
        let mut child = tokio::process::Command::from(command)
            .spawn()
            .map_err(|error| Failure::host(format!("cannot start `ip netns exec`: {error}")))?;
        wait(&mut child, lab, signals).await.map_err(Failure::other)
    }))?
}

/// Waits for the command. The terminal sends Ctrl-C to the command as well, so the first one is left to it. The second one, and any
/// other signal, is passed on as SIGTERM.
async fn wait(child: &mut Child, lab: &RunningLab, signals: &mut Signals) -> std::io::Result<ExitStatus> {
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
    if let Some(pid) = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid as i32)) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM); // it may just have ended
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
