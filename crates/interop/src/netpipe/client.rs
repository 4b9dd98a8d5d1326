//! Our transmitter at a receiver of NPtcp: a curve in one conversation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::transport::foreign;
use engine::{Leg, TrialPlan};
use model::tally::Count;
use model::{Direction, EndOptions, EndTally, Role, Spec, Stop};
use speak::Turn;
use speak::netpipe::{Action, Exchange, Mode, Netpipe, PEER, Plan, Role as End};

use super::options::schedule;
use crate::line::{Input, Line, Patience};
use crate::{Curve, InteropError, TrialObserver, legs};

/// How long the receiver may say nothing where a mark is due.
const SILENCE: Duration = Duration::from_secs(10);
/// Between two looks at whether to end.
const STEP: Duration = Duration::from_millis(50);
/// How long it may take to close at the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Refuses what NPtcp's receiver cannot do, or cannot be told.
pub(super) fn check(spec: &Spec) -> Result<(), InteropError> {
    let refuse = |what: &str, remedy: &str| Err(InteropError::unsupported(format!("{what} with netpipe"), remedy));
    spec.check().map_err(|error| InteropError::unsupported("this measurement", error.to_string()))?;
    if spec.transport != "tcp" {
        return refuse(&format!("--transport {}", spec.transport), "it speaks TCP");
    }
    if !matches!(spec.pattern.as_str(), "pingpong" | "stream") || !spec.is_point() {
        return refuse(
            &format!("{} of a size", spec.pattern),
            "it has curves alone: thru curve HOST --speak netpipe, with --both for blocks that cross, --stream for one way",
        );
    }
    let far = EndOptions { nodelay: spec.far.nodelay, ..EndOptions::default() };
    let others = [
        (spec.direction == Direction::Reverse, "--reverse"),
        (spec.flows > 1, "--flows"),
        (spec.processes > 1, "--processes"),
        (spec.rate_bps.is_some(), "--rate"),
        (spec.delayed_reads, "--delayed-reads"),
        (spec.capture.is_some(), "--capture"),
        (!spec.settings.is_empty(), "--set"),
        (!spec.engine.is_plain(), "--engine"),
        (spec.near.nodelay == Some(false) || spec.far.nodelay == Some(false), "--nodelay off"),
        (spec.far != far, "options of the far end's sockets"),
    ];
    match others.into_iter().find(|(there, _)| *there) {
        Some((_, what)) => refuse(what, "its far end is told nothing: leave it out, or give NPtcp its own option"),
        None => Ok(()),
    }
}

/// What both ends do at these points.
pub(super) fn plan(points: &[Spec]) -> Result<Plan, InteropError> {
    points.iter().try_for_each(check)?;
    let sizes: Vec<u64> = points.iter().map(|point| point.block).collect();
    let Some(found) = schedule(&sizes) else {
        return Err(InteropError::unsupported(
            "sizes that are not NetPIPE's own with netpipe",
            "use --first, --to and --perturbation, and give NPtcp the same as -l, -u and -p",
        ));
    };
    let mode = match points.first() {
        Some(point) if point.pattern == "stream" => Mode::Stream,
        Some(point) if point.direction == Direction::Both => Mode::Both,
        _ => Mode::PingPong,
    };
    Ok(Plan { first: found.first, sizes, mode, reset: false, integrity: false, count: None })
}

/// Measures all points, or as many as NPtcp's own limit of a second for one message lets.
pub(super) fn measure(
    points: &[Spec],
    host: &str,
    observer: &mut dyn TrialObserver,
    cancel: &AtomicBool,
) -> Result<Curve, InteropError> {
    let plan = plan(points)?;
    let Some(spec) = points.first().cloned() else { return Err(InteropError::Interrupted) };
    let begun = Instant::now();
    let line = Line::open(PEER.name, &spec, host, PEER.port)?;
    let mut turn = Turn::default();
    let mut machine = Netpipe::open(End::Transmitter, plan, &mut turn);
    if let Stop::AboutNs(ns) = spec.stop {
        machine.aim(ns as f64 / 1e9);
    }
    observer.starting(begun.elapsed().as_nanos() as u64);
    let host = host.to_owned();
    let mut run = Run { spec, host, line, machine, turn, trials: Vec::new(), points: Vec::new() };
    let result = run.conduct(cancel);
    observer.stopped();
    let Run { line, points, .. } = run;
    line.close(CLOSE_LIMIT);
    let failure = match result {
        Ok(()) => None,
        Err(error) if points.is_empty() => return Err(error),
        Err(error) => Some(error.to_string()),
    };
    Ok(Curve { points, failure, elapsed_ns: begun.elapsed().as_nanos() as u64 })
}

