//! The signals that ask a command to end, caught in one place, so that settings and labs go back whichever it is.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Signal, getpid, kill_process};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::Failure;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// Ctrl-C.
    Interrupt,
    /// The terminal went away, as with a lost ssh session.
    Hangup,
    /// Anything else that ends a process which does not catch it: SIGTERM, SIGQUIT, a timer.
    Terminate,
}

/// All that end a process unless it catches them, but for those that tell of its own mistakes (SIGSEGV, ...).
const CAUGHT: [(Signal, Asks); 11] = [
    (Signal::INT, Asks::Interrupt),
    (Signal::HUP, Asks::Hangup),
    (Signal::TERM, Asks::Terminate),
    (Signal::QUIT, Asks::Terminate),
    (Signal::ALARM, Asks::Terminate),
    (Signal::VTALARM, Asks::Terminate),
    (Signal::PROF, Asks::Terminate),
    (Signal::USR1, Asks::Terminate),
    (Signal::USR2, Asks::Terminate),
    (Signal::IO, Asks::Terminate),
    (Signal::XCPU, Asks::Terminate),
];
/// More than anybody sends who means it.
const MOST: usize = 1_000;

/// What has come since the first one of these was made, one after the other.
#[derive(Debug, Clone)]
pub struct Signals {
    heard: watch::Receiver<Vec<Asks>>,
    seen: usize,
}

impl Signals {
    /// Catches them from now on, to the end of the process. What a user has it ignore (`nohup`) stays ignored, but for SIGINT and
    /// SIGTERM.
    pub fn catch() -> Result<Self, Failure> {
        static HEARD: Mutex<Option<watch::Receiver<Vec<Asks>>>> = Mutex::new(None);
        let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.is_none() {
            *heard = Some(listen().map_err(|error| Failure::other(format!("cannot catch signals: {error}")))?);
        }
        match heard.clone() {
            Some(heard) => Ok(Self { heard, seen: 0 }),
            None => unreachable!("it was just made"),
        }
    }

    /// The next one.
    pub async fn next(&mut self) -> Asks {
        let seen = self.seen;
        let asks = self.heard.wait_for(|all| all.len() > seen).await.ok().map(|all| all[seen]);
        self.seen += 1;
        match asks {
            Some(asks) => asks,
            // Nobody listens any more: the process ends.
            None => std::future::pending().await,
        }
    }
}

/// Starts a thread that hears them, so that none is lost while nobody waits.
fn listen() -> io::Result<watch::Receiver<Vec<Asks>>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (said, heard) = watch::channel(Vec::new());
    let ignored = ignored();
    for (kind, asks) in CAUGHT {
        let always = [Signal::INT, Signal::TERM].contains(&kind);
        if always || ignored & (1 << (kind.as_raw() - 1)) == 0 {
            hear(&runtime, kind, asks, said.clone())?;
        }
    }
    std::thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(heard)
}

fn hear(runtime: &Runtime, kind: Signal, asks: Asks, said: watch::Sender<Vec<Asks>>) -> io::Result<()> {
    let _within = runtime.enter();
    let mut signals = signal(SignalKind::from_raw(kind.as_raw()))?;
    runtime.spawn(async move {
        while signals.recv().await.is_some() {
            said.send_modify(|all| all.extend((all.len() < MOST).then_some(asks)));
        }
    });
    Ok(())
}

/// The signals that this process was started to ignore, the first in the lowest bit (proc_pid_status(5), SigIgn).
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// From now on the end of standard input asks this process to end as SIGTERM does. Whoever started it for itself holds the other
/// end, which the kernel closes however that one ends.
pub fn end_with_input() {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = kill_process(getpid(), Signal::TERM);
    });
}
