//! The document that a run leaves: every number of every round, and what follows from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use analysis::stats::median;
use anyhow::{Context, Result};
use serde::Serialize;

use crate::machine::Machine;
use crate::peer::{Job, OURS, Reading, Tool};
use crate::rounds::Bench;
use crate::verdict::{self, Ratio, Reached};
use crate::work::{Against, Better, Goal, Unit, Work};

/// One run of the bench.
#[derive(Debug, Serialize)]
pub struct Record {
    /// Version of this form.
    pub schema: u32,
    /// When it started, UTC.
    pub started: String,
    /// Where.
    pub machine: Machine,
    /// With which tools.
    pub tools: Vec<ToolVersion>,
    /// Rounds of each work.
    pub rounds: u32,
    /// Seconds of a measurement, for tools that can be told.
    pub seconds: u32,
    /// A quick look.
    pub quick: bool,
    /// Cores of client and server.
    pub cores: [u32; 2],
    /// Seed of the order and of the intervals.
    pub seed: u64,
    /// What the person who ran it wants to be known.
    pub note: Option<String>,
    /// The works.
    pub works: Vec<WorkRecord>,
}

/// A tool and its version, null where it does not tell.
#[derive(Debug, Serialize)]
pub struct ToolVersion {
    name: &'static str,
    version: Option<String>,
}

/// The order of the tools in a round.
pub type Order = Vec<&'static str>;

/// What one tool gave in one work.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    /// The tool.
    pub tool: &'static str,
    /// What was run at the server's side; ports and paths change from round to round and stand as PORT and FILE.
    pub server: String,
    /// What was run at the client's side.
    pub client: String,
    /// A number for each round, null where it failed.
    pub values: Vec<Option<f64>>,
    /// Other numbers by name, for each round.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub also: BTreeMap<&'static str, Vec<Option<f64>>>,
    /// Why rounds failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Median of the rounds.
    pub median: Option<f64>,
    /// Smallest and largest.
    pub range: Option<[f64; 2]>,
}

/// One work.
#[derive(Debug, Serialize)]
pub struct WorkRecord {
    /// Its id.
    pub id: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Unit of all values.
    pub unit: Unit,
    /// Which values are good.
    pub better: Better,
    /// One-minute load averages before and after; the bench itself keeps up to two cores busy.
    pub load: [Option<f64>; 2],
    /// The order of the tools, round by round.
    pub order: Vec<Order>,
    /// The tools' numbers, ours first.
    pub tools: Vec<Shown>,
    /// Ours divided by each peer's.
    pub ratios: Vec<Ratio>,
    /// What thru has to reach; empty for a quick look.
    pub goals: Vec<GoalRecord>,
}

/// A goal and what became of it.
#[derive(Debug, Serialize)]
pub struct GoalRecord {
    /// In words.
    pub goal: String,
    /// Whether it was reached.
    pub reached: Reached,
}

impl ToolVersion {
    /// Of this tool.
    pub fn of(tool: &Tool) -> Self {
        Self { name: tool.peer.name(), version: tool.version.clone() }
    }
}

impl Shown {
    /// Nothing yet.
    pub fn new(tool: &'static str, job: &Job) -> Self {
        let (server, client) = (plain(&job.server), plain(&job.client));
        Self {
            tool,
            server,
            client,
            values: Vec::new(),
            also: BTreeMap::new(),
            failures: Vec::new(),
            median: None,
            range: None,
        }
    }

    /// Adds a round.
    pub fn take(&mut self, round: u32, outcome: Result<Reading>) {
        let before = self.values.len();
        match outcome {
            Ok(reading) => {
                self.values.push(Some(reading.value));
                for (name, value) in reading.also {
                    let series = self.also.entry(name).or_default();
                    series.resize(before, None);
                    series.push(Some(value));
                }
            }
            Err(error) => {
                self.values.push(None);
                self.failures.push(format!("round {}: {error:#}", round + 1));
            }
        }
        let known: Vec<f64> = self.values.iter().copied().flatten().collect();
        self.median = median(&known);
        self.range = known.iter().copied().reduce(f64::min).zip(known.iter().copied().reduce(f64::max)).map(Into::into);
    }
}

