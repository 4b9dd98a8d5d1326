//! What limits which cells of a plan: the levels that tell best by what cells are limited.

use std::collections::{BTreeMap, BTreeSet};

use model::{Cell, Factor, Finding, FindingKind, Outcome, Plan, RunHeader, Verdict};
use text::{Text, say};

use super::{KINDS, dimensions, levels, of_kind, part};
use crate::findings::wording::plural;
use crate::limiter::{UNIDENTIFIED, words};

/// What a stalled cell is limited by: nothing got through.
const STALLED: &str = "stalled";
/// Share of the cells whose limit the levels have to tell; then no further factor is named.
const TOLD: f64 = 0.9;
/// By how much a further factor must raise that share.
const WORTH: f64 = 0.05;

/// A finding for each limit, that of the most cells first; none where no limit is known.
pub(super) fn limits(header: &RunHeader, outcomes: &[Outcome]) -> Vec<Finding> {
    let Some(plan) = &header.plan else { return Vec::new() };
    let known: BTreeMap<u32, &str> = outcomes.iter().filter_map(|own| Some((own.cell, limit(own)?))).collect();
    let of = |kind| {
        let cells: Vec<(&Cell, &str)> =
            of_kind(&header.cells, kind).into_iter().filter_map(|cell| Some((cell, *known.get(&cell.id)?))).collect();
        cells
    };
    let kinds: Vec<Vec<(&Cell, &str)>> = KINDS.into_iter().map(of).filter(|cells| !cells.is_empty()).collect();
    let several = kinds.len() > 1;
    kinds.iter().flat_map(|cells| of_cells(plan, cells, several)).collect()
}

fn limit(outcome: &Outcome) -> Option<&'static str> {
    if outcome.summary.verdicts.contains(&Verdict::Stalled) {
        return Some(STALLED);
    }
    outcome.summary.limits().next().map(|(_, why)| words(why))
}

/// Cells with the same levels of the factors that tell their limit.
struct Group<'a> {
    levels: BTreeMap<&'a str, &'a str>,
    limit: &'a str,
    /// How many of its cells have this limit, and how many there are.
    own: usize,
    all: usize,
}

fn of_cells(plan: &Plan, cells: &[(&Cell, &str)], several: bool) -> Vec<Finding> {
    let all: Vec<&Cell> = cells.iter().map(|(cell, _)| *cell).collect();
    let names = dimensions(plan, &all);
    let chosen = telling(cells, &names);
    let groups = groups(cells, &chosen);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    cells.iter().for_each(|(_, limit)| *counts.entry(limit).or_default() += 1);
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let pattern = cells[0].0.spec.pattern;
    let of = if several { say!(", {pattern} tests") } else { Text::default() };
    let finding = |(limit, count): (&str, usize)| {
        let own: Vec<&Group<'_>> = groups.iter().filter(|group| group.limit == limit).collect();
        let what = match limit {
            STALLED => "stalled".into(),
            UNIDENTIFIED => "limit not identified".into(),
            limit => say!("limited by {limit}"),
        };
        let total = cells.len();
        let place = match (own.is_empty(), chosen.is_empty()) {
            _ if total == 1 => "the only cell".into(),
            _ if count == total && total == 2 => "both cells".into(),
            _ if count == total => say!("all {}", plural(total, "cell")),
            (false, false) => {
                let (of_groups, in_groups) = own.iter().fold((0, 0), |(a, b), group| (a + group.own, b + group.all));
                let elsewhere = count - of_groups;
                let share = if of_groups == in_groups {
                    plural(in_groups, "cell")
                } else {
                    format!("{of_groups} of {} there", plural(in_groups, "cell"))
                };
                let more = if elsewhere > 0 { format!(", {elsewhere} elsewhere") } else { String::new() };
                say!("{} ({share}{more})", named(plan, &all, &chosen, &own))
            }
            _ => say!("{count} of {}", plural(total, "cell")),
        };
        let ids = cells.iter().filter(|(_, other)| *other == limit).map(|(cell, _)| cell.id).collect();
        let statement = say!("{what}{of}: {place}.").capitalised();
        Finding { kind: FindingKind::Limits, statement, estimate: None, block: None, cells: ids, comparison: None }
    };
    counts.into_iter().map(finding).collect()
}

