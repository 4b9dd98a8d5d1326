//! `thru HOST`: a command line that begins with a host is that of `thru check`.

use std::ffi::OsString;

use clap::Command;
use options::closest;

/// Where the name of a command goes that was left out.
const CHECK: &str = "check";

/// The command line with its command: `thru HOST` as `thru check HOST`. A word that resembles the name of a command is a mistake, not a
/// host.
pub fn with_command(mut words: Vec<OsString>, command: &Command) -> Vec<OsString> {
    let Some(at) = first(&words, command) else { return words };
    let Some(word) = words[at].to_str() else { return words };
    let known = command.find_subcommand(word).is_some() || word == "help";
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    let names: Vec<&str> = shown.map(Command::get_name).collect();
    let is_word = word.chars().all(|letter| letter.is_ascii_alphabetic());
    let resembles = is_word && closest(word, &names).is_some();
    if !known && !resembles {
        words.insert(at, CHECK.into());
    }
    words
}

/// The place of the first word that is not an option of `thru` itself, and no other option.
fn first(words: &[OsString], command: &Command) -> Option<usize> {
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

    fn extended(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = with_command(words, &crate::args::command());
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
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
            assert_eq!(extended(typed), meant);
        }
    }

    #[test]
    fn commands_their_misspellings_and_options_stay() {
        for line in [
            "thru",
            "thru stream HOST",
            "thru help",
            "thru worker",
            "thru --help",
            "thru -V",
            "thru straem HOST",
            "thru runz",
            "thru --units",
        ] {
            assert_eq!(extended(line), line);
        }
    }
}
