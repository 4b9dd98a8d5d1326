//! `bench`: measures thru beside the tools that people use today, over loopback, all of them pinned alike and taking turns.
//!
//! A work (a file under `work/`) says what is measured, in which unit and with what goal; a peer (a file under `peer/`) says
//! how a tool does it and where its output has the number. Adding either is one file and one line in its registry.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program: printing is its job")]
#![allow(unreachable_pub, reason = "in a binary nothing is reachable from outside; pub marks what other modules use")]

mod guard;
mod judge;
mod left;
mod machine;
mod peer;
mod process;
mod record;
mod rounds;
mod sys;
mod table;
mod verdict;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::rounds::{Bench, Cores};

/// Measures thru beside iperf3, NetPIPE, netperf, neper, qperf, sockperf, nuttcp, iperf 2, xfr and bare loops, as far as they are
/// installed.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Args {
    /// Rounds; in each, every tool does every work once.
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,

    /// Only this work; may be given several times. `--work list` lists them.
    #[arg(long, value_name = "ID")]
    work: Vec<String>,

    /// Only this tool beside thru; may be given several times.
    #[arg(long, value_name = "NAME")]
    peer: Vec<String>,

    /// 3 rounds and a curve up to 64 KiB; judges no goals and keeps no file.
    #[arg(long)]
    quick: bool,

    /// Seconds of one measurement, for tools that can be told [default: 1].
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u32>,

    /// Print the document instead of the table.
    #[arg(long)]
    json: bool,

    /// Seed of the order and of the intervals [default: from the clock, recorded].
    #[arg(long)]
    seed: Option<u64>,

    /// Cores of the client and of the server.
    #[arg(long, value_name = "CLIENT,SERVER", default_value = "1,0")]
    cores: Cores,

    /// The thru to measure [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    thru: Option<PathBuf>,

    /// Folder that the raw numbers are written to.
    #[arg(long, value_name = "DIR", default_value = "benches/results")]
    results: PathBuf,

    /// A remark to keep with the numbers.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

fn main() -> ExitCode {
    // Between us and each program stands a guard, which is this program too.
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.split_first() {
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
    if args.work.iter().any(|id| id == "list") {
        for work in work::WORKS {
            println!("{:<16} {}", work.id, work.title);
        }
        return Ok(());
    }
    let bench = Bench {
        works: work::chosen(&args.work)?,
        tools: peer::installed(&thru(args)?, &args.peer)?,
        rounds: args.rounds.unwrap_or(if args.quick { 3 } else { 5 }),
        seconds: args.seconds.unwrap_or(1),
        quick: args.quick,
        cores: args.cores,
        seed: args.seed.unwrap_or_else(machine::clock_seed),
    };
    if bench.rounds == 0 || bench.seconds == 0 {
        bail!("--rounds and --seconds start at 1");
    }
    let record = bench.run(args.note.clone())?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&record)?);
    } else {
        println!("{}", table::render(&record));
    }
    if !args.quick {
        let file = record.write(&args.results)?;
        eprintln!("raw numbers: {}", file.display());
    }
    Ok(())
}

/// The thru that is measured: the one that was named, else the one that was built together with this program.
fn thru(args: &Args) -> Result<PathBuf> {
    let path = match &args.thru {
        Some(path) => path.clone(),
        None => {
            std::env::current_exe().context("cannot tell where this program is: use --thru")?.with_file_name("thru")
        }
    };
    if !path.is_file() {
        bail!("{} is missing: build it with `cargo build --release -p throughline`, or use --thru", path.display());
    }
    // PVM starts its tasks by whole paths.
    path.canonicalize().with_context(|| format!("cannot find {}", path.display()))
}
