//! Our transmitter at a receiver of NPtcp: a curve in one conversation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::TrialPlan;
use engine::transport::programs;
use model::tally::Count;
use model::{Direction, EndTally, Leg, NetpipeSizes, Pattern, Program, Role, Spec, Stop, TransportName};
use peer_wire::Turn;
use peer_wire::netpipe::{Action, EndRole as End, Exchange, Mode, Netpipe, PEER, Passage, SizePlan};
use text::{Said, Text, say};

use super::options::{are_some, schedule};
use super::pace::Pace;
use crate::capabilities::uncarried;
use crate::legs::{self, Ran};
use crate::line::{CONNECT_LIMIT, Input, Line, Wait};
use crate::{Curve, CurveLimits, OpenCurve, ProgramError, TrialObserver};

/// Time limit for a mark of the receiver, if the curve has none.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// Interval between checks for the end.
const STEP: Duration = Duration::from_millis(50);
/// How long it may take to close at the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);
/// Bytes of a passage that are sent or received at once.
const CHUNK: usize = 1 << 16;

/// Refuses what NPtcp's receiver cannot do or has no option for.
pub(super) fn check(spec: &Spec) -> Result<(), ProgramError> {
    fn refuse(what: impl Into<Text>, remedy: impl Into<Text>) -> Result<(), ProgramError> {
        Err(ProgramError::unsupported(say!("{} with netpipe", what.into()), remedy))
    }
    spec.check().map_err(|error| ProgramError::unsupported("these settings", error.say()))?;
    if spec.transport != TransportName::Tcp {
        return refuse(say!("`--transport {}`", spec.transport), "use TCP");
    }
    if !matches!(spec.pattern, Pattern::Pingpong | Pattern::Stream) || !spec.is_point() {
        return refuse(
            say!("{} of a single size", spec.pattern),
            say!(
                "only curves are supported: `thru curve HOST --speak netpipe`, with `--both` to send from both ends at once or `--stream` for one direction"
            ),
        );
    }
    let others = [
        (spec.direction == Direction::Reverse, say!("`--reverse`")),
        (spec.flows > 1, say!("`--flows`")),
        (spec.rate_bps.is_some(), say!("`--rate`")),
        (!spec.engine.is_plain(), say!("`--engine`")),
        (spec.near.nodelay == Some(false) || spec.far.nodelay == Some(false), say!("`--nodelay off`")),
    ];
    let other = others.into_iter().find(|(there, _)| *there).map(|(_, what)| what);
    match other.or_else(|| uncarried(spec, Program::Netpipe)) {
        Some(what) => refuse(what, "not supported by its protocol; leave it out, or use NPtcp's own option"),
        None => Ok(()),
    }
}

/// The schedule of both ends for these points. Of NPtcp's own sizes by default, some are enough: it passes the others.
pub(super) fn plan(points: &[Spec]) -> Result<SizePlan, ProgramError> {
    points.iter().try_for_each(check)?;
    let wanted: Vec<u64> = points.iter().map(|point| point.block).collect();
    let mode = match points.first() {
        Some(point) if point.pattern == Pattern::Stream => Mode::Stream,
        Some(point) if point.direction == Direction::Both => Mode::Both,
        _ => Mode::PingPong,
    };
    let whole = schedule(&wanted).map(|found| (found, Vec::new()));
    let part = || (mode == Mode::PingPong && are_some(&wanted)).then_some((NetpipeSizes::DEFAULT, wanted.clone()));
    let Some((sizes, only)) = whole.or_else(part) else {
        return Err(ProgramError::unsupported(
            "sizes that are not NetPIPE's own with netpipe",
            say!("use `--first`, `--to` and `--perturbation`, and start NPtcp with the same values for -l, -u and -p"),
        ));
    };
    Ok(SizePlan { first: sizes.first, sizes: sizes.list(), mode, reset: false, integrity: false, count: None, only })
}

