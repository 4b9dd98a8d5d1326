//! The numbers of one tool in one work, round by round.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use model::median;
use serde::{Deserialize, Serialize};

use crate::outcome::{Outcome, Used};
use crate::peer::{Job, OURS, PEERS, Reading};
use crate::process::Program;
use crate::work::Cost;

/// One tool's results in one work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The tool.
    pub tool: String,
    /// The server's command line, null if the client starts both ends. Ports and paths change in each round and
    /// are replaced by PORT and FILE.
    pub server: Option<String>,
    /// The client's command line.
    pub client: String,
    /// A number for each round, null for a failed round.
    pub values: Vec<Option<f64>>,
    /// The best of each round's three legs, for comparison with a tool that prints the best of three.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub best: Vec<Option<f64>>,
    /// Other numbers by name, for each round.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub also: BTreeMap<String, Vec<Option<f64>>>,
    /// CPU time and memory of both ends for each round.
    pub used: Vec<Option<Used>>,
    /// Median CPU time of the client's end in the work's `cost_unit`; null if not measured.
    pub client_cost: Option<f64>,
    /// Of the server's end; null also if the client starts both ends, whose time is then in `client_cost`.
    pub server_cost: Option<f64>,
    /// Of curves: sizes and round trips for each round, null for a failed round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Option<Curve>>,
    /// Reasons of failed rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Median of the rounds.
    pub median: Option<f64>,
    /// Smallest and largest.
    pub range: Option<[f64; 2]>,
}

/// A tool's curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Block sizes, bytes.
    pub sizes: Vec<u64>,
    /// Whole round trips, ns.
    pub round_trips_ns: Vec<f64>,
}

impl ToolResult {
    /// Without results.
    pub fn new(tool: &str, job: &Job) -> Self {
        let program = |program: &Program| plain(&program.argv);
        Self {
            tool: tool.to_owned(),
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
                    let series = self.also.entry((*name).to_owned()).or_default();
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
    pub fn beside(&self, peer: &str) -> &[Option<f64>] {
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

#[cfg(test)]
pub mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::peer::JobContext;

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

    pub fn shown(tool: &str, values: &[f64]) -> ToolResult {
        let job = Job::new(&context(), Vec::new(), Vec::new(), |_, _| Ok(1.0.into()));
        let mut shown = ToolResult::new(tool, &job);
        for (round, value) in (0..).zip(values) {
            shown.take(round, Ok(outcome(*value)), Cost::PerGigabyte);
        }
        shown
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
