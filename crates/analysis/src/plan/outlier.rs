//! A test of whether a host, a pair or a cluster stands out of a matrix, and its finding.

use model::{Estimate, Finding, FindingKind};

use super::logs::noun;
use crate::findings::wording::{confidence, plural};
use crate::outcome::Headline;
use crate::stats::two_way::Side;
use crate::stats::{Interval, MeanDifference};

/// Smallest difference that is reported, as a ratio.
pub(super) const LEAST: f64 = 1.25;

/// A test of a host in a role, of a pair, or of clusters.
pub(super) struct Test {
    pub(super) kind: Headline,
    pub(super) of: Of,
    pub(super) test: MeanDifference,
    pub(super) cells: Vec<u32>,
    /// Pairs of the matrix.
    pub(super) pairs: usize,
}

/// What a test is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Of {
    Host {
        name: String,
        role: Side,
    },
    Pair {
        from: String,
        to: String,
    },
    /// The difference of both directions of a pair, the first one's less the second one's.
    Asymmetry {
        from: String,
        to: String,
    },
    /// All pairs within a cluster, against those between two.
    Within {
        label: String,
    },
    Cluster {
        name: String,
        role: Side,
    },
    /// The pairs from the hosts of one cluster to those of another one.
    Clusters {
        from: String,
        to: String,
    },
}

impl Test {
    /// The finding, with `more` after what stands out.
    pub(super) fn finding(&self, level: f64, number: usize, more: &str) -> Option<Finding> {
        let interval = self.test.interval(level)?;
        let lower = self.test.value < 0.0;
        // As the ratio of the larger value to the smaller one, whichever is the host's.
        let (value, ends) = if lower {
            (-self.test.value, Interval { low: -interval.high, high: -interval.low })
        } else {
            (self.test.value, interval)
        };
        let [value, low, high] = [value, ends.low, ends.high].map(|ln| model::units::three_digits(ln.exp()));
        let slow = lower != (self.kind == Headline::RoundTrip);
        let speed = if slow { "slow" } else { "fast" };
        let (noun, side) = (noun(self.kind), if lower { "lower" } else { "higher" });
        let by = format!("{value} times ({low} to {high}) {side} than");
        let are = are(self.kind);
        let role_name = |role: &Side| if *role == Side::Rows { "sender" } else { "receiver" };
        let (what, statistic) = match &self.of {
            Of::Host { name, role } => (
                format!("{name} is {speed} as a {0}: its {noun} {are} {by} that of the other {0}s", role_name(role)),
                "ratio of the host's effect to the median of the other hosts'",
            ),
            Of::Pair { from, to } => (
                format!("{from} → {to} is {speed} for its hosts: its {noun} {are} {by} their other pairs suggest"),
                "ratio of the pair's value to that of the fit",
            ),
            Of::Asymmetry { from, to } => {
                let (one, other) = (format!("{from} → {to}"), format!("{to} → {from}"));
                (
                    format!(
                        "{one} and {other} differ: the {noun} of {one} {are} {by} that of {other}, beyond what their hosts explain"
                    ),
                    "ratio of the pair's directions, each to that of the fit",
                )
            }
            Of::Cluster { name, role } => (
                format!(
                    "{name} is {speed} as a {0}: the {noun} of its hosts {are} {by} that of the other hosts",
                    role_name(role)
                ),
                "ratio of the cluster's hosts to the median of the other hosts",
            ),
            Of::Within { label } => (
                format!("within a {label} the {noun} {are} {by} between two"),
                "ratio of the pairs within a cluster to those between two",
            ),
            Of::Clusters { from, to } => (
                format!(
                    "{from} → {to} is {speed}: the {noun} of pairs between them {are} {by} their hosts' other pairs suggest"
                ),
                "ratio of the pairs between two clusters to the fit",
            ),
        };
        let statement = format!(
            "{what}{more} ({} interval, robust fit of rows and columns over {}, corrected for {}).",
            confidence(level),
            plural(self.pairs, "pair"),
            plural(number, "comparison"),
        );
        let estimate = Estimate {
            statistic: statistic.into(),
            unit: "ratio".into(),
            value: self.test.value.exp(),
            low: Some(interval.low.exp()),
            high: Some(interval.high.exp()),
            confidence: level,
            method: "additive fit of rows and columns on logarithms: bisquare from median polish, Student's t".into(),
            n: u32::try_from(self.pairs).unwrap_or(u32::MAX),
        };
        let kind = match self.of {
            Of::Asymmetry { .. } => FindingKind::Asymmetry,
            Of::Within { .. } => FindingKind::Path,
            _ => FindingKind::Outlier,
        };
        Some(Finding {
            kind,
            statement,
            estimate: Some(estimate),
            block: None,
            cells: self.cells.clone(),
            comparison: None,
        })
    }
}

fn are(kind: Headline) -> &'static str {
    if kind == Headline::Transactions { "are" } else { "is" }
}
