//! Changes settings and puts them back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Change, Setting};

use super::allowance::Allowance;
use super::backend::Backend;
use super::error::{SettingValueError, TuneError};
use super::journal::{Entry, Guard, Journal, JournalFile, boot_id};
use super::kinds::{self, Knob, is_absent, knob};
use super::namespace::Namespace;

/// Interval between attempts to get a lease that another process holds.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// One owner's changes of settings. When it is dropped, its changes are undone in reverse order, unless they are to be
/// kept.
pub struct Tuner {
    backend: Arc<dyn Backend>,
    journal: Journal,
    command: String,
    wait: Duration,
    allowance: Allowance,
    file_record: Option<JournalFile>,
}

impl Tuner {
    /// A tuner without changes. `command` identifies it to others; it waits at most `wait` for a setting that another
    /// process uses.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, journal: Journal, command: impl Into<String>, wait: Duration) -> Self {
        Self { backend, journal, command: command.into(), wait, allowance: Allowance::All, file_record: None }
    }

    /// The same for a client that may not change everything.
    #[must_use]
    pub fn within(mut self, allowance: Allowance) -> Self {
        self.allowance = allowance;
        self
    }

    /// Checks settings as far as is possible without changing them, and returns their current values.
    ///
    /// # Errors
    /// A key that does not exist, an invalid value, or a setting that another process uses.
    pub fn preview(&self, settings: &[Setting]) -> Result<Vec<Change>, TuneError> {
        let backend = self.backend.as_ref();
        let planned = checked(backend, settings, &self.allowance)?;
        planned
            .iter()
            .map(|(knob, setting)| {
                let before = knob.read(backend)?;
                self.free(&self.journal.lock()?, knob)?;
                let host_wide = knob.control.host_wide();
                let note = knob.control.cuts().then(|| "may cut connections over this device".to_owned());
                let (key, requested, now) = (knob.key.clone(), setting.value.clone(), before.clone());
                Ok(Change { key, before, requested, now, host_wide, note })
            })
            .collect()
    }

    /// Changes settings in the given order: all, or none.
    ///
    /// # Errors
    /// As [`preview`](Self::preview), and errors of the host; the changes of this call are then undone.
    pub fn tune(&mut self, settings: &[Setting]) -> Result<Vec<Change>, TuneError> {
        let backend = self.backend.clone();
        let planned = checked(backend.as_ref(), settings, &self.allowance)?;
        // All are checked before the first is changed: most mistakes then change nothing.
        for (knob, _) in &planned {
            knob.read(backend.as_ref())?;
        }
        let first = self.mark();
        let mut changes = Vec::new();
        for (knob, setting) in &planned {
            match self.one(backend.as_ref(), knob, &setting.value) {
                Ok(change) => changes.push(change),
                Err(error) => {
                    self.back_to(first);
                    return Err(error);
                }
            }
        }
        Ok(changes)
    }

    /// Restores everything, the last change first.
    pub fn revert(&mut self) -> Vec<Change> {
        self.back_to(0)
    }

    /// Number of its unrestored changes; for [`revert_to`](Self::revert_to).
    #[must_use]
    pub fn mark(&self) -> usize {
        self.file_record.as_ref().map_or(0, |file_record| file_record.record.entries.len())
    }

    /// Restores what was changed since [`mark`](Self::mark) was called.
    pub fn revert_to(&mut self, mark: usize) -> Vec<Change> {
        self.back_to(mark)
    }

    /// Keeps all changes; `thru tune revert` restores them. Returns the journal's name for them, if anything was
    /// changed.
    ///
    /// # Errors
    /// The journal cannot be written; the settings still belong to this tuner.
    pub fn keep(&mut self) -> Result<Option<String>, TuneError> {
        let Some(mut file_record) = self.file_record.take() else { return Ok(None) };
        match file_record.keep() {
            Ok(()) => Ok(Some(file_record.record.owner.id.clone())),
            Err(error) => {
                self.file_record = Some(file_record);
                Err(error)
            }
        }
    }

    /// Whether one of these could cut the connection that carries the request.
    #[must_use]
    pub fn cuts(&self, settings: &[Setting]) -> bool {
        settings.iter().any(|setting| knob(self.backend.as_ref(), &setting.key).is_ok_and(|knob| knob.control.cuts()))
    }

    /// Ends like a killed owner: the lock is dropped, the file stays.
    #[cfg(test)]
    pub(crate) fn forget(&mut self) {
        self.file_record = None;
    }

    fn one(&mut self, backend: &dyn Backend, knob: &Knob, value: &str) -> Result<Change, TuneError> {
        let host_wide = knob.control.host_wide();
        let (before, entry) = self.plan(backend, knob, value, host_wide)?;
        let Some(file_record) = self.file_record.as_mut() else { unreachable!("plan opens the journal record") };
        let now = if knob.control.same(&before, value) {
            before.clone()
        } else {
            knob.write(backend, value, "set")?;
            knob.read(backend)?
        };
        file_record.now(entry, &now)?;
        if !knob.control.took(value, &now) {
            let reason = SettingValueError::Changed { now };
            return Err(TuneError::Value { key: knob.key.clone(), value: value.into(), reason });
        }
        let rounded = value.parse::<u64>().is_ok() && !knob.control.same(value, &now);
        let note = rounded.then(|| format!("the device set {now} instead"));
        Ok(Change { key: knob.key.clone(), before, requested: value.into(), now, host_wide, note })
    }

    /// Acquires a setting and records its current and its new value.
    fn plan(
        &mut self,
        backend: &dyn Backend,
        knob: &Knob,
        value: &str,
        host_wide: bool,
    ) -> Result<(String, usize), TuneError> {
        let deadline = Instant::now() + self.wait;
        loop {
            let journal = self.journal.clone();
            let guard = journal.lock()?;
            match self.free(&guard, knob) {
                Ok(()) => {
                    let file_record = match &mut self.file_record {
                        Some(file_record) => file_record,
                        none => none.insert(guard.begin(&self.command)?),
                    };
                    // Read under the lock: the previous owner has restored it by now.
                    let before = knob.read(backend)?;
                    let entry = file_record.plan(&knob.key, &before, value, host_wide)?;
                    return Ok((before, entry));
                }
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(_) => {}
            }
            drop(guard);
            std::thread::sleep(RETRY_INTERVAL);
        }
    }

    /// Whether no other live process uses a setting, under any key: in this network namespace, or anywhere on the host
    /// if it is host-wide.
    fn free(&self, guard: &Guard<'_>, knob: &Knob) -> Result<(), TuneError> {
        let here = current(&knob.key)?;
        let own = self.file_record.as_ref().map(|file_record| file_record.record.owner.id.clone());
        for seen in guard.sessions()? {
            let owner = &seen.record.owner;
            let local = owner.namespace.is(&here);
            let same =
                |key: &str| kinds::knob(self.backend.as_ref(), key).map_or(key == knob.key, |other| other.meets(knob));
            let holds = |entry: &Entry| !entry.back && (local || knob.control.host_wide()) && same(&entry.key);
            if seen.orphan.is_none() && Some(&owner.id) != own.as_ref() && seen.record.entries.iter().any(holds) {
                return Err(TuneError::Busy {
                    key: knob.key.clone(),
                    holder: format!("'{}' (process {})", owner.command, owner.pid),
                    scope: if local { "" } else { ", in another network namespace, and acts on the whole host" },
                });
            }
        }
        Ok(())
    }

    fn back_to(&mut self, first: usize) -> Vec<Change> {
        let Some(mut file_record) = self.file_record.take() else { return Vec::new() };
        let changes = put_back(self.backend.as_ref(), &mut file_record, first, false);
        if file_record.is_done() {
            // A file that cannot be removed is found by the next start and has nothing left to do.
            let _ = file_record.close();
        } else if first > 0 {
            self.file_record = Some(file_record);
        }
        changes
    }
}

