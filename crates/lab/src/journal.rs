//! The record on disk of every lab, so that the remains of a crashed owner can be found.
//!
//! One file per lab. Its owner holds a lock on it, which the kernel drops when the owner ends in any way; a file that
//! can be locked is therefore a lab without an owner. Unlike a process number, a lock cannot be confused with a later
//! process.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::topology::AddressBlock;
use crate::{LabError, Subnets};

/// The journal's directory. There is no fallback: if /run cannot be written, `ip netns` does not work either.
const DIRECTORY: &str = "/run/throughline/lab";

/// A lab's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Name of the lab, and prefix of its namespaces.
    pub(crate) lab: String,
    /// The process that made it. For display; the lock shows whether it still runs.
    pub(crate) owner_pid: u32,
    /// Its namespaces. Its links exist only inside them and are removed with them.
    pub(crate) namespaces: Vec<String>,
    /// Its subnets, if it chose any itself.
    pub(crate) subnets: Option<Subnets>,
    /// The address block of its networks, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) block: Option<AddressBlock>,
    /// What was built, for labs of `thru lab`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) built: Option<Built>,
}

/// Description of a lab of `thru lab`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Built {
    /// Name of its topology.
    pub(crate) topology: String,
    /// Its hosts, without routers and switches.
    pub(crate) hosts: Vec<String>,
    /// Whether it stays up until it is taken down.
    pub(crate) stays: bool,
}

impl Record {
    /// The record of an empty lab of this process.
    pub(crate) fn of(lab: String) -> Self {
        Self { lab, owner_pid: std::process::id(), namespaces: Vec::new(), subnets: None, block: None, built: None }
    }

    /// The destinations of its networks, as a routing table writes them.
    pub(crate) fn destinations(&self) -> Vec<String> {
        let subnets = self.subnets.iter().flat_map(Subnets::destinations);
        subnets.chain(self.block.into_iter().flat_map(AddressBlock::destinations)).collect()
    }
}

/// The journal's directory, which only its owner may write.
#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
}

/// A record whose lock this process holds.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) record: Record,
    pub(crate) path: PathBuf,
    _lock: File,
}

impl Journal {
    /// The journal of this machine, created if needed.
    pub(crate) fn open() -> Result<Self, LabError> {
        Self::at(Path::new(DIRECTORY))
    }

    /// The journal of this machine; `None` if no lab was ever made.
    pub(crate) fn existing() -> Result<Option<Self>, LabError> {
        let directory = PathBuf::from(DIRECTORY);
        match fs::read_dir(&directory) {
            Ok(_) => Self::at(&directory).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(LabError::Hidden { path: directory }),
            Err(source) => Err(failure("read", &directory, source)),
        }
    }

    fn at(directory: &Path) -> Result<Self, LabError> {
        let fail = |source| failure("create a directory", directory, source);
        // Its content is deleted with root's privileges, so no other user may have written it.
        host::own_directory(directory).map_err(fail)?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// Writes and locks a record. It gets its final name only when both are done, so that it is never taken for one
    /// without an owner.
    pub(crate) fn enter(&self, record: Record) -> Result<Entry, LabError> {
        // A shared lock for drafts; the removal of drafts takes an exclusive one.
        let drafting = File::open(&self.directory).map_err(|source| failure("open", &self.directory, source))?;
        drafting.lock_shared().map_err(|source| failure("lock", &self.directory, source))?;
        let path = self.directory.join(format!("{}.json", record.lab));
        let draft = path.with_extension("new");
        let fail = |source| failure("write", &draft, source);
        let lock = File::create_new(&draft).map_err(fail)?;
        lock.lock().map_err(fail)?;
        let written = serde_json::to_writer(&lock, &record).map_err(io::Error::from);
        // A link, unlike a rename, does not replace the record of another lab.
        let published = written.and_then(|()| fs::hard_link(&draft, &path));
        fs::remove_file(&draft).map_err(fail)?;
        published.map_err(|source| failure("write", &path, source))?;
        Ok(Entry { record, path, _lock: lock })
    }

    /// All records, with or without an owner; what is not a record is left out.
    pub(crate) fn records(&self) -> Result<Vec<Record>, LabError> {
        Ok(self.files()?.iter().filter_map(|path| read(path, &File::open(path).ok()?)).collect())
    }

    /// The record of that lab and whether its owner is alive; `None` if there is no such lab.
    pub(crate) fn record(&self, lab: &str) -> Result<Option<(Record, bool)>, LabError> {
        Ok(self.states()?.into_iter().find(|(record, _)| record.lab == lab))
    }

    /// All records, each with whether its owner is alive.
    pub(crate) fn states(&self) -> Result<Vec<(Record, bool)>, LabError> {
        let mut states = Vec::new();
        for path in self.files()? {
            let Ok(lock) = File::open(&path) else { continue }; // removed since
            let Some(record) = read(&path, &lock) else { continue };
            // Shared, so that processes that only query do not take each other for the owner.
            let lives = matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock));
            states.push((record, lives));
        }
        Ok(states)
    }

    /// Its path.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of a lab's file beside its record: `end` is `token`, `sock` or `agents`.
    pub(crate) fn beside(&self, lab: &str, end: &str) -> PathBuf {
        self.directory.join(format!("{lab}.{end}"))
    }

    /// Removes drafts that never became records: no such lab was made yet.
    fn sweep(&self) -> Result<(), LabError> {
        let fail = |source| failure("remove the drafts of", &self.directory, source);
        let alone = File::open(&self.directory).map_err(fail)?;
        if alone.try_lock().is_ok() {
            for draft in self.entries("new")? {
                fs::remove_file(draft).map_err(fail)?;
            }
        }
        Ok(())
    }

    /// The records without an owner, locked for this process.
    pub(crate) fn stale(&self) -> Result<Vec<Entry>, LabError> {
        self.sweep()?;
        let mut stale = Vec::new();
        for path in self.files()? {
            let Ok(lock) = File::open(&path) else { continue }; // removed since
            match lock.try_lock() {
                // If the name was reused in between, it is another file's: this record has been removed already.
                Ok(()) if lock.metadata().is_ok_and(|file| file.nlink() > 0) => {
                    stale.extend(read(&path, &lock).map(|record| Entry { record, path, _lock: lock }));
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(failure("lock a file", &path, source)),
            }
        }
        Ok(stale)
    }

    fn files(&self) -> Result<Vec<PathBuf>, LabError> {
        self.entries("json")
    }

    fn entries(&self, end: &str) -> Result<Vec<PathBuf>, LabError> {
        let fail = |source| failure("list the files", &self.directory, source);
        let entries = fs::read_dir(&self.directory).map_err(fail)?;
        let paths = entries.map(|entry| Ok(entry.map_err(fail)?.path())).collect::<Result<Vec<_>, LabError>>()?;
        Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == end)).collect())
    }
}

