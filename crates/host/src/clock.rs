//! The cost of a clock read.

use std::hint::black_box;
use std::time::Instant;

/// Reads timed together, so that the two reads around a batch matter little.
const READS: u32 = 1_000;
/// Batches; their median is not affected by the few that an interrupt hit.
const BATCHES: usize = 101;

/// Cost of one read of the monotonic clock as the measuring threads read it ([`Instant::now`]), in nanoseconds: the median
/// over 101 batches of 1,000 reads. Takes a few milliseconds.
#[must_use]
pub fn clock_read_cost_ns() -> f64 {
    let mut costs: Vec<f64> = (0..BATCHES).map(|_| batch_ns() / f64::from(READS)).collect();
    costs.sort_unstable_by(f64::total_cmp);
    costs[BATCHES / 2]
}

/// Time of one batch, in nanoseconds.
fn batch_ns() -> f64 {
    let start = Instant::now();
    for _ in 0..READS {
        black_box(Instant::now());
    }
    start.elapsed().as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_read_takes_some_time_but_not_a_millisecond() {
        let cost = clock_read_cost_ns();
        assert!(cost > 0.1 && cost < 1e6, "{cost} ns");
    }
}
