//! The options of the user's file on a command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Command};
use command::config_file::{CommandOptions, ConfigFile, Entry};
use command::host_aliases::named;
use command::{Failure, config};

use crate::front_door;

/// IDs of the arguments that name a host with an agent.
const HOSTS: [&str; 4] = ["host", "hosts", "far_host", "from"];
/// The option with the token of these.
const TOKEN_FILE: &str = "token-file";

/// A command line with the options of the file.
#[derive(Debug)]
pub struct Extended {
    /// The words.
    pub words: Vec<OsString>,
    /// The file, if it adds a word.
    pub file: Option<PathBuf>,
}

/// All commands with their options, for users.
pub fn commands(root: &Command) -> Vec<CommandOptions> {
    fn collect(root: &Command, command: &Command, name: &str, into: &mut Vec<CommandOptions>) {
        into.push(CommandOptions { name: name.to_owned(), options: options(root, command) });
        for inner in shown(command) {
            collect(root, inner, &format!("{name}.{}", inner.get_name()), into);
        }
    }
    let mut found = Vec::new();
    shown(root).for_each(|command| collect(root, command, command.get_name(), &mut found));
    found
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set())
}

/// Those of a command, and of every command.
fn arguments<'a>(root: &'a Command, command: &'a Command) -> impl Iterator<Item = &'a Arg> {
    command.get_arguments().chain(root.get_arguments().filter(|arg| arg.is_global_set()))
}

fn options(root: &Command, command: &Command) -> Vec<(String, Option<String>)> {
    let variable = |arg: &Arg| arg.get_env().map(|name| name.to_string_lossy().into_owned());
    let shown = arguments(root, command).filter(|arg| !arg.is_hide_set());
    shown.filter_map(|arg| Some((arg.get_long()?.to_owned(), variable(arg)))).collect()
}

/// Whether an environment variable has a value.
pub fn is_in_environment(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// The command line with what the file has for its command, behind the name of the command. An option of the environment stays, and so
/// does one that the user typed or that excludes one of the file.
///
/// # Errors
/// Two hosts of the file with different tokens.
pub fn extended(words: Vec<OsString>, root: &Command, file: Option<&ConfigFile>) -> Result<Extended, Failure> {
    let at = front_door::command_at(&words, root);
    let found = at.and_then(|at| Some((at + 1, root.find_subcommand(words.get(at)?.to_str()?)?)));
    let (Some(file), Some((mut behind, mut command))) = (file, found) else {
        return Ok(Extended { words: config::extended(words, 0, Vec::new()), file: None });
    };
    let mut name = command.get_name().to_owned();
    while let Some(inner) = words.get(behind).and_then(|word| command.find_subcommand(word.to_str()?)) {
        (command, behind) = (inner, behind + 1);
        name = format!("{name}.{}", inner.get_name());
    }
    let typed =
        |arg: &Arg| words[behind.min(words.len())..].iter().any(|word| is_spelled(arg, &word.to_string_lossy()));
    let stays = |option: &str| {
        let arg = arguments(root, command).find(|arg| arg.get_long() == Some(option));
        arg.is_some_and(|arg| {
            let excluded = |other: &Arg| typed(other) && excludes(command, arg, other);
            arg.get_env().is_some_and(|name| is_in_environment(&name.to_string_lossy())) && !typed(arg)
                || command.get_arguments().any(excluded)
        })
    };
    let own = CommandOptions { name, options: options(root, command) };
    let entries = config::entries_for(file, &own).into_iter().filter(|entry| !stays(&entry.option));
    let mut added: Vec<String> = entries.filter_map(Entry::words).flatten().collect();
    let takes_token = own.options.iter().any(|(name, _)| name == TOKEN_FILE) && !stays(TOKEN_FILE);
    if let Some(token) = if takes_token { token_of_hosts(&words, root, file)? } else { None } {
        added.retain(|word| !word.starts_with("--token-file="));
        added.push(format!("--{TOKEN_FILE}={}", token.display()));
    }
    let path = (!added.is_empty()).then(|| file.path.clone());
    Ok(Extended { words: config::extended(words, behind, added), file: path })
}

/// Whether one of two options cannot be used with the other.
fn excludes(command: &Command, one: &Arg, other: &Arg) -> bool {
    let of = |arg: &Arg, id| command.get_arg_conflicts_with(arg).iter().any(|found| found.get_id() == id);
    of(one, other.get_id()) || of(other, one.get_id())
}

/// Whether a word is this option.
fn is_spelled(arg: &Arg, word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => arg.get_long().is_some_and(|own| long == own || long.starts_with(&format!("{own}="))),
        None => word.strip_prefix('-').zip(arg.get_short()).is_some_and(|(letters, own)| letters.starts_with(own)),
    }
}

