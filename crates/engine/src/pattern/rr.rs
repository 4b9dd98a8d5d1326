//! Request and response over one connection: one end requests and times, the other answers. Over a stream both ends
//! send from the buffer that they receive into, as NetPIPE and typical servers do. Two buffers of some MiB at each end
//! would exceed a processor's cache where one fits, and the time would be that of the memory.

mod arrivals;
mod datagrams;
mod flight;
mod open_loop;
mod probe;
mod stopwatch;
mod unanswered;

use std::io;

use model::Spec;

use self::arrivals::Arrivals;
use self::datagrams::{DatagramAnswerer, DatagramRequester};
use self::open_loop::OpenLoop;
use self::probe::Prober;
use self::stopwatch::Stopwatch;
use super::machine::{Env, Machine, Part, QUANTUM, STOP_CHECK_NS, await_close};
use super::pacer::Pacer;
use crate::core::{Interest, LegStop, Turn, add, not_now, now_ns};
use crate::transport::{Channel, Kind};

pub(crate) fn machine<C: Channel>(spec: &Spec, part: &Part) -> Box<dyn Machine<C>> {
    let requests = part.initiates();
    if requests && let Some(prober) = Prober::new(spec, part) {
        return Box::new(prober);
    }
    // Another program's replies carry no number, and time stamps are for one exchange at a time.
    let open = C::KIND == Kind::Datagram && requests && spec.speak.is_none() && !spec.anatomy;
    if open && let Some(open_loop) = OpenLoop::new(part) {
        return Box::new(open_loop);
    }
    match C::KIND {
        Kind::Datagram if requests => Box::new(DatagramRequester::new(part)),
        Kind::Datagram => Box::new(DatagramAnswerer::new(part, Arrivals::of(part, spec.outstanding.is_some()))),
        _ if requests => Box::new(Requester::new(part, part.shares && C::SHOWS_ALL)),
        _ => Box::new(Answerer {
            request: part.block,
            reply: part.reply,
            stop: part.stop,
            last: part.last,
            received: 0,
            sent: 0,
            done: 0,
            waits: part.shares && C::SHOWS_ALL,
            arrivals: Arrivals::of(part, spec.outstanding.is_some()),
        }),
    }
}

/// Requests over a stream.
struct Requester {
    request: usize,
    reply: usize,
    stop: LegStop,
    last: bool,
    sent: usize,
    received: usize,
    done: u64,
    watch: Stopwatch,
    pacer: Pacer,
    closing: bool,
    /// A request just sent cannot have been answered yet: the thread is woken for the answer.
    waits: bool,
    /// Where the request begins in the payload, if requests differ; else a request is what was received before.
    from: Option<usize>,
}

impl Requester {
    fn new(part: &Part, waits: bool) -> Self {
        Self {
            waits,
            from: None,
            request: part.block,
            reply: part.reply,
            stop: part.stop,
            last: part.last,
            sent: 0,
            received: 0,
            done: 0,
            watch: Stopwatch::new(part.opening).singly(part.singly),
            pacer: Pacer::open_loop(part.pace),
            closing: false,
        }
    }

    #[inline]
    fn over(&self, env: &Env<'_>) -> bool {
        match self.stop {
            LegStop::Transactions(count) => self.done >= count,
            LegStop::Clock | LegStop::Bytes(_) => env.signals.stopping(),
        }
    }

    fn close<C: Channel>(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        if !self.closing {
            self.closing = true;
            let now = now_ns();
            env.counters.stop_sending(now);
            env.counters.arrived(now);
            self.watch.end(env, now, self.done);
            if self.last && C::KIND == Kind::Stream && !channel.is_to_program() {
                channel.finish_sending()?;
            }
        }
        if !self.last || C::KIND == Kind::Alone || channel.is_to_program() {
            return Ok(Turn::Done);
        }
        await_close(channel, env)
    }
}

