//! Rounds in which every tool has its turn, in an order drawn anew for each.

use std::str::FromStr;
use std::time::Duration;

use analysis::stats::SplitMix64;
use anyhow::{Context, Result, bail};

use crate::machine::{self, Machine};
use crate::peer::{OURS, Place, Reading, Tool};
use crate::process::{self, Running};
use crate::record::{Order, Record, Shown, ToolVersion, WorkRecord};
use crate::work::{Task, Work};

/// Longest time that a measurement may take beyond the seconds that it was told; NPtcp's curve on a busy machine needs most.
const LIMIT: Duration = Duration::from_secs(300);
/// Load average above which the numbers carry a warning.
const BUSY: f64 = 0.5;

/// Everything that is settled before the first round.
pub struct Bench {
    /// Works, one after another.
    pub works: Vec<&'static Work>,
    /// Tools, ours first.
    pub tools: Vec<Tool>,
    /// Rounds of each work.
    pub rounds: u32,
    /// Length of a measurement, s.
    pub seconds: u32,
    /// A quick look, which judges nothing.
    pub quick: bool,
    /// Where client and server run.
    pub cores: Cores,
    /// Seed of the order and of the intervals.
    pub seed: u64,
}

/// The two cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cores {
    /// Of all clients.
    pub client: u32,
    /// Of all servers.
    pub server: u32,
}

impl FromStr for Cores {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (client, server) = text.split_once(',').context("write two cores, such as 1,0")?;
        let number = |text: &str| text.trim().parse().with_context(|| format!("'{text}' is not a core"));
        Ok(Self { client: number(client)?, server: number(server)? })
    }
}

impl Bench {
    /// Runs all works.
    pub fn run(&self, note: Option<String>) -> Result<Record> {
        let machine = Machine::here();
        for core in [self.cores.client, self.cores.server] {
            if core >= machine.cores {
                bail!("core {core} is not there, this machine has {}: choose others with --cores", machine.cores);
            }
        }
        if let Some(load) = machine::load().filter(|load| *load > BUSY) {
            eprintln!("this machine is busy (load {load:.2}): the numbers will be noisy");
        }
        let mut random = SplitMix64::new(self.seed);
        let mut works = Vec::new();
        let started = jiff::Timestamp::now();
        for work in &self.works {
            works.push(self.work(work, &mut random)?);
        }
        Ok(Record {
            schema: 1,
            started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            machine,
            tools: self.tools.iter().map(ToolVersion::of).collect(),
            rounds: self.rounds,
            seconds: self.seconds,
            quick: self.quick,
            cores: [self.cores.client, self.cores.server],
            seed: self.seed,
            note,
            works,
        })
    }

    fn work(&self, work: &'static Work, random: &mut SplitMix64) -> Result<WorkRecord> {
        let task = work.task(self.quick);
        let mut tools: Vec<Shown> = Vec::new();
        for tool in &self.tools {
            if let Some(job) = tool.peer.job(task, &self.place(tool, std::path::Path::new(""))?) {
                tools.push(Shown::new(tool.peer.name(), &job));
            }
        }
        let load_before = machine::load();
        let mut orders: Vec<Order> = Vec::new();
        for round in 0..self.rounds {
            let mut turns: Vec<usize> = (0..tools.len()).collect();
            random.shuffle(&mut turns);
            for turn in &turns {
                let shown = &mut tools[*turn];
                let tool = self.tools.iter().find(|tool| tool.peer.name() == shown.tool).context("a tool vanished")?;
                let outcome = self.measure(tool, task);
                let said = match &outcome {
                    Ok(reading) => work.unit.text(reading.value),
                    Err(error) => format!("failed: {error:#}"),
                };
                eprintln!("{} round {}/{}: {} {said}", work.id, round + 1, self.rounds, shown.tool);
                shown.take(round, outcome);
            }
            orders.push(turns.iter().map(|turn| tools[*turn].tool).collect());
        }
        if tools.iter().any(|shown| shown.tool == OURS && shown.values.iter().all(Option::is_none)) {
            eprintln!("{}: thru gave no number in any round", work.id);
        }
        Ok(WorkRecord::new(work, tools, orders, [load_before, machine::load()], self))
    }

    fn place(&self, tool: &Tool, folder: &std::path::Path) -> Result<Place> {
        Ok(Place {
            thru: tool.thru.clone(),
            port: process::free_port()?,
            second_port: process::free_port()?,
            seconds: self.seconds,
            file: folder.join("result"),
        })
    }

    /// One measurement: a fresh server, one client, a number.
    fn measure(&self, tool: &Tool, task: Task) -> Result<Reading> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let place = self.place(tool, folder.path())?;
        let job = tool.peer.job(task, &place).context("the tool does not know this task")?;
        let mut server = Running::start(self.cores.server, &job.server, false)?;
        server.wait_for(place.port)?;
        let limit = LIMIT + Duration::from_secs(u64::from(self.seconds));
        let ended = process::run(self.cores.client, &job.client, limit)?;
        if ended.code != Some(0) && (ended.code.is_none() || ended.code != job.also_code) {
            let words = ended.stderr.trim().lines().next_back().or(ended.stdout.trim().lines().next_back());
            let code = ended.code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
            bail!("ended with {code}: {}", words.unwrap_or("no words"));
        }
        let result = std::fs::read_to_string(&place.file).unwrap_or_default();
        let reading = (job.read)(&ended, &result)?;
        if !(reading.value.is_finite() && reading.value > 0.0) {
            bail!("{} is no result", reading.value);
        }
        Ok(reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_come_in_pairs() {
        assert_eq!("1,0".parse::<Cores>().unwrap(), Cores { client: 1, server: 0 });
        for text in ["1", "1,", "a,b", "1,0,2"] {
            assert!(text.parse::<Cores>().is_err(), "{text}");
        }
    }
}
