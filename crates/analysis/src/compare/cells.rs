//! Matching of the cells of two sides: cells match if they agree in everything that distinguishes them from the other cells of their
//! runs.
//!
//! What all cells of a run share (the base of a plan, the flags of a curve) is not part of a cell's key: the sides may differ there,
//! and the comparison lists it as a configuration difference.

use std::collections::{BTreeMap, BTreeSet};

use model::{Cell, Factor, FactorKind, Outcome, Run, Spec, Trust, Unpaired};

use super::environment;
use crate::curve::relative_se;
use crate::outcome::{Headline, sample};

/// The matched cells of both sides, and the unmatched ones.
pub(super) struct Pairing<'a> {
    pub(super) pairs: Vec<[Side<'a>; 2]>,
    pub(super) unpaired: Vec<Unpaired>,
    /// The sides have different statistics, such as round trips and streams, and are compared by their goodput.
    pub(super) by_goodput: bool,
}

/// One cell of one side.
#[derive(Debug)]
pub(super) struct Side<'a> {
    pub(super) spec: &'a Spec,
    /// The other program that measured it, if any: spoken with, or imported from.
    pub(super) program: Option<String>,
    /// The statistic of its values.
    pub(super) headline: Headline,
    /// What distinguishes it from the other cells of its run, besides its block.
    pub(super) levels: BTreeMap<String, String>,
    /// The logarithms of the values of each run.
    pub(super) runs: Vec<Vec<f64>>,
    /// For each run the variance of its mean logarithm by the interval that a point of a curve states, which includes the level that
    /// all sizes of the run share; 0 for other cells, whose values are independent.
    pub(super) stated: Vec<f64>,
    /// The worst of its outcomes.
    pub(super) trust: Option<Trust>,
    /// The first run that has it, and its number there.
    first: (&'a str, u32),
    /// Why it cannot be compared.
    problem: Option<String>,
}

/// The key by which cells are matched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    unit: &'static str,
    /// Pattern, transport and direction; empty if each run is one measurement.
    direction: String,
    levels: BTreeMap<String, String>,
}

/// The level of cells in a run without a plan.
const BLOCK: &str = "block";
/// Fields of a spec that do not distinguish cells: how it is measured and observed, and the parts of `Key::direction`.
const NOT_LEVELS: [&str; 10] = [
    "stop",
    "warmup_ns",
    "interval_ns",
    "observe",
    "observe_interval_ns",
    "stall_ns",
    "capture",
    "pattern",
    "transport",
    "direction",
];

/// Pairs the cells of two sides. If none have the same pattern, those that differ in nothing else are paired by their goodput.
pub(super) fn pair<'a>(a: &[&'a Run], b: &[&'a Run]) -> Pairing<'a> {
    let names = Names::new(a, b);
    let pairing = pair_by(&names, a, b);
    if !pairing.pairs.is_empty() {
        return pairing;
    }
    let by_goodput = pair_by(&Names { by_goodput: true, ..names }, a, b);
    if by_goodput.pairs.is_empty() { pairing } else { by_goodput }
}

fn pair_by<'a>(names: &Names, a: &[&'a Run], b: &[&'a Run]) -> Pairing<'a> {
    let (ours, theirs) = (names.side(a), names.side(b));
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    // Unmatched cells of B keep the order of their side.
    let order: Vec<Key> = theirs.iter().map(|(key, _)| key.clone()).collect();
    let mut theirs: BTreeMap<Key, Side<'a>> = theirs.into_iter().collect();
    for (key, one) in ours {
        match theirs.remove(&key) {
            Some(other) if one.problem.is_none() && other.problem.is_none() => pairs.push([one, other]),
            Some(other) => {
                let why = one.problem.clone().or(other.problem.clone()).unwrap_or_default();
                unpaired.push(one.unpaired("a", &why));
                unpaired.push(other.unpaired("b", &why));
            }
            None => {
                let why = one.problem.clone().unwrap_or_else(|| "B has no such cell".to_owned());
                unpaired.push(one.unpaired("a", &why));
            }
        }
    }
    for one in order.iter().filter_map(|key| theirs.remove(key)) {
        let why = one.problem.clone().unwrap_or_else(|| "A has no such cell".to_owned());
        unpaired.push(one.unpaired("b", &why));
    }
    Pairing { pairs, unpaired, by_goodput: names.by_goodput }
}

impl Side<'_> {
    fn unpaired(self, side: &str, why: &str) -> Unpaired {
        Unpaired {
            side: side.to_owned(),
            run: self.first.0.to_owned(),
            cell: self.first.1,
            pattern: self.spec.pattern.to_string(),
            block: self.spec.block,
            unit: self.headline.unit().to_owned(),
            levels: self.levels,
            why: why.to_owned(),
        }
    }
}

