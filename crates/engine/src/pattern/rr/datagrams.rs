//! Request and response over datagrams, of which some are lost.

use std::io;

use model::Role;

use super::super::close_handshake::{CloseHandshake, answer_signal};
use super::super::machine::{Env, Machine, Part, QUANTUM, STOP_CHECK_NS};
use super::super::pacer::Pacer;
use super::arrivals::Arrivals;
use crate::core::{Interest, LegStop, Turn, add, not_now, now_ns};
use crate::transport::{Channel, SIGNAL_BYTES, Signal};

/// Bytes of a datagram's number that fit into `room`.
#[inline]
pub(super) fn put_number(bytes: &mut [u8], number: u64) {
    let width = bytes.len().min(8);
    bytes[..width].copy_from_slice(&number.to_le_bytes()[..width]);
}

/// The whole number of a request of which `low` are the lowest bytes, if `next` is expected: a later one if some were lost, an
/// earlier one if it is late or a copy.
fn number_after(next: u64, low: &[u8]) -> u64 {
    if low.is_empty() {
        return next;
    }
    let mut bytes = next.to_le_bytes();
    bytes[..low.len()].copy_from_slice(low);
    let number = u64::from_le_bytes(bytes);
    let all = 1u64.checked_shl(8 * low.len() as u32).unwrap_or(0);
    let ahead = number.wrapping_sub(next) & all.wrapping_sub(1);
    if low.len() == 8 {
        number
    } else if ahead < all / 2 {
        next + ahead
    } else {
        next.saturating_sub(all - ahead)
    }
}

/// How long to wait for a reply before it counts as lost: far above any round trip seen, and never under 200 ms.
pub(super) const REPLY_FLOOR_NS: u64 = 200_000_000;
/// The same before the first round trip: of a path of unknown length, and at least of a path whose round trip another connection has
/// seen.
const FIRST_REPLY_NS: u64 = 3_000_000_000;
const FIRST_REPLY_FLOOR_NS: u64 = 1_000_000_000;
/// How long a request waits on a full socket before the stop flag is checked.
pub(super) const FULL_NS: u64 = 20_000_000;

/// How long to wait for the first reply.
pub(super) fn first_patience_ns(part: &Part) -> u64 {
    match part.path.round_trip_ns {
        0 => FIRST_REPLY_NS,
        ns => ns.saturating_mul(4).max(FIRST_REPLY_FLOOR_NS),
    }
}

/// Requests over datagrams; a missing reply is counted and the next request sent.
pub(super) struct DatagramRequester {
    leg: u32,
    /// The announcement of the next leg tells the other end that this one is over; after the last leg there is none.
    implied: bool,
    request: usize,
    reply: usize,
    stop: LegStop,
    number: u64,
    done: u64,
    requested_ns: u64,
    /// When the request was due, or when it was sent if nothing set a due time.
    due_ns: u64,
    pacer: Pacer,
    waiting: bool,
    /// When the last reply arrived: without a pace the next request is sent at once, and one clock read serves both.
    answered_ns: Option<u64>,
    first_patience_ns: u64,
    longest_ns: u64,
    /// Empty calls between two clock reads.
    patient_calls: u32,
    vain_calls: u32,
    close_handshake: CloseHandshake,
    /// Round trips at the start that are not timed.
    opening: u64,
}

/// Empty calls of a spinning requester between two clock reads: some microseconds, compared with a patience of at
/// least 200 ms.
const SPINS_PER_CLOCK_READ: u32 = 32;