struct Run {
    spec: Spec,
    host: String,
    line: Line,
    machine: Netpipe,
    turn: Turn<Action>,
    /// Of the size that is being measured.
    trials: Vec<[EndTally; 2]>,
    points: Vec<Vec<[EndTally; 2]>>,
}

impl Run {
    fn conduct(&mut self, cancel: &AtomicBool) -> Result<(), InteropError> {
        loop {
            let send = std::mem::take(&mut self.turn.send);
            self.line.say(&send)?;
            let actions = std::mem::take(&mut self.turn.actions);
            if cancel.load(Ordering::SeqCst) {
                return Err(InteropError::Interrupted);
            }
            if actions.is_empty() {
                match self.listen(cancel) {
                    // A receiver with other sizes knows no end here; what was measured stands.
                    Err(InteropError::Peer { .. } | InteropError::Silent { .. }) if self.machine.is_quitting() => {
                        return Ok(());
                    }
                    // NPtcp's -2 goes as far as its socket's buffers do.
                    Err(InteropError::Peer { .. }) if self.machine.is_at_limit() => return Ok(()),
                    heard => heard?,
                }
            }
            for action in actions {
                match action {
                    Action::Exchange(exchange) => self.exchange(&exchange, cancel)?,
                    Action::Point { bytes, count, seconds } => {
                        let trials = std::mem::take(&mut self.trials);
                        let streams = self.spec.pattern == "stream";
                        self.points.push(if streams {
                            reported(trials, bytes * u64::from(count), seconds * f64::from(count))
                        } else {
                            trials
                        });
                    }
                    Action::Reset => self.reset(cancel)?,
                    Action::Done => return Ok(()),
                }
            }
        }
    }

    /// Takes what the receiver says next: a byte at a time, for what comes behind a mark is a message.
    fn listen(&mut self, cancel: &AtomicBool) -> Result<(), InteropError> {
        let mut byte = [0];
        let cancelled = || cancel.load(Ordering::SeqCst);
        let during = "where its SyncMe was due: give NPtcp the same sizes, and -2 for --both, -s for --stream";
        let patience = Patience { program: PEER.name, limit: SILENCE, during, cancelled: &cancelled };
        let heard = self.line.wait(&mut byte, &patience)?;
        let wrong = |error| self.line.wrong(error);
        match heard {
            Some(_) => self.machine.receive(&mut &byte[..], &mut self.turn).map_err(wrong),
            None => self.machine.ended().map_err(wrong).and(Err(InteropError::Interrupted)),
        }
    }

    /// Goes on with a new connection, as both ends do after each trial of a stream.
    fn reset(&mut self, cancel: &AtomicBool) -> Result<(), InteropError> {
        let deadline = Instant::now() + SILENCE;
        self.line.part(CLOSE_LIMIT);
        loop {
            self.line = Line::open(PEER.name, &self.spec, &self.host, PEER.port)?;
            // NPtcp opens its port anew. A connection to the old one is lost, which shows before NPtcp says its SyncMe.
            let over = || cancel.load(Ordering::SeqCst) || Instant::now() > deadline;
            let heard = loop {
                match self.line.peek(STEP)? {
                    Input::Nothing if !over() => {}
                    heard => break heard,
                }
            };
            if let Input::Bytes(_) = heard {
                return self.machine.reconnected(&mut self.turn).map_err(|error| self.line.wrong(error));
            }
            if over() {
                return Err(self.silent("after it had opened its port anew"));
            }
        }
    }

    fn silent(&self, during: &'static str) -> InteropError {
        let address = self.line.peer().to_string();
        InteropError::Silent { address, peer: PEER.name, seconds: SILENCE.as_secs(), during }
    }

