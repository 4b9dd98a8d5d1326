//! The document of a run: all numbers of all rounds and the results.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::goal_record::GoalRecord;
use crate::machine::Machine;
use crate::peer::Tool;
use crate::tool_result::ToolResult;
use crate::verdict::{Ratio, Reached};
use crate::work::{Better, Cost, Unit};

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
