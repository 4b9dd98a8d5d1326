//! The document of a run: all numbers of all rounds and the results.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use model::Inventory;
use serde::{Deserialize, Serialize};

use crate::archive::Archived;
use crate::confidence::Confidence;
use crate::goal_record::GoalRecord;
use crate::machine::Machine;
use crate::provenance::{Source, ToolVersion};
use crate::tool_result::ToolResult;
use crate::verdict::{Ratio, Reached};
use crate::work::{Better, Cost, Unit};

/// The version of the form of a record.
pub const SCHEMA: u32 = 3;
/// The version of `benches/PROTOCOL.md` that this program follows.
pub const PROTOCOL: u32 = 1;

/// One run of the bench.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this form.
    pub schema: u32,
    /// Version of the protocol that the run followed.
    pub protocol: u32,
    /// When it started, UTC.
    pub started: String,
    /// The tree that the bench ran in.
    pub source: Source,
    /// The machine.
    pub machine: Machine,
    /// The tools.
    pub tools: Vec<ToolVersion>,
    /// Confidence of the intervals.
    pub confidence: Confidence,
    /// Rounds of each work.
    pub rounds: u32,
    /// Seconds of a measurement, for tools with such an option.
    pub seconds: u32,
    /// Whether it is a quick run.
    pub quick: bool,
    /// Cores of client and server.
    pub cores: [u32; 2],
    /// Seed of the order.
    pub seed: u64,
    /// The user's note.
    pub note: Option<String>,
    /// The raw documents; null for a quick run.
    pub raw: Option<Archived>,
    /// The works.
    pub works: Vec<WorkRecord>,
    /// The host before the run.
    pub inventory: Inventory,
}

/// The order of the tools in a round.
pub type ToolOrder = Vec<String>;

/// One work.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkRecord {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
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

impl Record {
    /// The goals with this result, as text.
    pub fn goals(&self, reached: Reached) -> Vec<String> {
        let of = |work: &WorkRecord| -> Vec<String> {
            let found = work.goals.iter().filter(|goal| goal.reached == reached);
            found.map(|goal| format!("{} ({}): {}", work.title, work.id, goal.text(work.unit))).collect()
        };
        self.works.iter().flat_map(of).collect()
    }

    /// Writes it to `file`, which must not exist.
    pub fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(file)
            .and_then(|mut open| std::io::Write::write_all(&mut open, text.as_bytes()))
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Reads a stored record.
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let document: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
        let schema = document.get("schema").and_then(serde_json::Value::as_u64);
        if schema != Some(u64::from(SCHEMA)) {
            let found = schema.map_or("no schema".to_owned(), |schema| format!("schema {schema}"));
            bail!("{} has {found}; this program reads schema {SCHEMA}", file.display());
        }
        serde_json::from_value(document).with_context(|| format!("{} is not a record of a run", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_another_form_is_refused_by_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.json");
        for (text, found) in [(r#"{"schema":2}"#, "has schema 2;"), ("{}", "has no schema;"), ("[", "is not JSON")] {
            fs::write(&file, text).unwrap();
            assert!(format!("{:#}", Record::read(&file).unwrap_err()).contains(found), "{text}");
        }
    }
}
