//! The remaining time of a run.

use std::fmt;

/// Remaining measurements.
#[derive(Debug)]
pub struct Remaining {
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    work: &'static str,
    tool: &'static str,
    /// Remaining measurements.
    rounds: u32,
    /// Duration of one, s: a guess, later the mean of those measured.
    seconds: f64,
    taken: u32,
}

impl Remaining {
    /// From works and tools with their rounds and a guessed duration of one measurement, s.
    pub fn new(plan: Vec<(&'static str, &'static str, u32, f64)>) -> Self {
        let item = |(work, tool, rounds, seconds)| Item { work, tool, rounds, seconds, taken: 0 };
        Self { items: plan.into_iter().map(item).collect() }
    }

    /// Records a finished measurement.
    pub fn took(&mut self, work: &str, tool: &str, seconds: f64) {
        if let Some(item) = self.items.iter_mut().find(|item| item.work == work && item.tool == tool) {
            let taken = f64::from(item.taken);
            item.seconds = if item.taken == 0 { seconds } else { (item.seconds * taken + seconds) / (taken + 1.0) };
            item.taken += 1;
            item.rounds = item.rounds.saturating_sub(1);
        }
    }

    /// Remaining seconds.
    fn seconds(&self) -> f64 {
        self.items.iter().map(|item| item.seconds * f64::from(item.rounds)).sum()
    }
}

impl fmt::Display for Remaining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds();
        if seconds < 90.0 {
            write!(f, "about {seconds:.0} s left")
        } else {
            write!(f, "about {:.0} min left", seconds / 60.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_durations_replace_the_guess() {
        let mut left = Remaining::new(vec![("stream", "thru", 3, 2.0), ("curve", "thru", 3, 30.0)]);
        assert_eq!(left.to_string(), "about 2 min left");
        left.took("curve", "thru", 10.0);
        assert_eq!(left.to_string(), "about 26 s left");
        left.took("curve", "thru", 20.0);
        left.took("curve", "thru", 20.0);
        assert_eq!(left.to_string(), "about 6 s left");
    }
}
