//! What can go wrong with the store, in words that name the file and the way out.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use text::Said;

use rusqlite::ErrorCode;
use rusqlite::ffi;

/// How long a statement waits for another process that is writing.
pub(crate) const BUSY_WAIT: Duration = Duration::from_secs(10);

/// A store could not be opened, read or written.
#[derive(Debug, thiserror::Error, Said)]
#[non_exhaustive]
pub enum StoreError {
    /// Neither `$XDG_DATA_HOME` nor `$HOME` says where data belongs.
    #[error("neither XDG_DATA_HOME nor HOME is an absolute path, so there is no place for runs: use `--store FILE`")]
    NoHome,
    /// The directory of the store could not be made.
    #[error("cannot create the directory {}: {source}; use `--store FILE` with a file elsewhere", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The file could not be opened or created.
    #[error("cannot open the store {}: {detail}; check the permissions or use `--store FILE`", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the kernel or SQLite said.
        detail: String,
    },
    /// The file, or its directory, cannot be written.
    #[error(
        "cannot {doing}: the store {} (or its directory) cannot be written; make it writable, or use `--store FILE` with a \
         file elsewhere", path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
    },
    /// The filesystem has no room left.
    #[error(
        "cannot {doing}: no space left on the filesystem of {}; what was stored before is safe; free some space, or use \
         `--store FILE` on another filesystem", path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
    },
    /// Another process kept the store locked for longer than the wait.
    #[error(
        "cannot {doing}: another process has kept the store {} locked for {} s; end it, or use `--store FILE`",
        path.display(), BUSY_WAIT.as_secs()
    )]
    Busy {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
    },
    /// The file is not an SQLite database, or its pages are damaged.
    #[error(
        "cannot {doing}: {} is damaged or is not a store ({detail}); move it away to start a new one, or use `--store FILE`",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What SQLite said.
        detail: String,
    },
    /// The file is an SQLite database of another program.
    #[error("{} is a database of another program, so thru left it alone; use `--store FILE` with another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Another version wrote the file.
    #[error(
        "the store {} has schema {found}, and this program reads {known}: use the program that wrote it, or `--store FILE` \
         with another file", path.display()
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Version of its schema.
        found: i64,
        /// The version that this program reads.
        known: i64,
    },
    /// No run goes by this name.
    #[error("no run '{reference}' in {}; {}", path.display(), offer(near, *runs))]
    Unknown {
        /// What the user wrote.
        reference: String,
        /// The file.
        path: PathBuf,
        /// Ids and names that come close, best first.
        near: Vec<String>,
        /// How many runs the store holds.
        runs: u32,
    },
    /// Several runs go by this name.
    #[error("'{reference}' matches several runs in {}: use one of the ids {}", path.display(), matches.join(", "))]
    Ambiguous {
        /// What the user wrote.
        reference: String,
        /// The file.
        path: PathBuf,
        /// Their ids, latest first.
        matches: Vec<String>,
    },
    /// A run with this id is there already.
    #[error("the store {} already has a run {id}; start the measurement again", path.display())]
    IdTaken {
        /// The id.
        id: String,
        /// The file.
        path: PathBuf,
    },
    /// Something was to be appended before the run's header.
    #[error("cannot store a {kind} before the run it belongs to has started")]
    NotStarted {
        /// What it was.
        kind: &'static str,
    },
    /// The run was deleted by another process while it was being recorded.
    #[error("run {id} was deleted from {} while it was being recorded", path.display())]
    Gone {
        /// The id.
        id: String,
        /// The file.
        path: PathBuf,
    },
    /// The file was deleted, moved or replaced while a run was being recorded.
    #[error(
        "the store {} was deleted, moved or replaced while a run was recorded, so the run is not stored; measure again, or use another \
         file with `--store FILE`",
        path.display()
    )]
    FileGone {
        /// The file.
        path: PathBuf,
    },
    /// The header of a run cannot be understood, so nothing can be said about its rows.
    #[error("the header of run {id} in {} cannot be read ({source}); a newer program may have written it", path.display())]
    Header {
        /// The id.
        id: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A value that JSON cannot hold.
    #[error("cannot store a {kind}: {source}")]
    Encode {
        /// What it was.
        kind: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Anything else that SQLite reports.
    #[error("cannot {doing} in the store {}: {source}; use `--store FILE` to continue with another file", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Sorts an SQLite error by what the user can do about it.
    pub(crate) fn sqlite(path: &Path, doing: &'static str, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let rusqlite::Error::SqliteFailure(failure, _) = &source else {
            return Self::Sqlite { path, doing, source };
        };
        match (failure.code, failure.extended_code) {
            // A full filesystem shows as an I/O error where the shared index of the log has to grow.
            (ErrorCode::DiskFull, _) | (ErrorCode::SystemIoFailure, ffi::SQLITE_IOERR_SHMSIZE) => {
                Self::Full { path, doing }
            }
            (ErrorCode::ReadOnly | ErrorCode::PermissionDenied, _) => Self::ReadOnly { path, doing },
            (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => Self::Busy { path, doing },
            (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => {
                Self::Corrupt { path, doing, detail: source.to_string() }
            }
            (ErrorCode::CannotOpen, _) => Self::Open { path, detail: source.to_string() },
            _ => Self::Sqlite { path, doing, source },
        }
    }
}

fn offer(near: &[String], runs: u32) -> String {
    match near {
        [] if runs == 0 => "it has no runs yet".into(),
        [] => format!("`thru runs` lists its runs ({runs})"),
        near => format!("did you mean {}?", near.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_of_sqlite_names_the_file_and_a_way_out() {
        let path = Path::new("/data/runs.sqlite");
        let cases = [
            (ffi::SQLITE_FULL, "no space left"),
            (ffi::SQLITE_IOERR_SHMSIZE, "no space left"),
            (ffi::SQLITE_READONLY, "cannot be written"),
            (ffi::SQLITE_BUSY, "locked for 10 s"),
            (ffi::SQLITE_NOTADB, "damaged or is not a store"),
            (ffi::SQLITE_CORRUPT, "damaged or is not a store"),
            (ffi::SQLITE_CANTOPEN, "check the permissions"),
            (ffi::SQLITE_NOMEM, "cannot append a trial"),
        ];
        for (code, words) in cases {
            let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let message = StoreError::sqlite(path, "append a trial", source).to_string();
            assert!(message.contains(words), "{code}: {message}");
            assert!(message.contains("/data/runs.sqlite") && message.contains("`--store FILE`"), "{code}: {message}");
        }
    }
}
