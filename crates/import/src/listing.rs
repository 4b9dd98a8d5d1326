//! The result of reading a text.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use model::{EndTally, Inventory, Pass, Path, Plan, Run, RunKind, Shared, Spec, Trial, Verdict};

use crate::error::ImportError;
use crate::text::COARSE;

/// How certain it is that a text is in a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// It is not.
    No,
    /// It has the shape, but nothing that only this program writes.
    Possible,
    /// A part of it is something that only this program writes.
    Certain,
    /// All of it is one document of this format; no other format reads it.
    WholeText,
}

/// A part of a text that could not be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{reason}{}", text.as_ref().map_or(String::new(), |text| format!(": '{text}'")))]
pub struct Refused {
    /// Line, from 1; 0 for the whole text.
    pub line: u32,
    /// The reason.
    pub reason: ImportError,
    /// The text of the line, where the reason is about all of it.
    pub text: Option<String>,
}

impl Refused {
    /// A line, or the whole text.
    pub(crate) fn new(line: u32, reason: impl Into<ImportError>) -> Self {
        Self { line, reason: reason.into(), text: None }
    }
}

/// The result of a format: a part that cannot be read is refused, and the rest is kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TextReading {
    /// The listings; each becomes a run.
    pub imported: Vec<Imported>,
    /// The refused parts.
    pub refused: Vec<Refused>,
}

impl TextReading {
    /// Adds a refused line.
    pub(crate) fn refuse(&mut self, line: u32, reason: impl Into<ImportError>) {
        self.refused.push(Refused::new(line, reason));
    }

    /// Adds a refused line that is shown.
    pub(crate) fn refuse_text(&mut self, line: u32, text: &str, reason: impl Into<ImportError>) {
        self.refused.push(Refused { text: Some(text.trim().to_owned()), ..Refused::new(line, reason) });
    }
}

/// One listing, which becomes a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Imported {
    /// The program that measured.
    pub tool: String,
    /// Its version, if the text has it.
    pub version: Option<String>,
    /// The kind of the run; `curve` if there are several block sizes.
    pub kind: RunKind,
    /// The far end, as the text names it.
    pub target: Option<String>,
    /// The time of the measurement, ns since the Unix epoch, if the text has it.
    pub measured_unix_ns: Option<u64>,
    /// Facts of the near host.
    pub near: Inventory,
    /// Facts of the path to the far host.
    pub path: Option<Path>,
    /// Activity of the near host over time.
    pub passes: Vec<Pass>,
    /// The factors of its cells, if it is a table.
    pub plan: Option<Plan>,
    /// The measurements, in the order of the text.
    pub rows: Vec<Row>,
    /// Remarks on the whole listing.
    pub notes: Vec<String>,
    /// Whether a server printed it, whose tests are those of any client.
    pub by_server: bool,
    /// Remarks on what repeats its measurements, and is left out.
    pub copies: Vec<String>,
    /// Fields of the rows' specs that the text does not report, and that have a default.
    pub assumed: Vec<&'static str>,
    /// Fields that are not imported.
    pub unknown: Vec<String>,
    /// A run of this program, from its JSON document; the other fields are then empty, except `tool`.
    pub run: Option<Box<Run>>,
}

/// The figures of each direction of a test in both, outbound first, bit/s.
pub(crate) const CARRIED: [&str; 2] = ["outbound_bps", "reverse_bps"];

/// `block` in [`Imported::assumed`] if a text does not report it.
pub(crate) fn unless_reported(block: Option<u64>) -> Vec<&'static str> {
    if block.is_some() { Vec::new() } else { vec!["block"] }
}

/// One measurement of a listing: a trial of the cell that its spec and levels make.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What was measured.
    pub spec: Shared<Spec>,
    /// Other properties that distinguish its cell, by name.
    pub levels: BTreeMap<String, String>,
    /// The counts of both ends that the text reports. Its value is in the unit of the pattern's headline statistic: bit/s,
    /// transactions per second, or ns of a round trip.
    pub trial: Trial,
    /// Line of the text, from 1.
    pub line: u32,
    /// The text of the line.
    pub text: String,
    /// All figures, with the unit in the name.
    pub figures: BTreeMap<String, f64>,
    /// Remarks.
    pub remarks: Vec<String>,
}

impl Row {
    /// A row with a value; all counts are unreported.
    pub(crate) fn new(spec: impl Into<Shared<Spec>>, value: f64, line: u32, text: &str) -> Self {
        // A table of a million values shares one.
        static UNREPORTED: LazyLock<Shared<EndTally>> = LazyLock::new(|| EndTally::unreported().into());
        let trial = Trial {
            cell: 0,
            pass: 0,
            position: 0,
            near: UNREPORTED.clone(),
            far: UNREPORTED.clone(),
            ledger: model::Ledger::default(),
            value: Some(value),
            verdicts: Vec::new(),
        };
        let (levels, figures) = (BTreeMap::new(), BTreeMap::new());
        Self { spec: spec.into(), levels, trial, line, text: text.trim_end().to_owned(), figures, remarks: Vec::new() }
    }

    /// What the direction from this end, or the one to it, carried in a test of both. Without it that direction has no value.
    pub(crate) fn carried(&mut self, outbound: bool, bps: f64) {
        self.figure(CARRIED[usize::from(!outbound)], bps);
    }

    /// Adds a figure.
    pub(crate) fn figure(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.figures.insert(name.to_owned(), value);
        }
    }

    /// Takes the relative rounding error of the value, by its printed digits: a coarse value is flagged, and one that is printed as zero
    /// is not known.
    pub(crate) fn rounded(&mut self, rounding: f64) {
        if rounding.is_infinite() {
            self.trial.value = None;
            self.flag(Verdict::ResolutionLimited, "the value is printed as zero: it is below the last digit");
        } else if rounding > COARSE {
            self.flag(Verdict::ResolutionLimited, "the value has too few digits for an accuracy of 5 %");
        }
    }

    /// Adds a verdict to the row, with its reason.
    pub(crate) fn flag(&mut self, verdict: Verdict, remark: impl Into<String>) {
        self.remarks.push(remark.into());
        if !self.trial.verdicts.contains(&verdict) {
            self.trial.verdicts.push(verdict);
        }
    }
}
