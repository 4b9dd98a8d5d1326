//! The shape of the file and how an older one is brought up to it.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;

/// `application_id` of our files: "thru" in ASCII. It tells a store from another program's database.
const APPLICATION_ID: i64 = 0x7468_7275;

/// The steps that lead from an empty file to the present schema; `user_version` counts those taken. Steps are only ever
/// added: one that has been released stays as it is, for files are at every height.
///
/// `run.number` never comes back after a deletion (AUTOINCREMENT), so a recorder whose run was deleted cannot append to
/// another one. Bodies are the model's JSON, or what `rows.rs` makes of it; the other columns exist to find and list them. A list of
/// runs reads no JSON in SQL: it would end at the first run that is damaged.
const LADDER: &[&str] = &["
    CREATE TABLE run (
        number          INTEGER PRIMARY KEY AUTOINCREMENT, -- order of arrival
        id              TEXT NOT NULL UNIQUE,
        name            TEXT,
        kind            TEXT NOT NULL,                     -- curve, stream, rr, transfer
        target          TEXT,
        transport       TEXT NOT NULL,
        started_unix_ns INTEGER NOT NULL,
        cells           INTEGER NOT NULL,                  -- how many when it began
        spec            TEXT,                              -- model::Spec of the first one
        header          TEXT NOT NULL,                     -- model::RunHeader without cells and rows of an import
        how             TEXT,                              -- finished, interrupted, failed; null until then
        ending          TEXT,                              -- model::Ending
        summary         TEXT,                              -- model::RunSummary; null until it has ended
        starred         INTEGER NOT NULL DEFAULT 0         -- 0 or 1
    ) STRICT;
    CREATE INDEX run_by_name ON run (name) WHERE name IS NOT NULL;
    CREATE TABLE entry (
        number INTEGER PRIMARY KEY,                        -- order of arrival
        run    INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
        kind   TEXT NOT NULL,                              -- cells, origin, trial, trials, retest, pass, outcome,
                                                           -- outcomes, finding, advice
        body   TEXT NOT NULL
    ) STRICT;
    CREATE INDEX entry_by_run ON entry (run);
    CREATE TABLE tag (
        run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
        tag TEXT NOT NULL,
        PRIMARY KEY (run, tag)
    ) STRICT;
    CREATE TABLE selftest (
        number          INTEGER PRIMARY KEY,               -- order of arrival
        hostname        TEXT,
        started_unix_ns INTEGER NOT NULL,
        passed          INTEGER NOT NULL,                  -- 0 or 1
        body            TEXT NOT NULL                      -- model::SelfTest
    ) STRICT;
"];

/// Makes sure that the file is ours and of the present schema; an empty one becomes both.
pub(crate) fn prepare(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let doing = "open it";
    let failed = |source| StoreError::sqlite(path, doing, source);
    if is_empty(connection).map_err(failed)? {
        if connection.is_readonly(rusqlite::MAIN_DB).map_err(failed)? {
            return Err(StoreError::ReadOnly { path: path.to_owned(), doing: "make a new store" });
        }
        // Lets a deletion give its pages back; has to be said before the first table exists.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(failed)?;
    }
    climb(connection, path, LADDER)
}

/// Takes the steps of `ladder` that the file lacks, all or none of them.
fn climb(connection: &mut Connection, path: &Path, ladder: &[&str]) -> Result<(), StoreError> {
    let known = ladder.len() as i64;
    let failed = |source| StoreError::sqlite(path, "bring its schema up to date", source);
    // In a transaction, so that what it reads is of one moment while another process builds a new file.
    if check(&*connection.transaction().map_err(failed)?, path, known)? == known {
        return Ok(());
    }
    // Taken before the second look, so that of two processes that open a new file only one builds it.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let found = check(&transaction, path, known)?;
    for (step, version) in ladder.iter().zip(1..).filter(|(_, version)| *version > found) {
        transaction.execute_batch(step).map_err(failed)?;
        transaction.pragma_update(None, "user_version", version).map_err(failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// The file's `user_version`; refuses another program's file, and one of a schema that this version does not know.
fn check(connection: &Connection, path: &Path, known: i64) -> Result<i64, StoreError> {
    let failed = |source| StoreError::sqlite(path, "open it", source);
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).map_err(failed);
    let (application, found) = (number("application_id")?, number("user_version")?);
    if application != APPLICATION_ID && !is_empty(connection).map_err(failed)? {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    if found > known {
        return Err(StoreError::Schema { path: path.to_owned(), found, known });
    }
    Ok(found)
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "/data/runs.sqlite";

    fn version(connection: &Connection) -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_older_file_climbs_and_keeps_its_rows() {
        let mut connection = Connection::open_in_memory().unwrap();
        let ladder = ["CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y DEFAULT 7"];
        climb(&mut connection, Path::new(AT), &ladder[..1]).unwrap();
        connection.execute("INSERT INTO a VALUES (1)", []).unwrap();
        assert_eq!(version(&connection), 1);
        climb(&mut connection, Path::new(AT), &ladder).unwrap();
        assert_eq!(version(&connection), 2);
        let row = connection.query_row("SELECT x, y FROM a", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(row, (1, 7));
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        climb(&mut connection, Path::new(AT), &["CREATE TABLE a (x)"]).unwrap();
        climb(&mut connection, Path::new(AT), &["", "CREATE TABLE b (x)", "CREATE TABLE a (x)"]).unwrap_err();
        assert_eq!(version(&connection), 1);
        assert!(connection.prepare("SELECT * FROM b").is_err());
    }

    #[test]
    fn a_file_from_the_future_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        climb(&mut connection, Path::new(AT), &["CREATE TABLE a (x)", "CREATE TABLE b (x)"]).unwrap();
        let error = climb(&mut connection, Path::new(AT), &["CREATE TABLE a (x)"]).unwrap_err();
        assert!(matches!(error, StoreError::Schema { found: 2, known: 1, .. }), "{error}");
    }

    #[test]
    fn another_programs_database_is_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute("CREATE TABLE bookmarks (url)", []).unwrap();
        let error = prepare(&mut connection, Path::new(AT)).unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
        assert_eq!(version(&connection), 0);
    }
}
