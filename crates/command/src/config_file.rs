//! The user's file of defaults: `[defaults]` for all commands, a table for each command, and `[hosts.NAME]`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use control::proof::fingerprint::Fingerprint;
use options::closest;
use text::{Said, say};
use thiserror::Error;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use crate::Failure;

/// Environment variable with the file; if it is empty, no file is read.
pub const VARIABLE: &str = "THRU_CONFIG";
/// The table for all commands.
pub const DEFAULTS: &str = "defaults";
/// The table of hosts.
const HOSTS: &str = "hosts";
/// The keys of a host.
const HOST_KEYS: [&str; 4] = ["address", "port", "token-file", "key"];

/// A command, and the options that it has.
#[derive(Debug, Clone)]
pub struct CommandOptions {
    /// Its name, such as `stream` or `lab.run`.
    pub name: String,
    /// The long names of its options, each with its environment variable if it has one.
    pub options: Vec<(String, Option<String>)>,
}

/// An option in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The table that it is in.
    pub table: String,
    /// Its long name.
    pub option: String,
    /// Its value.
    pub value: Value,
    /// Its line, from 1.
    pub line: usize,
}

/// A host with a name of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAlias {
    /// Its name.
    pub name: String,
    /// Where its agent is: a name or an address.
    pub address: String,
    /// The port of its agent, unless it is the usual one.
    pub port: Option<u16>,
    /// The file with its token.
    pub token_file: Option<PathBuf>,
    /// The key of its agent.
    pub key: Option<Fingerprint>,
    /// Its line, from 1.
    pub line: usize,
}

/// The file.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// The options in it.
    pub entries: Vec<Entry>,
    /// The hosts in it.
    pub hosts: Vec<HostAlias>,
}

/// What is wrong in the file.
#[derive(Debug, Error, Said)]
enum ConfigError {
    #[error("{}", error.to_string().trim_end())]
    Toml { error: toml::de::Error },
    #[error(
        "[{table}] is not a command: name tables after commands, such as [stream]; [defaults] is for all commands, and [hosts.NAME] a \
         host"
    )]
    Command { table: String },
    #[error("{key} is not a table: write [{key}]")]
    NoTable { key: String },
    #[error("{table}.{option}: write a string, a number, true or a list of these")]
    Value { table: String, option: String },
    #[error("defaults.{option}: no command has `--{option}`; {remedy}")]
    NoOption { option: String, remedy: String },
    #[error("hosts.{host}.{key}: a host has {known}")]
    HostKey { host: String, key: String, known: String },
    #[error("hosts.{host}.{key}: {what}")]
    HostValue { host: String, key: &'static str, what: String },
    #[error("[hosts.{host}]: a command has this name")]
    HostIsCommand { host: String },
}

/// The file of the user, if there is one.
///
/// # Errors
/// It cannot be read, or something in it is wrong.
pub fn read(commands: &[CommandOptions]) -> Result<Option<ConfigFile>, Failure> {
    let Some((path, text)) = file()? else { return Ok(None) };
    let parsed = parse(&path, &text, commands);
    parsed.map(Some).map_err(|error| Failure::usage(say!("{path}: {error}")))
}

/// The path of the file: that of the variable, or the usual one. An empty path means no file.
#[must_use]
pub fn place() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from).or_else(usual)
}

/// The file and its text: the one that the variable names, or the usual one if there is any.
fn file() -> Result<Option<(PathBuf, String)>, Failure> {
    let must_exist = std::env::var_os(VARIABLE).is_some();
    let Some(path) = place().filter(|path| !path.as_os_str().is_empty()) else { return Ok(None) };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        // A service may have the home of another user, which it cannot read.
        Err(error) if !must_exist && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            Ok(None)
        }
        Err(error) => Err(Failure::usage(format!("cannot read the options in {}: {error}", path.display()))),
    }
}

/// `throughline/config.toml` in `$XDG_CONFIG_HOME` or `~/.config` (XDG Base Directory Specification).
fn usual() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(folder.join("throughline/config.toml"))
}

