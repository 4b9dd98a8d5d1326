//! A command line with other programs' options, in our own.

use std::ffi::OsString;
use std::net::Ipv6Addr;

use clap::{Arg, Command};
use command::Failure;

use super::iperf3::IPERF3;
use super::netperf::{NETPERF, NETPERF_OF_TEST};
use super::spelling::{Habit, Here, Of};
use crate::front_door;

/// The commands that take other programs' options.
const COMMANDS: [&str; 8] = ["stream", "rr", "curve", "transfer", "ab", "check", "advise", "serve"];
/// The options of every command.
const HELP: [&str; 2] = ["-h", "--help"];

/// The command line `words` with our options in place of those of other programs.
///
/// # Errors
/// An option of another program without a counterpart, or with one that the command does not have.
pub fn translated(mut words: Vec<OsString>, root: &Command) -> Result<Vec<OsString>, Failure> {
    let Some(at) = front_door::command_at(&words, root) else { return Ok(words) };
    let named = words[at].to_str().and_then(|name| root.find_subcommand(name));
    let Some(command) = named.filter(|command| COMMANDS.contains(&command.get_name())) else { return Ok(words) };
    let line = Line::new(command, root).read(words.split_off(at + 1)).map_err(|text| Failure::usage(shown(&text)))?;
    words.extend(line);
    Ok(words)
}

/// The words of a measurement, of which the first is its command, with our options in place of those of other programs.
///
/// # Errors
/// As [`translated`].
pub fn of_side(words: &[String], root: &Command) -> Result<Vec<OsString>, String> {
    let mut all: Vec<OsString> = words.iter().map(OsString::from).collect();
    let Some(command) = words.first().and_then(|name| root.find_subcommand(name)) else { return Ok(all) };
    let line = Line::new(command, root).read(all.split_off(1)).map_err(|text| shown(&text))?;
    all.extend(line);
    Ok(all)
}

/// What a command line that begins with an option of another program is here.
pub fn of_no_command(words: &[OsString]) -> Option<Failure> {
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let is = |names: &[&str]| words.iter().position(|word| names.contains(word));
    let first = words.first().filter(|word| word.starts_with('-'))?;
    if ["--units", "--help", "--version"].iter().any(|own| first.starts_with(own)) {
        return None;
    }
    let text = match (is(&["-s", "--server"]), is(&["-c", "--client"]), is(&["-H"])) {
        (Some(at), None, _) => format!("iperf3's {} is `{}` here", words[at], with("thru serve", &words, at, 1)),
        (_, Some(at), _) => {
            let start = format!("thru stream {}", words.get(at + 1).unwrap_or(&"HOST"));
            format!("iperf3's {} HOST is `{}` here", words[at], with(&start, &words, at, 2))
        }
        (_, _, Some(at)) => {
            let host = words.get(at + 1).unwrap_or(&"HOST");
            format!("netperf's -H {host} is `thru stream {host}` or `thru rr {host}` here")
        }
        _ => return None,
    };
    Some(Failure::usage(text))
}

/// A command with the words that are left without `count` of them.
fn with(start: &str, words: &[&str], at: usize, count: usize) -> String {
    let left = words.iter().enumerate().filter(|(place, _)| *place < at || *place >= at + count);
    left.fold(start.to_owned(), |line, (_, word)| line + " " + word)
}

/// A text of the table on a terminal, where only commands are in backticks.
fn shown(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(number, part)| match number % 2 {
        1 if part.starts_with("thru ") => format!("`{part}`"),
        _ => part.to_owned(),
    });
    parts.collect()
}

/// A word that was made of another program's option.
struct Made {
    /// Our option.
    option: String,
    /// How it was typed.
    typed: String,
    /// Its place.
    at: usize,
}

/// The words behind a command.
pub(super) struct Line<'a> {
    command: &'a Command,
    root: &'a Command,
    words: Vec<OsString>,
    host: Option<usize>,
    made: Vec<Made>,
    port: Option<(String, String)>,
    /// Whether the words are those of a test of netperf, after `--`.
    pub(super) of_test: bool,
}

type Rest = std::iter::Peekable<std::vec::IntoIter<OsString>>;

