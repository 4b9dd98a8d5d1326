//! The schedule on which both ends of NPtcp must agree, and its messages.

/// The pattern of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The transmitter sends and the receiver sends back.
    PingPong,
    /// Both send, then both receive (`-2`).
    Both,
    /// Only the transmitter sends (`-s`).
    Stream,
}

/// The options of a run. Both ends need the same, except the count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizePlan {
    /// The size that `-l` names, in bytes, before its perturbation: that of the first round trips.
    pub first: u64,
    /// All sizes in bytes, in their order.
    pub sizes: Vec<u64>,
    /// The pattern of messages.
    pub mode: Mode,
    /// A new connection after each trial (`-r`); streaming always has it.
    pub reset: bool,
    /// Messages carry numbers that are checked (`-i`).
    pub integrity: bool,
    /// Exchanges of each trial (`-n`), which only the transmitter needs; if absent, as many as take about 0.1
    /// s.
    pub count: Option<u32>,
    /// The sizes that are timed, ascending; empty for all. The transmitter passes the others ([`Passage`](super::Passage)): only the bytes
    /// of their messages take time, not their round trips. For [`Mode::PingPong`] over one connection without checks.
    pub only: Vec<u64>,
}

/// Messages to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Their pattern.
    pub mode: Mode,
    /// Bytes of each.
    pub bytes: u64,
    /// How often.
    pub count: u32,
    /// Whether they contain numbers to check, see [`Exchange::fill`].
    pub integrity: bool,
}

impl SizePlan {
    pub(super) fn resets(&self) -> bool {
        self.reset || self.mode == Mode::Stream
    }

    pub(super) fn trials(&self) -> usize {
        if self.integrity { 1 } else { 3 }
    }

    pub(super) fn is_timed(&self, size: u64) -> bool {
        self.only.is_empty() || self.only.binary_search(&size).is_ok()
    }

    pub(super) fn warm_up(&self, count: u32) -> Exchange {
        Exchange { mode: Mode::PingPong, bytes: self.first, count, integrity: false }
    }

    pub(super) fn exchange(&self, at: usize, count: u32) -> Exchange {
        Exchange { mode: self.mode, bytes: self.sizes[at], count, integrity: self.integrity }
    }
}

impl Exchange {
    /// Fills a message: the letter a, or 0, 1, 2, ... as 32-bit numbers of this host's byte order, as far as whole ones fit.
    pub fn fill(&self, message: &mut [u8]) {
        if self.integrity {
            for (number, word) in (0_u32..).zip(message.chunks_exact_mut(4)) {
                word.copy_from_slice(&number.to_ne_bytes());
            }
        } else {
            message.fill(b'a');
        }
    }

    /// The byte offset of the first wrong number, see [`Exchange::fill`]; `None` if all are right or none is
    /// checked.
    #[must_use]
    pub fn first_wrong(&self, message: &[u8]) -> Option<usize> {
        let wrong = |(number, word): (u32, &[u8])| word != number.to_ne_bytes();
        let at = self.integrity.then(|| (0_u32..).zip(message.chunks_exact(4)).position(wrong))?;
        at.map(|at| at * 4)
    }
}
