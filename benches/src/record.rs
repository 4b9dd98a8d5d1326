//! The document of a run: all numbers of all rounds and the results.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use analysis::stats::median;
use anyhow::{Context, Result};
use serde::Serialize;

use crate::judge::{self, GoalRecord};
use crate::machine::Machine;
use crate::peer::{Job, OURS, PEERS, Reading, Tool};
use crate::process::Program;
use crate::rounds::{BenchRun, Outcome};
use crate::verdict::{self, Ratio, Reached};
use crate::work::{Better, Cost, Unit, Work};

/// One run of the bench.
#[derive(Debug, Serialize)]
pub struct Record {
    /// Version of this form.
    pub schema: u32,
    /// When it started, UTC.
    pub started: String,
    /// The machine.
    pub machine: Machine,
    /// The tools.
    pub tools: Vec<ToolVersion>,
    /// Rounds of each work.
    pub rounds: u32,
    /// Seconds of a measurement, for tools with such an option.
    pub seconds: u32,
    /// Whether it is a quick run.
    pub quick: bool,
    /// Cores of client and server.
    pub cores: [u32; 2],
    /// Seed of the order and of the intervals.
    pub seed: u64,
    /// The user's note.
    pub note: Option<String>,
    /// The works.
    pub works: Vec<WorkRecord>,
}

/// A tool and its version, null if unknown.
#[derive(Debug, Serialize)]
pub struct ToolVersion {
    name: &'static str,
    version: Option<String>,
}

/// The order of the tools in a round.
pub type ToolOrder = Vec<&'static str>;

/// One tool's results in one work.
#[derive(Debug, Clone, Serialize)]
pub struct ToolResult {
    /// The tool.
    pub tool: &'static str,
    /// The server's command line, null if the client starts both ends. Ports and paths change in each round and
    /// are replaced by PORT and FILE.
    pub server: Option<String>,
    /// The client's command line.
    pub client: String,
    /// A number for each round, null for a failed round.
    pub values: Vec<Option<f64>>,
    /// The best of each round's three legs, for comparison with a tool that prints the best of three.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub best: Vec<Option<f64>>,
    /// Other numbers by name, for each round.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub also: BTreeMap<&'static str, Vec<Option<f64>>>,
    /// CPU time and memory of both ends for each round.
    pub used: Vec<Option<Used>>,
    /// Median CPU time of the client's end in the work's `cost_unit`; null if not measured.
    pub client_cost: Option<f64>,
    /// Of the server's end; null also if the client starts both ends, whose time is then in `client_cost`.
    pub server_cost: Option<f64>,
    /// Of curves: sizes and round trips for each round, null for a failed round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Option<Curve>>,
    /// Reasons of failed rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Median of the rounds.
    pub median: Option<f64>,
    /// Smallest and largest.
    pub range: Option<[f64; 2]>,
}

/// Resource usage of a tool's processes in a round, with all descendants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Used {
    /// CPU time of the client's end, ns.
    pub client_cpu_ns: u64,
    /// Of the server's end; null if the client starts both.
    pub server_cpu_ns: Option<u64>,
    /// The largest resident set of one process of the client's end, bytes.
    pub client_peak_bytes: u64,
    /// Of the server's end.
    pub server_peak_bytes: Option<u64>,
    /// Bytes or exchanges moved; null if not applicable.
    pub amount: Option<f64>,
}

/// A tool's curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Block sizes, bytes.
    pub sizes: Vec<u64>,
    /// Whole round trips, ns.
    pub round_trips_ns: Vec<f64>,
}

/// One work.
#[derive(Debug, Serialize)]
pub struct WorkRecord {
    /// Its id.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Unit of all values.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// The unit of CPU cost.
    pub cost_unit: Cost,
    /// One-minute load averages before and after; the bench itself keeps up to two cores busy.
    pub load: [Option<f64>; 2],
    /// The order of the tools, round by round.
    pub order: Vec<ToolOrder>,
    /// The tools' numbers, ours first.
    pub tools: Vec<ToolResult>,
    /// Ours divided by each peer's.
    pub ratios: Vec<Ratio>,
    /// The goals of thru; empty for a quick run.
    pub goals: Vec<GoalRecord>,
}

impl ToolVersion {
    /// The version of this tool.
    pub fn of(tool: &Tool) -> Self {
        Self { name: tool.peer.name(), version: tool.version.clone() }
    }
}

