//! The probe beside a load: small requests, several of which may be outstanding.

use std::io;

use model::Spec;

use super::super::close_handshake::{CloseHandshake, answer_signal};
use super::super::machine::{Env, Machine, Part, QUANTUM, await_close};
use super::arrivals::{AWAKE_GAP_NS, SHORT};
use super::datagrams::{REPLY_FLOOR_NS, first_patience_ns, put_number};
use super::flight::Flight;
use crate::core::{Interest, LegStop, Turn, add, not_now, now_ns};
use crate::transport::{Channel, Kind, Signal};

/// How long a waiting probe may take to see the stop flag.
const STOP_CHECK_NS: u64 = 100_000_000;
/// Around the time of the shortest round trip a probe stays awake, so that its own wake-up does not add to a short
/// one: this long before and after it. Only if that is a small part of the gap between requests, and a wake-up would
/// be a large part of the round trip.
const EARLY_NS: u64 = 200_000;
const LINGER_NS: u64 = 500_000;
const AWAKE_RTT_NS: u64 = 2_000_000;

/// Sends requests at a rate, whether or not replies have arrived.
pub(super) struct Prober {
    leg: u32,
    request: usize,
    reply: usize,
    stop: LegStop,
    last: bool,
    flight: Flight,
    /// Bytes of a partly sent request and of a partly received reply.
    request_sent: usize,
    reply_received: usize,
    begun: bool,
    closing: bool,
    close_handshake: CloseHandshake,
    first_patience_ns: u64,
    awake: bool,
}

impl Prober {
    /// `None` if one request at a time is outstanding.
    pub(super) fn new(spec: &Spec, part: &Part) -> Option<Self> {
        let (pace, most) = (part.pace?, spec.outstanding? as usize);
        // A thread that blocks in a call cannot send requests during it.
        let most = if part.shares || part.spins { most.max(1) } else { 1 };
        Some(Self {
            leg: part.leg,
            request: part.block,
            reply: part.reply,
            stop: part.stop,
            last: part.last,
            flight: Flight::new(pace.gap_ns, most),
            request_sent: 0,
            reply_received: 0,
            begun: false,
            closing: false,
            close_handshake: CloseHandshake::new(part.path.patience_ns),
            first_patience_ns: first_patience_ns(part),
            awake: pace.gap_ns as u64 >= AWAKE_GAP_NS,
        })
    }

    fn over(&self, env: &Env<'_>) -> bool {
        match self.stop {
            LegStop::Transactions(count) => self.flight.requested() >= count,
            LegStop::Clock | LegStop::Bytes(_) => env.signals.stopping(),
        }
    }

    fn close<C: Channel>(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        if !self.closing {
            self.closing = true;
            let now = now_ns();
            env.counters.stop_sending(now);
            env.counters.arrived(now);
            if self.last && C::KIND == Kind::Stream {
                channel.finish_sending()?;
            }
        }
        match C::KIND {
            Kind::Datagram => self.close_handshake.turn(channel, env, self.flight.requested(), self.leg),
            Kind::Stream if self.last => await_close(channel, env),
            _ => Ok(Turn::Done),
        }
    }

    /// Sends a request or the rest of one; returns what to wait for if it cannot be sent.
    fn send_request<C: Channel>(&mut self, channel: &mut C, env: &mut Env<'_>, now: u64) -> io::Result<Option<Turn>> {
        if self.request_sent == 0 {
            let short = if self.awake && self.flight.shortest_ns() <= AWAKE_RTT_NS { SHORT } else { 0 };
            put_number(&mut env.tx[..self.request], self.flight.requested() | short);
        }
        match channel.send(&env.tx[self.request_sent..self.request]) {
            Ok(count) => {
                env.counters.sent(count);
                self.request_sent += count;
            }
            Err(error) if not_now(&error) => return Ok(Some(Turn::Wait(Interest::Write, now + STOP_CHECK_NS))),
            Err(error) => return Err(error),
        }
        if self.request_sent == self.request {
            self.request_sent = 0;
            self.flight.sent(now);
            add(&env.counters.blocks_sent, 1);
            if C::KIND == Kind::Datagram {
                add(&env.counters.datagrams_sent, 1);
            }
        }
        Ok(None)
    }

    /// How much to receive into a buffer: not more than what was requested, so that nothing beyond it is taken.
    fn room(&self, kind: Kind, buffer: usize) -> usize {
        match kind {
            Kind::Datagram => buffer,
            // The buffer holds one large reply, not as many as may be outstanding.
            _ => (self.flight.outstanding() * self.reply - self.reply_received).min(buffer),
        }
    }

