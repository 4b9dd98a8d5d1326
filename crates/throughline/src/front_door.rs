//! `thru HOST`: a command line that begins with a host is that of `thru check`.

use std::ffi::OsString;

use clap::Command;
use command::Failure;
use command::config_file::HostAlias;
use command::host_aliases::named;
use options::closest;
use text::{User, say};

/// Where the name of a command goes that was left out.
const CHECK: &str = "check";
/// What other programs call a command, and its name here.
const ELSEWHERE: [(&str, &str); 12] = [
    ("bandwidth", "stream"),
    ("bench", "stream"),
    ("bw", "stream"),
    ("client", "stream"),
    ("diff", "compare"),
    ("history", "runs"),
    ("latency", "rr"),
    ("list", "runs"),
    ("ping", "rr"),
    ("server", "serve"),
    ("status", "fleet"),
    ("throughput", "stream"),
];

/// The command line with its command: `thru HOST` as `thru check HOST`. `hosts` are those that the user's file names.
///
/// # Errors
/// The first word resembles the name of a command, or is that of one elsewhere: a mistake rather than a host.
pub fn with_command(
    mut words: Vec<OsString>,
    command: &Command,
    hosts: &[HostAlias],
) -> Result<Vec<OsString>, Failure> {
    let Some(at) = command_at(&words, command) else { return Ok(words) };
    let Some(word) = words[at].to_str() else { return Ok(words) };
    if command.find_subcommand(word).is_some() || word == "help" {
        return Ok(words);
    }
    if named(hosts, word).is_some() {
        words.insert(at, CHECK.into());
        return Ok(words);
    }
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    let names: Vec<&str> = shown.map(Command::get_name).collect();
    let elsewhere = ELSEWHERE.iter().find(|(other, _)| *other == word).map(|(_, name)| *name);
    let is_word = word.chars().all(|letter| letter.is_ascii_alphabetic());
    let typed = User(word);
    if let Some(name) = elsewhere {
        return Err(Failure::usage(say!(
            "there is no command '{typed}': it is `thru {name}` here; to check a host of that name: `thru check {word}`"
        )));
    }
    if let Some(name) = closest(word, &names).filter(|_| is_word) {
        return Err(Failure::usage(say!(
            "there is no command '{typed}'; did you mean `thru {name}`? To check a host of that name: `thru check {word}`"
        )));
    }
    words.insert(at, CHECK.into());
    Ok(words)
}

/// Whether a command line is `thru help all`.
pub fn asks_for_all(words: &[OsString]) -> bool {
    words.get(1..).is_some_and(|words| words == ["help", "all"])
}

/// The place of the first word that is not an option of `thru` itself, and no other option.
pub fn command_at(words: &[OsString], command: &Command) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at)?.to_str().filter(|word| word.starts_with('-')) {
        let flag = command.get_arguments().find(|arg| arg.get_long().is_some_and(|long| word == format!("--{long}")));
        let own = flag.or_else(|| {
            command
                .get_arguments()
                .find(|arg| arg.get_long().is_some_and(|long| word.starts_with(&format!("--{long}="))))
        })?;
        let has_value = own.get_action().takes_values() && !word.contains('=');
        at += 1 + usize::from(has_value);
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extended(line: &str) -> Result<String, String> {
        let words = line.split(' ').map(OsString::from).collect();
        let words = with_command(words, &crate::args::command(), &[]).map_err(|error| error.text().plain())?;
        Ok(words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_host_without_a_command_is_checked() {
        for (typed, meant) in [
            ("thru 10.0.0.2", "thru check 10.0.0.2"),
            ("thru fd00::1 --json", "thru check fd00::1 --json"),
            ("thru --units bytes beta", "thru --units bytes check beta"),
            ("thru --units=bytes beta.example.org:7000", "thru --units=bytes check beta.example.org:7000"),
            ("thru lab1", "thru check lab1"),
            ("thru server-a", "thru check server-a"),
            ("thru alpha", "thru check alpha"),
        ] {
            assert_eq!(extended(typed).unwrap(), meant);
        }
    }

    #[test]
    fn a_host_of_the_file_may_resemble_a_command() {
        let host =
            HostAlias { name: "labs".into(), address: "a".into(), port: None, token_file: None, key: None, line: 1 };
        let words = ["thru", "labs"].map(OsString::from).to_vec();
        let words = with_command(words, &crate::args::command(), &[host]).unwrap();
        assert_eq!(words, ["thru", "check", "labs"].map(OsString::from));
        assert!(extended("thru labs").is_err());
    }

    #[test]
    fn commands_and_options_stay() {
        for line in [
            "thru",
            "thru stream HOST",
            "thru help",
            "thru help all",
            "thru worker",
            "thru --help",
            "thru -V",
            "thru --units",
        ] {
            assert_eq!(extended(line).unwrap(), line);
        }
    }

    #[test]
    fn a_word_that_resembles_a_command_is_no_host() {
        let wrong = |line: &str| extended(line).unwrap_err();
        assert_eq!(
            wrong("thru straem HOST"),
            "there is no command 'straem'; did you mean `thru stream`? To check a host of that name: `thru check straem`"
        );
        assert!(wrong("thru latency HOST").starts_with("there is no command 'latency': it is `thru rr` here; "));
        // Every other name leads to a command.
        let command = crate::args::command();
        for (other, name) in ELSEWHERE {
            assert!(command.find_subcommand(name).is_some() && command.find_subcommand(other).is_none(), "{other}");
        }
    }
}
