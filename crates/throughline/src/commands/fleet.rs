//! `thru fleet`: the hosts of a fleet.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use command::Failure;
use fleet::{HostResult, UpRequest};
use model::Family;

use super::mesh_watch::{HistoryArgs, WatchArgs};
use crate::flags::{FleetHosts, FleetName, OverBus};
use crate::{console, output, registries};

/// Flags of `thru fleet`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/fleet.txt").trim_end())]
pub struct FleetArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check all hosts at once: reachability, version, clock, MTU, load, and which clients use them.
    Check {
        #[command(flatten)]
        hosts: FleetHosts,

        #[command(flatten)]
        bus: OverBus,

        /// Print the result as JSON.
        #[arg(long)]
        json: bool,

        /// Use IPv4 only.
        #[arg(short = '4', long, conflicts_with = "ipv6")]
        ipv4: bool,

        /// Use IPv6 only.
        #[arg(short = '6', long)]
        ipv6: bool,

        /// File with the agents' token, for hosts that have no token of their own.
        #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
        token_file: Option<PathBuf>,
    },
    /// Start an agent on each host, with a token for this fleet that this user's commands with the same FLEET then use.
    Up {
        #[command(flatten)]
        hosts: FleetHosts,

        #[arg(long, value_name = "LAUNCHER", default_value = "ssh", help = "How agents are started", value_parser = registries::launchers())]
        via: String,

        /// Configuration file of ssh, as for ssh -F [default: the user's].
        #[arg(long, value_name = "FILE")]
        ssh_config: Option<PathBuf>,

        /// Build of thru for the hosts. May be repeated: each host runs the first one it can [default: this program, then
        /// thru-static next to it].
        #[arg(long, value_name = "FILE")]
        program: Vec<PathBuf>,
    },
    /// Stop the agents that `thru fleet up` started, and remove what it left on the hosts.
    Down {
        #[command(flatten)]
        fleet: FleetName,
    },
    /// Measure a mesh repeatedly: history, changes of each pair, alerts.
    Watch(Box<WatchArgs>),
    /// Show what changed over the passes of a watch: alerts, change points, each pair over time.
    History(HistoryArgs),
    /// Print the fleet as a fleet.toml.
    Show {
        #[command(flatten)]
        hosts: FleetHosts,
    },
}

/// Prints what became of the hosts, and returns the exit code.
fn told(results: &[HostResult], done: &str, next: &str) -> u8 {
    let failed: Vec<&HostResult> = results.iter().filter(|result| result.error.is_some()).collect();
    outln!("{} of {} agents {done}.", results.len() - failed.len(), results.len());
    for result in &failed {
        outln!("  {}: {}", result.name, result.error.clone().unwrap_or_default());
    }
    if failed.is_empty() {
        outln!("Next: {next}");
        return 0;
    }
    NOT_REACHED
}

/// The exit code where a host was not reached.
const NOT_REACHED: u8 = 3;

/// Runs it.
pub fn run(args: &FleetArgs) -> Result<u8, Failure> {
    match &args.action {
        Action::Watch(args) => super::mesh_watch::watch(args),
        Action::History(args) => super::mesh_watch::history(args),
        Action::Show { hosts } => {
            let fleet = fleet::open(&hosts.fleet.named()?)?;
            let chosen = hosts.chosen(&fleet)?;
            console::document(&fleet::to_toml(&fleet.of(&chosen))?);
            Ok(0)
        }
        Action::Up { hosts, via, ssh_config, program } => {
            let named = hosts.fleet.named()?;
            let fleet = fleet::open(&named)?;
            let chosen = hosts.chosen(&fleet)?;
            let request = UpRequest { via: via.clone(), ssh_config: ssh_config.clone(), programs: program.clone() };
            let results = fleet::up(&fleet, &chosen, &request, |line| errln!("{line}"))?;
            Ok(told(&results, "are running", &format!("`thru mesh {named}`, then `thru fleet down {named}`")))
        }
        Action::Down { fleet } => Ok(told(
            &fleet::down(&fleet.named()?, |line| errln!("{line}"))?,
            "are stopped",
            "nothing; everything is removed",
        )),
        Action::Check { hosts, bus, json, ipv4, ipv6, token_file } => {
            let fleet = fleet::open_over(&hosts.fleet.named()?, bus.bus.as_deref())?;
            let chosen = hosts.chosen(&fleet)?;
            let family = Family::requested(*ipv4, *ipv6);
            let checks = fleet::check(&chosen, family, token_file.as_deref(), |_, note| {
                note.iter().for_each(|line| errln!("thru: {line}"));
            })?;
            if *json {
                console::json(&checks)?;
            } else {
                out!("{}", report::fleet_check(&checks, output::layout()));
            }
            Ok(checks.iter().find_map(|check| check.code).unwrap_or(0))
        }
    }
}