    /// Handles what a call received.
    fn take_replies<C: Channel>(&mut self, channel: &mut C, env: &mut Env<'_>, count: usize) -> Option<Turn> {
        let now = now_ns();
        let done = if C::KIND == Kind::Datagram {
            let own = count == self.reply && count >= 8;
            let number = env.rx.first_chunk::<8>().filter(|_| own).map(|bytes| u64::from_le_bytes(*bytes) & !SHORT);
            if !number.is_some_and(|number| self.flight.answered(number, now, env.rtt)) {
                // A late reply, or the other end repeating that the leg is open.
                let signal = Signal::decode(&env.rx[..count], channel.nonce())?;
                return answer_signal(channel, signal, self.leg);
            }
            add(&env.counters.datagrams_received, 1);
            1
        } else {
            self.reply_received += count;
            let whole = self.reply_received / self.reply;
            self.reply_received %= self.reply;
            (0..whole).for_each(|_| self.flight.answered_next(now, env.rtt));
            whole as u64
        };
        env.counters.received(count);
        add(&env.counters.transactions, done);
        None
    }

    /// Over datagrams, gives up requests that have waited too long; returns when the next one is due to be given up.
    fn give_up<C: Channel>(&mut self, env: &Env<'_>, now: u64) -> u64 {
        if C::KIND != Kind::Datagram {
            return u64::MAX;
        }
        let longest = self.flight.longest_ns();
        let patience = if longest == 0 { self.first_patience_ns } else { (longest * 4).max(REPLY_FLOOR_NS) };
        while let Some(sent) = self.flight.oldest_ns() {
            if now < sent + patience {
                return sent + patience;
            }
            self.flight.lost_next();
            add(&env.counters.replies_lost, 1);
        }
        u64::MAX
    }
}

impl<C: Channel> Machine<C> for Prober {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            let over = self.request_sent == 0 && (self.closing || self.over(env));
            let now = now_ns();
            let lost_at = self.give_up::<C>(env, now);
            if over && self.flight.outstanding() == 0 {
                return self.close(channel, env);
            }
            if !self.begun {
                self.begun = true;
                env.counters.start_sending(now);
            }
            let due = if over { u64::MAX } else { self.flight.due_ns() };
            if due <= now {
                if let Some(turn) = self.send_request(channel, env, now)? {
                    return Ok(turn);
                }
                continue;
            }
            if self.flight.outstanding() == 0 {
                return Ok(Turn::Sleep(due));
            }
            let room = self.room(C::KIND, env.rx.len());
            match channel.recv(&mut env.rx[..room]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    if let Some(turn) = self.take_replies(channel, env, count) {
                        return Ok(turn);
                    }
                }
                Err(error) if not_now(&error) => {
                    let awake_at = match self.flight.expected_ns(AWAKE_RTT_NS).filter(|_| self.awake) {
                        Some(at) if now > at + LINGER_NS => u64::MAX,
                        Some(at) if now + EARLY_NS >= at => return Ok(Turn::Again),
                        Some(at) => at - EARLY_NS,
                        None => u64::MAX,
                    };
                    let until = due.min(awake_at).min(lost_at).min(now + STOP_CHECK_NS);
                    return Ok(Turn::Wait(Interest::Read, until));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::Again)
    }
}

#[cfg(test)]
mod tests {
    use model::{Direction, Pattern, Role};

    use super::*;
    use crate::pattern::Pace;

    #[test]
    fn replies_to_several_requests_may_exceed_the_buffer() {
        let spec = Spec { outstanding: Some(4), ..Spec::new("tcp", Pattern::Rr) };
        let part = Part {
            role: Role::Active,
            direction: Direction::Send,
            block: 1,
            reply: 100,
            stop: LegStop::Clock,
            leg: 0,
            path: model::PathTimes::default(),
            last: true,
            pace: Some(Pace { gap_ns: 1.0, catch_up_ns: 0.0, blocked_ns: 0.0, spread_ns: 0.0, burst_ns: 0.0 }),
            drain: None,
            to_receiver: false,
            shares: true,
            spins: false,
            singly: true,
            opening: 0,
        };
        let mut prober = Prober::new(&spec, &part).unwrap();
        (1..=4).for_each(|now_ns| prober.flight.sent(now_ns));
        assert_eq!([1_000, 400, 200].map(|buffer| prober.room(Kind::Stream, buffer)), [400, 400, 200]);
    }
}
