//! Flags and the keys of a draft are the same, and give the same specs.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, FromArgMatches};
use model::{Pattern, Spec};
use serde_json::{Map, Value};
use session::draft::{FIELDS, Field, TestKind, field};

use super::*;
use crate::args::{Args as CommandLine, Command};
use crate::spec_args::RUN_WIDE;
use crate::{spelling, usage};

/// Flags of `thru curve` for the run as a whole: which sizes are added or left out while it runs, their order, and its output.
const OF_CURVE: [&str; 6] = ["adaptive", "order", "limit", "np", "no_ceiling", "all"];

/// Flags that are short for others, and other programs' spellings.
const SHORT_FOR_OTHERS: [&str; 2] = ["window", "rate_of_flow"];

/// Lines of flags with their specs: the blocks, and what differs from a stream over tcp.
const SPECS: &str = include_str!("../../../session/testdata/specs.json");
/// Lines of flags that no draft can be finished with, the key that the error is about, and the error.
const REFUSED: &str = include_str!("../../../session/testdata/refused.json");

/// Each line of the table with its specs.
fn table() -> Vec<(String, Vec<Spec>)> {
    let rows: Vec<Map<String, Value>> = serde_json::from_str(SPECS).unwrap();
    let base = serde_json::to_value(Spec::new("tcp", Pattern::Stream)).unwrap();
    let specs = |row: &Map<String, Value>| {
        let of = |block: &Value| {
            let mut spec = base.clone();
            let whole = spec.as_object_mut().unwrap();
            whole.extend(row["changes"].as_object().unwrap().clone());
            whole.insert("block".into(), block.clone());
            serde_json::from_value(spec).unwrap()
        };
        row["blocks"].as_array().unwrap().iter().map(of).collect()
    };
    rows.iter().map(|row| (row["line"].as_str().unwrap().to_owned(), specs(row))).collect()
}

/// The flags of a pattern's command that belong to a spec.
fn flags(pattern: TestKind) -> Vec<Arg> {
    let command = crate::args::command();
    let arguments = command.find_subcommand(pattern.name()).unwrap().get_arguments();
    let others: Vec<&str> = RUN_WIDE.into_iter().chain(OF_CURVE).chain(SHORT_FOR_OTHERS).collect();
    let of_spec = |arg: &&Arg| !others.contains(&arg.get_id().as_str());
    arguments.filter(of_spec).cloned().collect()
}

/// The specs of a command line, or its error as a user sees it.
fn by_flags(line: &str) -> Result<Vec<Spec>, String> {
    let words = ["thru"].into_iter().chain(line.split_whitespace());
    let matches = crate::args::command().try_get_matches_from(words).map_err(|error| usage::sentence(&error))?;
    match CommandLine::from_arg_matches(&matches).unwrap().command {
        Command::Stream(args) => args.draft().finish(),
        Command::Rr(args) => args.draft().finish(),
        Command::Transfer(args) => args.draft().finish(),
        Command::Curve(args) => args.draft().finish(),
        other => panic!("{other:?}"),
    }
    .map_err(|failure| {
        spelling::learn(&crate::args::command());
        spelling::flags(&failure.to_string()).into_owned()
    })
}

/// The specs of a plan with the keys of the line.
fn by_plan(line: &str) -> Result<Vec<Spec>, String> {
    let mut words = line.split_whitespace();
    let mut text = format!("to = \"127.0.0.1\"\n[base]\npattern = \"{}\"\n", words.next().unwrap());
    for word in words {
        match word.trim_start_matches('-').split_once('=') {
            Some((key, value)) => text.push_str(&format!("{key} = \"{value}\"\n")),
            None => text.push_str(&format!("{} = true\n", word.trim_start_matches('-'))),
        }
    }
    let plan = session::plan::read("plan.toml", text, &BTreeMap::new(), false);
    plan.map(|plan| plan.specs.iter().map(|spec| Spec::clone(spec)).collect()).map_err(|failure| failure.to_string())
}

