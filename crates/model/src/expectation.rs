//! What the user of `thru check` expects of a path: `out>=900M,rtt<=5ms`.

use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use text::{Rate, Said, Text, Time};
use thiserror::Error;

use crate::{BitRate, Nanos, Ratio, ValueError};

/// A figure of a check that can be expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PathFigure {
    /// Goodput to HOST, bit/s.
    Out,
    /// Goodput from HOST, bit/s.
    Back,
    /// Round trip without load, ns.
    Rtt,
    /// What the load adds to the round trip, in the worse direction, ns.
    Bloat,
    /// Share of the datagrams that are lost, in the worse direction.
    Loss,
    /// Jitter of the datagrams, in the worse direction, ns.
    Jitter,
}

impl PathFigure {
    /// All of them, in the order of the screen.
    pub const ALL: [Self; 6] = [Self::Out, Self::Back, Self::Rtt, Self::Bloat, Self::Loss, Self::Jitter];

    /// Its name in expectations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::Back => "back",
            Self::Rtt => "rtt",
            Self::Bloat => "bloat",
            Self::Loss => "loss",
            Self::Jitter => "jitter",
        }
    }

    fn read(self, text: &str) -> Result<f64, ValueError> {
        Ok(match self {
            Self::Out | Self::Back => text.parse::<BitRate>()?.0 as f64,
            Self::Rtt | Self::Bloat | Self::Jitter => text.parse::<Nanos>()?.0 as f64,
            Self::Loss => text.parse::<Ratio>()?.0,
        })
    }

    /// A value with its unit.
    #[must_use]
    pub fn shown(self, value: f64) -> Text {
        match self {
            Self::Out | Self::Back => Rate(value).say(),
            Self::Rtt | Self::Bloat | Self::Jitter => Time(value).say(),
            Self::Loss => Ratio(value).to_string().into(),
        }
    }
}

/// A bound of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Expectation {
    /// The figure.
    pub figure: PathFigure,
    /// The value is the least that is accepted, not the most.
    pub at_least: bool,
    /// The bound: bit/s, ns, or a share.
    pub value: f64,
}

/// What is wrong with an expectation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpectationError {
    /// No bound.
    #[error("'{0}' has no bound: write {EXAMPLE}")]
    NoBound(String),
    /// Another figure.
    #[error("'{0}' is not a figure of a check: write out, back, rtt, bloat, loss or jitter")]
    Figure(String),
    /// Its value.
    #[error("{0}")]
    Value(#[from] ValueError),
}

const EXAMPLE: &str = "FIGURE>=VALUE or FIGURE<=VALUE, such as out>=900M or rtt<=5ms";

impl FromStr for Expectation {
    type Err = ExpectationError;

    fn from_str(text: &str) -> Result<Self, ExpectationError> {
        let (name, at_least, value) = match (text.split_once(">="), text.split_once("<=")) {
            (Some((name, value)), None) => (name, true, value),
            (None, Some((name, value))) => (name, false, value),
            _ => return Err(ExpectationError::NoBound(text.trim().to_owned())),
        };
        let figure = PathFigure::ALL.into_iter().find(|figure| figure.name() == name.trim());
        let figure = figure.ok_or_else(|| ExpectationError::Figure(name.trim().to_owned()))?;
        Ok(Self { figure, at_least, value: figure.read(value.trim())? })
    }
}

impl Expectation {
    /// Whether a value is as expected.
    #[must_use]
    pub fn is_met_by(&self, value: f64) -> bool {
        if self.at_least { value >= self.value } else { value <= self.value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_has_the_unit_of_its_figure() {
        let read = |text: &str| text.parse::<Expectation>().unwrap();
        assert_eq!(read("out>=900M"), Expectation { figure: PathFigure::Out, at_least: true, value: 9e8 });
        assert_eq!(read(" rtt <= 5ms"), Expectation { figure: PathFigure::Rtt, at_least: false, value: 5e6 });
        assert_eq!(read("loss<=0.1%"), Expectation { figure: PathFigure::Loss, at_least: false, value: 0.001 });
        assert!(read("out>=900M").is_met_by(9e8) && !read("out>=900M").is_met_by(8.9e8));
        assert!(read("jitter<=1ms").is_met_by(1e6) && !read("jitter<=1ms").is_met_by(1.1e6));
    }

    #[test]
    fn a_mistake_is_answered_with_what_to_write() {
        let wrong = |text: &str| text.parse::<Expectation>().unwrap_err().to_string();
        assert_eq!(wrong("out=900M"), format!("'out=900M' has no bound: write {EXAMPLE}"));
        assert!(wrong("up>=1M").starts_with("'up' is not a figure of a check: write out, back, "));
        assert!(wrong("rtt<=5Mbit").starts_with("'5Mbit' is not a time"));
    }
}
