//! A process between the bench and a program: it pins the program, ends everything with the bench, and reports
//! the resources that the program and its descendants used.
//!
//! `bench guard CORES REPORT PROGRAM ARGUMENT...`: the end of standard input ends the program, so it also ends
//! when the bench is killed. All descendants become this process's children when their parents end (it is a
//! subreaper). It waits for them, so its usage includes them however a tool forks.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{
    Pid, Signal, WaitIdOptions, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper, wait,
    waitid,
};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::sys;

/// How long a program may take to end after SIGTERM.
pub const END_LIMIT: Duration = Duration::from_secs(2);
/// Interval between checks for remaining processes.
const STEP: Duration = Duration::from_millis(2);

/// How a program ended and what it used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its exit code, null when a signal ended it.
    pub code: Option<i32>,
    /// From its start to its end, ns.
    pub elapsed_ns: u64,
    /// Processor time of it and of all that it started, ns.
    pub cpu_ns: u64,
    /// The largest resident set that one process of them had, bytes.
    pub peak_bytes: u64,
}

/// Runs the program of the command line and writes the report.
pub fn guard(command: &[String]) -> Result<()> {
    let [cores, report, program, arguments @ ..] = command else {
        anyhow::bail!("usage: guard CORES REPORT PROGRAM [ARGUMENT...]");
    };
    set_child_subreaper(Some(getpid())).context("cannot become a subreaper")?;
    pin(cores)?;
    let start = Instant::now();
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process without a PID")?;
    // Whether it was reaped; afterwards its PID may be reused.
    let gone = Arc::new(Mutex::new(false));
    end_with_input(pid, Arc::clone(&gone));

    let (code, elapsed_ns) = first_end(pid, &gone, start)?;
    end_strays();
    let usage = sys::usage_of_children().context("cannot read the program's resource usage")?;
    let text = serde_json::to_string(&Report { code, elapsed_ns, cpu_ns: usage.cpu_ns, peak_bytes: usage.peak_bytes })?;
    // Written to another file and renamed, so that a reader never sees a partial report.
    let report = PathBuf::from(report);
    let unready = report.with_extension("new");
    fs::write(&unready, text).and_then(|()| fs::rename(&unready, &report)).context("cannot write the report")
}

fn pin(cores: &str) -> Result<()> {
    let mut set = CpuSet::new();
    for core in cores.split(',') {
        set.set(core.parse().with_context(|| format!("'{core}' is not a core"))?);
    }
    sched_setaffinity(None, &set).with_context(|| format!("cannot use core {cores}"))
}

/// Terminates the program when standard input ends, and kills it if that takes too long.
fn end_with_input(pid: Pid, gone: Arc<Mutex<bool>>) {
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        for signal in [Signal::TERM, Signal::KILL] {
            if !*gone.lock().unwrap_or_else(PoisonError::into_inner) {
                // Ignored: the group may have just ended.
                let _ = kill_process_group(pid, signal);
            }
            thread::sleep(END_LIMIT);
        }
    });
}

/// Waits for the program itself, and reaps orphans.
fn first_end(pid: Pid, gone: &Mutex<bool>, start: Instant) -> Result<(Option<i32>, u64)> {
    loop {
        // Detected first and reaped under the lock, so that no signal goes to a reused PID.
        waitid(rustix::process::WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).context("cannot wait")?;
        let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut gone = gone.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((ended, status)) = wait(WaitOptions::NOHANG).context("cannot wait")?
            && ended == pid
        {
            *gone = true;
            return Ok((status.exit_status(), elapsed_ns));
        }
    }
}

/// Ends remaining descendants; all of them are, or become, children of this process.
fn end_strays() {
    let start = Instant::now();
    let mut requested = false;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => continue,
            // Nothing is left.
            Err(_) => return,
            Ok(None) => {}
        }
        let late = start.elapsed() > END_LIMIT;
        if !requested || late {
            let signal = if late { Signal::KILL } else { Signal::TERM };
            for child in children() {
                // Ignored: it may have just ended.
                let _ = kill_process(child, signal);
            }
            requested = true;
        }
        thread::sleep(STEP);
    }
}

/// This process's children, by the parent's number in `/proc/PID/stat` (the second field after the name in brackets).
fn children() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().to_string();
    let parent_is_own = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1)).is_some_and(|ppid| ppid == own)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse::<i32>().ok());
    numbers.filter(parent_is_own).filter_map(Pid::from_raw).collect()
}
