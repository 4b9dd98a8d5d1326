//! How far the values of a plan are apart: the least, the median and the greatest one, with their places.

use analysis::plan::{PlanTable, tables};
use model::{Factor, Run, RunKind};
use text::{Text, say};

use crate::labels;

/// The measures that stand for a plan; the others follow from them.
pub(crate) const MEASURES: [&str; 2] = ["median round trip", "goodput"];

/// The tables of these measures with a value, without those of a curve's sizes for one pair.
pub(crate) fn shown(run: &Run) -> Vec<PlanTable> {
    let is_of_sizes =
        |table: &PlanTable| table.held.iter().any(|(name, _)| [Factor::FROM, Factor::TO].contains(&name.as_str()));
    let mut tables = tables(&run.header, &run.outcomes);
    tables.retain(|table| {
        MEASURES.contains(&table.measure) && !is_of_sizes(table) && table.cells.iter().flatten().any(Option::is_some)
    });
    tables
}

/// Whether rows and columns are hosts.
pub(crate) fn is_of_hosts(table: &PlanTable) -> bool {
    table.row_factor == Factor::FROM && table.column_factor == Factor::TO
}

/// What the answer calls the table's measure.
pub(crate) fn title(table: &PlanTable) -> &'static str {
    if table.unit == "ns" { "RTT" } else { "Goodput" }
}

/// A value and its place in a table.
struct Value {
    value: f64,
    row: usize,
    column: usize,
}

/// The values of a table in ascending order.
fn ascending(table: &PlanTable) -> Vec<Value> {
    let of_row = |(row, cells): (usize, &Vec<_>)| {
        let of = |(column, mean): (usize, &Option<analysis::plan::CellMean>)| {
            Some(Value { value: mean.as_ref()?.value, row, column })
        };
        cells.iter().enumerate().filter_map(of).collect::<Vec<Value>>()
    };
    let mut values: Vec<Value> = table.cells.iter().enumerate().flat_map(of_row).collect();
    values.sort_by(|a, b| a.value.total_cmp(&b.value));
    values
}

/// `median 941 Mbit/s over 30 pairs, 94.1 Mbit/s (a → b) to 944 Mbit/s (b → c)`; of other factors than hosts, without the median:
/// `375 Mbit/s (mtu 1500, system Windows) to 988 Mbit/s (mtu 9000, system Linux, and 1 other)`.
pub(crate) fn sentence(table: &PlanTable) -> Option<Text> {
    let values = ascending(table);
    let (least, most) = (values.first()?, values.last()?);
    let of_hosts = is_of_hosts(table);
    let shown = |value: f64| labels::quantity(value, table.unit);
    let place = |at: &Value| {
        let (row, column) = (&table.rows[at.row], table.columns.get(at.column).map_or("", String::as_str));
        let name = match (of_hosts, table.column_factor.as_str()) {
            (true, _) => say!("{row} → {column}"),
            (false, "") => say!("{} {row}", table.row_factor),
            (false, factor) => say!("{} {row}, {factor} {column}", table.row_factor),
        };
        let others = values.iter().filter(|other| other.value.total_cmp(&at.value).is_eq()).count() - 1;
        let others = match others {
            0 => Text::default(),
            1 => ", and 1 other".into(),
            more => say!(", and {more} others"),
        };
        say!("{} ({name}{others})", shown(at.value))
    };
    let held: String = table.held.iter().map(|(name, level)| format!("{name} {level}, ")).collect();
    let numbers: Vec<f64> = values.iter().map(|value| value.value).collect();
    let middle = if of_hosts {
        say!("median {} over {} pairs, ", shown(model::median(&numbers)?), values.len())
    } else {
        Text::default()
    };
    Some(say!("{}{middle}{} to {}", held, place(least), place(most)))
}

/// A plan's result in a few words, with the number of its cells if some have no value: of one matrix of hosts `median goodput 508 Mbit/s,
/// 488 Mbit/s to 940 Mbit/s`, of several `median RTT 25.6 µs, median goodput 96.3 Mbit/s`, of other plans `goodput 375 Mbit/s to 988
/// Mbit/s`. `None` of other runs.
pub(crate) fn short(run: &Run) -> Option<Text> {
    run.header.plan.as_ref().filter(|plan| plan.groups().is_none())?;
    matches!(run.header.kind, RunKind::Run | RunKind::Mesh).then_some(())?;
    let all = shown(run);
    let of_hosts = all.iter().all(is_of_hosts);
    let several = all.iter().any(|table| table.measure != all[0].measure);
    let part = |measure: &str| {
        let own: Vec<&PlanTable> = all.iter().filter(|table| table.measure == measure).collect();
        let mut values: Vec<f64> = own.iter().flat_map(|table| ascending(table)).map(|value| value.value).collect();
        values.sort_by(f64::total_cmp);
        let unit = own.first()?.unit;
        let name = if unit == "ns" { "RTT" } else { "goodput" };
        let shown = |value: f64| labels::quantity(value, unit);
        let range = say!("{} to {}", shown(*values.first()?), shown(*values.last()?));
        Some(match (of_hosts, several) {
            (true, true) => say!("median {name} {}", shown(model::median(&values)?)),
            (true, false) => say!("median {name} {}, {range}", shown(model::median(&values)?)),
            (false, _) => say!("{name} {range}"),
        })
    };
    let parts: Vec<Text> = MEASURES.into_iter().filter_map(part).collect();
    let valued = run.outcomes.iter().filter(|outcome| outcome.estimate.is_some()).count();
    let cells = run.header.cells.len();
    let missing = if valued < cells { say!(" ({valued} of {cells} cells)") } else { Text::default() };
    (!parts.is_empty()).then(|| Text::join(parts, ", ") + missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_matrix_of_hosts_has_a_median_and_both_ends() {
        let run = sample::between_hosts();
        let sentences: Vec<String> = shown(&run).iter().filter_map(sentence).map(|text| text.plain()).collect();
        assert_eq!(sentences.len(), 2, "a table for each level of flows");
        for (sentence, level) in sentences.iter().zip(["flows 1", "flows 4"]) {
            assert!(
                sentence.starts_with(&format!("{level}, median ")) && sentence.contains(" over 6 pairs, "),
                "{sentence}"
            );
            assert_eq!(sentence.matches(" → ").count(), 2, "{sentence}");
        }
        let text = short(&run).unwrap();
        assert!(
            text.plain().starts_with("median goodput ")
                && text.plain().contains(" to ")
                && !text.plain().contains("cells"),
            "{text:?}"
        );
    }

    #[test]
    fn a_plan_without_hosts_has_no_median() {
        let mut run = sample::planned();
        let text = sentence(&shown(&run)[0]).unwrap();
        assert!(
            text.plain().contains("(block 8KiB, sndbuf 64KiB) to ") && !text.plain().contains("median"),
            "{text:?}"
        );
        let text = short(&run).unwrap();
        assert!(text.plain().starts_with("goodput ") && text.plain().contains(" to "), "{text:?}");
        run.outcomes.pop();
        assert!(short(&run).unwrap().plain().ends_with(" (3 of 4 cells)"));
        assert_eq!(short(&sample::stream()), None);
    }

    #[test]
    fn equal_ends_are_counted() {
        let mut run = sample::planned();
        let trials = run.outcomes[0].trials.clone();
        run.outcomes[1].trials = trials;
        let text = sentence(&shown(&run)[0]).unwrap();
        assert_eq!(text.plain().matches(", and 1 other").count(), 1, "{text:?}");
    }
}