impl ToolResult {
    /// Without results.
    pub fn new(tool: &'static str, job: &Job) -> Self {
        let program = |program: &Program| plain(&program.argv);
        Self {
            tool,
            server: job.server().as_ref().map(program),
            client: program(&job.client()),
            values: Vec::new(),
            best: Vec::new(),
            also: BTreeMap::new(),
            used: Vec::new(),
            client_cost: None,
            server_cost: None,
            curves: Vec::new(),
            failures: Vec::new(),
            median: None,
            range: None,
        }
    }

    /// Adds a round.
    pub fn take(&mut self, round: u32, outcome: Result<Outcome>, cost: Cost) {
        let before = self.values.len();
        match outcome {
            Ok(Outcome { reading, used }) => {
                self.values.push(Some(reading.value));
                self.used.push(Some(used));
                for (name, value) in &reading.also {
                    let series = self.also.entry(name).or_default();
                    series.resize(before, None);
                    series.push(Some(*value));
                }
                self.take_curve(before, &reading);
                if reading.best.is_some() || !self.best.is_empty() {
                    self.best.resize(before, None);
                    self.best.push(reading.best);
                }
            }
            Err(error) => {
                self.values.push(None);
                self.used.push(None);
                self.failures.push(format!("round {}: {error:#}", round + 1));
            }
        }
        let known: Vec<f64> = self.values.iter().copied().flatten().collect();
        self.median = median(&known);
        self.range = known.iter().copied().reduce(f64::min).zip(known.iter().copied().reduce(f64::max)).map(Into::into);
        self.client_cost = self.cost(cost, |used| Some(used.client_cpu_ns));
        self.server_cost = self.cost(cost, |used| used.server_cpu_ns);
    }

    /// The numbers to compare with this peer: the best of three legs if it prints the best of three, else the
    /// rounds' numbers.
    fn beside(&self, peer: &str) -> &[Option<f64>] {
        let best = PEERS.iter().any(|known| known.name() == peer && known.prints_best_of_three());
        if best && !self.best.is_empty() { &self.best } else { &self.values }
    }

    fn take_curve(&mut self, before: usize, reading: &Reading) {
        if !reading.curve.is_empty() {
            let (sizes, round_trips_ns) = reading.curve.iter().copied().unzip();
            self.curves.resize(before, None);
            self.curves.push(Some(Curve { sizes, round_trips_ns }));
        }
    }

    fn cost(&self, cost: Cost, of: impl Fn(&Used) -> Option<u64>) -> Option<f64> {
        let each = |used: &Used| cost.of(of(used)? as f64, used.amount);
        median(&self.used.iter().flatten().filter_map(each).collect::<Vec<_>>())
    }

    /// The numbers of this name, without failed rounds.
    pub fn also(&self, name: &str) -> Vec<f64> {
        self.also.get(name).into_iter().flatten().copied().flatten().collect()
    }
}

