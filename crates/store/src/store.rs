//! The file: opening it, listing what it holds, deleting from it.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use model::{Outcome, RunHeader, RunKind, RunSummary, SelfTest, Spec};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row};
use serde::Serialize;

use crate::error::BUSY_WAIT;
use crate::load::{self, Depth, Loaded};
use crate::recorder::Recorder;
use crate::reference::{self, Found};
use crate::{StoreError, default_path, schema};

/// A store of runs: one SQLite file, plus its `-wal` and `-shm` companions while it is open.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// A run as a list shows it, and as an object of JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRow {
    /// Its identifier, such as `20261121-203758-4f1a`.
    pub id: String,
    /// The name that the user gave it.
    pub name: Option<String>,
    /// What it is; `None` if it cannot be read.
    pub kind: Option<RunKind>,
    /// The far end as the user named it.
    pub target: Option<String>,
    /// The transports of its cells, joined by `/`; empty when it has no cell.
    pub transport: String,
    /// Wall-clock time of the start, ns since the Unix epoch.
    pub started_unix_ns: u64,
    /// `finished`, `interrupted` or `failed`; `None` while it runs, or when its process was killed.
    pub ending: Option<String>,
    /// The answer; `None` until the run has ended.
    #[serde(flatten)]
    pub summary: Option<RunSummary>,
    /// Number of its cells when it began.
    pub cells: u64,
    /// What its first cell measures; `None` when it has no cell.
    #[serde(skip)]
    pub spec: Option<Spec>,
    /// Whether the user starred it.
    pub starred: bool,
    /// The user's tags, in order.
    pub tags: Vec<String>,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSearch {
    /// Words that its id, date (UTC, as `2026-11-26`), name, kind, target, transport and tags together must contain, in any case.
    pub words: Vec<String>,
    /// Only starred runs.
    pub starred: bool,
    /// What comes first.
    pub order: RunOrder,
    /// The lowest instead of the highest value, the oldest instead of the latest run first.
    pub rising: bool,
}

/// What runs are sorted by; those without it come last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunOrder {
    /// When they were begun here.
    #[default]
    Arrival,
    /// Their name, or without one their kind.
    Name,
    /// The far end as the user named it.
    Target,
    /// The number that stands for the run, among those of the same unit.
    Value,
    /// The worst trust among the outcomes, the highest first.
    Trust,
}

impl RunOrder {
    /// What SQLite sorts by: first what stays together, then the value. Text that is no JSON is damage to its row alone.
    fn columns(self) -> [&'static str; 2] {
        match self {
            Self::Arrival => ["NULL", "number"],
            Self::Name => ["NULL", "lower(coalesce(name, kind))"],
            Self::Target => ["NULL", "lower(target)"],
            Self::Value => [
                "CASE WHEN json_valid(summary) THEN json_extract(summary, '$.estimate.unit') END",
                "CASE WHEN json_valid(summary) THEN json_extract(summary, '$.estimate.value') END",
            ],
            Self::Trust => [
                "NULL",
                "CASE WHEN json_valid(summary) THEN instr('none low fair high', json_extract(summary, '$.trust')) END",
            ],
        }
    }
}

