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
    /// The error of its interval, corrected as the test is ([`holm_errors`]); `None` before that.
    pub(super) error: Option<f64>,
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
    /// The interval of the difference, corrected for the number of tests; `level` before that is known.
    fn interval(&self, level: f64) -> Option<Interval> {
        self.test.interval(self.error.map_or(level, |error| 1.0 - error))
    }

    /// Two-sided p-value of the hypothesis that there is no difference, for this test alone.
    pub(super) fn p_value(&self) -> f64 {
        (2.0 * self.test.p_above(0.0).min(self.test.p_below(0.0))).min(1.0)
    }

    /// Whether the difference is large enough and significant after the correction.
    pub(super) fn stands_out(&self) -> bool {
        self.error.is_some_and(|error| self.p_value() <= error) && self.test.value.abs() >= LEAST.ln()
    }

    /// The finding, with `more` after what stands out.
    pub(super) fn finding(&self, level: f64, number: usize, more: &str) -> Option<Finding> {
        let [called, _, rest] = self.words(level, "is")?;
        self.stated(level, number, &format!("{called}{rest}{more}"), self.finding_kind())
    }

    /// The finding of what was `not` confirmed, or not tested again, with the evidence.
    pub(super) fn unconfirmed(&self, level: f64, number: usize, not: &str, evidence: &str) -> Option<Finding> {
        let [_, subject, rest] = self.words(level, "was")?;
        let evidence = if evidence.is_empty() { String::new() } else { format!("; {evidence}") };
        self.stated(level, number, &format!("{not}: {subject}{rest}{evidence}"), FindingKind::Unconfirmed)
    }

    fn finding_kind(&self) -> FindingKind {
        match self.of {
            Of::Asymmetry { .. } => FindingKind::Asymmetry,
            Of::Within { .. } => FindingKind::Path,
            _ => FindingKind::Outlier,
        }
    }

    /// What stands out as it is called, the same without a judgement, and by how much it differs, in the tense of `is`.
    fn words(&self, level: f64, is: &str) -> Option<[String; 3]> {
        let interval = self.interval(level)?;
        let lower = self.test.value < 0.0;
        let slow = lower != (self.kind == Headline::RoundTrip);
        let speed = if slow { "slow" } else { "fast" };
        let by = format!("{} than", times(self.test.value, interval));
        let are = match (is, self.kind) {
            ("is", Headline::Transactions) => "are",
            (_, Headline::Transactions) => "were",
            _ => is,
        };
        let noun = noun(self.kind);
        let role_name = |role: &Side| if *role == Side::Rows { "sender" } else { "receiver" };
        Some(match &self.of {
            Of::Host { name, role } => [
                format!("{name} is {speed} as a {}", role_name(role)),
                format!("{name} as a {}", role_name(role)),
                format!(": its {noun} {are} {by} that of the other {}s", role_name(role)),
            ],
            Of::Pair { from, to } => [
                format!("{from} → {to} is {speed} for its hosts"),
                format!("{from} → {to}"),
                format!(": its {noun} {are} {by} their other pairs suggest"),
            ],
            Of::Asymmetry { from, to } => {
                let (one, other) = (format!("{from} → {to}"), format!("{to} → {from}"));
                [
                    format!("{one} and {other} differ"),
                    format!("{one} and {other}"),
                    format!(": the {noun} of {one} {are} {by} that of {other}, beyond what their hosts explain"),
                ]
            }
            Of::Cluster { name, role } => [
                format!("{name} is {speed} as a {}", role_name(role)),
                format!("{name} as a {}", role_name(role)),
                format!(": the {noun} of its hosts {are} {by} that of the other hosts"),
            ],
            Of::Within { label } => {
                let where_ = format!("within a {label}");
                [where_.clone(), where_, format!(" the {noun} {are} {by} between two")]
            }
            Of::Clusters { from, to } => [
                format!("{from} → {to} is {speed}"),
                format!("{from} → {to}"),
                format!(": the {noun} of pairs between them {are} {by} their hosts' other pairs suggest"),
            ],
        })
    }

    fn statistic(&self) -> &'static str {
        match &self.of {
            Of::Host { .. } => "ratio of the host's effect to the median of the other hosts'",
            Of::Pair { .. } => "ratio of the pair's value to that of the fit",
            Of::Asymmetry { .. } => "ratio of the pair's directions, each to that of the fit",
            Of::Cluster { .. } => "ratio of the cluster's hosts to the median of the other hosts",
            Of::Within { .. } => "ratio of the pairs within a cluster to those between two",
            Of::Clusters { .. } => "ratio of the pairs between two clusters to the fit",
        }
    }

    fn stated(&self, level: f64, number: usize, what: &str, kind: FindingKind) -> Option<Finding> {
        let interval = self.interval(level)?;
        let statement = format!(
            "{what} ({} interval, robust fit of rows and columns over {}, corrected for {}).",
            confidence(level),
            plural(self.pairs, "pair"),
            plural(number, "comparison"),
        );
        let estimate = Estimate {
            statistic: self.statistic().into(),
            unit: "ratio".into(),
            value: self.test.value.exp(),
            low: Some(interval.low.exp()),
            high: Some(interval.high.exp()),
            confidence: level,
            method: "additive fit of rows and columns on logarithms: bisquare from median polish, Student's t".into(),
            n: u32::try_from(self.pairs).unwrap_or(u32::MAX),
        };
        let cells = self.cells.clone();
        Some(Finding { kind, statement, estimate: Some(estimate), block: None, cells, comparison: None })
    }
}

/// The logarithm of a ratio with its interval in words, as the ratio of the larger value to the smaller one: `3.1 times (2.9 to 3.3)
/// lower`.
pub(super) fn times(log: f64, interval: Interval) -> String {
    let (value, ends, side) = if log < 0.0 {
        (-log, Interval { low: -interval.high, high: -interval.low }, "lower")
    } else {
        (log, interval, "higher")
    };
    let [value, low, high] = [value, ends.low, ends.high].map(|ln| model::units::three_digits(ln.exp()));
    format!("{value} times ({low} to {high}) {side}")
}
