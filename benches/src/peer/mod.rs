//! The tools. Each is one file and one line in [`PEERS`].

mod bare;
mod iperf2;
mod iperf3;
mod neper;
mod netperf;
mod netpipe;
mod nuttcp;
mod qperf;
mod sockperf;
mod thru;
mod xfr;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::process::{Ended, Program, Ready};
use crate::work::{STARTS, Task, UNOBSERVED, UNPACED};

/// Our own tool.
pub const OURS: &str = thru::NAME;

/// The loops without a tool around them.
pub const BARE: &str = "bare";

/// All tools, ours first.
pub static PEERS: &[&dyn Peer] = &[
    &thru::Thru,
    &thru::Unobserved,
    &thru::Unpaced,
    &thru::Before,
    &bare::Bare,
    &iperf3::PACKAGED,
    &iperf3::NEWEST,
    &iperf3::SEGMENTING,
    &netpipe::Netpipe,
    &netperf::Netperf,
    &neper::Neper,
    &qperf::Qperf,
    &sockperf::Sockperf,
    &nuttcp::Nuttcp,
    &iperf2::Iperf2,
    &xfr::Xfr,
    &netpipe::NetpipeMpi,
    &netpipe::NetpipePvm,
];

/// A tool that supports some of the works.
pub trait Peer: Sync {
    /// Its name in the table.
    fn name(&self) -> &'static str;

    /// The programs that it needs; the version is that of the first.
    fn programs(&self) -> &'static [&'static str];

    /// Its version flag; `None` if it has none.
    fn version(&self) -> Option<&'static str>;

    /// The path of its first program; `None` if a program is missing.
    fn find(&self) -> Option<PathBuf> {
        let files: Vec<PathBuf> =
            self.programs().iter().filter_map(|name| everywhere_on_path(name).into_iter().next()).collect();
        if files.len() == self.programs().len() { files.into_iter().next() } else { None }
    }

    /// Whether its number is the best of three means. It is compared with the best of our three.
    fn prints_best_of_three(&self) -> bool {
        false
    }

    /// Its job for the task; `None` if it does not support the task.
    fn job(&self, task: Task, context: &JobContext) -> Option<Job>;
}

/// The context of a job.
#[derive(Debug)]
pub struct JobContext {
    /// The tool's first program.
    pub program: String,
    /// A free TCP port.
    pub port: u16,
    /// Another one.
    pub second_port: u16,
    /// Length of a measurement, for tools with such an option.
    pub seconds: u32,
    /// Cores of client and server.
    pub cores: [u32; 2],
    /// An empty folder for this measurement.
    pub folder: PathBuf,
}

impl JobContext {
    /// A path for tools that write their result to a file.
    pub fn file(&self) -> String {
        self.folder.join("result").to_string_lossy().into_owned()
    }
}

/// One measurement: a server, a client, and the parser of the result.
pub struct Job {
    /// The server's command line; `None` if the client starts both ends.
    server: Option<Vec<String>>,
    /// How to detect that the server is ready.
    pub ready: Ready,
    /// The client's command line.
    client: Vec<String>,
    /// Variables of both ends' environment beside ours.
    env: Vec<(&'static str, String)>,
    /// The client starts both ends and pins them itself.
    pub spread: bool,
    /// Number of client runs; the reading is that of the run with the median time.
    pub runs: u32,
    /// Another accepted exit code than 0.
    pub also_code: Option<i32>,
    /// Guessed duration with start and end, s, if it is not the task's.
    pub guess: Option<f64>,
    /// Parses the result.
    pub read: Read,
}

impl Job {
    /// A server that listens on the context's port, and a client.
    pub fn new(context: &JobContext, server: Vec<String>, client: Vec<String>, read: Read) -> Self {
        Self {
            server: Some(server),
            ready: Ready::Port(context.port),
            client,
            env: Vec::new(),
            spread: false,
            runs: 1,
            also_code: None,
            guess: None,
            read,
        }
    }

    /// The server.
    pub fn server(&self) -> Option<Program> {
        Some(Program { argv: self.server.clone()?, env: self.env.clone() })
    }

    /// The client.
    pub fn client(&self) -> Program {
        Program { argv: self.client.clone(), env: self.env.clone() }
    }

