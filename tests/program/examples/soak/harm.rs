//! Harm to commands: some are killed, some lose their network, some lose a worker of the agent.

use std::time::Duration;

use model::SplitMix64;
use program::agent::children_called;
use program::process::{Signal, reaches};

use crate::station::{RMEM, SACK, Station};

/// Commands that are killed in the queue, in a test, or while they change settings.
pub(crate) fn kill_commands(station: &Station, mut random: SplitMix64) {
    while station.goes_on() {
        let (open, args): (bool, Vec<&str>) = match random.below(4) {
            0 => (false, vec!["stream", &station.root, "--time", "30s", "--trials", "1", "--no-store"]),
            1 => (true, vec!["rr", &station.open, "--flows", "8", "--time", "30s", "--trials", "1", "--no-store"]),
            2 => (false, vec!["tune", "set", RMEM, &station.root, "--for", "10s"]),
            _ => (false, vec!["stream", &station.root, "--set", SACK, "--time", "30s", "--trials", "1", "--no-store"]),
        };
        let child = station.spawn(&station.programs, open, &args);
        station.pause(Duration::from_millis(random.below(4_000) as u64));
        station.kill(child);
        station.counts.add("commands killed");
    }
}

/// Workers of both agents.
pub(crate) fn kill_workers(station: &Station, mut random: SplitMix64) {
    while station.goes_on() {
        station.pause(Duration::from_millis(500 + random.below(4_000) as u64));
        let workers: Vec<u32> = station.agents.iter().flat_map(|agent| children_called(*agent, "worker")).collect();
        if !workers.is_empty() {
            let worker = workers[random.below(workers.len())];
            if reaches(worker, Signal::KILL) {
                station.counts.add("workers killed");
            }
        }
    }
}

/// A host whose link fails while commands of it measure and wait, and which is back after they were killed.
pub(crate) fn lose_the_network(station: &Station, mut random: SplitMix64) {
    let link = |state: &str| {
        let status = station.lost.command("ip").args(["link", "set", "eth0", state]).status();
        assert!(status.is_ok_and(|status| status.success()), "the link goes {state}");
    };
    while station.goes_on() {
        let long = ["--time", "30s", "--trials", "1", "--no-store"];
        let start = |open: bool, args: &[&str]| station.spawn(&station.lost, open, &[args, &long].concat());
        let clients = [
            start(false, &["stream", &station.root]),
            start(false, &["rr", &station.root, "--set", SACK]),
            start(true, &["stream", &station.open, "--both"]),
        ];
        station.pause(Duration::from_millis(500 + random.below(3_000) as u64));
        link("down");
        for client in clients {
            station.kill(client);
            station.counts.add("commands that lost their network");
        }
        station.pause(Duration::from_secs(4));
        link("up");
        station.pause(Duration::from_secs(1));
    }
}
