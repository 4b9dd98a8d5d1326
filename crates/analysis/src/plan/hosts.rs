//! Hosts and pairs that stand out of a matrix of hosts.
//!
//! On the logarithm of the values a matrix is a level, plus an effect of each sender, plus one of each receiver, plus what is the pair's
//! own ([`TwoWay`]). A host stands out if its effect differs from the median effect of the other hosts in that role, and a pair if its
//! value differs from what its two hosts' other pairs make expect: by [`LEAST`] or more, and significantly by Student's t on the spread
//! of the pairs, which is not taken to be below that of the trials. Holm's correction is over all hosts and pairs of the run's matrices.

use std::collections::BTreeMap;

use model::{Cell, Estimate, Factor, Finding, FindingKind, Outcome, RunHeader};

use super::logs::noun;
use super::{KINDS, dimensions, of_kind, part};
use crate::findings::wording::{confidence, plural};
use crate::outcome::Headline;
use crate::stats::two_way::{OwnError, Side, TableValue, TwoWay};
use crate::stats::{Interval, MeanDifference, holm, mean, median, t_quantile};

/// Fewest pairs with a value that a host must have in a role. With two, no majority says which pair is wrong.
const LEAST_PARTNERS: usize = 3;
/// Smallest difference that is reported, as a ratio.
const LEAST: f64 = 1.25;

/// The hosts and the pairs that stand out in a plan's matrices, or an imported one's: one matrix for each statistic, the mean over all
/// other factors. Empty where each host has fewer than three partners, so with fewer than four hosts that measure each other.
#[must_use]
pub fn of_hosts(header: &RunHeader, outcomes: &[Outcome]) -> Vec<Finding> {
    let level = header.stopping.confidence;
    let tests: Vec<Test> =
        KINDS.into_iter().filter_map(|kind| Matrix::new(header, outcomes, kind)).flat_map(Matrix::tests).collect();
    let p: Vec<f64> =
        tests.iter().map(|one| (2.0 * one.test.p_above(0.0).min(one.test.p_below(0.0))).min(1.0)).collect();
    let number = tests.len();
    let stand_out = tests
        .into_iter()
        .zip(holm(&p))
        .filter(|(one, p)| *p <= 1.0 - level && one.test.value.abs() >= LEAST.ln())
        .map(|(one, _)| one);
    stand_out.filter_map(|one| one.finding(level, number)).collect()
}

/// A test of a host in a role, or of a pair.
struct Test {
    kind: Headline,
    of: Of,
    test: MeanDifference,
    cells: Vec<u32>,
    /// Pairs of the matrix.
    pairs: usize,
}

enum Of {
    Host { name: String, role: Side },
    Pair { from: String, to: String },
}

/// A matrix of hosts.
struct Matrix {
    kind: Headline,
    hosts: [Vec<String>; 2],
    values: Vec<TableValue>,
    /// The cells behind each value, and its error by the trials.
    behind: Vec<(Vec<u32>, OwnError)>,
    fit: TwoWay,
}

/// The cells of each pair that have a value, with its logarithm and the standard error of that.
type Pairs<'a> = BTreeMap<(&'a str, &'a str), Vec<(&'a Cell, f64, OwnError)>>;

/// The pairs of hosts that have too few partners in their role; `None` if there are no such pairs.
fn without_majority<'a>(pairs: &Pairs<'a>) -> Option<Vec<(&'a str, &'a str)>> {
    let few = |(from, to): &(&str, &str)| {
        let senders = pairs.keys().filter(|(_, other)| other == to).count();
        senders.min(pairs.keys().filter(|(other, _)| other == from).count()) < LEAST_PARTNERS
    };
    Some(pairs.keys().filter(|pair| few(pair)).copied().collect()).filter(|few: &Vec<_>| !few.is_empty())
}

