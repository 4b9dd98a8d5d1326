//! Rounds in which every tool runs once, in a new random order.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use model::SplitMix64;

use crate::archive::{Archive, Turn};
use crate::confidence::{self, Confidence};
use crate::judge::{self, Ran};
use crate::machine::{self, Machine};
use crate::outcome::{Outcome, Used};
use crate::peer::{Amount, Job, JobContext, OURS, Reading, Tool};
use crate::process::{self, Ended, Running};
use crate::provenance::{Source, ToolVersion};
use crate::record::{PROTOCOL, Record, SCHEMA, ToolOrder};
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
    /// Rounds of each work; without it, as many as an interval needs.
    pub rounds: Option<u32>,
    /// Length of a measurement, s.
    pub seconds: u32,
    /// A quick run, which judges no goals.
    pub quick: bool,
    /// The cores of client and server.
    pub cores: Cores,
    /// Seed of the order.
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

/// What changes during a run.
struct State {
    random: SplitMix64,
    left: Remaining,
    archive: Option<Archive>,
}

/// The rows of a run, known before it starts.
pub struct Plan {
    /// Confidence of each interval.
    pub confidence: Confidence,
    /// Rounds.
    pub rounds: u32,
    left: Remaining,
    works: usize,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { confidence, rounds, left, works } = self;
        write!(f, "{works} works, {rounds} rounds: {left}\n{}", confidence.text())?;
        if *rounds < confidence.rounds_needed {
            write!(f, "\n{rounds} rounds are too few: no row will have an interval")?;
        }
        Ok(())
    }
}

impl BenchRun {
    /// Runs all works; a full run leaves its raw documents and its record in `results`.
    pub fn run(&self, plan: Plan, note: Option<String>, results: &Path) -> Result<Record> {
        let inventory = machine::inventory();
        let machine = Machine::of(&inventory);
        for core in self.cores.both() {
            if core >= machine.cores {
                bail!("core {core} does not exist; this machine has {}; choose others with --cores", machine.cores);
            }
        }
        if let Some(load) = machine::load().filter(|load| *load > BUSY) {
            eprintln!("the machine is busy (load {load:.2}); the numbers will be noisy");
        }
        let source = Source::here();
        let says = self.tools.iter().find(|tool| tool.peer.name() == OURS).and_then(|tool| tool.says.as_deref());
        if let Some(warning) = says.and_then(|says| source.differs(says)) {
            eprintln!("{warning}");
        }
        let started = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let stem = format!("{}-{}", started.chars().take(16).filter(|c| *c != ':').collect::<String>(), machine.slug());
        let archive = if self.quick { None } else { Some(Archive::create(results, &stem)?) };
        let mut record = Record {
            schema: SCHEMA,
            protocol: PROTOCOL,
            started,
            source,
            machine,
            tools: self.tools.iter().map(ToolVersion::of).collect(),
            confidence: plan.confidence,
            rounds: plan.rounds,
            seconds: self.seconds,
            quick: self.quick,
            cores: self.cores.both(),
            seed: self.seed,
            note,
            raw: None,
            works: Vec::new(),
            inventory,
        };
        let mut state = State { random: SplitMix64::new(self.seed), left: plan.left, archive };
        for work in &self.works {
            let ran = self.work(work, plan.rounds, &mut state)?;
            record.works.push(judge::compare(work, ran, plan.confidence.each, self.quick));
        }
        if let Some(archive) = state.archive {
            let (file, raw) = archive.finish()?;
            record.raw = Some(raw);
            record.write(&file)?;
            eprintln!("record: {}", file.display());
        }
        Ok(record)
    }

    /// The rows, the rounds and the guessed time.
    pub fn plan(&self) -> Result<Plan> {
        let mut jobs = Vec::new();
        let mut statements = 0;
        for work in &self.works {
            let task = work.task(self.quick);
            let mut peers = Vec::new();
            for tool in &self.tools {
                if let Some(job) = tool.peer.job(task, &self.context(tool, task, Path::new(""))?) {
                    jobs.push((work.id, tool.peer.name(), job.guess.unwrap_or(task.guess(self.seconds))));
                    peers.push(tool.peer.name());
                }
            }
            peers.retain(|name| *name != OURS);
            statements += confidence::statements(work, &peers, self.quick);
        }
        let confidence = Confidence::of(statements);
        let rounds = self.rounds.unwrap_or(confidence.rounds_needed);
        let left = jobs.into_iter().map(|(work, tool, guess)| (work, tool, rounds, guess)).collect();
        Ok(Plan { confidence, rounds, left: Remaining::new(left), works: self.works.len() })
    }