/// The names of the levels in the keys of these runs' cells.
struct Names {
    /// Each run is one measurement: the two are compared even if they differ.
    single: bool,
    /// Fields of specs that differ between cells of one run without a plan.
    varied: BTreeSet<String>,
    /// Which of `from` and `to` any run varies.
    hosts: Vec<&'static str>,
    /// Factors of plans that no run varies: they label a run, as `--set` does, and distinguish none of its cells.
    labels: BTreeSet<String>,
    /// Cells match whatever their pattern, and their values are goodput.
    by_goodput: bool,
}

impl Names {
    fn new(a: &[&Run], b: &[&Run]) -> Self {
        let runs = || a.iter().chain(b);
        let levels = || runs().flat_map(|run| run.header.cells.iter().map(|cell| levels_of(run, cell)));
        let labels: BTreeSet<String> = labels(runs().copied()).into_keys().collect();
        let alone = |run: &&&Run| measured(run).count() == 1;
        let mut varied = BTreeSet::new();
        for run in runs().filter(|run| run.header.plan.is_none()) {
            let specs: Vec<_> = measured(run).map(|outcome| environment::flat(&outcome.spec)).collect();
            let names: BTreeSet<&String> = specs.iter().flat_map(BTreeMap::keys).collect();
            let differs = |name: &&&String| specs.iter().any(|spec| spec.get(**name) != specs[0].get(**name));
            let distinguishes = |name: &&&String| !NOT_LEVELS.contains(&name.split('.').next().unwrap_or_default());
            varied.extend(names.iter().filter(distinguishes).filter(differs).map(|name| (*name).clone()));
        }
        let hosts = [Factor::FROM, Factor::TO];
        Self {
            single: runs().all(|run| alone(&run))
                && levels().all(|levels| levels.keys().all(|name| labels.contains(name))),
            varied,
            hosts: hosts.into_iter().filter(|name| levels().any(|levels| levels.contains_key(*name))).collect(),
            labels,
            by_goodput: false,
        }
    }

    /// What distinguishes a cell from others.
    fn levels(&self, run: &Run, outcome: &Outcome) -> BTreeMap<String, String> {
        let cell = Cell::find(&run.header.cells, outcome.cell);
        let mut levels = cell.map(|cell| levels_of(run, cell)).unwrap_or_default();
        levels.retain(|name, _| !self.labels.contains(name));
        let Some(plan) = &run.header.plan else {
            let own = environment::flat(&outcome.spec);
            let value = |name: &String| (name.clone(), own.get(name).cloned().unwrap_or_else(|| "-".to_owned()));
            levels.extend(self.varied.iter().map(value));
            return levels;
        };
        // If only one side varies a host, the other side's cells have their fixed host as a level.
        for (name, list) in [(Factor::FROM, &plan.from), (Factor::TO, &plan.to)] {
            if let ([only], true) = (&list[..], self.hosts.contains(&name)) {
                levels.entry(name.to_owned()).or_insert_with(|| only.clone());
            }
        }
        levels
    }

    fn key(&self, run: &Run, outcome: &Outcome) -> Key {
        let spec = &outcome.spec;
        let pattern = if self.by_goodput { "" } else { spec.pattern.name() };
        let direction = format!("{pattern} {} {:?}", spec.transport, spec.direction);
        Key {
            unit: self.headline(spec).unit(),
            direction: if self.single { String::new() } else { direction },
            levels: match (self.single, self.by_goodput) {
                (false, _) => self.levels(run, outcome),
                (true, false) => BTreeMap::new(),
                // A round trip of a byte says nothing about a stream of large blocks.
                (true, true) => [(BLOCK.to_owned(), spec.block.to_string())].into(),
            },
        }
    }

    fn headline(&self, spec: &Spec) -> Headline {
        if self.by_goodput { Headline::Goodput } else { Headline::of(spec) }
    }

