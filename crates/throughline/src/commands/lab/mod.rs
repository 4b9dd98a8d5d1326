//! `thru lab`: emulated hosts and links on this machine, for any program.

mod down;
mod exec;
mod list;
mod run;
mod up;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use lab::Topology;
use model::LabReport;
use session::running_lab::RunningLab;

pub use run::{Job, within};
use session::Failure;
use session::topology;

/// Flags of `thru lab`.
#[derive(Debug, Args)]
pub struct LabArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Build a lab, run a command on one of its hosts, and remove the lab.
    Run(run::RunArgs),
    /// Build a lab that stays up until `thru lab down`.
    Up(up::UpArgs),
    /// Remove labs that are up, and the remains of crashed ones.
    Down(down::DownArgs),
    /// List the labs that are up, or the topologies that come with this program.
    List(list::ListArgs),
    /// Run a command on a host of a lab that is up.
    Exec(exec::ExecArgs),
    /// The process that holds a lab that is up. Internal.
    #[command(hide = true)]
    Hold(up::UpArgs),
}

/// The topology of a lab and its options.
#[derive(Debug, Clone, Args)]
struct Build {
    /// A topology that comes with this program (listed by `thru lab list --ready`), or a TOML file.
    #[arg(value_name = "TOPOLOGY")]
    topology: String,

    /// Value of a variable, ${NAME} in the topology. May be repeated.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = session::values::variable)]
    vars: Vec<(String, String)>,

    /// Name of the lab [default: the name of the topology and eight random digits].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Do not start agents (`thru serve`) on the hosts.
    #[arg(long)]
    no_agents: bool,
}

impl Build {
    fn topology(&self) -> Result<Topology, Failure> {
        let mut vars = BTreeMap::new();
        for (key, value) in &self.vars {
            if vars.insert(key.clone(), value.clone()).is_some() {
                return Err(Failure::usage(format!("--var {key} is given twice")));
            }
        }
        topology::find(&self.topology, &vars)
    }
}

/// Runs it.
pub fn run(args: &LabArgs) -> Result<u8, Failure> {
    match &args.action {
        Action::Run(args) => run::run(args),
        Action::Up(args) => up::run(args),
        Action::Down(args) => down::run(args),
        Action::List(args) => list::run(args),
        Action::Exec(args) => exec::run(args),
        Action::Hold(args) => up::hold(args),
    }
}

/// Removes a lab and returns the counters of its emulated links.
fn close(lab: RunningLab) -> Result<LabReport, Failure> {
    if let Some((link, why)) = lab.failure() {
        errln!("thru: the emulated link {link} stopped forwarding: {why}");
    }
    lab.close()
}
