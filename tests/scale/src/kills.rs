//! Starts all processes, kills them at random places of the mesh, and checks that no result is lost.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use bus::{Bus, BusAccess, place};
use clap::Args;
use futures_util::{StreamExt, stream};
use model::{Run, SplitMix64, Trial};
use store::Store;
use tokio::sync::Mutex;

use crate::child::{Process, peak_mib};
use crate::coordinator::{RUN, Tests, ask, fetch};
use crate::mesh::{Mesh, Question};
use crate::server::Server;

/// Time limit for agents that start, and for progress of the coordinator.
const LIMIT: Duration = Duration::from_secs(180);
/// Hosts that are asked at the same time whether they answer.
const AT_ONCE: usize = 256;

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    mesh: Mesh,
    #[command(flatten)]
    tests: Tests,
    /// Agents of one process, which are killed together.
    #[arg(long, default_value_t = 50)]
    per_process: usize,
    /// Number of kills.
    #[arg(long, default_value_t = 0)]
    kills: u32,
}

/// Runs everything, and prints what it took.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&folder.path().join("bus"))?;
    let mut fleet = Fleet { options, folder: folder.path(), server, agents: Vec::new(), server_mib: 0 };
    fleet.start_agents()?;
    let mut killing = Killing::new(&fleet, folder.path())?;
    let begun = Instant::now();
    killing.until_finished(&mut fleet)?;
    let (store, coordinator_mib) = (killing.store.clone(), killing.coordinator_mib);
    let [agents, servers, same, other] = killing.kills;
    println!(
        "{} trials in {:.1} s; killed: {agents} agent processes, {servers} times the bus, {} times the coordinator ({other} continued elsewhere)",
        options.mesh.trials(),
        begun.elapsed().as_secs_f64(),
        same + other
    );
    println!(
        "results that another coordinator did not get from the bus: {}; taken from agents, also those that no coordinator had got: {}",
        killing.lost, killing.recalled
    );
    check(&options.mesh, &Store::open(&store)?.load(RUN)?.run)?;
    let copy = folder.path().join("copy.sqlite");
    fetch(&place(&fleet.server.url())?, &copy)?;
    check(&options.mesh, &Store::open(&copy)?.load(RUN)?.run)?;
    println!("every trial is there once, in the store and on the bus");
    println!(
        "memory at most: bus {} MiB, coordinator {coordinator_mib} MiB; store {} KiB, bus {} KiB",
        fleet.server_mib.max(peak_mib(fleet.server.id())),
        size(&store) >> 10,
        size(&folder.path().join("bus")) >> 10
    );
    Ok(())
}

/// The agents and the bus.
struct Fleet<'a> {
    options: &'a Options,
    folder: &'a Path,
    server: Server,
    agents: Vec<Process>,
    /// The most memory that a server had that was killed.
    server_mib: u64,
}

impl Fleet<'_> {
    /// Starts all agents, and prints how long it takes until each has its name and answers.
    fn start_agents(&mut self) -> anyhow::Result<()> {
        let hosts = self.options.mesh.hosts;
        for first in (0..hosts).step_by(self.options.per_process) {
            self.agents.push(self.agents_from(first)?);
        }
        let begun = Instant::now();
        self.agents.iter_mut().try_for_each(Process::go)?;
        self.agents.iter().try_for_each(|agents| agents.until("leased", LIMIT))?;
        let leased = begun.elapsed();
        let place = place(&self.server.url())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (present, listed) = runtime.block_on(async {
            let bus = Bus::connect(&place, &BusAccess::default()).await?;
            let present = bus.present().await?.len();
            let listed = begun.elapsed();
            let question = Question { cell: 0, round: 0, time_ms: 0, keep: false };
            let ask = async |host| ask(&bus, &Mutex::new(None), host, question).await;
            stream::iter(0..hosts).map(ask).buffer_unordered(AT_ONCE).count().await;
            anyhow::Ok((present, listed))
        })?;
        ensure!(present == hosts, "{present} of {hosts} agents are on the bus");
        println!(
            "{hosts} agents in {} processes: leased after {:.2} s, listed after {:.2} s, each has answered after {:.2} s",
            self.agents.len(),
            leased.as_secs_f64(),
            listed.as_secs_f64(),
            begun.elapsed().as_secs_f64()
        );
        Ok(())
    }

    /// A process with the agents from this number on, which waits to be told to go.
    fn agents_from(&self, first: usize) -> anyhow::Result<Process> {
        let Options { mesh, per_process, .. } = self.options;
        let count = (*per_process).min(mesh.hosts - first);
        // They outlive the process, as on a host.
        let results = self.folder.join(format!("results-{first}.sqlite")).display().to_string();
        let (first, count) = (first.to_string(), count.to_string());
        let own = ["agents", "--url", &self.server.url(), "--first", &first, "--count", &count, "--results", &results];
        let started = Process::start(&[own.map(str::to_owned).to_vec(), mesh.flags()].concat())?;
        started.until("ready", LIMIT)?;
        Ok(started)
    }
}

/// The coordinator and its deaths.
struct Killing {
    random: SplitMix64,
    folder: PathBuf,
    coordinator: Process,
    /// Its store.
    store: PathBuf,
    coordinator_mib: u64,
    /// Trials that it has.
    done: usize,
    /// Kills of agents, of the bus, of the coordinator that is continued with its store, and of one that is continued elsewhere.
    kills: [u32; 4],
    /// Trials that a coordinator elsewhere did not get from the bus.
    lost: usize,
    /// Trials that agents had kept.
    recalled: usize,
}

