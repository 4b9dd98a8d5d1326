//! Settings of a host: reads them, changes them, and restores them, also after a crash.
//!
//! A key names a setting ([`model::Setting`]); the registry of kinds (`kinds/`) knows how each is read, written and
//! compared. A [`Tuner`] changes settings: it records each previous value on disk ([`Journal`]), changes the setting,
//! reads it back, and restores all in reverse order when it is done. [`recover`] restores what a killed owner left;
//! every command that tunes or serves calls it first.

mod allowance;
mod backend;
mod error;
mod ethtool;
#[cfg(test)]
mod fake;
mod journal;
mod kinds;
mod link;
mod namespace;
#[cfg(test)]
mod tests;
mod tuner;

use model::{Change, JournalEntry, Reverted, SettingNow};

pub use allowance::{Allowance, AllowanceError, KeyPattern};
pub use backend::{Backend, RealBackend};
pub use error::{SettingValueError, TuneError, TuneFault};
pub use ethtool::{DeviceNumber, Feature, Group};
pub use journal::Journal;
pub use namespace::Namespace;
pub use tuner::Tuner;

use journal::Seen;
use kinds::{KINDS, knob};
use tuner::put_back;

/// What `thru tune show` lists when it is given no key.
const USUAL: [&str; 9] = [
    "sysctl.net.core.*",
    "sysctl.net.ipv4.tcp_*",
    "sysctl.net.ipv4.udp_*",
    "dev.*",
    "qdisc.*",
    "cc.*.*",
    "route.*cwnd",
    "cpu.*",
    "irq.*",
];

/// The forms of keys, and what they set.
#[must_use]
pub fn forms() -> Vec<(&'static str, &'static str)> {
    KINDS.iter().flat_map(|kind| kind.forms().iter().copied()).collect()
}

/// Whether a word is meant as a key or a pattern of keys, not as a host: it begins as keys do.
#[must_use]
pub fn is_key(word: &str) -> bool {
    let first = word.split('.').next().unwrap_or_default();
    word.contains('*') || (word.contains('.') && forms().iter().any(|(form, _)| form.split('.').next() == Some(first)))
}

/// Whether a word is probably a misspelt key: its first part is a letter or two off.
#[must_use]
pub fn resembles_key(word: &str) -> bool {
    let Some((first, _)) = word.split_once('.') else { return false };
    let kinds = forms();
    let mut kinds = kinds.iter().filter_map(|(form, _)| form.split('.').next());
    !is_key(word) && first.len() > 2 && kinds.any(|kind| strsim::damerau_levenshtein(kind, first) <= 1 + kind.len() / 5)
}

/// Whether a word has the form of a journal entry's name.
#[must_use]
pub fn is_entry(word: &str) -> bool {
    word.strip_prefix('t').is_some_and(|rest| rest.len() > 12 && rest.chars().all(|letter| letter.is_ascii_hexdigit()))
}

/// The settings that match keys and patterns (with `*`); without any, the usual ones. Settings of a pattern that
/// cannot be read or are not allowed are left out.
///
/// # Errors
/// A key that does not exist, is not allowed or cannot be read; a pattern without a match.
pub fn show(backend: &dyn Backend, words: &[String], allowance: &Allowance) -> Result<Vec<SettingNow>, TuneError> {
    let usual: Vec<String> = USUAL.iter().map(|word| (*word).to_owned()).collect();
    let mut found = Vec::new();
    let mut known: Option<Vec<String>> = None;
    for word in if words.is_empty() { &usual } else { words } {
        if !word.contains('*') {
            found.push(now(backend, word, allowance)?);
            continue;
        }
        let keys = known.get_or_insert_with(|| KINDS.iter().flat_map(|kind| kind.keys(backend)).collect());
        let before = found.len();
        found.extend(keys.iter().filter(|key| fits(word, key)).filter_map(|key| now(backend, key, allowance).ok()));
        if found.len() == before && !words.is_empty() {
            let hint = "no setting matches this pattern; `thru tune show` lists the usual ones".into();
            return Err(TuneError::Unknown { key: word.clone(), hint });
        }
    }
    Ok(found)
}

fn now(backend: &dyn Backend, key: &str, allowance: &Allowance) -> Result<SettingNow, TuneError> {
    let knob = knob(backend, key)?;
    allowance.check(&knob.key)?;
    Ok(SettingNow { value: knob.read(backend)?, host_wide: knob.control.host_wide(), key: knob.key })
}

/// Whether a key matches a pattern, in which `*` matches any text.
fn fits(pattern: &str, key: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = key.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Which sessions are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// Those of this network namespace, and all host-wide settings.
    Here,
    /// All.
    All,
    /// One, by its name.
    One(String),
}