impl Drop for Tuner {
    fn drop(&mut self) {
        self.revert();
    }
}

fn current(key: &str) -> Result<Namespace, TuneError> {
    Namespace::current().map_err(|source| TuneError::host("read", key, false, source))
}

/// The settings with their operations, each once, but for an interface that is taken down first and up again afterwards.
fn checked<'a>(
    backend: &dyn Backend,
    settings: &'a [Setting],
    allowance: &Allowance,
) -> Result<Vec<(Knob, &'a Setting)>, TuneError> {
    let mut planned: Vec<(Knob, &Setting)> = Vec::new();
    for setting in settings {
        let knob = knob(backend, &setting.key)?;
        allowance.check(&knob.key)?;
        knob.check(&setting.value)?;
        let earlier = planned.iter().rev().find(|(other, _)| other.key == knob.key);
        let goes_on = |earlier: &Setting| knob.key.ends_with(".state") && earlier.value != setting.value;
        if earlier.is_some_and(|(_, earlier)| !goes_on(earlier)) {
            let (key, value) = (knob.key, setting.value.clone());
            return Err(TuneError::Value { key, value, reason: SettingValueError::Twice });
        }
        planned.push((knob, setting));
    }
    Ok(planned)
}

/// Restores a session's settings from `first` on, the last first. A note names what was not restored, and why.
pub(crate) fn put_back(backend: &dyn Backend, file_record: &mut JournalFile, first: usize, force: bool) -> Vec<Change> {
    let mut changes = Vec::new();
    if file_record.record.owner.boot_id != boot_id() {
        // The kernel that had these values no longer runs.
        for number in first..file_record.record.entries.len() {
            let _ = file_record.back(number);
        }
        return changes;
    }
    let namespace = file_record.record.owner.namespace;
    for number in (first..file_record.record.entries.len()).rev() {
        let entry = file_record.record.entries[number].clone();
        if entry.back {
            continue;
        }
        let done = match namespace.within(|| undo(backend, &entry, force)) {
            Ok(Some(done)) => done,
            Ok(None) if entry.host_wide => undo(backend, &entry, force),
            Ok(None) => Undone {
                now: None,
                fate: Fate::Back,
                note: Some(
                    "its network namespace no longer \
                exists"
                        .into(),
                ),
            },
            Err(error) => {
                let note = format!(
                    "its network namespace cannot be entered: {error}; run as root, or run thru in \
                    that namespace"
                );
                Undone { now: None, fate: Fate::Stays, note: Some(note) }
            }
        };
        // If the journal cannot be written any more, the next start finds the value already restored.
        let _ = match done.fate {
            Fate::Back => file_record.back(number),
            Fate::Left => file_record.left(number),
            Fate::Stays => Ok(()),
        };
        let was = entry.now.unwrap_or(entry.requested);
        changes.push(Change {
            key: entry.key,
            now: done.now.unwrap_or_else(|| was.clone()),
            before: was,
            requested: entry.before,
            host_wide: entry.host_wide,
            note: done.note,
        });
    }
    changes
}

