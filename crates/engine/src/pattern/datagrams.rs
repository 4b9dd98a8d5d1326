//! A stream over datagrams: numbered, and counted by their numbers.

use std::io;

use model::{Role, SizeCount, Spec};

use super::close_handshake::{CloseHandshake, answer_signal};
use super::credit::{Credit, Grant, Grants};
use super::jitter::Jitter;
use super::machine::{Env, Machine, Part, QUANTUM, STOP_CHECK_NS, UNCLOCKED_READS};
use super::pacer::Pacer;
use super::sequence::{Arrival, Sequence};
use super::size_counts::SizeCounts;
use crate::core::{Counters, Interest, LegStop, Turn, add, not_now, now_ns};
use crate::transport::{Channel, SIGNAL_BYTES, Signal};

/// Bytes at the front of a datagram between ends of this program: its number, and the time at which it was sent in ns of the
/// sender's monotonic clock, where they have room for both. Datagrams that are sent by one call have one time.
const NUMBER_BYTES: usize = 8;
const STAMPED_BYTES: usize = 16;

/// How long a sender waits on a full socket before it checks the stop flag.
const FULL_NS: u64 = 20_000_000;

/// Sends numbered datagrams.
pub(super) struct DatagramSender {
    leg: u32,
    block: usize,
    stop: LegStop,
    left: Option<u64>,
    number: u64,
    close_handshake: CloseHandshake,
    pacer: Pacer,
    /// The credit, if the sender is paced to the receiver.
    credit: Option<Credit>,
    /// Maximum datagrams per call.
    burst: usize,
    /// The sizes of a mix, which a call sends one of; `block` is the largest.
    sizes: Option<SizeCounts>,
}

impl DatagramSender {
    pub(super) fn new(spec: &Spec, part: &Part) -> Self {
        let left = match part.stop {
            LegStop::Bytes(bytes) => Some(bytes),
            LegStop::Transactions(count) => Some(spec.bytes_of(count)),
            LegStop::Clock => None,
        };
        Self {
            leg: part.leg,
            block: part.block,
            stop: part.stop,
            left,
            number: 0,
            close_handshake: CloseHandshake::new(part.path.patience_ns),
            pacer: Pacer::new(part.pace),
            credit: part.to_receiver.then(|| Credit::new(part.leg)),
            burst: 0,
            sizes: SizeCounts::new(&spec.mix),
        }
    }

    #[inline]
    fn over(&self, env: &Env<'_>) -> bool {
        match self.stop {
            LegStop::Clock => env.signals.stopping(),
            _ => self.left == Some(0),
        }
    }

    /// Writes the numbers of the next datagrams (`payload` bytes in all), and the time, to their fronts; returns the bytes to send. A
    /// last datagram too short for its number is padded: the bytes beyond the quota are not payload.
    #[inline]
    fn number_datagrams<C: Channel>(&self, channel: &mut C, tx: &mut [u8], payload: usize) -> usize {
        let wire = payload.max(NUMBER_BYTES);
        let now = (self.block >= STAMPED_BYTES && !channel.is_to_program()).then(now_ns);
        for (number, datagram) in (self.number..).zip(tx[..wire].chunks_mut(self.block.max(NUMBER_BYTES))) {
            channel.number(datagram, number);
            if let (Some(now), Some(room)) = (now, datagram.get_mut(NUMBER_BYTES..STAMPED_BYTES)) {
                room.copy_from_slice(&now.to_le_bytes());
            }
        }
        wire
    }

