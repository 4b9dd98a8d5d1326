//! Comparisons of B with A.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Estimate, Text, Trust};

/// The answer of a comparison of B with A, given a tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// B is better than A by more than the tolerance; this is significant.
    Better,
    /// B is not worse than A by more than the tolerance; this is significant.
    NotWorse,
    /// Nothing is significant.
    CannotTell,
    /// B is worse than A by more than the tolerance; this is significant.
    Worse,
}

impl Answer {
    /// All answers.
    pub const ALL: [Self; 4] = [Self::Better, Self::NotWorse, Self::CannotTell, Self::Worse];

    /// What it says.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Better => "B is better than A by more than the tolerance, and this is significant.",
            Self::NotWorse => "B is not worse than A by more than the tolerance, and this is significant.",
            Self::CannotTell => "Nothing is significant: B may be worse than A by more than the tolerance, or not.",
            Self::Worse => "B is worse than A by more than the tolerance, and this is significant.",
        }
    }
}

/// An answer with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Comparison {
    /// The answer for B.
    pub answer: Answer,
    /// The difference that does not matter, as a fraction: B is worse at a ratio below `1 - tolerance`, and better at a ratio
    /// above its inverse (vice versa if lower is better).
    pub tolerance: f64,
    /// Whether higher values of the statistic are better (a rate) or lower ones (a time).
    pub higher_is_better: bool,
    /// Two-sided p-value of the hypothesis that B makes no difference at all; null with too few values for a test. `ab`: for these
    /// rounds alone; `compare`: corrected for the number of cells.
    pub p_value: Option<f64>,
    /// Low end of the ratio's interval that the answer is based on. It may be wider than the estimate's own, because it is corrected
    /// for interim analyses (ab) or for the number of cells (compare). Null if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjusted_low: Option<f64>,
    /// High end of that interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjusted_high: Option<f64>,
    /// Ratio of B to A in each round of a paired comparison, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<f64>,
}

/// A comparison of stored runs: the document of `thru compare --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RunComparison {
    /// Version of this document's shape: `throughline-comparison/1`. Fields may be added within a version.
    pub schema: String,
    /// The runs of side A.
    pub a: Vec<RunName>,
    /// The runs of side B.
    pub b: Vec<RunName>,
    /// The worst answer among the cells; it sets the exit code of `thru compare`.
    pub answer: Answer,
    /// The same in a sentence.
    #[serde(flatten)]
    pub statement: Text,
    /// The cells that both sides have.
    pub cells: Vec<CellComparison>,
    /// Number of cells that only one side has.
    pub unmatched: u32,
    /// The cells that were not compared, and why.
    #[serde(default)]
    pub unpaired: Vec<Unpaired>,
    /// Differences of the sides apart from their figures.
    pub differences: Vec<Difference>,
    /// What to know before relying on the figures.
    pub notes: Vec<Text>,
}

impl RunComparison {
    /// Version of the document's shape.
    pub const SCHEMA: &'static str = "throughline-comparison/1";
}

/// A run that was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Unpaired {
    /// The side that has it: `a` or `b`.
    pub side: String,
    /// Identifier of the run that has it; of several the first.
    pub run: String,
    /// Its number in that run.
    pub cell: u32,
    /// Its pattern.
    pub pattern: String,
    /// Its block in bytes.
    pub block: u64,
    /// The unit of its statistic: `bit/s`, `1/s` or `ns`.
    pub unit: String,
    /// What distinguishes it from the other cells of its run, apart from the block: levels by factor, or fields of its spec.
    pub levels: BTreeMap<String, String>,
    /// Why it was not compared.
    pub why: String,
}

/// One cell on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CellComparison {
    /// Pattern of the cell, as side A has it.
    pub pattern: String,
    /// Block of the cell in bytes, as side A has it.
    pub block: u64,
    /// What distinguishes it from the other cells of its run, apart from the block: levels by factor, or fields of its spec.
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
    /// The answer; its interval and its p-value are corrected for the number of cells.
    pub comparison: Comparison,
    /// The worst trust of the outcomes on both sides; null if none has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

/// A difference between the sides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Difference {
    /// What it belongs to: `near` and `far` (the hosts), `path outbound` and `path return`, `tool` or `spec`; `host` between two
    /// hosts.
    pub of: String,
    /// The field, as a path with dots.
    pub field: String,
    /// The values of side A; several are separated by ` | `, and `-` means none.
    pub a: String,
    /// The values of side B.
    pub b: String,
}
