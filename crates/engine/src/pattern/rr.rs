//! Request and response over one connection: one end asks and times, the other answers.

use std::io;

use model::{Role, Spec};

use super::farewell::Farewell;
use super::pacer::Pacer;
use super::{Env, Interest, Machine, Part, Pattern, QUANTUM, Turn, not_now, refuse_direction};
use crate::now_ns;
use crate::plan::LegStop;
use crate::runner::{add, clock_cost_ns};
use crate::transport::{Channel, Kind, SIGNAL_BYTES, Signal};

pub(crate) const PATTERN: Pattern =
    Pattern { name: "rr", about: "request and response over one connection", check: refuse_direction };

pub(crate) fn machine<C: Channel>(_: &Spec, part: &Part) -> Box<dyn Machine<C>> {
    let asks = part.initiates();
    match C::KIND {
        Kind::Datagram if asks => Box::new(DatagramAsker::new(part)),
        Kind::Datagram => Box::new(DatagramAnswerer { leg: part.leg, reply: part.reply, pending: None }),
        _ if asks => Box::new(Asker::new(part, part.shares && C::SHOWS_ALL)),
        _ => Box::new(Answerer {
            request: part.block,
            reply: part.reply,
            stop: part.stop,
            last: part.last,
            received: 0,
            sent: 0,
            done: 0,
            waits: part.shares && C::SHOWS_ALL,
        }),
    }
}

/// A single round trip shorter than this many clock reads is not timed alone (2 % of it would be the clock's).
const CLOCK_READS: f64 = 50.0;
/// Round trips over which an asker judges whether to batch. Each is timed alone.
const TRIAL_RUN: u64 = 64;

/// When to read the clock, and what to record.
struct Stopwatch {
    batch: u64,
    in_batch: u64,
    started_ns: u64,
    /// When the trial run began; `None` once it is over.
    trial_ns: Option<u64>,
    begun_ns: u64,
}

impl Stopwatch {
    fn new() -> Self {
        Self { batch: 1, in_batch: 0, started_ns: 0, trial_ns: Some(0), begun_ns: 0 }
    }

    /// Each round trip of a paced asker has a start of its own, so none are timed together.
    fn singly(mut self, singly: bool) -> Self {
        self.trial_ns = self.trial_ns.filter(|_| !singly);
        self
    }

    fn start(&mut self, now_ns: u64) {
        (self.started_ns, self.begun_ns) = (now_ns, now_ns);
        self.trial_ns = self.trial_ns.map(|_| now_ns);
    }

    /// The leg is over. One too short for the trial run, whose round trips were all too short to be timed alone, is one batch.
    fn end(&mut self, env: &mut Env<'_>, now_ns: u64, done: u64) {
        if env.rtt.count() == 0 && done > 0 {
            let mean = (now_ns - self.begun_ns) as f64 / done as f64;
            env.rtt.record_n(mean.round() as u64, done);
            self.batch = done;
        }
    }

    /// A round trip ended, the `done`th.
    #[inline]
    fn lap(&mut self, env: &mut Env<'_>, done: u64) {
        self.in_batch += 1;
        if self.in_batch < self.batch {
            return;
        }
        let now = now_ns();
        let mean = (now - self.started_ns) as f64 / self.in_batch as f64;
        // A round trip of the trial run that is too short to be timed alone is left out; a batch will tell.
        if self.trial_ns.is_none() || mean >= CLOCK_READS * clock_cost_ns() {
            env.rtt.record_n(mean.round() as u64, self.in_batch);
        }
        if let Some(begun) = self.trial_ns
            && done >= TRIAL_RUN
        {
            let mean = (now - begun) as f64 / done as f64;
            self.batch = (CLOCK_READS * clock_cost_ns() / mean.max(0.1)).ceil().clamp(1.0, 1e6) as u64;
            self.trial_ns = None;
        }
        self.started_ns = now;
        self.in_batch = 0;
    }
}

/// Asks over a stream.
struct Asker {
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
    /// A request that has just gone out cannot have been answered: the thread is told of the answer.
    waits: bool,
}

impl Asker {
    fn new(part: &Part, waits: bool) -> Self {
        Self {
            waits,
            request: part.block,
            reply: part.reply,
            stop: part.stop,
            last: part.last,
            sent: 0,
            received: 0,
            done: 0,
            watch: Stopwatch::new().singly(part.pace.is_some()),
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
            if self.last && C::KIND == Kind::Stream {
                channel.finish_sending()?;
            }
        }
        if !self.last || C::KIND == Kind::Alone {
            return Ok(Turn::Done);
        }
        // The other end closes once it has seen everything.
        match channel.recv(env.rx) {
            Ok(0) => Ok(Turn::Done),
            Ok(count) => {
                env.counters.received(count);
                Ok(Turn::Again)
            }
            Err(error) if not_now(&error) => Ok(Turn::Wait(Interest::Read, u64::MAX)),
            Err(error) => Err(error),
        }
    }
}