    /// A value as it is compared.
    fn value(&self, spec: &Spec, value: f64) -> Option<f64> {
        if self.by_goodput { Headline::of(spec).goodput(spec, value) } else { Some(value) }
    }

    /// The cells of one side, in the order of its runs.
    fn side<'a>(&self, runs: &[&'a Run]) -> Vec<(Key, Side<'a>)> {
        let mut indices: BTreeMap<Key, usize> = BTreeMap::new();
        let mut sides: Vec<(Key, Side<'a>)> = Vec::new();
        for run in runs {
            let id = run.header.id.as_str();
            let mut met: BTreeSet<Key> = BTreeSet::new();
            for outcome in measured(run) {
                let key = self.key(run, outcome);
                let index = *indices.entry(key.clone()).or_insert_with(|| {
                    let mut levels = key.levels.clone();
                    if run.header.plan.is_none() {
                        levels.remove(BLOCK);
                    }
                    let first = (id, outcome.cell);
                    let (spec, headline) = (&outcome.spec, self.headline(&outcome.spec));
                    let program = spec.speak.as_ref().map(ToString::to_string);
                    let program = program.or_else(|| run.header.origin.as_ref().map(|origin| origin.tool.clone()));
                    let side = Side {
                        spec,
                        program,
                        headline,
                        levels,
                        runs: Vec::new(),
                        stated: Vec::new(),
                        trust: None,
                        first,
                        problem: None,
                    };
                    sides.push((key.clone(), side));
                    sides.len() - 1
                });
                let side = &mut sides[index].1;
                side.trust = side.trust.max(outcome.summary.trust);
                let values: Vec<f64> = sample(&outcome.trials)
                    .into_iter()
                    .filter_map(|value| self.value(&outcome.spec, value))
                    .filter(|value| *value > 0.0 && value.is_finite())
                    .map(f64::ln)
                    .collect();
                if !met.insert(key) {
                    side.problem = Some(format!("run {id} has several cells with the same levels"));
                } else if values.is_empty() {
                    side.problem = Some(format!("no value in run {id}"));
                } else {
                    side.runs.push(values);
                    side.stated.push(stated_variance(outcome));
                }
            }
        }
        for (_, side) in &mut sides {
            if side.runs.len() != runs.len() {
                side.problem.get_or_insert_with(|| "not in every run of its side".to_owned());
            }
        }
        sides
    }
}

/// The variance of the logarithm of a curve's point by its interval; 0 if the point has no part of its own, and for other outcomes.
fn stated_variance(outcome: &Outcome) -> f64 {
    let of_curve = outcome.estimate.as_ref().filter(|_| outcome.summary.within_pass.is_some());
    of_curve.and_then(relative_se).map_or(0.0, |se| se * se)
}

/// A cell's levels without those of observed factors, which are facts of the hosts.
fn levels_of(run: &Run, cell: &Cell) -> BTreeMap<String, String> {
    let mut levels = cell.levels.clone();
    let factors = run.header.plan.iter().flat_map(|plan| &plan.factors);
    factors.filter(|factor| factor.kind == FactorKind::Observed).for_each(|factor| {
        levels.remove(&factor.name);
    });
    levels
}

/// The factors of plans that have one level in each run, with the levels of all runs. Hosts are no such factor: a fixed host matches
/// one of several.
pub(super) fn labels<'a>(runs: impl Iterator<Item = &'a Run>) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut varied: BTreeSet<String> = [Factor::FROM, Factor::TO].map(str::to_owned).into();
    for run in runs.filter(|run| run.header.plan.is_some()) {
        let mut own: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, level) in run.header.cells.iter().flat_map(|cell| levels_of(run, cell)) {
            own.entry(name).or_default().insert(level);
        }
        for (name, levels) in own {
            if levels.len() > 1 {
                varied.insert(name);
            } else {
                all.entry(name).or_default().extend(levels);
            }
        }
    }
    all.retain(|name, _| !varied.contains(name));
    all
}