/// The cells by their levels of these factors, each group with the limit that most of it have.
fn groups<'a>(cells: &[(&'a Cell, &'a str)], names: &'a [String]) -> Vec<Group<'a>> {
    let mut by_levels: BTreeMap<BTreeMap<&str, &str>, Vec<&str>> = BTreeMap::new();
    for (cell, limit) in cells {
        by_levels.entry(part(cell, names)).or_default().push(limit);
    }
    let group = |(levels, limits): (BTreeMap<&'a str, &'a str>, Vec<&'a str>)| {
        let count = |limit: &str| limits.iter().filter(|other| **other == limit).count();
        let limit = limits.iter().copied().max_by(|a, b| count(a).cmp(&count(b)).then(b.cmp(a))).unwrap_or_default();
        Group { levels, limit, own: count(limit), all: limits.len() }
    };
    by_levels.into_iter().map(group).collect()
}

/// Finds the fewest factors, at most two, whose levels predict what limits nearly all cells.
fn telling(cells: &[(&Cell, &str)], names: &[String]) -> Vec<String> {
    let told = |chosen: &[String]| {
        groups(cells, chosen).iter().map(|group| group.own).sum::<usize>() as f64 / cells.len() as f64
    };
    let mut best: (f64, Vec<String>) = (told(&[]), Vec::new());
    let ones = names.iter().map(|name| vec![name.clone()]);
    let twos = names.iter().enumerate();
    let twos = twos.flat_map(|(at, one)| names[at + 1..].iter().map(move |other| vec![one.clone(), other.clone()]));
    for sets in [ones.collect::<Vec<_>>(), twos.collect()] {
        if best.0 >= TOLD {
            break;
        }
        let next = sets.into_iter().map(|set| (told(&set), set)).max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some(next) = next.filter(|next| next.0 >= best.0 + WORTH) {
            best = next;
        }
    }
    best.1
}