    /// How many datagrams may be sent now; receives grants if there is no credit, and says what to wait for.
    #[inline]
    fn allowed<C: Channel>(&mut self, channel: &mut C, rx: &mut [u8]) -> io::Result<Result<usize, Turn>> {
        let Some(credit) = &mut self.credit else { return Ok(Ok(self.burst)) };
        loop {
            let burst = credit.burst(self.number, self.burst as u64);
            if burst > 0 {
                credit.sending(self.number);
                return Ok(Ok(burst as usize));
            }
            match channel.recv(rx) {
                Ok(count) => match Signal::decode(&rx[..count], channel.nonce()) {
                    Some(Signal::Credit { leg, passed, room, received, drops, waited_ns }) => {
                        let now = now_ns();
                        let waited_ns = channel.waited_ns().saturating_add(waited_ns);
                        credit.granted(leg, Grant { passed, room, received, drops, waited_ns }, now);
                    }
                    Some(signal) => {
                        if let Some(turn) = answer_signal(channel, signal, self.leg) {
                            return Ok(Err(turn));
                        }
                    }
                    None => {}
                },
                Err(error) if not_now(&error) => {
                    let now = now_ns();
                    let until = credit.query_at(now).unwrap_or_else(|| {
                        // A signal that could not be sent is repeated later.
                        let _ = channel.send(&Signal::Waiting(self.number).encode(channel.nonce()));
                        now
                    });
                    return Ok(Err(Turn::Wait(Interest::Read, until)));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The kernel took the next `datagrams`, `bytes` of payload.
    #[inline]
    fn count(&mut self, bytes: usize, datagrams: u64, counters: &Counters) {
        counters.sent(bytes);
        add(&counters.datagrams_sent, datagrams);
        match &mut self.sizes {
            Some(sizes) => {
                (self.number..self.number + datagrams).for_each(|number| sizes.sent(number));
                add(&counters.blocks_sent, datagrams);
            }
            None => add(&counters.blocks_sent, (bytes / self.block) as u64),
        }
        self.number += datagrams;
        self.left = self.left.map(|left| left - bytes as u64);
        self.pacer.sent(bytes as f64 / self.block as f64);
    }
}

impl<C: Channel> Machine<C> for DatagramSender {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            if channel.is_to_program() && self.over(env) {
                env.counters.stop_sending(now_ns());
                return Ok(Turn::Done);
            }
            if self.close_handshake.begun() || self.over(env) {
                return self.close_handshake.turn(channel, env, self.number, self.leg);
            }
            if self.number == 0 {
                env.counters.start_sending(now_ns());
            }
            if let Some(until) = self.pacer.hold(env.pace) {
                return Ok(Turn::Sleep(until));
            }
            if self.burst == 0 {
                let most = if self.sizes.is_some() { 1 } else { channel.datagrams_per_call(self.block) };
                self.burst = self.pacer.burst(most);
            }
            let burst = match self.allowed(channel, env.rx)? {
                Ok(burst) => burst,
                Err(turn) => return Ok(turn),
            };
            let room = self.sizes.as_ref().map_or(self.block * burst, |sizes| sizes.payload(self.number));
            let payload = self.left.map_or(room, |left| room.min(usize::try_from(left).unwrap_or(usize::MAX)));
            // Datagrams smaller than the rest of the quota are sent one by one: the last may be shorter.
            let payload = if payload < self.block { payload } else { payload - payload % self.block };
            let from = env.tx.next(payload.max(NUMBER_BYTES));
            let wire = self.number_datagrams(channel, &mut env.tx[from..], payload);
            self.pacer.begin(env.counters);
            match channel.send_datagrams(&env.tx[from..from + wire], self.block) {
                Ok(taken) => self.count(payload.min(taken * self.block), taken as u64, env.counters),
                Err(error) if not_now(&error) => return Ok(Turn::Wait(Interest::Write, now_ns() + FULL_NS)),
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::Again)
    }

    fn sizes(&self) -> Vec<SizeCount> {
        self.sizes.as_ref().map_or_else(Vec::new, SizeCounts::counted)
    }
}

/// Receives numbered datagrams and accounts for them.
pub(super) struct DatagramReceiver {
    leg: u32,
    sequence: Sequence,
    jitter: Jitter,
    distinct: u64,
    unclocked: u32,
    /// The sender's count, and the time until which late datagrams are accepted.
    finishing: Option<(u64, u64)>,
    block: usize,
    /// The sender is paced to this end's buffer and has not received a grant yet.
    first_grant_due: bool,
    grants: Option<Grants>,
    /// From another program: when this end has enough, and whether it first takes what has already arrived.
    stop: LegStop,
    empties: bool,
    bytes: u64,
    /// The sender keeps to a rate, so each arrival is timed.
    paced: bool,
    /// The sizes of a mix.
    sizes: Option<SizeCounts>,
}

/// How long late datagrams may arrive after the sender's last message.
const STRAGGLERS_NS: u64 = 50_000_000;

impl DatagramReceiver {
    pub(super) fn new(spec: &Spec, part: &Part) -> Self {
        Self {
            leg: part.leg,
            sequence: Sequence::new(),
            jitter: Jitter::default(),
            distinct: 0,
            unclocked: 0,
            finishing: None,
            block: part.block,
            first_grant_due: part.to_receiver,
            grants: None,
            stop: part.stop,
            empties: part.role == Role::Passive,
            bytes: 0,
            paced: part.pace.is_some(),
            sizes: SizeCounts::new(&spec.mix),
        }
    }

    /// Whether a leg from another program is over for this end.
    fn has_enough(&self, env: &Env<'_>) -> bool {
        match self.stop {
            LegStop::Clock => env.signals.stopping() && !self.empties,
            LegStop::Bytes(bytes) => self.bytes >= bytes,
            LegStop::Transactions(count) => self.bytes >= count.saturating_mul(self.block as u64),
        }
    }

    /// Reads the clock for calls that were not timed individually.
    fn settle(&mut self, counters: &Counters) {
        if self.unclocked > 0 {
            counters.arrived(now_ns());
            self.unclocked = 0;
        }
    }

    /// A call brought `bytes` bytes of payload, already counted: counts them as arrived at `now`. Without a time reads the clock,
    /// unless the call was short and the clock was read recently.
    #[inline]
    fn clock(&mut self, bytes: u64, now: Option<u64>, counters: &Counters) {
        self.unclocked += 1;
        let due = bytes >= 1024 || self.unclocked >= UNCLOCKED_READS || self.bytes == bytes || self.paced;
        if let Some(now) = now.or_else(|| due.then(now_ns)) {
            counters.arrived(now);
            self.unclocked = 0;
        }
    }

    /// A datagram that arrived at `now`, if the sender writes times.
    #[inline]
    fn take<C: Channel>(&mut self, channel: &mut C, bytes: &[u8], now: Option<u64>, counters: &Counters) {
        let Some(number) = channel.number_of(bytes) else { return };
        match self.sequence.arrive(number) {
            Arrival::Duplicate => {
                add(&counters.duplicates, 1);
                return;
            }
            Arrival::Late => add(&counters.reordered, 1),
            Arrival::New => {}
        }
        self.distinct += 1;
        if let Some(sizes) = &mut self.sizes {
            sizes.received(number);
        }
        add(&counters.datagrams_received, 1);
        add(&counters.bytes_received, bytes.len() as u64);
        self.bytes += bytes.len() as u64;
        if let (Some(now), Some(stamp)) = (now, bytes.get(NUMBER_BYTES..).and_then(<[u8]>::first_chunk)) {
            self.jitter.arrived(u64::from_le_bytes(*stamp), now);
        }
    }

    /// Handles a signal from the sender.
    fn on_signal<C: Channel>(&mut self, signal: Signal, channel: &mut C, counters: &Counters) -> Option<Turn> {
        match signal {
            Signal::Finish(sent) => {
                self.settle(counters);
                self.finishing.get_or_insert((sent, now_ns() + STRAGGLERS_NS));
                None
            }
            Signal::Waiting(sent) => {
                if let Some(grants) = &mut self.grants {
                    grants.answer(sent, channel);
                }
                None
            }
            other => answer_signal(channel, other, self.leg),
        }
    }

    /// Everything sent has arrived or had its time.
    fn settled(&self) -> bool {
        self.finishing.is_some_and(|(sent, until)| self.distinct >= sent || now_ns() >= until)
    }
}

impl<C: Channel> Machine<C> for DatagramReceiver {
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
        for _ in 0..QUANTUM {
            if channel.is_to_program() && self.has_enough(env) {
                self.settle(env.counters);
                return Ok(Turn::Done);
            }
            if self.settled() {
                return Ok(answer_signal(channel, Signal::Finish(0), self.leg).unwrap_or(Turn::Done));
            }
            if std::mem::take(&mut self.first_grant_due) {
                self.grants = Grants::new(channel, self.leg, self.block);
            }
            if let Some(grants) = &mut self.grants {
                grants.pass(self.sequence.next(), self.distinct, channel);
            }
            env.marks.clear();
            match channel.recv_datagrams(env.rx, env.marks) {
                Ok(()) => {}
                Err(error) if not_now(&error) && channel.is_to_program() => {
                    if env.signals.stopping() {
                        self.settle(env.counters);
                        return Ok(Turn::Done);
                    }
                    return Ok(Turn::Wait(Interest::Read, now_ns() + STOP_CHECK_NS));
                }
                Err(error) if not_now(&error) => {
                    let until = self.finishing.map_or(u64::MAX, |(_, until)| until);
                    return Ok(Turn::Wait(Interest::Read, until));
                }
                Err(error) => return Err(error),
            }
            add(&env.counters.calls_received, 1);
            let now = (self.block >= STAMPED_BYTES && !channel.is_to_program()).then(now_ns);
            let before = self.bytes;
            let mut turn = None;
            for mark in env.marks.iter() {
                let datagram = &env.rx[mark.at as usize..(mark.at + mark.len) as usize];
                if datagram.len() == SIGNAL_BYTES
                    && !channel.is_to_program()
                    && let Some(signal) = Signal::decode(datagram, channel.nonce())
                {
                    turn = turn.or(self.on_signal(signal, channel, env.counters));
                } else {
                    self.take(channel, datagram, now, env.counters);
                }
            }
            // Signals and second copies are no arrivals.
            if self.bytes > before {
                self.clock(self.bytes - before, now, env.counters);
                env.counters.numbered(self.sequence.next(), self.jitter.sixteenths());
            }
            if self.finishing.is_some() {
                self.settle(env.counters);
            }
            if let Some(turn) = turn {
                return Ok(turn);
            }
        }
        Ok(Turn::Again)
    }

    fn confirms_end(&self) -> bool {
        true
    }

    fn sizes(&self) -> Vec<SizeCount> {
        self.sizes.as_ref().map_or_else(Vec::new, SizeCounts::counted)
    }
}
