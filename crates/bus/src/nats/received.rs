//! What has arrived at this end of a stream and waits for its reader, without I/O and clock.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

use super::pace::WINDOW;
use super::packet::{Ack, Packet};
use super::sent::MOST_MESSAGES;

/// The messages of one direction at their receiver. It holds no more than a sender may send; who sends more breaks the stream.
#[derive(Debug)]
pub(super) struct Received {
    arrived: u64,
    taken: u64,
    /// What the reader has not taken; `None` is the end.
    waiting: VecDeque<Option<Bytes>>,
    waiting_bytes: usize,
    has_ended: bool,
    /// An acknowledgement is due, and what it answers.
    due: bool,
    answers: u64,
    /// Bytes that were taken since the last one.
    freed: usize,
}

/// The other end sends more than it may.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Greedy;

impl Received {
    /// Nothing has arrived but the stream's beginning, which is acknowledged if it is the other end's.
    pub(super) fn new(acknowledges: bool) -> Self {
        Self {
            arrived: 1,
            taken: 1,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            has_ended: false,
            due: acknowledges,
            answers: 0,
            freed: 0,
        }
    }

    /// Takes a message; `None` is the end. One that is not the next is ignored: its sender will ask.
    ///
    /// # Errors
    /// [`Greedy`] if a sender that respects the window would not have sent it.
    pub(super) fn arrive(&mut self, number: u64, data: Option<Bytes>) -> Result<(), Greedy> {
        if number.saturating_sub(self.taken) >= MOST_MESSAGES as u64 {
            return Err(Greedy);
        }
        if number != self.arrived || self.has_ended {
            return Ok(());
        }
        let bytes = data.as_ref().map_or(0, Bytes::len);
        if self.waiting_bytes + bytes > WINDOW {
            return Err(Greedy);
        }
        self.waiting_bytes += bytes;
        self.has_ended = data.is_none();
        self.waiting.push_back(data);
        self.arrived += 1;
        self.due = true;
        Ok(())
    }

    /// The other end asks what has arrived.
    pub(super) fn asked(&mut self, number: u64) {
        (self.answers, self.due) = (number, true);
    }

    /// The stream's beginning has come again: its acknowledgement was lost.
    pub(super) fn opened_again(&mut self) {
        self.due = true;
    }

    /// What the reader takes next; an inner `None` is the end.
    pub(super) fn front(&self) -> Option<Option<&Bytes>> {
        self.waiting.front().map(Option::as_ref)
    }

    /// The reader has taken so many bytes of the front, or the end.
    pub(super) fn took(&mut self, bytes: usize) {
        if let Some(Some(data)) = self.waiting.front_mut() {
            data.advance(bytes);
            self.waiting_bytes -= bytes;
            self.freed += bytes;
            if !data.is_empty() {
                return;
            }
        }
        self.taken += u64::from(self.waiting.pop_front().is_some());
        self.due |= self.waiting.is_empty() || self.freed >= WINDOW / 4;
    }

    /// Whether nothing more will come, and all of it was taken.
    pub(super) fn is_over(&self) -> bool {
        self.has_ended && self.waiting.is_empty() && !self.due
    }

    /// The acknowledgement, if one is due.
    pub(super) fn transmit(&mut self) -> Option<Packet> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        self.freed = 0;
        let answers = std::mem::take(&mut self.answers);
        Some(Packet::Ack(Ack { arrived: self.arrived, taken: self.taken, answers }))
    }

    /// Bytes and messages that are held.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        (self.waiting.iter().flatten().map(Bytes::len).sum(), self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever a sender does while the reader is blocked, no more is held than the window.
        #[test]
        fn who_ignores_the_window_fills_no_memory(sizes in proptest::collection::vec(1_usize..32_000, 1..200), skip in 1_u64..3) {
            let mut received = Received::new(true);
            let mut is_broken = false;
            for (number, size) in (1..).step_by(skip as usize).zip(sizes) {
                is_broken |= received.arrive(number, Some(vec![0; size].into())).is_err();
                let (bytes, messages) = received.held();
                prop_assert!(bytes <= WINDOW && messages <= MOST_MESSAGES);
                prop_assert!(is_broken || number <= MOST_MESSAGES as u64);
            }
        }
    }

    #[test]
    fn a_message_has_one_acknowledgement_if_the_reader_is_quick() {
        let mut received = Received::new(false);
        assert_eq!(received.transmit(), None);
        received.arrive(1, Some(vec![0; 9].into())).unwrap();
        received.took(9);
        let ack = |arrived, taken, answers| Some(Packet::Ack(Ack { arrived, taken, answers }));
        assert_eq!((received.transmit(), received.transmit()), (ack(2, 2, 0), None));
        // A blocked reader has a second one, once it has taken all.
        received.arrive(2, Some(vec![0; 9].into())).unwrap();
        assert_eq!(received.transmit(), ack(3, 2, 0));
        received.asked(7);
        assert_eq!(received.transmit(), ack(3, 2, 7));
        received.took(4);
        assert_eq!(received.transmit(), None);
        received.took(5);
        assert_eq!(received.transmit(), ack(3, 3, 0));
        received.arrive(3, None).unwrap();
        received.arrive(4, Some(vec![0; 9].into())).unwrap();
        assert_eq!((received.front(), received.is_over()), (Some(None), false));
        received.took(0);
        assert_eq!((received.transmit(), received.front(), received.is_over()), (ack(4, 4, 0), None, true));
    }
}
