//! Our transmitter at a receiver of NPtcp: a curve in one conversation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::TrialPlan;
use engine::transport::programs;
use model::tally::Count;
use model::{Direction, EndTally, Leg, Pattern, Program, Role, Spec, Stop, TransportName};
use peer_wire::Turn;
use peer_wire::netpipe::{Action, EndRole as End, Exchange, Mode, Netpipe, PEER, SizePlan};
use text::{Said, Text, say};

use super::options::schedule;
use crate::capabilities::uncarried;
use crate::legs::{self, Ran};
use crate::line::{Input, Line, Wait};
use crate::{Curve, ProgramError, TrialObserver};

/// Time limit for a mark of the receiver.
const SILENCE: Duration = Duration::from_secs(10);
/// Interval between checks for the end.
const STEP: Duration = Duration::from_millis(50);
/// How long it may take to close at the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

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

/// The schedule of both ends for these points.
pub(super) fn plan(points: &[Spec]) -> Result<SizePlan, ProgramError> {
    points.iter().try_for_each(check)?;
    let sizes: Vec<u64> = points.iter().map(|point| point.block).collect();
    let Some(found) = schedule(&sizes) else {
        return Err(ProgramError::unsupported(
            "sizes that are not NetPIPE's own with netpipe",
            say!("use `--first`, `--to` and `--perturbation`, and start NPtcp with the same values for -l, -u and -p"),
        ));
    };
    let mode = match points.first() {
        Some(point) if point.pattern == Pattern::Stream => Mode::Stream,
        Some(point) if point.direction == Direction::Both => Mode::Both,
        _ => Mode::PingPong,
    };
    Ok(SizePlan { first: found.first, sizes: found.list(), mode, reset: false, integrity: false, count: None })
}

/// Measures all points, or as many as NPtcp's own limit of a second for one message lets.
pub(super) fn measure(
    points: &[Spec],
    host: &str,
    observer: &mut dyn TrialObserver,
    cancel: &AtomicBool,
) -> Result<Curve, ProgramError> {
    let plan = plan(points)?;
    let Some(spec) = points.first().cloned() else { return Err(ProgramError::Interrupted) };
    let begun = Instant::now();
    let line = Line::open(PEER.name, &spec, host, PEER.port)?;
    let mut turn = Turn::default();
    let machine = Netpipe::open(End::Transmitter, plan.clone(), &mut turn);
    let (sizes_left, trials) = machine.left();
    let budget = match spec.stop {
        Stop::AboutNs(ns) => Duration::from_nanos(ns.saturating_mul((sizes_left * trials) as u64)),
        _ => Duration::ZERO,
    };
    observer.starting(begun.elapsed().as_nanos() as u64);
    let (host, sizes) = (host.to_owned(), plan.sizes);
    let mut run = Run { spec, host, line, machine, turn, due: begun + budget, trials: Vec::new(), points: Vec::new() };
    run.aim();
    let result = run.conduct(cancel);
    observer.stopped();
    let Run { line, points: measured, .. } = run;
    line.close(CLOSE_LIMIT);
    let points = ascending(points, &sizes, measured);
    let failure = match result {
        Ok(()) => None,
        Err(error) if points.is_empty() => return Err(error),
        Err(error) => Some(error.say()),
    };
    Ok(Curve { points, failure, elapsed_ns: begun.elapsed().as_nanos() as u64 })
}

struct Run {
    spec: Spec,
    host: String,
    line: Line,
    machine: Netpipe,
    turn: Turn<Action>,
    /// When the last size should end.
    due: Instant,
    /// Trials of the current size.
    trials: Vec<[EndTally; 2]>,
    points: Vec<Vec<[EndTally; 2]>>,
}

impl Run {
    /// Divides the time that is left among the trials that are left: marks and new connections take some of it, too.
    fn aim(&mut self) {
        let (sizes, trials) = self.machine.left();
        let left = self.due.saturating_duration_since(Instant::now());
        self.machine.aim(left.as_secs_f64() / (sizes * trials).max(1) as f64);
    }

    fn conduct(&mut self, cancel: &AtomicBool) -> Result<(), ProgramError> {
        loop {
            let send = std::mem::take(&mut self.turn.send);
            self.line.send(&send)?;
            let actions = std::mem::take(&mut self.turn.actions);
            if cancel.load(Ordering::SeqCst) {
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
                    Action::Point { bytes, count, seconds } => {
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
        let cancelled = || cancel.load(Ordering::SeqCst);
        let during = "while SyncMe was expected";
        let wait = Wait { program: PEER.name, limit: SILENCE, during, cancelled: &cancelled };
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
        let over = || cancel.load(Ordering::SeqCst) || Instant::now() > deadline;
        self.line.finish_and_wait(CLOSE_LIMIT);
        loop {
            // NPtcp reopens its port, which may take long on a busy host.
            self.line = match Line::open(PEER.name, &self.spec, &self.host, PEER.port) {
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
        let address = self.line.peer().to_string();
        ProgramError::Silent { address, peer: PEER.name, seconds: SILENCE.as_secs(), during: during.into() }
    }

    /// Lets the engine move a trial's messages.
    fn exchange(&mut self, exchange: &Exchange, cancel: &AtomicBool) -> Result<(), ProgramError> {
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
            if cancel.load(Ordering::SeqCst) {
                signals.abort();
            }
        })?;
        self.line.restore_blocking()?;
        // An interrupted trial is not kept.
        if cancel.load(Ordering::SeqCst) {
            return Err(ProgramError::Interrupted);
        }
        let tally = ran.legs.into_iter().next().unwrap_or_default();
        if let Some(error) = ran.failure {
            return Err(error.into());
        }
        if tally.stalled {
            return Err(ProgramError::Silent {
                address: self.line.peer().to_string(),
                peer: PEER.name,
                seconds: self.spec.stall_ns / 1_000_000_000,
                during: "during an exchange".into(),
            });
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
    use model::NetpipeSizes;

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