fn parse(path: &Path, text: &str, commands: &[CommandOptions]) -> Result<ConfigFile, ConfigError> {
    let file: Table = toml::from_str(text).map_err(|error| ConfigError::Toml { error })?;
    let located = DeTable::parse(text).map_err(|error| ConfigError::Toml { error })?;
    let line = |keys: &[&str]| line_of(text, located.get_ref(), keys);
    let mut parsed = ConfigFile { path: path.to_owned(), entries: Vec::new(), hosts: Vec::new() };
    for (name, value) in &file {
        let table = value.as_table().ok_or_else(|| ConfigError::NoTable { key: name.clone() })?;
        match name.as_str() {
            HOSTS => {
                for (host, value) in table {
                    let keys =
                        value.as_table().ok_or_else(|| ConfigError::NoTable { key: format!("{HOSTS}.{host}") })?;
                    if is_command(commands, host) {
                        return Err(ConfigError::HostIsCommand { host: host.clone() });
                    }
                    parsed.hosts.push(alias(host, keys, line(&[HOSTS, host]))?);
                }
            }
            DEFAULTS => {
                for (option, value) in table {
                    check_default(option, commands)?;
                    parsed.entries.push(entry(DEFAULTS, option, value, line(&[DEFAULTS, option]))?);
                }
            }
            _ if !is_command(commands, name) => return Err(ConfigError::Command { table: name.clone() }),
            _ => {
                for (option, value) in table {
                    let Some(inner) = value.as_table() else {
                        parsed.entries.push(entry(name, option, value, line(&[name, option]))?);
                        continue;
                    };
                    let of = format!("{name}.{option}");
                    if !commands.iter().any(|command| command.name == of) {
                        return Err(ConfigError::Command { table: of });
                    }
                    for (option_of, value) in inner {
                        let line = line(&[name, option, option_of]);
                        parsed.entries.push(entry(&of, option_of, value, line)?);
                    }
                }
            }
        }
    }
    Ok(parsed)
}

/// Whether a word is the name of a command, or of one that has commands.
fn is_command(commands: &[CommandOptions], name: &str) -> bool {
    commands.iter().any(|command| command.name.split('.').next() == Some(name))
}

/// The line of a key, from 1; that of the file's start if it has none of its own.
fn line_of(text: &str, table: &DeTable<'_>, keys: &[&str]) -> usize {
    let [first, rest @ ..] = keys else { return 1 };
    let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == *first) else { return 1 };
    match value.get_ref() {
        DeValue::Table(inner) if !rest.is_empty() => line_of(text, inner, rest),
        _ => text.get(..key.span().start).unwrap_or(text).matches('\n').count() + 1,
    }
}

fn entry(table: &str, option: &str, value: &Value, line: usize) -> Result<Entry, ConfigError> {
    let entry = Entry { table: table.to_owned(), option: option.to_owned(), value: value.clone(), line };
    match entry.words() {
        Some(_) => Ok(entry),
        None => Err(ConfigError::Value { table: entry.table, option: entry.option }),
    }
}

impl Entry {
    /// It as words of a command line; `None` for a value that no option has.
    #[must_use]
    pub fn words(&self) -> Option<Vec<String>> {
        option_words(&self.option, &self.value)
    }

    /// Its value as it is shown.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

fn option_words(option: &str, value: &Value) -> Option<Vec<String>> {
    let one = |text: String| vec![format!("--{option}={text}")];
    Some(match value {
        Value::String(text) => one(in_home(text)),
        Value::Integer(number) => one(number.to_string()),
        Value::Float(number) => one(number.to_string()),
        Value::Boolean(true) => vec![format!("--{option}")],
        Value::Boolean(false) => Vec::new(),
        Value::Array(values) => {
            let each: Option<Vec<_>> = values.iter().map(|value| option_words(option, value)).collect();
            each?.concat()
        }
        Value::Datetime(_) | Value::Table(_) => return None,
    })
}

/// A path with the user's home in place of `~`, as a shell writes it.
fn in_home(text: &str) -> String {
    let home = std::env::var("HOME").ok().filter(|home| !home.is_empty());
    match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => format!("{home}/{rest}"),
        _ => text.to_owned(),
    }
}

/// Refuses a default that no command has.
fn check_default(option: &str, commands: &[CommandOptions]) -> Result<(), ConfigError> {
    let names: Vec<&str> =
        commands.iter().flat_map(|command| &command.options).map(|(name, _)| name.as_str()).collect();
    if names.contains(&option) {
        return Ok(());
    }
    let mut near: Vec<&str> = names.iter().copied().filter(|name| closest(option, &[name]).is_some()).collect();
    near.sort_unstable();
    near.dedup();
    let remedy = match near.is_empty() {
        true => "`thru help all` lists the options".to_owned(),
        false => format!("did you mean {}?", near.join(" or ")),
    };
    Err(ConfigError::NoOption { option: option.to_owned(), remedy })
}