/// `mtu 9000 at window 8KiB to 64KiB; mtu 1500 at window 8KiB`.
fn named(plan: &Plan, cells: &[&Cell], chosen: &[String], groups: &[&Group<'_>]) -> String {
    let level =
        |group: &Group<'_>, name: &String| group.levels.get(name.as_str()).map_or("", |level| *level).to_owned();
    match chosen {
        [only] => {
            let own: BTreeSet<String> = groups.iter().map(|group| level(group, only)).collect();
            format!("{only} {}", ranges(&levels(plan, only, cells), &own))
        }
        [one, other] => {
            let mut by_second: Vec<(BTreeSet<String>, BTreeSet<String>)> = Vec::new();
            for first in levels(plan, one, cells) {
                let own = groups.iter().filter(|group| level(group, one) == first);
                let second: BTreeSet<String> = own.map(|group| level(group, other)).collect();
                match by_second.iter_mut().find(|(_, met)| *met == second) {
                    _ if second.is_empty() => {}
                    Some((firsts, _)) => {
                        firsts.insert(first);
                    }
                    None => by_second.push((BTreeSet::from([first]), second)),
                }
            }
            let [ones, seconds] = [one, other].map(|name| levels(plan, name, cells));
            let words = by_second.iter().map(|(firsts, own)| {
                if [one.as_str(), other] == [Factor::FROM, Factor::TO] {
                    return format!("{} → {}", ranges(&ones, firsts), ranges(&seconds, own));
                }
                let first = format!("{one} {}", ranges(&ones, firsts));
                if own.len() == seconds.len() {
                    first
                } else {
                    format!("{first} with {other} {}", ranges(&seconds, own))
                }
            });
            words.collect::<Vec<_>>().join("; ")
        }
        _ => String::new(),
    }
}

/// Levels in the plan's order; three and more in a row by their ends.
fn ranges(all: &[String], own: &BTreeSet<String>) -> String {
    let mut runs: Vec<Vec<&str>> = Vec::new();
    let mut goes_on = false;
    for level in all {
        if own.contains(level) {
            match runs.last_mut().filter(|_| goes_on) {
                Some(run) => run.push(level),
                None => runs.push(vec![level]),
            }
        }
        goes_on = own.contains(level);
    }
    let words = runs.iter().map(|run| match run.as_slice() {
        [first, _, .., last] => format!("{first} to {last}"),
        few => few.join(", "),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::table::testing::{PlanRun, planned};
    use super::*;
    use model::{Grade, LimiterKind, Pattern, Why};

    /// A plan whose cells are limited by what `limiter` says.
    fn limited(
        factors: &[(&str, &[&str])],
        limiter: impl Fn(&BTreeMap<String, String>) -> Option<LimiterKind>,
    ) -> PlanRun {
        let mut run = planned(factors, Pattern::Stream, 3, |_, _| 1e9);
        for (cell, outcome) in run.header.cells.iter().zip(&mut run.outcomes) {
            let why = limiter(&cell.levels).map(|limiter| Why {
                limiter,
                grade: Some(Grade::Strong),
                statement: "for a test".into(),
                parts: Vec::new(),
                evidence: Vec::new(),
                also: Vec::new(),
                losses: None,
                notes: Vec::new(),
                remedies: Vec::new(),
                missing: Vec::new(),
            });
            match why {
                Some(why) => outcome.summary.why = Some(why.into()),
                None => outcome.summary.verdicts.push(Verdict::Stalled),
            }
        }
        run
    }

    fn said(run: &PlanRun) -> Vec<String> {
        limits(&run.header, &run.outcomes).iter().map(|finding| finding.statement.plain()).collect()
    }

    #[test]
    fn one_factor_that_tells_the_limit_is_named_with_its_range() {
        let windows: &[&str] = &["8KiB", "16KiB", "64KiB", "1MiB", "4MiB"];
        let run = limited(&[("window", windows), ("mtu", &["1500", "9000"])], |levels| {
            let small = ["8KiB", "16KiB", "64KiB"].contains(&levels["window"].as_str());
            Some(if small { LimiterKind::ReceiveWindow } else { LimiterKind::Link })
        });
        assert_eq!(
            said(&run),
            [
                "Limited by receive window: window 8KiB to 64KiB (6 cells).",
                "Limited by link rate: window 1MiB, 4MiB (4 cells)."
            ]
        );
    }

    #[test]
    fn two_factors_exceptions_and_stalled_cells_are_told() {
        let run = limited(&[("mtu", &["1500", "9000"]), ("block", &["1", "2", "3"])], |levels| {
            match (levels["mtu"].as_str(), levels["block"].as_str()) {
                ("9000", "2" | "3") => None,
                ("9000", _) => Some(LimiterKind::SenderCpu),
                _ => Some(LimiterKind::Link),
            }
        });
        assert_eq!(
            said(&run),
            [
                "Limited by link rate: mtu 1500 (3 cells).",
                "Stalled: mtu 9000 with block 2, 3 (2 cells).",
                "Limited by sender CPU: mtu 9000 with block 1 (1 cell)."
            ]
        );
    }

    #[test]
    fn one_limit_of_all_is_said_in_a_word_and_limits_without_a_pattern_are_counted() {
        let factors: [(&str, &[&str]); 1] = [("n", &["1", "2", "3", "4"])];
        let run = limited(&factors, |_| Some(LimiterKind::Link));
        assert_eq!(said(&run), ["Limited by link rate: all 4 cells."]);
        let mut unknown = planned(&factors, Pattern::Stream, 3, |_, _| 1e9);
        assert_eq!(said(&unknown), [""; 0]);
        unknown.header.plan = None;
        assert_eq!(said(&unknown), [""; 0]);
    }
}
