//! `thru lab run`: a lab as long as a command takes.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use clap::Args;
use lab::Topology;
use model::LabReport;
use tokio::process::Child;

use super::Build;
use super::held::{Held, on_host};
use crate::failure::Failure;
use crate::output;
use crate::signals::{Asks, Signals};

/// Flags of `thru lab run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo thru lab run crossover -- thru curve b
  sudo thru lab run dsl -- thru stream server --probe
  sudo thru lab run nordunet-2002 --on norway -- ping -c 5 finland
  sudo thru lab run my.toml -- sh -c 'iperf3 -s -D; ...'

The command runs on the first host of the topology, or on that of --on. Hosts find each other by their names (NAME is an IPv4
address, NAME-v6 the other one), and `thru` finds the agents' secret by itself. What the emulated links did is printed at the
end; the exit code is the command's.")]
pub struct RunArgs {
    #[command(flatten)]
    build: Build,

    /// The host to run the command on [default: the first].
    #[arg(long, value_name = "HOST")]
    on: Option<String>,

    /// Write what the emulated links did as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Say nothing oneself.
    #[arg(long, short)]
    quiet: bool,

    /// The command and its arguments, behind `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// How long a command may take to end after it was told to.
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
    /// What it is built from.
    pub topology: &'a Topology,
    /// Its name, where it is to have a given one.
    pub name: Option<&'a str>,
    /// Whether each host has an agent.
    pub agents: bool,
    /// The host that the command runs on; the first one unless given.
    pub on: Option<&'a str>,
    /// The command and its arguments.
    pub command: &'a [String],
    /// Whether to say nothing oneself.
    pub quiet: bool,
}

/// Builds a lab, runs a command in it and removes the lab, whatever happens; what the emulated links did, and the command's exit
/// code.
///
/// # Errors
/// A lab that cannot be made or removed, a command that cannot be started.
pub fn within(job: &Job<'_>) -> Result<(LabReport, u8), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    // From here on no signal ends this process before the lab is gone.
    let mut signals = Signals::catch()?;
    let held = Held::build(job.topology, job.name, job.agents, false)?;
    let ended = conduct(&runtime, &held, job, &mut signals);
    let report = held.close()?;
    let status = ended?;
    if !job.quiet {
        err!("{}", report::lab_report(&report));
    }
    Ok((report, code(status)))
}

fn conduct(
    runtime: &tokio::runtime::Runtime,
    held: &Held,
    job: &Job<'_>,
    signals: &mut Signals,
) -> Result<ExitStatus, Failure> {
    let network = held.network();
    let host = match job.on {
        Some(name) => network.host(name)?,
        None => &network.hosts()[0],
    };
    if !job.quiet {
        errln!("thru: lab {}, `{}` on {}", network.name(), job.command.join(" "), host.name);
    }
    let command = on_host(host, network, job.command)?;
    runtime.block_on(held.answer_while(async {
        let mut child = tokio::process::Command::from(command)
            .spawn()
            .map_err(|error| Failure::host(format!("cannot start `ip netns exec`: {error}")))?;
        wait(&mut child, held, signals).await.map_err(Failure::other)
    }))?
}

/// Waits for the command. Ctrl-C reaches it from the terminal by itself and is its own affair, until the second one; a request to
/// end is passed on.
async fn wait(child: &mut Child, held: &Held, signals: &mut Signals) -> std::io::Result<ExitStatus> {
    let mut interrupts = 0;
    loop {
        tokio::select! {
            status = child.wait() => return status,
            asks = signals.next() => {
                interrupts += 1;
                if asks != Asks::Interrupt || interrupts > 1 {
                    break;
                }
            }
            () = held.asked_down() => break,
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

/// A command's exit code as a shell has it: 128 and the number of the signal that ended it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