/// A command line without folders and changing numbers.
fn plain(argv: &[String]) -> String {
    let word = |(context, word): (usize, &String)| {
        let name = Path::new(word).file_name().map_or(word.clone(), |name| name.to_string_lossy().into_owned());
        match word.rsplit_once(':') {
            // A launcher gets the program by its absolute path.
            _ if context == 0 || name == OURS => name,
            Some((host, port)) if is_port(port) => format!("{host}:PORT"),
            _ if is_port(word) => "PORT".to_owned(),
            _ if name == "result" => "FILE".to_owned(),
            _ => word.clone(),
        }
    };
    argv.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// Ephemeral ports have five digits; no block or time here has.
fn is_port(word: &str) -> bool {
    word.parse::<u16>().is_ok_and(|port| port >= 32_768)
}

impl WorkRecord {
    /// Compares the tools.
    pub fn new(
        work: &'static Work,
        mut tools: Vec<ToolResult>,
        order: Vec<ToolOrder>,
        load: [Option<f64>; 2],
        bench: &BenchRun,
    ) -> Self {
        judge::agreement(&mut tools);
        let ours = tools.iter().find(|shown| shown.tool == OURS);
        let pair = |shown: &ToolResult| {
            verdict::ratio(shown.tool, ours?.beside(shown.tool), &shown.values, work.better, bench.seed)
        };
        let ratios = tools.iter().filter(|shown| shown.tool != OURS).filter_map(pair).collect();
        let mut record = Self {
            id: work.id,
            title: work.title,
            unit: work.unit,
            better: work.better,
            cost_unit: work.cost(),
            load,
            order,
            tools,
            ratios,
            goals: Vec::new(),
        };
        if !bench.quick {
            record.goals = judge::judge(&record, work.goals, bench.seed);
        }
        record
    }
}

impl Record {
    /// The rows that miss a goal, as text.
    pub fn short(&self) -> Vec<String> {
        let of = |work: &WorkRecord| -> Vec<String> {
            let short = work.goals.iter().filter(|goal| goal.reached == Reached::Short);
            short.map(|goal| format!("{} ({}): {}", work.title, work.id, goal.text(work.unit))).collect()
        };
        self.works.iter().flat_map(of).collect()
    }

    /// Writes it to a new file in `folder`, named after date and machine.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        let minute: String = self.started.chars().take(16).filter(|c| *c != ':').collect();
        let file = folder.join(format!("{minute}-{}.json", self.machine.slug()));
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::peer::JobContext;
    use crate::rounds::Cores;
    use crate::work::WORKS;

    fn context() -> JobContext {
        let program = "tool".to_owned();
        JobContext { program, port: 1, second_port: 2, seconds: 1, cores: [1, 0], folder: PathBuf::new() }
    }

    pub fn outcome(value: f64) -> Outcome {
        let used = Used {
            client_cpu_ns: 1_000,
            server_cpu_ns: Some(500),
            client_peak_bytes: 7,
            server_peak_bytes: Some(8),
            amount: Some(10.0),
        };
        Outcome { reading: Reading::from(value), used }
    }

    pub fn shown(tool: &'static str, values: &[f64]) -> ToolResult {
        let job = Job::new(&context(), Vec::new(), Vec::new(), |_, _| Ok(1.0.into()));
        let mut shown = ToolResult::new(tool, &job);
        for (round, value) in (0..).zip(values) {
            shown.take(round, Ok(outcome(*value)), Cost::PerGigabyte);
        }
        shown
    }

    pub fn compared(id: &str, tools: Vec<ToolResult>) -> WorkRecord {
        let work = WORKS.iter().find(|work| work.id == id).unwrap();
        let cores = Cores { client: 1, server: 0 };
        let bench =
            BenchRun { works: Vec::new(), tools: Vec::new(), rounds: 5, seconds: 1, quick: false, cores, seed: 1 };
        WorkRecord::new(work, tools, Vec::new(), [None, None], &bench)
    }

    #[test]
    fn a_failed_round_is_null_everywhere() {
        let mut shown = shown("x", &[4.0]);
        shown.take(1, Err(anyhow::anyhow!("no luck")), Cost::PerGigabyte);
        let mut third = outcome(2.0);
        third.reading.also.insert("points", 9.0);
        third.reading.curve = vec![(1, 5.0)];
        shown.take(2, Ok(third), Cost::PerGigabyte);
        assert_eq!(shown.values, [Some(4.0), None, Some(2.0)]);
        assert_eq!(shown.also["points"], [None, None, Some(9.0)]);
        assert_eq!(shown.curves, [None, None, Some(Curve { sizes: vec![1], round_trips_ns: vec![5.0] })]);
        assert_eq!((shown.median, shown.range), (Some(3.0), Some([2.0, 4.0])));
        assert_eq!(shown.failures, ["round 2: no luck"]);
        assert_eq!(shown.used[1], None);
    }

    #[test]
    fn what_prints_the_best_of_three_is_compared_with_our_best_of_three() {
        let mut ours = shown(OURS, &[]);
        for round in 0..5 {
            let mut outcome = outcome(30.0);
            outcome.reading.best = Some(20.0);
            ours.take(round, Ok(outcome), Cost::PerExchange);
        }
        let record = compared("rtt", vec![ours, shown("NPtcp", &[20.0; 5]), shown("sockperf", &[25.0; 5])]);
        let medians: Vec<f64> = record.ratios.iter().map(|ratio| ratio.median).collect();
        assert_eq!(medians, [1.0, 1.2]);
        assert!(record.goals[0].goal.ends_with("(sockperf)"), "{}", record.goals[0].goal);
    }

    #[test]
    fn both_ends_processor_time_is_divided_by_what_they_moved() {
        let shown = shown("x", &[4.0, 4.0]);
        // 1,000 ns for 10 bytes are 100 s for a gigabyte.
        assert_eq!((shown.client_cost, shown.server_cost), (Some(100.0), Some(50.0)));
    }

    #[test]
    fn documents_hold_no_folders_and_no_ports() {
        let command_line = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let argv = command_line("some/where/thru stream 127.0.0.1:41234 --block 131072 --json other/place/result");
        assert_eq!(plain(&argv), "thru stream 127.0.0.1:PORT --block 131072 --json FILE");
        assert_eq!(plain(&command_line("NPtcp -P 51234 -u 8388608")), "NPtcp -P PORT -u 8388608");
        assert_eq!(plain(&command_line("mpirun.openmpi -n 1 some/where/thru rr")), "mpirun.openmpi -n 1 thru rr");
    }
}
