//! The command line as a whole; each subcommand's flags stand in its own file.

use clap::{Arg, Command as Clap, CommandFactory, Parser, Subcommand};

use crate::commands::{
    ab, advise, compare, curve, demo, export, generate, host, import, lab, launched, report, rr, run, runs, selftest,
    serve, show, stacks, stream, token, transfer, tune, watch, why,
};
use crate::settle::SettleArgs;

/// Measures what a network path really carries, from one byte to line rate.
///
/// Start `thru serve` on one host and measure from the other. Numbers come with the interval they are sure to, and every run
/// is kept, so that `thru show`, `report` and `export` can come back to it.
#[derive(Debug, Parser)]
#[command(name = "thru", version = crate::VERSION, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Examples:
  thru token new -o ~/.thru-token                           the secret of both hosts: copy it to the other one
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
9 a plan's preconditions did not hold, 130 interrupted. ab and compare answer by theirs: 0 not worse, 3 worse, 4 cannot tell.")]
pub struct Args {
    /// End when standard input does; for processes that another one starts for itself.
    #[arg(long, hide = true)]
    pub until_input_ends: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The command line as it is parsed: what looks like a negative number behind a flag is its value, to be refused as such, and no
/// other flag.
pub fn command() -> Clap {
    with_negative_numbers(Args::command())
}

fn with_negative_numbers(command: Clap) -> Clap {
    let takes = |arg: &Arg| arg.get_action().takes_values() && !arg.is_positional() && !arg.is_require_equals_set();
    command
        .mut_args(|arg| if takes(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(with_negative_numbers)
}

/// The subcommands.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once")]
pub enum Command {
    /// Let other hosts measure with this one.
    Serve(serve::ServeArgs),
    /// Make a secret for `thru serve --token-file` and those who measure with it.
    Token(token::TokenArgs),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage;

    /// What nobody means.
    const GARBAGE: [&str; 8] = ["x", "-1", "", "1.5", "99999999999999999999", "1,x", "0x10", "NaN"];
    /// What a parser of the standard library says.
    const FOREIGN: [&str; 8] = [
        "invalid digit",
        "cannot parse",
        "out of range",
        "ParseIntError",
        "too large to fit",
        "invalid float",
        "invalid IP address",
        "from empty string",
    ];
    /// How values are called that are quantities.
    const QUANTITIES: [&str; 7] = ["N", "SIZE", "TIME", "RATE", "PERCENT", "BYTES", "PORT"];

    /// Every command and its subcommands, with those that stand before it.
    fn all(command: &Clap) -> Vec<Clap> {
        let below = command.get_subcommands().flat_map(all);
        std::iter::once(command.clone()).chain(below).collect()
    }

    /// What is said of one value of one flag; `None` where it is taken.
    fn said(command: &Clap, arg: &Arg, value: &str) -> Option<String> {
        let word = match arg.get_long() {
            Some(name) => format!("--{name}={value}"),
            None => value.to_owned(),
        };
        command.clone().try_get_matches_from([command.get_name(), &word]).err().map(|error| usage::sentence(&error))
    }

    #[test]
    fn no_value_is_refused_in_the_words_of_a_library() {
        let mut tried = 0;
        for command in all(&super::command()) {
            for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
                for said in GARBAGE.iter().filter_map(|value| said(&command, arg, value)) {
                    tried += 1;
                    let foreign = FOREIGN.iter().find(|phrase| said.contains(**phrase));
                    assert_eq!(foreign, None, "{} {}: {said}", command.get_name(), arg.get_id());
                }
            }
        }
        assert!(tried > 500, "{tried} refusals");
    }

    #[test]
    fn every_quantity_is_refused_by_its_name_where_it_is_none() {
        for command in all(&super::command()) {
            let quantity =
                |arg: &&Arg| arg.get_value_names().is_some_and(|names| QUANTITIES.contains(&names[0].as_str()));
            for arg in command.get_arguments().filter(quantity) {
                for value in ["x", "-1", "99999999999999999999"] {
                    let of = format!("{} --{}", command.get_name(), arg.get_long().unwrap_or_default());
                    let said = said(&command, arg, value).unwrap_or_else(|| panic!("{of}={value} is taken"));
                    let flag = format!("--{}: ", arg.get_long().unwrap_or_default());
                    assert!(said.starts_with(&flag) && said.contains(&format!("'{value}'")), "{of}: {said}");
                }
            }
        }
    }

    #[test]
    fn a_negative_number_behind_a_flag_is_its_value() {
        let error = super::command().try_get_matches_from(["thru", "stream", "b", "--flows", "-1"]).unwrap_err();
        assert_eq!(usage::sentence(&error), "--flows: '-1' is no whole number from 1 to 16384");
        assert!(super::command().try_get_matches_from(["thru", "stream", "-4", "b"]).is_ok());
    }

    #[test]
    fn round_trips_do_not_list_what_they_refuse() {
        let help = super::command().find_subcommand_mut("rr").unwrap().render_long_help().to_string();
        assert!(!help.contains("--both") && help.contains("--flows"), "{help}");
    }
}
