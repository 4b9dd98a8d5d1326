//! The counts of a running test over its time.

use model::{FlowReading, Reading};

use super::header::Received;

/// Most moments that are kept of a test; of a longer one every second, every fourth and so on.
const MOST_MOMENTS: usize = 1_000;

/// The counts of a running test, once a second.
#[derive(Debug, Default)]
pub(super) struct Moments {
    pub(super) kept: Vec<Moment>,
    /// One reading in this many is kept.
    stride: u32,
}

/// The counts at one time.
#[derive(Debug)]
pub(super) struct Moment {
    /// Since the test began, ns.
    pub(super) at_ns: u64,
    pub(super) flows: Vec<FlowReading>,
    /// What each stream received, in the order of opening.
    pub(super) received: Vec<Received>,
}

impl Moments {
    /// A reading of the engine, and what the streams' headers say then.
    pub(super) fn add(&mut self, reading: &Reading, received: Vec<Received>) {
        self.stride = self.stride.max(1);
        if reading.number.is_multiple_of(self.stride) {
            self.kept.push(Moment { at_ns: reading.at_ns, flows: reading.flows.clone(), received });
        }
        if self.kept.len() >= MOST_MOMENTS {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.stride = self.stride.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_test_has_longer_intervals() {
        let mut moments = Moments::default();
        for number in 1..=5_000 {
            moments.add(&Reading { number, at_ns: u64::from(number), ..Reading::default() }, Vec::new());
        }
        let kept: Vec<u64> = moments.kept.iter().map(|moment| moment.at_ns).collect();
        assert!((400..1_000).contains(&kept.len()), "{}", kept.len());
        assert!(kept.windows(2).all(|pair| pair[1] - pair[0] == 8), "{kept:?}");
    }
}