impl<'a> Line<'a> {
    pub(super) fn new(command: &'a Command, root: &'a Command) -> Self {
        Self { command, root, words: Vec::new(), host: None, made: Vec::new(), port: None, of_test: false }
    }

    pub(super) fn read(mut self, words: Vec<OsString>) -> Result<Vec<OsString>, String> {
        let mut rest = words.into_iter().peekable();
        while let Some(word) = rest.next() {
            match word.to_str().map(str::to_owned) {
                Some(text) if text == "--" => self.separator(&mut rest),
                Some(text) if text.starts_with("--") => self.long(&text, &mut rest)?,
                Some(text) if text.starts_with('-') && text.len() > 1 => self.letters(&text, &mut rest)?,
                _ => {
                    self.host.get_or_insert(self.words.len());
                    self.words.push(word);
                }
            }
        }
        self.with_port()
    }

    /// What follows `--`: options of a test of netperf, or words that are no options.
    fn separator(&mut self, rest: &mut Rest) {
        self.of_test = rest.peek().is_some_and(|next| next.to_str().is_some_and(|next| next.starts_with('-')));
        if !self.of_test {
            self.words.push("--".into());
            self.words.extend(rest);
        }
    }

    fn long(&mut self, text: &str, rest: &mut Rest) -> Result<(), String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        if let Some(row) = self.row(name, value.or(peeked(rest)))? {
            let value = value_of(row, name, value, rest)?;
            return self.apply(row, name, &value);
        }
        self.words.push(text.into());
        if let Some(arg) = self.own(name).filter(|_| value.is_none()) {
            self.value_of_own(arg, rest);
        }
        Ok(())
    }

    /// Letters with one dash, of which the last may have a value.
    fn letters(&mut self, text: &str, rest: &mut Rest) -> Result<(), String> {
        for (at, letter) in text.char_indices().skip(1) {
            let name = format!("-{letter}");
            let behind = Some(&text[at + letter.len_utf8()..]).filter(|behind| !behind.is_empty());
            if let Some(row) = self.row(&name, behind.or(peeked(rest)))? {
                let inline = behind.filter(|_| row.value.is_some());
                let value = value_of(row, &name, inline, rest)?;
                self.apply(row, &name, &value)?;
                if inline.is_some() {
                    return Ok(());
                }
                continue;
            }
            let Some(arg) = self.own(&name) else {
                // Not one of ours either: the parser says so.
                self.words.push(format!("-{}", &text[at..]).into());
                return Ok(());
            };
            self.words.push(name.into());
            if !arg.get_action().takes_values() {
                continue;
            }
            match behind {
                Some(value) => self.value(arg, value.trim_start_matches('=').into()),
                None => self.value_of_own(arg, rest),
            }
            return Ok(());
        }
        Ok(())
    }

    fn value_of_own(&mut self, arg: &Arg, rest: &mut Rest) {
        if !arg.get_action().takes_values() || arg.is_require_equals_set() {
            return;
        }
        let must_have = arg.get_num_args().is_none_or(|count| count.min_values() > 0);
        let is_option = rest.peek().is_some_and(|next| next.len() > 1 && next.to_string_lossy().starts_with('-'));
        if let Some(value) = rest.next_if(|_| must_have || !is_option) {
            self.value(arg, value);
        }
    }

    fn value(&mut self, arg: &Arg, value: OsString) {
        if arg.get_id() == "far_host" {
            self.host = Some(self.words.len());
        }
        self.words.push(value);
    }

    /// Our option with this spelling.
    fn own(&self, spelling: &str) -> Option<&'a Arg> {
        let of_root = self.root.get_arguments().filter(|arg| arg.is_global_set());
        self.command.get_arguments().chain(of_root).find(|arg| spells(arg, spelling))
    }

    fn is_own(&self, spelling: &str) -> bool {
        HELP.contains(&spelling) || self.own(spelling).is_some()
    }

    /// The row of a spelling, unless it is ours.
    pub(super) fn row(&self, spelling: &str, next: Option<&str>) -> Result<Option<&'static Habit>, String> {
        let tables = [IPERF3, NETPERF, NETPERF_OF_TEST];
        let is_server = self.command.get_name() == "serve";
        let is_own = !self.of_test && self.is_own(spelling);
        let fits = |row: &&Habit| {
            row.names.contains(&spelling)
                && row.only.map_or(!is_own, |only| only(next))
                && (!self.of_test || row.of == Of::NetperfTest)
                && (!is_server || row.of.program() == "iperf3")
        };
        let mut rows: Vec<&Habit> = tables.into_iter().flatten().filter(fits).collect();
        rows.sort_by_key(|row| (row.of == Of::Iperf3Server) != is_server);
        if let Some(row) = rows.iter().find(|row| row.only.is_some()) {
            return Ok(Some(row));
        }
        let of_rr = self.command.get_name() == "rr";
        let first = rows.first().map(|row| row.of.program());
        rows.retain(|row| of_rr || Some(row.of.program()) == first);
        let usable: Vec<&&Habit> = rows.iter().filter(|row| self.is_usable(row)).collect();
        match usable[..] {
            // netperf's users measure round trips too.
            [a, b, ..] if of_rr && a.of.program() != b.of.program() && b.of == Of::Netperf && a.ours() != b.ours() => {
                Err(format!(
                    "{spelling} is `{}` for iperf3 and `{}` for netperf: write the one that you mean",
                    a.ours(),
                    b.ours()
                ))
            }
            [row, ..] => Ok(Some(row)),
            [] => Ok(rows.first().copied()),
        }
    }

    /// Whether the command has what a row leads to.
    fn is_usable(&self, row: &Habit) -> bool {
        match row.here {
            Here::Port => true,
            Here::Answer(_) => false,
            _ => row.ours().split(' ').filter(|word| word.starts_with('-')).all(|option| self.is_own(option)),
        }
    }

    /// Adds what an option is here.
    pub(super) fn apply(&mut self, row: &Habit, spelling: &str, value: &str) -> Result<(), String> {
        let program = row.of.program();
        match row.here {
            Here::Answer(answer) => {
                let typed = if row.only.is_some() && !value.is_empty() { format!(" {value}") } else { String::new() };
                return Err(format!("{program}'s {spelling}{typed} {answer}"));
            }
            _ if !self.is_usable(row) => return Err(not_here(row, spelling, self.root)),
            Here::Port => self.port = Some((spelling.to_owned(), value.to_owned())),
            Here::Option(ours) if row.value.is_none() => self.made(ours, None, spelling)?,
            Here::Option(ours) => self.made(ours, Some(value), spelling)?,
            Here::Words(convert, _) => {
                let words = convert(value).map_err(|what| format!("{program}'s {spelling}: {what}"))?;
                let mut words = words.iter().peekable();
                while let Some(word) = words.next() {
                    match word.split_once('=') {
                        Some((option, value)) => self.made(option, Some(value), spelling)?,
                        None => self.made(word, words.next().map(String::as_str), spelling)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds one of our options; the values of both ends may come from two of another program.
    fn made(&mut self, option: &str, value: Option<&str>, typed: &str) -> Result<(), String> {
        let word = |value: &str| OsString::from(format!("{option}={value}"));
        let before = self.made.iter().find(|made| made.option == option && made.typed != typed);
        if let (Some(before), Some(value)) = (before, value) {
            let had = self.words[before.at].to_string_lossy().replacen(&format!("{option}="), "", 1);
            let both = match (had.strip_suffix(','), value.strip_prefix(',')) {
                (Some(near), Some(far)) => format!("{near},{far}"),
                _ => match (had.strip_prefix(','), value.strip_suffix(',')) {
                    (Some(far), Some(near)) => format!("{near},{far}"),
                    _ => return Err(format!("{} and {typed} are both {option} here: write that once", before.typed)),
                },
            };
            self.words[before.at] = word(&both);
            return Ok(());
        }
        let Some(value) = value else {
            self.words.push(option.into());
            return Ok(());
        };
        if option == "-H" {
            self.host = Some(self.words.len() + 1);
        }
        match option.starts_with("--") {
            true => {
                self.made.push(Made { option: option.to_owned(), typed: typed.to_owned(), at: self.words.len() });
                self.words.push(word(value));
            }
            false => self.words.extend([option.into(), value.into()]),
        }
        Ok(())
    }

    /// The words with the port in their place.
    fn with_port(mut self) -> Result<Vec<OsString>, String> {
        let Some((spelling, port)) = self.port.take() else { return Ok(self.words) };
        if self.command.get_name() == "serve" {
            return listening(self.words, &port);
        }
        let Some(at) = self.host else {
            return Err(format!("{spelling} {port} is the port of HOST, which is missing: HOST:{port}"));
        };
        let host = at_port(&self.words[at].to_string_lossy(), &port)?;
        self.words[at] = host.into();
        Ok(self.words)
    }
}

impl Habit {
    /// What it is here, as it is shown.
    pub fn ours(&self) -> &'static str {
        match self.here {
            Here::Option(ours) | Here::Words(_, ours) => ours,
            Here::Port => "HOST:PORT",
            Here::Answer(answer) => answer,
        }
    }
}

fn spells(arg: &Arg, spelling: &str) -> bool {
    match spelling.strip_prefix("--") {
        Some(long) => {
            arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&long))
        }
        None => {
            let letter = spelling.chars().nth(1);
            let aliases = arg.get_all_short_aliases().unwrap_or_default();
            letter.is_some_and(|letter| arg.get_short() == Some(letter) || aliases.contains(&letter))
        }
    }
}

fn peeked(rest: &mut Rest) -> Option<&str> {
    rest.peek().and_then(|next| next.to_str())
}

/// The value of another program's option. An answer needs none.
fn value_of(row: &Habit, spelling: &str, inline: Option<&str>, rest: &mut Rest) -> Result<String, String> {
    match (row.value, row.here) {
        (None, _) => Ok(String::new()),
        (Some(_), Here::Answer(_)) => Ok(inline.or(peeked(rest)).unwrap_or_default().to_owned()),
        (Some(name), _) => {
            let value =
                inline.map(str::to_owned).or_else(|| rest.next().map(|word| word.to_string_lossy().into_owned()));
            value.ok_or_else(|| format!("{spelling} needs a value: {spelling} {name}"))
        }
    }
}

/// Every long option of other programs, with its dashes.
pub fn long_names() -> impl Iterator<Item = &'static str> {
    let names = [IPERF3, NETPERF].into_iter().flatten().flat_map(|row| row.names.iter().copied());
    names.filter(|name| name.starts_with("--"))
}

