//! Memory that blocks are sent from and received into.

use std::ops::{Deref, DerefMut};

/// Page-aligned bytes. The kernel copies whole cache lines faster between buffers with the same alignment, and calls
/// that move pages instead of copying need whole pages.
pub(crate) struct PageBuffer {
    memory: Vec<u8>,
    from: usize,
    len: usize,
}

/// Large enough for every page size of Linux's usual targets.
const PAGE: usize = 1 << 16;

impl PageBuffer {
    /// `len` bytes, all of them `byte`, every page touched.
    pub(crate) fn filled(len: usize, byte: u8) -> Self {
        let memory = vec![byte; len + PAGE];
        let from = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Self { memory, from, len }
    }
}

impl Deref for PageBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.len]
    }
}

impl DerefMut for PageBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_on_a_page_and_has_its_length() {
        for len in [1, 4096, 100_000] {
            let mut buffer = PageBuffer::filled(len, 7);
            buffer[len - 1] = 8;
            assert_eq!((buffer.as_ptr() as usize % PAGE, buffer.len(), buffer[len - 1]), (0, len, 8));
        }
    }
}