fn alias(host: &str, table: &Table, line: usize) -> Result<HostAlias, ConfigError> {
    let known = || HOST_KEYS.join(", ");
    if let Some(key) = table.keys().find(|key| !HOST_KEYS.contains(&key.as_str())) {
        return Err(ConfigError::HostKey { host: host.to_owned(), key: key.clone(), known: known() });
    }
    let wrong = |key, what: &str| ConfigError::HostValue { host: host.to_owned(), key, what: what.to_owned() };
    let text = |key: &'static str| {
        let value = table.get(key);
        value.map(|value| value.as_str().ok_or_else(|| wrong(key, "write a string"))).transpose()
    };
    let address = text("address")?.unwrap_or(host);
    control::coordinator::check_host(address).map_err(|error| wrong("address", &error.to_string()))?;
    let port = table.get("port").map(|port| {
        let port = port.as_integer().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        port.ok_or_else(|| wrong("port", "write a number from 1 to 65535"))
    });
    let key = text("key")?.map(str::parse::<Fingerprint>);
    let key =
        key.transpose().map_err(|_| wrong("key", "write the key as `thru agent fingerprint` prints it: SHA256:..."));
    Ok(HostAlias {
        name: host.to_owned(),
        address: address.to_owned(),
        port: port.transpose()?,
        token_file: text("token-file")?.map(|file| in_home(file).into()),
        key: key?,
        line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Vec<CommandOptions> {
        let of = |name: &str, options: &[&str]| CommandOptions {
            name: name.into(),
            options: options.iter().map(|option| ((*option).to_owned(), None)).collect(),
        };
        vec![of("stream", &["time", "token-file"]), of("rr", &["time"]), of("lab.run", &["name"])]
    }

    fn parsed(text: &str) -> Result<ConfigFile, String> {
        parse(Path::new("c.toml"), text, &commands()).map_err(|error| error.to_string())
    }

    #[test]
    fn each_option_has_its_table_and_line() {
        let file = parsed("[defaults]\ntime = 2\n\n[stream]\ntoken-file = \"f\"\n[lab.run]\nname = \"x\"\n").unwrap();
        let found: Vec<_> =
            file.entries.iter().map(|entry| (entry.table.as_str(), entry.option.as_str(), entry.line)).collect();
        assert_eq!(found, [("defaults", "time", 2), ("lab.run", "name", 7), ("stream", "token-file", 5)]);
    }

    #[test]
    fn a_host_has_an_address_a_port_a_token_and_a_key() {
        let key = Fingerprint::of(b"one");
        let text = format!("[hosts.lab1]\naddress = \"10.0.0.2\"\nport = 7000\ntoken-file = \"t\"\nkey = \"{key}\"\n");
        let host = parsed(&text).unwrap().hosts.remove(0);
        assert_eq!((host.name.as_str(), host.address.as_str(), host.port), ("lab1", "10.0.0.2", Some(7000)));
        assert_eq!((host.token_file, host.key, host.line), (Some("t".into()), Some(key), 1));
        assert_eq!(parsed("[hosts.a]\n").unwrap().hosts[0].address, "a");
    }

    #[test]
    fn a_mistake_is_named_with_its_table() {
        let wrong = |text: &str| parsed(text).unwrap_err();
        assert!(
            wrong("[straem]\n").starts_with("[straem] is not a command: name tables after commands, such as [stream]")
        );
        assert!(wrong("[lab.rnu]\n").starts_with("[lab.rnu] is not a command"));
        assert!(wrong("[stream]\ntime = 2026-01-01\n").starts_with("stream.time: write a string"));
        assert!(wrong("stream = 1\n").contains("write [stream]"));
        assert!(wrong("[stream\n").starts_with("TOML parse error at line 1"));
        assert_eq!(wrong("[defaults]\ntimes = 1\n"), "defaults.times: no command has `--times`; did you mean time?");
        assert!(wrong("[defaults]\nxyzxyz = 1\n").ends_with("`thru help all` lists the options"));
        assert_eq!(wrong("[hosts.a]\naddr = \"b\"\n"), "hosts.a.addr: a host has address, port, token-file, key");
        assert_eq!(wrong("[hosts.a]\nport = 0\n"), "hosts.a.port: write a number from 1 to 65535");
        assert!(wrong("[hosts.a]\nkey = \"x\"\n").starts_with("hosts.a.key: write the key as "));
        assert_eq!(wrong("[hosts.rr]\n"), "[hosts.rr]: a command has this name");
    }
}