/// The error for an option that other commands have.
fn not_here(row: &Habit, spelling: &str, root: &Command) -> String {
    let has = |name: &&str| root.find_subcommand(name).is_some_and(|command| Line::new(command, root).is_usable(row));
    let having: Vec<String> = COMMANDS.iter().filter(|name| has(name)).map(|name| format!("`thru {name}`")).collect();
    let of = if having.is_empty() { String::new() } else { format!(", an option of {}", having.join(", ")) };
    if row.ours() == spelling {
        return format!("there is no {spelling} here{of}");
    }
    format!("{}'s {spelling} is `{}` here{of}", row.of.program(), row.ours())
}

/// An address or name with a port.
fn at_port(host: &str, port: &str) -> Result<String, String> {
    let is_ipv6 = host.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    match (is_ipv6, host.contains(':') && !host.ends_with(']')) {
        (true, _) => Ok(format!("[{host}]:{port}")),
        (false, false) => Ok(format!("{host}:{port}")),
        (false, true) => Err(format!("{host} has a port already: leave out -p {port}")),
    }
}

/// The words of a server with the port at each address that it listens on, or at those where it listens without any.
fn listening(mut words: Vec<OsString>, port: &str) -> Result<Vec<OsString>, String> {
    let mut found = false;
    let mut is_address = false;
    for word in &mut words {
        let text = word.to_string_lossy().into_owned();
        if is_address {
            *word = at_port(&text, port)?.into();
        } else if let Some(address) = text.strip_prefix("--listen=") {
            *word = format!("--listen={}", at_port(address, port)?).into();
        }
        found |= is_address || text.starts_with("--listen=");
        is_address = text == "--listen";
    }
    if !found {
        let invites = words.iter().any(|word| word == "--invite" || word == "--invited");
        let addresses: &[&str] = if invites { &["[::]"] } else { &["127.0.0.1", "[::1]"] };
        words.extend(addresses.iter().map(|address| OsString::from(format!("--listen={address}:{port}"))));
    }
    Ok(words)
}
