//! Meshes that are measured again and again: the figures of each pass ([`MeshPass`]), their history with change points
//! ([`history`]), and alerts ([`Alerts`]).

mod alerts;
mod change;
mod condition;

use std::collections::{BTreeMap, BTreeSet};

use model::{Cell, Factor, HistoryPass, HistorySeries, MeshHistory, Outcome, RunHeader, median};

pub use alerts::{Alerts, Rule};
pub use change::{Level, levels_of};
pub use condition::{Condition, ConditionError, FollowedFigure};

use crate::plan::dimensions;

/// Most passes of a history; older ones are left out.
pub const MOST_PASSES: usize = 200;

/// A figure of a pair.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairFigure {
    /// The near host.
    pub from: String,
    /// The far host.
    pub to: String,
    /// The levels of other factors than the hosts and the pattern.
    pub levels: String,
    /// The figure.
    pub figure: FollowedFigure,
}

/// The figures of one pass of a mesh.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MeshPass {
    /// The run, and its start.
    pub pass: HistoryPass,
    /// The values that it has.
    pub values: BTreeMap<PairFigure, f64>,
    /// Its hosts.
    pub hosts: BTreeSet<String>,
}

/// The factors that distinguish the cells of a pair in a mesh.
#[derive(Debug, Clone)]
pub struct Figures {
    /// The names of other factors than the hosts and the pattern.
    rest: Vec<String>,
}

impl Figures {
    /// Those of the cells of a run.
    #[must_use]
    pub fn new(header: &RunHeader) -> Self {
        let cells: Vec<_> = header.cells.iter().collect();
        let pattern = |name: &String| header.plan.as_ref().is_some_and(|plan| is_pattern(plan, name));
        let rest: Vec<String> = header.plan.as_ref().map_or_else(Vec::new, |plan| dimensions(plan, &cells));
        let named = |name: &String| ![Factor::FROM, Factor::TO].contains(&name.as_str()) && !pattern(name);
        Self { rest: rest.into_iter().filter(named).collect() }
    }

    /// The figures of a cell; none if it is not between two hosts, or has no estimate.
    #[must_use]
    pub fn of(&self, cell: &Cell, outcome: &Outcome) -> Vec<(PairFigure, f64)> {
        let hosts = cell.levels.get(Factor::FROM).zip(cell.levels.get(Factor::TO));
        let Some((from, to)) = hosts.filter(|_| outcome.estimate.is_some()) else { return Vec::new() };
        let levels = crate::plan::part(cell, &self.rest);
        let levels: Vec<String> = levels.into_iter().map(|(name, level)| format!("{name} {level}")).collect();
        let key = |figure| PairFigure { from: from.clone(), to: to.clone(), levels: levels.join(", "), figure };
        FollowedFigure::all_of(outcome).into_iter().map(|(figure, value)| (key(figure), value)).collect()
    }
}

impl MeshPass {
    /// A pass without values.
    #[must_use]
    pub fn begun(header: &RunHeader) -> Self {
        let hosts = header.cells.iter().flat_map(|cell| {
            let hosts = cell.levels.get(Factor::FROM).zip(cell.levels.get(Factor::TO));
            hosts.into_iter().flat_map(|(from, to)| [from.clone(), to.clone()])
        });
        Self {
            pass: HistoryPass { run: header.id.clone(), started_unix_ns: header.started_unix_ns },
            values: BTreeMap::new(),
            hosts: hosts.collect(),
        }
    }

    /// The figures of a run of a plan between several hosts.
    #[must_use]
    pub fn of(header: &RunHeader, outcomes: &[Outcome]) -> Self {
        let by_cell: BTreeMap<u32, &Outcome> = outcomes.iter().map(|outcome| (outcome.cell, outcome)).collect();
        let figures = Figures::new(header);
        let of_cell = |cell: &Cell| by_cell.get(&cell.id).map(|outcome| figures.of(cell, outcome));
        Self { values: header.cells.iter().filter_map(of_cell).flatten().collect(), ..Self::begun(header) }
    }

