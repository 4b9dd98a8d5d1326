//! Kernel settings: lines of `sysctl -p` files, and `echo "..." > /proc/sys/...`.

use super::Format;
use crate::listing::{Confidence, Imported, Reading};
use crate::text::lines;

/// Kernel settings.
pub(super) const FORMAT: Format = Format {
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

fn detect(text: &str) -> Confidence {
    let found = lines(text).any(|(_, line)| matches!(setting(line), Some(Line::Setting(..))));
    if found { Confidence::Certain } else { Confidence::No }
}

fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let mut imported = Imported { tool: "sysctl".into(), kind: "environment".into(), ..Imported::default() };
    for (number, line) in lines(text) {
        match setting(line) {
            Some(Line::Setting(key, value)) => {
                let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
                let before = imported.near.sysctl.insert(key.clone(), value.clone());
                if let Some(before) = before.filter(|before| *before != value) {
                    imported.notes.push(format!(
                        "line {number}: {key} was {before} before and is {value} here; the last value is used"
                    ));
                }
            }
            Some(Line::Unknown(top)) => reading.refuse(number, format!("no kernel setting begins with '{top}.'")),
            None => {}
        }
    }
    if !imported.near.sysctl.is_empty() {
        reading.imported.push(imported);
    }
    reading
}