/// Opens a curve: the receiver is there, and has sent its first mark.
pub(super) fn open(
    points: &[Spec],
    host: &str,
    limits: CurveLimits,
    cancel: &AtomicBool,
) -> Result<OpenedCurve, ProgramError> {
    let plan = plan(points)?;
    let Some(spec) = points.first().cloned() else { return Err(ProgramError::Interrupted) };
    let begun = Instant::now();
    let line = Line::open(PEER.name, &spec, host, (PEER.port, limits.connect))?;
    let setup = begun.elapsed();
    let passes = !plan.only.is_empty();
    let timed = plan.sizes.iter().copied().filter(|size| plan.only.is_empty() || plan.only.contains(size)).collect();
    let mut turn = Turn::default();
    let machine = Netpipe::open(End::Transmitter, plan, &mut turn);
    let pace = Pace { due: begun, deadline: None, first_s: None, last: (0, 0.0) };
    let host = host.to_owned();
    let mut run = Run {
        spec,
        host,
        line,
        machine,
        turn,
        pace,
        silence: limits.answer,
        passed: None,
        trials: Vec::new(),
        points: Vec::new(),
    };
    run.greet(cancel)?;
    run.silence = limits.whole.map_or(SILENCE, |whole| SILENCE.min(whole / 2));
    Ok(OpenedCurve { points: points.to_vec(), timed, passes, setup, whole: limits.whole, run })
}

/// A curve whose receiver is there.
pub(super) struct OpenedCurve {
    points: Vec<Spec>,
    /// The sizes that are timed, in NPtcp's order.
    timed: Vec<u64>,
    /// Whether others are passed, which are those of an NPtcp without options.
    passes: bool,
    setup: Duration,
    whole: Option<Duration>,
    run: Run,
}

impl OpenCurve for OpenedCurve {
    /// Measures all points, or as many as NPtcp's own limit of a second for one message and the time limit let.
    fn measure(self: Box<Self>, observer: &mut dyn TrialObserver, cancel: &AtomicBool) -> Result<Curve, ProgramError> {
        let Self { points, timed, passes, setup, whole, mut run } = *self;
        let begun = Instant::now();
        let (sizes_left, trials) = run.machine.left();
        let budget = match run.spec.stop {
            Stop::AboutNs(ns) => Duration::from_nanos(ns.saturating_mul((sizes_left * trials) as u64)),
            _ => Duration::ZERO,
        };
        observer.starting(setup.as_nanos() as u64);
        run.pace.due = begun + budget;
        run.pace.deadline = whole.map(|whole| begun + whole);
        run.aim();
        let mut result = run.conduct(cancel);
        observer.stopped();
        let user_ended = cancel.load(Ordering::SeqCst);
        if let (Err(ProgramError::Interrupted), false, Some(whole)) = (&result, user_ended, whole) {
            // The time is over: what was measured is the curve.
            let spent = || Err(run.silent_for(whole, "that completes a size"));
            result = if run.points.is_empty() { spent() } else { Ok(()) };
        }
        let Run { line, points: measured, .. } = run;
        line.close(CLOSE_LIMIT);
        let points = ascending(&points, &timed, measured);
        let failure = match result {
            Ok(()) => None,
            Err(error) if points.is_empty() => return Err(error),
            Err(error @ (ProgramError::Peer { .. } | ProgramError::Silent { .. })) if passes => {
                Some(say!("{error}; start NPtcp again, without options"))
            }
            Err(error) => Some(error.say()),
        };
        Ok(Curve { points, failure, elapsed_ns: (setup + begun.elapsed()).as_nanos() as u64 })
    }
}

struct Run {
    spec: Spec,
    host: String,
    line: Line,
    machine: Netpipe,
    turn: Turn<Action>,
    pace: Pace,
    /// Time limit for a mark of the receiver.
    silence: Duration,
    /// The time of the round trips that were passed, until the message after them.
    passed: Option<Duration>,
    /// Trials of the current size.
    trials: Vec<[EndTally; 2]>,
    points: Vec<Vec<[EndTally; 2]>>,
}

impl Run {
    /// Divides the time that is left among the trials that are left: marks and new connections take some of it, too.
    fn aim(&mut self) {
        let (sizes, trials) = self.machine.left();
        let left = self.pace.due.saturating_duration_since(Instant::now());
        self.machine.aim(left.as_secs_f64() / (sizes * trials).max(1) as f64);
    }

