//! A process between the bench and a program: it pins the program, sees to it that nothing of it outlives the bench, and says
//! what the program and everything that it started has used.
//!
//! `bench guard CORES REPORT PROGRAM ARGUMENT...`: the end of standard input is the order to end the program, so that it also
//! ends when the bench is killed. All descendants become this process's children when their parents end (it is a subreaper),
//! are waited for, and so are in its account, whichever way a tool forks.

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

/// How long a program may take to end after it was asked to.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two looks at what a program has left running.
const STEP: Duration = Duration::from_millis(2);

/// What became of a program.
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

/// Runs the program that the words name and writes the report.
pub fn guard(words: &[String]) -> Result<()> {
    let [cores, report, program, arguments @ ..] = words else {
        anyhow::bail!("guard wants CORES REPORT PROGRAM [ARGUMENT...]");
    };
    set_child_subreaper(Some(getpid())).context("cannot become the parent of orphans")?;
    pin(cores)?;
    let start = Instant::now();
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process without a number")?;
    // Whether it was reaped: from then on its number may be another's.
    let gone = Arc::new(Mutex::new(false));
    end_with_input(pid, Arc::clone(&gone));

    let (code, elapsed_ns) = first_end(pid, &gone, start)?;
    end_strays();
    let usage = sys::usage_of_children().context("cannot read what the program has used")?;
    let text = serde_json::to_string(&Report { code, elapsed_ns, cpu_ns: usage.cpu_ns, peak_bytes: usage.peak_bytes })?;
    // Beside it and renamed, so that a reader never sees half of it.
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

/// Asks the program to end when standard input does, and makes it end when it takes too long.
fn end_with_input(pid: Pid, gone: Arc<Mutex<bool>>) {
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        for signal in [Signal::TERM, Signal::KILL] {
            if !*gone.lock().unwrap_or_else(PoisonError::into_inner) {
                // A group that has just ended needs no signal.
                let _ = kill_process_group(pid, signal);
            }
            thread::sleep(PATIENCE);
        }
    });
}

/// Waits for the program itself, and reaps orphans that end meanwhile.
fn first_end(pid: Pid, gone: &Mutex<bool>, start: Instant) -> Result<(Option<i32>, u64)> {
    loop {
        // Looked at first and reaped under the lock, so that no signal goes to a number that is free again.
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

/// Ends what the program has left running; all of it is this process's child by now, or becomes one.
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
        let late = start.elapsed() > PATIENCE;
        if !requested || late {
            let signal = if late { Signal::KILL } else { Signal::TERM };
            for child in children() {
                // One that has just ended needs no signal.
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
