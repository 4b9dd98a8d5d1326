//! A test of whether a host, a pair or a cluster stands out of a matrix, and its finding.

use model::{Estimate, Finding, FindingKind};
use text::{Aside, say};

use super::logs::{LEAST, noun};
use super::variation::Rounds;
use crate::findings::wording::{confidence, plural};
use crate::outcome::Headline;
use crate::stats::two_way::Side;
use crate::stats::{ConfidenceInterval, MeanDifference};

/// A test of a host in a role, of a pair, or of clusters.
#[derive(Debug, Clone)]
pub(super) struct Test {
    pub(super) kind: Headline,
    pub(super) of: Of,
    pub(super) test: MeanDifference,
    pub(super) cells: Vec<u32>,
    /// Pairs of the matrix.
    pub(super) pairs: usize,
    /// The error of its interval, corrected as the test is ([`holm_errors`](crate::stats::holm_errors)); `None` before that.
    pub(super) error: Option<f64>,
    /// Its p-value, if it is not that of `test`.
    pub(super) chance: Option<f64>,
    /// The rounds of a pair that vary more than an interval describes.
    pub(super) rounds: Option<Rounds>,
}

/// What a test is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Of {
    Host {
        name: String,
        role: Side,
    },
    /// A pair that is slow or fast, or one that is so in some of its tests only.
    Pair {
        from: String,
        to: String,
        unstable: bool,
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
    /// The hosts of a cluster; their pairs with other clusters only, if they are `leaving` it.
    Cluster {
        name: String,
        role: Side,
        leaving: bool,
    },
    /// The pairs from the hosts of one cluster to those of another one, or of the same.
    Clusters {
        from: String,
        to: String,
    },
}

impl Of {
    /// Whether its difference is part of the value of the pair of these hosts, in these clusters.
    pub(super) fn covers(&self, hosts: [&str; 2], clusters: [Option<&str>; 2]) -> bool {
        let side = |role: &Side| usize::from(*role == Side::Columns);
        match self {
            Self::Host { name, role } => hosts[side(role)] == name,
            Self::Pair { from, to, .. } => hosts == [from, to],
            Self::Cluster { name, role, leaving } => {
                clusters[side(role)] == Some(name) && (!leaving || clusters[0] != clusters[1])
            }
            Self::Clusters { from, to } => clusters == [Some(from.as_str()), Some(to.as_str())],
            Self::Asymmetry { .. } | Self::Within { .. } => false,
        }
    }

    /// What it is called without a judgement: `n1 as a sender`.
    pub(super) fn subject(&self) -> String {
        match self {
            Self::Host { name, role } | Self::Cluster { name, role, leaving: false } => {
                format!("{name} as a {}", role_name(*role))
            }
            Self::Cluster { name, role, leaving: true } => format!("{name} as a {}", outer_role(*role)),
            Self::Pair { from, to, .. } => format!("{from} → {to}"),
            Self::Clusters { from, to } if from == to => format!("pairs within {from}"),
            Self::Clusters { from, to } => format!("{from} → {to}"),
            Self::Asymmetry { from, to } => format!("{from} → {to} and {to} → {from}"),
            Self::Within { label } => format!("within a {label}"),
        }
    }
}

fn role_name(role: Side) -> &'static str {
    if role == Side::Rows { "sender" } else { "receiver" }
}

/// The role of a cluster whose pairs with others are meant.
fn outer_role(role: Side) -> &'static str {
    if role == Side::Rows { "sender to others" } else { "receiver from others" }
}

impl Test {
    /// The test of a subject with this difference.
    pub(super) fn new(kind: Headline, of: Of, test: MeanDifference, cells: Vec<u32>, pairs: usize) -> Self {
        Self { kind, of, test, cells, pairs, error: None, chance: None, rounds: None }
    }

    /// The interval of the difference, corrected for the number of tests; `level` before that is known.
    fn interval(&self, level: f64) -> Option<ConfidenceInterval> {
        self.test.interval(self.error.map_or(level, |error| 1.0 - error))
    }

    /// Two-sided p-value of the hypothesis that there is no difference, for this test alone.
    pub(super) fn p_value(&self) -> f64 {
        self.chance.unwrap_or_else(|| (2.0 * self.test.p_above(0.0).min(self.test.p_below(0.0))).min(1.0))
    }

