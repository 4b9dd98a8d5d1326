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

/// A command that the page may start.
struct Started {
    name: &'static str,
    /// What it is called on the page.
    title: &'static str,
    /// The options that are asked for most; the others are folded.
    first: &'static [&'static str],
}

/// The commands that the page may start.
const STARTED: [Started; 8] = [
    Started { name: "check", title: "Check a path", first: &["expect"] },
    Started { name: "stream", title: "Goodput", first: &["time", "flows", "reverse", "both", "udp", "rate", "cc"] },
    Started { name: "rr", title: "Round trips", first: &["time", "flows", "udp", "block", "connect"] },
    Started { name: "curve", title: "Curve over block sizes", first: &["to", "udp", "stream", "budget"] },
    Started { name: "transfer", title: "Transfer", first: &["bytes", "flows", "reverse", "cc"] },
    Started { name: "ab", title: "Compare A and B", first: &["a", "b", "pattern", "tolerance", "budget"] },
    Started { name: "mesh", title: "Mesh of hosts", first: &["pattern", "rounds", "time"] },
    Started { name: "run", title: "Plan", first: &["var", "lab"] },
];
/// What options are called on the page, those of one command after its name; others by their own name in words.
const LABELS: [(&str, &str); 34] = [
    ("a", "Options of A"),
    ("b", "Options of B"),
    ("block", "Block size"),
    ("both", "Both directions at once"),
    ("budget", "Time limit"),
    ("bytes", "Amount to transfer"),
    ("cc", "Congestion control"),
    ("connect", "A connection for each exchange"),
    ("count", "Number of blocks or exchanges"),
    ("data", "Address of the far end's data"),
    ("data-from", "Address of the near end's data"),
    ("expect", "What is expected"),
    ("flows", "Parallel connections"),
    ("from", "Near end"),
    ("mesh from", "Sender of a fan-out"),
    ("mesh set", "Option of the measurement"),
    ("mesh to", "Receiver of an incast"),
    ("ipv4", "IPv4 only"),
    ("ipv6", "IPv6 only"),
    ("lab", "In the plan's lab"),
    ("no-path", "Without a look at the path"),
    ("pattern", "What to measure"),
    ("probe", "Round trips beside the load"),
    ("rate", "Limit of the rate"),
    ("responsiveness", "Responsiveness (RPM)"),
    ("reverse", "From the far end to the near end"),
    ("set", "Host setting"),
    ("speak", "Another program's server"),
    ("curve stream", "One way instead of ping-pong"),
    ("target", "Width of the interval to reach"),
    ("time", "Length of a trial"),
    ("curve to", "Largest block"),
    ("udp", "UDP instead of TCP"),
    ("var", "Variable of the plan"),
];
/// The heading of options for files and screens, of which a page has its own.
const OUTPUT: &str = "Output";
/// Options that the page has its own way for, or that ask on the terminal.
const LEFT_OUT: [&str; 7] = ["all", "each", "fetch", "dry-run", "plan", "resume", "until-input-ends"];

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
    let forms =
        STARTED.iter().filter_map(|started| Some(form(command.find_subcommand(started.name)?, started))).collect();
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

fn form(command: &Command, started: &Started) -> Form {
    let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    let test = TestKind::read(command.get_name()).ok();
    let of_option = |arg: &Arg| field(arg, test.and_then(|test| row(arg.get_id().as_str(), test)), started);
    let subject = command.get_positionals().next();
    let place = |field: &Field| started.first.iter().position(|name| *name == field.name).unwrap_or(usize::MAX);
    let mut fields: Vec<Field> = command.get_arguments().filter(|arg| is_offered(arg)).map(of_option).collect();
    fields.sort_by_key(place);
    Form {
        command: command.get_name().to_owned(),
        title: started.title.to_owned(),
        about: text(command.get_about()),
        has_hosts: subject.is_some_and(|arg| arg.get_num_args().is_some_and(|count| count.max_values() > 1)),
        subject: subject.map(|arg| field(arg, None, started)),
        fields,
    }
}

/// What an option is called on the page.
fn label(command: &str, name: &str) -> String {
    let of = |key: &str| LABELS.iter().find(|(other, _)| *other == key).map(|(_, label)| (*label).to_owned());
    of(&format!("{command} {name}")).or_else(|| of(name)).unwrap_or_else(|| {
        let words = name.replace('-', " ");
        let mut letters = words.chars();
        letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    })
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
fn field(arg: &Arg, row: Option<&OptionRow>, started: &Started) -> Field {
    let long = arg.get_long().unwrap_or(arg.get_id().as_str());
    let takes = arg.get_action().takes_values();
    let (least, most) = row.and_then(|row| (row.range)()).map_or((None, None), |range| (Some(range.least), range.most));
    let name = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    Field {
        name: long.to_owned(),
        label: label(started.name, long),
        first: started.first.contains(&long),
        nested: arg.get_long().is_some() && name.as_deref() == Some("FLAGS"),
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
