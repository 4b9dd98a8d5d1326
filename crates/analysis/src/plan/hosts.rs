//! The findings on hosts, clusters of hosts and pairs that stand out of a matrix ([`StandingOut`]).

use std::collections::{BTreeMap, BTreeSet};

use model::{Finding, FindingKind, Outcome, Retest, RunHeader, RunKind, median};
use text::{Aside, say};

use super::logs::{LEAST, noun};
use super::matrix::Matrix;
use super::outlier::{Of, Test};
use super::retest::{Judgement, judgements};
use super::standing::StandingOut;
use crate::findings::wording::plural;

/// The hosts, clusters and pairs that stand out in a plan's matrices, or an imported one's: one matrix for each statistic, the mean over
/// all other factors. Empty where each host has fewer than three partners, so with fewer than four hosts that measure each other.
/// If the plan tests again what stands out, only what `retests` confirm is called slow or fast.
#[must_use]
pub fn of_hosts(header: &RunHeader, outcomes: &[Outcome], retests: &[Retest]) -> Vec<Finding> {
    let level = header.stopping.confidence;
    let out = StandingOut::of(header, outcomes);
    let judged = judgements(header, &out, retests);
    let judgement = |test: &Test| judged.as_ref().and_then(|judged| judged.of(test));
    let word = |test: &Test, number: usize, more: &str| match judgement(test) {
        None => test.finding(level, number, more),
        Some(Judgement::Confirmed(evidence)) => test.finding(level, number, &format!("{more}; {evidence}")),
        Some(Judgement::Together(evidence)) => test.together(level, number, evidence),
        Some(Judgement::Unstable(evidence)) => test.unstable().finding(level, number, &format!("{more}; {evidence}")),
        // A few of its rounds were slow, as some are by chance.
        Some(Judgement::NotConfirmed(_) | Judgement::NotRetested) if test.is_unstable() => None,
        Some(Judgement::NotConfirmed(evidence)) => test.unconfirmed(level, number, "not confirmed", evidence),
        Some(Judgement::NotRetested) => test.unconfirmed(level, number, "not re-tested", ""),
    };
    let mut findings: Vec<Finding> = out.groups.iter().filter_map(|test| word(test, out.groups_number, "")).collect();
    for (number_of, matrix) in out.matrices.iter().enumerate() {
        let own = || {
            let own = out.tests.iter().filter(|(of, test)| *of == number_of && !out.is_told(number_of, &test.of));
            own.map(|(_, test)| test)
        };
        let asymmetric: BTreeSet<[&str; 2]> = out
            .tests
            .iter()
            .filter_map(|(of, test)| match &test.of {
                Of::Asymmetry { from, to } if *of == number_of => Some([from.as_str(), to.as_str()]),
                _ => None,
            })
            .collect();
        let is_unconfirmed =
            |test: &&Test| matches!(judgement(test), Some(Judgement::NotConfirmed(_) | Judgement::NotRetested));
        let is_unstable = |test: &Test| test.is_unstable() || matches!(judgement(test), Some(Judgement::Unstable(_)));
        let named: Vec<(&Test, bool)> =
            own().filter(|test| !is_unconfirmed(test)).map(|test| (test, is_unstable(test))).collect();
        for (test, more) in with_directions(&named, matrix, &asymmetric) {
            findings.extend(word(test, out.number, &more));
        }
        findings.extend(own().filter(is_unconfirmed).filter_map(|test| word(test, out.number, "")));
        if header.kind == RunKind::Mesh {
            findings.extend(not_significant(matrix, &out, number_of));
        }
    }
    findings
}