    fn work(&self, work: &Work, rounds: u32, state: &mut State) -> Result<Ran> {
        let task = work.task(self.quick);
        let mut tools: Vec<ToolResult> = Vec::new();
        for tool in &self.tools {
            if let Some(job) = tool.peer.job(task, &self.context(tool, task, Path::new(""))?) {
                tools.push(ToolResult::new(tool.peer.name(), &job));
            }
        }
        let load_before = machine::load();
        let mut order: Vec<ToolOrder> = Vec::new();
        for round in 0..rounds {
            let mut turns: Vec<usize> = (0..tools.len()).collect();
            state.random.shuffle(&mut turns);
            order.push(turns.iter().map(|turn| tools[*turn].tool.clone()).collect());
            for turn in turns {
                let said = self.turn(work, round, &mut tools[turn], state)?;
                eprintln!("{} round {}/{rounds}: {} {said} ({})", work.id, round + 1, tools[turn].tool, state.left);
            }
        }
        if tools.iter().any(|shown| shown.tool == OURS && shown.values.iter().all(Option::is_none)) {
            eprintln!("{}: thru failed in every round", work.id);
        }
        Ok(Ran { tools, order, load: [load_before, machine::load()] })
    }

    /// A tool's measurement of a round; returns its number as text.
    fn turn(&self, work: &Work, round: u32, shown: &mut ToolResult, state: &mut State) -> Result<String> {
        let tool = self.tools.iter().find(|tool| tool.peer.name() == shown.tool).context("the tool is missing")?;
        let start = Instant::now();
        let outcome = if shown.values.len() >= MAX_FAILED_ROUNDS && shown.values.iter().all(Option::is_none) {
            Err(anyhow::anyhow!("skipped: it failed in the first {MAX_FAILED_ROUNDS} rounds"))
        } else {
            let turn = Turn { work: work.id, tool: tool.peer.name(), round };
            self.measure(tool, work, turn, &mut state.archive)
        };
        state.left.took(work.id, &shown.tool, start.elapsed().as_secs_f64());
        let said = match &outcome {
            Ok(outcome) => work.unit.text(outcome.reading.value),
            Err(error) => format!("failed: {error:#}"),
        };
        shown.take(round, outcome, work.cost());
        Ok(said)
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
    fn measure(&self, tool: &Tool, work: &Work, turn: Turn<'_>, archive: &mut Option<Archive>) -> Result<Outcome> {
        let task = work.task(self.quick);
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let context = self.context(tool, task, folder.path())?;
        let job = tool.peer.job(task, &context).context("the tool does not support this task")?;
        let mut server = None;
        if let Some(program) = job.server() {
            let running = server.insert(Running::start(&[self.cores.server], &program, false)?);
            running.wait_for(&job.ready)?;
        }
        let (ended, reading) = self.client(&job, &context, task, turn, archive)?;
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
            Task::Paced { rate, .. } => {
                outcome.reading.also.insert("rate_error_percent", 100.0 * (value / rate as f64 - 1.0).abs());
            }
            _ => {}
        }
        Ok(outcome)
    }

    /// Runs the client; returns the run with the median time.
    fn client(
        &self,
        job: &Job,
        context: &JobContext,
        task: Task,
        turn: Turn<'_>,
        archive: &mut Option<Archive>,
    ) -> Result<(Ended, Reading)> {
        let beyond = if matches!(task, Task::Curve { .. }) { CURVE_LIMIT } else { LIMIT };
        let limit = beyond + Duration::from_secs(u64::from(context.seconds));
        let cores = if job.spread { self.cores.both().to_vec() } else { vec![self.cores.client] };
        let mut runs = Vec::new();
        for _ in 0..job.runs {
            let ended = process::run(&cores, &job.client(), limit)?;
            let result = std::fs::read_to_string(context.file()).unwrap_or_default();
            if let Some(archive) = archive {
                archive.keep(turn, &ended, &result)?;
            }
            let code = ended.report.code;
            if code != Some(0) && (code.is_none() || code != job.also_code) {
                let command = ended.stderr.trim().lines().next_back().or(ended.stdout.trim().lines().next_back());
                let code = code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
                bail!("ended with {code}: {}", command.unwrap_or("no message"));
            }
            runs.push((ended, result));
        }
        runs.sort_by_key(|(ended, _)| ended.report.elapsed_ns);
        let (ended, result) = runs.swap_remove(runs.len() / 2);
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
