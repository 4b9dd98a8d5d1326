//! Blocks in one direction, as fast as the path or the requested rate allows.

use std::io;

use model::{Role, Spec};
use text::say;

use super::datagrams::{DatagramReceiver, DatagramSender};
use super::machine::{DRAIN_READ, Env, Machine, Part, QUANTUM, SHARE_BYTES, STOP_CHECK_NS, UNCLOCKED_READS};
use super::pacer::Pacer;
use super::refusals::refuse_direction;
use crate::core::{Counters, EngineError, Interest, LegStop, Turn, add, not_now, now_ns};
use crate::transport::{Capabilities, Channel, Kind};

pub(super) fn check(spec: &Spec, capabilities: &Capabilities) -> Result<(), EngineError> {
    if spec.no_loss && !capabilities.datagram {
        return Err(EngineError::unsupported(
            say!("a search for loss on {}", spec.transport),
            say!("it loses nothing; use `--udp`"),
        ));
    }
    if spec.block < capabilities.min_stream_block {
        return Err(EngineError::unsupported(
            say!("a stream of {}-byte blocks on {}", spec.block, spec.transport),
            say!("its datagrams carry a number of 8 bytes; use `--block {}` or more", capabilities.min_stream_block),
        ));
    }
    refuse_direction(spec, capabilities)
}

pub(crate) fn machine<C: Channel>(spec: &Spec, part: &Part) -> Box<dyn Machine<C>> {
    let sends = part.initiates();
    match C::KIND {
        Kind::Datagram if sends => Box::new(DatagramSender::new(spec, part)),
        Kind::Datagram => Box::new(DatagramReceiver::new(spec, part)),
        _ if sends => Box::new(Sender::new(part, part.shares && C::SHOWS_ALL)),
        _ => Box::new(Receiver {
            block: part.block,
            room: if part.drain.is_some() { DRAIN_READ } else { part.block },
            stop: part.stop,
            last: part.last,
            empties: part.role == Role::Passive,
            received: 0,
            unclocked: 0,
            shares: part.shares && C::SHOWS_ALL,
            pacer: Pacer::new(part.drain),
            drains: part.drain.is_some(),
            paced: part.pace.is_some(),
        }),
    }
}

/// Sends over a stream.
struct Sender {
    block: usize,
    stop: LegStop,
    last: bool,
    left: Option<u64>,
    offset: usize,
    /// Where the block begins in the payload; `None` until it is begun.
    from: Option<usize>,
    started: bool,
    closing: bool,
    pacer: Pacer,
    /// Other flows of its thread want to send too.
    shares: bool,
}

impl Sender {
    fn new(part: &Part, shares: bool) -> Self {
        let left = match part.stop {
            LegStop::Bytes(bytes) => Some(bytes),
            LegStop::Transactions(count) => Some(count * part.block as u64),
            LegStop::Clock => None,
        };
        Self {
            block: part.block,
            stop: part.stop,
            last: part.last,
            left,
            offset: 0,
            from: None,
            started: false,
            closing: false,
            pacer: Pacer::new(part.pace),
            shares,
        }
    }

    #[inline]
    fn over(&self, to_program: bool, env: &Env<'_>) -> bool {
        match self.stop {
            LegStop::Clock => env.signals.stopping(),
            // Another program's client may end before a count is met.
            _ => self.left == Some(0) || (to_program && env.signals.stopping()),
        }
    }

    /// Half-closes and waits until the receiver has taken everything and closes too: the drain.
    fn close<C: Channel>(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        if !self.closing {
            self.closing = true;
            env.counters.stop_sending(now_ns());
            if self.last && C::KIND == Kind::Stream && !channel.is_to_program() {
                channel.finish_sending()?;
            }
        }
        if !self.last || C::KIND == Kind::Alone || channel.is_to_program() {
            return Ok(Turn::Done);
        }
        match channel.recv(env.rx) {
            Ok(0) => Ok(Turn::Done),
            Ok(_) => Ok(Turn::Again),
            Err(error) if not_now(&error) => Ok(Turn::Wait(Interest::Read, u64::MAX)),
            Err(error) => Err(error),
        }
    }
}

impl<C: Channel> Machine<C> for Sender {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        let mut moved = 0;
        for _ in 0..QUANTUM {
            if self.closing || (self.over(channel.is_to_program(), env) && !channel.owes()) {
                return self.close(channel, env);
            }
            if !self.started {
                self.started = true;
                env.counters.start_sending(now_ns());
            }
            if self.offset == 0 && !channel.owes() {
                if let Some(until) = self.pacer.hold(env.pace) {
                    return Ok(Turn::Sleep(until));
                }
                self.pacer.begin(env.counters);
            }
            let room = self.block - self.offset;
            let want = self.left.map_or(room, |left| room.min(usize::try_from(left).unwrap_or(usize::MAX)));
            let from = *self.from.get_or_insert_with(|| env.tx.next(self.block));
            match channel.send_part(&env.tx[from..from + self.block], self.offset..self.offset + want) {
                Ok(count) => {
                    env.counters.sent(count);
                    self.offset += count;
                    self.left = self.left.map(|left| left - count as u64);
                    if self.offset == self.block {
                        (self.offset, self.from) = (0, None);
                        add(&env.counters.blocks_sent, 1);
                        self.pacer.sent(1.0);
                    }
                    moved += count;
                    if self.shares && count < want {
                        return Ok(Turn::Wait(Interest::Write, look_up(channel)));
                    }
                    if self.shares && moved >= SHARE_BYTES {
                        return Ok(Turn::Again);
                    }
                }
                Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Write, look_up(channel))),
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::Again)
    }
}

