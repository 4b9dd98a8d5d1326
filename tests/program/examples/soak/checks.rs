//! What must hold when all clients have gone.

use std::path::Path;
use std::time::{Duration, Instant};

use program::process::{Signal, runs};

use crate::sample::{QUANTITIES, Samples, connections};
use crate::world::World;

/// Time in which everything settles.
const SETTLE: Duration = Duration::from_secs(60);
/// The clients of a peak.
const PEAK: f64 = 1_000.0;
/// A soak that is shorter does not reach the peak.
const SHORT: Duration = Duration::from_secs(60);
/// Cycles that a trend needs.
const CYCLES: usize = 6;

#[derive(Debug, Default)]
pub(crate) struct Checks {
    lines: Vec<String>,
    failed: usize,
}

impl Checks {
    fn add(&mut self, what: &str, fault: Option<String>) {
        self.failed += usize::from(fault.is_some());
        let result = fault.map_or_else(|| "ok".to_owned(), |fault| format!("FAILED: {fault}"));
        self.lines.push(format!("{what}: {result}"));
    }

    /// Waits until `what` holds; `now` says what is the case.
    fn settles(&mut self, what: &str, holds: impl Fn() -> bool, now: impl Fn() -> String) {
        let deadline = Instant::now() + SETTLE;
        while !holds() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(200));
        }
        self.add(what, (!holds()).then(now));
    }

    /// When all clients have gone.
    pub(crate) fn afterwards(&mut self, world: &mut World, samples: &Samples) {
        let agents = [&world.root, &world.open];
        self.add("both agents and the helper run", (!world.runs()).then(|| "one has ended".into()));
        self.settles("no connection is left", || connections(world) == 0, || format!("{} are", connections(world)));
        let workers = || agents.map(|agent| agent.workers().len()).iter().sum::<usize>();
        self.settles("no worker is left", || workers() == 0, || format!("{} are", workers()));
        self.settles("every setting is back", || world.settings_are_back(), || "one is not".into());
        self.settles("the journal is empty", || world.journal() == 0, || format!("{} files", world.journal()));
        for subject in &samples.subjects {
            for (quantity, read) in &QUANTITIES[1..] {
                // An idle thread of a pool ends after a while.
                let (start, now) = (read(&subject.start), || read(&subject.now()));
                let what = format!("{}: no more {quantity} than at the start", subject.name);
                self.settles(&what, || now() <= start, || format!("{}, and {start} at the start", now()));
            }
        }
        for (name, agent) in ["agent of root", "open agent"].into_iter().zip(agents) {
            let measures = world.measures(agent);
            self.add(&format!("the {name} measures at once"), (!measures).then(|| "it does not".into()));
            let log = agent.log();
            let bad = |line: &&str| ["panicked", "a bug", "overflow"].iter().any(|word| line.contains(word));
            self.add(&format!("nothing bad in the log of the {name}"), log.lines().find(bad).map(str::to_owned));
        }
    }

    /// What the figures must be.
    pub(crate) fn figures(&mut self, samples: &Samples, lasted: Duration) {
        if lasted >= SHORT {
            let most = samples.clients.iter().copied().fold(0.0, f64::max);
            self.add("a thousand clients at once", (most < PEAK).then(|| format!("{most} at most")));
        }
        for subject in &samples.subjects {
            let resident = samples.series(subject, QUANTITIES[0].1);
            let what = format!("{}: memory is flat", subject.name);
            if resident.judged() < CYCLES {
                self.lines.push(format!("{what}: not judged, the soak was too short"));
            } else {
                self.add(&what, resident.rises());
            }
        }
    }

    /// Ends the agents and the lab.
    pub(crate) fn end(&mut self, world: World) {
        let helper = world.helper();
        let names: Vec<String> = world.network.hosts().iter().map(|host| host.namespace.clone()).collect();
        for (name, agent) in [("agent of root", &world.root), ("open agent", &world.open)] {
            agent.signal(Signal::TERM);
            self.settles(&format!("the {name} ends"), || !runs(agent.pid()), || "it runs".into());
        }
        self.settles("the helper ends", || helper.is_none_or(|pid| !runs(pid)), || "it runs".into());
        self.settles("no temporary file is left", || world.files().is_empty(), || format!("{:?}", world.files()));
        let World { network, root, open, .. } = world;
        drop((root, open));
        let closed = network.close().err().map(|error| error.to_string());
        self.add("the lab is removed", closed);
        let left = || names.iter().filter(|name| Path::new("/run/netns").join(name).exists()).count();
        self.settles("no namespace is left", || left() == 0, || format!("{} are", left()));
    }

    /// Prints all; whether all hold.
    pub(crate) fn conclude(self, lasted: Duration) -> bool {
        println!();
        self.lines.iter().for_each(|line| println!("{line}"));
        let result = if self.failed == 0 { "passed" } else { "FAILED" };
        let (held, failed) = (self.lines.len() - self.failed, self.failed);
        println!("soak {result}: {} s, {held} checks passed, {failed} failed", lasted.as_secs());
        self.failed == 0
    }
}
