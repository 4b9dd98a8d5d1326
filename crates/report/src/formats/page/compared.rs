//! The runs of a page beside each other: how each differs from the first.

use analysis::compare::{CompareError, distinguishing};
use analysis::stored_runs;
use model::{CellComparison, Estimate, Run, RunComparison, Trust};
use serde::Serialize;
use text::{Text, say};

use crate::headline::{self, only};
use crate::screens::comparison::levels;
use crate::sections::outcome_line;
use crate::{Layout, labels};

/// What is taken for no difference, and the confidence of the intervals, as in `thru compare`.
const TOLERANCE: f64 = 0.01;
const CONFIDENCE: f64 = 0.95;
/// Factors beyond these are not drawn.
const DRAWN: [f64; 2] = [0.25, 4.0];

/// A row for each run, or for each cell that several runs have.
#[derive(Debug, Serialize)]
pub(in crate::formats) struct Compared {
    /// The answer on each run after the first.
    pub(in crate::formats) answers: Vec<String>,
    pub(in crate::formats) head: Vec<String>,
    /// Whether a column is numeric, and so right-aligned.
    numeric: Vec<bool>,
    pub(in crate::formats) rows: Vec<Row>,
    /// What is drawn of each row, and the value at which there is no difference.
    drawn: &'static str,
    reference: Option<f64>,
    /// Whether equal factors are equally far apart.
    log: bool,
    /// What the columns are.
    note: String,
    /// What to know of the comparison.
    caveats: Vec<String>,
}

/// A run or a cell.
#[derive(Debug, Serialize)]
pub(in crate::formats) struct Row {
    pub(in crate::formats) cells: Vec<String>,
    /// What each cell is sorted by, if not by its text.
    keys: Vec<Option<f64>>,
    /// The low end, the value and the high end that are drawn.
    span: Option<[f64; 3]>,
}

/// `None` of one run.
pub(super) fn of(runs: &[Run], layout: Layout) -> Option<Compared> {
    let (first, others) = runs.split_first().filter(|(_, others)| !others.is_empty())?;
    let names = names(runs);
    let found: Vec<Found> = others.iter().map(|run| stored_runs(&[first], &[run], TOLERANCE, CONFIDENCE)).collect();
    let answers =
        found.iter().zip(&names[1..]).map(|(found, name)| layout.shown(&answer(&names[0], name, found))).collect();
    let mut caveats: Vec<String> = Vec::new();
    for note in found.iter().flatten().flat_map(|found| &found.notes) {
        let note = layout.shown(note);
        if !caveats.contains(&note) {
            caveats.push(note);
        }
    }
    let each = Each { names: &names, found: &found, layout };
    let is_single = runs.iter().all(|run| only(run).is_some());
    let table = if is_single { each.runs(runs) } else { each.cells() };
    Some(Compared { answers, caveats, ..table })
}

type Found = Result<RunComparison, CompareError>;

/// The names of runs, with what distinguishes those of the same name.
pub(super) fn names(runs: &[Run]) -> Vec<String> {
    let titles: Vec<String> = runs.iter().map(|run| labels::plain(&labels::title(run))).collect();
    let specs =
        runs.iter().zip(&titles).map(|(run, title)| (title.clone(), run.header.cells.first().map(|cell| &*cell.spec)));
    let own = distinguishing(specs);
    let named =
        |(title, own): (&String, &String)| if own.is_empty() { title.clone() } else { format!("{title}, {own}") };
    let named: Vec<String> = titles.iter().zip(&own).map(named).collect();
    let is_alone = |name: &String| named.iter().filter(|other| *other == name).count() == 1;
    let with_time = |(run, name): (&Run, &String)| {
        if is_alone(name) { name.clone() } else { format!("{name}, {}", labels::begun(run)) }
    };
    runs.iter().zip(&named).map(with_time).collect()
}

fn answer(first: &str, name: &str, found: &Found) -> Text {
    match found {
        Ok(found) => headline::compared([first, name], found),
        Err(error) => error.to_string().into(),
    }
}

/// The answer on a cell: none where a result must not be used.
fn verdict(cell: &CellComparison) -> String {
    let words = if cell.trust == Some(Trust::None) { "not usable" } else { labels::answer(cell.comparison.answer) };
    words.to_owned()
}

fn trust(trust: Option<Trust>) -> (String, Option<f64>) {
    (trust.map_or("-", labels::trust).to_owned(), trust.map(|trust| f64::from(trust as u8)))
}

struct Each<'a> {
    names: &'a [String],
    /// How each run after the first differs.
    found: &'a [Found],
    layout: Layout,
}

