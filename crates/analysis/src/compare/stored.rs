//! Comparison of stored runs. They are not paired: any change between the two sides over time counts as a difference, which the
//! analysis can only point out.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Answer, CellComparison, Comparison, Difference, Estimate, Run, RunComparison, RunName, Spec, Trust, Unpaired,
};
use text::{Said, Text, say};

use super::cells::{Pairing, Side, labels, pair};
use super::environment::{differences, is_unknown};
use super::{change, higher_is_better, judge, other_clock, ratio, verdict, what};
use crate::findings::wording::{plural, sentence};
use crate::limiter::jagged_against_smooth;
use crate::outcome::Headline;
use crate::stats::{ConfidenceInterval, MeanDifference, mean};

/// Why runs cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
#[non_exhaustive]
pub enum CompareError {
    /// No cell of one side matches one of the other.
    #[error(
        "{a} and {b} have no cell in common: {cells}; cells match if they agree in pattern, transport, direction, hosts, and all factors that one of the runs varies"
    )]
    NothingInCommon {
        /// Identifiers of side A's runs.
        a: String,
        /// Identifiers of side B's runs.
        b: String,
        /// The levels of each side's cells.
        cells: String,
    },
}

/// Compares the runs of side B with those of side A at `confidence`, cell by cell. `tolerance` is the difference that does not
/// matter, a fraction from 0 to below 1.
///
/// With two or more runs per side the samples are the geometric means of the runs, so the interval includes run-to-run variation;
/// else they are the values of the trials, and the interval does not include it. Cells are paired by everything that distinguishes
/// them from the other cells of their runs, or not at all; if each run is a single measurement, the two are paired as they are.
///
/// # Errors
/// [`CompareError::NothingInCommon`].
pub fn stored_runs(a: &[&Run], b: &[&Run], tolerance: f64, confidence: f64) -> Result<RunComparison, CompareError> {
    let Pairing { pairs, unpaired, by_goodput } = pair(a, b);
    if pairs.is_empty() {
        return Err(CompareError::NothingInCommon { a: ids(a), b: ids(b), cells: levels_of(&unpaired) });
    }
    let by_run = a.len() > 1 && b.len() > 1;
    let compared: Vec<Compared<'_>> = pairs.iter().map(|[a, b]| Compared::new(a, b, by_run)).collect();
    let cells = judged(&compared, tolerance, confidence);
    let specs: Vec<(&Spec, &Spec)> = pairs.iter().map(|[a, b]| (a.spec, b.spec)).collect();
    let mut notes = notes(a, b, by_run, cells.len());
    let mut clocks = pairs.iter().filter(|[a, _]| a.headline != Headline::RoundTrip);
    let clocks = clocks.find_map(|[a, b]| other_clock(a.program.as_deref(), b.program.as_deref()));
    notes.splice(0..0, clocks.map(sentence));
    if by_goodput {
        notes.insert(0, BY_GOODPUT.into());
    }
    Ok(RunComparison {
        schema: RunComparison::SCHEMA.into(),
        a: a.iter().map(|run| name(run)).collect(),
        b: b.iter().map(|run| name(run)).collect(),
        answer: worst(&cells),
        statement: Text::join(
            std::iter::once(statement(&cells, tolerance, confidence)).chain(jagged_against_smooth(("A", a), ("B", b))),
            " ",
        ),
        unmatched: u32::try_from(unpaired.len()).unwrap_or(u32::MAX),
        unpaired,
        notes,
        cells,
        differences: of_labels(a, b).into_iter().chain(differences(a, b, &specs)).collect(),
    })
}

/// What the plans of the two sides say of them: the levels of factors that no run varies.
fn of_labels(a: &[&Run], b: &[&Run]) -> Vec<Difference> {
    let (ours, theirs) = (labels(a.iter().copied()), labels(b.iter().copied()));
    let both = labels(a.iter().chain(b).copied());
    let of = |side: &BTreeMap<String, BTreeSet<String>>, name: &String| {
        side.get(name).map_or("-".to_owned(), |levels| levels.iter().cloned().collect::<Vec<_>>().join(" | "))
    };
    let difference = |name: &String| Difference {
        of: "plan".to_owned(),
        field: name.clone(),
        a: of(&ours, name),
        b: of(&theirs, name),
    };
    both.keys().map(difference).filter(|one| one.a != one.b).collect()
}

/// The note of a comparison of different patterns.
const BY_GOODPUT: &str = "The sides have different patterns, so their goodput is compared; for exchanges it is request and response \
                          over the round trip (NetPIPE's rate).";

