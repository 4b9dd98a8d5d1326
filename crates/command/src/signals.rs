//! The signals that end a command. They are caught in one place, so that settings are restored and labs removed for each of them.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Signal, getpid, kill_process};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::Failure;

/// What a signal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// Ctrl-C.
    Interrupt,
    /// The terminal closed, for example a lost ssh session.
    Hangup,
    /// Any other signal that ends a process by default: SIGTERM, SIGQUIT, a timer.
    Terminate,
}

/// All signals that end a process by default, except those of its own faults (SIGSEGV ...).
const CAUGHT: [(Signal, StopRequest); 11] = [
    (Signal::INT, StopRequest::Interrupt),
    (Signal::HUP, StopRequest::Hangup),
    (Signal::TERM, StopRequest::Terminate),
    (Signal::QUIT, StopRequest::Terminate),
    (Signal::ALARM, StopRequest::Terminate),
    (Signal::VTALARM, StopRequest::Terminate),
    (Signal::PROF, StopRequest::Terminate),
    (Signal::USR1, StopRequest::Terminate),
    (Signal::USR2, StopRequest::Terminate),
    (Signal::IO, StopRequest::Terminate),
    (Signal::XCPU, StopRequest::Terminate),
];
/// Further signals are dropped, to bound the memory.
const MAX_RECEIVED: usize = 1_000;

/// The signals since the first `CaughtSignals` was made, in order.
#[derive(Debug, Clone)]
pub struct CaughtSignals {
    received: watch::Receiver<Vec<StopRequest>>,
    seen: usize,
}

impl CaughtSignals {
    /// Catches them until the end of the process. Signals that are ignored at the start (`nohup`) stay ignored, except SIGINT and
    /// SIGTERM.
    pub fn catch() -> Result<Self, Failure> {
        static RECEIVED: Mutex<Option<watch::Receiver<Vec<StopRequest>>>> = Mutex::new(None);
        let mut received = RECEIVED.lock().unwrap_or_else(PoisonError::into_inner);
        if received.is_none() {
            *received = Some(listen().map_err(|error| Failure::other(format!("cannot catch signals: {error}")))?);
        }
        match received.clone() {
            Some(received) => Ok(Self { received, seen: 0 }),
            None => unreachable!("it was just made"),
        }
    }

    /// Whether there is one that [`next`](Self::next) would return at once.
    #[must_use]
    pub fn arrived(&self) -> bool {
        self.received.borrow().len() > self.seen
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> StopRequest {
        let seen = self.seen;
        let request = self.received.wait_for(|all| all.len() > seen).await.ok().map(|all| all[seen]);
        self.seen += 1;
        match request {
            Some(request) => request,
            // The listener has ended: so does the process.
            None => std::future::pending().await,
        }
    }
}

/// Starts a thread that receives them, so that none is lost while no task waits.
fn listen() -> io::Result<watch::Receiver<Vec<StopRequest>>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (sender, received) = watch::channel(Vec::new());
    let ignored = ignored();
    for (kind, request) in CAUGHT {
        let always = [Signal::INT, Signal::TERM].contains(&kind);
        if always || ignored & (1 << (kind.as_raw() - 1)) == 0 {
            forward(&runtime, kind, request, sender.clone())?;
        }
    }
    std::thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(received)
}

/// Appends `request` for each signal of a kind.
fn forward(
    runtime: &Runtime,
    kind: Signal,
    request: StopRequest,
    sender: watch::Sender<Vec<StopRequest>>,
) -> io::Result<()> {
    let _within = runtime.enter();
    let mut signals = signal(SignalKind::from_raw(kind.as_raw()))?;
    runtime.spawn(async move {
        while signals.recv().await.is_some() {
            sender.send_modify(|all| all.extend((all.len() < MAX_RECEIVED).then_some(request)));
        }
    });
    Ok(())
}

/// The mask of signals that this process ignores, signal 1 in the lowest bit (proc_pid_status(5), SigIgn).
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// From now on, the end of standard input ends this process as SIGTERM does. The parent process holds the other end, and the kernel
/// closes it however the parent ends.
pub fn end_with_input() {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = kill_process(getpid(), Signal::TERM);
    });
}