/// Result of restoring a setting.
struct Undone {
    now: Option<String>,
    fate: Fate,
    note: Option<String>,
}

enum Fate {
    /// It is restored, or no longer exists.
    Back,
    /// Another program has changed it.
    Left,
    /// It could not be restored; the journal keeps it.
    Stays,
}

fn undo(backend: &dyn Backend, entry: &Entry, force: bool) -> Undone {
    let undone = |now: Option<String>, fate, note: Option<String>| Undone { now, fate, note };
    let knob = match knob(backend, &entry.key) {
        Ok(knob) => knob,
        Err(error) => return undone(None, Fate::Stays, Some(error.to_string())),
    };
    let now = match knob.control.read(backend) {
        Ok(now) => now,
        Err(error) if is_absent(&error) => {
            return undone(
                None,
                Fate::Back,
                Some(
                    "the device or object that it was \
            set on no longer exists"
                        .into(),
                ),
            );
        }
        Err(error) => return undone(None, Fate::Stays, Some(format!("cannot be read: {error}"))),
    };
    if knob.control.same(&now, &entry.before) {
        return undone(Some(now), Fate::Back, None);
    }
    // An owner that ended between the change and reading it back did not record its own value: the current one is
    // taken for it.
    if let Some(set) = entry.now.as_ref().filter(|set| !force && !knob.control.same(set, &now)) {
        let note = format!(
            "another program changed it from {set} to {now}, so thru left it; `--force` sets it to {}",
            entry.before
        );
        return undone(Some(now), Fate::Left, Some(note));
    }
    if let Err(error) = knob.write(backend, &entry.before, "put back") {
        return undone(Some(now), Fate::Stays, Some(error.to_string()));
    }
    match knob.read(backend) {
        Ok(now) if knob.control.same(&now, &entry.before) => undone(Some(now), Fate::Back, None),
        Ok(now) => {
            let note = format!("wrote {}, read back {now}", entry.before);
            undone(Some(now), Fate::Stays, Some(note))
        }
        Err(error) => undone(None, Fate::Stays, Some(error.to_string())),
    }
}
