//! `thru web`: runs in a browser.

use std::any::TypeId;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Args, Command};
use command::Failure;
use options::{OptionRow, Payload, TestKind, row};
use web::{Field, Form};

use crate::console;
use crate::flags::LOGIN;

/// The commands that the page may start.
const STARTED: [&str; 5] = ["curve", "stream", "rr", "transfer", "run"];
/// The heading of options for files and screens, of which a page has its own.
const OUTPUT: &str = "Output";
/// Options that the page has its own way for, or that ask on the terminal.
const LEFT_OUT: [&str; 6] = ["all", "each", "fetch", "dry-run", "resume", "until-input-ends"];

/// Flags of `thru web`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/web.txt").trim_end())]
pub struct WebArgs {
    /// Address and port to listen on. The page is not encrypted: keep it on loopback, and reach it from elsewhere with ssh -L.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6290")]
    listen: SocketAddr,

    /// File with the agents' token, for tests that are started from the page.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &WebArgs, mut command: Command) -> Result<u8, Failure> {
    command.build();
    let forms = STARTED.iter().filter_map(|name| command.find_subcommand(name)).map(form).collect();
    let options = web::PageOptions {
        listen: args.listen,
        store: args.store.clone(),
        token_file: args.token_file.clone(),
        spelling: console::spelling(),
        forms,
    };
    if !args.listen.ip().is_loopback() {
        errln!("thru: {} is not on loopback: the page and its token cross the network unencrypted", args.listen);
    }
    web::serve(options, |address| outln!("{address}"))?;
    Ok(0)
}

fn form(command: &Command) -> Form {
    let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    let test = TestKind::read(command.get_name()).ok();
    let of_option = |arg: &Arg| field(arg, test.and_then(|test| row(arg.get_id().as_str(), test)));
    Form {
        command: command.get_name().to_owned(),
        about: text(command.get_about()),
        subject: command.get_positionals().next().map(|arg| field(arg, None)),
        fields: command.get_arguments().filter(|arg| is_offered(arg)).map(of_option).collect(),
    }
}

fn is_offered(arg: &Arg) -> bool {
    let Some(name) = arg.get_long() else { return false };
    let help =
        matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version);
    let output = arg.get_help_heading() == Some(OUTPUT) && name != "name";
    let login = arg.get_help_heading() == Some(LOGIN);
    // Anyone who has the token of the page reads and writes no file of their choice.
    let names = arg.get_value_names().unwrap_or_default();
    let is_file_by_name = names.iter().any(|name| name == "FILE" || name == "DIR");
    let file = is_file_by_name || arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    !(arg.is_hide_set() || help || output || login || file || LEFT_OUT.contains(&name))
}

/// A field of a form, with the range of the option that has this row.
fn field(arg: &Arg, row: Option<&OptionRow>) -> Field {
    let takes = arg.get_action().takes_values();
    let (least, most) = row.and_then(|row| (row.range)()).map_or((None, None), |range| (Some(range.least), range.most));
    let name = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    Field {
        name: arg.get_long().unwrap_or(arg.get_id().as_str()).to_owned(),
        help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        value: takes.then(|| name.unwrap_or_else(|| "VALUE".into())),
        optional: arg.get_num_args().is_some_and(|count| count.min_values() == 0),
        choices: match arg.get_id().as_str() {
            // It may be a file, too, which the page does not read.
            "payload" => Payload::KINDS.map(|(name, _)| name.to_owned()).into(),
            _ => arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        },
        default: arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned()),
        // `LOCAL,REMOTE` is not a number.
        number: row.is_some_and(|row| !row.is_per_end()) && [&least, &most].iter().all(|end| is_number(end.as_deref())),
        range: [least, most],
        heading: arg.get_help_heading().map(str::to_owned),
    }
}

fn is_number(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
}
