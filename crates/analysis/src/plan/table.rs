//! A plan's outcomes as tables: two factors as rows and columns, one table for each combination of the others.

use std::collections::{BTreeMap, HashMap};

use model::{Cell, Factor, Outcome, Plan, RunHeader, Spec, Stopping, Trial};

use super::{KINDS, across_kinds, complete, dimensions, of_kind, part, written};
use crate::outcome::{Headline, counted, mean_of_trials, packets_per_s, requester};
use crate::stats::Sequential;

/// The mean of a cell's trials, the same as the outcome's estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellMean {
    /// In the table's unit.
    pub value: f64,
    /// Low end of its interval; `None` with fewer than three trials.
    pub low: Option<f64>,
    /// High end.
    pub high: Option<f64>,
    /// Trials.
    pub trials: usize,
    /// The cell.
    pub cell: u32,
}

/// Rows by columns of means.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanTable {
    /// What is measured: `goodput`, [`COMMON_GOODPUT`], `median round trip`, `transactions per second`.
    pub measure: &'static str,
    /// `bit/s`, `ns` or `1/s`.
    pub unit: &'static str,
    /// The levels of the other factors, which all its cells share: name and level.
    pub held: Vec<(String, String)>,
    /// The factor of the rows.
    pub row_factor: String,
    /// The factor of the columns; empty with one factor.
    pub column_factor: String,
    /// Levels of the rows.
    pub rows: Vec<String>,
    /// Levels of the columns; a single empty one with one factor.
    pub columns: Vec<String>,
    /// Row by row; `None` if there is no such cell or it has no value.
    pub cells: Vec<Vec<Option<CellMean>>>,
    /// The number of each of these cells; `None` if there is no such cell.
    pub ids: Vec<Vec<Option<u32>>>,
    /// Confidence of the intervals.
    pub confidence: f64,
}

/// The measure of tables that compare round trips or transactions with streams: [`Headline::goodput`].
pub const COMMON_GOODPUT: &str = "goodput (of exchanges: request and response over the round trip)";

/// The measures of round trips and of packets without loss.
const ROUND_TRIP: &str = "median round trip";
const PACKETS: &str = "packets per second without loss";

/// The value of a trial that a table of this measure shows; `None` if the trial has none.
#[must_use]
pub fn trial_measure(measure: &str, spec: &Spec, trial: &Trial) -> Option<f64> {
    let kind = Headline::of(spec);
    match measure {
        ROUND_TRIP if kind == Headline::Transactions => {
            requester(&trial.near, &trial.far).rtt.as_ref().map(|rtt| rtt.p50_ns as f64)
        }
        PACKETS => packets_per_s(spec, trial).filter(|_| spec.no_loss && trial.ledger.lost == 0),
        COMMON_GOODPUT => kind.goodput(spec, trial.value?),
        _ => trial.value,
    }
}

/// The tables of a plan's run; empty without a plan. Round trips come before rates. Rows and columns are the first two factors of
/// the plan, or the hosts if both ends vary. If the levels of a factor have different headline statistics, they are the columns of
/// one table of goodput, unless both ends vary.
#[must_use]
pub fn tables(header: &RunHeader, outcomes: &[Outcome]) -> Vec<PlanTable> {
    let Some(plan) = &header.plan else { return Vec::new() };
    let mut tables = Vec::new();
    let across =
        if is_matrix(plan, &header.cells) { None } else { across_kinds(plan, &header.cells).into_iter().next() };
    let mut sorted: Vec<&Outcome> = outcomes.iter().collect();
    sorted.sort_by_key(|outcome| outcome.cell);
    let mut add = |cells: &[&Cell], measure: &'static str, unit: &'static str, columns: Option<&str>| {
        let means = means(cells, &sorted, measure, &header.stopping);
        tables.extend(of_measure(plan, cells, &means, columns).into_iter().map(|table| PlanTable {
            measure,
            unit,
            confidence: header.stopping.confidence,
            ..table
        }));
    };
    for kind in KINDS {
        let cells = of_kind(&header.cells, kind);
        let shown: &[(&'static str, &'static str)] = match kind {
            Headline::Goodput if cells.iter().any(|cell| cell.spec.no_loss) => {
                &[("goodput", "bit/s"), (PACKETS, "1/s")]
            }
            // The common table has these values.
            Headline::Goodput if across.is_some() => &[],
            Headline::Goodput => &[("goodput", "bit/s")],
            Headline::RoundTrip => &[(ROUND_TRIP, "ns")],
            Headline::Transactions => &[(ROUND_TRIP, "ns"), ("transactions per second", "1/s")],
        };
        for (measure, unit) in shown {
            add(&cells, measure, unit, None);
        }
    }
    if let Some(columns) = across {
        add(&header.cells.iter().collect::<Vec<_>>(), COMMON_GOODPUT, "bit/s", Some(&columns));
    }
    tables
}

