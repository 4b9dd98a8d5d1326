//! The hosts of an ssh configuration (ssh_config(5)): those whose `Host` line names them without a pattern.

use std::path::{Path, PathBuf};

use super::hosts::{Fleet, FleetHost};
use super::source::{Source, text_of};
use crate::failure::Failure;

pub(super) const SOURCE: Source = Source { name: "ssh", what: "FILE, or nothing for ~/.ssh/config", read };

/// How deep `Include` is followed, as ssh does.
const DEPTH: usize = 16;

fn read(named: &str) -> Result<Fleet, Failure> {
    let path = if named.is_empty() { home(".ssh/config")? } else { PathBuf::from(named) };
    let mut hosts = Vec::new();
    parse(&text_of(&path.display().to_string())?, &path, 0, &mut hosts);
    Ok(Fleet { hosts, ..Fleet::default() })
}

fn home(path: &str) -> Result<PathBuf, Failure> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    home.map(|home| Path::new(&home).join(path))
        .ok_or_else(|| Failure::usage("ssh: without a file needs HOME: name the file, as in ssh:CONFIG"))
}

/// Adds the hosts of a configuration. As in ssh, the first value of a host's keyword holds.
fn parse(text: &str, path: &Path, depth: usize, hosts: &mut Vec<FleetHost>) {
    let mut current: Vec<usize> = Vec::new();
    for line in text.lines() {
        let Some((keyword, value)) = words(line) else { continue };
        match keyword.to_ascii_lowercase().as_str() {
            "host" => {
                let names = value.split_whitespace().map(|name| name.trim_matches('"'));
                let names = names.filter(|name| !name.contains(['*', '?', '!']));
                current = names.map(|name| place(name, hosts)).collect();
            }
            "match" => current.clear(),
            "hostname" => {
                for at in &current {
                    let host = &mut hosts[*at];
                    if host.control == host.name {
                        host.control = value.replace("%h", &host.name);
                    }
                }
            }
            "include" if depth < DEPTH => {
                for file in value.split_whitespace().filter_map(|file| included(file, path)) {
                    if let Ok(text) = std::fs::read_to_string(&file) {
                        parse(&text, &file, depth + 1, hosts);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The place of a host in the list, to which it is added.
fn place(name: &str, hosts: &mut Vec<FleetHost>) -> usize {
    hosts.iter().position(|host| host.name == name).unwrap_or_else(|| {
        hosts.push(FleetHost { ssh: Some(name.to_owned()), ..FleetHost::named(name) });
        hosts.len() - 1
    })
}

/// Keyword and value of a line: separated by spaces, or by one `=`.
fn words(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (keyword, value) = line.split_once(|character: char| character.is_whitespace() || character == '=')?;
    let value = value.trim().trim_start_matches('=').trim();
    (!keyword.starts_with('#') && !value.is_empty()).then_some((keyword, value))
}

/// A file of `Include`: relative to the folder of the user's configuration. Patterns are not expanded.
fn included(file: &str, path: &Path) -> Option<PathBuf> {
    match file.trim_matches('"').strip_prefix("~/") {
        Some(rest) => home(rest).ok(),
        None => Some(path.parent()?.join(file.trim_matches('"'))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_a_pattern_have_their_address() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("more"), "Host c\n").unwrap();
        let text = "Include more\nHost a b\n  HostName=%h.example\n  User me\n# Host x\nHost *\n  HostName never\n\
                    Host \"d\"\n\tHostName 192.0.2.4\n\tHostName 192.0.2.5\nMatch user you\n HostName other\nHost a\n HostName late\n";
        let file = folder.path().join("config");
        std::fs::write(&file, text).unwrap();
        let fleet = read(file.to_str().unwrap()).unwrap();
        let shown: Vec<(&str, &str)> = fleet.hosts.iter().map(|host| (&*host.name, &*host.control)).collect();
        assert_eq!(shown, [("c", "c"), ("a", "a.example"), ("b", "b.example"), ("d", "192.0.2.4")]);
        assert_eq!(fleet.hosts[1].ssh.as_deref(), Some("a"));
    }
}