impl<C: Channel> Machine<C> for Asker {
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
                // A request that could not go out in time has been waiting since it was due.
                if let Some(due) = self.pacer.due_ns() {
                    self.watch.started_ns = due;
                }
            }
            if self.sent < self.request {
                match channel.send(&env.tx[self.sent..self.request]) {
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
                self.watch.lap(env, self.done);
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
    /// After an answer no request can be there: the thread is told of the next one.
    waits: bool,
}

impl Answerer {
    /// Whether all requests of a leg that another one follows are answered; after the last leg the asker closes.
    fn over(&self) -> bool {
        !self.last && matches!(self.stop, LegStop::Transactions(count) if self.done >= count)
    }
}

impl<C: Channel> Machine<C> for Answerer {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            if self.received < self.request {
                if self.over() {
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
                    Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Read, u64::MAX)),
                    Err(error) => return Err(error),
                }
                if self.received < self.request {
                    continue;
                }
            }
            match channel.send(&env.tx[self.sent..self.reply]) {
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
                if self.waits && !self.over() {
                    return Ok(Turn::Wait(Interest::Read, u64::MAX));
                }
            }
        }
        Ok(Turn::Again)
    }
}

/// Bytes of a datagram's number that fit into `room`.
#[inline]
fn put_number(bytes: &mut [u8], number: u64) {
    let width = bytes.len().min(8);
    bytes[..width].copy_from_slice(&number.to_le_bytes()[..width]);
}

/// How long an asker waits for a reply before it counts it as lost: far above any round trip seen, and never under 200 ms.
const REPLY_FLOOR_NS: u64 = 200_000_000;
const FIRST_REPLY_NS: u64 = 1_000_000_000;
/// How long a request waits for a full socket before the stop flag is looked at.
const FULL_NS: u64 = 20_000_000;

/// Asks over datagrams; a reply that does not come is counted and the next request sent.
struct DatagramAsker {
    leg: u32,
    /// The other end learns from the next leg's word that this one is over: the active end says it, and does not for the last.
    implied: bool,
    request: usize,
    reply: usize,
    stop: LegStop,
    number: u64,
    done: u64,
    asked_ns: u64,
    /// When the request was due, or went out if nothing said when.
    due_ns: u64,
    pacer: Pacer,
    waiting: bool,
    /// When the last answer came: without a pace the next request goes out at once, and one look at the clock serves both.
    answered_ns: Option<u64>,
    longest_ns: u64,
    /// Calls in vain between two looks at the clock.
    patient_calls: u32,
    vain_calls: u32,
    farewell: Farewell,
}

/// Calls in vain of a spinning asker between two looks at the clock: some microseconds, beside a patience of 200 ms at least.
const SPINS_PER_LOOK: u32 = 32;

impl DatagramAsker {
    fn new(part: &Part) -> Self {
        Self {
            leg: part.leg,
            implied: part.role == Role::Active && !part.last,
            request: part.block,
            reply: part.reply,
            stop: part.stop,
            number: 0,
            done: 0,
            asked_ns: 0,
            due_ns: 0,
            pacer: Pacer::open_loop(part.pace),
            waiting: false,
            answered_ns: None,
            longest_ns: 0,
            patient_calls: if part.spins { SPINS_PER_LOOK } else { 1 },
            vain_calls: 0,
            farewell: Farewell::default(),
        }
    }

    fn over(&self, env: &Env<'_>) -> bool {
        match self.stop {
            // Lost round trips count towards the end, or a dead path would never end.
            LegStop::Transactions(count) => self.number >= count,
            LegStop::Clock | LegStop::Bytes(_) => env.signals.stopping(),
        }
    }

    fn patience_ns(&self) -> u64 {
        if self.longest_ns == 0 { FIRST_REPLY_NS } else { (self.longest_ns * 4).max(REPLY_FLOOR_NS) }
    }

    /// Whether `bytes` answers the request that is out: an older answer that comes late does not.
    fn answers(&self, bytes: &[u8]) -> bool {
        let width = self.request.min(self.reply).min(8);
        bytes.len() == self.reply && bytes[..width] == self.number.to_le_bytes()[..width]
    }

    fn finish<C: Channel>(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        if !self.farewell.begun() {
            env.counters.stop_sending(now_ns());
            env.counters.arrived(now_ns());
        }
        if self.implied { Ok(Turn::Done) } else { self.farewell.turn(channel, env, self.number, self.leg) }
    }
}

