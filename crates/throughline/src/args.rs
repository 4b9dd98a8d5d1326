//! The whole command line. The flags of each subcommand are in its own file.

use clap::{Arg, Command as Clap, CommandFactory, Parser, Subcommand};

use crate::commands::{
    ab, advise, agent, check, compare, config, curve, demo, explain, export, fleet, generate, helper, host, import,
    lab, launched, mesh, report, rr, run, runs, selftest, serve, show, stacks, stream, token, top, transfer, tune,
    watch, web, why, worker,
};

/// Measures what a network path carries, from 1-byte round trips to line rate.
///
/// Start `thru serve` on one host and measure from the other. Every result has a 95 % confidence interval. Every run is
/// stored; `thru show`, `thru report` and `thru export` read it again.
#[derive(Debug, Parser)]
#[command(name = "thru", version = command::VERSION, max_term_width = 100)]
#[command(after_help = include_str!("help/thru.txt").trim_end())]
pub struct Args {
    /// End when standard input closes. For processes that `thru` starts itself.
    #[arg(long, hide = true)]
    pub until_input_ends: bool,

    /// Show rates in bits or in bytes per second. Files for programs (JSON, CSV) always have bits.
    #[arg(long, global = true, value_parser = ["bits", "bytes"], default_value = "bits", env = "THRU_UNITS", help_heading = "Output")]
    pub units: String,

    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The command line as it is parsed. A negative number after a flag is its value, not another flag, so that the error names the
/// value.
pub fn command() -> Clap {
    with_negative_numbers(Args::command()).override_help(include_str!("help/front.txt"))
}

fn with_negative_numbers(command: Clap) -> Clap {
    let takes = |arg: &Arg| arg.get_action().takes_values() && !arg.is_positional() && !arg.is_require_equals_set();
    // Options of a config file come first, and later ones override them.
    command
        .args_override_self(true)
        .mut_args(|arg| if takes(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(with_negative_numbers)
}

/// The subcommands.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once")]
pub enum Command {
    /// Check a path: goodput, round trips and loss in each direction, and what is wrong. `thru HOST` does the same.
    Check(check::CheckArgs),
    /// Run the agent that other hosts measure with.
    Serve(serve::ServeArgs),
    /// Make the secret that an agent and its clients share.
    Token(token::TokenArgs),
    /// Show, trust and forget the keys of agents.
    Agent(agent::AgentArgs),
    /// Measure latency and throughput over all block sizes (NetPIPE).
    Curve(curve::CurveArgs),
    /// Measure the goodput of streams, in one direction or both (iperf3, netperf TCP_STREAM).
    Stream(stream::StreamArgs),
    /// Measure round-trip times and transactions per second (netperf TCP_RR, TCP_CRR).
    Rr(rr::RrArgs),
    /// Transfer a fixed number of bytes or blocks (nttcp).
    Transfer(transfer::TransferArgs),
    /// Run an experiment from a plan file: hosts, factors, settings, schedule.
    Run(run::RunArgs),
    /// Measure between all hosts of a fleet: matrices, slow hosts, racks and pairs.
    Mesh(mesh::MeshArgs),
    /// Check the hosts of a fleet, start and stop their agents, watch a mesh of them.
    Fleet(fleet::FleetArgs),
    /// Test whether B is worse than A by alternating two measurements.
    Ab(ab::AbArgs),
    /// Search for settings that improve the result on this path.
    Advise(advise::AdviseArgs),
    /// Compare stored runs.
    Compare(compare::CompareArgs),
    /// Show what limited a stored run, with evidence.
    Why(why::WhyArgs),
    /// Explain a word of a screen: a verdict, a grade of trust, a cause, a term.
    Explain(explain::ExplainArgs),
    /// List stored runs.
    Runs(runs::RunsArgs),
    /// Show a stored run.
    Show(show::ShowArgs),
    /// Draw one or more runs as an HTML page or picture.
    Report(report::ReportArgs),
    /// Write a run in another format: JSON, CSV, gnuplot, np.out, iperf3 ...
    Export(export::ExportArgs),
    /// Import the results of other tools into the store.
    Import(import::ImportArgs),
    /// Show stored and running runs in a browser, and start tests there.
    Web(web::WebArgs),
    /// Show host inventory: CPU, memory, interfaces, kernel, sysctls.
    Host(host::HostArgs),
    /// List, load and unload the congestion controls that come with this program.
    Stacks(stacks::StacksArgs),
    /// Show, change and restore settings of a host.
    Tune(tune::TuneArgs),
    /// Show the defaults in force and where each comes from: the file, a line of it, or the environment.
    Config(config::ConfigArgs),
    /// Show live counters of a host, as vmstat and netstat do.
    Watch(watch::WatchArgs),
    /// Show a host full-screen: cores, interfaces, TCP.
    Top(top::TopArgs),
    /// Check the accuracy of this program on this host against known rates and delays.
    Selftest(selftest::SelftestArgs),
    /// Emulate hosts and links on this machine, and run programs on them (needs root).
    Lab(lab::LabArgs),
    /// Measure between two emulated hosts and write a report (needs root; else over loopback).
    Demo(demo::DemoArgs),
    /// Write man pages, shell completions and JSON Schemas.
    Generate(generate::GenerateArgs),
    /// Do privileged work for an unprivileged agent (needs root).
    Helper(helper::HelperArgs),
    /// The agent of a far end that mpirun or PVM started. Internal.
    #[command(hide = true)]
    Launched(launched::LaunchedArgs),
    /// Restores the settings of a process that was killed. Internal.
    #[command(hide = true)]
    Settle(crate::commands::settle::SettleArgs),
    /// A measuring process of an agent. Internal.
    #[command(hide = true)]
    Worker(worker::WorkerArgs),
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod printed;
