//! The hosts of an ssh configuration (ssh_config(5)): those whose `Host` line names them without a pattern.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use command::Failure;
use plan::fleet::HostListError;
use plan::fleet::hostlist::no_option;
use plan::{Fleet, FleetHost};
use text::{Said, say};
use thiserror::Error;

use super::source::{FleetSource, text_of};

pub(super) const SOURCE: FleetSource = FleetSource { name: "ssh", what: "FILE, or nothing for ~/.ssh/config", read };

/// How deep `Include` is followed, as ssh does.
const DEPTH: usize = 16;
/// Most files that are read: a file may include others several times.
const MOST_FILES: usize = 1_000;

/// What is wrong in a configuration, and where.
#[derive(Debug, Error, Said)]
#[error("{file}:{line}: {fault}", file = file.display())]
pub(crate) struct SshConfigError {
    file: PathBuf,
    line: u32,
    fault: SshConfigFault,
}

#[derive(Debug, Error, Said)]
enum SshConfigFault {
    #[error(transparent)]
    Name(#[from] HostListError),
    #[error("more than {MOST_FILES} files are included")]
    ManyFiles,
}

fn read(named: &str) -> Result<Fleet, Failure> {
    let path = if named.is_empty() { home(".ssh/config")? } else { PathBuf::from(named) };
    let text = text_of(&path.display().to_string())?;
    parse(&text, &path, &|file| std::fs::read_to_string(file).ok()).map_err(|error| Failure::usage(say!("ssh:{error}")))
}

fn home(path: &str) -> Result<PathBuf, Failure> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    home.map(|home| Path::new(&home).join(path))
        .ok_or_else(|| Failure::usage("HOME is not set, so there is no ~/.ssh/config: name the file, as in ssh:CONFIG"))
}

/// The fleet of a configuration; `open` reads the files that it includes.
///
/// # Errors
/// File and line of what is refused.
pub(crate) fn parse(text: &str, path: &Path, open: Open<'_>) -> Result<Fleet, SshConfigError> {
    let mut found = Found::default();
    found.add(text, path, 0, open)?;
    Ok(Fleet { hosts: found.hosts, ..Fleet::default() })
}

/// Reads a file, if it can be read.
type Open<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// The hosts so far.
#[derive(Default)]
struct Found {
    hosts: Vec<FleetHost>,
    /// The place of each in that list.
    places: BTreeMap<String, usize>,
    files: usize,
}

impl Found {
    /// Adds the hosts of a file. As in ssh, the first value of a host's keyword holds.
    fn add(&mut self, text: &str, path: &Path, depth: usize, open: Open<'_>) -> Result<(), SshConfigError> {
        let mut current: Vec<usize> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let Some((keyword, value)) = words(line) else { continue };
            let at = |fault: SshConfigFault| SshConfigError { file: path.to_owned(), line: number, fault };
            match keyword.to_ascii_lowercase().as_str() {
                "host" => {
                    let names = value.split_whitespace().map(|name| name.trim_matches('"'));
                    let names = names.filter(|name| !name.contains(['*', '?', '!']));
                    let places: Result<_, _> = names.map(|name| self.place(name)).collect();
                    current = places.map_err(|error| at(error.into()))?;
                }
                "match" => current.clear(),
                "hostname" => {
                    no_option(value).map_err(|error| at(error.into()))?;
                    for host in &current {
                        let host = &mut self.hosts[*host];
                        if host.control == host.name {
                            host.control = value.replace("%h", &host.name);
                        }
                    }
                }
                "include" if depth < DEPTH => {
                    for file in value.split_whitespace().filter_map(|file| included(file, path)) {
                        self.files += 1;
                        if self.files > MOST_FILES {
                            return Err(at(SshConfigFault::ManyFiles));
                        }
                        if let Some(text) = open(&file) {
                            self.add(&text, &file, depth + 1, open)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The place of a host in the list, to which it is added.
    fn place(&mut self, name: &str) -> Result<usize, HostListError> {
        no_option(name)?;
        Ok(*self.places.entry(name.to_owned()).or_insert_with(|| {
            self.hosts.push(FleetHost { ssh: Some(name.to_owned()), ..FleetHost::named(name) });
            self.hosts.len() - 1
        }))
    }
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

    #[test]
    fn options_and_endless_includes_are_refused_with_their_line() {
        let refused =
            |text: &str| parse(text, Path::new("config"), &|_| Some(text.to_owned())).unwrap_err().to_string();
        assert!(
            refused("Host a\nHost b -oProxyCommand=x\n").starts_with("config:2: '-oProxyCommand=x' begins with '-'")
        );
        assert!(refused("Host a\n\tHostName -V\n").starts_with("config:2: '-V' begins with '-'"));
        // Two times itself, 16 deep.
        assert_eq!(refused("Include config config\n"), "config:1: more than 1000 files are included");
    }
}
