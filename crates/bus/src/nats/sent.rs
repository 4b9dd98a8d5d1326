//! What this end of a stream has sent, without I/O and clock.
//!
//! A bus keeps the order of what one end sends to the other, and loses what is sent while a connection is down. So the answer to a
//! question shows what was lost: whatever was sent before the question and has not arrived with it. Nothing is sent again unless such
//! an answer has come; an acknowledgement that is only late causes a question of a few bytes, asked ever more rarely.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use super::pace::{Pace, WINDOW};
use super::packet::{Ack, MOST, Packet};

/// Most messages that the other end's reader has not taken.
pub(super) const MOST_MESSAGES: usize = 64;
/// Fewest bytes worth a message of their own while others are under way.
const LEAST_ROOM: usize = 4 << 10;
/// Questions whose answers are still of use.
const MOST_QUESTIONS: usize = 8;

/// The messages of one direction at their sender.
#[derive(Debug)]
pub(super) struct Sent {
    /// What the reader has not taken; the first has the number `taken`.
    kept: VecDeque<Packet>,
    kept_bytes: usize,
    taken: u64,
    arrived: u64,
    /// The next message to send: for the first time, or again after a loss.
    at: u64,
    /// The first message that was never sent.
    fresh: u64,
    /// Bytes of the messages that were sent and have not arrived.
    flying: usize,
    /// Most of these since the last sample.
    most_flying: usize,
    pace: Pace,
    /// A message that was sent once, and when.
    timed: Option<(u64, Instant)>,
    questions: VecDeque<Question>,
    /// Number of all questions.
    asked: u64,
    /// Questions since the last progress.
    in_vain: u32,
    ask_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Question {
    number: u64,
    /// All messages before this one were sent before the question.
    sent: u64,
    asked: Instant,
}

impl Sent {
    /// Nothing is sent yet; the first message has this number.
    pub(super) fn new(first: u64) -> Self {
        Self {
            kept: VecDeque::new(),
            kept_bytes: 0,
            taken: first,
            arrived: first,
            at: first,
            fresh: first,
            flying: 0,
            most_flying: 0,
            pace: Pace::default(),
            timed: None,
            questions: VecDeque::new(),
            asked: 0,
            in_vain: 0,
            ask_at: None,
        }
    }

    /// The number of the next message that is pushed.
    pub(super) fn next(&self) -> u64 {
        self.taken + self.kept.len() as u64
    }

    /// All messages before this one have arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Whether everything has arrived.
    pub(super) fn has_all_arrived(&self) -> bool {
        self.arrived == self.next()
    }

    /// Most bytes that a message may have now; 0 if none may be pushed.
    pub(super) fn room(&self) -> usize {
        if !self.may_push() || self.at < self.next() {
            return 0;
        }
        let own = self.pace.window().saturating_sub(self.flying);
        let room = own.min(WINDOW - self.kept_bytes).min(MOST);
        if room < LEAST_ROOM && !self.kept.is_empty() { 0 } else { room }
    }

    /// Whether there is room for a message without data.
    pub(super) fn may_push(&self) -> bool {
        self.kept.len() < MOST_MESSAGES
    }

    /// Adds data, at most as many bytes as there is room for.
    pub(super) fn push(&mut self, data: Bytes) {
        self.kept_bytes += data.len();
        self.number(|number| Packet::Data(number, data));
    }

    /// Adds a message, which gets its number.
    pub(super) fn number(&mut self, numbered: impl FnOnce(u64) -> Packet) {
        let packet = numbered(self.next());
        self.kept.push_back(packet);
    }

    /// The next message, if it may be sent now.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<Packet> {
        let packet = self.kept.get((self.at - self.taken) as usize)?.clone();
        if self.flying > 0 && self.flying + packet.len() > self.pace.window() {
            return None;
        }
        self.flying += packet.len();
        self.most_flying = self.most_flying.max(self.flying);
        if self.at == self.fresh {
            self.fresh += 1;
            self.timed.get_or_insert((self.at, now));
        }
        self.at += 1;
        self.ask_at.get_or_insert(now + self.pace.limit(0));
        Some(packet)
    }

    /// A question, if one is due.
    pub(super) fn ask(&mut self, now: Instant) -> Option<Packet> {
        self.ask_at.take_if(|at| now >= *at)?;
        self.in_vain = self.in_vain.saturating_add(1);
        self.ask_at = Some(now + self.pace.limit(self.in_vain));
        if matches!(self.kept.front(), Some(Packet::Open)) && self.arrived == 0 {
            // Until it is known at the other end, the stream's beginning is the question.
            self.timed = None;
            return Some(Packet::Open);
        }
        self.asked += 1;
        if self.questions.len() == MOST_QUESTIONS {
            self.questions.pop_front();
        }
        self.questions.push_back(Question { number: self.asked, sent: self.at, asked: now });
        Some(Packet::Ask(self.asked))
    }

    /// A question is due at this time, if not before.
    pub(super) fn ask_by(&mut self, at: Instant) {
        self.ask_at = Some(self.ask_at.map_or(at, |before| before.min(at)));
    }

    /// When a question is due; `None` if there is nothing to ask.
    pub(super) fn ask_at(&self) -> Option<Instant> {
        self.ask_at
    }

    /// Forgets what has been taken, and notes what was lost. An acknowledgement of what was not sent says nothing.
    pub(super) fn acknowledged(&mut self, ack: Ack, now: Instant) {
        if ack.taken > ack.arrived || ack.arrived > self.fresh {
            return;
        }
        let before = (self.arrived, self.taken);
        while self.arrived < ack.arrived {
            if self.arrived < self.at {
                self.flying -= self.kept[(self.arrived - self.taken) as usize].len();
            }
            self.arrived += 1;
        }
        self.at = self.at.max(self.arrived);
        while self.taken < ack.taken {
            self.kept_bytes -= self.kept.pop_front().map_or(0, |packet| packet.len());
            self.taken += 1;
        }
        if let Some((_, at)) = self.timed.take_if(|(number, _)| *number < ack.arrived) {
            self.sample(at, now);
        }
        if (self.arrived, self.taken) != before {
            self.in_vain = 0;
            self.ask_at = (!self.kept.is_empty()).then(|| now + self.pace.limit(0));
        }
        self.answered(ack.answers, now);
    }

    /// Bytes that the reader has not taken.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.iter().map(Packet::len).sum()
    }

    fn answered(&mut self, number: u64, now: Instant) {
        let Some(place) = self.questions.iter().position(|question| question.number == number) else { return };
        let question = self.questions[place];
        self.questions.drain(..=place);
        self.sample(question.asked, now);
        if self.kept.is_empty() {
            self.ask_at = None;
        }
        if self.arrived < question.sent {
            // Other answers may be about what is sent again now.
            self.questions.clear();
            (self.at, self.flying, self.timed) = (self.arrived, 0, None);
            self.pace.lost();
        }
    }

    fn sample(&mut self, since: Instant, now: Instant) {
        let was_full = self.most_flying + MOST > self.pace.window();
        self.most_flying = self.flying;
        self.pace.sample(now.saturating_duration_since(since), was_full);
    }
}