/// A command line as anyone would type it: programs without their folders, changing numbers by name.
fn plain(argv: &[String]) -> String {
    let word = |(place, word): (usize, &String)| {
        let name = Path::new(word).file_name().map_or(word.clone(), |name| name.to_string_lossy().into_owned());
        match word.rsplit_once(':') {
            _ if place == 0 => name,
            Some((host, port)) if is_port(port) => format!("{host}:PORT"),
            _ if is_port(word) => "PORT".to_owned(),
            _ if name == "result" => "FILE".to_owned(),
            _ => word.clone(),
        }
    };
    argv.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// Ports that the kernel hands out for free have five digits and no block or time here has.
fn is_port(word: &str) -> bool {
    word.parse::<u16>().is_ok_and(|port| port >= 32_768)
}

impl WorkRecord {
    /// Compares the tools.
    pub fn new(
        work: &'static Work,
        tools: Vec<Shown>,
        order: Vec<Order>,
        load: [Option<f64>; 2],
        bench: &Bench,
    ) -> Self {
        let ours = tools.iter().find(|shown| shown.tool == OURS);
        let pair = |shown: &Shown| verdict::ratio(shown.tool, &ours?.values, &shown.values, work.better, bench.seed);
        let ratios = tools.iter().filter(|shown| shown.tool != OURS).filter_map(pair).collect();
        let mut record = Self {
            id: work.id,
            title: work.title,
            unit: work.unit,
            better: work.better,
            load,
            order,
            tools,
            ratios,
            goals: Vec::new(),
        };
        if !bench.quick {
            record.goals = work.goals.iter().filter_map(|goal| record.judge(goal, bench.seed)).collect();
        }
        record
    }

    /// `None` when the peer that the goal names is not here.
    fn judge(&self, goal: &Goal, seed: u64) -> Option<GoalRecord> {
        let sign = if self.better == Better::Higher { ">=" } else { "<=" };
        match goal {
            Goal::Ratio { to, of } => {
                let (peer, called) = match to {
                    Against::Named(name) => (*name, (*name).to_owned()),
                    Against::Best => self.best_peer().map(|name| (name, format!("the best peer ({name})")))?,
                };
                let ratio = self.ratios.iter().find(|ratio| ratio.peer == peer)?;
                let reached = verdict::reached(ratio.low.zip(ratio.high), *of, self.better);
                Some(GoalRecord { goal: format!("{sign} {of:.2} x {called}"), reached })
            }
            Goal::Value(bound) => {
                let ours: Vec<f64> =
                    self.tools.iter().find(|shown| shown.tool == OURS)?.values.iter().copied().flatten().collect();
                let interval = verdict::sound_interval(&ours, seed).map(|interval| (interval.low, interval.high));
                let reached = verdict::reached(interval, *bound, self.better);
                Some(GoalRecord { goal: format!("{sign} {}", self.unit.text(*bound)), reached })
            }
        }
    }

    /// The peer with the best median.
    fn best_peer(&self) -> Option<&'static str> {
        let mut medians: Vec<(&'static str, f64)> = self
            .tools
            .iter()
            .filter(|shown| shown.tool != OURS)
            .filter_map(|shown| Some((shown.tool, shown.median?)))
            .collect();
        medians.sort_by(|a, b| a.1.total_cmp(&b.1));
        let best = if self.better == Better::Higher { medians.last() } else { medians.first() };
        best.map(|(tool, _)| *tool)
    }
}

impl Record {
    /// Writes it to a file of its own in `folder`, named after date and machine.
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
mod tests {
    use super::*;
    use crate::rounds::Cores;
    use crate::work::WORKS;

    fn shown(tool: &'static str, values: &[f64]) -> Shown {
        let job = Job { server: Vec::new(), client: Vec::new(), also_code: None, read: |_, _| Ok(1.0.into()) };
        let mut shown = Shown::new(tool, &job);
        for (round, value) in (0..).zip(values) {
            shown.take(round, Ok(Reading::from(*value)));
        }
        shown
    }

    fn compared(work: &'static Work, tools: Vec<Shown>) -> WorkRecord {
        let cores = Cores { client: 1, server: 0 };
        let bench = Bench { works: Vec::new(), tools: Vec::new(), rounds: 5, seconds: 1, quick: false, cores, seed: 1 };
        WorkRecord::new(work, tools, Vec::new(), [None, None], &bench)
    }

    #[test]
    fn a_failed_round_is_null_everywhere() {
        let mut shown = shown("x", &[4.0]);
        shown.take(1, Err(anyhow::anyhow!("no luck")));
        let mut reading = Reading::from(2.0);
        reading.also.insert("points", 9.0);
        shown.take(2, Ok(reading));
        assert_eq!(shown.values, [Some(4.0), None, Some(2.0)]);
        assert_eq!(shown.also["points"], [None, None, Some(9.0)]);
        assert_eq!((shown.median, shown.range), (Some(3.0), Some([2.0, 4.0])));
        assert_eq!(shown.failures, ["round 2: no luck"]);
    }

    #[test]
    fn the_best_peer_is_the_one_with_the_best_median() {
        let rtt = WORKS.iter().find(|work| work.id == "rtt").unwrap();
        let record = compared(
            rtt,
            vec![
                shown("thru", &[10.0, 11.0, 10.0, 11.0, 10.0]),
                shown("qperf", &[10.0; 5]),
                shown("sockperf", &[20.0; 5]),
            ],
        );
        assert_eq!(record.goals[0].goal, "<= 1.05 x the best peer (qperf)");
        assert_eq!(record.goals[0].reached, Reached::Unsure);
        assert_eq!(record.ratios.len(), 2);
    }

    #[test]
    fn a_goal_without_its_peer_is_left_out() {
        let stream = WORKS.iter().find(|work| work.id == "stream").unwrap();
        let record = compared(stream, vec![shown("thru", &[2.0; 5]), shown("qperf", &[1.0; 5])]);
        assert!(record.goals.is_empty());
        let record = compared(stream, vec![shown("thru", &[2.0; 5]), shown("iperf3", &[1.0; 5])]);
        assert_eq!(record.goals[0].reached, Reached::Met);
    }

    #[test]
    fn documents_hold_no_folders_and_no_ports() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let argv = words("some/where/thru stream 127.0.0.1:41234 --block 131072 --json other/place/result");
        assert_eq!(plain(&argv), "thru stream 127.0.0.1:PORT --block 131072 --json FILE");
        assert_eq!(plain(&words("NPtcp -P 51234 -u 8388608")), "NPtcp -P PORT -u 8388608");
    }
}