/// Whether the tables are matrices of hosts.
fn is_matrix(plan: &Plan, cells: &[Cell]) -> bool {
    let names = dimensions(plan, &cells.iter().collect::<Vec<_>>());
    [Factor::FROM, Factor::TO].iter().all(|name| names.iter().any(|other| other == name))
}

/// The mean of each cell's trials, as the outcome's estimate for the headline value; `None` without a trial that has it. `outcomes` are in
/// the order of their cells.
fn means(cells: &[&Cell], outcomes: &[&Outcome], measure: &str, rule: &Stopping) -> Vec<Option<CellMean>> {
    let rule = Sequential::new(rule);
    let mut next = 0;
    let of_cell = |cell: &&Cell| {
        // Most cells are in this order too.
        if outcomes.get(next).is_none_or(|outcome| outcome.cell != cell.id) {
            next = outcomes.partition_point(|outcome| outcome.cell < cell.id);
        }
        let own = outcomes[next..].iter().take_while(|outcome| outcome.cell == cell.id);
        next += own.clone().count();
        let of_outcome = |outcome: &&Outcome| -> Vec<f64> {
            let counted = counted(&outcome.trials);
            let complete = counted.iter().filter(|trial| complete(trial));
            complete.filter_map(|trial| trial_measure(measure, &cell.spec, trial)).collect()
        };
        let values: Vec<f64> = own.flat_map(of_outcome).collect();
        let (value, series) = mean_of_trials(&values, &rule)?;
        let [low, high] = [series.map(|series| series.interval.low), series.map(|series| series.interval.high)];
        Some(CellMean { value, low, high, trials: values.len(), cell: cell.id })
    };
    cells.iter().map(of_cell).collect()
}

/// Tables of these means of `cells`, with the factor `columns` as columns if one is given.
fn of_measure(plan: &Plan, cells: &[&Cell], means: &[Option<CellMean>], columns: Option<&str>) -> Vec<PlanTable> {
    let mut names = dimensions(plan, cells);
    if let Some(at) = names.iter().position(|name| Some(name.as_str()) == columns)
        && names.len() > 1
    {
        let name = names.remove(at);
        names.insert(1, name);
    }
    let both_hosts = [Factor::FROM, Factor::TO];
    if both_hosts.iter().all(|name| names.iter().any(|other| other == name)) {
        names.sort_by_key(|name| !both_hosts.contains(&name.as_str()));
    }
    let Some(row_factor) = names.first().cloned() else { return Vec::new() };
    let column_factor = names.get(1).cloned().unwrap_or_default();
    let rest: Vec<String> = names.iter().skip(2).cloned().collect();
    // By their places in `cells`.
    let mut groups: Vec<(BTreeMap<&str, &str>, Vec<usize>)> = Vec::new();
    for (place, cell) in cells.iter().enumerate() {
        let held = part(cell, &rest);
        match groups.iter_mut().find(|(other, _)| *other == held) {
            Some((_, group)) => group.push(place),
            None => groups.push((held, vec![place])),
        }
    }
    let of_rows = written(plan, &row_factor);
    let one = [String::new()];
    let of_columns = if column_factor.is_empty() { &one } else { written(plan, &column_factor) };
    let [row_of, column_of] = [of_rows, of_columns].map(places);
    let table = |(held, group): (BTreeMap<&str, &str>, Vec<usize>)| {
        // By its place in `cells`: of each row and column the first cell counts, with or without a mean.
        let mut first: Vec<Vec<Option<usize>>> = vec![vec![None; of_columns.len()]; of_rows.len()];
        let mut is_met = [vec![false; of_rows.len()], vec![false; of_columns.len()]];
        for at in group {
            let level = |factor: &String| cells[at].levels.get(factor).map(String::as_str);
            let column = if column_factor.is_empty() { Some("") } else { level(&column_factor) };
            let place = |of: &HashMap<&str, usize>, level: Option<&str>| of.get(level?).copied();
            let own = [place(&row_of, level(&row_factor)), place(&column_of, column)];
            for (met, own) in is_met.iter_mut().zip(own) {
                own.into_iter().for_each(|own| met[own] = true);
            }
            if let [Some(row), Some(column)] = own {
                first[row][column].get_or_insert(at);
            }
        }
        let [rows, columns] = [of_rows, of_columns].map(|levels| levels.iter().cloned());
        let (rows, columns) = (met(rows, &is_met[0]), met(columns, &is_met[1]));
        let first: Vec<Vec<Option<usize>>> =
            met(first.into_iter().map(|row| met(row.into_iter(), &is_met[1])), &is_met[0]);
        let ids = first.iter().map(|row| row.iter().map(|at| Some(cells[(*at)?].id)).collect()).collect();
        let cells = first.into_iter().map(|row| row.into_iter().map(|at| means[at?]).collect()).collect();
        let name = |name: &String| Some((name.clone(), (*held.get(name.as_str())?).to_owned()));
        let held = rest.iter().filter_map(name).collect();
        let (row_factor, column_factor) = (row_factor.clone(), column_factor.clone());
        PlanTable { measure: "", unit: "", confidence: 0.0, held, row_factor, column_factor, rows, columns, cells, ids }
    };
    groups.into_iter().map(table).collect()
}

