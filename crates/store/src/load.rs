//! Puts a run together again from its rows.

use std::collections::BTreeMap;
use std::path::Path;

use model::{Cell, EndTally, OriginRow, Run, RunHeader, Shared, Trial};
use rusqlite::Connection;
use serde::de::DeserializeOwned;

use crate::StoreError;
use crate::reference::Found;
use crate::rows::{CellsRow, StoredOutcome};

/// A run as it was recorded, and what it lacks.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The run. `ending` is `None` while it is being recorded and when its process was killed.
    pub run: Run,
    /// Trials that no outcome holds, in the order they ended: the run was cut off before its outcomes were computed. The
    /// caller can compute them.
    pub orphans: Vec<Trial>,
    /// Rows that could not be understood and were left out, one sentence each. Empty as a rule.
    pub damaged: Vec<String>,
}

/// Which rows of a run are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// All.
    Whole,
    /// Its cells and their outcomes, without the trials.
    Outcomes,
}

/// Reads the run `found`.
pub(crate) fn load(connection: &Connection, path: &Path, found: &Found, depth: Depth) -> Result<Loaded, StoreError> {
    let failed = |source| StoreError::sqlite(path, "read a run", source);
    let (header, ending): (String, Option<String>) = connection
        .query_row("SELECT header, ending FROM run WHERE number = ?1", [found.number], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .map_err(failed)?;
    let header: RunHeader = serde_json::from_str(&header).map_err(|source| StoreError::Header {
        id: found.id.clone(),
        path: path.to_owned(),
        source,
    })?;
    let mut assembly = Assembly::new(header);
    if let Some(ending) = ending {
        assembly.run.ending = assembly.decode("ending", &ending);
    }
    let mut statement = connection
        .prepare_cached(
            "SELECT kind, body FROM entry WHERE run = ?1 AND (?2 OR kind IN ('cells', 'outcome', 'outcomes')) ORDER BY number",
        )
        .map_err(failed)?;
    let mut rows = statement.query((found.number, depth == Depth::Whole)).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let text = |column| row.get_ref(column).and_then(|value| Ok(value.as_str()?)).map_err(failed);
        assembly.add(text(0)?, text(1)?);
    }
    Ok(assembly.finish())
}

/// A run that is being put together, row by row in the order they came.
struct Assembly {
    run: Run,
    /// Those that no outcome holds.
    trials: Vec<Option<Trial>>,
    /// The ends of the last one.
    last: Option<[Shared<EndTally>; 2]>,
    /// The places of a cell's trials.
    of_cell: BTreeMap<u32, Vec<usize>>,
    damaged: Vec<String>,
}

impl Assembly {
    fn new(header: RunHeader) -> Self {
        Self { run: Run::new(header), trials: Vec::new(), last: None, of_cell: BTreeMap::new(), damaged: Vec::new() }
    }

    fn add(&mut self, kind: &str, body: &str) {
        match kind {
            "cells" => {
                let row: Option<CellsRow> = self.decode(kind, body);
                match row.map(CellsRow::cells) {
                    Some(Some(cells)) => self.cells(cells),
                    Some(None) => self.damaged.push("cells without their specs".into()),
                    None => {}
                }
            }
            "origin" => {
                let rows: Option<Vec<OriginRow>> = self.decode(kind, body);
                if let Some(origin) = &mut self.run.header.origin {
                    origin.rows.extend(rows.into_iter().flatten());
                }
            }
            "trial" => {
                let trial: Option<Trial> = self.decode(kind, body);
                self.add_trials(trial);
            }
            "trials" => {
                let trials: Option<Vec<Trial>> = self.decode(kind, body);
                self.add_trials(trials.into_iter().flatten());
            }
            "retest" => {
                let retest = self.decode(kind, body);
                self.run.retests.extend(retest);
            }
            "pass" => {
                let pass = self.decode(kind, body);
                self.run.passes.extend(pass);
            }
            "outcome" => {
                let outcome: Option<StoredOutcome> = self.decode(kind, body);
                outcome.into_iter().for_each(|outcome| self.outcome(outcome));
            }
            "outcomes" => {
                let outcomes: Option<Vec<StoredOutcome>> = self.decode(kind, body);
                outcomes.into_iter().flatten().for_each(|outcome| self.outcome(outcome));
            }
            "finding" => {
                let finding = self.decode(kind, body);
                self.run.findings.extend(finding);
            }
            "advice" => self.run.advice = self.decode(kind, body),
            other => {
                self.damaged.push(format!("a row of the unknown kind '{other}'; a newer program may have written it"));
            }
        }
    }

    /// Adds trials. Equal counts are in memory once.
    fn add_trials(&mut self, trials: impl IntoIterator<Item = Trial>) {
        for mut trial in trials {
            if let Some([near, far]) = &self.last {
                trial.near.share(near);
                trial.far.share(far);
            }
            self.last = Some([trial.near.clone(), trial.far.clone()]);
            self.of_cell.entry(trial.cell).or_default().push(self.trials.len());
            self.trials.push(Some(trial));
        }
    }

    /// Adds cells. Those of a large mesh share their spec, also where they are in several rows.
    fn cells(&mut self, cells: Vec<Cell>) {
        for mut cell in cells {
            if let Some(before) = self.run.header.cells.last() {
                cell.spec.share(&before.spec);
            }
            self.run.header.cells.push(cell);
        }
    }

    /// Adds an outcome. The trials so far of its cell are its own, and are put into it where it was stored without.
    fn outcome(&mut self, stored: StoredOutcome) {
        let cell = stored.cell;
        let places = self.of_cell.remove(&cell).unwrap_or_default();
        let own: Vec<Trial> = places.into_iter().filter_map(|at| self.trials[at].take()).collect();
        let planned = Cell::find(&self.run.header.cells, cell).map(|cell| &cell.spec);
        match stored.outcome(planned, || own) {
            Some(mut outcome) => {
                planned.into_iter().for_each(|spec| outcome.spec.share(spec));
                self.run.outcomes.push(outcome);
            }
            None => self.damaged.push(format!("an outcome of cell {cell}, which is missing")),
        }
    }

    fn decode<T: DeserializeOwned>(&mut self, kind: &str, body: &str) -> Option<T> {
        match serde_json::from_str(body) {
            Ok(item) => Some(item),
            Err(error) => {
                self.damaged.push(format!("a {kind} that cannot be read ({error})"));
                None
            }
        }
    }

    fn finish(self) -> Loaded {
        Loaded { run: self.run, orphans: self.trials.into_iter().flatten().collect(), damaged: self.damaged }
    }
}
