//! One end of a stream, without I/O and clock: times and events go in, messages and the time of the next one come out.

use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::packet::Packet;
use super::received::{Greedy, Received};
use super::sent::Sent;

/// Time without a word from the other end, while one is due, until the stream is given up.
const SILENCE_LIMIT: Duration = Duration::from_secs(20);
/// How long nobody may be subscribed at the other end, as after a restart of the server, before the stream ends.
const NOBODY_LIMIT: Duration = Duration::from_secs(5);
/// Time between two questions while nobody is there.
const NOBODY_PAUSE: Duration = Duration::from_millis(500);
/// How long a stream that this end has closed waits for the other end.
const CLOSING_LIMIT: Duration = Duration::from_secs(10);

/// Why a stream has ended before both ends have closed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// The other end says nothing any more.
    Silent,
    /// The other end is not subscribed.
    Left,
    /// The other end does not know the stream, or has ended it.
    Closed,
    /// The other end sends more than it may.
    Greedy,
    /// This end closed a stream to which it had said nothing.
    Refused,
    /// This end has lost its name, or had no room for the stream.
    Dropped,
    /// The connection to the bus has ended.
    NoBus,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silent => "it does not answer over the bus",
            Self::Left => "it has left the bus",
            Self::Closed => "the connection was closed",
            Self::Greedy => "it sends more than the window over the bus",
            Self::Refused => "the connection was refused",
            Self::Dropped => "this host's name on the bus was lost to another agent, or it has too many connections",
            Self::NoBus => "the connection to the bus has ended",
        })
    }
}

/// One end of a stream.
#[derive(Debug)]
pub(super) struct Window {
    sent: Sent,
    received: Received,
    /// The other end has opened the stream.
    is_accepted: bool,
    /// Since when the other end owes a word; `None` if it does not.
    quiet_since: Option<Instant>,
    /// Since when nobody is there.
    nobody_since: Option<Instant>,
    /// When this end closed the stream.
    closed: Option<Instant>,
    /// This end's closing has its place among the messages.
    has_said_closed: bool,
    broken: Option<Broken>,
}

impl Window {
    /// The end that opens a stream.
    pub(super) fn opening() -> Self {
        let mut sent = Sent::new(0);
        sent.number(|_| Packet::Open);
        Self::new(sent, false)
    }

    /// The end at which a stream was opened.
    pub(super) fn accepting() -> Self {
        Self::new(Sent::new(1), true)
    }

    fn new(sent: Sent, is_accepted: bool) -> Self {
        Self {
            sent,
            received: Received::new(is_accepted),
            is_accepted,
            quiet_since: None,
            nobody_since: None,
            closed: None,
            has_said_closed: false,
            broken: None,
        }
    }

    /// Most bytes that may be written now.
    pub(super) fn room(&self) -> usize {
        if self.closed.is_some() || self.nobody_since.is_some() { 0 } else { self.sent.room() }
    }

    /// Takes bytes to send, at most as many as there is room for.
    pub(super) fn write(&mut self, data: Bytes) {
        self.sent.push(data);
    }

    /// No more bytes come. A stream that was opened to this end, which has said nothing, is refused.
    pub(super) fn close(&mut self, now: Instant) {
        self.closed.get_or_insert(now);
        if self.is_accepted && self.sent.next() == 1 {
            self.broken.get_or_insert(Broken::Refused);
        }
    }

    /// A message of the other end.
    pub(super) fn hear(&mut self, packet: Packet, now: Instant) {
        self.quiet_since = None;
        if self.nobody_since.take().is_some() {
            // What was sent meanwhile is lost.
            self.sent.ask_by(now);
        }
        let arrived = match packet {
            Packet::Data(number, data) => self.received.arrive(number, Some(data)),
            Packet::Close(number) => self.received.arrive(number, None),
            Packet::Ack(ack) => {
                self.sent.acknowledged(ack, now);
                Ok(())
            }
            Packet::Ask(number) => {
                self.received.asked(number);
                Ok(())
            }
            Packet::Open => {
                if self.is_accepted {
                    self.received.opened_again();
                }
                Ok(())
            }
            Packet::Reset => {
                self.broken.get_or_insert(Broken::Closed);
                Ok(())
            }
        };
        if arrived == Err(Greedy) {
            self.broken.get_or_insert(Broken::Greedy);
        }
        if self.sent.ask_at().is_some() {
            self.quiet_since = Some(now);
        }
    }