impl DatagramRequester {
    pub(super) fn new(part: &Part) -> Self {
        Self {
            leg: part.leg,
            implied: part.role == Role::Active && !part.last,
            request: part.block,
            reply: part.reply,
            stop: part.stop,
            number: 0,
            done: 0,
            requested_ns: 0,
            due_ns: 0,
            pacer: Pacer::open_loop(part.pace),
            waiting: false,
            answered_ns: None,
            first_patience_ns: first_patience_ns(part),
            longest_ns: 0,
            patient_calls: if part.spins { SPINS_PER_CLOCK_READ } else { 1 },
            vain_calls: 0,
            close_handshake: CloseHandshake::new(part.path.patience_ns),
            opening: part.opening,
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
        if self.longest_ns == 0 { self.first_patience_ns } else { (self.longest_ns * 4).max(REPLY_FLOOR_NS) }
    }

    /// Whether `bytes` answers the outstanding request: a late reply to an older one does not. Replies of another
    /// program carry no number.
    fn answers(&self, bytes: &[u8], to_program: bool) -> bool {
        if to_program {
            return bytes.len() == self.reply;
        }
        let width = self.request.min(self.reply).min(8);
        bytes.len() == self.reply && bytes[..width] == self.number.to_le_bytes()[..width]
    }

    fn finish<C: Channel>(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        if !self.close_handshake.begun() {
            env.counters.stop_sending(now_ns());
            env.counters.arrived(now_ns());
        }
        if self.implied || channel.is_to_program() {
            Ok(Turn::Done)
        } else {
            self.close_handshake.turn(channel, env, self.number, self.leg)
        }
    }
}

impl<C: Channel> Machine<C> for DatagramRequester {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            if !self.waiting {
                if self.close_handshake.begun() || self.over(env) {
                    return self.finish(channel, env);
                }
                if let Some(until) = self.pacer.hold(env.pace) {
                    return Ok(Turn::Sleep(until));
                }
                put_number(&mut env.tx[..self.request], self.number);
                let due = self.pacer.due_ns();
                self.requested_ns = self.answered_ns.take().filter(|_| due.is_none()).unwrap_or_else(now_ns);
                self.due_ns = due.unwrap_or(self.requested_ns);
                if self.number == 0 {
                    env.counters.start_sending(self.requested_ns);
                }
                match channel.send(&env.tx[..self.request]) {
                    Ok(count) => env.counters.sent(count),
                    Err(error) if not_now(&error) => {
                        return Ok(Turn::Wait(Interest::Write, self.requested_ns + FULL_NS));
                    }
                    Err(error) => return Err(error),
                }
                add(&env.counters.blocks_sent, 1);
                add(&env.counters.datagrams_sent, 1);
                self.pacer.sent(1.0);
                self.waiting = true;
            }
            match channel.recv(env.rx) {
                Ok(count) if self.answers(&env.rx[..count], channel.is_to_program()) => {
                    let now = now_ns();
                    let elapsed = now - self.requested_ns;
                    if self.done >= self.opening && !channel.is_disturbed() {
                        env.rtt.record(now - self.due_ns);
                    }
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
                    // The stamps are read before the next request is sent, not within its time.
                    self.answered_ns = Some(now).filter(|_| !channel.is_disturbed());
                    channel.exchange(self.number);
                }
                // A late reply, or the other end repeating that the leg is open or requesting it.
                Ok(count) => {
                    if let Some(signal @ Signal::Leg(_)) = Signal::decode(&env.rx[..count], channel.nonce())
                        && !channel.is_to_program()
                        && let Some(turn) = answer_signal(channel, signal, self.leg)
                    {
                        return Ok(turn);
                    }
                }
                Err(error) if not_now(&error) => {
                    let limit = self.requested_ns + self.patience_ns();
                    self.vain_calls += 1;
                    if !self.vain_calls.is_multiple_of(self.patient_calls) || now_ns() < limit {
                        return Ok(Turn::Wait(Interest::Read, limit));
                    }
                    add(&env.counters.replies_lost, 1);
                    self.number += 1;
                    self.waiting = false;
                    channel.exchange(self.number);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::Again)
    }
}

/// Answers datagrams until the end is announced.
pub(super) struct DatagramAnswerer {
    leg: u32,
    reply: usize,
    /// Length of an answer that the socket has not taken yet.
    pending: Option<usize>,
    /// Number of the next request, unless some are lost.
    next: u64,
    arrivals: Arrivals,
}

impl DatagramAnswerer {
    pub(super) fn new(part: &Part, arrivals: Arrivals) -> Self {
        Self { leg: part.leg, reply: part.reply, pending: None, next: 0, arrivals }
    }
}

impl<C: Channel> Machine<C> for DatagramAnswerer {
    fn confirms_end(&self) -> bool {
        true
    }

    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            if self.pending.is_none() {
                let count = match channel.recv(env.rx) {
                    Ok(count) => count,
                    Err(error) if not_now(&error) && channel.is_to_program() => {
                        if env.signals.stopping() {
                            return Ok(Turn::Done);
                        }
                        return Ok(Turn::Wait(Interest::Read, now_ns() + STOP_CHECK_NS));
                    }
                    Err(error) if not_now(&error) => return Ok(self.arrivals.wait(now_ns)),
                    Err(error) => return Err(error),
                };
                if channel.is_to_program() {
                    // A datagram whose header marks it as no payload is the sender's end.
                    if channel.number_of(&env.rx[..count]).is_none() {
                        return Ok(Turn::Done);
                    }
                } else if count == SIGNAL_BYTES
                    && let Some(signal) = Signal::decode(&env.rx[..count], channel.nonce())
                {
                    match answer_signal(channel, signal, self.leg) {
                        Some(turn) => return Ok(turn),
                        None => continue,
                    }
                }
                env.counters.received(count);
                add(&env.counters.datagrams_received, 1);
                self.arrivals.came(now_ns, &env.rx[..count]);
                let width = count.min(self.reply).min(8);
                env.tx[..width].copy_from_slice(&env.rx[..width]);
                self.pending = Some(self.reply);
                if C::STAMPS {
                    self.next = number_after(self.next, &env.rx[..width]);
                    channel.exchange(self.next);
                }
            }
            match channel.send(&env.tx[..self.reply]) {
                Ok(count) => {
                    env.counters.sent(count);
                    add(&env.counters.datagrams_sent, 1);
                    add(&env.counters.blocks_sent, 1);
                    self.pending = None;
                    if C::STAMPS {
                        self.next += 1;
                        channel.exchange(self.next);
                    }
                }
                Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Write, u64::MAX)),
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::Again)
    }
}

#[cfg(test)]
mod tests {
    use super::number_after;

    #[test]
    fn a_number_is_completed_from_its_lowest_bytes() {
        assert_eq!(number_after(0, &[]), 0);
        assert_eq!(number_after(255, &[255]), 255);
        assert_eq!(number_after(256, &[0]), 256);
        assert_eq!(number_after(255, &[1]), 257, "two were lost");
        assert_eq!(number_after(256, &[255]), 255, "a copy of the one before");
        assert_eq!(number_after(3, &[250]), 0, "older than the first");
        assert_eq!(number_after(0x1_ffff, &[0xff, 0xff]), 0x1_ffff);
        assert_eq!(number_after(0x1_ffff, &[0x02, 0x00]), 0x2_0002);
        assert_eq!(number_after(7, &9u64.to_le_bytes()), 9);
    }
}