    /// Whether the difference is large enough and significant after the correction.
    pub(super) fn stands_out(&self) -> bool {
        self.error.is_some_and(|error| self.p_value() <= error) && self.test.value.abs() >= LEAST.ln()
    }

    /// Whether it is a pair that is slow in some tests only.
    pub(super) fn is_unstable(&self) -> bool {
        matches!(self.of, Of::Pair { unstable: true, .. })
    }

    /// The same pair as one that is slow in some tests only.
    pub(super) fn unstable(&self) -> Self {
        let of = match self.of.clone() {
            Of::Pair { from, to, .. } => Of::Pair { from, to, unstable: true },
            of => of,
        };
        Self { of, ..self.clone() }
    }

    /// Whether values are lower, and so slow unless they are times.
    fn is_slow(&self) -> bool {
        (self.test.value < 0.0) != (self.kind == Headline::RoundTrip)
    }

    /// The finding, with `more` after what stands out.
    pub(super) fn finding(&self, level: f64, number: usize, more: &str) -> Option<Finding> {
        let what = format!("{}{}{more}", self.called(), self.figures(level, "is")?);
        self.stated(level, number, &what, self.finding_kind())
    }

    /// The finding of what differs only while several of its hosts are tested at the same time, with the evidence.
    pub(super) fn together(&self, level: f64, number: usize, evidence: &str) -> Option<Finding> {
        let what = format!("{} only while several of its hosts are tested: {evidence}", self.called());
        self.stated(level, number, &what, self.finding_kind())
    }

    /// The finding of what was `not` confirmed, or not tested again, with the evidence.
    pub(super) fn unconfirmed(&self, level: f64, number: usize, not: &str, evidence: &str) -> Option<Finding> {
        let evidence = if evidence.is_empty() { String::new() } else { format!("; {evidence}") };
        let what = format!("{not}: {}{}{evidence}", self.of.subject(), self.figures(level, "was")?);
        self.stated(level, number, &what, FindingKind::Unconfirmed)
    }

    fn finding_kind(&self) -> FindingKind {
        match self.of {
            Of::Asymmetry { .. } => FindingKind::Asymmetry,
            Of::Within { .. } => FindingKind::Path,
            _ => FindingKind::Outlier,
        }
    }

    /// What stands out, as it is called.
    fn called(&self) -> String {
        let speed = if self.is_slow() { "slow" } else { "fast" };
        match &self.of {
            Of::Host { name, role } | Of::Cluster { name, role, leaving: false } => {
                format!("{name} is {speed} as a {}", role_name(*role))
            }
            Of::Cluster { name, role, leaving: true } => format!("{name} is {speed} as a {}", outer_role(*role)),
            Of::Pair { from, to, unstable: true } => format!("{from} → {to} is unstable"),
            Of::Pair { from, to, unstable: false } => {
                let varies = if self.rounds.is_some() { " and unstable" } else { "" };
                format!("{from} → {to} is {speed} for its hosts{varies}")
            }
            Of::Asymmetry { from, to } => format!("{from} → {to} and {to} → {from} differ"),
            Of::Within { label } => format!("within a {label}"),
            Of::Clusters { from, to } if from == to => format!("pairs within {from} are {speed}"),
            Of::Clusters { from, to } => format!("{from} → {to} is {speed}"),
        }
    }

    /// By how much it differs, in the tense of `is`.
    fn figures(&self, level: f64, is: &str) -> Option<String> {
        let ratio = match &self.rounds {
            Some(rounds) => range(rounds, "round"),
            None => times(self.test.value, self.interval(level)?),
        };
        let by = format!("{ratio} than");
        let are = match (is, self.kind) {
            ("is", Headline::Transactions) => "are",
            (_, Headline::Transactions) => "were",
            _ => is,
        };
        let noun = noun(self.kind);
        Some(match &self.of {
            Of::Host { role, .. } => format!(": its {noun} {are} {by} that of the other {}s", role_name(*role)),
            Of::Pair { .. } => format!(": its {noun} {are} {by} their other pairs suggest"),
            Of::Asymmetry { from, to } => {
                let (one, other) = (format!("{from} → {to}"), format!("{to} → {from}"));
                format!(": the {noun} of {one} {are} {by} that of {other}, beyond what their hosts explain")
            }
            Of::Cluster { leaving: false, .. } => {
                format!(": the {noun} of its hosts {are} {by} that of the other hosts")
            }
            Of::Cluster { role, .. } => {
                let cross = if *role == Side::Rows { "leave" } else { "enter" };
                format!(": the {noun} of pairs that {cross} it {are} {by} that of other pairs between clusters")
            }
            Of::Within { label } => format!(" the {noun} {are} {by} from one {label} to another"),
            Of::Clusters { from, to } if from == to => {
                format!(": their {noun} {are} {by} that of pairs within other clusters")
            }
            Of::Clusters { .. } => {
                format!(": the {noun} of pairs between them {are} {by} that of other pairs between clusters")
            }
        })
    }