/// The file with the token of the hosts of the file that a command line names.
fn token_of_hosts(words: &[OsString], root: &Command, file: &ConfigFile) -> Result<Option<PathBuf>, Failure> {
    if file.hosts.iter().all(|host| host.token_file.is_none()) {
        return Ok(None);
    }
    // A mistake is found when the whole command line is read.
    let Ok(matches) = root.clone().try_get_matches_from(words) else { return Ok(None) };
    let mut inner = &matches;
    while let Some((_, below)) = inner.subcommand() {
        inner = below;
    }
    let mut found: Option<(&str, &PathBuf)> = None;
    for id in HOSTS {
        let raw = inner.try_get_raw(id).ok().flatten().into_iter().flatten();
        for host in raw.filter_map(|raw| named(&file.hosts, raw.to_str()?)).map(|(host, _)| host) {
            let Some(token) = &host.token_file else { continue };
            match found {
                Some((other, before)) if before != token => {
                    return Err(Failure::usage(format!(
                        "{other} and {} have different token files: a command has one, --token-file FILE",
                        host.name
                    )));
                }
                _ => found = Some((&host.name, token)),
            }
        }
    }
    Ok(found.map(|(_, token)| token.clone()))
}

#[cfg(test)]
mod tests {
    use command::config_file::HostAlias;

    use super::*;

    fn file() -> ConfigFile {
        let entry = |table: &str, option: &str, value: &str| Entry {
            table: table.into(),
            option: option.into(),
            value: value.into(),
            line: 1,
        };
        let host = |name: &str, token: &str| HostAlias {
            name: name.into(),
            address: "192.0.2.1".into(),
            port: None,
            token_file: Some(token.into()),
            key: None,
            line: 1,
        };
        ConfigFile {
            path: "c.toml".into(),
            entries: vec![
                entry("defaults", "token-file", "all"),
                entry("defaults", "time", "1s"),
                entry("stream", "time", "2s"),
            ],
            hosts: vec![host("lab1", "one"), host("lab2", "two")],
        }
    }

    fn line(typed: &str) -> Result<String, String> {
        let words = typed.split(' ').map(OsString::from).collect();
        let line = extended(words, &crate::args::command(), Some(&file())).map_err(|error| error.text().plain())?;
        Ok(line.words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_command_has_the_defaults_that_it_knows() {
        for (typed, meant) in [
            ("thru stream h", "thru stream --token-file=all --time=2s h"),
            ("thru rr h -t 3", "thru rr --token-file=all --time=1s h -t 3"),
            ("thru stream lab1", "thru stream --time=2s --token-file=one lab1"),
            ("thru stream -c lab2:7000", "thru stream --time=2s --token-file=two -c lab2:7000"),
            ("thru stream lab1 --token-file f", "thru stream --time=2s --token-file=one lab1 --token-file f"),
            ("thru serve --open", "thru serve --open"),
            ("thru serve", "thru serve --token-file=all"),
            ("thru runs", "thru runs"),
            ("thru lab list", "thru lab list"),
        ] {
            assert_eq!(line(typed).unwrap(), meant);
        }
        let refused = line("thru stream lab1 --from lab2").unwrap_err();
        assert_eq!(refused, "lab1 and lab2 have different token files: a command has one, --token-file FILE");
    }
}