/// Those that are met.
fn met<T>(all: impl Iterator<Item = T>, is_met: &[bool]) -> Vec<T> {
    all.zip(is_met).filter(|(_, is_met)| **is_met).map(|(one, _)| one).collect()
}

/// The first place of each name.
fn places(names: &[String]) -> HashMap<&str, usize> {
    names.iter().enumerate().rev().map(|(place, name)| (name.as_str(), place)).collect()
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::plan::expand;
    use crate::{Context, outcome};
    use model::{EndTally, Ledger, Pass, Pattern, RunKind, Stopping};

    /// A simulated run of a plan.
    pub(crate) struct PlanRun {
        pub(crate) header: RunHeader,
        pub(crate) outcomes: Vec<Outcome>,
        pub(crate) passes: Vec<Pass>,
    }

    /// A factorial of `factors` (of which `from` and `to` are hosts) with `rounds` trials of each cell.
    pub(crate) fn planned(
        factors: &[(&str, &[&str])],
        pattern: Pattern,
        rounds: u32,
        mut value: impl FnMut(&BTreeMap<String, String>, u32) -> f64,
    ) -> PlanRun {
        let mut plan = Plan::default();
        for (name, levels) in factors {
            let levels: Vec<String> = levels.iter().map(|level| (*level).to_owned()).collect();
            match *name {
                "from" => plan.from = levels,
                "to" => plan.to = levels,
                name => plan.factors.push(Factor { name: name.into(), key: name.into(), levels, ..Factor::default() }),
            }
        }
        let cells: Vec<Cell> = expand(&plan)
            .unwrap()
            .into_iter()
            .zip(0..)
            .map(|(planned, id)| Cell { levels: planned.levels, ..Cell::new(id, Spec::new("tcp", pattern)) })
            .collect();
        let mut trials: Vec<Vec<Trial>> = vec![Vec::new(); cells.len()];
        let mut passes = Vec::new();
        for round in 0..rounds {
            for cell in &cells {
                let index = passes.len() as u32;
                passes.push(Pass { index, round: Some(round), ..Pass::default() });
                trials[cell.id as usize].push(Trial {
                    cell: cell.id,
                    pass: index,
                    position: 0,
                    near: EndTally::default().into(),
                    far: EndTally::default().into(),
                    ledger: Ledger::default(),
                    value: Some(value(&cell.levels, round)),
                    verdicts: Vec::new(),
                });
            }
        }
        let made =
            |(cell, trials): (&Cell, Vec<Trial>)| outcome(cell, trials, &Stopping::default(), Context::default());
        let outcomes = cells.iter().zip(trials).map(made).collect();
        let header = RunHeader { plan: Some(Box::new(plan)), cells, kind: RunKind::Run, ..RunHeader::default() };
        PlanRun { header, outcomes, passes }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::planned;
    use super::*;
    use model::Pattern;

    #[test]
    fn two_factors_are_rows_and_columns_and_the_rest_are_tables() {
        let factors: [(&str, &[&str]); 3] = [("block", &["1", "2"]), ("sndbuf", &["a", "b", "c"]), ("cc", &["x", "y"])];
        let run = planned(&factors, Pattern::Stream, 6, |levels, round| {
            let base = if levels["cc"] == "y" { 200.0 } else { 100.0 };
            base + f64::from(round)
        });
        let tables = tables(&run.header, &run.outcomes);
        assert_eq!(tables.len(), 2);
        let table = &tables[1];
        assert_eq!((table.row_factor.as_str(), table.column_factor.as_str()), ("block", "sndbuf"));
        assert_eq!((table.rows.len(), table.columns.len()), (2, 3));
        assert_eq!(table.held, [("cc".to_owned(), "y".to_owned())]);
        let mean = table.cells[1][2].unwrap();
        let estimate = run.outcomes[mean.cell as usize].estimate.clone().unwrap();
        assert_eq!((mean.value, mean.low, mean.high), (estimate.value, estimate.low, estimate.high));
        assert_eq!((mean.value, mean.trials), (202.5, 6));
    }

    #[test]
    fn hosts_are_a_matrix_without_its_diagonal() {
        let hosts: &[&str] = &["a", "b", "c"];
        let run = planned(&[("flows", &["1", "2"]), ("from", hosts), ("to", hosts)], Pattern::Rr, 3, |_, _| 10.0);
        let tables = tables(&run.header, &run.outcomes);
        // No round trip was timed, so that matrix is empty.
        assert_eq!(tables.iter().map(|table| table.unit).collect::<Vec<_>>(), ["ns", "ns", "1/s", "1/s"]);
        let table = &tables[2];
        assert_eq!((table.row_factor.as_str(), table.column_factor.as_str()), ("from", "to"));
        assert!((0..3).all(|at| table.cells[at][at].is_none()));
        assert_eq!(table.cells[0][1].map(|mean| (mean.value, mean.low)), Some((10.0, Some(10.0))), "3 trials");
    }

    /// A plan of blocks by mode, whose streams carry three times as much as its round trips.
    fn modes() -> testing::PlanRun {
        let factors: [(&str, &[&str]); 3] =
            [("mode", &["round trip", "stream"]), ("block", &["1000", "4000"]), ("io", &["a", "b"])];
        let mut random = model::SplitMix64::new(5);
        let mut run = planned(&factors, Pattern::Stream, 8, |levels, _| {
            let block: f64 = levels["block"].parse().unwrap();
            let noise = 1.0 + 0.004 * random.normal();
            // A block per way in 16 µs: 1 Gbit/s for 1000 bytes.
            if levels["mode"] == "stream" { 3e6 * block * noise } else { 16_000.0 * noise }
        });
        for (cell, outcome) in run.header.cells.iter_mut().zip(&mut run.outcomes) {
            cell.spec.block = cell.levels["block"].parse().unwrap();
            if cell.levels["mode"] == "round trip" {
                cell.spec.pattern = Pattern::Pingpong;
            }
            outcome.spec = cell.spec.clone();
        }
        run
    }

    #[test]
    fn patterns_have_tables_of_their_own_and_are_not_compared() {
        let run = modes();
        let tables = tables(&run.header, &run.outcomes);
        let shown: Vec<_> = tables.iter().map(|table| (table.measure, table.column_factor.as_str())).collect();
        assert_eq!(shown, [("median round trip", "io"), ("goodput", "io")]);
        let found = crate::plan::of_plan(&run.header, &run.outcomes, &run.passes, &[]);
        assert!(!found.iter().any(|one| one.statement.plain().contains("round trip → stream")), "{found:#?}");
    }

    #[test]
    fn a_search_without_loss_has_its_packet_rate_where_it_found_one() {
        let mut run = planned(&[("flows", &["1", "2"])], Pattern::Stream, 6, |_, _| 8e6);
        for (cell, outcome) in run.header.cells.iter_mut().zip(&mut run.outcomes) {
            cell.spec.no_loss = true;
            for trial in &mut outcome.trials {
                trial.far.receiving_ns = 500_000_000;
                trial.far.datagrams = Some(model::DatagramTally { received: 400, ..Default::default() });
                // All trials of the second cell had losses.
                trial.ledger.lost = u64::from(cell.id);
            }
        }
        let tables = tables(&run.header, &run.outcomes);
        assert_eq!(tables.iter().map(|table| table.unit).collect::<Vec<_>>(), ["bit/s", "1/s"]);
        let rates: Vec<Option<f64>> = tables[1].cells.iter().map(|row| row[0].map(|mean| mean.value)).collect();
        assert_eq!(rates, [Some(800.0), None]);
    }

    #[test]
    fn a_cell_has_one_value_everywhere() {
        // One outlier: the median is 1, the mean 12.
        let values = [1.0, 1.0, 1.0, 1.0, 1.0, 67.0];
        let run = planned(&[("flows", &["1", "2"])], Pattern::Stream, 6, |_, round| values[round as usize]);
        let mean = tables(&run.header, &run.outcomes)[0].cells[0][0].unwrap();
        assert_eq!(mean.value, 12.0);
        assert_eq!(Some(mean.value), run.outcomes[0].estimate.as_ref().map(|estimate| estimate.value));
    }

    #[test]
    fn one_factor_is_one_column() {
        let run = planned(&[("flows", &["1", "2"])], Pattern::Stream, 3, |_, _| 10.0);
        let tables = tables(&run.header, &run.outcomes);
        assert_eq!((tables[0].columns.len(), tables[0].column_factor.as_str()), (1, ""));
        assert!(super::tables(&RunHeader::default(), &run.outcomes).is_empty(), "no plan, no table");
    }
}
