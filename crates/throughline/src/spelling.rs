//! How the command line spells the options that libraries name: a library writes `flows 4` in backticks, a user of the command line
//! types --flows 4.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::OnceLock;

use clap::Command;

use crate::units;

/// The long options of all subcommands, without their dashes.
static OPTIONS: OnceLock<BTreeSet<String>> = OnceLock::new();

/// Learns the options of a command line and of its subcommands. Before that no text is changed.
pub fn learn(command: &Command) {
    OPTIONS.get_or_init(|| {
        let mut names = BTreeSet::new();
        collect(command, &mut names);
        names
    });
}

fn collect(command: &Command, into: &mut BTreeSet<String>) {
    into.extend(command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned));
    command.get_subcommands().for_each(|one| collect(one, into));
}

/// Whether a subcommand has this long option.
pub fn is_option(name: &str) -> bool {
    OPTIONS.get().is_some_and(|names| names.contains(name))
}

/// The text with each option in backticks, `NAME`, `NAME VALUE` or `NAME=VALUE`, as a flag. Other words in backticks stay. The text keeps
/// its length, so that the columns of tables stay where they are.
pub fn flags(text: &str) -> Cow<'_, str> {
    units::chosen(between("`", text))
}

/// As [`flags`], for Markdown, where the backticks of a message are escaped and those of markup are not.
pub fn flags_of_markdown(text: &str) -> Cow<'_, str> {
    units::chosen(between("\\`", text))
}

fn between<'a>(mark: &str, text: &'a str) -> Cow<'a, str> {
    let mut spelled = String::new();
    let (mut done, mut from) = (0, 0);
    while let Some(open) = text[from..].find(mark).map(|at| from + at) {
        let inner = open + mark.len();
        let Some(inside) = text[inner..].find(mark).map(|length| &text[inner..inner + length]) else { break };
        let after = inner + inside.len() + mark.len();
        // A mark does not pair with one of another paragraph.
        let pairs = !inside.contains("\n\n");
        if pairs && names_option(inside) {
            spelled.push_str(&text[done..open]);
            spelled.push_str("--");
            spelled.push_str(inside);
            done = after;
        }
        from = if pairs { after } else { inner };
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    spelled.push_str(&text[done..]);
    Cow::Owned(spelled)
}

/// Whether `text` is the name of an option, alone or before its value.
fn names_option(text: &str) -> bool {
    text.split(|c: char| c == '=' || c.is_whitespace()).next().is_some_and(is_option)
}

#[cfg(test)]
mod tests;