impl Killing {
    fn new(fleet: &Fleet<'_>, folder: &Path) -> anyhow::Result<Self> {
        let store = folder.join("store-0.sqlite");
        let coordinator = coordinator(fleet, &store)?;
        Ok(Self {
            random: SplitMix64::new(fleet.options.mesh.seed),
            folder: folder.to_owned(),
            coordinator,
            store,
            coordinator_mib: 0,
            done: 0,
            kills: [0; 4],
            lost: 0,
            recalled: 0,
        })
    }

    /// Kills are at equal distances of the progress.
    fn until_finished(&mut self, fleet: &mut Fleet<'_>) -> anyhow::Result<()> {
        let (all, wanted) = (fleet.options.mesh.trials(), fleet.options.kills);
        while self.heard()? {
            let killed: u32 = self.kills.iter().sum();
            if killed < wanted && self.done * (wanted as usize + 1) >= all * (killed as usize + 1) {
                self.kill(fleet)?;
            }
        }
        let killed: u32 = self.kills.iter().sum();
        ensure!(killed == wanted, "the mesh ended after {killed} kills of {wanted}");
        self.coordinator_mib = self.coordinator_mib.max(peak_mib(self.coordinator.id()));
        Ok(())
    }

    /// Waits for what the coordinator says next; whether it goes on.
    fn heard(&mut self) -> anyhow::Result<bool> {
        let Some(line) = self.coordinator.line(LIMIT)? else { bail!("no progress for {LIMIT:?} after {}", self.done) };
        self.note(&line)
    }

    /// Notes what the coordinator said; whether it goes on.
    fn note(&mut self, line: &str) -> anyhow::Result<bool> {
        match line.split_once(' ') {
            Some(("begun" | "done", number)) => self.done = number.parse()?,
            None if line == "recalled" => self.recalled += 1,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn kill(&mut self, fleet: &mut Fleet<'_>) -> anyhow::Result<()> {
        let pause = Duration::from_millis(self.random.below(1_000) as u64);
        match self.random.below(10) {
            0..4 => {
                let which = self.random.below(fleet.agents.len());
                // The one that is there is killed when it is replaced.
                let mut again = fleet.agents_from(which * fleet.options.per_process)?;
                std::mem::swap(&mut fleet.agents[which], &mut again);
                drop(again);
                fleet.agents[which].go()?;
                self.kills[0] += 1;
            }
            4..7 => {
                fleet.server_mib = fleet.server_mib.max(peak_mib(fleet.server.id()));
                fleet.server.restart(pause)?;
                self.kills[1] += 1;
            }
            _ => self.kill_coordinator(fleet)?,
        }
        Ok(())
    }

    fn kill_coordinator(&mut self, fleet: &Fleet<'_>) -> anyhow::Result<()> {
        let elsewhere = self.random.below(2) == 1;
        self.coordinator_mib = self.coordinator_mib.max(peak_mib(self.coordinator.id()));
        self.coordinator.kill()?;
        // What it said before it died.
        while let Ok(Some(line)) = self.coordinator.line(LIMIT) {
            self.note(&line)?;
        }
        let before = self.done;
        if elsewhere {
            self.store = self.folder.join(format!("store-{}.sqlite", self.kills.iter().sum::<u32>() + 1));
        }
        self.coordinator = coordinator(fleet, &self.store)?;
        self.heard()?;
        ensure!(elsewhere || self.done >= before, "the store had {before} trials, and has {}", self.done);
        self.lost += before.saturating_sub(self.done);
        self.kills[if elsewhere { 3 } else { 2 }] += 1;
        Ok(())
    }
}

fn coordinator(fleet: &Fleet<'_>, store: &Path) -> anyhow::Result<Process> {
    let Options { mesh, tests, .. } = fleet.options;
    let (time, at_once) = (tests.time_ms.to_string(), tests.at_once.to_string());
    let store = store.display().to_string();
    let own =
        ["coordinator", "--url", &fleet.server.url(), "--store", &store, "--time-ms", &time, "--at-once", &at_once];
    Process::start(&[own.map(str::to_owned).to_vec(), mesh.flags()].concat())
}

/// Every cell has one right trial of each round.
fn check(mesh: &Mesh, run: &Run) -> anyhow::Result<()> {
    let pairs = mesh.pairs();
    ensure!(
        run.ending.is_some() && run.outcomes.len() == pairs.len(),
        "{} of {} outcomes",
        run.outcomes.len(),
        pairs.len()
    );
    for outcome in &run.outcomes {
        let mut trials: Vec<&Trial> = outcome.trials.iter().collect();
        trials.sort_by_key(|trial| trial.pass);
        let rounds = 0..mesh.rounds;
        let right = |(trial, round): (&&Trial, u32)| mesh.is_right(trial, pairs[outcome.cell as usize], round);
        ensure!(
            trials.len() == rounds.len() && trials.iter().zip(rounds).all(right),
            "cell {} has {} trials: {trials:?}",
            outcome.cell,
            trials.len()
        );
    }
    Ok(())
}

/// Bytes of a file, or of all files in a folder; of a store with its log.
fn size(path: &Path) -> u64 {
    let own = std::fs::metadata(path).map_or(0, |file| if file.is_file() { file.len() } else { 0 });
    let log = std::fs::metadata(path.with_extension("sqlite-wal")).map_or(0, |file| file.len());
    let within = std::fs::read_dir(path).into_iter().flatten().flatten();
    own + log + within.map(|entry| size(&entry.path())).sum::<u64>()
}
