//! Sizes that the transmitter does not time: it sends all their marks and messages without waiting for the answers. NPtcp's receiver reads
//! exactly the bytes that are due, so it need not know.

use std::collections::VecDeque;

use super::{MARK, NetpipeError, PEER};
use crate::WireError;

/// A repeat count of one.
const ONCE: [u8; 4] = 1_u32.to_be_bytes();

/// What is still to be sent and to be received. The bytes received may not wait for those sent: the receiver answers each message before it
/// reads the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    outgoing: VecDeque<Part>,
    incoming: VecDeque<Part>,
    bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    /// The rest of a mark.
    Mark(&'static [u8]),
    /// The rest of a message, bytes.
    Message(u64),
}

impl Passage {
    /// Messages of one size.
    pub(super) fn of_messages(size: u64, count: u32) -> Self {
        let bytes = size * u64::from(count);
        let both = VecDeque::from([Part::Message(bytes)]);
        Self { outgoing: both.clone(), incoming: both, bytes }
    }

    /// Whole sizes, with one message in each trial.
    pub(super) fn of_sizes(sizes: &[u64], trials: usize) -> Self {
        let (mut outgoing, mut incoming) = (VecDeque::new(), VecDeque::new());
        for size in sizes {
            outgoing.extend([Part::Mark(MARK), Part::Mark(&ONCE)]);
            incoming.push_back(Part::Mark(MARK));
            for both in [&mut outgoing, &mut incoming] {
                (0..trials).for_each(|_| both.extend([Part::Mark(MARK), Part::Message(*size)]));
            }
        }
        let bytes = sizes.iter().sum::<u64>() * trials as u64;
        Self { outgoing, incoming, bytes }
    }

    /// Bytes of all its messages in one direction.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends the next bytes to send to `buffer` until it has at least `size` or there are no more.
    pub fn fill(&mut self, buffer: &mut Vec<u8>, size: usize) {
        while buffer.len() < size
            && let Some(part) = self.outgoing.front_mut()
        {
            match part {
                Part::Mark(rest) => buffer.extend_from_slice(std::mem::take(rest)),
                Part::Message(left) => {
                    let now = (size - buffer.len()).min(usize::try_from(*left).unwrap_or(usize::MAX));
                    buffer.resize(buffer.len() + now, b'a');
                    *left -= now as u64;
                }
            }
            if part.is_over() {
                self.outgoing.pop_front();
            }
        }
    }

    /// Takes received bytes. Those of messages are not looked at, as in NPtcp.
    ///
    /// # Errors
    /// A mark is not what it must be, or more came than was expected.
    pub fn take(&mut self, mut input: &[u8]) -> Result<(), WireError> {
        let error = |what: NetpipeError| PEER.error("between two sizes", what);
        while !input.is_empty() {
            let Some(part) = self.incoming.front_mut() else { return Err(error(NetpipeError::NoExchangeDue)) };
            let now = match part {
                Part::Mark(rest) => {
                    let now = rest.len().min(input.len());
                    let (due, later) = rest.split_at(now);
                    if &input[..now] != due {
                        return Err(error(NetpipeError::Mark { expected: MARK, received: input[..now].into() }));
                    }
                    *rest = later;
                    now
                }
                Part::Message(left) => {
                    let now = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= now as u64;
                    now
                }
            };
            input = &input[now..];
            if part.is_over() {
                self.incoming.pop_front();
            }
        }
        Ok(())
    }

    /// Whether all was received. Nothing is left to be sent then.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.incoming.is_empty()
    }

    /// The most bytes that may be received now.
    #[must_use]
    pub fn due(&self) -> u64 {
        let of = |part: &Part| match part {
            Part::Mark(rest) => rest.len() as u64,
            Part::Message(left) => *left,
        };
        self.incoming.iter().map(of).sum()
    }
}

impl Part {
    fn is_over(&self) -> bool {
        matches!(self, Self::Mark([]) | Self::Message(0))
    }
}
