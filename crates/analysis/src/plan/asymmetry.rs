//! Pairs of hosts whose two directions differ.

use model::{Cell, Factor, Finding, FindingKind, Outcome, RunHeader};
use text::{Aside, Text, say};

use super::effects::{Effect, cells_at, change, findings, others, over_rounds};
use super::logs::{LEAST, Logs, noun};
use super::{KINDS, dimensions, of_kind};
use crate::findings::wording::{plural, value};
use crate::outcome::Headline;
use crate::stats::mean;

/// Most pairs without an interval that are named.
const MOST_UNTESTED: usize = 5;

/// Both directions of a pair, compared over all other factors.
#[derive(Debug, Clone)]
struct Directions {
    kind: Headline,
    what: Text,
    rounds: Vec<f64>,
    cells: Vec<u32>,
    /// The logarithm of the ratio of both directions' means.
    ratio: Option<f64>,
}

/// The pairs whose directions differ significantly, those that differ most first, then those that differ by 1.25 times or more and not
/// significantly. They are a question of their own, so their correction counts the pairs and no effects of other factors.
pub(super) fn asymmetries(header: &RunHeader, outcomes: &[Outcome], logs: &Logs) -> Vec<Finding> {
    let mut found = Vec::new();
    for pairs in by_kind(header, outcomes, logs) {
        let least = pairs.iter().map(|pair| pair.rounds.len()).min().unwrap_or(0);
        if least < 3 {
            found.extend(without_intervals(pairs, &[], "fewer than three rounds, so no interval"));
            continue;
        }
        let effect = |pair: Directions| Effect {
            kind: FindingKind::Asymmetry,
            what: pair.what,
            rounds: pair.rounds,
            cells: pair.cells,
            note: None,
        };
        let mut tested = findings(pairs.iter().cloned().map(effect).collect(), header.stopping.confidence);
        let size = |finding: &Finding| finding.estimate.as_ref().map_or(0.0, |ratio| ratio.value.ln().abs());
        tested.sort_by(|a, b| size(b).total_cmp(&size(a)));
        let rest = without_intervals(pairs, &tested, &format!("not significant over {}", plural(least, "round")));
        found.extend(tested.into_iter().chain(rest));
    }
    found
}

/// The asymmetric pairs of a matrix from elsewhere, which has no rounds: those with a ratio of 1.25 or more, except where `outliers`
/// name one of their hosts already.
pub(super) fn of_import(header: &RunHeader, outcomes: &[Outcome], outliers: &[Finding]) -> Vec<Finding> {
    let pairs = by_kind(header, outcomes, &Logs::new());
    let outliers: Vec<Finding> =
        outliers.iter().filter(|finding| finding.kind == FindingKind::Outlier).cloned().collect();
    pairs.into_iter().flat_map(|pairs| without_intervals(pairs, &outliers, "no rounds, so no interval")).collect()
}

fn by_kind(header: &RunHeader, outcomes: &[Outcome], logs: &Logs) -> Vec<Vec<Directions>> {
    let Some(plan) = &header.plan else { return Vec::new() };
    let of = |kind| {
        let cells = of_kind(&header.cells, kind);
        let names = dimensions(plan, &cells);
        directions(&cells, &names, kind, outcomes, logs)
    };
    KINDS.into_iter().map(of).filter(|pairs| !pairs.is_empty()).collect()
}

fn directions(cells: &[&Cell], names: &[String], kind: Headline, outcomes: &[Outcome], logs: &Logs) -> Vec<Directions> {
    let rest = others(names, &[Factor::FROM, Factor::TO]);
    let ends = |cell: &Cell| Some((cell.levels.get(Factor::FROM)?.clone(), cell.levels.get(Factor::TO)?.clone()));
    let mut pairs: Vec<(String, String)> = cells.iter().filter_map(|cell| ends(cell)).collect();
    pairs.retain(|(from, to)| from < to);
    pairs.sort();
    pairs.dedup();
    let mut found = Vec::new();
    for (a, b) in pairs {
        let forward = cells_at(cells, &rest, &[(Factor::FROM, &a), (Factor::TO, &b)]);
        let reverse = cells_at(cells, &rest, &[(Factor::FROM, &b), (Factor::TO, &a)]);
        let sums: Vec<Vec<(f64, u32)>> =
            forward.iter().filter_map(|(rest, cell)| Some(vec![(1.0, *cell), (-1.0, *reverse.get(rest)?)])).collect();
        if sums.is_empty() {
            continue;
        }
        let figure = |side: usize| {
            let ids: Vec<u32> = sums.iter().map(|sum| sum[side].1).collect();
            let own = outcomes.iter().filter(|outcome| ids.contains(&outcome.cell));
            mean(&own.filter_map(|outcome| Some(outcome.estimate.as_ref()?.value)).collect::<Vec<f64>>())
        };
        let (there, back) = (figure(0), figure(1));
        let shown = |mean: Option<f64>| mean.map_or_else(|| "no value".into(), |mean| value(mean, kind.unit()));
        let ratio = there.zip(back).map(|(there, back)| (there / back).ln()).filter(|ln| ln.is_finite());
        found.push(Directions {
            kind,
            what: say!("{a} → {b} has {}, {b} → {a} has {}: {}", shown(there), shown(back), noun(kind)),
            rounds: over_rounds(&sums, logs),
            cells: sums.iter().flatten().map(|(_, cell)| *cell).collect(),
            ratio,
        });
    }
    found
}