/// The record in a file at that path, if valid: named after its lab, and naming only namespaces with the lab's prefix.
fn read(path: &Path, file: &File) -> Option<Record> {
    let record: Record = serde_json::from_str(&io::read_to_string(file).ok()?).ok()?;
    let own = |namespace: &String| namespace.strip_prefix(&record.lab).is_some_and(|rest| rest.starts_with('-'));
    let sound = path.file_stem()? == record.lab.as_str() && record.namespaces.iter().all(own);
    sound.then_some(record)
}

fn failure(operation: &'static str, path: &Path, source: io::Error) -> LabError {
    LabError::Journal { operation, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(lab: &str) -> Record {
        Record {
            lab: lab.into(),
            owner_pid: 1,
            namespaces: vec![format!("{lab}-a"), format!("{lab}-b")],
            subnets: Some(Subnets { v4: [198, 18, 0, 4].into(), v6: [0xfd00, 0, 0, 1, 0, 0, 0, 0].into() }),
            block: None,
            built: None,
        }
    }

    #[test]
    fn a_record_is_stale_when_its_owner_lets_go_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::at(&folder.path().join("lab")).unwrap();
        let entry = journal.enter(record("thru-1")).unwrap();
        assert_eq!(journal.records().unwrap(), [record("thru-1")]);
        assert_eq!(journal.stale().unwrap().len(), 0);
        drop(entry);
        // A process that another test is starting may hold a copy of the lock until it runs its program.
        let mut stale = journal.stale().unwrap();
        while stale.is_empty() {
            stale = journal.stale().unwrap();
        }
        assert_eq!(stale.iter().map(|entry| &entry.record).collect::<Vec<_>>(), [&record("thru-1")]);
        // A record that is being reaped is not stale for another process.
        assert_eq!(journal.stale().unwrap().len(), 0);
    }

    #[test]
    fn a_draft_is_removed_once_no_process_is_drafting() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::at(folder.path()).unwrap();
        let draft = folder.path().join("thru-1.new");
        fs::write(&draft, "{").unwrap();
        let drafting = File::open(folder.path()).unwrap();
        drafting.lock_shared().unwrap();
        assert_eq!(journal.stale().unwrap().len(), 0);
        assert!(draft.exists());
        drop(drafting);
        // As above: a process that another test is starting may hold a copy of the lock.
        while draft.exists() {
            assert_eq!(journal.stale().unwrap().len(), 0);
        }
    }

    #[test]
    fn a_lab_that_exists_cannot_be_recorded_twice() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::at(folder.path()).unwrap();
        let _first = journal.enter(record("thru-1")).unwrap();
        let error = journal.enter(record("thru-1")).unwrap_err().to_string();
        assert!(error.contains("thru-1"), "{error}");
    }

    #[test]
    fn records_with_foreign_namespaces_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::at(folder.path()).unwrap();
        let foreign = Record { namespaces: vec!["production".into()], ..record("thru-1") };
        fs::write(folder.path().join("thru-1.json"), serde_json::to_string(&foreign).unwrap()).unwrap();
        fs::write(folder.path().join("thru-2.json"), serde_json::to_string(&record("thru-3")).unwrap()).unwrap();
        fs::write(folder.path().join("thru-4.json"), "{").unwrap();
        assert_eq!(journal.stale().unwrap().len(), 0);
        assert_eq!(journal.records().unwrap(), []);
    }

    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = Journal::at(folder.path()).unwrap_err().to_string();
        assert!(error.contains("another user owns"), "{error}");
    }
}
