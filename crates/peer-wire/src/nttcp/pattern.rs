//! nttcp's pattern for checked data: the generator R250 over bytes.

/// The default seed.
pub const DEFAULT_SEED: &str = "This is a simple init string";

const CELLS: usize = 250;
/// How far the second cell is ahead of the first.
const LAG: usize = 103;

/// The endless sequence that a seed makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadPattern {
    cells: [u8; CELLS],
    place: usize,
}

impl PayloadPattern {
    /// The sequence of `seed`; an empty one counts as [`DEFAULT_SEED`].
    #[must_use]
    pub fn new(seed: &str) -> Self {
        let seed = if seed.is_empty() { DEFAULT_SEED.as_bytes() } else { seed.as_bytes() };
        let mut cells = [0; CELLS];
        let mut w: u32 = 1;
        for (step, letter) in seed.iter().cycle().take(1000).enumerate() {
            w = w * u32::from(*letter) % 1009;
            cells[step % CELLS] = w as u8;
        }
        // Eight cells get different bits, so that no bit is the same in all cells.
        let (mut mask, mut at) = (0xff_u8, 0);
        for _ in 0..8 {
            cells[at] |= mask;
            mask <<= 1;
            cells[at] ^= mask;
            at = (at + 37) % CELLS;
        }
        Self { cells, place: 0 }
    }

    /// The next byte.
    pub fn next_byte(&mut self) -> u8 {
        self.place = (self.place + 1) % CELLS;
        let other = self.cells[(self.place + LAG) % CELLS];
        self.cells[self.place] ^= other;
        self.cells[self.place]
    }

    /// Fills a buffer with the next bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        buffer.fill_with(|| self.next_byte());
    }

    /// How many of the next bytes are not those of `arrived`.
    pub fn mismatches(&mut self, arrived: &[u8]) -> u64 {
        arrived.iter().map(|byte| u64::from(self.next_byte() != *byte)).sum()
    }
}
