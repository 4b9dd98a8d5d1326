//! `thru fleet`: the hosts of a fleet.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::Family;
use session::Failure;
use session::fleet::{self, Fleet, FleetHost};

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
    /// Ask all hosts at once: reached or not, version, clock, MTU, load, and who measures there.
    Check {
        #[command(flatten)]
        hosts: FleetHosts,

        /// Print the result as JSON.
        #[arg(long)]
        json: bool,

        /// Use IPv4 only.
        #[arg(short = '4', long, conflicts_with = "ipv6")]
        ipv4: bool,

        /// Use IPv6 only.
        #[arg(short = '6', long)]
        ipv6: bool,

        /// File with the agents' token, for hosts without one of their own.
        #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
        token_file: Option<PathBuf>,
    },
    /// Print the fleet as a fleet.toml.
    Show {
        #[command(flatten)]
        hosts: FleetHosts,
    },
}

/// A fleet, or some of its hosts.
#[derive(Debug, Args)]
pub struct FleetHosts {
    #[arg(value_name = "FLEET", help = registries::fleet_help())]
    pub fleet: String,

    /// Only these hosts: names (node[01-16]), @GROUP, LABEL=VALUE, ! before what to leave out, with commas.
    #[arg(long, value_name = "HOSTS")]
    pub hosts: Option<String>,
}

impl FleetHosts {
    fn chosen<'a>(&self, fleet: &'a Fleet) -> Result<Vec<&'a FleetHost>, Failure> {
        match &self.hosts {
            Some(selection) => fleet.select(selection).map_err(Failure::usage),
            None => Ok(fleet.hosts.iter().collect()),
        }
    }
}

/// Runs it.
pub fn run(args: &FleetArgs) -> Result<u8, Failure> {
    match &args.action {
        Action::Show { hosts } => {
            let fleet = fleet::open(&hosts.fleet)?;
            let chosen = hosts.chosen(&fleet)?;
            console::document(&fleet::to_toml(&fleet.of(&chosen)));
            Ok(0)
        }
        Action::Check { hosts, json, ipv4, ipv6, token_file } => {
            let fleet = fleet::open(&hosts.fleet)?;
            let chosen = hosts.chosen(&fleet)?;
            let family = Family::requested(*ipv4, *ipv6);
            let checks = fleet::check(&chosen, family, token_file.as_deref(), |_, note| {
                note.iter().for_each(|line| errln!("thru: {line}"));
            })?;
            if *json {
                console::json(&checks)?;
            } else {
                out!("{}", report::fleet_check(&checks, output::columns()));
            }
            Ok(checks.iter().find_map(|check| check.code).unwrap_or(0))
        }
    }
}
