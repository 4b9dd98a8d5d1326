//! Conditions of alerts, such as `goodput<500Mbit`.

use std::fmt;
use std::num::ParseFloatError;
use std::str::FromStr;

use model::{BitRate, Nanos, Outcome, Ratio, ValueError};
use text::Said;
use thiserror::Error;

/// A figure that is followed over the passes of a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FollowedFigure {
    /// Goodput, bit/s.
    Goodput,
    /// Median round trip, ns.
    Rtt,
    /// 99th percentile of the round trips, ns.
    RttP99,
    /// Transactions per second.
    Transactions,
    /// Share of the datagrams that were lost.
    Loss,
}

impl FollowedFigure {
    /// Every figure with its name and unit.
    pub const ALL: [(&'static str, Self, &'static str); 5] = [
        ("goodput", Self::Goodput, "bit/s"),
        ("rtt", Self::Rtt, "ns"),
        ("rtt.p99", Self::RttP99, "ns"),
        ("transactions", Self::Transactions, "1/s"),
        ("loss", Self::Loss, ""),
    ];

    fn entry(self) -> (&'static str, Self, &'static str) {
        Self::ALL.into_iter().find(|(_, figure, _)| *figure == self).unwrap_or(Self::ALL[0])
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// The unit of its values; empty for a share.
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.entry().2
    }

    /// Whether its changes are looked for: the others follow from these.
    #[must_use]
    pub fn is_followed(self) -> bool {
        matches!(self, Self::Goodput | Self::Rtt)
    }

    /// The figures of an outcome.
    pub(super) fn all_of(outcome: &Outcome) -> Vec<(Self, f64)> {
        let summary = &outcome.summary;
        let lost = summary.packets_lost.zip(summary.packets_sent.filter(|sent| *sent > 0));
        let round_trips = !matches!(crate::outcome::Headline::of(&outcome.spec), crate::outcome::Headline::Goodput);
        let values = [
            (Self::Goodput, summary.goodput_bps.filter(|_| !round_trips)),
            (Self::Rtt, summary.rtt_p50_ns),
            (Self::RttP99, summary.rtt_p99_ns),
            (Self::Transactions, summary.transactions_per_s),
            (Self::Loss, lost.map(|(lost, sent)| lost as f64 / sent as f64)),
        ];
        values.into_iter().filter_map(|(figure, value)| Some((figure, value?))).collect()
    }
}

/// A condition that raises an alert.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub(super) figure: FollowedFigure,
    /// Above the limit, or below it.
    pub(super) above: bool,
    pub(super) limit: Limit,
    text: String,
}

/// What a value is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit {
    /// A value in the figure's unit.
    Value(f64),
    /// This share of the pair's usual value less or more.
    Share(f64),
}

