//! Agents by one command of a cluster, which runs this program's file on each host.

use std::process::{Command, Stdio};
use std::time::Duration;

use command::Failure;
use plan::FleetHost;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use text::Text;

use super::program;
use super::request::{HostResult, UpRequest};
use super::state::{Started, State};

/// How long the command may take to end.
const END_LIMIT: Duration = Duration::from_secs(15);

/// The command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Batch {
    Srun,
    Mpirun,
}

impl Batch {
    /// Its name and arguments before the program: one process on each of the hosts.
    fn command(self, hosts: &[&FleetHost]) -> (&'static str, Vec<String>) {
        let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        let (list, count) = (names.join(","), names.len().to_string());
        let args: Vec<&str> = match self {
            Self::Srun => vec!["--overlap", "--nodes", &count, "--ntasks-per-node", "1", "--nodelist", &list],
            Self::Mpirun if is_open_mpi() => vec!["--host", &list, "--map-by", "ppr:1:node", "-n", &count],
            Self::Mpirun => vec!["-hosts", &list, "-ppn", "1", "-n", &count],
        };
        let name = if self == Self::Srun { "srun" } else { "mpirun" };
        (name, args.into_iter().map(str::to_owned).collect())
    }

    /// Starts all agents. They share a port, so that of the first host is that of all.
    pub(super) async fn up(
        self,
        hosts: &[&FleetHost],
        request: &UpRequest,
        state: &mut State,
    ) -> Result<Vec<HostResult>, Failure> {
        let (name, args) = self.command(hosts);
        let port =
            |host: &FleetHost| control::coordinator::identity(&host.control).ok()?.rsplit_once(':')?.1.parse().ok();
        let ports: Vec<u16> = hosts.iter().filter_map(|host| port(host)).collect();
        let port = ports.first().copied().unwrap_or(protocol::DEFAULT_PORT);
        if ports.iter().any(|other| *other != port) {
            return Err(Failure::usage(format!("{name} starts all agents on the same port: give all hosts one port")));
        }
        let log = state.token_file().with_file_name("log");
        let log = std::fs::File::create(&log)
            .map_err(|error| Failure::output(format!("cannot write {}: {error}", log.display())))?;
        let more = log.try_clone().map_err(|error| Failure::output(format!("cannot write the log: {error}")))?;
        let child = group(
            Command::new(name)
                .args(&args)
                .arg(program::shared(&request.programs)?)
                .args(["serve", "--listen", &format!("0.0.0.0:{port}"), "--token-file"])
                .arg(state.token_file())
                .stdin(Stdio::null())
                .stdout(log)
                .stderr(more),
        )
        .spawn()
        .map_err(|error| Failure::host(format!("cannot run `{name}`: {error}; is it installed, and in PATH?")))?;
        state.set_batch_process(child.id())?;
        for host in hosts {
            state.add(Started { name: host.name.clone(), ..Started::default() })?;
        }
        Ok(hosts.iter().map(|host| HostResult { name: host.name.clone(), error: None }).collect())
    }
}

/// The command in a process group of its own, which outlives this process.
fn group(command: &mut Command) -> &mut Command {
    std::os::unix::process::CommandExt::process_group(command, 0)
}

/// Whether mpirun is that of Open MPI.
fn is_open_mpi() -> bool {
    let told = Command::new("mpirun").arg("--version").output();
    told.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Open MPI"))
}

/// Ends the command, and the agents with it.
pub(super) async fn down(process: u32, state: &State) -> Vec<HostResult> {
    let group = i32::try_from(process).ok().and_then(Pid::from_raw);
    let mut error = None;
    if let Some(group) = group {
        let begun = std::time::Instant::now();
        let _ = kill_process_group(group, Signal::TERM);
        while test_kill_process_group(group).is_ok() {
            if begun.elapsed() > END_LIMIT {
                let _ = kill_process_group(group, Signal::KILL);
                error = Some(
                    "the command that started the agents had to be killed: check the hosts for remaining agents"
                        .to_owned(),
                );
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let one = |host: &Started| HostResult { name: host.name.clone(), error: error.as_deref().map(Text::from) };
    state.hosts().iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn srun_starts_one_agent_on_each_node() {
        let [a, b] = ["n1", "n2"].map(FleetHost::named);
        let (name, args) = Batch::Srun.command(&[&a, &b]);
        assert_eq!(
            (name, args.join(" ").as_str()),
            ("srun", "--overlap --nodes 2 --ntasks-per-node 1 --nodelist n1,n2")
        );
    }
}
