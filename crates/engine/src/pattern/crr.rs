//! Connect, request, response, close: a new connection for each transaction.

use std::io;

use model::{Direction, ProbeSample, Spec, Strategy};
use text::say;

use super::machine::{Env, Machine, Part, QUANTUM};
use super::pacer::Pacer;
use super::refusals::refuse_rate;
use crate::core::{EngineError, Interest, LegStop, Turn, add, not_now, now_ns};
use crate::transport::{Capabilities, Channel, names};

pub(super) fn check(spec: &Spec, capabilities: &Capabilities) -> Result<(), EngineError> {
    if !spec.responsiveness {
        refuse_rate(spec)?;
    }
    if !capabilities.reconnects {
        let others = names(|other| other.capabilities().reconnects);
        return Err(EngineError::unsupported(say!("`--connect` on {}", spec.transport), say!("use {others}")));
    }
    if spec.direction != Direction::Send {
        return Err(EngineError::unsupported(
            say!("`--connect` with `--reverse` or `--both`"),
            "run it from the other host",
        ));
    }
    if matches!(spec.strategy, Strategy::Epoll | Strategy::Uring) {
        return Err(EngineError::unsupported(
            say!("`--connect` with `--wait`"),
            say!("each of its sockets lives for one transaction; leave `--wait` out, or use `--spin`"),
        ));
    }
    if spec.strategy != Strategy::Spin && spec.threads.is_some_and(|threads| threads < spec.flows) {
        return Err(EngineError::unsupported(
            say!("`--connect` with several flows per thread"),
            say!("give each flow a thread (leave `--threads` out), or use `--spin`"),
        ));
    }
    Ok(())
}

pub(crate) fn machine<C: Channel>(spec: &Spec, part: &Part) -> Box<dyn Machine<C>> {
    if part.initiates() {
        Box::new(Caller::new(part, spec.overlap_close))
    } else {
        Box::new(Callee { request: part.block, reply: part.reply, step: Step::Open, at: 0, stop: part.stop, done: 0 })
    }
}

/// State of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Open,
    /// The connection is being opened.
    Connect,
    Request,
    Reply,
    Close,
    /// The caller's last connection, which carries no request.
    CloseHandshake,
}

/// Opens, requests and times. The other end closes first, so that ports in TIME_WAIT accumulate there. This end closes
/// right after that, before the next connection, or (`overlaps`) while the other end answers on that one.
struct Caller {
    overlaps: bool,
    request: usize,
    reply: usize,
    stop: LegStop,
    step: Step,
    at: usize,
    started_ns: u64,
    done: u64,
    /// The connection being opened carries no request: it tells the other end that it was the last.
    last: bool,
    /// For a probe, which has a rate: when the next connection is due, and the times of each connection.
    pacer: Pacer,
    connected_ns: u64,
    probes: Option<Vec<ProbeSample>>,
}

/// Round trips of a caller of a probe for which there is room; further ones are in the histogram only.
const MAX_PROBES: usize = 16_384;

impl Caller {
    fn new(part: &Part, overlaps: bool) -> Self {
        Self {
            overlaps,
            request: part.block,
            reply: part.reply,
            stop: part.stop,
            step: Step::Open,
            at: 0,
            started_ns: 0,
            done: 0,
            last: false,
            pacer: Pacer::new(part.pace),
            connected_ns: 0,
            probes: part.pace.map(|_| Vec::with_capacity(MAX_PROBES)),
        }
    }

    fn over(&self, env: &Env<'_>) -> bool {
        match self.stop {
            LegStop::Transactions(count) => self.done >= count,
            LegStop::Clock | LegStop::Bytes(_) => env.signals.stopping(),
        }
    }

    /// Records a round trip that is complete: of a probe the time from the request to the response.
    fn record(&mut self, now: u64, env: &mut Env<'_>) {
        let Some(probes) = &mut self.probes else { return env.rtt.record(now - self.started_ns) };
        let (connect_ns, request_ns) = (self.connected_ns - self.started_ns, now - self.connected_ns);
        env.rtt.record(request_ns);
        if probes.len() < MAX_PROBES {
            probes.push(ProbeSample { at_ns: self.started_ns, connect_ns, request_ns });
        }
    }
}