impl Matrix {
    fn new(header: &RunHeader, outcomes: &[Outcome], kind: Headline) -> Option<Self> {
        let plan = header.plan.as_ref()?;
        let cells = of_kind(&header.cells, kind);
        let rest: Vec<String> = dimensions(plan, &cells)
            .into_iter()
            .filter(|name| ![Factor::FROM, Factor::TO].contains(&name.as_str()))
            .collect();
        let mut pairs: Pairs<'_> = BTreeMap::new();
        for cell in &cells {
            let (Some(from), Some(to)) = (cell.levels.get(Factor::FROM), cell.levels.get(Factor::TO)) else { continue };
            let own = outcomes.iter().find(|outcome| outcome.cell == cell.id);
            let known = own.and_then(|outcome| outcome.estimate.as_ref()).filter(|estimate| estimate.value > 0.0);
            if let Some(estimate) = known {
                pairs.entry((from, to)).or_default().push((cell, estimate.value.ln(), own_error(estimate)));
            }
        }
        // Pairs are comparable only with the same levels of all other factors.
        let mut all: Vec<_> = cells.iter().map(|cell| part(cell, &rest)).collect();
        all.sort();
        all.dedup();
        pairs.retain(|_, own| own.len() == all.len());
        while let Some(few) = without_majority(&pairs) {
            pairs.retain(|pair, _| !few.contains(pair));
        }
        let kept = |names: &[String], has: &dyn Fn(&(&str, &str), &str) -> bool| -> Vec<String> {
            names.iter().filter(|name| pairs.keys().any(|pair| has(pair, name))).cloned().collect()
        };
        let hosts = [kept(&plan.from, &|(from, _), name| *from == name), kept(&plan.to, &|(_, to), name| *to == name)];
        let place = |names: &[String], name: &str| names.iter().position(|other| other == name);
        let mut values = Vec::new();
        let mut behind = Vec::new();
        for ((from, to), own) in &pairs {
            let logs: Vec<f64> = own.iter().map(|(_, log, _)| *log).collect();
            let squares: f64 = own.iter().map(|(.., error)| error.standard_error.powi(2)).sum();
            let error = OwnError {
                standard_error: squares.sqrt() / own.len() as f64,
                df: own.iter().map(|(.., error)| error.df).sum(),
            };
            let (Some(row), Some(column)) = (place(&hosts[0], from), place(&hosts[1], to)) else { continue };
            values.push(TableValue { row, column, value: mean(&logs)? });
            behind.push((own.iter().map(|(cell, ..)| cell.id).collect::<Vec<u32>>(), error));
        }
        let errors: Vec<f64> = behind.iter().map(|(_, error)| error.standard_error).collect();
        let fit = TwoWay::new(&values, median(&errors).unwrap_or(0.0))?;
        Some(Self { kind, hosts, values, behind, fit })
    }

    fn tests(self) -> Vec<Test> {
        let mut tests = Vec::new();
        let pairs = self.values.len();
        let mut add = |of, test, cells| tests.push(Test { kind: self.kind, of, test, cells, pairs });
        for (role, names) in [Side::Rows, Side::Columns].into_iter().zip(&self.hosts) {
            for (at, name) in names.iter().enumerate() {
                let own = self.values.iter().zip(&self.behind).filter(|(value, _)| role.of(value) == at);
                let cells = own.flat_map(|(_, (cells, _))| cells).copied().collect();
                add(Of::Host { name: name.clone(), role }, self.fit.effect(role, at), cells);
            }
        }
        for (index, (value, (cells, error))) in self.values.iter().zip(&self.behind).enumerate() {
            let [from, to] = [&self.hosts[0][value.row], &self.hosts[1][value.column]].map(String::clone);
            add(Of::Pair { from, to }, self.fit.residual(index, value, *error), cells.clone());
        }
        tests
    }
}

/// The standard error of the logarithm of an estimate, by its interval relative to its value; 0 without one.
fn own_error(estimate: &Estimate) -> OwnError {
    let df = f64::from(estimate.n.max(2) - 1);
    let width = estimate.low.zip(estimate.high).map(|(low, high)| (high - low) / estimate.value);
    let quantile = t_quantile(0.5 + estimate.confidence / 2.0, df);
    let standard_error = width.zip(quantile).map_or(0.0, |(width, quantile)| width / (2.0 * quantile));
    OwnError { standard_error, df }
}

