//! The origin of an imported run: another tool's output, stored with the run.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The file that a run was imported from, and its content.
///
/// The run's own figures are converted from it. A figure that the file does not contain is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Origin {
    /// The program that measured, such as `netperf`.
    pub tool: String,
    /// Its version, if the file has it.
    pub version: Option<String>,
    /// Name of the file, without its folder.
    pub file: String,
    /// SHA-256 of the whole file, in hexadecimal.
    pub sha256: String,
    /// Time of the measurement, ns since the Unix epoch, if the file has it; otherwise the run's start is the time of the import.
    pub measured_unix_ns: Option<u64>,
    /// The measurements of the file, in its order.
    pub rows: Vec<OriginRow>,
    /// Fields of the cells' specs that the file does not contain, such as `block`; the spec has a default for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// Fields of the file that have no counterpart in a run, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Parts of the file that were refused, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<OriginLine>,
}

/// One measurement of the file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct OriginRow {
    /// The cell of its trial.
    pub cell: u32,
    /// Position among the trials of that cell, from 0.
    pub trial: u32,
    /// Line of the file, from 1.
    pub line: u32,
    /// The unchanged text; of a document of several lines only the first.
    pub text: String,
    /// All figures of the row by name, with the unit in the name.
    pub figures: BTreeMap<String, f64>,
    /// What to know about it before relying on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// A line of the file, with a remark.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct OriginLine {
    /// Line of the file, from 1.
    pub line: u32,
    /// The reason.
    pub reason: String,
}