    fn statistic(&self) -> &'static str {
        match &self.of {
            Of::Host { .. } => "ratio of the host's effect to the median of the other hosts'",
            Of::Pair { unstable: true, .. } => "ratio of the pair's slowest round to the fit",
            Of::Pair { .. } => "ratio of the pair's value to that of the fit",
            Of::Asymmetry { .. } => "ratio of the pair's directions, each to that of the fit",
            Of::Cluster { leaving: false, .. } => "ratio of the cluster's hosts to the median of the other hosts",
            Of::Cluster { .. } => "ratio of the cluster's pairs with others to other pairs between clusters",
            Of::Within { .. } => "ratio of the pairs within a cluster to pairs between clusters",
            Of::Clusters { .. } => "ratio of the pairs between two clusters to pairs between others",
        }
    }

    fn stated(&self, level: f64, number: usize, what: &str, kind: FindingKind) -> Option<Finding> {
        let interval = self.interval(level)?;
        let method = say!(
            "{} interval, robust fit of rows and columns over {}, corrected for {}",
            confidence(level),
            plural(self.pairs, "pair"),
            plural(number, "comparison"),
        );
        let statement = say!("{what}{}.", Aside(method));
        let (low, high, method) = match &self.rounds {
            Some(rounds) => {
                let [one, other] = rounds.range;
                (one.min(other), one.max(other), "additive fit of rows and columns on logarithms; range of the rounds")
            }
            None => (
                interval.low,
                interval.high,
                "additive fit of rows and columns on logarithms: bisquare from median polish, Student's t",
            ),
        };
        let estimate = Estimate {
            statistic: self.statistic().into(),
            unit: "ratio".into(),
            value: self.test.value.exp(),
            low: Some(low.exp()),
            high: Some(high.exp()),
            confidence: level,
            method: method.into(),
            n: u32::try_from(self.pairs).unwrap_or(u32::MAX),
        };
        let cells = self.cells.clone();
        Some(Finding { kind, statement, estimate: Some(estimate), block: None, cells, comparison: None })
    }
}

/// The logarithm of a ratio with its interval in words, as the ratio of the larger value to the smaller one: `3.1 times (2.9 to 3.3)
/// lower`.
pub(super) fn times(log: f64, interval: ConfidenceInterval) -> String {
    let (value, ends, side) = if log < 0.0 {
        (-log, ConfidenceInterval { low: -interval.high, high: -interval.low }, "lower")
    } else {
        (log, interval, "higher")
    };
    let [value, low, high] = [value, ends.low, ends.high].map(|ln| model::units::three_digits(ln.exp()));
    format!("{value} times ({low} to {high}) {side}")
}

/// The range of the ratios of a pair that varies: `1.01 to 48.2 times lower in 3 rounds`.
pub(super) fn range(rounds: &Rounds, turn: &str) -> String {
    let side = |log: f64| if log < 0.0 { "lower" } else { "higher" };
    let digits = |log: f64| model::units::three_digits(log.abs().exp());
    let [least, most] = rounds.range;
    let start = if side(least) == side(most) { String::new() } else { format!(" times {}", side(least)) };
    let nothing = match rounds.nothing {
        0 => String::new(),
        count => format!(", with nothing at all in {count} of them,"),
    };
    let known = plural(rounds.all, turn);
    format!("{}{start} to {} times {} in {known}{nothing}", digits(least), digits(most), side(most))
}
