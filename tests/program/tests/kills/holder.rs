//! The process that holds a plan's lab, and in every fourth kill the watchdog that removes the lab in its place.

use std::path::Path;
use std::time::{Duration, Instant};

use program::agent::{children, descendants};
use program::process::{Signal, reaches, runs};
use program::{Finished, Running, Sandbox, skip};
use serde_json::Value;

use super::bed::{LIMIT, TRIALS, comes_true, forget_runs, is_clean, plan, records, stored};
use super::events::{in_a_trial, trials};
use super::moments::Moments;
use super::tally::Tally;

/// A setting of the whole machine that no other test looks at.
const FILE: &str = "/proc/sys/net/core/netdev_budget";
const LABS: &str = "/run/throughline/lab";
/// Longer than the watchdog takes, which is about a second.
const WATCHDOG: Duration = Duration::from_secs(3);

pub(crate) fn kill_each(test: &str) {
    if let Err(error) = lab::available() {
        return skip::skip(test, &error.to_string());
    }
    let bed = Bed::new(test);
    let mut tally = Tally::new("lab holder");
    let begun = Instant::now();
    bed.whole();
    let mut moments = Moments::new("lab holder", begun.elapsed());
    for kill in 0..moments.kills() {
        let mut moment = moments.next(kill);
        while !bed.one(kill, moment, &mut moments, &mut tally) {
            moment = moments.earlier(moment);
        }
    }
    is_clean(&bed.sandbox, &mut tally);
    tally.conclude();
}

struct Bed {
    sandbox: Sandbox,
    before: String,
}

/// A lab of the holder's: its record, and its namespaces.
#[derive(Debug, Default)]
struct Seen {
    names: Vec<String>,
}

impl Bed {
    fn new(test: &str) -> Self {
        let (sandbox, before) = (Sandbox::new(), host_wide());
        let writable = std::fs::OpenOptions::new().write(true).open(FILE).is_ok();
        let set = match before.parse::<u64>() {
            Ok(number) if writable => format!("[lab.host_wide]\n\"sysctl.net.core.netdev_budget\" = {}\n", number + 17),
            _ => {
                skip::skip(test, "the machine's own values can only be read; without one");
                String::new()
            }
        };
        let text = plan(&format!("to = \"b\"\n[lab]\ntopology = \"crossover\"\n{set}"));
        std::fs::write(sandbox.path("plan.toml"), text).unwrap();
        Self { sandbox, before }
    }

    fn start(&self) -> Running {
        let mut command = self.sandbox.command(&["run", "plan.toml", "--lab", "--live"]);
        command.env("THRU_JOURNAL", self.sandbox.path("journal"));
        Running::of(command)
    }

    /// A plan that nobody kills.
    fn whole(&self) {
        let Finished { code, stdout, stderr } = self.start().wait();
        let announced = trials(&stdout);
        assert_eq!((code, announced.len()), (Some(0), TRIALS), "{stderr}");
        assert_eq!((stored(&self.sandbox), records(&self.sandbox), host_wide()), (announced, 0, self.before.clone()));
    }

    /// One kill; whether the holder was there.
    fn one(&self, kill: usize, moment: Duration, moments: &mut Moments, tally: &mut Tally) -> bool {
        forget_runs(&self.sandbox);
        let mut holder = self.start();
        std::thread::sleep(moment);
        let (pid, events, changed) = (holder.pid(), holder.stdout(), records(&self.sandbox) > 0);
        let mut seen = Seen::default();
        seen.look(pid);
        let (below, reapers) = (descendants(pid), reapers(pid));
        if !holder.runs() {
            let _ = holder.wait();
            return false;
        }
        if moments.asks_first() {
            holder.signal(Signal::TERM);
            std::thread::sleep(moments.restoration());
        }
        let _ = reaches(pid, Signal::KILL);
        if kill % 4 == 3 {
            let _ = reapers.into_iter().all(|pid| reaches(pid, Signal::KILL));
        }
        // One that it had begun since.
        seen.look(pid);
        let what = format!("kill {kill} of the lab holder after {moment:?}");
        tally.kill(in_a_trial(&events), changed);
        self.afterwards(&what, &seen, &holder.wait(), &below, tally);
        true
    }

    fn afterwards(&self, what: &str, seen: &Seen, finished: &Finished, below: &[u32], tally: &mut Tally) {
        tally.check(!finished.stderr.contains("panicked"), || format!("{what}: {}", finished.stderr));
        let left = || seen.left();
        if !comes_true(WATCHDOG, || left().is_empty()) {
            // By name: without one it would take down the labs of other tests. Another command may be faster.
            let listed = self.sandbox.run(&["lab", "list"]).ok().stdout;
            if let Some(crashed) = listed.lines().find(|line| line.contains("left by a crash")) {
                let _ = self.sandbox.run(&["lab", "down", crashed.split_whitespace().next().unwrap_or_default()]);
            }
        }
        tally.check(left().is_empty(), || format!("{what}: after the next command there is {:?}", left()));
        let running = || below.iter().copied().filter(|pid| runs(*pid)).collect::<Vec<u32>>();
        tally.check(comes_true(LIMIT, || running().is_empty()), || format!("{what}: {:?} run", commands(&running())));
        tally.trials(what, &trials(&finished.stdout), &stored(&self.sandbox));
        // The namespaces' settings are gone with them.
        let at_once = comes_true(LIMIT, || host_wide() == self.before);
        tally.settings(what, at_once, at_once);
        if records(&self.sandbox) > 0 {
            // What is left is of namespaces that are gone, so nowhere "here".
            let mut command = self.sandbox.command(&["tune", "revert", "all"]);
            command.env("THRU_JOURNAL", self.sandbox.path("journal"));
            Running::of(command).wait().ok();
        }
        tally
            .check(records(&self.sandbox) == 0, || format!("{what}: the journal has {} files", records(&self.sandbox)));
    }
}

impl Seen {
    /// Adds what the lab's record of this owner names.
    fn look(&mut self, owner: u32) {
        let files = std::fs::read_dir(LABS).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        let records = texts.filter_map(|text| serde_json::from_str::<Value>(&text).ok());
        for record in records.filter(|record| record["owner_pid"] == owner) {
            let names = record["namespaces"].as_array().into_iter().flatten().chain([&record["lab"]]);
            self.names.extend(names.filter_map(|name| name.as_str().map(str::to_owned)));
        }
    }

    /// The namespaces and records that are still there.
    fn left(&self) -> Vec<&String> {
        let there = |name: &&String| {
            Path::new("/run/netns").join(name).exists() || Path::new(LABS).join(format!("{name}.json")).exists()
        };
        self.names.iter().filter(there).collect()
    }
}

/// The scripts that wait for a holder's end.
fn reapers(pid: u32) -> Vec<u32> {
    children(pid)
        .into_iter()
        .filter(|child| commands(&[*child]).iter().any(|line| line.contains("lab-reaper")))
        .collect()
}

fn commands(pids: &[u32]) -> Vec<String> {
    pids.iter().map(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()).collect()
}

fn host_wide() -> String {
    std::fs::read_to_string(FILE).unwrap_or_default().trim().to_owned()
}
