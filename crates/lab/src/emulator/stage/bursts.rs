//! Burst loss, by the channel of Gilbert and Elliott ([`Bursts`]). Like random loss, it comes after the link.

use super::{Passage, Stage};
use crate::emulator::counts::DropLocation;
use crate::emulator::random::Random;
use crate::emulator::spec::{Bursts, DirectionSpec};

/// The channel, with the state that the next segment meets.
#[derive(Debug)]
pub(super) struct BurstLoss {
    bursts: Bursts,
    bad: bool,
    random: Random,
}

impl BurstLoss {
    pub(super) fn new(random: Random) -> Self {
        Self { bursts: Bursts::default(), bad: false, random }
    }
}

impl Stage for BurstLoss {
    fn set(&mut self, direction: &DirectionSpec) -> bool {
        self.bursts = direction.bursts;
        // When burst loss ends, the next one begins in the good state.
        self.bad &= direction.bursts.p > 0.0;
        direction.bursts.mean_loss() > 0.0
    }

    fn pass(&mut self, _: &mut Passage) -> Result<(), DropLocation> {
        let Bursts { p, r, h, k } = self.bursts;
        let (survives, turns) = if self.bad { (h, r) } else { (k, p) };
        let lost = !self.random.chance(survives);
        self.bad ^= self.random.chance(turns);
        if lost { Err(DropLocation::Burst) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(bursts: Bursts, seed: u64, n: usize) -> Vec<bool> {
        let mut stage = BurstLoss::new(Random::new(seed));
        assert!(stage.set(&DirectionSpec { bursts, ..DirectionSpec::default() }));
        (0..n).map(|_| stage.pass(&mut Passage::default()).is_err()).collect()
    }

    #[test]
    fn the_share_that_is_lost_is_the_channels() {
        for bursts in [
            Bursts { p: 0.01, r: 0.25, h: 0.0, k: 1.0 },
            Bursts { p: 0.002, r: 0.1, h: 0.3, k: 0.999 },
            Bursts { p: 0.0, r: 1.0, h: 0.0, k: 0.95 },
        ] {
            let n = 2_000_000;
            let share = lost(bursts, 5, n).iter().filter(|lost| **lost).count() as f64 / n as f64;
            let mean = bursts.mean_loss();
            // Neighbours are lost together: the variance is at most that of independent segments times (1 + c) / (1 -
            // c), with the chain's correlation c = 1 - p - r.
            let correlation = (1.0 - bursts.p - bursts.r).max(0.0);
            let deviation = (mean * (1.0 - mean) / n as f64 * (1.0 + correlation) / (1.0 - correlation)).sqrt();
            assert!((share - mean).abs() < 4.0 * deviation, "{share} instead of {mean}");
        }
    }

    #[test]
    fn bursts_are_as_long_as_the_bad_state_lasts() {
        let lost = lost(Bursts { p: 0.01, r: 0.2, ..Bursts::default() }, 6, 1_000_000);
        let begun = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let mean = lost.iter().filter(|lost| **lost).count() as f64 / begun;
        // Geometric with mean 5 and deviation sqrt(20), over some 9,500 bursts.
        assert!((mean - 5.0).abs() < 4.0 * 20.0_f64.sqrt() / begun.sqrt(), "{mean}");
    }
}