#[test]
fn each_flag_of_a_measurement_is_a_field_and_each_field_a_flag() {
    for pattern in TestKind::ALL {
        let flags = flags(pattern);
        let names: BTreeSet<&str> = flags.iter().filter_map(Arg::get_long).collect();
        let fields: BTreeSet<&str> =
            FIELDS.iter().filter(|field| field.is_of(pattern)).map(|field| field.key).collect();
        assert_eq!(names, fields, "{}", pattern.name());
        for flag in flags {
            let of: &Field = field(flag.get_long().unwrap_or_default()).unwrap();
            assert_eq!(
                of.per_end,
                flag.get_help_heading() == Some(PER_END) && !of.is_file && of.key != "set",
                "{}",
                of.key
            );
            assert_eq!(of.is_file, flag.get_value_hint() == clap::ValueHint::FilePath, "{}", of.key);
        }
    }
}

#[test]
fn flags_and_plans_give_the_specs_of_the_table() {
    let mut in_plans = 0;
    for (line, specs) in table() {
        assert_eq!(by_flags(&line), Ok(specs.clone()), "{line}");
        // A plan has settings of its own, and no other programs.
        if !line.contains("--set=") && !line.contains("--speak=") {
            assert_eq!(by_plan(&line), Ok(specs), "{line}");
            in_plans += 1;
        }
    }
    assert!(in_plans > 50, "{in_plans}");
}

#[test]
fn flags_and_plans_refuse_the_same() {
    let rows: Vec<Map<String, Value>> = serde_json::from_str(REFUSED).unwrap();
    for row in rows {
        let [line, key, what] = ["line", "key", "what"].map(|name| row[name].as_str().unwrap());
        let said = by_plan(line).unwrap_err();
        assert!(said.ends_with(&format!("cell 1: {what}")), "{said}");
        let given = line.contains(&format!("--{key}"));
        assert_eq!(said.contains(&format!(": base.{key}: ")), given, "{said}");
        let said = by_flags(line).unwrap_err();
        assert!(said.contains(&format!("--{key}")) && !said.contains('`'), "{said}");
    }
}

#[test]
fn flags_and_fields_take_the_same_values() {
    let values = [
        "x",
        "-1",
        "0",
        "1",
        "1.5",
        "99999999999999999999",
        "",
        "1,x",
        "10ms",
        "1us",
        "40000s",
        "64KiB",
        "2GiB",
        "1Gbit",
        "1GB",
        "auto",
        "copy",
        "gso,trunc",
        "series",
        "off",
        "udp",
        "::1",
        "iperf3",
        "1000/s",
        "0-3",
        "fast:alpha=x",
        "1,",
        ",",
        "70000",
        "near:dev.a.mtu=9000",
    ];
    let mut accepted = 0;
    for pattern in TestKind::ALL {
        let command = crate::args::command().find_subcommand(pattern.name()).unwrap().clone();
        for flag in flags(pattern).iter().filter(|flag| flag.get_action().takes_values()) {
            let key = flag.get_long().unwrap();
            for value in values {
                let word = format!("--{key}={value}");
                let by_flag = command.clone().try_get_matches_from(["thru", &word]).map(drop);
                let by_field = SpecDraft::new(pattern).set(key, value);
                // clap has its own words for a value that is missing.
                if value.is_empty() {
                    continue;
                }
                accepted += usize::from(by_flag.is_ok());
                let said = by_flag.map_err(|error| usage::sentence(&error));
                assert_eq!(said, by_field.map_err(|error| format!("--{error}")), "{} {word}", pattern.name());
            }
        }
    }
    assert!(accepted > 500, "{accepted}");
}

#[test]
fn a_default_that_help_names_is_the_default() {
    let mut named = 0;
    for (pattern, line) in [
        (TestKind::Stream, "stream --capture=."),
        (TestKind::Rr, "rr --capture=."),
        (TestKind::Transfer, "transfer --count=1 --capture=."),
        (TestKind::Curve, "curve"),
    ] {
        let specs = by_flags(line).unwrap();
        // The defaults of socket options are the kernel's.
        for flag in flags(pattern).iter().filter(|flag| flag.get_help_heading() != Some(PER_END)) {
            let key = flag.get_long().unwrap();
            let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
            let written =
                help.split_once("[default: ").and_then(|(_, rest)| rest.split_once(']')).map(|(value, _)| value);
            let value = match (flag.get_default_values(), written) {
                ([value], _) if flag.get_action().takes_values() => value.to_str().unwrap().to_owned(),
                (_, Some(value)) if !value.contains(' ') => value.to_owned(),
                _ => continue,
            };
            assert_eq!(by_flags(&format!("{line} --{key}={value}")), Ok(specs.clone()), "{line} --{key}={value}");
            named += 1;
        }
    }
    assert!(named > 30, "{named}");
}
