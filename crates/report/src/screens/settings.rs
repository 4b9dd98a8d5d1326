//! Settings of a host as lines of text.

use model::{Change, JournalEntry, Reverted, SettingNow};

/// Settings with their values.
#[must_use]
pub fn settings(settings: &[SettingNow]) -> String {
    let wide = |setting: &SettingNow| if setting.host_wide { "  (host-wide)" } else { "" };
    settings.iter().map(|setting| format!("{:<44} {}{}\n", setting.key, setting.value, wide(setting))).collect()
}

/// Changes that would be made.
#[must_use]
pub fn planned_settings(changes: &[Change]) -> String {
    lines(changes, |change| format!("{} would become {}", change.before, change.requested))
}

/// Changes that were made.
#[must_use]
pub fn changed_settings(changes: &[Change]) -> String {
    lines(changes, |change| format!("{} is now {}", change.before, change.now))
}

/// Changes that were taken back.
#[must_use]
pub fn restored_settings(changes: &[Change]) -> String {
    lines(changes, |change| format!("restored to {}", change.now))
}

/// Records of the journal that were reverted.
#[must_use]
pub fn reverted_settings(done: &[Reverted]) -> String {
    if done.is_empty() {
        return "nothing to restore\n".into();
    }
    let record = |one: &Reverted| {
        let note = one.note.as_ref().map(|note| format!("  {note}\n")).unwrap_or_default();
        format!("{} '{}'\n{}{note}", one.id, one.command, indented(&one.changes))
    };
    done.iter().map(record).collect()
}

/// Records of the journal.
#[must_use]
pub fn settings_journal(entries: &[JournalEntry]) -> String {
    if entries.is_empty() {
        return "no changes\n".into();
    }
    let record = |entry: &JournalEntry| {
        let state = match (entry.alive, entry.kept) {
            (true, _) => format!("held by process {}", entry.pid),
            (false, true) => "kept".into(),
            (false, false) => "left by a process that has ended".into(),
        };
        let namespace = if entry.here { "" } else { ", in another network namespace" };
        format!("{} '{}': {state}{namespace}\n{}", entry.id, entry.command, indented(&entry.changes))
    };
    entries.iter().map(record).collect()
}

fn lines(changes: &[Change], what: impl Fn(&Change) -> String) -> String {
    changes.iter().map(|change| format!("{}: {}{}\n", change.key, what(change), remarks(change))).collect()
}

fn indented(changes: &[Change]) -> String {
    let line = |change: &Change| format!("  {}: {} -> {}{}\n", change.key, change.before, change.now, remarks(change));
    changes.iter().map(line).collect()
}

fn remarks(change: &Change) -> String {
    let wide = change.host_wide.then_some("host-wide");
    let remarks: Vec<&str> = wide.into_iter().chain(change.note.as_deref()).collect();
    if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(host_wide: bool, note: Option<&str>) -> Change {
        let [key, before, requested, now] = ["dev.eth0.mtu", "1500", "9000", "9000"].map(String::from);
        Change { key, before, requested, now, host_wide, note: note.map(String::from) }
    }

    #[test]
    fn changes_are_lines_with_their_remarks() {
        let changes = [change(false, None), change(true, Some("rounded"))];
        assert_eq!(
            planned_settings(&changes),
            "dev.eth0.mtu: 1500 would become 9000\ndev.eth0.mtu: 1500 would become 9000 (host-wide; rounded)\n"
        );
        assert_eq!(changed_settings(&changes[..1]), "dev.eth0.mtu: 1500 is now 9000\n");
        assert_eq!(restored_settings(&changes[..1]), "dev.eth0.mtu: restored to 9000\n");
    }

    #[test]
    fn records_name_their_command_and_state() {
        let entry = JournalEntry {
            id: "7f".into(),
            command: "thru run".into(),
            pid: 12,
            alive: true,
            here: true,
            changes: vec![change(false, None)],
            ..JournalEntry::default()
        };
        let held = "7f 'thru run': held by process 12\n  dev.eth0.mtu: 1500 -> 9000\n";
        assert_eq!(settings_journal(std::slice::from_ref(&entry)), held);
        let elsewhere = JournalEntry { alive: false, here: false, changes: Vec::new(), ..entry };
        let left = "7f 'thru run': left by a process that has ended, in another network namespace\n";
        assert_eq!(settings_journal(&[elsewhere]), left);
        assert_eq!(
            (settings_journal(&[]), reverted_settings(&[])),
            ("no changes\n".into(), "nothing to restore\n".into())
        );
        let done =
            Reverted { id: "7f".into(), command: "thru run".into(), note: Some("busy".into()), ..Reverted::default() };
        assert_eq!(reverted_settings(&[done]), "7f 'thru run'\n  busy\n");
    }
}
