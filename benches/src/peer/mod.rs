//! The tools. Each is one file and one line in [`PEERS`].

mod iperf2;
mod iperf3;
mod netperf;
mod netpipe;
mod nuttcp;
mod qperf;
mod sockperf;
mod thru;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Result, bail};

use crate::process::Ended;
use crate::work::Task;

/// Our own tool, which the others are peers of.
pub const OURS: &str = thru::NAME;

/// All tools, ours first.
pub static PEERS: &[&dyn Peer] = &[
    &thru::Thru,
    &iperf3::Iperf3,
    &netpipe::Netpipe,
    &netperf::Netperf,
    &qperf::Qperf,
    &sockperf::Sockperf,
    &nuttcp::Nuttcp,
    &iperf2::Iperf2,
];

/// A tool that can do some of the works.
pub trait Peer: Sync {
    /// Its name in the table.
    fn name(&self) -> &'static str;

    /// The programs that it needs; the first is asked for its version.
    fn programs(&self) -> &'static [&'static str];

    /// What makes it print its version; `None` for one that cannot.
    fn version(&self) -> Option<&'static str>;

    /// How it does the task, `None` for a task that it does not know.
    fn job(&self, task: Task, place: &Place) -> Option<Job>;
}

/// What a job is given.
#[derive(Debug)]
pub struct Place {
    /// The thru that is measured.
    pub thru: PathBuf,
    /// A free TCP port.
    pub port: u16,
    /// Another one.
    pub second_port: u16,
    /// Length of a measurement, for tools that can be told.
    pub seconds: u32,
    /// A file that does not exist yet, for tools that write their result to one.
    pub file: PathBuf,
}

/// One measurement: a server, a client, and where the number is.
pub struct Job {
    /// The server, which listens on the place's port.
    pub server: Vec<String>,
    /// The client.
    pub client: Vec<String>,
    /// Exit code beside 0 that comes with a number.
    pub also_code: Option<i32>,
    /// Finds the number.
    pub read: Read,
}

/// Finds the number in what the client left behind; `result` is the text of the place's file, empty without one.
pub type Read = fn(ended: &Ended, result: &str) -> Result<Reading>;

/// A number in the work's unit, and what else is worth keeping.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The number.
    pub value: f64,
    /// Other numbers by name.
    pub also: BTreeMap<&'static str, f64>,
}

impl From<f64> for Reading {
    fn from(value: f64) -> Self {
        Self { value, also: BTreeMap::new() }
    }
}

/// A tool that is here.
pub struct Tool {
    /// The tool.
    pub peer: &'static dyn Peer,
    /// Its version, as far as it tells.
    pub version: Option<String>,
    /// Where thru is.
    pub thru: PathBuf,
}

/// The tools that are here, ours first; those that are not are named on standard error. `only` leaves the others out.
pub fn installed(thru: &Path, only: &[String]) -> Result<Vec<Tool>> {
    if let Some(name) = only.iter().find(|name| PEERS.iter().all(|peer| peer.name() != **name)) {
        let known: Vec<&str> = PEERS.iter().map(|peer| peer.name()).collect();
        bail!("no tool is called '{name}': there are {}", known.join(", "));
    }
    let mut tools = Vec::new();
    let mut missing = Vec::new();
    for peer in PEERS {
        if peer.name() != OURS && !only.is_empty() && !only.iter().any(|name| name == peer.name()) {
            continue;
        }
        if peer.name() == OURS || peer.programs().iter().all(|program| on_path(program).is_some()) {
            let program = if peer.name() == OURS { thru.to_owned() } else { PathBuf::from(peer.programs()[0]) };
            let version = peer.version().and_then(|flag| version(&program, flag));
            tools.push(Tool { peer: *peer, version, thru: thru.to_owned() });
        } else {
            missing.push(peer.name());
        }
    }
    if !missing.is_empty() {
        eprintln!("not installed, left out: {}", missing.join(", "));
    }
    Ok(tools)
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| fs::metadata(file).is_ok_and(|is| is.is_file()))
}

fn version(program: &Path, flag: &str) -> Option<String> {
    let output = Command::new(program).arg(flag).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    find_version(&said)
}

/// The first thing that looks like `3.12` or `6.1.2`.
fn find_version(text: &str) -> Option<String> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .map(|word| word.trim_matches('.'))
        .find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
}

/// A command line of words that hold no spaces.
fn words(line: &str) -> Vec<String> {
    line.split_ascii_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::WORKS;

    fn place() -> Place {
        Place { thru: "thru".into(), port: 6000, second_port: 6001, seconds: 2, file: "folder/result".into() }
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
    fn every_work_has_ours_and_a_peer_and_every_job_uses_its_port() {
        for work in WORKS {
            let jobs: Vec<(&str, Job)> =
                PEERS.iter().filter_map(|peer| Some((peer.name(), peer.job(work.task, &place())?))).collect();
            assert_eq!(jobs[0].0, OURS, "{}", work.id);
            assert!(jobs.len() > 1, "{} has no peer", work.id);
            for (name, job) in jobs {
                for side in [&job.server, &job.client] {
                    assert!(side.iter().any(|word| word.contains("6000")), "{} {name}: {side:?}", work.id);
                }
            }
        }
    }
}
