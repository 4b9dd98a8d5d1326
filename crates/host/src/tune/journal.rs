//! The record on disk of every changed setting, so that each can be restored even after its owner has crashed.
//!
//! A session that changes settings has one file: a line of JSON for each step, on disk before the step is done. Its
//! owner holds a lock on it, which the kernel drops when the owner ends in any way. A process that wants to change
//! something holds the lock of the directory while it checks who uses what and records its plan.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::error::TuneError;
use super::namespace::Namespace;
use crate::own_directory;

/// Root's directory.
const DIRECTORY: &str = "/run/throughline/tune";

/// The directory of all sessions' files.
#[derive(Debug, Clone)]
pub struct Journal {
    directory: PathBuf,
}

/// The owner of changed settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// Name of the session.
    pub(crate) id: String,
    /// Process number; for display, and to recognise a later process with the same number.
    pub(crate) pid: u32,
    /// When that process started, in clock ticks since the host did (proc_pid_stat(5), field 22).
    pub(crate) started_ticks: u64,
    /// Its command.
    pub(crate) command: String,
    /// The host's boot: after another boot nothing of it is left to restore.
    pub(crate) boot_id: String,
    /// The network namespace of its settings.
    pub(crate) namespace: Namespace,
    /// Wall-clock time, ns since the Unix epoch; for display.
    pub(crate) unix_ns: u64,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// The first step.
    Open(Owner),
    /// A setting is about to be changed.
    Plan { key: String, before: String, requested: String, host_wide: bool },
    /// It was changed, and this was read back.
    Now { entry: usize, now: String },
    /// The owner keeps its settings on purpose.
    Keep,
    /// It was restored, or there is nothing left to restore.
    Back { entry: usize },
    /// Another program had changed it; it was left.
    Left { entry: usize },
}

/// A setting of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) before: String,
    pub(crate) requested: String,
    /// The value read back; `None` if the owner ended during the change.
    pub(crate) now: Option<String>,
    pub(crate) host_wide: bool,
    /// Nothing is left to do.
    pub(crate) back: bool,
    /// Another program had changed it.
    pub(crate) left: bool,
}

/// A session as recorded in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalRecord {
    pub(crate) owner: Owner,
    pub(crate) entries: Vec<Entry>,
    pub(crate) kept: bool,
}

/// A session's file, with its lock.
#[derive(Debug)]
pub(crate) struct JournalFile {
    path: PathBuf,
    file: File,
    pub(crate) record: JournalRecord,
}

/// A session's file as other processes see it.
pub(crate) struct Seen {
    pub(crate) record: JournalRecord,
    /// The file and its lock, if no process holds it.
    pub(crate) orphan: Option<JournalFile>,
}

/// The lock of the directory, during a check and a write.
pub(crate) struct Guard<'a> {
    journal: &'a Journal,
    _lock: File,
}

impl Journal {
    /// The journal at `directory`, or at its default place: /run/throughline/tune for root,
    /// $XDG_RUNTIME_DIR/throughline/tune for others. All processes of a host share it, in any network namespace.
    ///
    /// # Errors
    /// The directory cannot be created, or others may write to it.
    pub fn open(directory: Option<&Path>) -> Result<Self, TuneError> {
        if let Some(directory) = directory {
            return Self::at(directory);
        }
        let root = rustix::process::geteuid().is_root();
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(|own| PathBuf::from(own).join("throughline/tune"));
        match (root, own) {
            (true, Some(own)) => Self::at(Path::new(DIRECTORY)).or_else(|error| Self::at(&own).map_err(|_| error)),
            (false, Some(own)) => Self::at(&own),
            (_, None) => Self::at(Path::new(DIRECTORY)),
        }
    }

    fn at(directory: &Path) -> Result<Self, TuneError> {
        let fail = |source| failure("open", directory, source);
        // Its content is written to the kernel with the reader's privileges, so no other user may have written it.
        own_directory(directory).map_err(fail)?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// Waits for the directory's lock.
    pub(crate) fn lock(&self) -> Result<Guard<'_>, TuneError> {
        let path = self.directory.join("lock");
        let fail = |source| failure("lock", &path, source);
        let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(fail)?;
        lock.lock().map_err(fail)?;
        Ok(Guard { journal: self, _lock: lock })
    }
}

impl Guard<'_> {
    /// Creates a session's file.
    pub(crate) fn begin(&self, command: &str) -> Result<JournalFile, TuneError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let pid = std::process::id();
        let directory = &self.journal.directory;
        let fail = |source| failure("write", directory, source);
        let owner = Owner {
            id: format!("t{now:x}"),
            pid,
            started_ticks: started_ticks(pid).unwrap_or(0),
            command: command.into(),
            boot_id: boot_id(),
            namespace: Namespace::current().map_err(fail)?,
            unix_ns: now,
        };
        let path = directory.join(format!("{}.jsonl", owner.id));
        let handle = File::options().create_new(true).append(true).read(true).open(&path).map_err(fail)?;
        handle.lock().map_err(fail)?;
        let record = JournalRecord { owner: owner.clone(), entries: Vec::new(), kept: false };
        let mut file = JournalFile { path, file: handle, record };
        file.append(&Line::Open(owner))?;
        // The name as well: after a power cut, a file without a directory entry would be lost.
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(fail)?;
        Ok(file)
    }

    /// All sessions, the newest first. Files without an owner's line are remains of a power cut and are removed.
    pub(crate) fn sessions(&self) -> Result<Vec<Seen>, TuneError> {
        let directory = &self.journal.directory;
        let fail = |source| failure("read", directory, source);
        let mut found = Vec::new();
        for entry in fs::read_dir(directory).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.extension().is_none_or(|extension| extension != "jsonl") {
                continue;
            }
            let Ok(mut file) = File::options().read(true).append(true).open(&path) else { continue };
            let free = match file.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => false,
                Err(TryLockError::Error(source)) => return Err(failure("lock", &path, source)),
            };
            let mut text = String::new();
            file.rewind()
                .and_then(|()| file.read_to_string(&mut text))
                .map_err(|source| failure("read", &path, source))?;
            match JournalRecord::of(&text) {
                Some(record) => {
                    let orphan = free.then(|| JournalFile { path, file, record: record.clone() });
                    found.push(Seen { record, orphan });
                }
                None if free => fs::remove_file(&path).map_err(|source| failure("remove", &path, source))?,
                None => {}
            }
        }
        found.sort_by(|one, other| other.record.owner.id.cmp(&one.record.owner.id));
        Ok(found)
    }
}