impl Test {
    fn finding(self, level: f64, number: usize) -> Option<Finding> {
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
        let what = match &self.of {
            Of::Host { name, role } => {
                let role = if *role == Side::Rows { "sender" } else { "receiver" };
                format!("{name} is {speed} as a {role}: its {noun} {} {by} that of the other {role}s", are(self.kind))
            }
            Of::Pair { from, to } => {
                format!(
                    "{from} → {to} is {speed} for its hosts: its {noun} {} {by} their other pairs suggest",
                    are(self.kind)
                )
            }
        };
        let statement = format!(
            "{what} ({} interval, robust fit of rows and columns over {}, corrected for {number} comparisons).",
            confidence(level),
            plural(self.pairs, "pair"),
        );
        let statistic = match self.of {
            Of::Host { .. } => "ratio of the host's effect to the median of the other hosts'",
            Of::Pair { .. } => "ratio of the pair's value to that of the fit",
        };
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
        let kind = FindingKind::Outlier;
        Some(Finding { kind, statement, estimate: Some(estimate), block: None, cells: self.cells, comparison: None })
    }
}

fn are(kind: Headline) -> &'static str {
    if kind == Headline::Transactions { "are" } else { "is" }
}

#[cfg(test)]
mod tests {
    use super::super::table::testing::{PlanRun, planned};
    use super::*;
    use model::SplitMix64;
    use proptest::prelude::*;

    const HOSTS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

    /// Rounds between the first `n` hosts, whose values have this standard deviation between pairs and, within them, between trials.
    fn run(
        n: usize,
        seed: u64,
        [pairs, trials]: [f64; 2],
        pattern: &str,
        factor: impl Fn(&str, &str) -> f64,
    ) -> PlanRun {
        let mut random = SplitMix64::new(seed);
        let mut own: BTreeMap<(String, String), f64> = BTreeMap::new();
        planned(&[("from", &HOSTS[..n]), ("to", &HOSTS[..n])], pattern, 4, |levels, _| {
            let (from, to) = (levels["from"].clone(), levels["to"].clone());
            let factor = factor(&from, &to);
            let pair = *own.entry((from, to)).or_insert_with(|| pairs * random.normal());
            1e9 * factor * (pair + trials * random.normal()).exp()
        })
    }

    fn statements(run: &PlanRun) -> Vec<String> {
        of_hosts(&run.header, &run.outcomes).into_iter().map(|finding| finding.statement).collect()
    }

    #[test]
    fn a_receiver_ten_times_slower_is_named_with_its_ratio() {
        let run = run(5, 1, [0.03, 0.05], "stream", |_, to| if to == "c" { 0.1 } else { 1.0 });
        let found = of_hosts(&run.header, &run.outcomes);
        let [only] = &found[..] else { panic!("{found:?}") };
        assert_eq!((only.kind, only.cells.len()), (FindingKind::Outlier, 4));
        assert!(only.statement.starts_with("c is slow as a receiver: its goodput is "), "{}", only.statement);
        assert!(
            only.statement.contains(") lower than that of the other receivers (95 % interval"),
            "{}",
            only.statement
        );
        assert!(only.statement.ends_with("over 20 pairs, corrected for 30 comparisons)."), "{}", only.statement);
        let estimate = only.estimate.as_ref().unwrap();
        assert!(estimate.low.unwrap() < 0.1 && 0.1 < estimate.high.unwrap(), "{estimate:?}");
    }

