//! Rounds in which every tool runs once, in a new random order.

use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use model::SplitMix64;

use crate::judge;
use crate::machine::{self, Machine};
use crate::outcome::{Outcome, Used};
use crate::peer::{Amount, Job, JobContext, OURS, Reading, Tool};
use crate::process::{self, Ended, Running};
use crate::record::{Record, ToolOrder, ToolVersion, WorkRecord};
use crate::remaining::Remaining;
use crate::tool_result::ToolResult;
use crate::work::{Task, Work};

/// Longest time that a measurement may take beyond its requested seconds.
const LIMIT: Duration = Duration::from_secs(30);
/// The same for a curve; NPtcp's takes longest on a busy machine.
const CURVE_LIMIT: Duration = Duration::from_secs(300);
/// A tool that fails in this many first rounds is skipped in the others.
const MAX_FAILED_ROUNDS: usize = 2;
/// Load average above which the numbers carry a warning.
const BUSY: f64 = 0.5;

/// The settings of a run.
pub struct BenchRun {
    /// Works, one after another.
    pub works: Vec<&'static Work>,
    /// Tools, ours first.
    pub tools: Vec<Tool>,
    /// Rounds of each work.
    pub rounds: u32,
    /// Length of a measurement, s.
    pub seconds: u32,
    /// A quick run, which judges no goals.
    pub quick: bool,
    /// The cores of client and server.
    pub cores: Cores,
    /// Seed of the order and of the intervals.
    pub seed: u64,
}

/// The two cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cores {
    /// The core of all clients.
    pub client: u32,
    /// The core of all servers.
    pub server: u32,
}

impl Cores {
    /// Both cores.
    pub fn both(self) -> [u32; 2] {
        [self.client, self.server]
    }
}

impl FromStr for Cores {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (client, server) = text.split_once(',').context("give two cores, such as 1,0")?;
        let number = |text: &str| text.trim().parse().with_context(|| format!("'{text}' is not a core"));
        Ok(Self { client: number(client)?, server: number(server)? })
    }
}

impl BenchRun {
    /// Runs all works.
    pub fn run(&self, note: Option<String>) -> Result<Record> {
        let machine = Machine::here();
        for core in self.cores.both() {
            if core >= machine.cores {
                bail!("core {core} does not exist; this machine has {}; choose others with --cores", machine.cores);
            }
        }
        if let Some(load) = machine::load().filter(|load| *load > BUSY) {
            eprintln!("the machine is busy (load {load:.2}); the numbers will be noisy");
        }
        let mut random = SplitMix64::new(self.seed);
        let mut works = Vec::new();
        let started = jiff::Timestamp::now();
        let mut left = Remaining::new(self.plan()?);
        eprintln!("{} works, {} rounds: {left}", self.works.len(), self.rounds);
        for work in &self.works {
            works.push(self.work(work, &mut random, &mut left)?);
        }
        Ok(Record {
            schema: 2,
            started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            machine,
            tools: self.tools.iter().map(ToolVersion::of).collect(),
            rounds: self.rounds,
            seconds: self.seconds,
            quick: self.quick,
            cores: self.cores.both(),
            seed: self.seed,
            note,
            works,
        })
    }

    /// The planned measurements and their guessed durations.
    fn plan(&self) -> Result<Vec<(&'static str, &'static str, u32, f64)>> {
        let mut plan = Vec::new();
        for work in &self.works {
            let task = work.task(self.quick);
            for tool in &self.tools {
                if tool.peer.job(task, &self.context(tool, task, Path::new(""))?).is_some() {
                    plan.push((work.id, tool.peer.name(), self.rounds, task.guess(self.seconds)));
                }
            }
        }
        Ok(plan)
    }

