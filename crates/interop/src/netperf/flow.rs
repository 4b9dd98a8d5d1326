//! The data of a test: the engine's loops over its one link, beside whoever watches over the control connection.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use engine::transport::{Link, transport};
use engine::{EngineError, Leg, LegTally, Signals, TrialPlan};
use model::{Interval, Role, Spec};

/// Between two looks at the control connection while data flows.
pub(super) const STEP: Duration = Duration::from_millis(50);

/// Lets the data flow and waits for its end. `live` gets this end's series as it comes, `meanwhile` is called in between with the
/// flags that end the test.
pub(super) fn run(
    spec: &Spec,
    role: Role,
    link: Link,
    live: &mut dyn FnMut(Interval),
    meanwhile: &mut dyn FnMut(&Signals),
) -> Result<LegTally, EngineError> {
    let leg = Leg { block: spec.block, reply: spec.reply_bytes(), stop: spec.stop, expected_ns: 0 };
    let plan = TrialPlan { spec: spec.clone(), role, trial: 0, flows: 0..1, legs: vec![leg] };
    let carrier = transport(spec.transport.as_str())?;
    let signals = Signals::new();
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let (plan, flags) = (&plan, &signals);
        let engine = scope.spawn(move || {
            engine::run(plan, carrier, vec![link], flags, &mut |interval| {
                // Nobody listens any more where the test has failed.
                let _ = tell.send(interval);
            })
        });
        loop {
            match told.recv_timeout(STEP) {
                Ok(interval) => live(interval),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            meanwhile(&signals);
        }
        engine.join().unwrap_or_else(|_| Err(EngineError::Thread("the measuring thread panicked".into())))
    })
}