impl Each<'_> {
    /// A row for each run, all of which measured one thing.
    fn runs(&self, runs: &[Run]) -> Compared {
        let measure = |run: &Run| only(run)?.estimate.as_ref().map(|one| analysis::compare::what(&one.unit));
        let measures: Vec<&str> = runs.iter().filter_map(measure).collect();
        let is_one = measures.windows(2).all(|two| two[0] == two[1]);
        let measure = measures.first().filter(|_| is_one).copied().unwrap_or("value");
        let rows = runs.iter().enumerate().map(|(at, run)| self.run(at, run)).collect();
        let head = ["run", measure, "±", "B to A", "answer", "trust", "limited by"];
        Compared {
            head: head.map(str::to_owned).into(),
            numeric: vec![false, true, true, true, false, false, false],
            rows,
            drawn: "value with its interval",
            reference: only(&runs[0]).and_then(|outcome| outcome.estimate.as_ref()).map(|estimate| estimate.value),
            log: false,
            note: format!("A is {}; B is the run of the row.", self.names[0]),
            answers: Vec::new(),
            caveats: Vec::new(),
        }
    }

    fn run(&self, at: usize, run: &Run) -> Row {
        let outcome = only(run);
        let usable = outcome.filter(|outcome| headline::reason(outcome).is_none());
        let estimate = usable.and_then(|outcome| outcome.estimate.as_ref());
        let value = match (outcome, usable) {
            (_, Some(outcome)) => {
                let each = outcome_line::each_direction(outcome.directions());
                each.or_else(|| estimate.map(|one| labels::quantity(one.value, &one.unit)))
                    .unwrap_or_else(|| "-".into())
            }
            (Some(_), None) => "no result".into(),
            (None, None) => "-".into(),
        };
        let width = estimate.and_then(Estimate::relative_half_width);
        let cell = at.checked_sub(1).and_then(|at| self.found[at].as_ref().ok()?.cells.first());
        let (change, answer) = match cell {
            Some(cell) => (labels::change(&cell.ratio, &cell.comparison), verdict(cell)),
            None if at == 0 => ("A".to_owned(), "-".to_owned()),
            None => ("-".to_owned(), "no cell in common".to_owned()),
        };
        let (trust, worst) = trust(outcome.and_then(|outcome| outcome.summary.trust));
        let why = outcome.and_then(headline::reason).map(|why| self.layout.shown(&say!("not usable: {why}")));
        let answer = why.unwrap_or(answer);
        let limits = usable.map(headline::limits).filter(|limits| !limits.is_empty());
        Row {
            cells: vec![
                self.names[at].clone(),
                self.layout.shown(&value),
                estimate.and_then(labels::half_width).unwrap_or_else(|| "-".to_owned()),
                change,
                answer,
                trust,
                limits.map_or("-".to_owned(), |limits| self.layout.shown(&limits)),
            ],
            keys: vec![
                None,
                estimate.map(|one| one.value),
                width,
                cell.map(|cell| cell.ratio.value).or((at == 0).then_some(1.0)),
                None,
                worst,
                None,
            ],
            span: estimate.map(|one| [one.low.unwrap_or(one.value), one.value, one.high.unwrap_or(one.value)]),
        }
    }

    /// A row for each cell of the first run and each other run that has it.
    fn cells(&self) -> Compared {
        let several = self.found.len() > 1;
        let cells = || self.found.iter().flatten().flat_map(|found| &found.cells);
        let is_shared = |key: fn(&CellComparison) -> String| {
            let mut all = cells().map(key);
            let first = all.next();
            all.all(|other| Some(other) == first)
        };
        let shown = [!is_shared(|cell| cell.pattern.clone()), !is_shared(|cell| labels::block(cell.block))];
        let rows =
            self.found.iter().zip(&self.names[1..]).filter_map(|(found, name)| Some((found.as_ref().ok()?, name)));
        let rows = rows.flat_map(|(found, name)| found.cells.iter().map(move |cell| (cell, name))).enumerate();
        let head = ["cell", "B", "value of A", "value of B", "B to A", "answer", "trust"];
        let numeric = [false, false, true, true, true, false, false];
        let kept = |at: usize| several || head[at] != "B";
        let a = &self.names[0];
        let note = match self.names {
            [_, b] => format!("A is {a}, B is {b}."),
            _ => format!("A is {a}."),
        };
        Compared {
            head: (0..head.len()).filter(|at| kept(*at)).map(|at| head[at].to_owned()).collect(),
            numeric: (0..head.len()).filter(|at| kept(*at)).map(|at| numeric[at]).collect(),
            rows: rows.map(|(at, (cell, name))| self.cell(at, cell, several.then_some(name), shown)).collect(),
            drawn: "B/A with its interval",
            reference: Some(1.0),
            log: true,
            note,
            answers: Vec::new(),
            caveats: Vec::new(),
        }
    }

    fn cell(&self, at: usize, cell: &CellComparison, name: Option<&String>, [pattern, block]: [bool; 2]) -> Row {
        let value = |value| self.layout.shown(&labels::quantity(value, &cell.unit));
        let own = levels(&cell.levels);
        let parts = [pattern.then(|| cell.pattern.clone()), block.then(|| labels::block(cell.block)), Some(own)];
        let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        let what =
            if parts.is_empty() { format!("{} {}", cell.pattern, labels::block(cell.block)) } else { parts.join(", ") };
        let (trust, worst) = trust(cell.trust);
        let bounds = cell.comparison.adjusted_low.zip(cell.comparison.adjusted_high);
        let drawn = |factor: f64| factor.clamp(DRAWN[0], DRAWN[1]);
        let (low, high) = bounds.unwrap_or((cell.ratio.value, cell.ratio.value));
        let (cells, keys): (Vec<String>, Vec<Option<f64>>) = [
            Some((labels::plain(&what), Some(at as f64))),
            name.map(|name| (name.clone(), None)),
            Some((value(cell.a), Some(cell.a))),
            Some((value(cell.b), Some(cell.b))),
            Some((labels::change(&cell.ratio, &cell.comparison), Some(cell.ratio.value))),
            Some((verdict(cell), None)),
            Some((trust, worst)),
        ]
        .into_iter()
        .flatten()
        .unzip();
        let span = cell.ratio.value.is_finite().then(|| [drawn(low), drawn(cell.ratio.value), drawn(high)]);
        Row { cells, keys, span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn named(mut run: Run, name: &str, factor: f64) -> Run {
        run.header.name = Some(name.to_owned());
        for outcome in &mut run.outcomes {
            for value in outcome.trials.iter_mut().filter_map(|trial| trial.value.as_mut()) {
                *value *= factor;
            }
        }
        run
    }

    fn compared(runs: &[Run]) -> Compared {
        of(runs, Layout::default()).unwrap()
    }

    #[test]
    fn single_measurements_have_a_row_each_with_few_digits() {
        let runs = [("cubic", 1.0), ("reno", 0.66), ("bbr", 1.02)].map(|(name, by)| named(sample::stream(), name, by));
        let found = compared(&runs);
        let column = |at: usize| found.rows.iter().map(|row| row.cells[at].as_str()).collect::<Vec<_>>();
        assert_eq!(column(0), ["cubic", "reno", "bbr"]);
        assert_eq!(found.head[1], "goodput");
        assert_eq!(column(3)[0], "A");
        assert!(column(3)[1].starts_with("-34 % ("), "{:?}", column(3));
        assert!(column(4)[1..] == ["worse", "better"] || column(4)[1] == "worse", "{:?}", column(4));
        assert!(found.answers[0].starts_with("reno is worse than cubic: goodput -34 % ("), "{:?}", found.answers);
        assert!(found.rows.iter().all(|row| row.span.is_some_and(|[low, value, high]| low <= value && value <= high)));
        assert!(found.caveats.iter().any(|note| note.contains("not paired")));
        assert_eq!(of(&runs[..1], Layout::default()).map(|one| one.rows.len()), None);
    }

    #[test]
    fn what_must_not_be_used_has_no_answer() {
        let mut runs = [named(sample::stream(), "a", 1.0), named(sample::stream(), "b", 0.5)];
        runs[1].outcomes[0].summary.trust = Some(Trust::None);
        runs[1].outcomes[0].summary.verdicts = vec![model::Verdict::ByteCountMismatch];
        let found = compared(&runs);
        assert_eq!(found.answers, ["a and b cannot be compared: the result of one must not be used"]);
        let [_, value, _, _, answer, trust, _] = found.rows[1].cells.as_slice() else { panic!("{:?}", found.rows[1]) };
        assert!(
            value == "no result" && answer.starts_with("not usable: ") && trust == "none",
            "{value} {answer} {trust}"
        );
    }

    #[test]
    fn several_cells_have_a_row_each_and_what_they_share_is_left_out() {
        let runs = [named(sample::curve(), "a", 1.0), named(sample::curve(), "b", 1.5)];
        let found = compared(&runs);
        assert!(found.rows.len() > 2, "{:?}", found.rows);
        assert_eq!(found.head[0], "cell");
        assert!(!found.head.contains(&"B".to_owned()), "two runs: {:?}", found.head);
        assert!(found.rows.iter().all(|row| !row.cells[0].contains("pingpong")), "{:?}", found.rows);
        let of_three = compared(&[runs[0].clone(), runs[1].clone(), named(sample::curve(), "c", 1.0)]);
        assert_eq!((of_three.rows.len(), of_three.head[1].as_str()), (2 * found.rows.len(), "B"));
        // Drawn within bounds, whatever the interval is.
        assert!(found.rows.iter().filter_map(|row| row.span).flatten().all(|end| (DRAWN[0]..=DRAWN[1]).contains(&end)));
    }

    #[test]
    fn runs_of_the_same_name_are_told_apart() {
        let mut other = named(sample::stream(), "x", 1.0);
        let runs = [other.clone(), other.clone()];
        assert!(names(&runs)[0].starts_with("x, 20"), "by their time: {:?}", names(&runs));
        let mut cell = other.header.cells[0].clone();
        cell.spec = model::Spec { flows: 4, ..(*cell.spec).clone() }.into();
        other.header.cells = vec![cell];
        assert_eq!(names(&[runs[0].clone(), other])[1], "x, flows 4");
    }
}
