//! How sure each interval of a run must be, so that all of them together are as sure as one should be.

use analysis::stats::values_needed;
use serde::{Deserialize, Serialize};

use crate::work::{Goal, Work};

/// Probability that no interval of a run misses its median.
const TOGETHER: f64 = 0.95;

/// The correction for the number of statements (Bonferroni): each of m intervals has confidence 1 - 0.05 / m.
///
/// Holm's steps are for tests; intervals that hold at once, and a goal against the best of several peers, need the
/// same confidence for each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Confidence {
    /// Of all intervals together.
    pub together: f64,
    /// Intervals: a row of each peer, and a goal on a figure of thru alone.
    pub statements: usize,
    /// Of each interval.
    pub each: f64,
    /// The fewest rounds that give an interval.
    pub rounds_needed: u32,
}

impl Confidence {
    /// For so many statements.
    pub fn of(statements: usize) -> Self {
        let each = 1.0 - (1.0 - TOGETHER) / statements.max(1) as f64;
        let rounds_needed = values_needed(each).and_then(|rounds| u32::try_from(rounds).ok()).unwrap_or(u32::MAX);
        Self { together: TOGETHER, statements, each, rounds_needed }
    }

    /// With its correction, as text.
    pub fn text(&self) -> String {
        format!(
            "all intervals hold together with {} %: {} of them with {:.3} % each (Bonferroni), which takes {} rounds",
            100.0 * self.together,
            self.statements,
            100.0 * self.each,
            self.rounds_needed
        )
    }
}

/// The statements about a work that these peers run; a quick run judges no goals.
pub fn statements(work: &Work, peers: &[&str], quick: bool) -> usize {
    let own = |goal: &&Goal| match goal {
        // It reads the interval of the peer's row.
        Goal::Ratio { .. } => false,
        Goal::NoWorseThan { peer, .. } => peers.contains(peer),
        Goal::Value(_) | Goal::Within { .. } | Goal::Also { .. } => true,
    };
    peers.len() + if quick { 0 } else { work.goals.iter().filter(own).count() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::WORKS;

    #[test]
    fn more_statements_need_more_rounds() {
        // 2^(1-n) <= 0.05 / m.
        for (statements, rounds) in
            [(0, 6), (1, 6), (2, 7), (10, 9), (25, 10), (26, 11), (51, 11), (52, 12), (102, 12), (103, 13)]
        {
            assert_eq!(Confidence::of(statements).rounds_needed, rounds, "{statements}");
        }
        assert!((Confidence::of(100).each - 0.9995).abs() < 1e-12);
        assert_eq!(
            Confidence::of(100).text(),
            "all intervals hold together with 95 %: 100 of them with 99.950 % each (Bonferroni), which takes 12 rounds"
        );
    }

    #[test]
    fn each_peer_and_each_goal_of_thru_alone_is_a_statement() {
        let work = |id: &str| WORKS.iter().find(|work| work.id == id).unwrap();
        assert_eq!(
            statements(work("stream"), &["bare", "iperf3"], false),
            2,
            "ratio goals have no interval of their own"
        );
        assert_eq!(statements(work("curve"), &["NPtcp"], false), 4);
        assert_eq!(statements(work("curve"), &[], false), 2);
        assert_eq!(statements(work("curve"), &["NPtcp"], true), 1);
    }
}
