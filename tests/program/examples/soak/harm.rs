//! Harm to commands: some are killed, some lose their network, some lose a worker of the agent.

use std::time::Duration;

use model::SplitMix64;
use program::agent::children_called;
use program::process::{Signal, reaches};

use crate::programs::{Desk, RMEM, SACK};

/// Commands that are killed in the queue, in a test, or while they change settings.
pub(crate) fn kill_commands(desk: &Desk, mut random: SplitMix64) {
    while desk.goes_on() {
        let (open, args): (bool, Vec<&str>) = match random.below(4) {
            0 => (false, vec!["stream", &desk.root, "--time", "30s", "--trials", "1", "--no-store"]),
            1 => (true, vec!["rr", &desk.open, "--flows", "8", "--time", "30s", "--trials", "1", "--no-store"]),
            2 => (false, vec!["tune", "set", RMEM, &desk.root, "--for", "10s"]),
            _ => (false, vec!["stream", &desk.root, "--set", SACK, "--time", "30s", "--trials", "1", "--no-store"]),
        };
        let child = desk.spawn(&desk.programs, open, &args);
        desk.pause(Duration::from_millis(random.below(4_000) as u64));
        desk.kill(child);
        desk.counts.add("commands killed");
    }
}

/// Workers of both agents.
pub(crate) fn kill_workers(desk: &Desk, mut random: SplitMix64) {
    while desk.goes_on() {
        desk.pause(Duration::from_millis(500 + random.below(4_000) as u64));
        let workers: Vec<u32> = desk.agents.iter().flat_map(|agent| children_called(*agent, "worker")).collect();
        if !workers.is_empty() {
            let worker = workers[random.below(workers.len())];
            if reaches(worker, Signal::KILL) {
                desk.counts.add("workers killed");
            }
        }
    }
}

/// A host whose link fails while commands of it measure and wait, and which is back after they were killed.
pub(crate) fn lose_the_network(desk: &Desk, mut random: SplitMix64) {
    let link = |state: &str| {
        let status = desk.lost.command("ip").args(["link", "set", "eth0", state]).status();
        assert!(status.is_ok_and(|status| status.success()), "the link goes {state}");
    };
    while desk.goes_on() {
        let long = ["--time", "30s", "--trials", "1", "--no-store"];
        let start = |open: bool, args: &[&str]| desk.spawn(&desk.lost, open, &[args, &long].concat());
        let clients = [
            start(false, &["stream", &desk.root]),
            start(false, &["rr", &desk.root, "--set", SACK]),
            start(true, &["stream", &desk.open, "--both"]),
        ];
        desk.pause(Duration::from_millis(500 + random.below(3_000) as u64));
        link("down");
        for client in clients {
            desk.kill(client);
            desk.counts.add("commands that lost their network");
        }
        desk.pause(Duration::from_secs(4));
        link("up");
        desk.pause(Duration::from_secs(1));
    }
}
