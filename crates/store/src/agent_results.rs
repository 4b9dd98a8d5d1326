//! What an agent's end of trials measured and its coordinators have not stored yet: one SQLite file.
//!
//! A result is on the disk when [`AgentResults::keep`] returns. The file is bounded: beyond 64 MiB the oldest results go, and those of
//! coordinators that never came back after a week.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::BUSY_WAIT;
use crate::store::{private_file, write_ahead};

/// Most bytes of all results in a file.
const MOST_BYTES: u64 = 64 << 20;
/// How long a result is kept.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The results of an agent, or of several agents of one host.
#[derive(Debug)]
pub struct AgentResults {
    connection: Mutex<Connection>,
    path: PathBuf,
}

/// The results cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} in {}: {source}", path.display())]
pub struct ResultsError {
    path: PathBuf,
    doing: &'static str,
    source: rusqlite::Error,
}

impl AgentResults {
    /// Opens the file, or makes one that only this user can read. Its folder is there.
    ///
    /// # Errors
    /// It cannot be made or written, or is no file of results.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        let open = || {
            private_file(path);
            let connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_WAIT)?;
            write_ahead(&connection)?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            // An agent that is restricted to its files has none for what a statement sorts.
            connection.pragma_update(None, "temp_store", "MEMORY")?;
            connection.execute_batch(
                "CREATE TABLE IF NOT EXISTS result (
                     number INTEGER PRIMARY KEY,
                     run TEXT NOT NULL,
                     trial INTEGER NOT NULL,
                     kept_unix_s INTEGER NOT NULL,
                     result BLOB NOT NULL
                 );
                 CREATE INDEX IF NOT EXISTS result_of_run ON result (run, trial);
                 CREATE INDEX IF NOT EXISTS result_in_order ON result (run, number);",
            )?;
            Ok(connection)
        };
        let failed = |source| ResultsError { path: path.to_owned(), doing: "keep results", source };
        Ok(Self { connection: Mutex::new(open().map_err(failed)?), path: path.to_owned() })
    }

    /// Keeps the result of a trial of a run, by its number there.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, run: &str, trial: u32, result: &[u8]) -> Result<(), ResultsError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let work = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            transaction
                .prepare_cached("INSERT INTO result (run, trial, kept_unix_s, result) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![run, trial, now as i64, result])?;
            transaction
                .prepare_cached("DELETE FROM result WHERE kept_unix_s < ?1")?
                .execute([now.saturating_sub(LONGEST.as_secs()) as i64])?;
            transaction
                .prepare_cached(
                    "DELETE FROM result WHERE number <= (
                         SELECT max(number) FROM (
                             SELECT number, sum(length(result)) OVER (ORDER BY number DESC) AS bytes FROM result)
                         WHERE bytes > ?1)",
                )?
                .execute([MOST_BYTES as i64])?;
            transaction.commit()
        };
        work(&mut self.connection()).map_err(|source| self.failed("keep a result", source))
    }

    /// The oldest result of a run after the one with that number, with its own number; 0 is before the first one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn after(&self, run: &str, number: i64) -> Result<Option<(i64, Vec<u8>)>, ResultsError> {
        let work = |connection: &mut Connection| {
            connection
                .prepare_cached(
                    "SELECT number, result FROM result INDEXED BY result_in_order
                     WHERE run = ?1 AND number > ?2 ORDER BY number LIMIT 1",
                )?
                .query_row(params![run, number], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        };
        work(&mut self.connection()).map_err(|source| self.failed("read results", source))
    }

    /// Removes the results of a run's trials with numbers below `below`: they are stored.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn forget(&self, run: &str, below: u32) -> Result<(), ResultsError> {
        let work = |connection: &mut Connection| {
            connection.prepare_cached("DELETE FROM result WHERE run = ?1 AND trial < ?2")?.execute(params![run, below])
        };
        work(&mut self.connection()).map(drop).map_err(|source| self.failed("remove results", source))
    }

    /// A connection that panicked in the middle of a statement has rolled it back.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, doing: &'static str, source: rusqlite::Error) -> ResultsError {
        ResultsError { path: self.path.clone(), doing, source }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn results() -> (tempfile::TempDir, AgentResults) {
        let folder = tempfile::tempdir().unwrap();
        let results = AgentResults::open(&folder.path().join("results.sqlite")).unwrap();
        (folder, results)
    }

    fn of(results: &AgentResults, run: &str) -> Vec<Vec<u8>> {
        let mut last = 0;
        std::iter::from_fn(|| {
            let (number, result) = results.after(run, last).unwrap()?;
            last = number;
            Some(result)
        })
        .collect()
    }

    #[test]
    fn a_result_is_kept_until_it_is_stored_also_by_the_next_process() {
        let (folder, results) = results();
        for trial in [3, 1, 2] {
            results.keep("run", trial, &[trial as u8]).unwrap();
        }
        results.keep("other", 1, b"other").unwrap();
        drop(results);
        let path = folder.path().join("results.sqlite");
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        let results = AgentResults::open(&path).unwrap();
        assert_eq!(of(&results, "run"), [[3], [1], [2]]);
        results.forget("run", 3).unwrap();
        assert_eq!(of(&results, "run"), [[3]]);
        assert_eq!(of(&results, "other"), [b"other"]);
    }

    #[test]
    fn results_of_any_size_are_read_in_order_without_a_sort() {
        let (_folder, results) = results();
        for trial in 0..6 {
            results.keep(["run", "other"][trial as usize % 2], 9 - trial, &vec![trial as u8; 3 << 20]).unwrap();
        }
        let first: Vec<u8> = of(&results, "run").iter().map(|result| result[0]).collect();
        assert_eq!(first, [0, 2, 4], "as they were kept, not as their trials are numbered");
        // A sort would need a file for its rows, and a confined agent has none.
        let plan = "EXPLAIN QUERY PLAN SELECT number, result FROM result INDEXED BY result_in_order
            WHERE run = ?1 AND number > ?2 ORDER BY number LIMIT 1";
        let connection = results.connection();
        let mut plan = connection.prepare(plan).unwrap();
        let steps = plan.query_map(params!["run", 0], |row| row.get(3)).unwrap();
        let steps: Vec<String> = steps.collect::<Result<_, _>>().unwrap();
        assert!(steps.iter().all(|step| !step.contains("TEMP B-TREE")), "{steps:?}");
        let place: i64 = connection.pragma_query_value(None, "temp_store", |row| row.get(0)).unwrap();
        assert_eq!(place, 2, "in memory");
    }

    #[test]
    fn the_oldest_results_make_room() {
        let (_folder, results) = results();
        let megabytes = |count: usize, first: u8| {
            let mut bytes = vec![0; count << 20];
            bytes[0] = first;
            bytes
        };
        for first in 0..4 {
            results.keep("run", u32::from(first), &megabytes(20, first)).unwrap();
        }
        let kept: Vec<u8> = of(&results, "run").iter().map(|bytes| bytes[0]).collect();
        assert_eq!(kept, [1, 2, 3]);
        results.keep("run", 4, &megabytes(65, 4)).unwrap();
        assert!(of(&results, "run").is_empty(), "one that is too large is not kept either");
    }

    #[test]
    fn results_of_a_coordinator_that_never_came_back_are_removed() {
        let (_folder, results) = results();
        results.keep("old", 1, b"old").unwrap();
        let week_ago = "UPDATE result SET kept_unix_s = kept_unix_s - 604801";
        results.connection().execute(week_ago, []).unwrap();
        results.keep("new", 1, b"new").unwrap();
        assert!(of(&results, "old").is_empty());
        assert_eq!(of(&results, "new"), [b"new"]);
    }

    #[test]
    fn a_file_that_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.sqlite");
        std::fs::write(&path, "no database").unwrap();
        let error = AgentResults::open(&path).unwrap_err().to_string();
        assert!(error.contains("results.sqlite") && error.contains("not a database"), "{error}");
    }
}