/// The levels of each side's cells, as text.
fn levels_of(unpaired: &[Unpaired]) -> String {
    let of = |side: &str| {
        let own: Vec<&Unpaired> = unpaired.iter().filter(|one| one.side == side).collect();
        let names: BTreeSet<&str> = own.iter().flat_map(|one| one.levels.keys().map(String::as_str)).collect();
        let units: BTreeSet<&str> = own.iter().map(|one| one.unit.as_str()).collect();
        let by = if names.is_empty() { String::new() } else { format!(" by {}", join(names)) };
        format!("{} in {}{by}", plural(own.len(), "cell"), join(units))
    };
    format!("A has {}, B has {}", of("a"), of("b"))
}

fn join(words: BTreeSet<&str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}

/// A matched cell with its samples, in logarithms.
struct Compared<'a> {
    spec: &'a Spec,
    headline: Headline,
    pattern: String,
    levels: &'a BTreeMap<String, String>,
    trust: Option<Trust>,
    a: Vec<f64>,
    b: Vec<f64>,
    difference: Option<MeanDifference>,
}

impl<'a> Compared<'a> {
    fn new(a: &'a Side<'_>, b: &Side<'_>, by_run: bool) -> Self {
        let values = |side: &Side<'_>| -> Vec<f64> {
            if by_run { side.runs.iter().filter_map(|run| mean(run)).collect() } else { side.runs.concat() }
        };
        let (first, second) = (values(a), values(b));
        // The runs' own means already vary with their levels.
        let least = |side: &Side<'_>| {
            let runs = side.stated.len().max(1) as f64;
            if by_run { 0.0 } else { side.stated.iter().sum::<f64>() / (runs * runs) }
        };
        let difference = MeanDifference::with_least_variances(&first, &second, [least(a), least(b)]);
        let pattern = match (a.spec.pattern, b.spec.pattern) {
            (a, b) if a == b => a.to_string(),
            (a, b) => format!("{a}/{b}"),
        };
        let trust = a.trust.max(b.trust);
        Self { spec: a.spec, headline: a.headline, pattern, levels: &a.levels, trust, a: first, b: second, difference }
    }
}

/// The cells with their answers, each by the interval of its ratio. Among many cells some look worse or better by chance, so intervals
/// and p-values alike are corrected for the number of cells (Bonferroni): an interval without 1 is a significant difference, and an
/// answer never contradicts the interval next to it.
fn judged(compared: &[Compared<'_>], tolerance: f64, confidence: f64) -> Vec<CellComparison> {
    let bound = -(1.0 - tolerance).ln();
    let bounds = ConfidenceInterval { low: -bound, high: bound };
    let cells = compared.len() as f64;
    let corrected = 1.0 - (1.0 - confidence) / cells;
    let cell = |cell: &Compared<'_>| {
        let (headline, difference) = (cell.headline, cell.difference);
        let interval: Option<ConfidenceInterval> = difference.and_then(|difference| difference.interval(confidence));
        let deciding = difference.and_then(|difference| difference.interval(corrected));
        let higher = higher_is_better(headline);
        let p_value = difference.map(|difference| {
            let p = 2.0 * difference.p_below(0.0).min(difference.p_above(0.0));
            (p * cells).min(1.0)
        });
        let centre = |values: &[f64]| mean(values).map_or(f64::NAN, f64::exp);
        let statistic = format!("ratio of B to A, geometric means ({})", headline.statistic());
        let method = "Welch's t on logarithms, unpaired".to_owned();
        let value = mean(&cell.b).zip(mean(&cell.a)).map_or(f64::NAN, |(b, a)| b - a);
        CellComparison {
            pattern: cell.pattern.clone(),
            block: cell.spec.block,
            levels: cell.levels.clone(),
            unit: headline.unit().to_owned(),
            a: centre(&cell.a),
            b: centre(&cell.b),
            ratio: ratio(value, interval, statistic, method, confidence, cell.a.len() + cell.b.len()),
            comparison: Comparison {
                answer: judge(deciding, bounds, higher),
                tolerance,
                higher_is_better: higher,
                p_value,
                adjusted_low: deciding.map(|interval| interval.low.exp()),
                adjusted_high: deciding.map(|interval| interval.high.exp()),
                ratios: Vec::new(),
            },
            trust: cell.trust,
        }
    };
    compared.iter().map(cell).collect()
}