    /// Waits for the receiver's first mark.
    fn greet(&mut self, cancel: &AtomicBool) -> Result<(), ProgramError> {
        while self.turn.actions.is_empty() {
            let send = std::mem::take(&mut self.turn.send);
            self.line.send(&send)?;
            self.listen(cancel)?;
        }
        Ok(())
    }

    /// Whether the user ends the curve, or its time does.
    fn is_over(&self, cancel: &AtomicBool) -> bool {
        cancel.load(Ordering::SeqCst) || self.pace.is_over()
    }

    fn conduct(&mut self, cancel: &AtomicBool) -> Result<(), ProgramError> {
        loop {
            let send = std::mem::take(&mut self.turn.send);
            self.line.send(&send)?;
            let actions = std::mem::take(&mut self.turn.actions);
            if self.is_over(cancel) {
                return Err(ProgramError::Interrupted);
            }
            if actions.is_empty() {
                match self.listen(cancel) {
                    // A receiver with other sizes does not expect the end here; keep what was measured.
                    Err(ProgramError::Peer { .. } | ProgramError::Silent { .. }) if self.machine.is_quitting() => {
                        return Ok(());
                    }
                    // NPtcp's -2 ends at the size of its socket buffers.
                    Err(ProgramError::Peer { .. }) if self.machine.is_at_limit() => return Ok(()),
                    heard => heard?,
                }
            }
            for action in actions {
                match action {
                    Action::Exchange(exchange) => self.exchange(&exchange, cancel)?,
                    // NPtcp ends where the connection does.
                    Action::Pass(passage) if self.pace.is_too_long(&passage) => return Ok(()),
                    Action::Pass(passage) => self.pass(passage, cancel)?,
                    Action::Point { bytes, count, seconds } => {
                        self.pace.note(bytes, seconds);
                        let trials = std::mem::take(&mut self.trials);
                        let streams = self.spec.pattern == Pattern::Stream;
                        self.points.push(if streams {
                            reported(trials, bytes * u64::from(count), seconds * f64::from(count))
                        } else {
                            trials
                        });
                        self.aim();
                    }
                    Action::Reset => self.reset(cancel)?,
                    Action::Done => return Ok(()),
                }
            }
        }
    }

    /// Receives the next mark byte by byte, because a message may follow it.
    fn listen(&mut self, cancel: &AtomicBool) -> Result<(), ProgramError> {
        let mut byte = [0];
        let cancelled = || self.pace.is_over() || cancel.load(Ordering::SeqCst);
        let during = "while SyncMe was expected";
        let wait = Wait { program: PEER.name, limit: self.silence, during, cancelled: &cancelled };
        let heard = self.line.wait(&mut byte, &wait).map_err(|error| match error {
            ProgramError::Silent { address, peer, seconds, during } => ProgramError::Silent {
                address,
                peer,
                seconds,
                during: say!(
                    "{during}: start NPtcp with the same sizes, and with -2 for `--both` or -s for `--stream`"
                ),
            },
            other => other,
        })?;
        let wrong = |error| self.line.peer_error(error);
        match heard {
            Some(_) => self.machine.receive(&mut &byte[..], &mut self.turn).map_err(wrong),
            None => self.machine.ended().map_err(wrong).and(Err(ProgramError::Interrupted)),
        }
    }

    /// Opens a new connection, as both ends do after each trial of a stream.
    fn reset(&mut self, cancel: &AtomicBool) -> Result<(), ProgramError> {
        let deadline = Instant::now() + SILENCE;
        let pace = self.pace;
        let over = || cancel.load(Ordering::SeqCst) || pace.is_over() || Instant::now() > deadline;
        self.line.finish_and_wait(CLOSE_LIMIT);
        loop {
            // NPtcp reopens its port, which may take long on a busy host.
            self.line = match Line::open(PEER.name, &self.spec, &self.host, (PEER.port, CONNECT_LIMIT)) {
                Err(ProgramError::Unreachable { .. }) if !over() => {
                    std::thread::sleep(STEP);
                    continue;
                }
                opened => opened?,
            };
            // A connection to the old port is closed before NPtcp sends its SyncMe.
            let heard = loop {
                match self.line.peek(STEP)? {
                    Input::Nothing if !over() => {}
                    heard => break heard,
                }
            };
            if let Input::Bytes(_) = heard {
                return self.machine.reconnected(&mut self.turn).map_err(|error| self.line.peer_error(error));
            }
            if over() {
                return Err(self.silent("after it reopened its port"));
            }
        }
    }

