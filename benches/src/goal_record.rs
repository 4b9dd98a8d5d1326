//! A goal and whether it was reached.

use serde::{Deserialize, Serialize};

use crate::verdict::Reached;
use crate::work::Unit;

/// A goal and whether it was reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalRecord {
    /// The goal as text.
    pub goal: String,
    /// The median of the goal's figure; null if there is none.
    pub median: Option<f64>,
    /// Its interval; null for too few rounds.
    pub interval: Option<[f64; 2]>,
    /// Which figure the median and the interval are of.
    pub of: Figure,
    /// Whether it was reached.
    pub reached: Reached,
}

/// The figure of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// Ours divided by a peer's.
    Ratio,
    /// Ours, in the work's unit.
    Value,
    /// A number beside the main one, in the unit that its name ends with.
    Also,
    /// Such a number less a peer's.
    Difference,
}

impl GoalRecord {
    /// The goal and our figure.
    pub fn text(&self, unit: Unit) -> String {
        let number = |value: f64| match self.of {
            Figure::Ratio => format!("{value:.3}"),
            Figure::Value => unit.text(value),
            Figure::Also | Figure::Difference => model::units::three_digits(value),
        };
        let median = self.median.map_or("nothing".to_owned(), number);
        let interval =
            self.interval.map_or(String::new(), |[low, high]| format!(", {} .. {}", number(low), number(high)));
        format!("{}: {median}{interval}", self.goal)
    }
}
