//! Flags and the keys of plans give the same specs.

use std::collections::BTreeMap;

use clap::{Arg, FromArgMatches};
use command::Failure;
use model::{Pattern, Spec};
use options::{TestKind, Topic, row};
use plan::specs;
use serde_json::{Map, Value};
use session::ThisHost;
use text::RateUnit;

use crate::args::{Args as CommandLine, Command};
use crate::usage;

/// Lines of flags with their specs: the blocks, and what differs from a stream over tcp.
const SPECS: &str = include_str!("../../../plan/testdata/specs.json");
/// Lines of flags that give no spec, the key that the error is about, and the error.
const REFUSED: &str = include_str!("../../../plan/testdata/refused.json");

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

/// The flags of a test's command that are options.
fn flags(test: TestKind) -> Vec<Arg> {
    let command = crate::args::command();
    let arguments = command.find_subcommand(test.name()).unwrap().get_arguments();
    arguments.filter(|arg| row(arg.get_id().as_str(), test).is_some()).cloned().collect()
}

/// The specs of a command line, or its error as a user sees it.
fn by_flags(line: &str) -> Result<Vec<Spec>, String> {
    let words = ["thru"].into_iter().chain(line.split_whitespace());
    let matches = crate::args::command().try_get_matches_from(words).map_err(|error| usage::sentence(&error))?;
    match CommandLine::from_arg_matches(&matches).unwrap().command {
        Command::Stream(args) => specs::of(&args.options(), &ThisHost).map(vec1::Vec1::into_vec),
        Command::Rr(args) => specs::of(&args.options(), &ThisHost).map(vec1::Vec1::into_vec),
        Command::Transfer(args) => specs::of(&args.options(), &ThisHost).map(vec1::Vec1::into_vec),
        Command::Curve(args) => specs::of(&args.options(), &ThisHost).map(vec1::Vec1::into_vec),
        other => panic!("{other:?}"),
    }
    .map_err(|error| Failure::from(error).shown(RateUnit::Bits))
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
    let plan = plan::read("plan.toml", text, &BTreeMap::new(), false, &ThisHost);
    plan.map(|plan| plan.specs().map(|spec| Spec::clone(spec)).collect())
        .map_err(|failure| failure.shown(RateUnit::Bits))
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

/// A text with the options in backticks as a plan spells them.
fn with_keys(text: &str) -> String {
    let part = |part: &str| match part.strip_prefix("--") {
        Some(option) => option.replacen(' ', " = ", 1),
        None => part.to_owned(),
    };
    text.split('`').map(part).collect::<Vec<_>>().join("`")
}

#[test]
fn flags_and_plans_refuse_the_same() {
    let rows: Vec<Map<String, Value>> = serde_json::from_str(REFUSED).unwrap();
    for row in rows {
        let [line, key, what] = ["line", "key", "what"].map(|name| row[name].as_str().unwrap());
        let said = by_plan(line).unwrap_err();
        assert!(said.ends_with(&format!("cell 1: {}", with_keys(what))), "{said}");
        let given = line.contains(&format!("--{key}"));
        assert_eq!(said.contains(&format!(": base.{key}: ")), given, "{said}");
        let said = by_flags(line).unwrap_err();
        assert!(said.contains(&format!("--{key}")) && !said.contains('`'), "{said}");
    }
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
        for flag in flags(pattern).iter().filter(|flag| flag.get_help_heading() != Topic::Sockets.heading()) {
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