/// A condition that cannot be as it is, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum ConditionError {
    /// No figure with its limit.
    #[error(
        "'{text}' is not a condition: write a figure ({}), < or >, and a limit, such as goodput<500Mbit, or drop>20% or rise>50% of the \
         usual value",
        FollowedFigure::ALL.map(|(name, ..)| name).join(", ")
    )]
    NoCondition {
        /// What the user wrote.
        text: String,
    },
    /// A limit that is not of the figure's kind.
    #[error("'{text}': {error}")]
    Limit {
        /// What the user wrote.
        text: String,
        /// What is wrong with the limit.
        error: ValueError,
    },
    /// A limit that is not a number.
    #[error("'{text}': {error}")]
    Number {
        /// What the user wrote.
        text: String,
        /// What is wrong with the limit.
        error: ParseFloatError,
    },
    /// A change by nothing.
    #[error("'{text}': the limit must be more than 0")]
    Zero {
        /// What the user wrote.
        text: String,
    },
    /// A drop of all or more.
    #[error("'{text}': a drop must be less than 100 %")]
    WholeDrop {
        /// What the user wrote.
        text: String,
    },
    /// A change below a share.
    #[error("'{text}': use {change}> instead of {change}<")]
    Below {
        /// What the user wrote.
        text: String,
        /// The change: "drop" or "rise".
        change: &'static str,
    },
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    /// Reads `goodput<500Mbit`, `rtt.p99>2ms`, `loss>1%`; `drop>20%` is of the goodput, `rise>50%` of the median round trip, against the
    /// pair's usual value.
    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let written = || text.to_owned();
        let wrong = || ConditionError::NoCondition { text: written() };
        let of_value = |error| ConditionError::Limit { text: written(), error };
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (name, above, limit) = (text[..at].trim(), text.as_bytes()[at] == b'>', text[at + 1..].trim());
        let share = || match limit.parse::<Ratio>().map_err(of_value)? {
            Ratio(share) if share > 0.0 => Ok(share),
            _ => Err(ConditionError::Zero { text: written() }),
        };
        let own = |figure, above, limit| Self {
            figure,
            above,
            limit,
            text: text.split_whitespace().collect::<Vec<_>>().concat(),
        };
        match (name, above) {
            ("drop", true) => match share()? {
                share if share < 1.0 => Ok(own(FollowedFigure::Goodput, false, Limit::Share(-share))),
                _ => Err(ConditionError::WholeDrop { text: written() }),
            },
            ("rise", true) => Ok(own(FollowedFigure::Rtt, true, Limit::Share(share()?))),
            ("drop", false) => Err(ConditionError::Below { text: written(), change: "drop" }),
            ("rise", false) => Err(ConditionError::Below { text: written(), change: "rise" }),
            _ => {
                let known = FollowedFigure::ALL.into_iter().find(|(known, ..)| *known == name);
                let (_, figure, _) = known.ok_or_else(wrong)?;
                let value = match figure {
                    FollowedFigure::Goodput => limit.parse::<BitRate>().map_err(of_value)?.0 as f64,
                    FollowedFigure::Rtt | FollowedFigure::RttP99 => limit.parse::<Nanos>().map_err(of_value)?.0 as f64,
                    FollowedFigure::Transactions => {
                        limit.parse().map_err(|error| ConditionError::Number { text: written(), error })?
                    }
                    FollowedFigure::Loss => limit.parse::<Ratio>().map_err(of_value)?.0,
                };
                if value.is_finite() && value >= 0.0 {
                    Ok(own(figure, above, Limit::Value(value)))
                } else {
                    Err(wrong())
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_with_their_units() {
        let of = |text: &str| text.parse::<Condition>().unwrap();
        let goodput = of("goodput < 500Mbit");
        assert_eq!((goodput.figure, goodput.above, goodput.limit), (FollowedFigure::Goodput, false, Limit::Value(5e8)));
        assert_eq!(goodput.to_string(), "goodput<500Mbit");
        assert_eq!((of("rtt.p99>2ms").figure, of("rtt.p99>2ms").limit), (FollowedFigure::RttP99, Limit::Value(2e6)));
        assert_eq!((of("drop>20%").above, of("drop>20%").limit), (false, Limit::Share(-0.2)));
        assert_eq!((of("rise>50%").figure, of("rise>50%").limit), (FollowedFigure::Rtt, Limit::Share(0.5)));
        assert_eq!(of("loss>1%").limit, Limit::Value(0.01));
    }

    #[test]
    fn mistakes_name_what_is_possible() {
        let of = |text: &str| text.parse::<Condition>().unwrap_err().to_string();
        assert!(of("speed<1").contains("goodput, rtt, rtt.p99, transactions, loss"), "{}", of("speed<1"));
        assert!(of("goodput").contains("is not a condition"));
        assert!(of("goodput<2MB").contains("'goodput<2MB': "), "{}", of("goodput<2MB"));
        assert!(of("drop<20%").contains("use drop> instead of drop<"));
        assert!(of("drop>100%").contains("less than 100 %"));
        assert!(of("drop>0").contains("more than 0"));
        assert!(of("transactions>nan").contains("is not a condition"));
    }
}
