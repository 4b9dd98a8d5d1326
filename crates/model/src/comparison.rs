//! What comes of setting B against A.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Estimate;

/// What a comparison says of B beside A, given the difference that is small enough not to matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Surely better than A by more than the tolerance.
    Better,
    /// Surely not worse than A by more than the tolerance.
    NotWorse,
    /// Neither is sure.
    CannotTell,
    /// Surely worse than A by more than the tolerance.
    Worse,
}

/// How an answer was come by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// What it says of B.
    pub answer: Answer,
    /// The difference that does not matter, as a fraction: B is worse from `1 - tolerance` times A down, and better from one
    /// over that up (the other way round where lower is better).
    pub tolerance: f64,
    /// Whether more of the statistic is better (a rate) or less (a time).
    pub higher_is_better: bool,
    /// Two-sided p-value of the hypothesis that B makes no difference at all, for this comparison alone; null where there was
    /// too little for a test.
    pub p_value: Option<f64>,
    /// Low end of the ratio's interval that the answer was judged by: wider than the estimate's own, for it pays for having
    /// been looked at before (ab) or for other cells (compare). Null where there is none, or where the answer was judged
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjusted_low: Option<f64>,
    /// High end of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjusted_high: Option<f64>,
    /// Ratio of B to A in each block of a paired comparison, in the order they were taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<f64>,
}

/// Stored runs set against each other: the document of `thru compare --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunComparison {
    /// Version of this document's shape: `throughline-comparison/2`. Fields may be added within a version.
    pub schema: String,
    /// The runs of side A.
    pub a: Vec<RunName>,
    /// The runs of side B.
    pub b: Vec<RunName>,
    /// The worst answer among the cells.
    pub answer: Answer,
    /// The cells that both sides have.
    pub cells: Vec<CellComparison>,
    /// How many cells have no partner.
    pub unmatched: u32,
    /// The cells that have no partner, and why.
    #[serde(default)]
    pub unpaired: Vec<Unpaired>,
    /// In what the sides differ, beside their figures.
    pub differences: Vec<Difference>,
    /// What to know before believing the figures.
    pub notes: Vec<String>,
}

impl RunComparison {
    /// Version of the document's shape.
    pub const SCHEMA: &'static str = "throughline-comparison/2";
}

/// Which run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunName {
    /// Its identifier.
    pub id: String,
    /// The name that the user gave it.
    pub name: Option<String>,
    /// Wall-clock time of its start, ns since the Unix epoch.
    pub started_unix_ns: u64,
    /// The program that measured at the near end, with its version as recorded.
    #[serde(default)]
    pub near_build: String,
    /// The program at the far end.
    #[serde(default)]
    pub far_build: String,
}

/// A cell of one side that was not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unpaired {
    /// The side that has it: `a` or `b`.
    pub side: String,
    /// Identifier of the run that has it, the first one of several.
    pub run: String,
    /// Its number in that run.
    pub cell: u32,
    /// Its pattern.
    pub pattern: String,
    /// Its block in bytes.
    pub block: u64,
    /// The unit of its statistic: `bit/s`, `1/s` or `ns`.
    pub unit: String,
    /// What tells it from the other cells of its run, beside the block: levels by their factors, or fields of its spec.
    pub levels: BTreeMap<String, String>,
    /// Why it was not compared.
    pub why: String,
}

/// One cell on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellComparison {
    /// Pattern of the cell, as side A has it.
    pub pattern: String,
    /// Block of the cell in bytes, as side A has it.
    pub block: u64,
    /// What tells it from the other cells of its run, beside the block: levels by their factors, or fields of its spec.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, String>,
    /// The statistic's unit: `bit/s`, `1/s` or `ns`.
    pub unit: String,
    /// Geometric mean of side A's values, in `unit`.
    pub a: f64,
    /// Geometric mean of side B's values, in `unit`.
    pub b: f64,
    /// The ratio of B to A with its interval, for this cell alone.
    pub ratio: Estimate,
    /// The answer; its p-value is corrected for the number of cells.
    pub comparison: Comparison,
}

/// Something that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What it belongs to: `near` and `far` (the hosts), `path out` and `path back`, `tool` or `spec`; `host` between two hosts.
    pub of: String,
    /// The field, its path joined by dots.
    pub field: String,
    /// The values of side A; several are separated by ` | `, and `-` means that there is none.
    pub a: String,
    /// The values of side B.
    pub b: String,
}