    fn silent(&self, during: &'static str) -> ProgramError {
        self.silent_for(self.silence, during)
    }

    fn silent_for(&self, time: Duration, during: &'static str) -> ProgramError {
        let address = self.line.peer().to_string();
        ProgramError::Silent { address, peer: PEER.name, seconds: time.as_secs(), during: during.into() }
    }

    /// Sends what a passage has to send while it receives.
    fn pass(&mut self, mut passage: Passage, cancel: &AtomicBool) -> Result<(), ProgramError> {
        let begun = Instant::now();
        let (mut outgoing, mut room) = (Vec::new(), vec![0; CHUNK]);
        let mut heard_at = begun;
        while !passage.is_over() {
            if self.is_over(cancel) {
                return Err(ProgramError::Interrupted);
            }
            passage.fill(&mut outgoing, CHUNK);
            let most = passage.due().min(CHUNK as u64) as usize;
            let (sent, heard) = self.line.both_directions(&outgoing, &mut room[..most], STEP)?;
            outgoing.drain(..sent);
            match heard {
                Input::Bytes(count) => passage.take(&room[..count]),
                Input::Ended => self.machine.ended(),
                Input::Nothing if heard_at.elapsed() > self.silence => {
                    return Err(self.silent("between two sizes"));
                }
                Input::Nothing => continue,
            }
            .map_err(|error| self.line.peer_error(error))?;
            heard_at = Instant::now();
        }
        if self.points.is_empty() {
            self.passed = Some(begun.elapsed());
        }
        let passed = self.machine.passed(begun.elapsed().as_secs_f64(), &mut self.turn);
        passed.map_err(|error| self.line.peer_error(error))
    }

    /// Waits once, before the first message after the round trips that were passed, for what a receiver with -2 sends by itself: its times
    /// would be no round trips.
    fn expect_silence(&mut self) -> Result<(), ProgramError> {
        let Some(round_trip) = self.passed.take() else { return Ok(()) };
        match self.line.peek(round_trip + round_trip / 2 + STEP / 5)? {
            Input::Bytes(_) => Err(self.line.peer_error(self.machine.unasked())),
            Input::Ended | Input::Nothing => Ok(()),
        }
    }

    /// Lets the engine move a trial's messages.
    fn exchange(&mut self, exchange: &Exchange, cancel: &AtomicBool) -> Result<(), ProgramError> {
        self.expect_silence()?;
        let count = u64::from(exchange.count);
        // The exchanges before the first size are always round trips.
        let (pattern, stop) = match exchange.mode {
            Mode::Stream => (Pattern::Stream, Stop::Blocks(count)),
            Mode::PingPong | Mode::Both => (Pattern::Pingpong, Stop::Transactions(count)),
        };
        let direction = if exchange.mode == Mode::Both { Direction::Both } else { Direction::Send };
        let spec = Spec {
            pattern,
            block: exchange.bytes,
            direction,
            stop,
            interval_ns: 0,
            paced_to_receiver: false,
            ..self.spec.clone()
        };
        let leg = Leg { block: exchange.bytes, reply: exchange.bytes, stop, expected_ns: 0 };
        let plan = TrialPlan {
            role: Role::Active,
            trial: 0,
            flows: 0..1,
            legs: vec![leg],
            path: model::PathTimes::default(),
            spec,
        };
        let link = programs::stream(self.line.socket()?, &plan.spec);
        let Ran { legs: ran, .. } = legs::run(&plan, vec![link], STEP, &mut |_| {}, &mut |signals, _| {
            if self.is_over(cancel) {
                signals.abort();
            }
        })?;
        self.line.restore_blocking()?;
        // An interrupted trial is not kept.
        if self.is_over(cancel) {
            return Err(ProgramError::Interrupted);
        }
        let tally = ran.legs.into_iter().next().unwrap_or_default();
        if let Some(error) = ran.failure {
            return Err(error.into());
        }
        if tally.stalled {
            return Err(self.silent_for(Duration::from_nanos(self.spec.stall_ns), "during an exchange"));
        }
        let seconds = match &tally.rtt {
            Some(rtt) => rtt.mean_ns * f64::from(exchange.count) / 1e9,
            None => tally.sending_ns as f64 / 1e9,
        };
        let timed = self.machine.is_timed();
        let reported = self.machine.exchanged(seconds, &mut self.turn);
        reported.map_err(|error| self.line.peer_error(error))?;
        if timed {
            self.trials.push([tally, EndTally::unreported()]);
        }
        Ok(())
    }
}

