//! What a reader finds in a text.

use std::collections::BTreeMap;

use model::{EndTally, Inventory, Pass, Path, Plan, Spec, Trial, Verdict};

/// How sure a format is that a text is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It is not.
    No,
    /// The text has the shape, but nothing that only this tool writes.
    Perhaps,
    /// It holds something that only this tool writes.
    Sure,
}

/// A part of a text that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Line, from 1; 0 for the whole text.
    pub line: u32,
    /// Why.
    pub reason: String,
}

/// All that a format read of a text: a broken part is refused while the rest is there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// What becomes a run each.
    pub imported: Vec<Imported>,
    /// What was refused.
    pub refused: Vec<Refused>,
}

impl Reading {
    /// Adds a refused line.
    pub(crate) fn refuse(&mut self, line: u32, reason: impl Into<String>) {
        self.refused.push(Refused { line, reason: reason.into() });
    }
}

/// One listing, which becomes a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Imported {
    /// The program that measured.
    pub tool: String,
    /// Its version, where the text tells.
    pub version: Option<String>,
    /// The kind of the run; `curve` where there are several block sizes.
    pub kind: String,
    /// The far end, as the text names it.
    pub target: Option<String>,
    /// When it was measured, ns since the Unix epoch, where the text tells.
    pub measured_unix_ns: Option<u64>,
    /// What the text says of the near host.
    pub near: Inventory,
    /// What it says of the way to the far host.
    pub path: Option<Path>,
    /// What it says of the near host over time.
    pub passes: Vec<Pass>,
    /// What its cells differ in, where it is a table of several things.
    pub plan: Option<Plan>,
    /// The measurements, in the order of the text.
    pub rows: Vec<Row>,
    /// What to know of the whole listing.
    pub notes: Vec<String>,
    /// Fields of the rows' specs that the text does not tell, so that a default stands there.
    pub assumed: Vec<&'static str>,
    /// Fields without a place in a run.
    pub unknown: Vec<String>,
}

/// `block` in [`Imported::assumed`] where a text does not tell it.
pub(crate) fn unless_told(block: Option<u64>) -> Vec<&'static str> {
    if block.is_some() { Vec::new() } else { vec!["block"] }
}

/// One measurement of a listing: a trial of the cell that its spec and levels make.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What was measured.
    pub spec: Spec,
    /// What else tells its cell from others, by name.
    pub levels: BTreeMap<String, String>,
    /// What both ends counted, as far as the text tells. Its value is in the unit of the pattern's headline statistic: bit/s,
    /// transactions per second, or ns of a round trip.
    pub trial: Trial,
    /// Line of the text, from 1.
    pub line: u32,
    /// The line itself.
    pub text: String,
    /// All figures, with the unit in the name.
    pub figures: BTreeMap<String, f64>,
    /// What to know of it.
    pub remarks: Vec<String>,
}

impl Row {
    /// A row with a value and nothing else: no count of it is told yet.
    pub(crate) fn new(spec: Spec, value: f64, line: u32, text: &str) -> Self {
        let trial = Trial {
            cell: 0,
            pass: 0,
            position: 0,
            near: EndTally::unreported(),
            far: EndTally::unreported(),
            ledger: model::Ledger::default(),
            value: Some(value),
            verdicts: Vec::new(),
        };
        let (levels, figures) = (BTreeMap::new(), BTreeMap::new());
        Self { spec, levels, trial, line, text: text.trim_end().to_owned(), figures, remarks: Vec::new() }
    }

    /// Adds a figure.
    pub(crate) fn figure(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.figures.insert(name.to_owned(), value);
        }
    }

    /// Flags the row: the reason in words, and what it makes of the trust.
    pub(crate) fn flag(&mut self, verdict: Verdict, remark: impl Into<String>) {
        self.remarks.push(remark.into());
        if !self.trial.verdicts.contains(&verdict) {
            self.trial.verdicts.push(verdict);
        }
    }
}
