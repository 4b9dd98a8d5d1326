//! A transfer over UDP: a mark, the data, marks of the end.

/// Longest mark in bytes; nttcp sends exactly so many, with any content. Shorter data cannot be distinguished
/// from marks.
pub const MARK_BYTES: usize = 4;

/// What a datagram means to the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The first mark: the clock starts.
    Start,
    /// Data.
    Data,
    /// Another mark: all is over.
    End,
}

/// The receiver's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Datagrams {
    started: bool,
    ended: bool,
    /// Bytes of data.
    pub bytes: u64,
    /// Datagrams of data.
    pub count: u64,
}

impl Datagrams {
    /// Classifies a datagram by its length. After the end mark nothing is counted.
    pub fn take(&mut self, bytes: usize) -> Seen {
        let mark = bytes <= MARK_BYTES;
        match (self.ended, mark, self.started) {
            (true, ..) => Seen::End,
            (_, true, false) => {
                self.started = true;
                Seen::Start
            }
            (_, true, true) => {
                self.ended = true;
                Seen::End
            }
            (_, false, _) => {
                self.bytes = self.bytes.saturating_add(bytes as u64);
                self.count += 1;
                Seen::Data
            }
        }
    }
}
