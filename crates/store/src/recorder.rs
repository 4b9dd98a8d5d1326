//! Appends a run's events as they come.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::{Cell, Ending, Event, EventSink, Outcome, Run, RunHeader, RunSummary, Shared, SinkError, Spec, Trial};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use serde::Serialize;

use crate::StoreError;
use crate::rows::{CellsRow, OutcomeRow, TOGETHER, without_lists};

/// Takes the events of one run after another and appends each in a transaction of its own. Intervals and phases pass by:
/// they are for those who watch.
///
/// An event that fails leaves the ones before it in place, and the recorder can go on with the next one.
#[derive(Debug)]
pub struct Recorder {
    connection: Connection,
    path: PathBuf,
    /// Device and number of the file that was opened.
    file: Option<(u64, u64)>,
    run: Option<Current>,
}

/// The run that is being recorded.
#[derive(Debug)]
struct Current {
    number: i64,
    id: String,
    /// It was begun earlier, so that its header is in the file.
    resumed: bool,
    /// The specs of its cells.
    specs: BTreeMap<u32, Shared<Spec>>,
    /// The trials of each cell that are in the file, as digests of their rows.
    trials: BTreeMap<u32, Vec<u64>>,
}

impl Current {
    fn new(number: i64, id: &str) -> Self {
        Self { number, id: id.to_owned(), resumed: false, specs: BTreeMap::new(), trials: BTreeMap::new() }
    }
}