    /// The hosts without any value.
    #[must_use]
    pub fn silent(&self) -> BTreeSet<&str> {
        let heard: BTreeSet<&str> = self.values.keys().flat_map(|key| [key.from.as_str(), key.to.as_str()]).collect();
        self.hosts.iter().map(String::as_str).filter(|host| !heard.contains(host)).collect()
    }
}

fn is_pattern(plan: &model::Plan, name: &str) -> bool {
    plan.factors.iter().any(|factor| factor.name == name && factor.key == "pattern")
}

/// Who a series is of: near host, far host, other levels, figure.
type Key = (Option<String>, Option<String>, String, FollowedFigure);

/// The history of these passes, the oldest one first, with the changes that are significant over all of its series together at this
/// confidence. It has no alerts.
#[must_use]
pub fn history(name: &str, passes: &[MeshPass], confidence: f64) -> MeshHistory {
    let passes = &passes[passes.len().saturating_sub(MOST_PASSES)..];
    let mut all: BTreeMap<Key, Vec<Option<f64>>> = BTreeMap::new();
    for (at, pass) in passes.iter().enumerate() {
        // A host has the median of its pairs in each role.
        let mut of_hosts: BTreeMap<Key, Vec<f64>> = BTreeMap::new();
        for (key, value) in pass.values.iter().filter(|(key, _)| key.figure.is_followed()) {
            let [from, to] = [&key.from, &key.to].map(|host| Some(host.clone()));
            let mut add = |from, to, value: f64| {
                let key = (from, to, key.levels.clone(), key.figure);
                of_hosts.entry(key).or_default().push(value);
            };
            add(from.clone(), None, *value);
            add(None, to.clone(), *value);
            let values = all.entry((from, to, key.levels.clone(), key.figure)).or_default();
            values.resize(passes.len(), None);
            values[at] = Some(*value);
        }
        for (key, own) in of_hosts {
            let values = all.entry(key).or_default();
            values.resize(passes.len(), None);
            values[at] = median(&own);
        }
    }
    let number = all.len();
    let series = all.into_iter().map(|((from, to, levels, figure), values)| {
        let changes = change::changes(&values, number, confidence);
        let changes = changes.into_iter().map(|mut change| {
            change.at_unix_ns = passes[change.pass as usize].pass.started_unix_ns;
            change
        });
        HistorySeries {
            figure: figure.name().to_owned(),
            unit: figure.unit().to_owned(),
            from,
            to,
            levels,
            changes: changes.collect(),
            values,
        }
    });
    MeshHistory {
        name: name.to_owned(),
        series: series.collect(),
        passes: passes.iter().map(|pass| pass.pass.clone()).collect(),
        alerts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;

    /// Passes of all pairs of `hosts` hosts with a noise of `sd`, and each value times `factor`.
    fn passes(
        hosts: usize,
        count: usize,
        seed: u64,
        sd: f64,
        factor: impl Fn(&str, &str, usize) -> f64,
    ) -> Vec<MeshPass> {
        let mut random = SplitMix64::new(seed);
        let names: Vec<String> = (0..hosts).map(|host| format!("n{host}")).collect();
        (0..count)
            .map(|at| {
                let mut pass = MeshPass {
                    pass: HistoryPass { run: format!("r{at}"), started_unix_ns: 900_000_000_000 * at as u64 },
                    hosts: names.iter().cloned().collect(),
                    ..MeshPass::default()
                };
                for from in &names {
                    for to in names.iter().filter(|to| *to != from) {
                        let value = 1e9 * factor(from, to, at) * (sd * random.normal()).exp();
                        let (from, to, levels, figure) =
                            (from.clone(), to.clone(), String::new(), FollowedFigure::Goodput);
                        pass.values.insert(PairFigure { from, to, levels, figure }, value);
                    }
                }
                pass
            })
            .collect()
    }

    #[test]
    fn a_pair_that_became_slow_is_named_with_date_and_size() {
        let slow = |from: &str, to: &str, at| if (from, to) == ("n1", "n2") && at >= 12 { 0.5 } else { 1.0 };
        let found = history("w", &passes(5, 16, 1, 0.03, slow), 0.95);
        assert_eq!((found.passes.len(), found.series.len()), (16, 20 + 10));
        let changed: Vec<&HistorySeries> = found.series.iter().filter(|series| !series.changes.is_empty()).collect();
        let [only] = changed[..] else { panic!("{changed:#?}") };
        assert_eq!((only.from.as_deref(), only.to.as_deref(), only.changes.len()), (Some("n1"), Some("n2"), 1));
        let change = &only.changes[0];
        assert_eq!((change.pass, change.at_unix_ns), (12, 12 * 900_000_000_000));
        assert!(change.low < 0.5 && 0.5 < change.high && (change.ratio - 0.5).abs() < 0.05, "{change:?}");
        assert!((change.before - 1e9).abs() < 5e7 && (change.after - 5e8).abs() < 5e7, "{change:?}");
    }

    #[test]
    fn a_host_that_became_slow_has_a_series_of_its_own() {
        let slow = |from: &str, _: &str, at| if from == "n3" && at >= 20 { 0.6 } else { 1.0 };
        let found = history("w", &passes(5, 26, 2, 0.03, slow), 0.95);
        let host = found.series.iter().find(|one| one.from.as_deref() == Some("n3") && one.to.is_none()).unwrap();
        assert_eq!(host.changes.iter().map(|change| change.pass).collect::<Vec<_>>(), [20]);
    }

    #[test]
    fn even_passes_have_a_change_in_few_histories_of_a_hundred() {
        // Independent noise, also with a wild pass in twenty for a pair; and passes that drift together with their neighbours.
        let wild = |seed: u64| {
            let mut random = SplitMix64::new(seed);
            let draws: Vec<f64> = (0..5_000).map(|_| random.normal()).collect();
            move |from: &str, to: &str, at: usize| {
                let place = from.as_bytes()[1] as usize * 997 + to.as_bytes()[1] as usize * 61 + at * 7;
                if draws[place % draws.len()] > 1.65 { 0.4 } else { 1.0 }
            }
        };
        let count = |of: &dyn Fn(u64) -> Vec<MeshPass>| {
            let has = |seed: &u64| history("w", &of(*seed), 0.95).series.iter().any(|one| !one.changes.is_empty());
            (0..100).filter(has).count()
        };
        let quiet = count(&|seed| passes(4, 12, 100 + seed, 0.1, |_, _, _| 1.0));
        let long = count(&|seed| passes(4, 60, 300 + seed, 0.1, |_, _, _| 1.0));
        let tailed = count(&|seed| passes(4, 40, 500 + seed, 0.1, wild(seed)));
        println!("{quiet} {long} {tailed} of 100");
        assert!(quiet <= 8 && long <= 8 && tailed <= 8, "{quiet} {long} {tailed} of 100");
    }

    #[test]
    fn a_host_without_values_is_silent_and_its_pairs_have_gaps() {
        let mut all = passes(4, 3, 1, 0.02, |_, _, _| 1.0);
        all[1].values.retain(|key, _| key.from != "n2" && key.to != "n2");
        assert_eq!(all[1].silent(), BTreeSet::from(["n2"]));
        assert!(all[0].silent().is_empty());
        let found = history("w", &all, 0.95);
        let pair = found.series.iter().find(|one| one.from.as_deref() == Some("n2") && one.to.as_deref() == Some("n0"));
        let has: Vec<bool> = pair.unwrap().values.iter().map(Option::is_some).collect();
        assert_eq!(has, [true, false, true]);
    }
}
