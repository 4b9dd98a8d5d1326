//! The tables of options in the manual come from the rows, and so do those of other programs' options. `UPDATE_MANUAL=1 cargo test -p throughline manual` rewrites them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::options::{Needs, OptionRow, Range, TestKind, Topic, WithPrograms, rows};
use clap::Arg;

use crate::habits::{Habit, Here, IPERF3, NETPERF, NETPERF_OF_TEST, Of};

/// The lines around a table: the first has its name.
const BEGIN: &str = "<!-- options: ";
const END: &str = "<!-- end of options -->";

/// The pages that have tables.
const PAGES: [&str; 3] = ["options.md", "sockets.md", "tasks/replace-iperf3-in-a-script.md"];

/// The table called `name`.
fn table(name: &str) -> String {
    let (head, topics): (&str, &[Topic]) = match name {
        "iperf3" => return habits("iperf3", &[IPERF3]),
        "netperf" => return habits("netperf", &[NETPERF, NETPERF_OF_TEST]),
        "sockets" => ("| flag | what it sets | transports | also set by servers of | note |", &[Topic::Sockets]),
        "load" => (LOAD_HEAD, &[Topic::Load]),
        "hosts" => (LOAD_HEAD, &[Topic::Hosts, Topic::Settings]),
        "threads" => (LOAD_HEAD, &[Topic::Calls]),
        "observing" => (LOAD_HEAD, &[Topic::Precision, Topic::Activity, Topic::Capture]),
        other => panic!("no table {other}"),
    };
    let columns = head.matches('|').count() - 1;
    let mut lines = vec![head.to_owned(), format!("|{}", " --- |".repeat(columns))];
    let of_topics = rows().filter(|row| topics.contains(&row.topic));
    lines.extend(of_topics.map(|row| if name == "sockets" { socket(row) } else { other(row) }));
    lines.join("\n") + "\n"
}

/// The table of another program's options.
fn habits(program: &str, tables: &[&[Habit]]) -> String {
    let mut lines = vec![format!("| {program} | thru | note |"), "| --- | --- | --- |".to_owned()];
    lines.extend(tables.iter().copied().flatten().map(habit));
    lines.join("\n") + "\n"
}

fn habit(row: &Habit) -> String {
    let value = row.value.map_or_else(String::new, |value| format!(" {value}"));
    let dashes = if row.of == Of::NetperfTest { "-- " } else { "" };
    let names: Vec<String> = row.names.iter().map(|name| format!("`{dashes}{name}{value}`")).collect();
    let here = match row.here {
        Here::Answer(answer) => answer.trim_start_matches("is ").replacen("has no", "no", 1),
        _ => format!("`{}`", row.ours()),
    };
    let of = if row.of == Of::Iperf3Server && !row.note.contains("serve") { "of `thru serve`" } else { "" };
    let notes: Vec<&str> = [of, row.note].into_iter().filter(|note| !note.is_empty()).collect();
    format!("| {} | {here} | {} |", names.join(", "), notes.join("; "))
}

const LOAD_HEAD: &str = "| flag | of | what it does | values | with other programs |";

fn socket(row: &OptionRow) -> String {
    let note = [if row.own_listener { "separate port" } else { "" }.to_owned(), range(row), row.note.to_owned()];
    let note: Vec<&str> = note.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    let what = as_markdown(row.help);
    format!("| {} | {what} | {} | {} | {} |", flag(row), transports(row.needs), programs(row), note.join("; "))
}

fn other(row: &OptionRow) -> String {
    let tests: Vec<&str> = row.tests.iter().map(|test| test.name()).collect();
    let tests = if row.tests.len() == TestKind::ALL.len() { "all".to_owned() } else { tests.join(", ") };
    // The help that the command prints, which may list what a registry has.
    let what = as_markdown(&help(row));
    let choices: Vec<String> = row.choices.iter().map(|(name, what)| format!("`{name}`: {what}")).collect();
    let values = if choices.is_empty() { range(row) } else { as_markdown(&choices.join("; ")) };
    format!("| {} | {tests} | {what} | {values} | {} |", flag(row), programs(row))
}