impl<C: Channel> Machine<C> for DatagramAsker {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            if !self.waiting {
                if self.farewell.begun() || self.over(env) {
                    return self.finish(channel, env);
                }
                if let Some(until) = self.pacer.hold(env.pace) {
                    return Ok(Turn::Sleep(until));
                }
                put_number(&mut env.tx[..self.request], self.number);
                let due = self.pacer.due_ns();
                self.asked_ns = self.answered_ns.take().filter(|_| due.is_none()).unwrap_or_else(now_ns);
                self.due_ns = due.unwrap_or(self.asked_ns);
                if self.number == 0 {
                    env.counters.start_sending(self.asked_ns);
                }
                match channel.send(&env.tx[..self.request]) {
                    Ok(count) => env.counters.sent(count),
                    Err(error) if not_now(&error) => {
                        return Ok(Turn::Wait(Interest::Write, self.asked_ns + FULL_NS));
                    }
                    Err(error) => return Err(error),
                }
                add(&env.counters.blocks_sent, 1);
                add(&env.counters.datagrams_sent, 1);
                self.pacer.sent(1.0);
                self.waiting = true;
            }
            match channel.recv(env.rx) {
                Ok(count) if self.answers(&env.rx[..count]) => {
                    let now = now_ns();
                    let elapsed = now - self.asked_ns;
                    env.rtt.record(now - self.due_ns);
                    if self.done == 0 {
                        env.counters.arrived(now);
                    }
                    self.longest_ns = self.longest_ns.max(elapsed);
                    env.counters.received(count);
                    add(&env.counters.datagrams_received, 1);
                    add(&env.counters.transactions, 1);
                    self.done += 1;
                    self.number += 1;
                    self.waiting = false;
                    self.answered_ns = Some(now);
                }
                // A late answer, or the other end repeating that the leg is open or asking for it.
                Ok(count) => {
                    if let Some(signal @ Signal::Leg(_)) = Signal::decode(&env.rx[..count])
                        && let Some(turn) = answer_signal(channel, signal, self.leg)
                    {
                        return Ok(turn);
                    }
                }
                Err(error) if not_now(&error) => {
                    let limit = self.asked_ns + self.patience_ns();
                    self.vain_calls += 1;
                    if !self.vain_calls.is_multiple_of(self.patient_calls) || now_ns() < limit {
                        return Ok(Turn::Wait(Interest::Read, limit));
                    }
                    add(&env.counters.replies_lost, 1);
                    self.number += 1;
                    self.waiting = false;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::Again)
    }
}

/// Answers datagrams until told that it is over.
struct DatagramAnswerer {
    leg: u32,
    reply: usize,
    /// Length of an answer that the socket did not take yet.
    pending: Option<usize>,
}

impl<C: Channel> Machine<C> for DatagramAnswerer {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            if self.pending.is_none() {
                let count = match channel.recv(env.rx) {
                    Ok(count) => count,
                    Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Read, u64::MAX)),
                    Err(error) => return Err(error),
                };
                if count == SIGNAL_BYTES
                    && let Some(signal) = Signal::decode(&env.rx[..count])
                {
                    match answer_signal(channel, signal, self.leg) {
                        Some(turn) => return Ok(turn),
                        None => continue,
                    }
                }
                env.counters.received(count);
                add(&env.counters.datagrams_received, 1);
                let width = count.min(self.reply).min(8);
                env.tx[..width].copy_from_slice(&env.rx[..width]);
                self.pending = Some(self.reply);
            }
            match channel.send(&env.tx[..self.reply]) {
                Ok(count) => {
                    env.counters.sent(count);
                    add(&env.counters.datagrams_sent, 1);
                    add(&env.counters.blocks_sent, 1);
                    self.pending = None;
                }
                Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Write, u64::MAX)),
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::Again)
    }
}

/// What an end that has said Finish makes of `bytes`.
pub(super) fn hear_at_the_end<C: Channel>(channel: &mut C, bytes: &[u8], leg: u32) -> Turn {
    match Signal::decode(bytes) {
        Some(Signal::Finished) => Turn::Done,
        Some(signal @ Signal::Leg(_)) => answer_signal(channel, signal, leg).unwrap_or(Turn::Again),
        _ => Turn::Again,
    }
}

/// What a datagram end does with a signal between the payload of leg number `leg`; `Some` ends the leg.
pub(super) fn answer_signal<C: Channel>(channel: &mut C, signal: Signal, leg: u32) -> Option<Turn> {
    match signal {
        Signal::Finish(_) => {
            // Three copies, for nobody is left to repeat it once this end has gone.
            for _ in 0..3 {
                let _ = channel.send(&Signal::Finished.encode());
            }
            Some(Turn::Done)
        }
        Signal::Leg(header) if header.leg > leg => Some(Turn::Next(header)),
        // The other end repeats itself: it has not heard that this leg is open.
        Signal::Leg(header) if header.leg == leg => {
            let _ = channel.send(&Signal::LegOpen(leg).encode());
            None
        }
        Signal::Proof(..) => {
            let _ = channel.send(&Signal::Ready.encode());
            None
        }
        _ => None,
    }
}
