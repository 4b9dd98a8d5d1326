//! The engine's loops over links that a driver has opened.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use engine::transport::{Link, transport};
use engine::{EngineError, LegTally, Signals, TrialPlan};
use model::Live;

/// Moves the data and waits for the end of all links. `live` receives what this end reports; `on_step` is called at
/// least every `step` with the signals that end the links and the time since the start.
pub(crate) fn run(
    plan: &TrialPlan,
    links: Vec<Link>,
    step: Duration,
    live: &mut dyn FnMut(Live),
    on_step: &mut dyn FnMut(&Signals, Duration),
) -> Result<LegTally, EngineError> {
    run_after(|| {}, plan, links, step, live, on_step)
}

/// The same, and calls `first` when this end is ready to move data.
pub(crate) fn run_after(
    first: impl FnOnce() + Send + 'static,
    plan: &TrialPlan,
    links: Vec<Link>,
    step: Duration,
    live: &mut dyn FnMut(Live),
    on_step: &mut dyn FnMut(&Signals, Duration),
) -> Result<LegTally, EngineError> {
    let carrier = transport(plan.spec.transport.as_str())?;
    let signals = Signals::new();
    let (tell, reported) = channel();
    let started = Arc::new(OnceLock::new());
    let clock = started.clone();
    signals.before_start(move || {
        first();
        let _ = clock.set(Instant::now());
    });
    std::thread::scope(|scope| {
        let flags = &signals;
        let engine = scope.spawn(move || {
            engine::run(plan, carrier, links, flags, &mut |report| {
                // The receiver is gone if the test has failed.
                let _ = tell.send(report);
            })
        });
        loop {
            match reported.recv_timeout(step) {
                Ok(report) => live(report),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            on_step(&signals, started.get().map_or(Duration::ZERO, Instant::elapsed));
        }
        engine.join().unwrap_or_else(|_| Err(EngineError::Thread("the measuring thread panicked".into())))
    })
}
