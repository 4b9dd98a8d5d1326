//! `thru lab`: emulated hosts and links on this machine, for any program.

mod down;
mod exec;
mod list;
mod map;
mod run;
mod up;

use clap::{Args, Subcommand};
use command::Failure;
use command::values::variables;
use lab::Topology;
use model::LabReport;
use options::values::variable;
use session::labs::{LabEvent, topology};

use crate::console;

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
    /// List the labs that are up, or the built-in topologies.
    List(list::ListArgs),
    /// Draw a topology as a picture (works without root).
    Map(map::MapArgs),
    /// Run a command on a host of a lab that is up.
    Exec(exec::ExecArgs),
    /// The process that holds a lab that is up. Internal.
    #[command(hide = true)]
    Hold(up::UpArgs),
}

/// The topology of a lab and its options.
#[derive(Debug, Clone, Args)]
struct Build {
    /// A built-in topology (see `thru lab list --ready`), or a TOML file.
    #[arg(value_name = "TOPOLOGY")]
    topology: String,

    /// Set a variable, ${NAME} in the topology. May be repeated.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    vars: Vec<(String, String)>,

    /// Name of the lab [default: the topology's name and eight random digits].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Do not start agents (`thru serve`) on the hosts.
    #[arg(long)]
    no_agents: bool,
}

impl Build {
    fn topology(&self) -> Result<Topology, Failure> {
        topology::find(&self.topology, &variables(&self.vars)?)
    }
}

/// Runs it.
pub fn run(args: &LabArgs) -> Result<u8, Failure> {
    match &args.action {
        Action::Run(args) => run::run(args),
        Action::Up(args) => up::run(args),
        Action::Down(args) => down::run(args),
        Action::List(args) => list::run(args),
        Action::Map(args) => map::run(args),
        Action::Exec(args) => exec::run(args),
        Action::Hold(args) => up::hold(args),
    }
}

/// Prints what happens while `command` runs in a lab; if `quiet`, only what must be seen.
pub fn tell(command: &[String], quiet: bool) -> impl Fn(LabEvent<'_>) {
    move |event| match event {
        LabEvent::Note(line) => errln!("thru: {line}"),
        _ if quiet => {}
        LabEvent::Changed(change) => errln!(
            "thru: {}: {} (was {}) on this whole machine while the lab is up",
            change.key,
            change.now,
            change.before
        ),
        LabEvent::Starts { lab, host } => {
            let line = format!("thru: lab {lab}, `{}` on {host}", command.join(" "));
            // A command such as `time` is no option.
            console::err(&(model::plain(&line) + "\n"));
        }
    }
}

/// Prints the counters of the emulated links.
pub fn print_report(report: &LabReport, quiet: bool) {
    if !quiet {
        err!("{}", report::lab_report(report));
    }
}