impl Recorder {
    /// The file of the store.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn new(connection: Connection, path: PathBuf) -> Self {
        let file = identity(&path);
        Self { connection, path, file, run: None }
    }

    /// Appends one event, or passes over one that is only for display.
    ///
    /// # Errors
    /// [`StoreError::NotStarted`] for an event before [`Event::Run`], [`StoreError::IdTaken`] for an id that is there
    /// already, [`StoreError::Gone`] or [`StoreError::FileGone`] when the run or the file was deleted meanwhile, and [`StoreError`] when
    /// the file cannot be written.
    pub fn record(&mut self, event: &Event) -> Result<(), StoreError> {
        if event.is_transient() {
            return Ok(());
        }
        // Within a transaction, of a whole run, the commit waits.
        if self.connection.is_autocommit() {
            self.wait_for_disk(matches!(event, Event::Run(_) | Event::Pass(_) | Event::End(_)))?;
        }
        match event {
            Event::Run(header) => self.begin(header),
            Event::Cells { cells } => self.at_once(|recorder| recorder.cells(cells)),
            Event::Trial(trial) => self.trial(trial),
            Event::Retest(retest) => self.append("retest", retest),
            Event::Pass(pass) => self.append("pass", pass),
            Event::Outcome(outcome) => self.outcome(outcome),
            Event::Finding(finding) => self.append("finding", finding),
            Event::Advice(advice) => self.append("advice", advice),
            Event::End(ending) => self.end(ending),
            Event::Interval { .. } | Event::Reading { .. } | Event::Phase(_) => Ok(()),
        }?;
        self.file_is_there()
    }

    /// SQLite goes on in a deleted file, which ends with the process.
    fn file_is_there(&self) -> Result<(), StoreError> {
        if identity(&self.path) == self.file { Ok(()) } else { Err(StoreError::FileGone { path: self.path.clone() }) }
    }

    /// Appends a whole run, as the events that a measurement would have given, in one transaction: all of it or nothing. It outlives the
    /// process; [`sync`](Self::sync) makes it outlive a power cut.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn record_run(&mut self, run: &Run) -> Result<(), StoreError> {
        self.wait_for_disk(false)?;
        self.at_once(|recorder| recorder.append_run(run))?;
        self.file_is_there()
    }

    /// Appends the events of a run, or of a part of it, in one transaction: all of them or none, as [`record_run`](Self::record_run).
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn record_all<'e>(&mut self, events: impl IntoIterator<Item = &'e Event>) -> Result<(), StoreError> {
        self.wait_for_disk(false)?;
        self.at_once(|recorder| events.into_iter().try_for_each(|event| recorder.record(event)))
    }

    /// Does this in one transaction.
    fn at_once(&mut self, append: impl FnOnce(&mut Self) -> Result<(), StoreError>) -> Result<(), StoreError> {
        if !self.connection.is_autocommit() {
            return append(self);
        }
        let doing = "append several rows";
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(|source| self.failed(doing, source))?;
        let done = append(self);
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.connection.execute_batch(end).map_err(|source| self.failed(doing, source));
        if done.is_err() {
            self.run = None;
        }
        done.and(ended)
    }

    /// Waits until what was recorded is on the disk.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be written.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        // It writes the log to the disk before it reads it.
        let busy = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        busy.map_err(|source| self.failed("wait for the disk", source))
    }

    fn append_run(&mut self, run: &Run) -> Result<(), StoreError> {
        self.begin(&run.header)?;
        run.passes.iter().try_for_each(|pass| self.append("pass", pass))?;
        let mut cells = BTreeSet::new();
        let (mut trials, mut outcomes) = (Together::new("trials"), Together::new("outcomes"));
        for outcome in &run.outcomes {
            // A cell has one outcome, with its trials. What a document has otherwise is kept as it is.
            let is_only = cells.insert(outcome.cell) && outcome.trials.iter().all(|trial| trial.cell == outcome.cell);
            if is_only {
                outcome.trials.iter().try_for_each(|trial| trials.add(trial))?;
            }
            outcomes.add(&self.row_of(outcome, is_only)?)?;
            if trials.is_full() || outcomes.is_full() {
                // An outcome is behind its trials.
                self.append_together(&mut trials)?;
                self.append_together(&mut outcomes)?;
            }
        }
        self.append_together(&mut trials)?;
        self.append_together(&mut outcomes)?;
        run.retests.iter().try_for_each(|retest| self.append("retest", retest))?;
        run.findings.iter().try_for_each(|finding| self.append("finding", finding))?;
        run.advice.iter().try_for_each(|advice| self.append("advice", advice))?;
        run.ending.iter().try_for_each(|ending| self.end(ending))
    }

    /// Goes on with a run that ended before it was done, or that was cut off. Its trials and passes stay; outcomes, findings and
    /// the ending, which the trials to come will change, are taken out, and its [`Event::Run`] passes by.
    ///
    /// # Errors
    /// [`StoreError::Gone`] without such a run, and [`StoreError`] when the file cannot be written.
    pub fn resume(&mut self, id: &str) -> Result<(), StoreError> {
        let path = self.path.clone();
        let failed = |source| StoreError::sqlite(&path, "continue a run", source);
        let change = self.connection.transaction().map_err(failed)?;
        let number: Option<i64> = change
            .query_row("SELECT number FROM run WHERE id = ?1", [id], |row| row.get(0))
            .optional()
            .map_err(failed)?;
        let Some(number) = number else { return Err(StoreError::Gone { id: id.to_owned(), path: path.clone() }) };
        let mut current = Current { resumed: true, ..Current::new(number, id) };
        change
            .execute("DELETE FROM entry WHERE run = ?1 AND kind IN ('outcome', 'outcomes', 'finding')", [number])
            .and_then(|_| {
                let clear = "UPDATE run SET how = NULL, ending = NULL, summary = NULL WHERE number = ?1";
                change.execute(clear, [number])
            })
            .and_then(|_| {
                let mut stored = change
                    .prepare("SELECT body FROM entry WHERE run = ?1 AND kind IN ('trial', 'trials') ORDER BY number")?;
                let mut rows = stored.query([number])?;
                while let Some(row) = rows.next()? {
                    let body = row.get_ref(0)?.as_str()?;
                    if let Ok(trial) = serde_json::from_str::<Trial>(body) {
                        current.trials.entry(trial.cell).or_default().push(digest(body));
                        continue;
                    }
                    for trial in serde_json::from_str::<Vec<Trial>>(body).unwrap_or_default() {
                        let body = serde_json::to_string(&trial).unwrap_or_default();
                        current.trials.entry(trial.cell).or_default().push(digest(&body));
                    }
                }
                Ok(())
            })
            .map_err(failed)?;
        change.commit().map_err(failed)?;
        self.run = Some(current);
        Ok(())
    }

    /// Appends a header, its cells, and the rows of an import.
    fn begin(&mut self, header: &RunHeader) -> Result<(), StoreError> {
        if let Some(run) = self.run.as_mut().filter(|run| run.resumed && run.id == header.id) {
            run.specs = specs(&header.cells).collect();
            return Ok(());
        }
        self.at_once(|recorder| {
            recorder.header(header)?;
            recorder.cells(&header.cells)?;
            let rows = header.origin.as_ref().map_or(&[][..], |origin| &origin.rows);
            rows.chunks(TOGETHER).try_for_each(|rows| recorder.append("origin", rows))
        })
    }

    fn header(&mut self, header: &RunHeader) -> Result<(), StoreError> {
        let doing = "append a run";
        let body = encode("run", &without_lists(header))?;
        let spec = header.cells.first().map(|cell| encode("spec", &cell.spec)).transpose()?;
        // The column only sorts and shows; the header holds the exact value.
        let started = i64::try_from(header.started_unix_ns).unwrap_or(i64::MAX);
        let cells = i64::try_from(header.cells.len()).unwrap_or(i64::MAX);
        let inserted = self.connection.execute(
            "INSERT INTO run (id, name, kind, target, transport, started_unix_ns, cells, spec, header)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                header.id,
                header.name,
                header.kind.name(),
                header.target,
                transports(&header.cells),
                started,
                cells,
                spec,
                body
            ],
        );
        match inserted {
            Ok(_) => {
                self.run = Some(Current::new(self.connection.last_insert_rowid(), &header.id));
                Ok(())
            }
            Err(rusqlite::Error::SqliteFailure(failure, _)) if failure.code == ErrorCode::ConstraintViolation => {
                Err(StoreError::IdTaken { id: header.id.clone(), path: self.path.clone() })
            }
            Err(source) => Err(self.failed(doing, source)),
        }
    }

    /// Those that are added later share the plan's transport, or are its ceiling: the run's column stays as planned.
    fn cells(&mut self, cells: &[Cell]) -> Result<(), StoreError> {
        cells.chunks(TOGETHER).try_for_each(|cells| self.append("cells", &CellsRow::new(cells)))?;
        self.current_mut("cells")?.specs.extend(specs(cells));
        Ok(())
    }

    fn trial(&mut self, trial: &Trial) -> Result<(), StoreError> {
        let body = encode("trial", trial)?;
        self.append_body("trial", &body)?;
        self.current_mut("trial")?.trials.entry(trial.cell).or_default().push(digest(&body));
        Ok(())
    }

    /// The trials of an outcome are in the file already, as a rule: then it is stored without them.
    fn outcome(&mut self, outcome: &Outcome) -> Result<(), StoreError> {
        let own = outcome.trials.iter().map(|trial| encode("trial", trial).map(|body| digest(&body)));
        let own = own.collect::<Result<Vec<u64>, _>>()?;
        let stored = self.current("outcome")?.trials.get(&outcome.cell).map_or(&[][..], Vec::as_slice) == own;
        let body = encode("outcome", &self.row_of(outcome, stored)?)?;
        self.append_body("outcome", &body)?;
        let run = self.current_mut("outcome")?;
        if stored {
            // They are this outcome's: another one of the cell has its own.
            run.trials.remove(&outcome.cell);
        }
        Ok(())
    }

    fn row_of<'o>(&self, outcome: &'o Outcome, stored: bool) -> Result<OutcomeRow<'o>, StoreError> {
        Ok(OutcomeRow::new(outcome, self.current("outcome")?.specs.get(&outcome.cell), stored))
    }

    fn append_together(&mut self, items: &mut Together) -> Result<(), StoreError> {
        match items.take() {
            Some(body) => self.append_body(items.kind, &body),
            None => Ok(()),
        }
    }

    fn end(&mut self, ending: &Ending) -> Result<(), StoreError> {
        let doing = "append the end of a run";
        let run = self.current("ending")?;
        let changed = self
            .connection
            .execute(
                "UPDATE run SET how = ?1, ending = ?2 WHERE number = ?3",
                params![ending.how, encode("ending", ending)?, run.number],
            )
            .map_err(|source| self.failed(doing, source))?;
        if changed == 0 { Err(self.gone(&run.id)) } else { Ok(()) }
    }

    /// Sets the answer of the run that was recorded last, for lists of runs.
    ///
    /// # Errors
    /// No run was recorded, or the file cannot be written.
    pub fn summarise(&mut self, summary: &RunSummary) -> Result<(), StoreError> {
        let run = self.current("summary")?;
        let body = encode("summary", summary)?;
        let set = self.connection.execute("UPDATE run SET summary = ?1 WHERE number = ?2", params![body, run.number]);
        set.map(drop).map_err(|source| self.failed("set the answer of a run", source))
    }

    /// One row, in one transaction unless there is one.
    fn append<T: Serialize + ?Sized>(&mut self, kind: &'static str, item: &T) -> Result<(), StoreError> {
        let body = encode(kind, item)?;
        self.append_body(kind, &body)
    }

    fn append_body(&mut self, kind: &'static str, body: &str) -> Result<(), StoreError> {
        let run = self.current(kind)?;
        let inserted = self
            .connection
            .prepare_cached("INSERT INTO entry (run, kind, body) VALUES (?1, ?2, ?3)")
            .and_then(|mut statement| statement.execute(params![run.number, kind, body]));
        match inserted {
            Ok(_) => Ok(()),
            Err(rusqlite::Error::SqliteFailure(failure, _)) if failure.code == ErrorCode::ConstraintViolation => {
                Err(self.gone(&run.id))
            }
            Err(source) => Err(self.failed("append to a run", source)),
        }
    }

    /// Whether the commits that follow wait for the disk. Those that do not are in the kernel's hands, so they outlive
    /// the process; in write-ahead-log mode the next one that waits makes them durable too, for they share its log.
    fn wait_for_disk(&self, wait: bool) -> Result<(), StoreError> {
        let level = if wait { "FULL" } else { "NORMAL" };
        self.connection
            .pragma_update(None, "synchronous", level)
            .map_err(|source| self.failed("choose when to sync", source))
    }

    fn current(&self, kind: &'static str) -> Result<&Current, StoreError> {
        self.run.as_ref().ok_or(StoreError::NotStarted { kind })
    }

    fn current_mut(&mut self, kind: &'static str) -> Result<&mut Current, StoreError> {
        self.run.as_mut().ok_or(StoreError::NotStarted { kind })
    }

    fn gone(&self, id: &str) -> StoreError {
        StoreError::Gone { id: id.to_owned(), path: self.path.clone() }
    }

    fn failed(&self, doing: &'static str, source: rusqlite::Error) -> StoreError {
        StoreError::sqlite(&self.path, doing, source)
    }
}

