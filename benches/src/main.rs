//! `bench`: compares thru with other tools over loopback, with the same pinning and alternating runs.
//!
//! A work (a file under `work/`) defines what is measured, the unit and the goal; a peer (a file under `peer/`)
//! defines a tool's command lines and how to parse its output. Adding either takes one file and one line in its
//! registry.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program: printing is its job")]
#![allow(unreachable_pub, reason = "in a binary nothing is reachable from outside; pub marks what other modules use")]

mod archive;
mod confidence;
mod goal_record;
mod guard;
mod judge;
mod machine;
mod markdown;
mod outcome;
mod peer;
mod process;
mod provenance;
mod record;
mod remaining;
mod rounds;
mod sys;
mod table;
mod tool_result;
mod verdict;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

use crate::record::Record;
use crate::rounds::{BenchRun, Cores};

/// Compares thru with iperf3, NetPIPE, netperf, neper, qperf, sockperf, nuttcp, iperf 2, xfr and bare loops, if
/// installed.
#[derive(Debug, Parser)]
#[command(name = "bench", version, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    command: Option<Stored>,

    /// Rounds; in each, every tool runs every work once [default: the fewest with which each row has an interval].
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,

    /// Only this work; may be given several times. `--work list` lists them.
    #[arg(long, value_name = "ID")]
    work: Vec<String>,

    /// Only this tool and thru; may be given several times.
    #[arg(long, value_name = "NAME")]
    peer: Vec<String>,

    /// 3 rounds and a curve up to 64 KiB; does not judge goals or write a file.
    #[arg(long)]
    quick: bool,

    /// Seconds of one measurement, for tools with such an option [default: 1].
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u32>,

    /// Print the JSON document instead of the table.
    #[arg(long)]
    json: bool,

    /// Print the number of rows and rounds and the expected time, and stop.
    #[arg(long)]
    plan: bool,

    /// Seed of the order [default: from the clock; it is recorded].
    #[arg(long)]
    seed: Option<u64>,

    /// Cores of the client and of the server.
    #[arg(long, value_name = "CLIENT,SERVER", default_value = "1,0")]
    cores: Cores,

    /// The thru program to measure [default: the one in this program's folder].
    #[arg(long, value_name = "FILE")]
    thru: Option<PathBuf>,

    /// Folder for the record and the raw documents; nothing in it is replaced.
    #[arg(long, value_name = "DIR", default_value = "benches/results")]
    results: PathBuf,

    /// A note to store with the numbers.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// What to do with a stored run.
#[derive(Debug, Subcommand)]
enum Stored {
    /// Print the table of a stored run.
    Table {
        /// A record in benches/results.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// As Markdown, for the manual.
        #[arg(long)]
        markdown: bool,
    },
}

fn main() -> ExitCode {
    // This program is also the guard of each program that it runs.
    let command: Vec<String> = std::env::args().skip(1).collect();
    let done = match command.split_first() {
        Some((first, rest)) if first == "guard" => guard::guard(rest),
        _ => run(&Args::parse()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    if let Some(Stored::Table { file, markdown }) = &args.command {
        let record = Record::read(file)?;
        println!("{}", if *markdown { markdown::render(&record) } else { table::render(&record) });
        return Ok(());
    }
    if args.work.iter().any(|id| id == "list") {
        for work in work::WORKS {
            println!("{:<16} {}", work.id, work.title);
        }
        return Ok(());
    }
    let bench = BenchRun {
        works: work::chosen(&args.work)?,
        tools: peer::installed(&thru(args)?, &args.peer)?,
        rounds: args.rounds.or(args.quick.then_some(3)),
        seconds: args.seconds.unwrap_or(1),
        quick: args.quick,
        cores: args.cores,
        seed: args.seed.unwrap_or_else(machine::clock_seed),
    };
    if bench.rounds == Some(0) || bench.seconds == 0 {
        bail!("--rounds and --seconds must be at least 1");
    }
    let plan = bench.plan()?;
    if args.plan {
        println!("{plan}");
        return Ok(());
    }
    eprintln!("{plan}");
    let record = bench.run(plan, args.note.clone(), &args.results)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&record)?);
    } else {
        println!("{}", table::render(&record));
    }
    Ok(())
}

/// The thru to measure: the given one, else the one in this program's folder.
fn thru(args: &Args) -> Result<PathBuf> {
    let path = match &args.thru {
        Some(path) => path.clone(),
        None => std::env::current_exe().context("cannot find this program's path; use --thru")?.with_file_name("thru"),
    };
    if !path.is_file() {
        bail!("{} does not exist; build it with `cargo build --release -p throughline`, or use --thru", path.display());
    }
    // PVM starts its tasks by absolute paths.
    path.canonicalize().with_context(|| format!("cannot find {}", path.display()))
}
