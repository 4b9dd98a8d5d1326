//! `thru config`: the user's defaults, and where each comes from.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use command::config_file::{self, CommandOptions, ConfigFile, HostAlias};
use command::{Failure, config};
use serde_json::{Value, json};

use crate::console;
use crate::defaults::is_in_environment;

/// Flags of `thru config`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/config.txt").trim_end())]
pub struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show each default in force and where it comes from: a line of the file or an environment variable.
    Show {
        /// Print a JSON document.
        #[arg(long)]
        json: bool,
    },
}

/// A value that commands have without an option on their command line.
#[derive(Debug, PartialEq)]
struct InForce {
    option: String,
    value: String,
    origin: Origin,
    commands: Vec<String>,
    /// Whether these are all commands with the option.
    is_of_all: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Origin {
    Variable(String),
    Line { table: String, line: usize },
}

/// Runs it. `commands` are all commands with their options.
pub fn run(args: &ConfigArgs, commands: &[CommandOptions]) -> Result<u8, Failure> {
    let Action::Show { json } = args.action;
    let file = config_file::read(commands)?;
    let place = config_file::place();
    let values =
        in_force(file.as_ref(), commands, &|name| std::env::var(name).ok().filter(|_| is_in_environment(name)));
    let hosts = file.as_ref().map(|file| file.hosts.as_slice()).unwrap_or_default();
    let others = other_variables(&values);
    let state = match (&place, &file) {
        (_, Some(_)) => "read",
        (Some(path), None) if !path.as_os_str().is_empty() => "not found",
        _ => "no file: the path is empty",
    };
    if json {
        let file = json!({"path": place, "state": state});
        let values: Vec<Value> = values.iter().map(|value| document(value, place.as_deref())).collect();
        let hosts: Vec<Value> = hosts.iter().map(host_document).collect();
        let others: Vec<Value> = others.iter().map(|(name, value)| json!({"variable": name, "value": value})).collect();
        console::json(&json!({"file": file, "values": values, "hosts": hosts, "environment": others}))?;
        return Ok(0);
    }
    outln!("File: {} ({state})", place.unwrap_or_default().display());
    table("Values", &values.iter().map(row).collect::<Vec<_>>());
    table("Hosts", &hosts.iter().map(host_row).collect::<Vec<_>>());
    table("Other variables", &others.into_iter().map(|(name, value)| vec![name, value]).collect::<Vec<_>>());
    if values.is_empty() && hosts.is_empty() {
        outln!("");
        outln!("Nothing is set: each option has the default in the help of its command.");
    }
    Ok(0)
}

/// The values in force; `variable` reads the environment.
fn in_force(
    file: Option<&ConfigFile>,
    commands: &[CommandOptions],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<InForce> {
    let mut found: Vec<InForce> = Vec::new();
    for command in commands {
        let entries = file.map(|file| config::entries_for(file, command)).unwrap_or_default();
        for (option, name) in &command.options {
            let of_environment = name.as_ref().and_then(|name| Some((variable(name)?, Origin::Variable(name.clone()))));
            let of_file = || {
                let entry = entries.iter().find(|entry| entry.option == *option)?;
                Some((entry.shown(), Origin::Line { table: entry.table.clone(), line: entry.line }))
            };
            let Some((value, origin)) = of_environment.or_else(of_file) else { continue };
            let same = |one: &&mut InForce| one.option == *option && one.value == value && one.origin == origin;
            match found.iter_mut().find(same) {
                Some(one) => one.commands.push(command.name.clone()),
                None => found.push(InForce {
                    option: option.clone(),
                    value,
                    origin,
                    commands: vec![command.name.clone()],
                    is_of_all: false,
                }),
            }
        }
    }
    for one in &mut found {
        let having = commands.iter().filter(|command| command.options.iter().any(|(name, _)| *name == one.option));
        one.is_of_all = having.count() == one.commands.len();
    }
    found.sort_by(|a, b| a.option.cmp(&b.option));
    found
}

/// The variables of `thru` that are no option's.
fn other_variables(values: &[InForce]) -> Vec<(String, String)> {
    let shown = |name: &str| values.iter().any(|value| value.origin == Origin::Variable(name.to_owned()));
    let own = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let mut own: Vec<(String, String)> = own
        .filter(|(name, _)| (name.starts_with("THRU_") || name == "IPERF3_PASSWORD") && !shown(name))
        .map(|(name, value)| {
            let is_secret = ["PASSWORD", "SECRET", "TOKEN"].iter().any(|end| name.ends_with(end));
            let value = if is_secret { "(set)".to_owned() } else { value.to_string_lossy().into_owned() };
            (name, value)
        })
        .collect();
    own.sort();
    own
}

fn row(value: &InForce) -> Vec<String> {
    let origin = match &value.origin {
        Origin::Variable(name) => name.clone(),
        Origin::Line { table, line } => format!("[{table}], line {line}"),
    };
    let commands = match value.is_of_all {
        true => "every command that has it".to_owned(),
        false => value.commands.join(", "),
    };
    vec![format!("{} = {}", value.option, value.value), origin, commands]
}

fn document(value: &InForce, path: Option<&Path>) -> Value {
    let origin = match &value.origin {
        Origin::Variable(name) => json!({"variable": name}),
        Origin::Line { table, line } => json!({"file": path, "table": table, "line": line}),
    };
    json!({"option": value.option, "value": value.value, "commands": value.commands, "origin": origin})
}

fn host_row(host: &HostAlias) -> Vec<String> {
    let port = host.port.map_or_else(String::new, |port| format!(", port {port}"));
    let token = host.token_file.as_deref().map_or_else(String::new, |file| format!(", token-file {}", file.display()));
    let key = host.key.map_or_else(String::new, |key| format!(", key {key}"));
    let origin = format!("[hosts.{}], line {}", host.name, host.line);
    vec![host.name.clone(), origin, format!("{}{port}{token}{key}", host.address)]
}

fn host_document(host: &HostAlias) -> Value {
    let key = host.key.map(|key| key.to_string());
    let token: Option<&PathBuf> = host.token_file.as_ref();
    json!({"name": host.name, "address": host.address, "port": host.port, "token_file": token, "key": key, "line": host.line})
}

/// Rows under a title, in columns; nothing without rows.
fn table(title: &str, rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    outln!("");
    outln!("{title}");
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for row in rows {
        let cells: Vec<String> =
            row.iter().enumerate().map(|(column, cell)| format!("{cell:<width$}", width = width(column))).collect();
        outln!("  {}", cells.join("   ").trim_end());
    }
}

#[cfg(test)]
mod tests {
    use command::config_file::Entry;

    use super::*;

    #[test]
    fn each_value_has_its_origin() {
        let command = |name: &str, options: &[(&str, Option<&str>)]| CommandOptions {
            name: name.into(),
            options: options.iter().map(|(name, env)| ((*name).into(), env.map(Into::into))).collect(),
        };
        let commands = [
            command("stream", &[("time", None), ("store", Some("THRU_STORE"))]),
            command("rr", &[("time", None), ("store", Some("THRU_STORE"))]),
            command("curve", &[("time", None)]),
        ];
        let entry = |table: &str, option: &str, line| Entry {
            table: table.into(),
            option: option.into(),
            value: table.into(),
            line,
        };
        let entries = vec![entry("defaults", "time", 2), entry("defaults", "store", 3), entry("rr", "time", 5)];
        let file = ConfigFile { path: "c.toml".into(), entries, hosts: Vec::new() };
        let variable = |name: &str| (name == "THRU_STORE").then(|| "s".to_owned());
        let shown: Vec<String> =
            in_force(Some(&file), &commands, &variable).iter().map(|one| row(one).join(" | ")).collect();
        assert_eq!(
            shown,
            [
                "store = s | THRU_STORE | every command that has it",
                "time = defaults | [defaults], line 2 | stream, curve",
                "time = rr | [rr], line 5 | rr",
            ]
        );
    }
}