impl<C: Channel> Machine<C> for Requester {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            if self.sent == 0 && !channel.owes() {
                if self.closing || self.over(env) {
                    return self.close(channel, env);
                }
                if let Some(until) = self.pacer.hold(env.pace) {
                    return Ok(Turn::Sleep(until));
                }
                if self.watch.started_ns == 0 {
                    self.watch.start(now_ns());
                    env.counters.start_sending(self.watch.started_ns);
                }
                self.from = env.tx.varies().then(|| env.tx.next(self.request));
                // A request that could not be sent in time has been waiting since it was due.
                if let Some(due) = self.pacer.due_ns() {
                    self.watch.started_ns = due;
                }
            }
            if self.sent < self.request {
                let request = match self.from {
                    Some(from) => &env.tx[from..from + self.request],
                    None => &env.rx[..self.request],
                };
                match channel.send(&request[self.sent..]) {
                    Ok(count) => {
                        self.sent += count;
                        env.counters.sent(count);
                    }
                    Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Write, u64::MAX)),
                    Err(error) => return Err(error),
                }
                if self.sent < self.request {
                    continue;
                }
                self.pacer.sent(1.0);
                if self.waits {
                    return Ok(Turn::Wait(Interest::Read, u64::MAX));
                }
            }
            match channel.recv(&mut env.rx[self.received..self.reply]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.received += count;
                    env.counters.received(count);
                }
                Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Read, u64::MAX)),
                Err(error) => return Err(error),
            }
            if self.received == self.reply {
                self.done += 1;
                if self.done == 1 {
                    env.counters.arrived(now_ns());
                }
                self.watch.lap(env, self.done, !channel.is_disturbed());
                channel.exchange(self.done);
                add(&env.counters.transactions, 1);
                add(&env.counters.blocks_sent, 1);
                (self.sent, self.received) = (0, 0);
            }
        }
        Ok(Turn::Again)
    }

    fn batch(&self) -> u64 {
        self.watch.batch
    }
}

/// Answers over a stream.
struct Answerer {
    request: usize,
    reply: usize,
    stop: LegStop,
    last: bool,
    received: usize,
    sent: usize,
    done: u64,
    /// No request can be there right after an answer: the thread is woken for the next one.
    waits: bool,
    arrivals: Arrivals,
}

impl Answerer {
    /// Whether all requests of a leg are answered and another leg follows; after the last leg the requesting end
    /// closes, unless it is another program, whose connection may go on.
    fn over(&self, to_program: bool) -> bool {
        (!self.last || to_program) && matches!(self.stop, LegStop::Transactions(count) if self.done >= count)
    }
}

impl<C: Channel> Machine<C> for Answerer {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            if self.received < self.request {
                if self.over(channel.is_to_program()) {
                    return Ok(Turn::Done);
                }
                match channel.recv(&mut env.rx[self.received..self.request]) {
                    Ok(0) if self.received == 0 => {
                        channel.finish_sending()?;
                        return Ok(Turn::Done);
                    }
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => {
                        self.received += count;
                        env.counters.received(count);
                    }
                    Err(error) if not_now(&error) && channel.is_to_program() => {
                        if env.signals.stopping() {
                            return Ok(Turn::Done);
                        }
                        return Ok(Turn::Wait(Interest::Read, now_ns() + STOP_CHECK_NS));
                    }
                    Err(error) if not_now(&error) => return Ok(self.arrivals.wait(now_ns)),
                    Err(error) => return Err(error),
                }
                if self.received < self.request {
                    continue;
                }
                self.arrivals.came(now_ns, env.rx);
            }
            match channel.send(&env.rx[self.sent..self.reply]) {
                Ok(count) => {
                    self.sent += count;
                    env.counters.sent(count);
                }
                Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Write, u64::MAX)),
                Err(error) => return Err(error),
            }
            if self.sent == self.reply {
                add(&env.counters.blocks_sent, 1);
                self.done += 1;
                (self.sent, self.received) = (0, 0);
                channel.exchange(self.done);
                if self.waits && !self.over(channel.is_to_program()) {
                    return Ok(self.arrivals.wait(now_ns));
                }
            }
        }
        Ok(Turn::Again)
    }
}
