//! Kernel settings: lines of `sysctl -p` files, and `echo "..." > /proc/sys/...`.

use model::RunKind;
use std::collections::BTreeMap;

use super::ImportFormat;
use crate::error::HostError;
use crate::listing::{Certainty, Imported, TextReading};
use crate::text::lines;

/// Kernel settings.
pub(super) const FORMAT: ImportFormat = ImportFormat {
    name: "sysctl",
    help: "sysctl.conf and `echo VALUE > /proc/sys/...`, as the near host's settings",
    detect,
    read,
};

/// The folders of /proc/sys.
const TOPS: [&str; 10] = ["abi", "crypto", "debug", "dev", "fs", "kernel", "net", "sunrpc", "user", "vm"];

/// A line that is a setting.
enum Line<'a> {
    Setting(String, &'a str),
    /// Of the shape of a setting, but not below a folder of /proc/sys.
    Unknown(&'a str),
}

fn setting(line: &str) -> Option<Line<'_>> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("echo ") {
        let (value, path) = rest.split_once('>')?;
        let key = path.trim().strip_prefix("/proc/sys/")?;
        return Some(Line::Setting(key.trim().replace('/', "."), value.trim().trim_matches(['"', '\''])));
    }
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim().trim_start_matches('-'), value.trim().trim_end_matches(','));
    let (top, rest) = key.split_once('.')?;
    let word = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if rest.is_empty() || value.is_empty() || !key.chars().all(word) {
        return None;
    }
    if TOPS.contains(&top) { Some(Line::Setting(key.to_owned(), value)) } else { Some(Line::Unknown(top)) }
}

fn detect(text: &str) -> Certainty {
    let found = lines(text).any(|(_, line)| matches!(setting(line), Some(Line::Setting(..))));
    if found { Certainty::Certain } else { Certainty::No }
}

/// Settings that were made together, and their first and last line.
struct Set {
    /// By `echo`, not by a file of sysctl.conf.
    echoed: bool,
    values: BTreeMap<String, String>,
    first: u32,
    last: u32,
}

impl Set {
    fn contradicts(&self, values: &BTreeMap<String, String>) -> bool {
        values.iter().any(|(key, value)| self.values.get(key).is_some_and(|own| own != value))
    }
}

/// Sets that do not contradict each other are one. A text that gives a setting two values has several: each form (`echo` and
/// sysctl.conf) is one, and within a form the second value begins another.
fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut sets: Vec<Set> = Vec::new();
    for (number, line) in lines(text) {
        let (key, value) = match setting(line) {
            Some(Line::Setting(key, value)) => (key, value.split_whitespace().collect::<Vec<_>>().join(" ")),
            Some(Line::Unknown(top)) => {
                reading.refuse(number, HostError::Setting(top.to_owned()));
                continue;
            }
            None => continue,
        };
        let echoed = line.trim().starts_with("echo ");
        let fits = |set: &&mut Set| set.echoed == echoed && set.values.get(&key).is_none_or(|own| *own == value);
        match sets.last_mut().filter(fits) {
            Some(set) => {
                set.values.insert(key, value);
                set.last = number;
            }
            None => {
                let values = BTreeMap::from([(key, value)]);
                sets.push(Set { echoed, values, first: number, last: number });
            }
        }
    }
    let mut merged: Vec<Set> = Vec::new();
    for set in sets {
        match merged.last_mut().filter(|last| !last.contradicts(&set.values)) {
            Some(last) => {
                last.values.extend(set.values);
                last.last = set.last;
            }
            None => merged.push(set),
        }
    }
    let count = merged.len();
    for (number, set) in (1..).zip(merged) {
        let mut imported = Imported { tool: "sysctl".into(), kind: RunKind::Environment, ..Imported::default() };
        imported.near.sysctl = set.values;
        if count > 1 {
            imported.notes.push(format!("set {number} of {count}: lines {} to {}", set.first, set.last));
        }
        reading.imported.push(imported);
    }
    reading
}
