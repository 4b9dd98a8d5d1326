//! `matrix`: produces paths whose limit is known by construction and counts how often `thru why` names it.
//!
//! A path is drawn from a seed (`draw.rs`), becomes a lab with one measurement (`setup.rs`) and is recorded with the run's document
//! (`produce.rs`). The limiter is computed from the documents (`judge.rs`), so recorded paths can be judged again after a change of
//! the rules.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program: printing is its job")]
#![allow(unreachable_pub, reason = "in a binary nothing is reachable from outside; pub marks what other modules use")]

mod bounds;
mod chance;
mod draw;
mod faults;
mod judge;
mod path;
mod produce;
mod record;
mod setup;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::judge::By;

/// A confusion matrix for `thru why`.
#[derive(Debug, Parser)]
#[command(name = "matrix", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure paths in labs (needs root), record them in a folder and print the matrix.
    Run(Produce),
    /// Print the matrix of recorded paths.
    Judge {
        /// Folders of `matrix run`.
        #[arg(required = true)]
        folders: Vec<PathBuf>,

        /// Remove requested rates and buffer sizes from the documents, so that the rules have to find the cause in what was measured.
        #[arg(long)]
        blind: bool,

        /// Count what the program named that measured, instead of the rules of this build.
        #[arg(long, conflicts_with = "blind")]
        recorded: bool,

        /// List the paths with a wrong limiter.
        #[arg(long)]
        wrong: bool,
    },
    /// Print the paths of a seed without measuring them.
    List {
        /// Seed of the paths.
        #[arg(long)]
        seed: u64,

        /// Number of paths.
        #[arg(long, default_value_t = draw::CYCLE)]
        paths: u32,
    },
}

/// What to measure.
#[derive(Debug, Args)]
pub struct Produce {
    /// Folder of the records. Paths that it has are not measured again.
    folder: PathBuf,

    /// Seed of the paths.
    #[arg(long)]
    seed: u64,

    /// Number of paths.
    #[arg(long, default_value_t = draw::CYCLE)]
    paths: u32,

    /// Start no path after this many seconds.
    #[arg(long, value_name = "SECONDS")]
    limit: Option<u64>,

    /// Only paths whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// End with an error if the goals are missed by more than chance explains: 90 % of single faults right, 2 % of innocent paths
    /// wrong.
    #[arg(long)]
    check: bool,

    /// The thru program to measure with [default: the one in this program's folder].
    #[arg(long, value_name = "FILE")]
    thru: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("matrix: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Run(produce) => {
            let interrupted = produce::produce(produce)?;
            let judged = judge::folder(&produce.folder, By::Rules)?;
            print!("{}", table::render(&judged));
            Ok(match interrupted {
                true => ExitCode::from(130),
                false if produce.check && judge::misses_goals(&judged) => ExitCode::FAILURE,
                false => ExitCode::SUCCESS,
            })
        }
        Command::Judge { folders, blind, recorded, wrong } => {
            let by = match (blind, recorded) {
                (true, _) => By::RulesBlind,
                (_, true) => By::Record,
                _ => By::Rules,
            };
            let mut judged = Vec::new();
            for folder in folders {
                judged.extend(judge::folder(folder, by)?);
            }
            if *wrong {
                print!("{}", table::wrong(&judged));
            }
            print!("{}", table::render(&judged));
            Ok(ExitCode::SUCCESS)
        }
        Command::List { seed, paths } => {
            for index in 0..*paths {
                println!("{index:>4}  {}", draw::path(*seed, index).about());
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}