/// The flag as it is written, with its short form.
fn flag(row: &OptionRow) -> String {
    let value = match (row.value, row.implied) {
        (None, _) => String::new(),
        (Some(value), None) => format!(" {value}"),
        (Some(value), Some(_)) => format!("[={value}]"),
    };
    let short = row.short.map_or_else(String::new, |short| format!("`-{short}`, "));
    format!("{short}`--{}{}`", row.key, value.replace('|', "\\|"))
}

fn help(row: &OptionRow) -> String {
    let of_test = |test: &TestKind| {
        let command = crate::args::command();
        let arg = command.find_subcommand(test.name())?.get_arguments().find(|arg| arg.get_id() == row.key)?.clone();
        let written = arg.get_help().map(ToString::to_string).unwrap_or_default();
        Some(written + &default(&arg))
    };
    let mut helps: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for test in row.tests {
        helps.entry(of_test(test).unwrap_or_default()).or_default().push(test.name());
    }
    helps.remove("");
    match helps.len() {
        1 => helps.into_keys().collect(),
        _ => helps
            .into_iter()
            .map(|(help, tests)| format!("{}: {help}", tests.join(", ")))
            .collect::<Vec<_>>()
            .join(". "),
    }
}

fn default(arg: &Arg) -> String {
    let value = arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    value.filter(|_| arg.get_action().takes_values()).map_or_else(String::new, |value| format!(" [default: {value}]"))
}

fn range(row: &OptionRow) -> String {
    match (row.range)() {
        None => String::new(),
        Some(Range { least, most: None }) => format!("{least} or more"),
        Some(Range { most: Some(most), .. }) if most == u64::MAX.to_string() => "1 or more".into(),
        Some(Range { least, most: Some(most) }) => format!("{least} to {most}"),
    }
}

fn transports(needs: Needs) -> String {
    match needs {
        Needs::Any => String::new(),
        _ => engine::transport::names(|transport| needs.are_met(transport.facts())),
    }
}

/// What happens to an option with another program at the far end.
fn programs(row: &OptionRow) -> String {
    let names = |programs: &[model::Program]| match programs {
        [] => "none".to_owned(),
        some => some.iter().map(|program| program.name()).collect::<Vec<_>>().join(", "),
    };
    match row.with_programs {
        WithPrograms::NearEnd => "only this end".into(),
        WithPrograms::OwnCheck => "[depends on the program](speak.md)".into(),
        WithPrograms::FarEnd { carried_by, .. } | WithPrograms::AtFarEnd(carried_by) => names(carried_by),
    }
}

/// Flags in code, and nothing that ends a cell.
fn as_markdown(text: &str) -> String {
    let flag = |word: &str| {
        let bare = word.trim_matches(|c: char| "(),.:;]".contains(c));
        if bare.starts_with("--") { word.replace(bare, &format!("`{bare}`")) } else { word.to_owned() }
    };
    // Every second part is code already.
    let parts = text.split('`').enumerate().map(|(number, part)| match number % 2 {
        0 => part.split(' ').map(flag).collect::<Vec<_>>().join(" "),
        _ => format!("`{part}`"),
    });
    parts.collect::<String>().replace('|', "\\|")
}

/// A page with its tables made anew.
fn made_anew(page: &str) -> String {
    let mut made = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        made.push_str(line);
        made.push('\n');
        if let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) {
            made.push_str(&format!("\n{}\n{END}\n", table(name)));
            assert!(lines.by_ref().any(|line| line == END), "the table {name} has no end");
        }
    }
    made
}

#[test]
fn the_tables_of_the_manual_are_those_of_the_rows() {
    let mut named = Vec::new();
    for page in PAGES {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual").join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        let anew = made_anew(&text);
        if std::env::var_os("UPDATE_MANUAL").is_some() {
            std::fs::write(&path, &anew).unwrap();
        } else {
            assert!(text == anew, "{page} has old tables: UPDATE_MANUAL=1 cargo test -p throughline manual");
        }
        named.extend(rows().map(|row| row.key).filter(|key| anew.contains(&format!("`--{key}"))));
    }
    let missing: Vec<&str> = rows().map(|row| row.key).filter(|key| !named.contains(key)).collect();
    assert!(missing.is_empty(), "no table has {missing:?}");
}