/// The pairs with a ratio of [`LEAST`] or more, the most different ones first; of many, how many more there are.
fn without_intervals(pairs: Vec<Directions>, told: &[Finding], why: &str) -> Vec<Finding> {
    let is_told =
        |pair: &Directions| told.iter().any(|finding| pair.cells.iter().any(|cell| finding.cells.contains(cell)));
    let size = |pair: &Directions| pair.ratio.map_or(0.0, f64::abs);
    let mut large: Vec<Directions> =
        pairs.into_iter().filter(|pair| size(pair) >= LEAST.ln() && !is_told(pair)).collect();
    large.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let more = large.split_off(large.len().min(MOST_UNTESTED));
    let asymmetry = |statement, cells| Finding {
        kind: FindingKind::Asymmetry,
        statement,
        estimate: None,
        block: None,
        cells,
        comparison: None,
    };
    let named = |pair: Directions| {
        let statement =
            say!("{} {}{}.", pair.what, change(pair.ratio.unwrap_or(0.0), None), Aside(why.to_owned().into()));
        asymmetry(statement, pair.cells)
    };
    let rest = more.first().map(|first| {
        let statement = say!(
            "{} more differ in {} between the directions by a factor of 1.25 or more{}.",
            plural(more.len(), "pair"),
            noun(first.kind),
            Aside(why.to_owned().into())
        );
        asymmetry(statement, more.iter().flat_map(|pair| pair.cells.iter().copied()).collect())
    });
    large.into_iter().map(named).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::super::table::testing::planned;
    use super::super::{of_hosts, of_plan};
    use super::*;
    use model::{Pattern, SplitMix64};

    const HOSTS: &[&str] = &["a", "b", "c", "d"];

    #[test]
    fn the_most_asymmetric_pair_is_named_first_and_other_questions_do_not_cost_it_its_significance() {
        let mut random = SplitMix64::new(4);
        let factors: [(&str, &[&str]); 3] = [("mss", &["1", "2"]), ("from", HOSTS), ("to", HOSTS)];
        let run = planned(&factors, Pattern::Stream, 3, |levels, _| {
            let factor = match (levels["from"].as_str(), levels["to"].as_str()) {
                ("a", "b") => 0.6,
                ("c", "d") => 0.8,
                _ => 1.0,
            };
            1e9 * factor * (1.0 + 0.01 * random.normal())
        });
        let found = of_plan(&run.header, &run.outcomes, &run.passes, &[]);
        let pairs: Vec<String> =
            found.iter().filter(|one| one.kind == FindingKind::Asymmetry).map(|one| one.statement.plain()).collect();
        assert_eq!(pairs.len(), 2, "{pairs:?}");
        assert!(pairs[0].starts_with("a → b has 6"), "{pairs:?}");
        assert!(pairs[0].contains("goodput -40 %") && pairs[0].contains("corrected for 6 comparisons"), "{pairs:?}");
        assert!(pairs[1].starts_with("c → d has ") && pairs[1].contains("goodput -20 %"), "{pairs:?}");
        assert!(
            !found.iter().any(|one| one.statement.plain().starts_with("from ")),
            "hosts are not levels: {found:#?}"
        );
    }

    #[test]
    fn a_matrix_from_elsewhere_names_its_asymmetric_pairs_without_an_interval() {
        let three: [(&str, &[&str]); 2] = [("from", &HOSTS[..3]), ("to", &HOSTS[..3])];
        let mut run =
            planned(&three, Pattern::Stream, 1, |levels, _| if levels["from"] == "c" { 482e6 } else { 219e6 });
        run.passes.clear();
        let found = of_hosts(&run.header, &run.outcomes, &[]);
        assert_eq!(found, [], "of three hosts none stands out");
        let said: Vec<String> =
            of_import(&run.header, &run.outcomes, &found).iter().map(|one| one.statement.plain()).collect();
        assert_eq!(
            said,
            [
                "a → c has 219 Mbit/s, c → a has 482 Mbit/s: goodput -55 % (no rounds, so no interval).",
                "b → c has 219 Mbit/s, c → b has 482 Mbit/s: goodput -55 % (no rounds, so no interval).",
            ]
        );
    }

    #[test]
    fn of_many_pairs_without_rounds_the_most_different_ones_are_named() {
        let run = planned(&[("from", HOSTS), ("to", HOSTS)], Pattern::Stream, 2, |levels, _| {
            1e9 * if levels["from"] < levels["to"] { 1.0 } else { 1.5 }
        });
        let found = of_plan(&run.header, &run.outcomes, &run.passes, &[]);
        let pairs: Vec<String> =
            found.iter().filter(|one| one.kind == FindingKind::Asymmetry).map(|one| one.statement.plain()).collect();
        assert_eq!(pairs.len(), 6, "{pairs:?}");
        assert!(pairs[0].ends_with("goodput -33 % (fewer than three rounds, so no interval)."), "{pairs:?}");
        assert!(pairs[5].starts_with("1 pair more differ"), "{pairs:?}");
    }
}
