//! Request and response over datagrams at a rate, as an open loop: see [`Unanswered`].

use std::io;

use model::Role;

use super::super::close_handshake::{CloseHandshake, answer_signal};
use super::super::machine::{Env, Machine, Part, QUANTUM};
use super::super::pacer::{Pace, Pacer};
use super::datagrams::{FULL_NS, first_patience_ns, put_number};
use super::unanswered::Unanswered;
use crate::core::{Interest, LegStop, Turn, add, not_now, now_ns};
use crate::transport::{Channel, Signal};

/// How long a waiting loop may take to see the stop flag.
const STOP_CHECK_NS: u64 = 20_000_000;

/// Requests at a rate, whether or not replies have arrived.
pub(super) struct OpenLoop {
    leg: u32,
    /// The announcement of the next leg tells the other end that this one is over; after the last leg there is none.
    implied: bool,
    request: usize,
    reply: usize,
    stop: LegStop,
    number: u64,
    done: u64,
    unanswered: Unanswered,
    pacer: Pacer,
    /// When the loop ended, and when the last reply came.
    ended_ns: u64,
    answered_ns: u64,
    close_handshake: CloseHandshake,
    /// Round trips at the start that are not timed.
    opening: u64,
}

impl OpenLoop {
    /// `None` without a rate, and for a thread that blocks in its calls: it cannot send requests meanwhile.
    pub(super) fn new(part: &Part) -> Option<Self> {
        let pace: Pace = part.pace.filter(|_| part.shares || part.spins)?;
        Some(Self {
            leg: part.leg,
            implied: part.role == Role::Active && !part.last,
            request: part.block,
            reply: part.reply,
            stop: part.stop,
            number: 0,
            done: 0,
            unanswered: Unanswered::new(pace.gap_ns, part.block.min(part.reply), first_patience_ns(part)),
            pacer: Pacer::open_loop(Some(pace)),
            ended_ns: 0,
            answered_ns: 0,
            close_handshake: CloseHandshake::new(part.path.patience_ns),
            opening: part.opening,
        })
    }

    fn over(&mut self, env: &Env<'_>, now: u64) -> bool {
        let over = match self.stop {
            LegStop::Transactions(count) => self.number >= count,
            LegStop::Clock | LegStop::Bytes(_) => env.signals.stopping(),
        };
        if over && self.ended_ns == 0 {
            self.ended_ns = now;
            env.counters.stop_sending(now);
        }
        self.ended_ns > 0
    }

    fn finish<C: Channel>(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        if !self.close_handshake.begun() {
            // What was waited for in vain after the end is not part of the time.
            env.counters.arrived(self.ended_ns.max(self.answered_ns));
        }
        if self.implied { Ok(Turn::Done) } else { self.close_handshake.turn(channel, env, self.number, self.leg) }
    }

    /// Sends the request that is due; returns what to wait for if it cannot be sent.
    fn send_request<C: Channel>(&mut self, channel: &mut C, env: &mut Env<'_>, now: u64) -> io::Result<Option<Turn>> {
        put_number(&mut env.tx[..self.request], self.number);
        if self.number == 0 {
            env.counters.start_sending(now);
        }
        match channel.send(&env.tx[..self.request]) {
            Ok(count) => env.counters.sent(count),
            Err(error) if not_now(&error) => return Ok(Some(Turn::Wait(Interest::Write, now + FULL_NS))),
            Err(error) => return Err(error),
        }
        add(&env.counters.blocks_sent, 1);
        add(&env.counters.datagrams_sent, 1);
        self.unanswered.sent(self.number, self.pacer.due_ns().unwrap_or(now), now);
        self.number += 1;
        self.pacer.sent(1.0);
        Ok(None)
    }

    /// Handles a datagram of `count` bytes.
    fn take<C: Channel>(&mut self, channel: &mut C, env: &mut Env<'_>, count: usize) -> Option<Turn> {
        let now = now_ns();
        let answered =
            if count == self.reply { self.unanswered.answered(&env.rx[..self.reply.min(8)], now) } else { None };
        let Some(request) = answered else {
            // A late or second reply, or the other end repeating that the leg is open or requesting it.
            let signal = Signal::decode(&env.rx[..count], channel.nonce())?;
            return answer_signal(channel, signal, self.leg);
        };
        if self.done >= self.opening {
            env.rtt.record(now.saturating_sub(request.due_ns));
        }
        if self.done == 0 {
            env.counters.arrived(now);
        }
        self.answered_ns = now;
        self.done += 1;
        env.counters.received(count);
        add(&env.counters.datagrams_received, 1);
        add(&env.counters.transactions, 1);
        None
    }
}

impl<C: Channel> Machine<C> for OpenLoop {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            let now = now_ns();
            let mut lost = self.unanswered.give_up(now);
            let over = self.over(env, now);
            let mut due = u64::MAX;
            let mut ready = false;
            if !over {
                match self.pacer.hold(env.pace) {
                    Some(until) => due = until,
                    None => ready = self.unanswered.make_room(self.number, &mut lost),
                }
            }
            if lost > 0 {
                add(&env.counters.replies_lost, lost);
            }
            if over && self.unanswered.is_empty() {
                return self.finish(channel, env);
            }
            if ready {
                if let Some(turn) = self.send_request(channel, env, now)? {
                    return Ok(turn);
                }
                continue;
            }
            if self.unanswered.is_empty() {
                return Ok(Turn::Sleep(due));
            }
            match channel.recv(env.rx) {
                Ok(count) => {
                    if let Some(turn) = self.take(channel, env, count) {
                        return Ok(turn);
                    }
                }
                Err(error) if not_now(&error) => {
                    let until = due.min(self.unanswered.lost_at()).min(now + STOP_CHECK_NS);
                    return Ok(Turn::Wait(Interest::Read, until));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::Again)
    }
}