    /// A client alone.
    pub fn alone(context: &JobContext, client: Vec<String>, read: Read) -> Self {
        Self { server: None, ..Self::new(context, Vec::new(), client, read) }
    }
}

/// Runs the tool's version flag repeatedly.
fn start_job(context: &JobContext, flag: &str) -> Job {
    let argv = vec![context.program.clone(), flag.to_owned()];
    let read: Read = |ended, _| Ok((ended.report.elapsed_ns as f64).into());
    Job { runs: STARTS, ..Job::alone(context, argv, read) }
}

/// Strips a copy of the program and prints its size.
fn binary_job(context: &JobContext) -> Job {
    let mut argv = vec!["sh".to_owned(), "-c".to_owned(), "strip -o \"$1\" \"$0\" && stat -c %s \"$1\"".to_owned()];
    argv.extend([context.program.clone(), context.file()]);
    let read: Read = |ended, _| {
        let bytes: f64 = ended.stdout.trim().parse().context("strip and stat printed no size")?;
        Ok(bytes.into())
    };
    Job::alone(context, argv, read)
}

/// Parses the client's output; `result` is the text of the result file, empty without one.
pub type Read = fn(ended: &Ended, result: &str) -> Result<Reading>;

/// A number in the work's unit, and further figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The number.
    pub value: f64,
    /// Other numbers by name; the name ends with the unit.
    pub also: BTreeMap<&'static str, f64>,
    /// The amount moved during the measured CPU time.
    pub amount: Amount,
    /// The best of three legs, if the number is of all three.
    pub best: Option<f64>,
    /// Of a curve: block sizes and whole round trips, ns.
    pub curve: Vec<(u64, f64)>,
}

/// Bytes or exchanges that were moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// Computed from the number and the seconds.
    Follows,
    /// Reported by the tool.
    Known(f64),
    /// Unknown: the tool moved more than the number covers.
    Unknown,
}

impl From<f64> for Reading {
    fn from(value: f64) -> Self {
        Self { value, also: BTreeMap::new(), amount: Amount::Follows, best: None, curve: Vec::new() }
    }
}

/// An installed tool.
pub struct Tool {
    /// The tool.
    pub peer: &'static dyn Peer,
    /// Its version, if known.
    pub version: Option<String>,
    /// The first line that its version flag prints.
    pub says: Option<String>,
    /// Its first program.
    pub program: PathBuf,
}

/// The installed tools, ours first; names missing ones on standard error. `only` selects tools.
pub fn installed(thru: &Path, only: &[String]) -> Result<Vec<Tool>> {
    if let Some(name) = only.iter().find(|name| PEERS.iter().all(|peer| peer.name() != **name)) {
        let known: Vec<&str> = PEERS.iter().map(|peer| peer.name()).collect();
        bail!("unknown tool '{name}'; known tools: {}", known.join(", "));
    }
    let mut tools = Vec::new();
    let mut missing = Vec::new();
    for peer in PEERS {
        if peer.name() != OURS && !only.is_empty() && !only.iter().any(|name| name == peer.name()) {
            continue;
        }
        let ours = [OURS, UNOBSERVED, UNPACED].contains(&peer.name());
        let program = if ours { Some(thru.to_owned()) } else { peer.find() };
        match program {
            Some(program) => {
                let said = peer.version().map(|flag| output_of(&program, flag));
                let says = said.as_deref().and_then(first_line);
                tools.push(Tool { peer: *peer, version: said.as_deref().and_then(find_version), says, program });
            }
            None => missing.push(peer.name()),
        }
    }
    if !missing.is_empty() {
        eprintln!("not installed, skipped: {}", missing.join(", "));
    }
    Ok(tools)
}

/// The names and paths of a tool's programs.
pub fn files_of(tool: &Tool) -> Vec<(&'static str, PathBuf)> {
    let path = |(at, name): (usize, &&'static str)| {
        let file = if at == 0 { Some(tool.program.clone()) } else { everywhere_on_path(name).into_iter().next() };
        Some((*name, file?))
    };
    tool.peer.programs().iter().enumerate().filter_map(path).collect()
}

/// The first line that is not empty.
fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// All files of this name in the folders of PATH, in PATH's order.
fn everywhere_on_path(program: &str) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let files = env::split_paths(&path).map(|folder| folder.join(program));
    files.filter(|file| fs::metadata(file).is_ok_and(|is| is.is_file())).collect()
}

/// A program's output with one flag.
fn output_of(program: &Path, flag: &str) -> String {
    let Ok(output) = Command::new(program).arg(flag).output() else { return String::new() };
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn version_of(program: &Path, flag: &str) -> Option<String> {
    find_version(&output_of(program, flag))
}

/// The first version number such as `3.12` or `6.1.2`.
fn find_version(text: &str) -> Option<String> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .map(|word| word.trim_matches('.'))
        .find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
}

/// Splits a command line at spaces.
fn command_line(line: &str) -> Vec<String> {
    line.split_ascii_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
