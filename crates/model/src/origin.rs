//! Where an imported run comes from: another tool's output, kept beside what was read of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The file that a run was imported from, and what was in it.
///
/// The run's own figures come from it, each converted once. What the file does not say is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Origin {
    /// The program that measured, such as `netperf`.
    pub tool: String,
    /// Its version, where the file tells.
    pub version: Option<String>,
    /// Name of the file, without its folder.
    pub file: String,
    /// SHA-256 of the whole file, in hexadecimal.
    pub sha256: String,
    /// When it was measured, ns since the Unix epoch, where the file tells; else the run's start is that of the import.
    pub measured_unix_ns: Option<u64>,
    /// The measurements as they stand in the file, in its order.
    pub rows: Vec<OriginRow>,
    /// Fields of the cells' specs that the file does not tell, such as `block`: a default stands in the spec.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// Fields of the file that nothing here has a place for, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Parts that were refused, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<OriginLine>,
}

/// One measurement as it stands in the file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OriginRow {
    /// The cell it became a trial of.
    pub cell: u32,
    /// Its place among the trials of that cell, from 0.
    pub trial: u32,
    /// Line of the file, from 1.
    pub line: u32,
    /// The text, unchanged; of a document of many lines only its first.
    pub text: String,
    /// All figures of the row by name, with the unit in the name.
    pub figures: BTreeMap<String, f64>,
    /// What to know of it before trusting it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// A line of the file and what is to be said of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OriginLine {
    /// Line of the file, from 1.
    pub line: u32,
    /// The reason.
    pub reason: String,
}
