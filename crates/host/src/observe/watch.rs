//! The observers around a pass, with their own thread if they read over time.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::{CpuUse, EndPass, Observe};
use rustix::thread::{sched_getaffinity, sched_setaffinity};

use super::{CpuObserver, HostRecorder, Own};
use crate::sys::Sys;

/// What is observed and how.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// How much is read.
    pub observe: Observe,
    /// Interval of the readings over time, ns.
    pub interval_ns: u64,
    /// Thru's own processes, whose time waiting for a core is recorded.
    pub processes: Vec<Own>,
    /// Cores that measuring threads are pinned to: the readings over time avoid them if there are others.
    pub avoid: Vec<u32>,
}

/// All observers together, watching one host.
///
/// ```
/// use std::sync::Arc;
/// use host::{RealSys, Watch, WatchOptions};
///
/// let watch = Watch::start(Arc::new(RealSys), &WatchOptions::default());
/// let mut pass = model::EndPass::default();
/// watch.finish(&mut pass);
/// assert!(pass.cpu.is_some() && pass.observed.is_some());
/// ```
pub struct Watch {
    sys: Arc<dyn Sys>,
    cpu: Option<CpuObserver>,
    /// Counts from one call of [`lap`](Self::lap) to the next.
    lap: Option<CpuObserver>,
    running: Running,
    interval_ns: u64,
}

enum Running {
    Off,
    Still(Box<HostRecorder>),
    /// The thread ends, and returns the recorder, when the sender is dropped.
    Sampling(mpsc::Sender<()>, JoinHandle<Option<HostRecorder>>),
}

impl Watch {
    /// Takes the first reading of everything that is to be observed.
    #[must_use]
    pub fn start(sys: Arc<dyn Sys>, options: &WatchOptions) -> Self {
        let running = match options.observe {
            Observe::Off => Running::Off,
            Observe::Counters => Running::Still(Box::new(HostRecorder::start(sys.clone(), &options.processes))),
            Observe::Series => sample(HostRecorder::start(sys.clone(), &options.processes), options),
        };
        // Last, so that the readings above are not in the pass's CPU time.
        let cpu = CpuObserver::start(&*sys).ok();
        let lap = cpu.clone();
        Self { sys, cpu, lap, running, interval_ns: options.interval_ns }
    }

    /// The CPU time since the start or the last call; `None` if the host is not read while the trial runs. It is read anew, by one
    /// reading of one of the files of the series.
    pub fn lap(&mut self) -> Option<CpuUse> {
        matches!(self.running, Running::Sampling(..)).then_some(())?;
        self.lap.as_mut()?.lap(&*self.sys)
    }

    /// Ends the watch and writes the results into `pass`. What could not be observed stays null there.
    pub fn finish(self, pass: &mut EndPass) {
        pass.cpu = self.cpu.and_then(|cpu| cpu.finish(&*self.sys));
        pass.observed = match self.running {
            Running::Off => None,
            Running::Still(recorder) => Some(recorder.finish(u64::MAX)),
            Running::Sampling(stop, thread) => {
                drop(stop);
                // A thread that panicked has no reading to give.
                thread.join().ok().flatten().map(|recorder| recorder.finish(self.interval_ns / 2))
            }
        };
    }
}

/// Passes the recorder to a thread that reads at every interval; if no thread can be started, there is no series.
fn sample(recorder: HostRecorder, options: &WatchOptions) -> Running {
    let (stop, stopped) = mpsc::channel();
    let (sender, receiver) = mpsc::sync_channel(1);
    let (interval, avoid) = (Duration::from_nanos(options.interval_ns.max(1)), options.avoid.clone());
    let body = move || {
        keep_off(&avoid);
        let recorder = receiver.recv().ok()?;
        Some(readings(recorder, interval, &stopped))
    };
    match std::thread::Builder::new().name("observe".into()).spawn(body) {
        Ok(thread) => match sender.send(recorder) {
            Ok(()) => Running::Sampling(stop, thread),
            Err(mpsc::SendError(recorder)) => Running::Still(Box::new(recorder)),
        },
        Err(_) => Running::Still(Box::new(recorder)),
    }
}

/// Reads until stopped. A late reading is not made up.
fn readings(mut recorder: HostRecorder, mut interval: Duration, stopped: &mpsc::Receiver<()>) -> HostRecorder {
    let mut due = Instant::now() + interval;
    loop {
        match stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return recorder,
        }
        if recorder.tick() {
            interval *= 2;
        }
        due = (due + interval).max(Instant::now());
    }
}

/// Moves the calling thread off these cores, if others remain. If that fails, it stays.
fn keep_off(cores: &[u32]) {
    let Ok(mut allowed) = sched_getaffinity(None) else { return };
    cores.iter().for_each(|core| allowed.unset(*core as usize));
    if !cores.is_empty() && allowed.count() > 0 {
        let _ = sched_setaffinity(None, &allowed);
    }
}
