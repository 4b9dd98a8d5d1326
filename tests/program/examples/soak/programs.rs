//! Real commands on other hosts: they measure, watch and tune, one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use model::SplitMix64;

use crate::counts::Counts;
use crate::harm;
use crate::station::{RMEM, SACK, Station};
use crate::world::World;

/// Threads that run one command after the other.
const HANDS: u64 = 4;
pub(crate) struct Programs {
    station: Station,
    threads: Vec<JoinHandle<()>>,
}

impl Programs {
    pub(crate) fn start(world: &World, seed: u64) -> Self {
        let station = Station {
            root: world.root.host().to_owned(),
            open: world.open.host().to_owned(),
            agents: [world.root.pid(), world.open.pid()],
            programs: world.host("programs").clone(),
            lost: world.host("lost").clone(),
            folder: world.sandbox.path(""),
            counts: Counts::default(),
            running: Arc::default(),
            stop: Arc::default(),
        };
        let random = |thread: u64| SplitMix64::new(seed.wrapping_mul(2_000).wrapping_add(thread));
        let mut threads = Vec::new();
        let mut thread = |number: u64, work: fn(&Station, SplitMix64)| {
            let (station, random) = (station.clone(), random(number));
            threads.push(std::thread::spawn(move || work(&station, random)));
        };
        (0..HANDS).for_each(|hand| thread(hand, work));
        thread(10, harm::kill_commands);
        thread(11, harm::kill_workers);
        thread(12, harm::lose_the_network);
        Self { station, threads }
    }

    /// Commands that run at the moment.
    pub(crate) fn running(&self) -> usize {
        self.station.running.load(Ordering::SeqCst)
    }

    pub(crate) fn stop(self) -> BTreeMap<String, u64> {
        self.station.stop.store(true, Ordering::SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        self.station.counts.all()
    }
}

/// One command after the other.
fn work(station: &Station, mut random: SplitMix64) {
    let others: Vec<String> = {
        let host = station.open.rsplit_once(':').expect("a port").0;
        ["5201", "5002", "5000"].map(|port| format!("{host}:{port}")).into()
    };
    let (root, open) = (station.root.as_str(), station.open.as_str());
    let brief = ["--trials", "2", "--no-store"];
    let kinds: [(&str, bool, Vec<&str>); 13] = [
        ("streams", false, vec!["stream", root, "--time", "100ms"]),
        ("streams in both directions", false, vec!["stream", root, "--both", "--flows", "4", "--time", "100ms"]),
        ("streams over quic", false, vec!["stream", root, "--transport", "quic", "--time", "100ms"]),
        ("streams over tls", false, vec!["stream", root, "--transport", "tls", "--time", "100ms"]),
        ("streams over udp", true, vec!["stream", open, "--udp", "--rate", "10Mbit", "--time", "100ms"]),
        ("round trips", false, vec!["rr", root, "--time", "100ms"]),
        ("round trips of the open agent", true, vec!["rr", open, "--flows", "8", "--time", "100ms"]),
        ("transfers", true, vec!["transfer", open, "--count", "3"]),
        ("streams with settings of the far end", false, vec!["stream", root, "--set", SACK, "--time", "100ms"]),
        ("changed settings", false, vec!["tune", "set", RMEM, root, "--for", "200ms"]),
        ("watches", false, vec!["watch", root, "--count", "2", "--interval", "100ms"]),
        ("iperf3 tests", true, vec!["stream", &others[0], "--speak", "iperf3", "--time", "100ms"]),
        ("nuttcp tests", true, vec!["stream", &others[2], "--speak", "nuttcp", "--time", "1s"]),
    ];
    while station.goes_on() {
        let (what, open, args) = &kinds[random.below(kinds.len())];
        let measures = !matches!(args[0], "tune" | "watch");
        let args = [&args[..], if measures { &brief[..] } else { &[] }].concat();
        let code = station.wait(station.spawn(&station.programs, *open, &args));
        match code {
            // Two trials seldom reach the wanted precision, which is 3 or 8.
            Some(0 | 3 | 8) => station.counts.add(&format!("{what} that ended well")),
            Some(code) => station.counts.add(&format!("{what} that ended with code {code}")),
            None => {}
        }
        station.pause(Duration::from_millis(random.below(300) as u64));
    }
}
