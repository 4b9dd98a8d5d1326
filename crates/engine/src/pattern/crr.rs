//! Connect, request, response, close: a new connection for each transaction.

use std::io;

use model::{Direction, Spec, Strategy};

use super::{Env, Interest, Machine, Part, Pattern, QUANTUM, Turn, not_now, refuse_rate};
use crate::EngineError;
use crate::now_ns;
use crate::plan::LegStop;
use crate::runner::add;
use crate::transport::Channel;

pub(crate) const PATTERN: Pattern = Pattern {
    name: "crr",
    about: "connect, request, response, close: one connection for each transaction",
    check: |spec, capabilities| {
        refuse_rate(spec)?;
        if !capabilities.reconnects {
            return Err(EngineError::unsupported(format!("--connect on {}", spec.transport), "use --transport tcp"));
        }
        if spec.direction != Direction::Send {
            return Err(EngineError::unsupported("--connect in another direction", "run it from the other host"));
        }
        if matches!(spec.strategy, Strategy::Epoll | Strategy::Uring) {
            return Err(EngineError::unsupported(
                "--connect with --wait",
                "its sockets live for one transaction each: leave --wait out, or use --spin",
            ));
        }
        if spec.strategy != Strategy::Spin && spec.threads.is_some_and(|threads| threads < spec.flows) {
            return Err(EngineError::unsupported(
                "--connect with several flows to a thread",
                "give each flow a thread (leave --threads out), or use --spin",
            ));
        }
        Ok(())
    },
};

pub(crate) fn machine<C: Channel>(_: &Spec, part: &Part) -> Box<dyn Machine<C>> {
    if part.initiates() {
        Box::new(Caller::new(part))
    } else {
        Box::new(Callee { request: part.block, reply: part.reply, step: Step::Open, at: 0, stop: part.stop, done: 0 })
    }
}

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Open,
    /// The connection is on its way.
    Connect,
    Request,
    Reply,
    Close,
    /// The caller's last connection, which asks nothing.
    Farewell,
}

/// Opens, asks and times; the other end closes first, so that the ports in TIME_WAIT pile up there and not here.
struct Caller {
    request: usize,
    reply: usize,
    stop: LegStop,
    step: Step,
    at: usize,
    started_ns: u64,
    done: u64,
    /// The connection that is on its way asks nothing: it tells the other end that it was the last.
    last: bool,
}

impl Caller {
    fn new(part: &Part) -> Self {
        Self {
            request: part.block,
            reply: part.reply,
            stop: part.stop,
            step: Step::Open,
            at: 0,
            started_ns: 0,
            done: 0,
            last: false,
        }
    }

    fn over(&self, env: &Env<'_>) -> bool {
        match self.stop {
            LegStop::Transactions(count) => self.done >= count,
            LegStop::Clock | LegStop::Bytes(_) => env.signals.stopping(),
        }
    }
}

impl<C: Channel> Machine<C> for Caller {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            let result = match self.step {
                Step::Open => {
                    self.last = self.over(env);
                    self.started_ns = now_ns();
                    if self.last {
                        env.counters.stop_sending(self.started_ns);
                        env.counters.arrived(self.started_ns);
                        if channel.is_foreign() {
                            // Its other end knows no connection that asks nothing.
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
                Step::Close | Step::Farewell => channel.recv(&mut env.rx[..1]),
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
                    self.step = Step::Farewell;
                }
                Step::Connect => (self.step, self.at) = (Step::Request, 0),
                Step::Request => {
                    env.counters.sent(count);
                    if self.at == self.request {
                        // While the other end answers: before the request, it would find none when it has accepted, and fall asleep.
                        channel.let_go();
                        (self.step, self.at) = (Step::Reply, 0);
                    }
                }
                Step::Reply if count == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Step::Reply => {
                    env.counters.received(count);
                    if self.at == self.reply {
                        self.step = Step::Close;
                    }
                }
                Step::Farewell => return Ok(Turn::Done),
                Step::Open | Step::Close => {
                    let now = now_ns();
                    env.rtt.record(now - self.started_ns);
                    if self.done == 0 {
                        env.counters.arrived(now);
                    }
                    add(&env.counters.transactions, 1);
                    add(&env.counters.blocks_sent, 1);
                    self.done += 1;
                    self.step = Step::Open;
                }
            }
        }
        Ok(Turn::Again)
    }
}

/// Accepts, answers, closes.
struct Callee {
    request: usize,
    reply: usize,
    step: Step,
    at: usize,
    /// From another program, which says no farewell: when this end has enough.
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
            if channel.is_foreign() && self.has_enough() {
                return Ok(Turn::Done);
            }
            let result = match self.step {
                Step::Open | Step::Connect => channel.renew().map(|()| 0),
                Step::Request => channel.recv(&mut env.rx[self.at..self.request]),
                Step::Reply => channel.send(&env.tx[self.at..self.reply]),
                Step::Close => channel.hang_up().map(|()| 0),
                Step::Farewell => channel.finish_sending().map(|()| 0),
            };
            let count = match result {
                Ok(count) => count,
                Err(error) if not_now(&error) && channel.is_foreign() && env.signals.stopping() => {
                    return Ok(Turn::Done);
                }
                // Only an accept may take long; its time-out is how this end gets to see that the trial was ended.
                Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Both, u64::MAX)),
                Err(error) => return Err(error),
            };
            self.at += count;
            match self.step {
                Step::Open | Step::Connect => (self.step, self.at) = (Step::Request, 0),
                Step::Request if count == 0 && self.at == 0 => self.step = Step::Farewell,
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
                Step::Farewell => return Ok(Turn::Done),
            }
        }
        Ok(Turn::Again)
    }
}
