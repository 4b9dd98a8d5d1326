//! `-h`: the options of a command that people type most, on one screen. `--help` has all of them.

use clap::{Arg, Command};

/// Lines that `-h` may have.
const LINES: usize = 25;
/// The options that it has if all are more: their long names, or a letter without one.
const USUAL: [&str; 23] = [
    "allow-tuning",
    "b",
    "block",
    "both",
    "bytes",
    "cc",
    "code",
    "every",
    "flows",
    "hosts",
    "interval",
    "invite",
    "json",
    "listen",
    "metrics",
    "open",
    "output",
    "pattern",
    "reverse",
    "time",
    "token-file",
    "udp",
    "window",
];

/// The commands with that help, for a command line that requests it.
pub fn with_brief_help(command: Command) -> Command {
    command.mut_arg("units", |arg| arg.hide(true)).mut_subcommands(|one| brief(one, "thru"))
}

fn brief(command: Command, parent: &str) -> Command {
    let name = format!("{parent} {}", command.get_name());
    let command = command.mut_subcommands(|one| brief(one, &name));
    if lines(&command) <= LINES {
        return command;
    }
    let more = format!("`{name} --help` lists all options, with examples.");
    command.mut_args(shortened).after_help(more)
}

/// Lines of a command's help.
fn lines(command: &Command) -> usize {
    command.clone().render_help().to_string().lines().count()
}

/// An option with the first clause of its help, under no heading; hidden if it is not a usual one.
fn shortened(arg: Arg) -> Arg {
    let is_usual = |name: &str| USUAL.contains(&name);
    let letter =
        arg.get_short().filter(|_| arg.get_long().is_none()).is_some_and(|letter| is_usual(&letter.to_string()));
    let shown = arg.is_positional() || letter || arg.get_long().is_some_and(is_usual);
    let help = arg.get_help().map(|help| clause(&help.to_string())).unwrap_or_default();
    let arg = arg.help(help).help_heading(None::<&str>);
    let arg = match arg.get_action().takes_values() {
        true => arg.hide_default_value(true).hide_possible_values(true).hide_env(true),
        false => arg,
    };
    if shown { arg } else { arg.hide(true) }
}

/// The first clause of a text.
fn clause(text: &str) -> String {
    let end =
        [". ", "; ", ": ", " [", " and, ", ", which ", ", with ", " ("].iter().filter_map(|end| text.find(end)).min();
    end.map_or(text, |end| &text[..end]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(command: &Command, found: &mut Vec<Command>) {
        for one in command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help") {
            found.push(one.clone());
            all(one, found);
        }
    }

    #[test]
    fn each_command_fits_a_screen() {
        let mut command = with_brief_help(crate::args::command());
        command.build();
        let mut found = Vec::new();
        all(&command, &mut found);
        let long: Vec<String> = found
            .iter()
            .filter(|one| lines(one) > LINES)
            .map(|one| format!("{} has {} lines", one.get_name(), lines(one)))
            .collect();
        assert_eq!(long, Vec::<String>::new());
    }

    #[test]
    fn the_usual_options_exist() {
        let mut found = Vec::new();
        all(&crate::args::command(), &mut found);
        let names: Vec<String> = found
            .iter()
            .flat_map(Command::get_arguments)
            .filter_map(|arg| arg.get_long().map(str::to_owned).or_else(|| arg.get_short().map(String::from)))
            .collect();
        let unknown: Vec<&&str> = USUAL.iter().filter(|name| !names.iter().any(|own| own == *name)).collect();
        assert_eq!(unknown, Vec::<&&str>::new());
    }
}
