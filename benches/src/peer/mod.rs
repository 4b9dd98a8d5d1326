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
mod tests {
    use super::*;
    use crate::work::WORKS;

    fn context() -> JobContext {
        let program = "some/where/tool".to_owned();
        JobContext { program, port: 6000, second_port: 6001, seconds: 2, cores: [1, 0], folder: "folder".into() }
    }

    #[test]
    fn versions_are_found_in_what_tools_print() {
        for (text, version) in [
            ("iperf 3.12 (cJSON 1.7.15)", "3.12"),
            ("sockperf, version 3.7-no.git", "3.7"),
            ("nuttcp-6.1.2", "6.1.2"),
            ("iperf version 2.1.8 (12 August 2022) pthreads", "2.1.8"),
        ] {
            assert_eq!(find_version(text).as_deref(), Some(version), "{text}");
        }
        assert_eq!(find_version("usage: none."), None);
    }

    #[test]
    fn every_work_has_peers_and_every_server_gets_its_port() {
        for work in WORKS {
            let jobs: Vec<(&str, Job)> =
                PEERS.iter().filter_map(|peer| Some((peer.name(), peer.job(work.task, &context())?))).collect();
            assert_eq!(jobs[0].0, OURS, "{}", work.id);
            assert!(jobs.len() > 1 || work.task == Task::Binary, "{} has no peer", work.id);
            for (name, job) in jobs {
                let Some(server) = job.server else { continue };
                match &job.ready {
                    Ready::Port(port) => assert!(server.join(" ").contains(&port.to_string()), "{} {name}", work.id),
                    Ready::File(file) => assert!(file.starts_with("folder"), "{} {name}", work.id),
                }
            }
        }
    }

    /// The command lines of the tools that run a work: server and client.
    fn commands(id: &str) -> Vec<(&'static str, String, String)> {
        let work = WORKS.iter().find(|work| work.id == id).unwrap();
        let job = |peer: &&'static dyn Peer| {
            let job = peer.job(work.task, &context())?;
            Some((peer.name(), job.server.unwrap_or_default().join(" "), job.client.join(" ")))
        };
        PEERS.iter().filter_map(job).collect()
    }

    #[test]
    fn unpaced_datagrams_have_the_same_buffers_in_every_tool() {
        let clients: Vec<(&str, String)> =
            commands("udp-single").into_iter().map(|(name, _, client)| (name, client)).collect();
        let tool = "some/where/tool";
        let thru = format!(
            "{tool} stream 127.0.0.1:6000 --udp --block 1472 --engine copy --sndbuf 204800 --rcvbuf 204800 --unpaced --time 2s \
             --trials 1 --no-store --quiet --json folder/result"
        );
        let iperf3 = format!("{tool} -c 127.0.0.1 -p 6000 -t 2 -J -u -b 0 -l 1472 -w 204800");
        let expected: Vec<(&str, String)> = vec![
            ("thru", thru.clone()),
            ("thru-before", thru),
            ("iperf3", iperf3.clone()),
            ("iperf3-new", iperf3),
            (
                "netperf",
                "netperf -H 127.0.0.1 -4 -p 6000 -l 2 -P 0 -v 0 -t UDP_STREAM -f m -- -m 1472 -R 1 -s 204800 -S 204800 \
                 -k REMOTE_RECV_THROUGHPUT,LSS_SIZE_END,RSR_SIZE_END"
                    .into(),
            ),
            ("nuttcp", "nuttcp -t -P 6000 -p 6001 -u -R0 -l1472 -w200 -ws200 -T2 -fparse 127.0.0.1".into()),
            ("iperf2", "iperf -c 127.0.0.1 -u -p 6000 -l 1472 -w 204800 -b 1000g -t 2 -f k".into()),
            ("xfr", "xfr --no-update-check 127.0.0.1 -p 6000 -t 2 -u -b 0 -l 1472 -w 204800 --zeros --json".into()),
        ];
        assert_eq!(clients, expected);
        // The only server whose buffers its client cannot set.
        let servers = commands("udp-single");
        let (_, server, _) = servers.iter().find(|(name, ..)| *name == "iperf2").unwrap();
        assert_eq!(server, "iperf -s -u -p 6000 -l 1472 -w 204800");
    }

    #[test]
    fn segments_are_compared_with_segments_only() {
        for id in ["udp-gso", "udp64-gso", "paced5g"] {
            let names: Vec<&str> = commands(id).iter().map(|(name, ..)| *name).collect();
            assert_eq!(names, ["thru", "thru-before", "iperf3-gsro"], "{id}");
            for (name, _, client) in commands(id) {
                let flag = if name == "iperf3-gsro" { "--gsro" } else { "--engine gso" };
                assert!(client.contains(flag) && client.contains("204800"), "{id}: {client}");
            }
        }
        for id in ["udp-single", "udp64-single", "udp64-mmsg", "paced10m", "paced1g"] {
            assert!(commands(id).iter().all(|(_, _, client)| !client.contains("gs")), "{id}");
        }
    }

    #[test]
    fn pacing_to_the_receiver_is_compared_with_unpaced_thru_only() {
        for id in ["udp-credit", "udp64-credit"] {
            let commands = commands(id);
            let names: Vec<&str> = commands.iter().map(|(name, ..)| *name).collect();
            assert_eq!(names, ["thru", "thru-unpaced", "thru-before"], "{id}");
            assert!(!commands[0].2.contains("paced"));
            assert_eq!(commands[1].2.replace(" --unpaced", ""), commands[0].2);
        }
        let unpaced = |id: &str| commands(id).into_iter().next().unwrap().2.contains(" --unpaced ");
        assert!(["udp-single", "udp64-single", "udp64-mmsg", "udp-gso", "udp64-gso"].into_iter().all(unpaced));
    }
}
