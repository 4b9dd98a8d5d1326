//! The engine's loops over links that a driver has opened.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use engine::transport::{Link, transport};
use engine::{EngineError, LegTally, Signals, TrialPlan};
use model::{EndTally, Live};

/// What the links moved at this end.
pub(crate) struct Ran {
    pub(crate) legs: LegTally,
    pub(crate) idle: Idle,
}

/// Time in which the other end's clock may have run while this end did not move data: its threads were being set up, or taken down.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Idle {
    pub(crate) before_ns: u64,
    pub(crate) after_ns: u64,
}

impl Idle {
    /// Subtracts it from the time that the other end reports for what this end sent. With a stream, `after_ns` stays in that time: what is
    /// left in the socket arrives then.
    pub(crate) fn shorten(&self, far: &mut EndTally, datagrams: bool) {
        let idle = self.before_ns + if datagrams { self.after_ns } else { 0 };
        if far.receiving_ns <= idle {
            return;
        }
        far.receiving_ns -= idle;
        far.measured.iter_mut().for_each(|window| window.ns = window.ns.saturating_sub(idle).max(1));
    }

    /// Adds it to the time in which this end received datagrams: those that came before it was ready waited in the socket, and all but one
    /// of them count. With a stream, all that waited is the first arrival, which does not count.
    pub(crate) fn lengthen(&self, near: &mut EndTally) {
        if near.receiving_ns > 0 && near.datagrams.is_some() {
            near.receiving_ns += self.before_ns;
            near.after_first.iter_mut().for_each(|window| window.ns += self.before_ns);
        }
    }
}

/// Moves the data and waits for the end of all links. `live` receives what this end reports; `on_step` is called at
/// least every `step` with the signals that end the links and the time since the start.
pub(crate) fn run(
    plan: &TrialPlan,
    links: Vec<Link>,
    step: Duration,
    live: &mut dyn FnMut(Live),
    on_step: &mut dyn FnMut(&Signals, Duration),
) -> Result<Ran, EngineError> {
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
) -> Result<Ran, EngineError> {
    let called = Instant::now();
    let carrier = transport(plan.spec.transport.as_str())?;
    let signals = Signals::new();
    let (tell, reported) = channel();
    let started = Arc::new(OnceLock::new());
    let clock = started.clone();
    signals.before_start(move || {
        first();
        let _ = clock.set(Instant::now());
    });
    let legs = std::thread::scope(|scope| {
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
    })?;
    let ready = started.get().copied().unwrap_or(called);
    // The engine's time includes that in which its threads end.
    let sent = legs.legs.last().map_or(0, |leg| leg.sending_ns);
    let moved = Duration::from_nanos(if sent > 0 { sent } else { legs.elapsed_ns });
    let after = ready.elapsed().saturating_sub(moved);
    let idle = Idle { before_ns: ready.duration_since(called).as_nanos() as u64, after_ns: after.as_nanos() as u64 };
    Ok(Ran { legs, idle })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DatagramTally;
    use model::tally::Window;

    const IDLE: Idle = Idle { before_ns: 10, after_ns: 5 };

    #[test]
    fn the_other_ends_time_has_none_in_which_this_end_did_not_send() {
        let after_shortening = |datagrams| {
            let mut far = EndTally { receiving_ns: 1_015, ..EndTally::default() };
            IDLE.shorten(&mut far, datagrams);
            far.receiving_ns
        };
        assert_eq!((after_shortening(true), after_shortening(false)), (1_000, 1_005));
        let mut short = EndTally { receiving_ns: 12, ..EndTally::default() };
        IDLE.shorten(&mut short, true);
        assert_eq!(short.receiving_ns, 12, "a time below its own idle part is left as it was reported");
    }

    #[test]
    fn datagrams_that_waited_before_the_start_count_with_their_time() {
        let window = Some(Window { bytes: 90, ns: 900 });
        let stream = EndTally { bytes_received: 100, receiving_ns: 900, after_first: window, ..EndTally::default() };
        let mut datagrams = EndTally { datagrams: Some(DatagramTally::default()), ..stream.clone() };
        IDLE.lengthen(&mut datagrams);
        assert_eq!(datagrams.arrivals(), Window { bytes: 90, ns: 910 });
        let mut same = stream.clone();
        IDLE.lengthen(&mut same);
        assert_eq!(same.arrivals(), stream.arrivals());
    }
}