impl Store {
    /// Opens the store at `path`, an existing one or a new one; directories that are missing are created. What is created is for
    /// this user only: runs describe hosts. A file that cannot be written opens all the same where SQLite can read it, and then
    /// refuses to record or delete.
    ///
    /// # Errors
    /// [`StoreError`] when the directory or the file cannot be made or opened, when it is damaged, is another program's
    /// database, or was written by a newer version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(|source| StoreError::Directory { path: directory.to_owned(), source })?;
        }
        private_file(path);
        Ok(Self { connection: connect(path)?, path: path.to_owned() })
    }

    /// Where runs are kept when the user names no file: `$XDG_DATA_HOME/throughline/runs.sqlite`, or
    /// `~/.local/share/throughline/runs.sqlite`. Nothing is created yet.
    ///
    /// # Errors
    /// [`StoreError::NoHome`] when the environment names neither directory.
    pub fn default_path() -> Result<PathBuf, StoreError> {
        default_path::default_path()
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Something that takes a run's events and appends them here, over a connection of its own. Any number of them, in
    /// this process and others, may record at the same time.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] when the file cannot be written; otherwise as for [`open`](Self::open).
    pub fn recorder(&self) -> Result<Recorder, StoreError> {
        let connection = connect(&self.path)?;
        self.refuse_read_only(&connection, "record a run")?;
        Ok(Recorder::new(connection, self.path.clone()))
    }

    /// The latest `limit` runs in the order they were begun here, latest first.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read.
    pub fn list(&self, limit: usize) -> Result<Vec<RunRow>, StoreError> {
        self.search(&RunSearch::default(), limit)
    }

    /// The number of runs.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read.
    pub fn count(&self) -> Result<usize, StoreError> {
        let count = self.connection.query_row("SELECT count(*) FROM run", [], |row| row.get::<_, i64>(0));
        let count = count.map_err(|source| self.failed("count the runs", source))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The first `limit` of the runs that the search finds.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read.
    pub fn search(&self, search: &RunSearch, limit: usize) -> Result<Vec<RunRow>, StoreError> {
        Ok(self.page(search, 0, limit)?.0)
    }

    /// `limit` of the runs that the search finds, after the first `skipped`, and the number of all.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read.
    pub fn page(&self, search: &RunSearch, skipped: usize, limit: usize) -> Result<(Vec<RunRow>, usize), StoreError> {
        let words = serde_json::json!(search.words).to_string();
        let [limit, skipped] = [limit, skipped].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let [group, column] = search.order.columns();
        let direction = if search.rising { "ASC" } else { "DESC" };
        // instr() of two lower-case texts, because % and _ in a word mean themselves.
        let found = "SELECT *, (SELECT json_group_array(tag) FROM (SELECT tag FROM tag WHERE run = number ORDER BY tag)) AS tags
             FROM run
             WHERE starred >= ?1 AND NOT EXISTS (
                 SELECT 1 FROM json_each(?2)
                 WHERE instr(lower(concat_ws(char(10), run.id, date(started_unix_ns / 1000000000, 'unixepoch'),
                                       name, kind, target, transport, tags)), lower(value)) = 0)";
        let rows = || -> rusqlite::Result<(Vec<_>, usize)> {
            let mut all = self.connection.prepare_cached(&format!("SELECT count(*) FROM ({found})"))?;
            let all: i64 = all.query_row((search.starred, &words), |row| row.get(0))?;
            let rows = self
                .connection
                .prepare_cached(&format!(
                    "SELECT id, name, kind, target, transport, started_unix_ns, how, summary, spec, cells, starred, tags
                     FROM ({found})
                     ORDER BY {group} NULLS LAST, {column} {direction} NULLS LAST, number DESC LIMIT ?3 OFFSET ?4"
                ))?
                .query_map((search.starred, &words, limit, skipped), run_row)?
                // A column of another type is damage to this row alone.
                .filter(|row| !matches!(row, Err(error) if error.sqlite_error().is_none()))
                .collect::<rusqlite::Result<_>>()?;
            Ok((rows, usize::try_from(all).unwrap_or(0)))
        };
        rows().map_err(|source| self.failed("list the runs", source))
    }

    /// The far ends of the latest `limit` runs that agents of this program measured, as the user named them; those of a run of several
    /// hosts, one by one.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read.
    pub fn hosts(&self, limit: usize) -> Result<BTreeSet<String>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let targets = || -> rusqlite::Result<Vec<String>> {
            // An imported run, or one with another program, says nothing of an agent.
            self.connection
                .prepare_cached(
                    "SELECT DISTINCT target FROM (SELECT target, header, spec FROM run ORDER BY number DESC LIMIT ?1)
                     WHERE target IS NOT NULL
                       AND CASE WHEN json_valid(header) THEN json_extract(header, '$.origin') END IS NULL
                       AND CASE WHEN json_valid(spec) THEN json_extract(spec, '$.speak') END IS NULL",
                )?
                .query_map([limit], |row| row.get(0))?
                .collect()
        };
        let targets = targets().map_err(|source| self.failed("list the hosts", source))?;
        let hosts = targets.iter().flat_map(|target| target.split(',')).map(str::trim);
        Ok(hosts.filter(|host| !host.is_empty()).map(str::to_owned).collect())
    }

    /// Stars the run that `reference` means, or takes its star away.
    ///
    /// # Errors
    /// As for [`load`](Self::load), and [`StoreError::ReadOnly`] when the file cannot be written.
    pub fn star(&self, reference: &str, starred: bool) -> Result<(), StoreError> {
        let doing = "star a run";
        self.refuse_read_only(&self.connection, doing)?;
        let found = reference::resolve(&self.connection, &self.path, reference)?;
        let update = "UPDATE run SET starred = ?2 WHERE number = ?1";
        self.connection.execute(update, (found.number, starred)).map_err(|source| self.failed(doing, source))?;
        Ok(())
    }

    /// Gives the run that `reference` means these tags instead of those that it had.
    ///
    /// # Errors
    /// As for [`load`](Self::load), and [`StoreError::ReadOnly`] when the file cannot be written.
    pub fn tag(&self, reference: &str, tags: &[String]) -> Result<(), StoreError> {
        let doing = "tag a run";
        self.refuse_read_only(&self.connection, doing)?;
        let failed = |source| self.failed(doing, source);
        let change = self.connection.unchecked_transaction().map_err(failed)?;
        let found = reference::resolve(&change, &self.path, reference)?;
        change.execute("DELETE FROM tag WHERE run = ?1", [found.number]).map_err(failed)?;
        for tag in tags {
            change.execute("INSERT OR IGNORE INTO tag VALUES (?1, ?2)", (found.number, tag)).map_err(failed)?;
        }
        change.commit().map_err(failed)
    }

    /// The run that `reference` means: a full id, a name, the first characters of an id, `last`, or `last~N` for the one
    /// begun N runs before the last.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] and [`StoreError::Ambiguous`] list what comes close; [`StoreError::Header`] for a header of
    /// a newer version; otherwise [`StoreError`] when the file cannot be read.
    pub fn load(&self, reference: &str) -> Result<Loaded, StoreError> {
        let failed = |source| self.failed("read a run", source);
        // One view of the file, though a recorder may be appending.
        let view = self.connection.unchecked_transaction().map_err(failed)?;
        let found = reference::resolve(&view, &self.path, reference)?;
        load::load(&view, &self.path, &found, Depth::Whole)
    }

    /// The latest `limit` runs of this name and kind that ended by themselves, the oldest first: their headers, and their outcomes without
    /// the trials. A run that this version cannot read is left out.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read.
    pub fn series(
        &self,
        name: &str,
        kind: RunKind,
        limit: usize,
    ) -> Result<Vec<(RunHeader, Vec<Outcome>)>, StoreError> {
        let series = self.latest(name, kind, "how IN ('finished', 'failed')", limit, Depth::Outcomes)?;
        Ok(series.into_iter().map(|Loaded { run, .. }| (run.header, run.outcomes)).collect())
    }

    /// The latest `limit` runs of this name and kind that were interrupted or whose process was killed, the oldest first. A run that this
    /// version cannot read is left out.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read.
    pub fn cut_off(&self, name: &str, kind: RunKind, limit: usize) -> Result<Vec<Loaded>, StoreError> {
        self.latest(name, kind, "how IS NULL OR how = 'interrupted'", limit, Depth::Whole)
    }

    fn latest(
        &self,
        name: &str,
        kind: RunKind,
        ended: &str,
        limit: usize,
        depth: Depth,
    ) -> Result<Vec<Loaded>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let failed = |source| self.failed("read a series of runs", source);
        // One view of the file, though a run may be deleted.
        let view = self.connection.unchecked_transaction().map_err(failed)?;
        let runs = || -> rusqlite::Result<Vec<Found>> {
            let text = format!(
                "SELECT number, id FROM run WHERE name = ?1 AND kind = ?2 AND ({ended}) ORDER BY number DESC LIMIT ?3"
            );
            view.prepare_cached(&text)?
                .query_map((name, kind.name(), limit), |row| Ok(Found { number: row.get(0)?, id: row.get(1)? }))?
                .collect()
        };
        let mut series = Vec::new();
        for found in runs().map_err(failed)?.iter().rev() {
            match load::load(&view, &self.path, found, depth) {
                Ok(loaded) => series.push(loaded),
                Err(StoreError::Header { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(series)
    }

    /// Deletes the run that `reference` means, in the words of [`load`](Self::load), and gives its space back to the
    /// filesystem. Returns its id.
    ///
    /// # Errors
    /// As for [`load`](Self::load), and [`StoreError::ReadOnly`] when the file cannot be written.
    pub fn delete(&self, reference: &str) -> Result<String, StoreError> {
        self.refuse_read_only(&self.connection, "delete a run")?;
        let failed = |source| self.failed("delete a run", source);
        let found = reference::resolve(&self.connection, &self.path, reference)?;
        self.connection.execute("DELETE FROM run WHERE number = ?1", [found.number]).map_err(failed)?;
        // Each step of this statement frees one page, so it has to be run to its end.
        self.connection.pragma_query(None, "incremental_vacuum", |_| Ok(())).map_err(failed)?;
        Ok(found.id)
    }

    /// Keeps the result of a self-test.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] when the file cannot be written; otherwise [`StoreError`] when SQLite refuses.
    pub fn keep_selftest(&self, test: &SelfTest) -> Result<(), StoreError> {
        let doing = "keep a self-test";
        self.refuse_read_only(&self.connection, doing)?;
        let failed = |source| self.failed(doing, source);
        let body = serde_json::to_string(test)
            .map_err(|error| failed(rusqlite::Error::ToSqlConversionFailure(Box::new(error))))?;
        self.connection
            .execute(
                "INSERT INTO selftest (hostname, started_unix_ns, passed, body) VALUES (?1, ?2, ?3, ?4)",
                (&test.hostname, test.started_unix_ns as i64, test.passed(), body),
            )
            .map_err(failed)?;
        Ok(())
    }

    /// The latest self-test of a host that was kept here; `None` when there is none, or none that this version can read.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read.
    pub fn last_selftest(&self, hostname: &str) -> Result<Option<SelfTest>, StoreError> {
        let text: Option<String> = self
            .connection
            .query_row(
                "SELECT body FROM selftest WHERE hostname = ?1 ORDER BY number DESC LIMIT 1",
                [hostname],
                |row| row.get(0),
            )
            .optional()
            .map_err(|source| self.failed("read a self-test", source))?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    fn refuse_read_only(&self, connection: &Connection, doing: &'static str) -> Result<(), StoreError> {
        match connection.is_readonly(rusqlite::MAIN_DB) {
            Ok(false) => Ok(()),
            Ok(true) => Err(StoreError::ReadOnly { path: self.path.clone(), doing }),
            Err(source) => Err(self.failed(doing, source)),
        }
    }

    fn failed(&self, doing: &'static str, source: rusqlite::Error) -> StoreError {
        StoreError::sqlite(&self.path, doing, source)
    }
}

/// A connection to the file at `path`, its schema up to date.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let failed = |source| StoreError::sqlite(path, "open it", source);
    // Without SQLITE_OPEN_URI, so that a file called `file:x?y` is just that.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    schema::prepare(&mut connection, path)?;
    if !connection.is_readonly(rusqlite::MAIN_DB).map_err(failed)? {
        write_ahead(&connection).map_err(failed)?;
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    }
    Ok(connection)
}

/// Makes the file for this user only, if there is none. SQLite makes its further files with the same mode, and says why this one cannot
/// be made.
pub(crate) fn private_file(path: &Path) {
    let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
}

/// Turns the write-ahead log on. A filesystem that cannot have one keeps the rollback journal: slower, and just as safe.
pub(crate) fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let turn_on = || connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
    // Leaving the rollback journal needs the file for itself, and SQLite gives up there without waiting for others.
    let pause = std::time::Duration::from_millis(20);
    let mut tries = BUSY_WAIT.as_millis() / pause.as_millis();
    loop {
        match turn_on() {
            Err(rusqlite::Error::SqliteFailure(failure, _)) if failure.code == ErrorCode::DatabaseBusy && tries > 0 => {
                tries -= 1;
                std::thread::sleep(pause);
            }
            other => return other.map(drop),
        }
    }
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    // A list is for people: what is damaged, or what a later version wrote in a way that cannot be read, is left out, not an error.
    let text = |column| -> rusqlite::Result<Option<String>> {
        let value = row.get_ref(column)?;
        Ok(value.as_bytes_or_null()?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    };
    let [summary, spec, tags] = [7, 8, 11].map(text);
    Ok(RunRow {
        id: text(0)?.unwrap_or_default(),
        name: text(1)?,
        kind: text(2)?.and_then(|name| RunKind::of(&name)),
        target: text(3)?,
        transport: text(4)?.unwrap_or_default(),
        started_unix_ns: row.get::<_, i64>(5)?.unsigned_abs(),
        ending: text(6)?,
        summary: summary?.and_then(|text| serde_json::from_str(&text).ok()),
        cells: row.get::<_, i64>(9)?.unsigned_abs(),
        spec: spec?.and_then(|text| serde_json::from_str(&text).ok()),
        starred: row.get(10)?,
        tags: tags?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
    })
}
