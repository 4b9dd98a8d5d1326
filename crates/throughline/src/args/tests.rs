//! No error of the command line is the text of a library, and each names its flag.

use super::*;
use crate::usage;

/// Values that no flag takes.
const GARBAGE: [&str; 8] = ["x", "-1", "", "1.5", "99999999999999999999", "1,x", "0x10", "NaN"];
/// Messages of the standard library's parsers.
const LIBRARY_MESSAGES: [&str; 8] = [
    "invalid digit",
    "cannot parse",
    "out of range",
    "ParseIntError",
    "too large to fit",
    "invalid float",
    "invalid IP address",
    "from empty string",
];
/// Value names of quantities.
const QUANTITIES: [&str; 7] = ["N", "SIZE", "TIME", "RATE", "PERCENT", "BYTES", "PORT"];

/// Every command with its subcommands.
fn all(command: &Clap) -> Vec<Clap> {
    let below = command.get_subcommands().flat_map(all);
    std::iter::once(command.clone()).chain(below).collect()
}

/// The error for one value of one flag; `None` where the value is accepted.
fn message(command: &Clap, arg: &Arg, value: &str) -> Option<String> {
    let word = match arg.get_long() {
        Some(name) => format!("--{name}={value}"),
        None => value.to_owned(),
    };
    command.clone().try_get_matches_from([command.get_name(), &word]).err().map(|error| usage::sentence(&error))
}

#[test]
fn no_error_is_a_library_message() {
    let mut tried = 0;
    for command in all(&super::command()) {
        for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
            for message in GARBAGE.iter().filter_map(|value| message(&command, arg, value)) {
                tried += 1;
                let library = LIBRARY_MESSAGES.iter().find(|phrase| message.contains(**phrase));
                assert_eq!(library, None, "{} {}: {message}", command.get_name(), arg.get_id());
            }
        }
    }
    assert!(tried > 500, "{tried} refusals");
}

#[test]
fn an_invalid_quantity_names_its_flag() {
    for command in all(&super::command()) {
        let quantity = |arg: &&Arg| arg.get_value_names().is_some_and(|names| QUANTITIES.contains(&names[0].as_str()));
        let long = command.get_arguments().filter(quantity).filter(|arg| arg.get_long().is_some());
        for arg in long {
            for value in ["x", "-1", "99999999999999999999"] {
                let of = format!("{} --{}", command.get_name(), arg.get_long().unwrap_or_default());
                let message = message(&command, arg, value).unwrap_or_else(|| panic!("{of}={value} is accepted"));
                let flag = format!("--{}: ", arg.get_long().unwrap_or_default());
                assert!(message.starts_with(&flag) && message.contains(&format!("'{value}'")), "{of}: {message}");
            }
        }
    }
}

#[test]
fn a_negative_number_after_a_flag_is_its_value() {
    let error = super::command().try_get_matches_from(["thru", "stream", "b", "--flows", "-1"]).unwrap_err();
    assert_eq!(usage::sentence(&error), "--flows: '-1' is not a whole number from 1 to 16384");
    assert!(super::command().try_get_matches_from(["thru", "stream", "-4", "b"]).is_ok());
}

#[test]
fn a_renamed_flag_names_the_new_one() {
    for flag in ["--wad", "--wad=rules.toml"] {
        let error = super::command().try_get_matches_from(["thru", "stream", "b", flag]).unwrap_err();
        assert_eq!(usage::sentence(&error), "--wad is now called --cc-rules");
    }
}

#[test]
fn rr_does_not_list_flags_that_it_refuses() {
    let help = super::command().find_subcommand_mut("rr").unwrap().render_long_help().to_string();
    assert!(!help.contains("--both") && help.contains("--flows"), "{help}");
}