impl JournalRecord {
    /// The content of a file. A truncated last line is ignored: its step was not done yet.
    fn of(text: &str) -> Option<Self> {
        let mut lines = text.lines().map_while(|line| serde_json::from_str::<Line>(line).ok());
        let Some(Line::Open(owner)) = lines.next() else { return None };
        let mut record = Self { owner, entries: Vec::new(), kept: false };
        lines.for_each(|line| record.take(line));
        Some(record)
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Open(_) => {}
            Line::Plan { key, before, requested, host_wide } => {
                self.entries.push(Entry { key, before, requested, now: None, host_wide, back: false, left: false });
            }
            Line::Now { entry, now } => {
                if let Some(entry) = self.entries.get_mut(entry) {
                    entry.now = Some(now);
                }
            }
            Line::Keep => self.kept = true,
            Line::Back { entry } => {
                if let Some(entry) = self.entries.get_mut(entry) {
                    entry.back = true;
                }
            }
            Line::Left { entry } => {
                if let Some(entry) = self.entries.get_mut(entry) {
                    entry.left = true;
                }
            }
        }
    }
}

impl JournalFile {
    /// A line, on disk when this returns.
    fn append(&mut self, line: &Line) -> Result<(), TuneError> {
        let fail = |source| failure("write", &self.path, source);
        let mut text = serde_json::to_string(line).map_err(|error| fail(error.into()))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(fail)?;
        self.file.sync_data().map_err(fail)?;
        self.record.take(line.clone());
        Ok(())
    }

    /// Records that a setting is about to be changed; returns its number.
    pub(crate) fn plan(
        &mut self,
        key: &str,
        before: &str,
        requested: &str,
        host_wide: bool,
    ) -> Result<usize, TuneError> {
        let line = Line::Plan { key: key.into(), before: before.into(), requested: requested.into(), host_wide };
        self.append(&line)?;
        Ok(self.record.entries.len() - 1)
    }

    pub(crate) fn now(&mut self, entry: usize, now: &str) -> Result<(), TuneError> {
        self.append(&Line::Now { entry, now: now.into() })
    }

    pub(crate) fn keep(&mut self) -> Result<(), TuneError> {
        self.append(&Line::Keep)
    }

    pub(crate) fn back(&mut self, entry: usize) -> Result<(), TuneError> {
        self.append(&Line::Back { entry })
    }

    pub(crate) fn left(&mut self, entry: usize) -> Result<(), TuneError> {
        self.append(&Line::Left { entry })
    }

    /// Whether everything was restored.
    pub(crate) fn is_done(&self) -> bool {
        self.record.entries.iter().all(|entry| entry.back)
    }

    /// Removes the file.
    pub(crate) fn close(self) -> Result<(), TuneError> {
        match fs::remove_file(&self.path) {
            // Its owner removed it first.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result.map_err(|source| failure("remove", &self.path, source)),
        }
    }
}

fn failure(operation: &'static str, path: &Path, source: io::Error) -> TuneError {
    TuneError::Journal { operation, path: path.to_owned(), source }
}

/// This boot of the host (random(4)).
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command may contain spaces; 20 fields are between its closing bracket and the time.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> (tempfile::TempDir, Journal) {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let journal = Journal::open(Some(&folder.path().join("tune"))).unwrap_or_else(|error| panic!("{error}"));
        (folder, journal)
    }

    #[test]
    fn what_was_written_is_read_back_and_a_truncated_line_is_not() -> Result<(), TuneError> {
        let (_folder, journal) = journal();
        let mut file = journal.lock()?.begin("test")?;
        let entry = file.plan("dev.a.mtu", "1500", "9000", false)?;
        file.now(entry, "9000")?;
        file.plan("sysctl.b", "1", "2", true)?;
        let path = file.path.clone();
        let whole = file.record.clone();
        assert!(whole.owner.started_ticks > 0);
        // A live process holds it.
        assert!(journal.lock()?.sessions()?[0].orphan.is_none());
        drop(file);
        let text = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(JournalRecord::of(&text), Some(whole));
        let cut = JournalRecord::of(&text[..text.len() - 5]).map(|record| record.entries.len());
        assert_eq!(cut, Some(1));
        assert!(journal.lock()?.sessions()?[0].orphan.is_some());
        Ok(())
    }

    #[test]
    fn a_file_without_an_owner_is_removed() -> Result<(), TuneError> {
        let (_folder, journal) = journal();
        let path = journal.directory.join("t1.jsonl");
        fs::write(&path, "{\"line\":\"op").unwrap_or_else(|error| panic!("{error}"));
        assert!(journal.lock()?.sessions()?.is_empty());
        assert!(!path.exists());
        Ok(())
    }
}