    /// Lets the engine move a trial's messages.
    fn exchange(&mut self, exchange: &Exchange, cancel: &AtomicBool) -> Result<(), InteropError> {
        let count = u64::from(exchange.count);
        // Before the first size the two ends send to and fro, whatever they do then.
        let (pattern, stop) = match exchange.mode {
            Mode::Stream => ("stream", Stop::Blocks(count)),
            Mode::PingPong | Mode::Both => ("pingpong", Stop::Transactions(count)),
        };
        let direction = if exchange.mode == Mode::Both { Direction::Both } else { Direction::Send };
        let spec = Spec {
            pattern: pattern.into(),
            block: exchange.bytes,
            direction,
            stop,
            interval_ns: 0,
            paced_to_receiver: false,
            ..self.spec.clone()
        };
        let leg = Leg { block: exchange.bytes, reply: exchange.bytes, stop, expected_ns: 0 };
        let plan = TrialPlan { role: Role::Active, trial: 0, flows: 0..1, legs: vec![leg], spec };
        let link = foreign::stream(self.line.socket()?, &plan.spec);
        let ran = legs::run(&plan, vec![link], STEP, &mut |_| {}, &mut |signals, _| {
            if cancel.load(Ordering::SeqCst) {
                signals.abort();
            }
        })?;
        self.line.regain()?;
        // What an interrupt has cut is no trial.
        if cancel.load(Ordering::SeqCst) {
            return Err(InteropError::Interrupted);
        }
        let tally = ran.legs.into_iter().next().unwrap_or_default();
        if let Some(error) = ran.failure {
            return Err(error.into());
        }
        if tally.stalled {
            return Err(InteropError::Silent {
                address: self.line.peer().to_string(),
                peer: PEER.name,
                seconds: self.spec.stall_ns / 1_000_000_000,
                during: "while messages went",
            });
        }
        let seconds = match &tally.rtt {
            Some(rtt) => rtt.mean_ns * f64::from(exchange.count) / 1e9,
            None => tally.sending_ns as f64 / 1e9,
        };
        let timed = self.machine.is_timed();
        let reported = self.machine.exchanged(seconds, &mut self.turn);
        reported.map_err(|error| self.line.wrong(error))?;
        if timed {
            self.trials.push([tally, EndTally::unreported()]);
        }
        Ok(())
    }
}

/// A size's one trial of a stream: NPtcp tells the least time of its three, after which it has read them all. Which it was it does not
/// tell: the quickest at this end stands for it.
fn reported(trials: Vec<[EndTally; 2]>, bytes: u64, seconds: f64) -> Vec<[EndTally; 2]> {
    let least = trials.into_iter().min_by_key(|[near, _]| near.sending_ns);
    let reported = |[near, mut far]: [EndTally; 2]| {
        far.report(Count::BytesReceived, bytes);
        far.report(Count::ReceivingNs, (seconds * 1e9) as u64);
        [near, far]
    };
    least.map(reported).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::NetpipeSizes;

    fn points(sizes: &[u64], change: fn(&mut Spec)) -> Vec<Spec> {
        let point = |block: &u64| {
            let mut spec = Spec { block: *block, stop: Stop::AboutNs(1_000_000), ..Spec::new("tcp", "pingpong") };
            change(&mut spec);
            spec
        };
        sizes.iter().map(point).collect()
    }

    #[test]
    fn a_curve_of_netpipes_sizes_is_a_plan() {
        let sizes = NetpipeSizes { first: 1, last: 64, perturbation: 3 }.list();
        let found = plan(&points(&sizes, |spec| spec.direction = Direction::Both)).unwrap();
        assert_eq!((found.first, found.mode, found.sizes), (1, Mode::Both, sizes));
    }

    #[test]
    fn what_the_receiver_cannot_be_told_is_refused() {
        let said = |sizes: &[u64], change: fn(&mut Spec)| plan(&points(sizes, change)).unwrap_err().to_string();
        assert!(said(&[1, 10, 100], |_| {}).contains("not NetPIPE's own"));
        assert!(said(&[1, 2, 3], |spec| spec.far.sndbuf = Some(1 << 16)).contains("far end's sockets"));
        assert!(said(&[1, 2, 3], |spec| spec.pattern = "rr".into()).contains("it has curves alone"));
        assert!(said(&[1, 2, 3], |spec| spec.stop = Stop::TimeNs(1_000_000)).contains("thru curve HOST"));
    }
}