/// Restores what owners that have ended left. Settings kept on purpose, and those that another program has changed,
/// stay.
///
/// # Errors
/// The journal cannot be read.
pub fn recover(journal: &Journal, backend: &dyn Backend) -> Result<Vec<Reverted>, TuneError> {
    settle(journal, backend, |seen| {
        let open = seen.record.entries.iter().any(|entry| !entry.back && !entry.left);
        let again = seen.record.owner.boot_id != journal::boot_id();
        again || (!seen.record.kept && (open || seen.record.entries.iter().all(|entry| entry.back)))
    })
    .map(|found| found.into_iter().filter(|found| !found.changes.is_empty()).collect())
}

/// Restores settings of owners that have ended and those kept on purpose. `force` also overwrites what another program
/// has changed. Sessions with a setting that is not allowed are left alone.
///
/// # Errors
/// The journal cannot be read, or has no such session; the named session is not allowed.
pub fn revert(
    journal: &Journal,
    backend: &dyn Backend,
    which: &Which,
    force: bool,
    allowance: &Allowance,
) -> Result<Vec<Reverted>, TuneError> {
    let here =
        Namespace::current().map_err(|source| TuneError::host("read", "the network namespace", false, source))?;
    let wanted = |seen: &Seen| match which {
        Which::All => true,
        Which::One(id) => seen.record.owner.id == *id,
        Which::Here => {
            seen.record.owner.namespace.is(&here)
                || seen.record.entries.iter().any(|entry| entry.host_wide && !entry.back)
        }
    };
    let (mut found, mut refused) = (false, None);
    let reverted = settle_with(journal, backend, force, |seen| {
        if !wanted(seen) {
            return false;
        }
        found = true;
        let refusal = seen.record.entries.iter().find_map(|entry| allowance.check(&entry.key).err());
        let allowed = refusal.is_none();
        refused = refusal.or(refused.take());
        allowed
    })?;
    match which {
        Which::One(_) if refused.is_some() => Err(refused.unwrap_or_else(|| unreachable!("it is there"))),
        Which::One(id) if !found => Err(TuneError::NoEntry { id: id.clone() }),
        _ => Ok(reverted),
    }
}

fn settle(
    journal: &Journal,
    backend: &dyn Backend,
    wanted: impl FnMut(&Seen) -> bool,
) -> Result<Vec<Reverted>, TuneError> {
    settle_with(journal, backend, false, wanted)
}

/// Restores the matching sessions without an owner, the newest first: if two changed one setting, the older one's
/// value was the newer one's start.
fn settle_with(
    journal: &Journal,
    backend: &dyn Backend,
    force: bool,
    mut wanted: impl FnMut(&Seen) -> bool,
) -> Result<Vec<Reverted>, TuneError> {
    let guard = journal.lock()?;
    let mut reverted = Vec::new();
    for seen in guard.sessions()? {
        if !wanted(&seen) {
            continue;
        }
        let (id, command) = (seen.record.owner.id.clone(), seen.record.owner.command.clone());
        let Some(mut file_record) = seen.orphan else {
            let note =
                Some(format!("its owner, process {}, is still running and reverts them itself", seen.record.owner.pid));
            reverted.push(Reverted { id, command, changes: Vec::new(), note, done: false });
            continue;
        };
        let changes = put_back(backend, &mut file_record, 0, force);
        let done = file_record.is_done();
        if done {
            file_record.close()?;
        }
        reverted.push(Reverted { id, command, changes, note: None, done });
    }
    Ok(reverted)
}

/// Every session with an unrestored change, as far as it is allowed.
///
/// # Errors
/// The journal cannot be read.
pub fn entries(journal: &Journal, allowance: &Allowance) -> Result<Vec<JournalEntry>, TuneError> {
    let here =
        Namespace::current().map_err(|source| TuneError::host("read", "the network namespace", false, source))?;
    let guard = journal.lock()?;
    let entry = |seen: Seen| {
        let (owner, alive) = (seen.record.owner, seen.orphan.is_none());
        let open = seen.record.entries.into_iter().filter(|entry| !entry.back && allowance.covers(&entry.key));
        let change = |entry: journal::Entry| Change {
            key: entry.key,
            before: entry.before,
            note: entry.now.is_none().then(|| "the process that set it ended during the change".to_owned()),
            now: entry.now.unwrap_or_else(|| entry.requested.clone()),
            requested: entry.requested,
            host_wide: entry.host_wide,
        };
        JournalEntry {
            here: owner.namespace.is(&here),
            id: owner.id,
            command: owner.command,
            pid: owner.pid,
            alive,
            kept: seen.record.kept,
            unix_ns: owner.unix_ns,
            namespace: owner.namespace.inode,
            changes: open.map(change).collect(),
        }
    };
    Ok(guard.sessions()?.into_iter().map(entry).filter(|entry| !entry.changes.is_empty()).collect())
}
