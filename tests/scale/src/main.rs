//! A mesh of simulated hosts on a real bus. Agents lease their names, answer and give simulated results; a coordinator keeps the run in a
//! store and on the bus; and all of them, the server of the bus included, are killed at random.
//!
//! What is real: nats-server, the processes and their deaths, leases, streams and records (`bus`), the store, and how a run on a bus is
//! kept and continued (`session::run::on_bus`). What is not: the tests, which take some time and give a number, and the control protocol.
#![allow(clippy::print_stdout, reason = "what the processes tell each other, and the figures at the end")]

mod agents;
mod child;
mod coordinator;
mod kills;
mod mesh;
mod server;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The whole of it, with figures.
    Run(kills::Options),
    /// Some agents, as one process.
    Agents(agents::Options),
    /// The coordinator.
    Coordinator(coordinator::Options),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().role {
        Role::Run(options) => kills::run(&options),
        Role::Agents(options) => agents::run(&options),
        Role::Coordinator(options) => coordinator::run(&options),
    }
}
