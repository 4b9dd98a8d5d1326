//! A block to the far end and one back: the round trip at every size. With `both`, both ends send at the same time.

use std::io;

use model::{Direction, Spec};
use text::say;

use super::machine::{Env, Machine, Part, QUANTUM, await_close};
use super::refusals::{needs_streams, refuse_direction, refuse_rate};
use super::rr;
use crate::core::{EngineError, Interest, LegStop, Turn, add, not_now, now_ns};
use crate::transport::{Capabilities, Channel, Kind};

pub(super) fn check(spec: &Spec, capabilities: &Capabilities) -> Result<(), EngineError> {
    refuse_rate(spec)?;
    refuse_direction(spec, capabilities)?;
    if spec.direction == Direction::Both {
        needs_streams(spec, capabilities, &say!("`--both` round trips"))
    } else {
        Ok(())
    }
}

pub(crate) fn machine<C: Channel>(spec: &Spec, part: &Part) -> Box<dyn Machine<C>> {
    if part.direction == Direction::Both && C::KIND == Kind::Stream {
        Box::new(Crossing::new(part))
    } else {
        rr::machine(spec, part)
    }
}

/// One end of an exchange in which both ends send a block and receive one at the same time (NetPIPE's -2).
struct Crossing {
    block: usize,
    stop: LegStop,
    last: bool,
    measures: bool,
    sent: usize,
    /// Where the block begins in the payload.
    from: usize,
    received: usize,
    done: u64,
    started_ns: u64,
    closing: bool,
    /// Exchanges at the start that are not timed.
    opening: u64,
}

impl Crossing {
    fn new(part: &Part) -> Self {
        Self {
            block: part.block,
            stop: part.stop,
            last: part.last,
            measures: part.initiates(),
            sent: 0,
            from: 0,
            received: 0,
            done: 0,
            started_ns: 0,
            closing: false,
            opening: part.opening,
        }
    }

    fn over(&self, env: &Env<'_>) -> bool {
        match self.stop {
            LegStop::Transactions(count) => self.done >= count,
            // Only one end may stop the exchange, or the other waits for a block that never comes.
            LegStop::Clock | LegStop::Bytes(_) => self.measures && env.signals.stopping(),
        }
    }

    fn close<C: Channel>(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        if !self.last || channel.is_to_program() {
            return Ok(Turn::Done);
        }
        if !self.closing {
            self.closing = true;
            channel.finish_sending()?;
        }
        await_close(channel, env)
    }
}

impl<C: Channel> Machine<C> for Crossing {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            if self.sent == 0 && self.received == 0 {
                if self.closing || self.over(env) {
                    return self.close(channel, env);
                }
                if self.started_ns == 0 {
                    self.started_ns = now_ns();
                    env.counters.start_sending(self.started_ns);
                }
            }
            if self.sent == 0 {
                self.from = env.tx.next(self.block);
            }
            let (mut full, mut empty) = (self.sent == self.block, self.received == self.block);
            if !full {
                match channel.send(&env.tx[self.from + self.sent..self.from + self.block]) {
                    Ok(count) => {
                        self.sent += count;
                        env.counters.sent(count);
                    }
                    Err(error) if not_now(&error) => full = true,
                    Err(error) => return Err(error),
                }
            }
            if !empty {
                match channel.recv(&mut env.rx[self.received..self.block]) {
                    // The other end stopped between two exchanges; what was sent of the next one is in the ledger.
                    Ok(0) if self.received == 0 => {
                        self.closing = true;
                        channel.finish_sending()?;
                        return Ok(Turn::Done);
                    }
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => {
                        self.received += count;
                        env.counters.received(count);
                    }
                    Err(error) if not_now(&error) => empty = true,
                    Err(error) => return Err(error),
                }
            }
            if self.sent == self.block && self.received == self.block {
                let now = now_ns();
                if self.measures && self.done >= self.opening {
                    env.rtt.record(now - self.started_ns);
                }
                add(&env.counters.transactions, 1);
                add(&env.counters.blocks_sent, 1);
                env.counters.stop_sending(now);
                env.counters.arrived(now);
                (self.sent, self.received, self.started_ns) = (0, 0, now);
                self.done += 1;
            } else if full && empty {
                let interest = if self.sent < self.block { Interest::Both } else { Interest::Read };
                return Ok(Turn::Wait(if self.received == self.block { Interest::Write } else { interest }, u64::MAX));
            }
        }
        Ok(Turn::Again)
    }
}