/// A run's outcomes without the memory copy that a curve measures as its ceiling.
fn measured(run: &Run) -> impl Iterator<Item = &Outcome> {
    let only_ceiling = run.outcomes.iter().all(|outcome| outcome.spec.transport == Spec::CEILING);
    run.outcomes.iter().filter(move |outcome| only_ceiling || outcome.spec.transport != Spec::CEILING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::made;
    use model::{Direction, Pattern, Plan, RunHeader};

    fn run(id: &str, plan: Option<Plan>, cells: Vec<(BTreeMap<String, String>, Outcome)>) -> Run {
        let (mut header, mut outcomes) = (RunHeader { id: id.into(), ..RunHeader::default() }, Vec::new());
        for (at, (levels, outcome)) in cells.into_iter().enumerate() {
            let cell = Cell { levels, ..Cell::new(at as u32, outcome.spec.clone()) };
            outcomes.push(Outcome { cell: cell.id, ..outcome });
            header.cells.push(cell);
        }
        header.plan = plan.map(Box::new);
        Run { outcomes, ..Run::new(header) }
    }

    fn stream(levels: &[(&str, &str)], block: u64) -> (BTreeMap<String, String>, Outcome) {
        let levels = levels.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect();
        (levels, made(Pattern::Stream, 0, block, &[1.0, 2.0, 3.0]))
    }

    /// Pairs of cells, and the cells without a partner with their side.
    type Paired = (Vec<(u32, u32)>, Vec<(String, u32)>);

    fn paired(a: &Run, b: &Run) -> Paired {
        let found = pair(&[a], &[b]);
        let left = found.unpaired.into_iter().map(|one| (one.side, one.cell)).collect();
        (found.pairs.iter().map(|[a, b]| (a.first.1, b.first.1)).collect(), left)
    }

    fn left(of: &[(&str, u32)]) -> Vec<(String, u32)> {
        of.iter().map(|(side, cell)| ((*side).to_owned(), *cell)).collect()
    }

    #[test]
    fn cells_of_a_plan_are_paired_by_their_levels_and_not_by_their_order() {
        let matrix = |id, pairs: &[(&str, &str)]| {
            let cells = pairs.iter().map(|(from, to)| stream(&[("from", from), ("to", to)], 1)).collect();
            run(id, Some(Plan::default()), cells)
        };
        let a = matrix("a", &[("cz", "fi"), ("fi", "no"), ("no", "cz")]);
        let b = matrix("b", &[("fi", "no"), ("cz", "fi"), ("fi", "cz")]);
        assert_eq!(paired(&a, &b), (vec![(0, 1), (1, 0)], left(&[("a", 2), ("b", 2)])));
        let windows = |id, levels: [&str; 2]| {
            run(id, Some(Plan::default()), levels.map(|level| stream(&[("window", level)], 1)).into())
        };
        let (small, large) = (windows("a", ["16K", "64K"]), windows("b", ["64K", "1M"]));
        assert_eq!(paired(&small, &large), (vec![(1, 0)], left(&[("a", 0), ("b", 1)])));
    }

    #[test]
    fn observed_factors_are_not_part_of_a_cells_key() {
        let plan = || {
            let factors = vec![Factor { name: "kernel".into(), kind: FactorKind::Observed, ..Factor::default() }];
            Some(Plan { factors, ..Plan::default() })
        };
        let of = |id, kernel| {
            let cells = ["1", "2"].map(|cc| stream(&[("kernel", kernel), ("cc", cc)], 1)).into();
            run(id, plan(), cells)
        };
        assert_eq!(paired(&of("a", "6.1"), &of("b", "6.2")), (vec![(0, 0), (1, 1)], vec![]));
    }

    #[test]
    fn factors_with_one_level_in_each_run_are_labels_and_one_that_a_run_varies_is_not() {
        let of = |id, mtu: &str, queues: &[&str]| {
            let cells = queues.iter().flat_map(|queue| {
                ["1", "2"].map(|block| stream(&[("mtu", mtu), ("queue", queue), ("block", block)], 1))
            });
            run(id, Some(Plan::default()), cells.collect())
        };
        let (before, after) = (of("a", "1500", &["1000"]), of("b", "9000", &["10000"]));
        assert_eq!(paired(&before, &after), (vec![(0, 0), (1, 1)], vec![]));
        // Where one side varies the queue, its cells have to be told apart, and the other side matches one of them.
        let varied = of("c", "9000", &["1000", "10000"]);
        assert_eq!(paired(&after, &varied), (vec![(0, 2), (1, 3)], left(&[("b", 0), ("b", 1)])));
        assert_eq!(labels([&before, &varied].into_iter()).into_keys().collect::<Vec<_>>(), ["mtu"]);
    }

    #[test]
    fn a_host_that_one_side_does_not_vary_is_a_level_of_its_cells() {
        let both = ["x", "y"].map(|to| stream(&[("to", to)], 1)).into();
        let both = run("a", Some(Plan { to: vec!["x".into(), "y".into()], ..Plan::default() }), both);
        let one = run("b", Some(Plan { to: vec!["y".into()], ..Plan::default() }), vec![stream(&[], 1)]);
        assert_eq!(paired(&both, &one), (vec![(1, 0)], left(&[("a", 0)])));
    }

    #[test]
    fn sizes_of_a_curve_are_paired_by_size_and_duplicate_cells_are_not_paired() {
        let curve = |id, sizes: &[u64]| run(id, None, sizes.iter().map(|size| stream(&[], *size)).collect());
        let (a, b) = (curve("a", &[1, 64, 4096]), curve("b", &[4096, 1, 8192]));
        assert_eq!(paired(&a, &b), (vec![(0, 1), (2, 0)], left(&[("a", 1), ("b", 2)])));
        let twice = curve("b", &[1, 64, 64]);
        assert_eq!(paired(&a, &twice), (vec![(0, 0)], left(&[("a", 1), ("b", 1), ("a", 2)])));
        assert!(pair(&[&a], &[&twice]).unpaired[0].why.contains("run b has several cells"));
    }

    #[test]
    fn round_trips_and_streams_of_the_same_sizes_are_paired_by_goodput() {
        let curve = |id, pattern: Pattern, values: &[f64]| {
            run(id, None, [1_000, 4_000].map(|size| (BTreeMap::new(), made(pattern, 0, size, values))).into())
        };
        let (trips, streams) = (curve("a", Pattern::Pingpong, &[16_000.0; 3]), curve("b", Pattern::Stream, &[3e9; 3]));
        let found = pair(&[&trips], &[&streams]);
        assert!(found.by_goodput && found.unpaired.is_empty(), "{:?}", found.unpaired);
        // A block each way in 16 µs.
        let goodput: Vec<f64> = found.pairs.iter().map(|[a, _]| a.runs[0][0].exp().round()).collect();
        assert_eq!(goodput, [1e9, 4e9]);
        let faster = curve("b", Pattern::Pingpong, &[8_000.0; 3]);
        let same = pair(&[&trips], &[&faster]);
        assert!(!same.by_goodput && same.pairs.len() == 2);
    }

    #[test]
    fn two_single_measurements_are_paired_and_two_curves_in_different_directions_are_not() {
        let reversed = |mut cell: (BTreeMap<String, String>, Outcome)| {
            cell.1.spec.direction = Direction::Reverse;
            cell
        };
        let (a, b) = (run("a", None, vec![stream(&[], 1)]), run("b", None, vec![reversed(stream(&[], 4096))]));
        assert_eq!(paired(&a, &b), (vec![(0, 0)], vec![]));
        let (a, b) = (
            run("a", None, vec![stream(&[], 1), stream(&[], 2)]),
            run("b", None, vec![reversed(stream(&[], 1)), reversed(stream(&[], 2))]),
        );
        assert_eq!(paired(&a, &b).0, []);
        let trips = run("b", None, vec![(BTreeMap::new(), made(Pattern::Rr, 0, 1, &[1.0]))]);
        assert_eq!(paired(&run("a", None, vec![stream(&[], 4096)]), &trips).1.len(), 2, "of another size");
        assert_eq!(paired(&run("a", None, vec![stream(&[], 1)]), &trips).1, []);
    }

    #[test]
    fn a_cell_without_a_value_or_not_in_every_run_is_listed() {
        let complete = run("a", None, vec![stream(&[], 1), stream(&[], 2)]);
        let mut empty = complete.clone();
        empty.header.id = "e".into();
        empty.outcomes[1].trials.clear();
        let found = pair(&[&complete, &empty], &[&complete]);
        assert_eq!((found.pairs.len(), found.unpaired.len()), (1, 2));
        assert!(found.unpaired.iter().all(|one| one.why == "no value in run e"), "{:?}", found.unpaired);
        let short = run("s", None, vec![stream(&[], 1)]);
        let found = pair(&[&complete, &short], &[&complete]);
        assert_eq!(found.unpaired[0].why, "not in every run of its side");
    }
}
