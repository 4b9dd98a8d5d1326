//! One file per subcommand.

pub mod ab;
pub mod advise;
pub mod agent;
pub mod check;
pub mod compare;
pub mod config;
pub mod curve;
pub mod demo;
pub mod explain;
pub mod export;
pub mod fleet;
pub mod generate;
pub mod helper;
pub mod host;
pub mod import;
pub mod lab;
pub mod launched;
pub mod mesh;
pub mod mesh_watch;
pub mod report;
pub mod rr;
pub mod run;
pub mod runs;
pub mod selftest;
pub mod serve;
pub mod settle;
pub mod show;
pub mod stacks;
pub mod stream;
pub mod token;
pub mod top;
pub mod transfer;
pub mod tune;
pub mod watch;
pub mod web;
pub mod why;
pub mod worker;

use clap::CommandFactory;
use command::Failure;

use crate::args::{Args, Command};

/// Runs the requested subcommand; `Ok` holds the exit code. `watch_input` starts the thread that ends this process with its input;
/// an agent lowers its rights before.
pub fn run(args: Args, watch_input: fn()) -> Result<u8, Failure> {
    if !matches!(args.command, Command::Serve(_)) {
        watch_input();
    }
    match args.command {
        Command::Serve(args) => serve::run(&args, watch_input),
        Command::Check(args) => check::run(&args),
        Command::Curve(args) => curve::run(&args),
        Command::Stream(args) => stream::run(&args),
        Command::Rr(args) => rr::run(&args),
        Command::Transfer(args) => transfer::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Mesh(args) => mesh::run(&args),
        Command::Fleet(args) => fleet::run(&args),
        Command::Ab(args) => ab::run(&args),
        Command::Advise(args) => advise::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Web(args) => web::run(&args, Args::command()),
        Command::Host(args) => host::run(&args),
        Command::Config(args) => config::run(&args, &crate::defaults::commands(&crate::args::command())),
        Command::Stacks(args) => stacks::run(&args),
        Command::Token(args) => token::run(&args),
        Command::Agent(args) => agent::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Selftest(args) => selftest::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Generate(args) => generate::run(&args, Args::command()),
        Command::Launched(args) => launched::run(&args),
        Command::Settle(args) => settle::run(&args),
        Command::Worker(args) => worker::run(&args),
        Command::Helper(args) => helper::run(&args),
    }
}