/// Until when to wait for a socket at most: another program may neither read nor send any more, and its driver learns
/// the end elsewhere.
fn look_up<C: Channel>(channel: &C) -> u64 {
    if channel.is_to_program() { now_ns() + STOP_CHECK_NS } else { u64::MAX }
}

/// Receives over a stream.
struct Receiver {
    block: usize,
    /// Bytes that one read takes at most.
    room: usize,
    stop: LegStop,
    last: bool,
    /// From another program: the sender had stopped before this end was stopped, so that what has arrived is taken
    /// first.
    empties: bool,
    received: u64,
    unclocked: u32,
    /// Other flows of its thread want to receive too.
    shares: bool,
    /// When to read, if a rate is requested.
    pacer: Pacer,
    drains: bool,
    /// The sender keeps to a rate: each arrival is timed, and its blocks are followed.
    paced: bool,
}

/// Reads at least this long are timed individually; a clock read is then well under 1 % of them.
const CLOCKED_READ: usize = 4096;

impl Receiver {
    /// A call brought `count` bytes, already counted: reads the clock, unless the call was short and the clock was
    /// read recently.
    #[inline]
    fn clock(&mut self, count: usize, counters: &Counters) {
        let before = self.received;
        self.received += count as u64;
        self.unclocked += 1;
        if count >= CLOCKED_READ || self.unclocked >= UNCLOCKED_READS || before == 0 || self.paced {
            let now = now_ns();
            if self.paced {
                // The last block that began with these bytes, if one did.
                let of_block = (self.received - 1) % self.block as u64 + 1;
                if of_block <= count as u64 {
                    counters.beat(now, of_block);
                }
            }
            counters.arrived(now);
            self.unclocked = 0;
        }
    }

    /// Reads the clock for reads that were not timed individually.
    fn settle(&mut self, counters: &Counters) {
        if self.unclocked > 0 {
            counters.arrived(now_ns());
            self.unclocked = 0;
        }
    }

    /// Bytes of this leg still to come, if known.
    fn left(&self) -> Option<u64> {
        match self.stop {
            LegStop::Bytes(bytes) => Some(bytes - self.received.min(bytes)),
            LegStop::Transactions(count) => Some((count * self.block as u64).saturating_sub(self.received)),
            LegStop::Clock => None,
        }
    }

    /// Whether a leg from another program is over for this end.
    fn has_enough(&self, env: &Env<'_>) -> bool {
        self.left() == Some(0) || (self.stop == LegStop::Clock && env.signals.stopping() && !self.empties)
    }
}

impl<C: Channel> Machine<C> for Receiver {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        let mut moved = 0;
        for _ in 0..QUANTUM {
            let left = self.left();
            if (left == Some(0) && !self.last) || (channel.is_to_program() && self.has_enough(env)) {
                self.settle(env.counters);
                return Ok(Turn::Done);
            }
            if self.drains
                && let Some(until) = self.pacer.hold_reads()
            {
                return Ok(Turn::Sleep(until));
            }
            // In the last leg an excess byte must be noticed, so the read is not limited to the rest.
            let room = channel.read_room(self.room);
            let room = match left {
                Some(left) if !self.last => room.min(usize::try_from(left).unwrap_or(usize::MAX)),
                _ => room,
            };
            match channel.recv_payload(&mut env.rx[..room]) {
                Ok(0) => {
                    self.settle(env.counters);
                    if !channel.is_to_program() {
                        // Tells the sender that everything was taken.
                        channel.finish_sending()?;
                    }
                    return Ok(Turn::Done);
                }
                Ok(count) => {
                    env.counters.received(count);
                    self.clock(count, env.counters);
                    self.pacer.sent(count as f64 / DRAIN_READ as f64);
                    moved += count;
                    // A leg that ends with these bytes ends in the next step.
                    if self.shares && self.left() != Some(0) {
                        if count < room {
                            return Ok(Turn::Wait(Interest::Read, look_up(channel)));
                        }
                        if moved >= SHARE_BYTES {
                            return Ok(Turn::Again);
                        }
                    }
                }
                Err(error) if not_now(&error) && channel.is_to_program() => {
                    if env.signals.stopping() {
                        return Ok(Turn::Done);
                    }
                    return Ok(Turn::Wait(Interest::Read, now_ns() + STOP_CHECK_NS));
                }
                Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Read, u64::MAX)),
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::Again)
    }
}