    /// Nobody was subscribed when a message was sent.
    pub(super) fn nobody(&mut self, now: Instant) {
        self.nobody_since.get_or_insert(now);
        if !self.is_open() {
            self.broken.get_or_insert(Broken::Left);
        }
        self.sent.ask_by(now + NOBODY_PAUSE);
    }

    /// The connection to the bus was made again: what was under way may be lost.
    pub(super) fn reconnected(&mut self, now: Instant) {
        if self.sent.ask_at().is_some() {
            self.sent.ask_by(now);
        }
    }

    /// This end is taken away.
    pub(super) fn break_off(&mut self, why: Broken) {
        self.broken.get_or_insert(why);
    }

    /// Whether the other end has answered.
    pub(super) fn is_open(&self) -> bool {
        self.sent.arrived() > 0
    }

    /// Whether the other end has received an answer of this end's owner.
    pub(super) fn is_answered(&self) -> bool {
        self.sent.arrived() > 1
    }

    /// What the reader takes next; an inner `None` is the end.
    pub(super) fn front(&self) -> Option<Option<&Bytes>> {
        self.received.front()
    }

    /// The reader has taken so many bytes of the front, or the end.
    pub(super) fn took(&mut self, bytes: usize) {
        self.received.took(bytes);
    }

    /// The next message to send, if there is one now.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<Packet> {
        if self.closed.is_some() && !self.has_said_closed && self.sent.may_push() {
            self.has_said_closed = true;
            self.sent.number(Packet::Close);
        }
        if let Some(ack) = self.received.transmit() {
            return Some(ack);
        }
        let next = self.sent.ask(now);
        let next = next.or_else(|| if self.nobody_since.is_none() { self.sent.transmit(now) } else { None })?;
        self.quiet_since.get_or_insert(now);
        Some(next)
    }

    /// How the stream has ended, once it has.
    pub(super) fn end(&self, now: Instant) -> Option<Result<(), Broken>> {
        let past = |since: Option<Instant>, limit| since.is_some_and(|since| now >= since + limit);
        match self.broken {
            // Both ends have ended it.
            Some(Broken::Closed) if self.closed.is_some() => return Some(Ok(())),
            Some(broken) => return Some(Err(broken)),
            None => {}
        }
        if past(self.nobody_since, NOBODY_LIMIT) {
            return Some(Err(Broken::Left));
        }
        if past(self.quiet_since, SILENCE_LIMIT) {
            return Some(Err(Broken::Silent));
        }
        let is_said = self.has_said_closed && self.sent.has_all_arrived();
        (is_said && (self.received.is_over() || past(self.closed, CLOSING_LIMIT))).then_some(Ok(()))
    }

    /// When [`Self::end`], or [`Self::transmit`] unless a message is on its way, has something to say without an event before.
    pub(super) fn wake(&self, is_sending: bool) -> Option<Instant> {
        let after = |since: Option<Instant>, limit| since.map(|since| since + limit);
        let ends = [
            after(self.nobody_since, NOBODY_LIMIT),
            after(self.quiet_since, SILENCE_LIMIT),
            after(self.closed.filter(|_| self.has_said_closed && self.sent.has_all_arrived()), CLOSING_LIMIT),
        ];
        let asks = self.sent.ask_at().filter(|_| !is_sending);
        ends.into_iter().chain([asks]).flatten().min()
    }
}

#[cfg(test)]
mod tests;