impl EventSink for Recorder {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.record(event).map_err(|error| SinkError(error.to_string()))
    }
}

/// Items that are in a row together: the row of each would take longer than the item.
struct Together {
    kind: &'static str,
    body: String,
}

impl Together {
    /// Bytes after which a row is full.
    const FULL: usize = 1 << 18;

    fn new(kind: &'static str) -> Self {
        Self { kind, body: String::new() }
    }

    fn add<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), StoreError> {
        self.body.push(if self.body.is_empty() { '[' } else { ',' });
        self.body.push_str(&encode(self.kind, item)?);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.body.len() >= Self::FULL
    }

    /// The row so far; `None` without items.
    fn take(&mut self) -> Option<String> {
        let body = std::mem::take(&mut self.body);
        (!body.is_empty()).then(|| body + "]")
    }
}

/// Device and number of the file at `path`; `None` if there is none.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// The transports of `cells`, each once, joined by `/`.
fn transports(cells: &[Cell]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for cell in cells {
        let name = cell.spec.transport.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("/")
}

fn specs(cells: &[Cell]) -> impl Iterator<Item = (u32, Shared<Spec>)> {
    cells.iter().map(|cell| (cell.id, cell.spec.clone()))
}

/// A number that two equal rows have in common, and no two others but by chance.
fn digest(body: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    hasher.finish()
}

fn encode<T: Serialize + ?Sized>(kind: &'static str, item: &T) -> Result<String, StoreError> {
    serde_json::to_string(item).map_err(|source| StoreError::Encode { kind, source })
}
