//! The flags of options, from the rows of the table.

use std::marker::PhantomData;
use text::Spelling;

use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, ValueHint};
use options::{OptionRow, TestKind, TestOptions, Topic, rows, rows_of};

use crate::registries;

/// Which options a command has.
pub trait Selection {
    /// The test whose help and values they have.
    const TEST: TestKind;

    /// Their rows.
    fn rows() -> impl Iterator<Item = &'static OptionRow> {
        rows_of(Self::TEST)
    }
}

/// The options of `thru stream`.
#[derive(Debug)]
pub struct OfStream;
/// The options of `thru rr`.
#[derive(Debug)]
pub struct OfRr;
/// The options of `thru transfer`.
#[derive(Debug)]
pub struct OfTransfer;
/// The options of `thru curve`.
#[derive(Debug)]
pub struct OfCurve;
/// The options that a search for settings leaves alone.
#[derive(Debug)]
pub struct OfSearch;
/// The addresses of a path, and the program at its far end.
#[derive(Debug)]
pub struct OfPath;
/// The addresses that both sides of a comparison share.
#[derive(Debug)]
pub struct OfBothSides;

impl Selection for OfStream {
    const TEST: TestKind = TestKind::Stream;
}

impl Selection for OfRr {
    const TEST: TestKind = TestKind::Rr;
}

impl Selection for OfTransfer {
    const TEST: TestKind = TestKind::Transfer;
}

impl Selection for OfCurve {
    const TEST: TestKind = TestKind::Curve;
}

impl Selection for OfSearch {
    const TEST: TestKind = TestKind::Stream;

    fn rows() -> impl Iterator<Item = &'static OptionRow> {
        rows().filter(|row| row.fixes_search)
    }
}

impl Selection for OfPath {
    const TEST: TestKind = TestKind::Stream;

    fn rows() -> impl Iterator<Item = &'static OptionRow> {
        rows().filter(|row| row.topic == Topic::Hosts)
    }
}

impl Selection for OfBothSides {
    const TEST: TestKind = TestKind::Stream;

    fn rows() -> impl Iterator<Item = &'static OptionRow> {
        rows().filter(|row| row.topic == Topic::Hosts && row.fixes_search)
    }
}

/// The options that a command line gives.
#[derive(Debug, Clone)]
pub struct Given<S> {
    /// The options.
    pub options: TestOptions,
    selection: PhantomData<S>,
}

impl<S: Selection> clap::Args for Given<S> {
    fn augment_args(command: Command) -> Command {
        command.args(S::rows().map(|row| arg(row, S::TEST)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Selection> FromArgMatches for Given<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Self { options: TestOptions::new(S::TEST), selection: PhantomData };
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for row in S::rows().filter(|row| matches.value_source(row.key) == Some(ValueSource::CommandLine)) {
            let values: Vec<&str> = match row.value {
                Some(_) => matches.get_many::<String>(row.key).into_iter().flatten().map(String::as_str).collect(),
                None => vec!["true"],
            };
            for value in values {
                let set = self.options.set(row.key, value);
                set.map_err(|error| clap::Error::raw(clap::error::ErrorKind::InvalidValue, error))?;
            }
        }
        Ok(())
    }
}

/// The flag of an option, with the help and the values of a test.
fn arg(row: &'static OptionRow, test: TestKind) -> Arg {
    let help = help(row, test);
    let mut arg = Arg::new(row.key).long(row.key).help_heading(row.topic.heading()).hide(help.is_empty()).help(help);
    if let Some(short) = row.short {
        arg = arg.short(short);
    }
    if let Some(alias) = row.alias {
        arg = arg.alias(alias);
    }
    let Some(value) = row.value else { return arg.action(ArgAction::SetTrue) };
    arg = arg.value_name(value).value_parser(parser(row, test));
    if row.repeats {
        arg = arg.action(ArgAction::Append);
    }
    if let Some(default) = row.default {
        arg = arg.default_value(default);
    }
    if let Some(implied) = row.implied {
        arg = arg.num_args(0..=1).default_missing_value(implied).require_equals(true);
    }
    if row.is_file {
        arg = arg.value_hint(ValueHint::FilePath);
    }
    arg
}

/// Help of an option; that of some lists what registries have.
fn help(row: &OptionRow, test: TestKind) -> String {
    match (row.key, test) {
        ("block", TestKind::Stream | TestKind::Transfer) => registries::block_help(),
        ("speak", _) => registries::speak_help(test.name()),
        _ => row.help_for(test).to_owned(),
    }
}

/// Checks a value, which stays text.
fn parser(row: &'static OptionRow, test: TestKind) -> ValueParser {
    if row.key == "transport" {
        return registries::transports().into();
    }
    if !row.choices.is_empty() {
        return registries::one_of(row.choices).into();
    }
    ValueParser::from(move |text: &str| match TestOptions::new(test).set(row.key, text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(error.what().shown(Spelling::default())),
    })
}
