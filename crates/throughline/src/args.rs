//! The command line as a whole; each subcommand's flags stand in its own file.

use clap::{Parser, Subcommand};

use crate::commands::{
    ab, advise, compare, curve, demo, export, generate, host, import, lab, launched, report, rr, run, runs, selftest,
    serve, show, stacks, stream, transfer, tune, watch, why,
};
use crate::settle::SettleArgs;

/// Measures what a network path really carries, from one byte to line rate.
///
/// Start `thru serve` on one host and measure from the other. Numbers come with the interval they are sure to, and every run
/// is kept, so that `thru show`, `report` and `export` can come back to it.
#[derive(Debug, Parser)]
#[command(name = "thru", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Examples:
  thru serve --listen 0.0.0.0 --token-file ~/.thru-token    on the far host
  thru curve HOST --token-file ~/.thru-token                NetPIPE's curve, 1 B to 8 MiB
  thru stream HOST --reverse --flows 4                      goodput towards this host
  thru rr HOST --block 1                                    round trips
  thru why                                                  what held the last run back, with the evidence
  thru run plans/socket-sizes.toml --var host=HOST          a whole experiment, resumable
  thru advise HOST                                          which settings would help, and by how much
  thru host HOST --diff                                     in what HOST differs from this host
  thru watch HOST                                           vmstat and netstat in one, live and at HOST
  thru tune set dev.eth0.mtu=9000 HOST --for 10m            a setting, put back by itself
  thru report last -o curve.html                            a page to look at and send on

Exit codes: 0 measured, 1 failed, 2 wrong usage, 3 host not reached, 4 refused, 5 lost in mid-test,
6 results could not be kept or written, 7 not possible on this host, 8 measured but not to be trusted,
130 interrupted. ab and compare answer by theirs: 0 not worse, 3 worse, 4 cannot tell.")]
pub struct Args {
    /// End when standard input does; for processes that another one starts for itself.
    #[arg(long, hide = true)]
    pub until_input_ends: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once")]
pub enum Command {
    /// Let other hosts measure with this one.
    Serve(serve::ServeArgs),
    /// Round trips (or streams) over all block sizes: NetPIPE's curve.
    Curve(curve::CurveArgs),
    /// Goodput of a stream of blocks, in either direction or both.
    Stream(stream::StreamArgs),
    /// Request and response: round-trip times and transactions per second.
    Rr(rr::RrArgs),
    /// Exactly so many blocks, in so many flows or processes.
    Transfer(transfer::TransferArgs),
    /// A whole experiment from a file: factors and their levels, hosts, settings, blocks, a schedule.
    Run(run::RunArgs),
    /// Is B worse than A? Two measurements in turns, with a sure answer.
    Ab(ab::AbArgs),
    /// Which settings help on this path, and by how much.
    Advise(advise::AdviseArgs),
    /// Set stored runs against each other.
    Compare(compare::CompareArgs),
    /// Say what held a run back, with the evidence.
    Why(why::WhyArgs),
    /// List the runs that were kept.
    Runs(runs::RunsArgs),
    /// Show a run again.
    Show(show::ShowArgs),
    /// Draw one run or several as a page or a picture.
    Report(report::ReportArgs),
    /// Write a run in another form.
    Export(export::ExportArgs),
    /// Read other tools' results into the store.
    Import(import::ImportArgs),
    /// Say what this host is.
    Host(host::HostArgs),
    /// List, explain, load and unload the TCP stacks that come with this program.
    Stacks(stacks::StacksArgs),
    /// Show and change settings of a host, and put them back.
    Tune(tune::TuneArgs),
    /// Show how a host does, live and without a measurement: vmstat and netstat in one.
    Watch(watch::WatchArgs),
    /// Measure known truths and say how far off this program is on this host.
    Selftest(selftest::SelftestArgs),
    /// Hosts and paths on this machine (as root): build them from a topology and run programs on them.
    Lab(lab::LabArgs),
    /// Build two hosts in network namespaces (as root), measure between them and write a report.
    Demo(demo::DemoArgs),
    /// Write man pages, shell completions and JSON Schemas.
    Generate(generate::GenerateArgs),
    /// The agent of a far end that mpirun or PVM started; not for people.
    #[command(hide = true)]
    Launched(launched::LaunchedArgs),
    /// A process that puts back what another one set, should that one be killed; not for people.
    #[command(hide = true)]
    Settle(SettleArgs),
    /// A measuring process of an agent; not for people.
    #[command(hide = true)]
    Worker,
}