impl<C: Channel> Machine<C> for Caller {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            let result = match self.step {
                Step::Open => {
                    self.last = self.over(env);
                    if !self.last
                        && let Some(until) = self.pacer.hold(env.pace)
                    {
                        return Ok(Turn::Sleep(until));
                    }
                    self.pacer.sent(1.0);
                    self.started_ns = now_ns();
                    if self.last {
                        env.counters.stop_sending(self.started_ns);
                        env.counters.arrived(self.started_ns);
                        if channel.is_to_program() {
                            // The other program does not know connections without a request.
                            return Ok(Turn::Done);
                        }
                    } else if self.done == 0 {
                        env.counters.start_sending(self.started_ns);
                    }
                    self.step = Step::Connect;
                    continue;
                }
                Step::Connect => channel.renew().map(|()| 0),
                Step::Request => channel.send(&env.tx[self.at..self.request]),
                Step::Reply => channel.recv(&mut env.rx[self.at..self.reply]),
                Step::Close | Step::CloseHandshake => channel.recv(&mut env.rx[..1]),
            };
            let count = match result {
                Ok(count) => count,
                Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Both, u64::MAX)),
                Err(error) => return Err(error),
            };
            self.at += count;
            match self.step {
                Step::Connect if self.last => {
                    channel.let_go();
                    channel.finish_sending()?;
                    self.step = Step::CloseHandshake;
                }
                Step::Connect => {
                    (self.step, self.at) = (Step::Request, 0);
                    if self.probes.is_some() {
                        self.connected_ns = now_ns();
                    }
                }
                Step::Request => {
                    env.counters.sent(count);
                    if self.at == self.request {
                        // The overlapping connection is closed while the other end answers. Closing it before the
                        // request would let the other end find no request after its accept and go to sleep.
                        channel.let_go();
                        (self.step, self.at) = (Step::Reply, 0);
                    }
                }
                Step::Reply if count == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Step::Reply => {
                    env.counters.received(count);
                    if self.at == self.reply {
                        self.step = Step::Close;
                        if self.probes.is_some() {
                            self.record(now_ns(), env);
                        }
                    }
                }
                Step::CloseHandshake => return Ok(Turn::Done),
                Step::Open | Step::Close => {
                    let now = now_ns();
                    if self.probes.is_none() {
                        self.record(now, env);
                    }
                    if self.done == 0 {
                        env.counters.arrived(now);
                    }
                    add(&env.counters.transactions, 1);
                    add(&env.counters.blocks_sent, 1);
                    self.done += 1;
                    if !self.overlaps {
                        channel.hang_up()?;
                    }
                    self.step = Step::Open;
                }
            }
        }
        Ok(Turn::Again)
    }

    fn take_probes(&mut self) -> Vec<ProbeSample> {
        self.probes.take().unwrap_or_default()
    }
}

/// Accepts, answers, closes.
struct Callee {
    request: usize,
    reply: usize,
    step: Step,
    at: usize,
    /// From another program, which announces no end: this end stops when it has enough.
    stop: LegStop,
    done: u64,
}

impl Callee {
    fn has_enough(&self) -> bool {
        self.step == Step::Open && matches!(self.stop, LegStop::Transactions(count) if self.done >= count)
    }
}