    fn work(&self, work: &'static Work, random: &mut SplitMix64, left: &mut Remaining) -> Result<WorkRecord> {
        let task = work.task(self.quick);
        let mut tools: Vec<ToolResult> = Vec::new();
        for tool in &self.tools {
            if let Some(job) = tool.peer.job(task, &self.context(tool, task, Path::new(""))?) {
                tools.push(ToolResult::new(tool.peer.name(), &job));
            }
        }
        let load_before = machine::load();
        let mut orders: Vec<ToolOrder> = Vec::new();
        for round in 0..self.rounds {
            let mut turns: Vec<usize> = (0..tools.len()).collect();
            random.shuffle(&mut turns);
            orders.push(turns.iter().map(|turn| tools[*turn].tool).collect());
            for turn in turns {
                let shown = &mut tools[turn];
                let tool =
                    self.tools.iter().find(|tool| tool.peer.name() == shown.tool).context("the tool is missing")?;
                let start = Instant::now();
                let outcome = if shown.values.len() >= MAX_FAILED_ROUNDS && shown.values.iter().all(Option::is_none) {
                    Err(anyhow::anyhow!("skipped: it failed in the first {MAX_FAILED_ROUNDS} rounds"))
                } else {
                    self.measure(tool, task, work)
                };
                left.took(work.id, shown.tool, start.elapsed().as_secs_f64());
                let said = match &outcome {
                    Ok(outcome) => work.unit.text(outcome.reading.value),
                    Err(error) => format!("failed: {error:#}"),
                };
                eprintln!("{} round {}/{}: {} {said} ({left})", work.id, round + 1, self.rounds, shown.tool);
                shown.take(round, outcome, work.cost());
            }
        }
        if tools.iter().any(|shown| shown.tool == OURS && shown.values.iter().all(Option::is_none)) {
            eprintln!("{}: thru failed in every round", work.id);
        }
        Ok(judge::compare(work, tools, orders, [load_before, machine::load()], self.seed, self.quick))
    }

    fn context(&self, tool: &Tool, task: Task, folder: &Path) -> Result<JobContext> {
        Ok(JobContext {
            program: tool.program.to_string_lossy().into_owned(),
            port: process::free_port()?,
            second_port: process::free_port()?,
            seconds: task.seconds(self.seconds),
            cores: self.cores.both(),
            folder: folder.to_owned(),
        })
    }

    /// One measurement: a fresh server, one client, a number.
    fn measure(&self, tool: &Tool, task: Task, work: &Work) -> Result<Outcome> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let context = self.context(tool, task, folder.path())?;
        let job = tool.peer.job(task, &context).context("the tool does not support this task")?;
        let mut server = None;
        if let Some(program) = job.server() {
            let running = server.insert(Running::start(&[self.cores.server], &program, false)?);
            running.wait_for(&job.ready)?;
        }
        let (ended, reading) = self.client(&job, &context, task)?;
        let server = server.map(Running::stop).transpose()?;
        let value = reading.value;
        if !(value.is_finite() && value > 0.0) {
            bail!("{value} is not a valid result");
        }
        let used = Used {
            client_cpu_ns: ended.report.cpu_ns,
            server_cpu_ns: server.as_ref().map(|report| report.cpu_ns),
            client_peak_bytes: ended.report.peak_bytes,
            server_peak_bytes: server.as_ref().map(|report| report.peak_bytes),
            amount: match reading.amount {
                Amount::Follows => work.unit.amount(value, f64::from(context.seconds)),
                Amount::Known(amount) => Some(amount),
                Amount::Unknown => None,
            },
        };
        let mut outcome = Outcome { reading, used };
        match task {
            Task::Crowd { .. } => {
                let bytes = used.client_peak_bytes + used.server_peak_bytes.unwrap_or(0);
                outcome.reading.also.insert("memory_bytes", bytes as f64);
            }
            Task::Paced { rate } => {
                outcome.reading.also.insert("rate_error_percent", 100.0 * (value / rate as f64 - 1.0).abs());
            }
            _ => {}
        }
        Ok(outcome)
    }

    /// Runs the client; returns the run with the median time.
    fn client(&self, job: &Job, context: &JobContext, task: Task) -> Result<(Ended, Reading)> {
        let beyond = if matches!(task, Task::Curve { .. }) { CURVE_LIMIT } else { LIMIT };
        let limit = beyond + Duration::from_secs(u64::from(context.seconds));
        let cores = if job.spread { self.cores.both().to_vec() } else { vec![self.cores.client] };
        let mut runs = Vec::new();
        for _ in 0..job.runs {
            let ended = process::run(&cores, &job.client(), limit)?;
            let code = ended.report.code;
            if code != Some(0) && (code.is_none() || code != job.also_code) {
                let command = ended.stderr.trim().lines().next_back().or(ended.stdout.trim().lines().next_back());
                let code = code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
                bail!("ended with {code}: {}", command.unwrap_or("no message"));
            }
            runs.push(ended);
        }
        runs.sort_by_key(|ended| ended.report.elapsed_ns);
        let ended = runs.swap_remove(runs.len() / 2);
        let result = std::fs::read_to_string(context.file()).unwrap_or_default();
        let reading = (job.read)(&ended, &result)?;
        Ok((ended, reading))
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
