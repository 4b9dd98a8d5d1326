//! The user's own defaults: options that a command has unless the command line gives them.
//!
//! `[defaults]` is for all commands, and a table for each command overrides it; both have options by their long names:
//!
//! ```toml
//! [defaults]
//! token-file = "~/.thru-token"
//! [stream]
//! time = "2s"
//! flows = 4
//! [lab.run]
//! no-agents = true
//! ```

use std::ffi::OsString;
use std::sync::OnceLock;

use crate::config_file::{CommandOptions, ConfigFile, DEFAULTS, Entry};

/// The flag for a `thru` that must end with the process that started it: the end of its standard input ends it.
pub const UNTIL_INPUT_ENDS: &str = "--until-input-ends";

/// The words of this process, its options of the file included.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// The options that the file has for a command: those of its own table, and the defaults that this does not have.
#[must_use]
pub fn entries_for<'a>(file: &'a ConfigFile, command: &CommandOptions) -> Vec<&'a Entry> {
    let own = file.entries.iter().filter(|entry| entry.table == command.name);
    let own: Vec<&Entry> = own.collect();
    let is_free = |entry: &&Entry| {
        command.options.iter().any(|(name, _)| *name == entry.option)
            && own.iter().all(|one| one.option != entry.option)
    };
    let defaults = file.entries.iter().filter(|entry| entry.table == DEFAULTS).filter(is_free);
    defaults.chain(own.iter().copied()).collect()
}

/// The command line `words` with `added` behind the name of its command, at `behind`, so that the options of the user come later.
/// The words are those of this process from now on.
#[must_use]
pub fn extended(mut words: Vec<OsString>, behind: usize, added: Vec<String>) -> Vec<OsString> {
    let behind = behind.min(words.len());
    words.splice(behind..behind, added.into_iter().map(OsString::from));
    let _ = WORDS.set(words.clone());
    words
}

/// The words of this process as text, as they are recorded in a run: without the flag of a process that ends with its parent, which
/// nobody types.
#[must_use]
pub fn words() -> Vec<String> {
    let words = WORDS.get().cloned().unwrap_or_else(|| std::env::args_os().collect());
    let words = words.into_iter().map(|word| word.to_string_lossy().into_owned());
    words.filter(|word| word != UNTIL_INPUT_ENDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(table: &str, option: &str, value: &str) -> Entry {
        Entry { table: table.into(), option: option.into(), value: value.into(), line: 1 }
    }

    #[test]
    fn the_table_of_a_command_overrides_the_defaults() {
        let entries = vec![
            entry(DEFAULTS, "time", "1s"),
            entry(DEFAULTS, "name", "x"),
            entry(DEFAULTS, "listen", "::"),
            entry("stream", "time", "2s"),
            entry("rr", "time", "3s"),
        ];
        let file = ConfigFile { path: "c.toml".into(), entries, hosts: Vec::new() };
        let options = ["time", "name"].map(|name| (name.to_owned(), None)).to_vec();
        let stream = CommandOptions { name: "stream".into(), options };
        let words: Vec<String> =
            entries_for(&file, &stream).iter().filter_map(|entry| entry.words()).flatten().collect();
        assert_eq!(words, ["--name=x", "--time=2s"]);
    }

    #[test]
    fn options_come_before_those_of_the_user() {
        let words = ["thru", "stream", "HOST", "--time", "1s"].map(OsString::from).to_vec();
        let words = extended(words, 2, vec!["--time=2s".into()]);
        assert_eq!(words, ["thru", "stream", "--time=2s", "HOST", "--time", "1s"].map(OsString::from));
    }
}
