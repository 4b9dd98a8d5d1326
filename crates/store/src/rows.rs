//! The parts of a run as rows of the file, where those are not the parts as they are in documents: what repeats from cell to cell is
//! in a row once.

use std::collections::BTreeMap;

use model::{Cell, Estimate, Histogram, Origin, Outcome, RunHeader, Shared, Spec, Summary, Trial};
use serde::{Deserialize, Serialize};

/// Most cells, and most rows of an import, in a row of the file.
pub(crate) const TOGETHER: usize = 1_000;

/// Cells, and each spec of them once.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CellsRow {
    specs: Vec<Shared<Spec>>,
    cells: Vec<CellPart>,
}

#[derive(Debug, Serialize, Deserialize)]
struct CellPart {
    id: u32,
    /// The place of its spec among those of the row.
    spec: usize,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    levels: BTreeMap<String, String>,
}

impl CellsRow {
    pub(crate) fn new(cells: &[Cell]) -> Self {
        let mut specs: Vec<Shared<Spec>> = Vec::new();
        let part = |cell: &Cell| {
            let known = specs.iter().rposition(|spec| spec.is_same(&cell.spec) || *spec == cell.spec);
            let spec = known.unwrap_or_else(|| {
                specs.push(cell.spec.clone());
                specs.len() - 1
            });
            CellPart { id: cell.id, spec, levels: cell.levels.clone() }
        };
        let cells = cells.iter().map(part).collect();
        Self { specs, cells }
    }

    /// The cells; `None` if one of them has no spec.
    pub(crate) fn cells(self) -> Option<Vec<Cell>> {
        let Self { specs, cells } = self;
        let cell = |CellPart { id, spec, levels }| Some(Cell { id, spec: specs.get(spec)?.clone(), levels });
        cells.into_iter().map(cell).collect()
    }
}

/// An outcome, to be written.
#[derive(Debug, Serialize)]
pub(crate) struct OutcomeRow<'a> {
    cell: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a Spec>,
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<&'a Estimate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<&'a Histogram>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trials: Option<&'a [Trial]>,
}

impl<'a> OutcomeRow<'a> {
    /// An outcome without what other rows have: its spec if it is that of its cell, `planned`, and its trials if they are `stored`.
    pub(crate) fn new(outcome: &'a Outcome, planned: Option<&Shared<Spec>>, stored: bool) -> Self {
        let Outcome { cell, spec, summary, estimate, histogram, trials } = outcome;
        let is_planned = planned.is_some_and(|planned| planned.is_same(spec) || planned == spec);
        Self {
            cell: *cell,
            spec: (!is_planned).then_some(spec),
            summary,
            estimate: estimate.as_ref(),
            histogram: histogram.as_ref(),
            trials: (!stored).then_some(trials),
        }
    }
}

/// An outcome that was read.
#[derive(Debug, Deserialize)]
pub(crate) struct StoredOutcome {
    pub(crate) cell: u32,
    spec: Option<Shared<Spec>>,
    summary: Summary,
    estimate: Option<Estimate>,
    histogram: Option<Histogram>,
    trials: Option<Vec<Trial>>,
}

impl StoredOutcome {
    /// The outcome, with the spec of its cell and `trials` where it has none of its own; `None` without a spec.
    pub(crate) fn outcome(
        self,
        planned: Option<&Shared<Spec>>,
        trials: impl FnOnce() -> Vec<Trial>,
    ) -> Option<Outcome> {
        Some(Outcome {
            cell: self.cell,
            spec: self.spec.or_else(|| planned.cloned())?,
            summary: self.summary,
            estimate: self.estimate,
            histogram: self.histogram,
            trials: self.trials.unwrap_or_else(trials),
        })
    }
}

/// A header without its cells and the rows of its origin, which have rows of their own.
pub(crate) fn without_lists(header: &RunHeader) -> RunHeader {
    let origin = |origin: &Origin| Origin {
        tool: origin.tool.clone(),
        version: origin.version.clone(),
        file: origin.file.clone(),
        sha256: origin.sha256.clone(),
        measured_unix_ns: origin.measured_unix_ns,
        rows: Vec::new(),
        assumed: origin.assumed.clone(),
        unknown: origin.unknown.clone(),
        refused: origin.refused.clone(),
    };
    RunHeader {
        id: header.id.clone(),
        name: header.name.clone(),
        kind: header.kind,
        command: header.command.clone(),
        started_unix_ns: header.started_unix_ns,
        tool: header.tool.clone(),
        target: header.target.clone(),
        stopping: header.stopping.clone(),
        cells: Vec::new(),
        near: header.near.clone(),
        far: header.far.clone(),
        expected: header.expected.clone(),
        settings: header.settings.clone(),
        plan: header.plan.clone(),
        hosts: header.hosts.clone(),
        path_outbound: header.path_outbound.clone(),
        path_return: header.path_return.clone(),
        clocks: header.clocks,
        origin: header.origin.as_deref().map(|rows| Box::new(origin(rows))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;

    #[test]
    fn cells_have_each_spec_once() {
        let spec = |block| Shared::from(Spec { block, ..Spec::new("tcp", Pattern::Stream) });
        let cell = |(id, block)| {
            let levels = BTreeMap::from([("block".to_owned(), format!("{block}"))]);
            Cell { id, spec: spec(block), levels }
        };
        let cells: Vec<Cell> = [(0, 8), (1, 16), (2, 8), (7, 16)].map(cell).into();
        let row = CellsRow::new(&cells);
        assert_eq!(row.specs.len(), 2);
        let again: CellsRow = serde_json::from_str(&serde_json::to_string(&row).unwrap()).unwrap();
        let again = again.cells().unwrap();
        assert_eq!(again, cells);
        assert!(again[0].spec.is_same(&again[2].spec) && !again[0].spec.is_same(&again[1].spec));
        let wrong = r#"{"specs": [], "cells": [{"id": 0, "spec": 0}]}"#;
        assert!(serde_json::from_str::<CellsRow>(wrong).unwrap().cells().is_none());
    }

    #[test]
    fn an_outcome_leaves_out_what_its_cell_and_its_trials_have() {
        let spec = Shared::from(Spec::new("tcp", Pattern::Stream));
        let outcome = Outcome {
            cell: 3,
            spec: spec.clone(),
            summary: Summary::default(),
            estimate: None,
            histogram: None,
            trials: Vec::new(),
        };
        let written = |planned, stored| serde_json::to_string(&OutcomeRow::new(&outcome, planned, stored)).unwrap();
        let read = |text: &str| serde_json::from_str::<StoredOutcome>(text).unwrap();
        let lean = written(Some(&spec), true);
        assert!(!lean.contains("spec") && !lean.contains("\"trials\":[") && !lean.contains("null"), "{lean}");
        assert_eq!(read(&lean).outcome(Some(&spec), Vec::new), Some(outcome.clone()));
        assert_eq!(read(&lean).outcome(None, Vec::new), None, "the spec is missing");
        let other = Shared::from(Spec::new("udp", Pattern::Stream));
        let whole = written(Some(&other), false);
        assert_eq!(read(&whole).outcome(Some(&other), || panic!("it has trials")), Some(outcome.clone()));
    }
}
