//! When to kill: random moments from a seed, spread over a whole life.

use std::time::Duration;

use model::SplitMix64;

/// Draws the moments, and all else that is random.
const SEED: u64 = 20_261_125;

/// The moments of one victim's kills.
pub(crate) struct Moments {
    life: Duration,
    kills: usize,
    pub(crate) random: SplitMix64,
}

impl Moments {
    pub(crate) fn new(victim: &str, life: Duration) -> Self {
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let seed = number("THRU_KILLS_SEED").unwrap_or(SEED);
        let kills = number("THRU_KILLS").unwrap_or(3) as usize;
        println!("{victim}: {kills} kills, seed {seed}, over {} ms", life.as_millis());
        // Victims die at moments of their own.
        let random =
            SplitMix64::new(victim.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())));
        Self { life, kills, random }
    }

    pub(crate) fn kills(&self) -> usize {
        self.kills
    }

    /// A moment in the part of the life that belongs to this kill, so that no part is left out.
    pub(crate) fn next(&mut self, kill: usize) -> Duration {
        self.life.mul_f64((kill as f64 + self.random.uniform()) / self.kills as f64)
    }

    /// Whether a victim gets SIGTERM first, so that it dies while it restores settings: a quarter of them.
    pub(crate) fn asks_first(&mut self) -> bool {
        self.random.below(4) == 0
    }

    /// A moment in the time that a restoration takes.
    pub(crate) fn restoration(&mut self) -> Duration {
        Duration::from_micros(self.random.below(60_000) as u64)
    }

    /// Another one before `moment`.
    pub(crate) fn earlier(&mut self, moment: Duration) -> Duration {
        moment.mul_f64(self.random.uniform())
    }
}