/// The answer for all cells in a sentence: of one cell with its difference, of several with their numbers.
fn statement(cells: &[CellComparison], tolerance: f64, confidence: f64) -> Text {
    let of = |answer: Answer| cells.iter().filter(|cell| cell.comparison.answer == answer).count();
    let worst = worst(cells);
    let says = verdict(worst, tolerance);
    if let [only] = cells {
        let Comparison { adjusted_low: low, adjusted_high: high, .. } = only.comparison;
        let what = what(&only.unit);
        let change = change(&Estimate { low, high, confidence, ..only.ratio.clone() });
        let most = low.zip(high).filter(|(low, high)| (*low..=*high).contains(&1.0));
        let most = most.map(|(low, high)| no_more_than(low, high));
        return say!("{says}: B's {what} differs by {change}{}.", most.unwrap_or_default());
    }
    let parts: Vec<Text> = [
        (Answer::Worse, "worse"),
        (Answer::Better, "better"),
        (Answer::NotWorse, "not worse"),
        (Answer::CannotTell, "cannot tell"),
    ]
    .into_iter()
    .filter(|(answer, _)| of(*answer) > 0)
    .map(|(answer, word)| say!("{} {word}", of(answer)))
    .collect();
    let some = if worst == Answer::Worse && of(worst) < cells.len() { " in some cells" } else { "" };
    say!("{says}{some}. {}: {}.", plural(cells.len(), "cell"), Text::join(parts, ", "))
}

/// The answer for all cells together: B is worse if it is so in one of them.
fn worst(cells: &[CellComparison]) -> Answer {
    cells.iter().map(|cell| cell.comparison.answer).max().unwrap_or(Answer::CannotTell)
}

/// The largest difference that an interval around 1 leaves possible, either way.
fn no_more_than(low: f64, high: f64) -> Text {
    // Rounded up, so that the interval does not reach beyond the figure.
    let most = (1e3 * (high - 1.0).max(1.0 - low)).ceil() / 10.0;
    say!(", so there is no difference larger than {most:.1} %")
}

fn notes(a_runs: &[&Run], b_runs: &[&Run], by_run: bool, cells: usize) -> Vec<Text> {
    let mut notes = vec![say!(
        "These runs were not paired: any change of the hosts or the path between them counts as a difference. `thru ab` \
             alternates both sides."
    )];
    let times = |runs: &[&Run]| -> Vec<u64> { runs.iter().map(|run| run.header.started_unix_ns).collect() };
    let (a, b) = (times(a_runs), times(b_runs));
    let apart = a.iter().max() < b.iter().min() || b.iter().max() < a.iter().min();
    if by_run && apart {
        notes.push(
            "All runs of one side precede those of the other, so drift over that time looks like an effect.".into(),
        );
    }
    if !by_run {
        notes.push(
            "With one run on a side, the intervals exclude run-to-run variation: other runs may differ by more. Compare several runs of \
             each side to include it."
                .into(),
        );
    }
    for (side, runs) in [("A", a_runs), ("B", b_runs)] {
        if runs.iter().any(|run| is_unknown(&run.header.near) || is_unknown(&run.header.far)) {
            notes.push(say!("A run of side {side} has no host inventory, so its hosts are not compared."));
        }
    }
    if cells > 1 {
        notes.push(say!("Intervals, p-values and answers are corrected for {cells} cells (Bonferroni)."));
    }
    notes
}

fn ids(runs: &[&Run]) -> String {
    runs.iter().map(|run| run.header.id.as_str()).collect::<Vec<_>>().join(",")
}

