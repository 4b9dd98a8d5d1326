//! In which parts of a round trip the best combination differs from the start.

use model::stamps::Part;
use model::{Finding, FindingKind, Outcome};
use text::{Text, Time, say};

use crate::anatomy::name;

/// Smallest change of a part that is reported, relative to the start's round trip.
const CHANGE: f64 = 0.05;

/// The parts that changed, by the means of both cells' stamped round trips; `None` unless both have some.
#[must_use]
pub fn moved_parts(start: &Outcome, best: &Outcome) -> Option<Finding> {
    let of = |outcome: &Outcome| {
        let anatomy = outcome.summary.anatomy.clone()?;
        Some((anatomy.round_trip_ns?, anatomy.parts?))
    };
    let ((before, old), (after, new)) = (of(start)?, of(best)?);
    let changes: Vec<Text> = Part::ALL
        .into_iter()
        .map(|part| (part, old.get(part).mean_ns, new.get(part).mean_ns))
        .filter(|(_, old, new)| (new - old).abs() >= CHANGE * before)
        .map(|(part, old, new)| say!("{} from {} to {}", name(part, start.spec.strategy), Time(old), Time(new)))
        .collect();
    let none = || Text::from("no part by 5 % or more of the round trip");
    let changed = if changes.is_empty() { none() } else { Text::join(changes, ", ") };
    let statement = say!(
        "The mean stamped round trip is {} at the start and {} with the best combination; changed: {changed}.",
        Time(before),
        Time(after),
    );
    let cells = vec![start.cell, best.cell];
    Some(Finding { kind: FindingKind::Note, statement, estimate: None, comparison: None, block: None, cells })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{AnatomyTally, Pattern, Spec, Summary};

    fn outcome(cell: u32, parts: [u64; 6]) -> Outcome {
        let mut tally = AnatomyTally { stamped: 1, ..AnatomyTally::default() };
        tally.round_trip.record(parts.iter().sum());
        Part::ALL.into_iter().zip(parts).for_each(|(part, ns)| tally.parts.get_mut(part).record(ns));
        let summary = Summary { anatomy: Some(tally.figures(None).into()), ..Summary::default() };
        Outcome {
            cell,
            spec: Spec::new("tcp", Pattern::Rr).into(),
            summary,
            estimate: None,
            histogram: None,
            trials: Vec::new(),
        }
    }

    #[test]
    fn the_parts_that_changed_are_named() {
        let start = outcome(0, [2_400, 2_300, 21_400, 200, 2_600, 21_500]);
        let best = outcome(3, [2_300, 2_200, 3_900, 0, 2_200, 21_400]);
        let found = moved_parts(&start, &best).unwrap();
        let expected = format!("; changed: far wake-up and receive from {} to {}.", Time(21_400.0), Time(3_900.0));
        assert!(found.statement.plain().ends_with(&expected), "{}", found.statement.plain());
        assert_eq!(found.cells, [0, 3]);
        let same = moved_parts(&start, &outcome(4, [2_400, 2_300, 21_000, 200, 2_600, 21_500])).unwrap();
        assert!(
            same.statement.plain().ends_with("changed: no part by 5 % or more of the round trip."),
            "{}",
            same.statement.plain()
        );
        let without = Outcome { summary: Summary::default(), ..best };
        assert_eq!(moved_parts(&start, &without), None);
    }
}