/// The trials of the wanted sizes, ascending, up to the first that was not reached: NPtcp measures the neighbours of two sizes that are close
/// to each other in another order, and some of them twice.
fn ascending(wanted: &[Spec], sizes: &[u64], measured: Vec<Vec<[EndTally; 2]>>) -> Vec<Vec<[EndTally; 2]>> {
    let mut trials: BTreeMap<u64, Vec<[EndTally; 2]>> = BTreeMap::new();
    for (size, measured) in sizes.iter().zip(measured) {
        trials.entry(*size).or_default().extend(measured);
    }
    wanted.iter().map_while(|point| trials.remove(&point.block)).collect()
}

/// A size's trial of a stream. NPtcp reports the shortest time of three, but not which trial it was: use the
/// fastest at this end.
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

    fn points(sizes: &[u64], change: fn(&mut Spec)) -> Vec<Spec> {
        let point = |block: &u64| {
            let mut spec =
                Spec { block: *block, stop: Stop::AboutNs(1_000_000), ..Spec::new("tcp", Pattern::Pingpong) };
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
    fn some_of_nptcps_default_sizes_are_a_plan_that_passes_the_others() {
        let found = plan(&points(&[1, 1024, 4096], |_| {})).unwrap();
        assert_eq!((found.sizes.len(), found.only), (124, vec![1, 1024, 4096]));
        let both = |spec: &mut Spec| spec.direction = Direction::Both;
        assert!(plan(&points(&[1, 1024], both)).is_err(), "both ends send at once");
    }

    #[test]
    fn sizes_that_nptcp_measures_in_another_order_are_returned_ascending() {
        let own = plan(&points(&[7, 10, 12, 13, 15, 17, 18, 20, 23], |_| {})).unwrap();
        assert_eq!((own.first, &own.sizes[..]), (10, &[7, 10, 13, 12, 15, 18, 17, 20, 23][..]));
        // 12 B were not reached, and 10 B were measured twice.
        let trials = |number: u64| vec![[EndTally { bytes_sent: number, ..EndTally::default() }, EndTally::default()]];
        let measured = (0..5).map(trials).collect();
        let found = ascending(&points(&[7, 10, 12, 13], |_| {}), &[7, 10, 13, 15, 10], measured);
        let sent: Vec<Vec<u64>> =
            found.iter().map(|one| one.iter().map(|[near, _]| near.bytes_sent).collect()).collect();
        assert_eq!(sent, [vec![0], vec![1, 4]]);
    }

    #[test]
    fn options_without_a_counterpart_are_refused() {
        let said = |sizes: &[u64], change: fn(&mut Spec)| plan(&points(sizes, change)).unwrap_err().to_string();
        assert!(said(&[1, 10, 100], |_| {}).contains("not NetPIPE's own"));
        assert!(said(&[1, 2, 3], |spec| spec.far.sndbuf = Some(1 << 16)).contains("`--sndbuf` at the far end"));
        assert!(said(&[1, 2, 3], |spec| spec.pattern = Pattern::Rr).contains("only curves are supported"));
        assert!(
            said(&[1, 2, 3], |spec| spec.stop = Stop::TimeNs(1_000_000)).contains("`thru curve HOST --speak netpipe`")
        );
    }
}