fn name(run: &Run) -> RunName {
    let header = &run.header;
    let foreign = header.origin.is_some() || header.cells.iter().any(|cell| cell.spec.speak.is_some());
    // The version of another program contains its name.
    let build = |version: &str, foreign: bool| if foreign { version.to_owned() } else { format!("thru {version}") };
    RunName {
        id: header.id.clone(),
        name: header.name.clone(),
        started_unix_ns: header.started_unix_ns,
        near_build: build(&header.tool.near_version, header.origin.is_some()),
        far_build: build(&header.tool.far_version, foreign),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::made;
    use model::SplitMix64;
    use model::{Inventory, Outcome, Pattern, Program, RunHeader, RunKind, Stopping, Tool};

    fn run(id: &str, outcomes: Vec<Outcome>) -> Run {
        let header = RunHeader {
            id: id.into(),
            name: None,
            kind: RunKind::Stream,
            command: Vec::new(),
            started_unix_ns: id.parse().unwrap_or(0),
            tool: Tool::default(),
            target: None,
            stopping: Stopping::default(),
            cells: Vec::new(),
            near: Inventory::default(),
            far: Inventory::default(),
            ..RunHeader::default()
        };
        let schema = Run::SCHEMA.into();
        Run {
            schema,
            header,
            ending: None,
            passes: Vec::new(),
            outcomes,
            retests: Vec::new(),
            findings: Vec::new(),
            advice: None,
        }
    }

    fn stream(random: &mut SplitMix64, block: u64, level: f64) -> Outcome {
        let values: Vec<f64> = (0..8).map(|_| level * (1.0 + 0.005 * random.normal())).collect();
        made(Pattern::Stream, 0, block, &values)
    }

    #[test]
    fn one_run_per_side_has_a_ratio_an_answer_and_a_warning() {
        let mut random = SplitMix64::new(3);
        let (a, b) = (run("1", vec![stream(&mut random, 1024, 1e9)]), run("2", vec![stream(&mut random, 4096, 0.9e9)]));
        let found = stored_runs(&[&a], &[&b], 0.01, 0.95).unwrap();
        let cell = &found.cells[0];
        assert!((cell.ratio.value - 0.9).abs() < 0.01 && cell.ratio.low.unwrap() > 0.88, "{:?}", cell.ratio);
        assert_eq!((found.answer, cell.unit.as_str(), cell.block), (Answer::Worse, "bit/s", 1024));
        assert!(found.notes.iter().any(|note| note.plain().contains("not paired")), "{:?}", found.notes);
        assert!(found.notes.iter().any(|note| note.plain().contains("one run on a side")), "{:?}", found.notes);
        assert!(found.statement.plain().starts_with("B is worse than A by more than 1.00 %: B's goodput differs by -"));
    }

    /// A comparison of a pair of streams with these values.
    fn of_values(a: &[f64], b: &[f64], tolerance: f64) -> RunComparison {
        let run = |id: &str, values: &[f64]| run(id, vec![made(Pattern::Stream, 0, 1024, values)]);
        stored_runs(&[&run("1", a)], &[&run("2", b)], tolerance, 0.95).unwrap()
    }

    #[test]
    fn a_difference_that_cannot_be_judged_is_bounded_by_the_interval() {
        let a = [1e9, 1.01e9, 0.99e9, 1.005e9, 0.995e9, 1e9];
        let b = [1.001e9, 0.99e9, 1.012e9, 0.996e9, 1.004e9, 0.997e9];
        let found = of_values(&a, &b, 0.005);
        assert_eq!(found.answer, Answer::CannotTell);
        let comparison = &found.cells[0].comparison;
        let most = (1.0 - comparison.adjusted_low.unwrap()).max(comparison.adjusted_high.unwrap() - 1.0);
        let statement = found.statement.plain();
        let largest = statement.split("no difference larger than ").nth(1).unwrap();
        let percent: f64 = largest.split(' ').next().unwrap().parse().unwrap();
        assert!(percent / 100.0 >= most && percent / 100.0 < most + 0.001, "{} {most}", found.statement.plain());
        assert!(found.statement.plain().starts_with("Cannot tell whether B is worse"), "{}", found.statement.plain());
        // The same interval answers a question that it can answer.
        let found = of_values(&a, &b, percent / 100.0);
        assert_eq!(found.answer, Answer::NotWorse, "{}", found.statement.plain());
    }

    #[test]
    fn no_answer_contradicts_the_interval_beside_it() {
        let mut random = SplitMix64::new(9);
        let sizes: Vec<u64> = (1..=60).collect();
        let mut side = |id: &str, drop: f64| {
            let level = |block: &u64| 1e9 * (1.0 - drop * *block as f64 / 60.0);
            run(id, sizes.iter().map(|block| stream(&mut random, *block, level(block))).collect())
        };
        let (a, b) = (side("1", 0.0), side("2", 0.03));
        let found = stored_runs(&[&a], &[&b], 0.01, 0.95).unwrap();
        let mut answers = BTreeSet::new();
        for cell in &found.cells {
            let Comparison { answer, p_value, adjusted_low, adjusted_high, .. } = cell.comparison;
            let (low, high) = (adjusted_low.unwrap(), adjusted_high.unwrap());
            let by_interval = match () {
                () if high < 0.99 => Answer::Worse,
                () if low > 1.0 / 0.99 => Answer::Better,
                () if low > 0.99 => Answer::NotWorse,
                () => Answer::CannotTell,
            };
            assert_eq!(answer, by_interval, "{cell:?}");
            assert_eq!(p_value.unwrap() <= 0.05, !(low..=high).contains(&1.0), "{cell:?}");
            assert!(low < cell.ratio.low.unwrap() && high > cell.ratio.high.unwrap(), "corrected: {cell:?}");
            answers.insert(answer);
        }
        assert!(answers.len() > 1, "{answers:?}");
        assert_eq!(found.answer, Answer::Worse);
        assert!(found.statement.plain().starts_with("B is worse than A by more than 1.00 % in some cells. 60 cells: "));
    }

    #[test]
    fn programs_that_start_their_time_differently_are_named() {
        let spoken = |id: &str, program: Option<Program>, pattern: Pattern| {
            let mut outcome = made(pattern, 0, 1, &[1e9; 6]);
            outcome.spec.speak = program;
            run(id, vec![outcome])
        };
        let note = |a: &Run, b: &Run| stored_runs(&[a], &[b], 0.01, 0.95).unwrap().notes[0].clone();
        let (ours, theirs) = (spoken("1", None, Pattern::Stream), spoken("2", Some(Program::Iperf3), Pattern::Stream));
        assert!(note(&ours, &theirs).plain().contains("different events in thru and iperf3 ("));
        assert_eq!(note(&ours, &theirs), note(&theirs, &ours));
        assert!(
            !note(&theirs, &spoken("3", Some(Program::Iperf3), Pattern::Stream)).plain().contains("different events")
        );
        // An import was measured by the program that it names.
        let mut imported = spoken("4", None, Pattern::Stream);
        imported.header.origin = Some(Box::new(model::Origin { tool: "iperf3".into(), ..model::Origin::default() }));
        assert!(note(&ours, &imported).plain().contains("in thru and iperf3"), "{}", note(&ours, &imported).plain());
        assert!(!note(&theirs, &imported).plain().contains("different events"));
        // The median of round trips has no such time.
        let trips = [spoken("5", None, Pattern::Pingpong), spoken("6", Some(Program::Netpipe), Pattern::Pingpong)];
        assert!(!note(&trips[0], &trips[1]).plain().contains("different events"));
    }

    #[test]
    fn several_runs_per_side_include_run_to_run_variation() {
        let mut random = SplitMix64::new(4);
        let mut side = |ids: [&str; 3], levels: [f64; 3]| -> Vec<Run> {
            ids.iter().zip(levels).map(|(id, level)| run(id, vec![stream(&mut random, 1024, level)])).collect()
        };
        let (a, b) = (side(["1", "3", "5"], [1e9, 1.1e9, 0.9e9]), side(["2", "4", "6"], [0.95e9, 1.05e9, 0.9e9]));
        let (a, b): (Vec<&Run>, Vec<&Run>) = (a.iter().collect(), b.iter().collect());
        let found = stored_runs(&a, &b, 0.01, 0.95).unwrap();
        // The trials within each run agree within 1 %, the runs do not.
        assert_eq!((found.answer, found.cells[0].ratio.n), (Answer::CannotTell, 6));
        assert!(
            found.notes.iter().all(|note| !note.plain().contains("drift")),
            "the sides alternate: {:?}",
            found.notes
        );
        let late = run("9", vec![stream(&mut random, 1024, 1e9)]);
        let found = stored_runs(&a, &[&late, &late], 0.01, 0.95).unwrap();
        assert!(found.notes.iter().any(|note| note.plain().contains("drift")), "{:?}", found.notes);
    }

    #[test]
    fn cells_are_matched_by_block_and_corrected_for_their_number() {
        let mut random = SplitMix64::new(5);
        let sizes: Vec<u64> = (0..40).map(|i| 64 * (i + 1)).collect();
        let mut side = |id: &str, extra: u64| {
            let mut outcomes: Vec<Outcome> = sizes.iter().map(|block| stream(&mut random, *block, 1e9)).collect();
            outcomes.push(stream(&mut random, extra, 1e9));
            run(id, outcomes)
        };
        let (a, b) = (side("1", 3), side("2", 5));
        let found = stored_runs(&[&a], &[&b], 0.0, 0.95).unwrap();
        assert_eq!((found.cells.len(), found.unmatched), (40, 2));
        // Forty comparisons of equal cells: without correction two would be expected to look different.
        let reported =
            found.cells.iter().filter(|cell| matches!(cell.comparison.answer, Answer::Better | Answer::Worse));
        assert_eq!(reported.count(), 0, "{:?}", found.answer);
    }

    #[test]
    fn false_positives_among_many_cells_are_rare() {
        let mut seeds = SplitMix64::new(6);
        let alarms = (0..400)
            .filter(|_| {
                let mut random = SplitMix64::new(seeds.next_u64());
                let mut side = |id: &str| run(id, (0..10).map(|i| stream(&mut random, 64 << i, 1e9)).collect());
                let (a, b) = (side("1"), side("2"));
                let found = stored_runs(&[&a], &[&b], 0.0, 0.95).unwrap();
                found.cells.iter().any(|cell| matches!(cell.comparison.answer, Answer::Better | Answer::Worse))
            })
            .count();
        // 5 % of 400 are 20, plus three standard errors.
        assert!(alarms <= 33, "{alarms} of 400");
    }

    /// A curve of twenty sizes and sixteen passes: its level wanders by a few percent from pass to pass, and its legs by 1 %.
    fn wandering_curve(id: &str, random: &mut SplitMix64) -> Run {
        let mut level = 0.0;
        let levels: Vec<f64> = (0..16)
            .map(|_| {
                level = 0.8 * level + 0.03 * random.normal();
                level
            })
            .collect();
        let spec =
            |cell: u32| model::Spec { block: 64 + u64::from(cell), ..model::Spec::new("tcp", Pattern::Pingpong) };
        let legs = |cell: u32, random: &mut SplitMix64| -> Vec<model::Trial> {
            let leg = |(pass, level): (u32, &f64)| model::Trial {
                cell,
                pass,
                position: cell,
                near: model::EndTally::default().into(),
                far: model::EndTally::default().into(),
                ledger: model::Ledger::default(),
                value: Some(20_000.0 * (level + 0.01 * random.normal()).exp()),
                verdicts: Vec::new(),
            };
            (0..).zip(&levels).map(leg).collect()
        };
        let trials: Vec<Vec<model::Trial>> = (0..20).map(|cell| legs(cell, random)).collect();
        let parts = crate::outcome::parts(&trials.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let outcomes = (0..).zip(trials).zip(parts).map(|((cell, trials), parts)| {
            let context = crate::Context { curve: true, legs: true, parts: Some(parts), ..crate::Context::default() };
            crate::outcome(&model::Cell::new(cell, spec(cell)), trials, &Stopping::default(), context)
        });
        run(id, outcomes.collect())
    }

    #[test]
    fn the_interval_of_two_curves_includes_the_level_that_each_states() {
        let mut random = SplitMix64::new(8);
        let (mut covered, mut cells) = (0, 0);
        for _ in 0..60 {
            let (a, b) = (wandering_curve("1", &mut random), wandering_curve("2", &mut random));
            let found = stored_runs(&[&a], &[&b], 0.01, 0.95).unwrap();
            cells += found.cells.len();
            let holds = |cell: &&CellComparison| cell.ratio.low <= Some(1.0) && Some(1.0) <= cell.ratio.high;
            covered += found.cells.iter().filter(holds).count();
        }
        // Without the levels half of the intervals miss the truth.
        assert!(covered as f64 >= 0.93 * f64::from(cells as u32), "{covered} of {cells}");
    }

    #[test]
    fn different_statistics_are_compared_by_goodput_if_the_sizes_are_the_same() {
        let of = |pattern: Pattern, block| run(pattern.name(), vec![made(pattern, 0, block, &[1.0; 6])]);
        let (trips, streams) = (of(Pattern::Rr, 1), of(Pattern::Stream, 1));
        let found = stored_runs(&[&streams], &[&trips], 0.01, 0.95).unwrap();
        // Two bytes for each exchange.
        let cell = &found.cells[0];
        assert_eq!((cell.pattern.as_str(), cell.unit.as_str(), cell.b.round()), ("stream/rr", "bit/s", 16.0));
        assert!(found.notes[0].plain().contains("their goodput is compared"), "{:?}", found.notes);
        let (a, b) = (
            run("1", vec![made(Pattern::Stream, 0, 4_096, &[1.0; 6])]),
            run("2", vec![made(Pattern::Rr, 0, 1, &[1.0; 6])]),
        );
        let error = stored_runs(&[&a], &[&b], 0.01, 0.95).unwrap_err().to_string();
        assert!(error.starts_with("1 and 2 have no cell in common: "), "{error}");
    }
}