/// A matrix's tests that are findings, each with what is to be said of the other direction: one for each host in a role, and one for
/// each pair, with both of its directions. Each has whether it is a pair that is slow in some tests only.
fn with_directions<'a>(
    tests: &[(&'a Test, bool)],
    matrix: &Matrix,
    asymmetric: &BTreeSet<[&str; 2]>,
) -> Vec<(&'a Test, String)> {
    let alike: BTreeMap<[&str; 2], (bool, bool)> = tests
        .iter()
        .filter_map(|(test, unstable)| match &test.of {
            Of::Pair { from, to, .. } => Some(([from.as_str(), to.as_str()], (test.test.value < 0.0, *unstable))),
            _ => None,
        })
        .collect();
    let places = matrix.pairs.places();
    let mut said = Vec::new();
    for (test, _) in tests {
        let Of::Pair { from, to, .. } = &test.of else {
            said.push((*test, String::new()));
            continue;
        };
        let (from, to) = (from.as_str(), to.as_str());
        let back = alike.get(&[to, from]);
        let same = back.is_some() && back == alike.get(&[from, to]);
        // If two directions stand out to the same side, the first finding reports both.
        if same && places.get(&[to, from]) < places.get(&[from, to]) {
            continue;
        }
        let more = if same {
            format!("; {to} → {from} is as well")
        } else if back.is_none() && (asymmetric.contains(&[from, to]) || asymmetric.contains(&[to, from])) {
            format!("; {to} → {from} is not: the pair is asymmetric")
        } else {
            String::new()
        };
        said.push((*test, more));
    }
    said
}

/// How many pairs tables show with a difference of [`LEAST`] or more that nothing of what stands out is about.
fn not_significant(matrix: &Matrix, out: &StandingOut, number: usize) -> Option<Finding> {
    let pairs = &matrix.pairs;
    let own = || out.tests.iter().filter(|(of, _)| *of == number).map(|(_, test)| test);
    let hosts: Vec<&Test> = own().filter(|test| matches!(test.of, Of::Host { .. })).collect();
    let said: BTreeSet<u32> = own()
        .filter(|test| !test.is_unstable() && !matches!(test.of, Of::Host { .. }))
        .flat_map(|test| &test.cells)
        .copied()
        .collect();
    let left: Vec<f64> = (0..pairs.values.len())
        .map(|place| {
            let of_hosts = hosts.iter().filter(|test| test.of.covers(pairs.names(place), pairs.ends(place)));
            let of_hosts: f64 = of_hosts.map(|test| test.test.value).sum();
            pairs.behind[place].shown - matrix.of_clusters(place) - of_hosts
        })
        .collect();
    let middle = median(&left)?;
    let places: Vec<usize> = (0..left.len())
        .filter(|place| (left[*place] - middle).abs() >= LEAST.ln())
        .filter(|place| !pairs.behind[*place].cells.iter().any(|cell| said.contains(cell)))
        .collect();
    let most = *places.iter().max_by(|a, b| (left[**a] - middle).abs().total_cmp(&(left[**b] - middle).abs()))?;
    let [from, to] = pairs.names(most);
    let side = if left[most] < middle { "lower" } else { "higher" };
    let differ = if places.len() == 1 { "differs" } else { "differ" };
    let statement = say!(
        "not significant: {} of {} {differ} in {} by a factor of 1.25 or more, {from} → {to} the most, {} times {side}{}.",
        places.len(),
        plural(left.len(), "pair"),
        noun(pairs.kind),
        model::units::three_digits((left[most] - middle).abs().exp()),
        Aside("than the median, less what outlying hosts and clusters explain".into()),
    );
    let cells = places.iter().flat_map(|place| pairs.behind[*place].cells.iter().copied()).collect();
    Some(Finding { kind: FindingKind::Unconfirmed, statement, estimate: None, block: None, cells, comparison: None })
}

#[cfg(test)]
mod tests {
    use super::super::table::testing::{PlanRun, planned};
    use super::*;
    use model::{FindingKind, Pattern, SplitMix64};
    use proptest::prelude::*;

    const HOSTS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

    /// Rounds between the first `n` hosts, whose values have this standard deviation between pairs and, within them, between trials.
    fn run(
        n: usize,
        seed: u64,
        [pairs, trials]: [f64; 2],
        pattern: Pattern,
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
        of_hosts(&run.header, &run.outcomes, &[]).into_iter().map(|finding| finding.statement.plain()).collect()
    }

    #[test]
    fn a_receiver_ten_times_slower_is_named_with_its_ratio() {
        let run = run(5, 1, [0.03, 0.05], Pattern::Stream, |_, to| if to == "c" { 0.1 } else { 1.0 });
        let found = of_hosts(&run.header, &run.outcomes, &[]);
        let [only] = &found[..] else { panic!("{found:?}") };
        assert_eq!((only.kind, only.cells.len()), (FindingKind::Outlier, 4));
        assert!(
            only.statement.plain().starts_with("c is slow as a receiver: its goodput is "),
            "{}",
            only.statement.plain()
        );
        assert!(
            only.statement.plain().contains(") lower than that of the other receivers (95 % interval"),
            "{}",
            only.statement.plain()
        );
        assert!(
            only.statement.plain().ends_with("over 20 pairs, corrected for 30 comparisons)."),
            "{}",
            only.statement.plain()
        );
        let estimate = only.estimate.as_ref().unwrap();
        assert!(estimate.low.unwrap() < 0.1 && 0.1 < estimate.high.unwrap(), "{estimate:?}");
    }

    #[test]
    fn a_slow_host_has_a_finding_in_both_roles_and_its_pairs_have_none() {
        let slow = |from: &str, to: &str| if from == "d" || to == "d" { 0.25 } else { 1.0 };
        let found = statements(&run(6, 2, [0.05, 0.05], Pattern::Stream, slow));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("d is slow as a sender") && found[1].starts_with("d is slow as a receiver"));
    }

    #[test]
    fn one_slow_pair_is_named_and_neither_of_its_hosts() {
        let slow = |from: &str, to: &str| if (from, to) == ("a", "b") { 0.2 } else { 1.0 };
        let found = statements(&run(5, 3, [0.05, 0.05], Pattern::Stream, slow));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a → b is slow for its hosts: its goodput is "), "{found:?}");
    }

    #[test]
    fn a_pair_whose_own_trials_scatter_is_unstable_and_not_slow() {
        let mut random = SplitMix64::new(8);
        let run = planned(&[("from", &HOSTS[..6]), ("to", &HOSTS[..6])], Pattern::Stream, 3, |levels, round| {
            let scatters = levels["from"] == "a" && levels["to"] == "b";
            let own = if scatters { [0.2, 1.0, 0.3][round as usize] } else { 1.0 };
            1e9 * own * (0.03 * random.normal()).exp()
        });
        let found = of_hosts(&run.header, &run.outcomes, &[]);
        let [only] = &found[..] else { panic!("{found:?}") };
        assert!(only.statement.plain().starts_with("a → b is unstable: its goodput is 1.0"), "{only:?}");
        let range = " times lower in 3 rounds than their other pairs suggest (95 % interval";
        assert!(only.statement.plain().contains(range) && only.kind == FindingKind::Outlier, "{only:?}");
        let estimate = only.estimate.as_ref().unwrap();
        assert!((0.15..0.25).contains(&estimate.value) && estimate.high.unwrap() > 0.9, "{estimate:?}");
    }

    #[test]
    fn what_a_mesh_shows_and_nothing_explains_is_counted() {
        // The mean of the rounds is shown, and one of them was disturbed in four pairs: not significant.
        let mut run = planned(&[("from", &HOSTS), ("to", &HOSTS)], Pattern::Stream, 3, |levels, round| {
            let is_disturbed =
                ["a", "c"].contains(&levels["from"].as_str()) && ["b", "e"].contains(&levels["to"].as_str());
            if is_disturbed && round == 1 { 0.1e9 } else { 1e9 }
        });
        run.header.kind = RunKind::Mesh;
        let found = of_hosts(&run.header, &run.outcomes, &[]);
        let [only] = &found[..] else { panic!("{found:?}") };
        assert_eq!((only.kind, only.cells.len()), (FindingKind::Unconfirmed, 4));
        let start = "not significant: 4 of 56 pairs differ in goodput by a factor of 1.25 or more, ";
        assert!(
            only.statement.plain().starts_with(start) && only.statement.plain().contains(", 1.43 times lower (than"),
            "{only:?}"
        );
    }

    #[test]
    fn long_round_trips_are_slow_and_short_ones_are_not() {
        let far = |from: &str, to: &str| if from == "b" || to == "b" { 4.0 } else { 1.0 };
        let found = statements(&run(6, 4, [0.05, 0.01], Pattern::Pingpong, far));
        assert!(
            found[0].starts_with("b is slow as a sender: its RTT is ") && found[0].contains(" higher than"),
            "{found:?}"
        );
        let near = statements(&run(6, 4, [0.05, 0.01], Pattern::Pingpong, |_, to| if to == "b" { 0.25 } else { 1.0 }));
        assert!(near[0].starts_with("b is fast as a receiver") && near[0].contains(" lower than"), "{near:?}");
    }

    #[test]
    fn other_factors_are_averaged() {
        let hosts: &[&str] = &HOSTS[..4];
        let mut random = SplitMix64::new(9);
        let run =
            planned(&[("mss", &["1448", "8948"]), ("from", hosts), ("to", hosts)], Pattern::Stream, 3, |levels, _| {
                let jumbo = if levels["mss"] == "8948" { 3.0 } else { 1.0 };
                let slow = if levels["from"] == "a" { 0.1 } else { 1.0 };
                1e9 * jumbo * slow * (0.05 * random.normal()).exp()
            });
        let found = of_hosts(&run.header, &run.outcomes, &[]);
        assert!(found.len() == 1 && found[0].statement.plain().starts_with("a is slow as a sender"), "{found:?}");
        assert_eq!(found[0].cells.len(), 6, "both sizes to three hosts");
    }

    #[test]
    fn three_hosts_and_hosts_with_two_partners_have_no_finding() {
        let slow = |_: &str, to: &str| if to == "c" { 0.1 } else { 1.0 };
        assert_eq!(statements(&run(3, 5, [0.01, 0.01], Pattern::Stream, slow)), [""; 0]);
        let mut few = run(4, 5, [0.01, 0.01], Pattern::Stream, slow);
        few.outcomes[0].estimate = None;
        assert_eq!(statements(&few), [""; 0]);
        // Of six hosts one without values is left out.
        let mut one_dead = run(6, 5, [0.02, 0.01], Pattern::Stream, slow);
        for (cell, outcome) in one_dead.header.cells.iter().zip(&mut one_dead.outcomes) {
            let dead = cell.levels.values().any(|name| name == "f");
            outcome.estimate = outcome.estimate.take().filter(|_| !dead);
        }
        let found = statements(&one_dead);
        assert!(found.len() == 1 && found[0].contains("over 20 pairs"), "{found:?}");
        assert_eq!(of_hosts(&RunHeader::default(), &few.outcomes, &[]), [], "no plan");
    }

    #[test]
    fn even_matrices_have_a_finding_in_few_runs_of_a_hundred() {
        // Pairs differ by a quarter, so that the least ratio keeps nothing out; noise alone must not pass.
        let wrong = |n: usize| {
            let of =
                |seed: &u64| !statements(&run(n, 1_000 + seed, [0.25, 0.1], Pattern::Stream, |_, _| 1.0)).is_empty();
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
            let run = run(n, seed, [spread, 0.05], Pattern::Stream, |from, _| if from == name { 1.0 / ratio } else { 1.0 });
            let found = statements(&run);
            let start = format!("{name} is slow as a sender");
            prop_assert!(found.iter().any(|one| one.starts_with(&start)), "{found:?}");
        }
    }
}
