//! The one message of netperf's control connection.

/// Bytes of a block since 2.6.0; 2.4 and 2.5 have 256.
pub const BLOCK_BYTES: usize = 656;

/// A block: words of 32 bits, big-endian, and texts, by their offsets. Other bytes are zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Block(pub [u8; BLOCK_BYTES]);

impl std::fmt::Debug for Block {
    /// The words that are not zero, with their offsets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = (0..BLOCK_BYTES).step_by(4).map(|at| (at, self.word(at))).filter(|(_, word)| *word != 0);
        f.debug_map().entries(words).finish()
    }
}

impl Block {
    pub(super) fn new(kind: u32) -> Self {
        let mut block = Self([0; BLOCK_BYTES]);
        block.put(0, kind);
        block
    }

    pub(super) fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    pub(super) fn signed(&self, at: usize) -> i32 {
        self.word(at) as i32
    }

    pub(super) fn float(&self, at: usize) -> f32 {
        f32::from_bits(self.word(at))
    }

    /// Two words, the high one first.
    pub(super) fn wide(&self, at: usize) -> u64 {
        u64::from(self.word(at)) << 32 | u64::from(self.word(at + 4))
    }

    /// A text of fewer than `room` bytes, up to its NUL. Other bytes than printable ASCII become `?`, so the
    /// text keeps its length.
    pub(super) fn text(&self, at: usize, room: usize) -> String {
        let bytes = self.0[at..at + room - 1].iter().take_while(|byte| **byte != 0);
        bytes.map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '?' }).collect()
    }

    pub(super) fn put(&mut self, at: usize, word: u32) {
        self.0[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }

    pub(super) fn put_signed(&mut self, at: usize, word: i32) {
        self.put(at, word as u32);
    }

    pub(super) fn put_wide(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_be_bytes());
    }

    /// A text, cut so that a NUL ends it.
    pub(super) fn put_text(&mut self, at: usize, room: usize, text: &str) {
        let bytes = &text.as_bytes()[..text.len().min(room - 1)];
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}