impl<C: Channel> Machine<C> for Callee {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            if channel.is_to_program() && self.has_enough() {
                return Ok(Turn::Done);
            }
            let result = match self.step {
                Step::Open | Step::Connect => channel.renew().map(|()| 0),
                Step::Request => channel.recv(&mut env.rx[self.at..self.request]),
                Step::Reply => channel.send(&env.tx[self.at..self.reply]),
                Step::Close => channel.hang_up().map(|()| 0),
                Step::CloseHandshake => channel.finish_sending().map(|()| 0),
            };
            let count = match result {
                Ok(count) => count,
                Err(error) if not_now(&error) && channel.is_to_program() && env.signals.stopping() => {
                    return Ok(Turn::Done);
                }
                // Only an accept can take long; its time-out lets this end see that the trial has ended.
                Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Both, u64::MAX)),
                Err(error) => return Err(error),
            };
            self.at += count;
            match self.step {
                Step::Open | Step::Connect => (self.step, self.at) = (Step::Request, 0),
                Step::Request if count == 0 && self.at == 0 => self.step = Step::CloseHandshake,
                Step::Request if count == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Step::Request => {
                    env.counters.received(count);
                    if self.at == self.request {
                        (self.step, self.at) = (Step::Reply, 0);
                    }
                }
                Step::Reply => {
                    env.counters.sent(count);
                    if self.at == self.reply {
                        add(&env.counters.blocks_sent, 1);
                        self.done += 1;
                        self.step = Step::Close;
                    }
                }
                Step::Close => self.step = Step::Open,
                Step::CloseHandshake => return Ok(Turn::Done),
            }
        }
        Ok(Turn::Again)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::Ordering;

    use model::{Pattern, Role, SocketFacts};

    use super::*;
    use crate::core::Payload;
    use crate::core::{Counters, RttRecorder, Signals};
    use crate::transport::{Breaker, Kind};

    /// Connections that answer with a byte and close, and record the calls.
    #[derive(Default)]
    struct Noted {
        calls: Vec<&'static str>,
        answered: bool,
    }

    impl Noted {
        fn note(&mut self, call: &'static str) -> io::Result<()> {
            self.calls.push(call);
            Ok(())
        }
    }

    impl Channel for Noted {
        const KIND: Kind = Kind::Stream;

        fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.answered = false;
            self.note("request").map(|()| bytes.len())
        }

        fn recv(&mut self, _: &mut [u8]) -> io::Result<usize> {
            let count = usize::from(!std::mem::replace(&mut self.answered, true));
            self.note(if count == 1 { "response" } else { "end" }).map(|()| count)
        }

        fn renew(&mut self) -> io::Result<()> {
            self.note("connect")
        }

        fn hang_up(&mut self) -> io::Result<()> {
            self.note("close")
        }

        fn let_go(&mut self) {
            self.calls.push("close what was before");
        }

        fn is_to_program(&self) -> bool {
            true
        }

        fn set_nonblocking(&mut self, _: bool) -> io::Result<()> {
            Ok(())
        }

        fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn finish_sending(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn facts(&self) -> SocketFacts {
            SocketFacts::default()
        }

        fn breaker(&self) -> Breaker {
            Breaker::default()
        }
    }

    /// The calls of a caller with two transactions.
    fn calls(overlap_close: bool) -> Vec<&'static str> {
        let spec = Spec { overlap_close, block: 1, ..Spec::new("tcp", Pattern::Crr) };
        let part = Part {
            role: Role::Active,
            direction: Direction::Send,
            block: 1,
            reply: 1,
            stop: LegStop::Transactions(2),
            leg: 0,
            path: model::PathTimes::default(),
            last: true,
            pace: None,
            drain: None,
            to_receiver: false,
            shares: false,
            spins: false,
            singly: false,
            opening: 0,
        };
        let (mut channel, counters, signals) = (Noted::default(), Counters::default(), Signals::new());
        let (mut tx, mut rx) = (Payload::new(&spec, 1, false, 1), [0; 1]);
        let (mut rtt, mut pace) = (RttRecorder::new(), RttRecorder::new());
        let mut env = Env {
            tx: &mut tx,
            rx: &mut rx,
            marks: &mut Vec::new(),
            rtt: &mut rtt,
            pace: &mut pace,
            counters: &counters,
            signals: &signals,
        };
        let mut caller = machine::<Noted>(&spec, &part);
        while caller.advance(&mut channel, &mut env).unwrap() != Turn::Done {}
        assert_eq!(counters.transactions.load(Ordering::Relaxed), 2);
        channel.calls
    }

    #[test]
    fn a_connection_is_closed_before_the_next_one_opens() {
        let one = ["connect", "request", "close what was before", "response", "end", "close"];
        assert_eq!(calls(false), [one, one].concat());
    }

    #[test]
    fn an_overlapping_connection_is_closed_after_the_next_request() {
        let one = ["connect", "request", "close what was before", "response", "end"];
        assert_eq!(calls(true), [one, one].concat());
    }
}