    #[test]
    fn a_slow_host_has_a_finding_in_both_roles_and_its_pairs_have_none() {
        let slow = |from: &str, to: &str| if from == "d" || to == "d" { 0.25 } else { 1.0 };
        let found = statements(&run(6, 2, [0.05, 0.05], "stream", slow));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("d is slow as a sender") && found[1].starts_with("d is slow as a receiver"));
    }

    #[test]
    fn one_slow_pair_is_named_and_neither_of_its_hosts() {
        let slow = |from: &str, to: &str| if (from, to) == ("a", "b") { 0.2 } else { 1.0 };
        let found = statements(&run(5, 3, [0.05, 0.05], "stream", slow));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a → b is slow for its hosts: its goodput is "), "{found:?}");
    }

    #[test]
    fn a_pair_whose_own_trials_scatter_is_not_slow() {
        let mut random = SplitMix64::new(8);
        let mut turn = 0;
        let run = planned(&[("from", &HOSTS[..6]), ("to", &HOSTS[..6])], "stream", 3, |levels, _| {
            let scatters = levels["from"] == "a" && levels["to"] == "b";
            turn += usize::from(scatters);
            let own = if scatters { [0.2, 1.0, 0.3][turn % 3] } else { 1.0 };
            1e9 * own * (0.03 * random.normal()).exp()
        });
        assert_eq!(statements(&run), [""; 0]);
    }

    #[test]
    fn long_round_trips_are_slow_and_short_ones_are_not() {
        let far = |from: &str, to: &str| if from == "b" || to == "b" { 4.0 } else { 1.0 };
        let found = statements(&run(6, 4, [0.05, 0.01], "pingpong", far));
        assert!(
            found[0].starts_with("b is slow as a sender: its RTT is ") && found[0].contains(" higher than"),
            "{found:?}"
        );
        let near = statements(&run(6, 4, [0.05, 0.01], "pingpong", |_, to| if to == "b" { 0.25 } else { 1.0 }));
        assert!(near[0].starts_with("b is fast as a receiver") && near[0].contains(" lower than"), "{near:?}");
    }

    #[test]
    fn other_factors_are_averaged() {
        let hosts: &[&str] = &HOSTS[..4];
        let mut random = SplitMix64::new(9);
        let run = planned(&[("mss", &["1448", "8948"]), ("from", hosts), ("to", hosts)], "stream", 3, |levels, _| {
            let jumbo = if levels["mss"] == "8948" { 3.0 } else { 1.0 };
            let slow = if levels["from"] == "a" { 0.1 } else { 1.0 };
            1e9 * jumbo * slow * (0.05 * random.normal()).exp()
        });
        let found = of_hosts(&run.header, &run.outcomes);
        assert!(found.len() == 1 && found[0].statement.starts_with("a is slow as a sender"), "{found:?}");
        assert_eq!(found[0].cells.len(), 6, "both sizes to three hosts");
    }

    #[test]
    fn three_hosts_and_hosts_with_two_partners_have_no_finding() {
        let slow = |_: &str, to: &str| if to == "c" { 0.1 } else { 1.0 };
        assert_eq!(statements(&run(3, 5, [0.01, 0.01], "stream", slow)), [""; 0]);
        let mut few = run(4, 5, [0.01, 0.01], "stream", slow);
        few.outcomes[0].estimate = None;
        assert_eq!(statements(&few), [""; 0]);
        // Of six hosts one without values is left out.
        let mut one_dead = run(6, 5, [0.02, 0.01], "stream", slow);
        for (cell, outcome) in one_dead.header.cells.iter().zip(&mut one_dead.outcomes) {
            let dead = cell.levels.values().any(|name| name == "f");
            outcome.estimate = outcome.estimate.take().filter(|_| !dead);
        }
        let found = statements(&one_dead);
        assert!(found.len() == 1 && found[0].contains("over 20 pairs"), "{found:?}");
        assert_eq!(of_hosts(&RunHeader::default(), &few.outcomes), [], "no plan");
    }

    #[test]
    fn even_matrices_have_a_finding_in_few_runs_of_a_hundred() {
        // Pairs differ by a quarter, so that the least ratio keeps nothing out; noise alone must not pass.
        let wrong = |n: usize| {
            let of = |seed: &u64| !statements(&run(n, 1_000 + seed, [0.25, 0.1], "stream", |_, _| 1.0)).is_empty();
            (0..200).filter(of).count()
        };
        let counts = [4, 5, 6, 8].map(wrong);
        assert!(counts.iter().all(|count| *count <= 16), "{counts:?} of 200 with 4, 5, 6, 8 hosts");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_host_far_beyond_the_spread_is_always_found(
            seed: u64, n in 4usize..8, slow in 0usize..4, ratio in 8.0f64..40.0, spread in 0.0f64..0.1
        ) {
            let name = HOSTS[slow];
            let run = run(n, seed, [spread, 0.05], "stream", |from, _| if from == name { 1.0 / ratio } else { 1.0 });
            let found = statements(&run);
            let start = format!("{name} is slow as a sender");
            prop_assert!(found.iter().any(|one| one.starts_with(&start)), "{found:?}");
        }
    }
}
