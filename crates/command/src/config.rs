//! The user's own defaults: options that a command has unless the command line gives them.
//!
//! A table for each command, with options by their long names:
//!
//! ```toml
//! [stream]
//! time = "2s"
//! flows = 4
//! [lab.run]
//! no-agents = true
//! ```

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use text::{Said, say};
use thiserror::Error;
use toml::{Table, Value};

use crate::Failure;

/// The flag for a `thru` that must end with the process that started it: the end of its standard input ends it.
pub const UNTIL_INPUT_ENDS: &str = "--until-input-ends";

/// Environment variable with the file; if it is empty, no file is read.
const VARIABLE: &str = "THRU_CONFIG";

/// The words of this process, its options of the file included.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// A command line with the options of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Extended {
    /// The words, of which the first is the program.
    pub words: Vec<OsString>,
    /// The file, if it adds a word.
    pub file: Option<PathBuf>,
}

/// What is wrong in the file.
#[derive(Debug, Error, Said)]
enum ConfigError {
    #[error("{}", error.to_string().trim_end())]
    Toml { error: toml::de::Error },
    #[error("[{table}] is not a command: name tables after commands, such as [stream]")]
    Command { table: String },
    #[error("{key} is not a table: write [{key}]")]
    NoTable { key: String },
    #[error("{table}.{option}: write a string, a number, true or a list of these")]
    Value { table: String, option: String },
}

/// The command line `words`, with the options of the file behind the name of its command, so that those of the user come
/// later. `commands` are the names of all commands; `own` is a process that this program started itself, with all its options.
///
/// # Errors
/// The file cannot be read, is not TOML, or has a table for something else than a command.
pub fn extended(words: Vec<OsString>, commands: &[&str], own: bool) -> Result<Extended, Failure> {
    // A worker has no command that users know, and perhaps a user who cannot read the file.
    let at = words.iter().position(|word| word.to_str().is_some_and(|word| commands.contains(&word)));
    let file = if own || at.is_none() { None } else { file()? };
    let extended = match (at, file) {
        (Some(at), Some((path, text))) => {
            extend(words, at, &path, &text, commands).map_err(|error| Failure::usage(say!("{path}: {error}")))?
        }
        _ => Extended { words, file: None },
    };
    let _ = WORDS.set(extended.words.clone());
    Ok(extended)
}

/// The words of this process as text, as they are recorded in a run: without the flag of a process that ends with its parent, which
/// nobody types.
#[must_use]
pub fn words() -> Vec<String> {
    let words = WORDS.get().cloned().unwrap_or_else(|| std::env::args_os().collect());
    let words = words.into_iter().map(|word| word.to_string_lossy().into_owned());
    words.filter(|word| word != UNTIL_INPUT_ENDS).collect()
}

/// The file and its text: the one that the variable names, or the usual one if there is any.
fn file() -> Result<Option<(PathBuf, String)>, Failure> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let must_exist = named.is_some();
    let Some(path) = named.or_else(usual).filter(|path| !path.as_os_str().is_empty()) else { return Ok(None) };
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

/// The words with the options that the file `path`, whose content is `text`, has for the command at `at`.
fn extend(
    mut words: Vec<OsString>,
    at: usize,
    path: &Path,
    text: &str,
    commands: &[&str],
) -> Result<Extended, ConfigError> {
    let file: Table = toml::from_str(text).map_err(|error| ConfigError::Toml { error })?;
    if let Some(other) = file.keys().find(|name| !commands.contains(&name.as_str())) {
        return Err(ConfigError::Command { table: other.clone() });
    }
    let name = words.get(at).and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    let mut added = Vec::new();
    let mut behind = at + 1;
    if let Some(value) = file.get(&name) {
        let mut table = value.as_table().ok_or_else(|| ConfigError::NoTable { key: name.clone() })?;
        // `lab.run`: the table of a command's own command.
        let next = words.get(behind).and_then(|word| word.to_str());
        if let Some(inner) = next.and_then(|next| table.get(next)?.as_table()) {
            table = inner;
            behind += 1;
        }
        for (option, value) in table.iter().filter(|(_, value)| !value.is_table()) {
            let wrong = || ConfigError::Value { table: name.clone(), option: option.clone() };
            added.extend(option_words(option, value).ok_or_else(wrong)?);
        }
    }
    let file = (!added.is_empty()).then(|| path.to_owned());
    words.splice(behind..behind, added);
    Ok(Extended { words, file })
}

/// An option as words of a command line; `None` for a value that no option has.
fn option_words(option: &str, value: &Value) -> Option<Vec<OsString>> {
    let one = |text: String| vec![OsString::from(format!("--{option}={text}"))];
    Some(match value {
        Value::String(text) => one(text.clone()),
        Value::Integer(number) => one(number.to_string()),
        Value::Float(number) => one(number.to_string()),
        Value::Boolean(true) => vec![format!("--{option}").into()],
        Value::Boolean(false) => Vec::new(),
        Value::Array(values) => {
            let each: Option<Vec<_>> = values.iter().map(|value| option_words(option, value)).collect();
            each?.concat()
        }
        Value::Datetime(_) | Value::Table(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMANDS: [&str; 3] = ["stream", "lab", "rr"];

    fn with(text: &str, typed: &str) -> Result<String, String> {
        let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
        let at = words.iter().position(|word| COMMANDS.iter().any(|name| word == name)).unwrap();
        let extended = extend(words, at, Path::new("c.toml"), text, &COMMANDS).map_err(|error| error.to_string())?;
        Ok(extended.words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn options_come_before_those_of_the_user() {
        let text = "[stream]\ntime = \"2s\"\nflows = 4\nreverse = true\nboth = false\nset = [\"a=1\", \"b=2\"]\n[lab.run]\nname = \"x\"\n";
        let of_stream = "thru --units bytes stream --flows=4 --reverse --set=a=1 --set=b=2 --time=2s HOST --time 1s";
        assert_eq!(with(text, "thru --units bytes stream HOST --time 1s").unwrap(), of_stream);
        assert_eq!(with(text, "thru lab run dsl").unwrap(), "thru lab run --name=x dsl");
        for other in ["thru lab list", "thru rr HOST"] {
            assert_eq!(with(text, other).unwrap(), other);
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_table() {
        let wrong = |text: &str| with(text, "thru stream HOST").unwrap_err();
        assert_eq!(wrong("[straem]\n"), "[straem] is not a command: name tables after commands, such as [stream]");
        assert!(wrong("[stream]\ntime = 2026-01-01\n").starts_with("stream.time: write a string"));
        assert!(wrong("stream = 1\n").contains("write [stream]"));
        assert!(wrong("[stream\n").starts_with("TOML parse error at line 1"));
    }
}
