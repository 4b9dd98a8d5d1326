//! The names of lines: what they differ by.

use std::collections::{BTreeMap, BTreeSet};

use model::{ByteSize, Direction, Factor, FactorKind, Outcome, Run, RunKind, Verdict, units};

use crate::labels;
use crate::sections::sides;

/// A property of a line; empty where it does not apply.
type Property = fn(&Run, &Outcome) -> String;

/// The properties that lines are named after, in the order of a name.
const PROPERTIES: [Property; 15] = [
    |run, _| run.header.target.clone().unwrap_or_default(),
    |_, first| first.spec.transport.to_string(),
    |_, first| first.spec.pattern.to_string(),
    |run, first| if run.header.kind == RunKind::Curve { String::new() } else { first.spec.block_words() },
    |_, first| format!("{} flow{}", first.spec.flows, if first.spec.flows == 1 { "" } else { "s" }),
    |_, first| direction(first.spec.direction).to_owned(),
    |_, first| first.spec.rate_bps.map_or("no rate limit".to_owned(), |bps| units::bits_per_second(bps as f64)),
    |_, first| first.spec.near.cc.clone().unwrap_or_else(|| "default congestion control".to_owned()),
    |_, first| first.spec.near.sndbuf.map_or("default buffers".to_owned(), |size| format!("sndbuf {}", ByteSize(size))),
    |_, first| first.spec.near.rcvbuf.map_or(String::new(), |size| format!("rcvbuf {}", ByteSize(size))),
    |_, first| first.spec.near.mss.map_or(String::new(), |mss| format!("MSS {mss}")),
    |_, first| if first.spec.strategy == model::Strategy::Spin { "spinning" } else { "blocking" }.to_owned(),
    |_, first| first.spec.speak.as_ref().map_or("thru".to_owned(), ToString::to_string),
    |run, first| if run.header.origin.is_some() && stalled(first) { "stalled".to_owned() } else { String::new() },
    |run, _| labels::hosts(run),
];
/// How many of them name a line that differs from no other.
const IDENTITY: usize = 3;

/// A name for each line, given by its run and its first outcome; no two are the same.
pub(super) fn names(runs: &[Run], firsts: &[(usize, &Outcome)]) -> Vec<String> {
    let varied: Vec<BTreeSet<&str>> = (0..runs.len()).map(|run| varied(&runs[run], run, firsts)).collect();
    let mut names: Vec<String> =
        firsts.iter().map(|(run, first)| name(runs, *run, first, firsts, &varied[*run])).collect();
    let repeated = |names: &[String], name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let before = names.clone();
    for (name, (run, _)) in names.iter_mut().zip(firsts) {
        if repeated(&before, name) {
            *name = format!("{name}, {}", labels::when(runs[*run].header.started_unix_ns).trim_end_matches(" UTC"));
        }
    }
    let before = names.clone();
    for at in 0..names.len() {
        if repeated(&before, &before[at]) {
            let number = before[..=at].iter().filter(|other| **other == before[at]).count();
            names[at] = format!("{} #{number}", before[at]);
        }
    }
    names
}

/// The factors of a plan in which its lines differ.
fn varied<'a>(of: &'a Run, run: usize, firsts: &[(usize, &Outcome)]) -> BTreeSet<&'a str> {
    let mut met: BTreeMap<&str, &str> = BTreeMap::new();
    let own = firsts.iter().filter(|(other, _)| *other == run && of.header.plan.is_some());
    let all = own.flat_map(|(_, first)| levels(of, first));
    all.filter(|(name, level)| *met.entry(name).or_insert(level) != *level).map(|(name, _)| name).collect()
}

fn name(runs: &[Run], run: usize, first: &Outcome, firsts: &[(usize, &Outcome)], varied: &BTreeSet<&str>) -> String {
    let of = &runs[run];
    let alone = runs.len() == 1;
    let given = of.header.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    if let Some(side) = sides::name(of, first) {
        return if alone { side } else { given.map_or(side.clone(), |name| format!("{name} {side}")) };
    }
    if of.header.plan.is_some() {
        let differing = levels(of, first).into_iter().filter(|(name, _)| varied.contains(name));
        let differing: Vec<String> = differing.map(|(name, level)| format!("{name} {level}")).collect();
        return match given.filter(|_| !alone || differing.is_empty()) {
            Some(name) => [name].into_iter().chain(differing.iter().map(String::as_str)).collect::<Vec<_>>().join(" "),
            None if differing.is_empty() => labels::title(of),
            None => differing.join(", "),
        };
    }
    let within: Vec<(usize, &Outcome)> = firsts.iter().filter(|(other, _)| *other == run).copied().collect();
    // A name that the user gave says what differs from other runs.
    let others = if given.is_some() { &within } else { firsts };
    let differs = |property: &&Property| {
        let own = property(of, first);
        !own.is_empty() && others.iter().any(|(other, outcome)| property(&runs[*other], outcome) != own)
    };
    let mut parts: Vec<String> = PROPERTIES.iter().filter(differs).map(|property| property(of, first)).collect();
    // Of one run, all lines have its name.
    if let Some(name) = given.filter(|_| !alone || parts.is_empty()) {
        parts.insert(0, name.to_owned());
    }
    if parts.is_empty() {
        parts = PROPERTIES[..IDENTITY].iter().map(|property| property(of, first)).collect();
        parts.retain(|part| !part.is_empty());
    }
    parts.join(" ")
}

pub(super) type Levels<'a> = Vec<(&'a str, &'a str)>;

/// The levels of an outcome of a plan in the plan's order, without the block of a curve.
pub(super) fn levels<'a>(run: &'a Run, outcome: &Outcome) -> Levels<'a> {
    let cell = model::Cell::find(&run.header.cells, outcome.cell);
    let factors =
        run.header.plan.iter().flat_map(|plan| &plan.factors).filter(|factor| factor.kind != FactorKind::Sizes);
    let names = factors.map(|factor| factor.name.as_str()).chain([Factor::FROM, Factor::TO]);
    names.filter_map(|name| Some((name, cell?.levels.get(name)?.as_str()))).collect()
}

/// Whether a trial made no progress.
pub(super) fn stalled(outcome: &Outcome) -> bool {
    outcome.summary.verdicts.contains(&Verdict::Stalled)
}

/// The name of a direction.
pub(crate) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Send => "send",
        Direction::Reverse => "reverse",
        Direction::Both => "both",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn of(runs: &[Run]) -> Vec<String> {
        let firsts: Vec<(usize, &Outcome)> =
            runs.iter().enumerate().filter_map(|(at, run)| Some((at, run.outcomes.first()?))).collect();
        names(runs, &firsts)
    }

    #[test]
    fn a_name_says_what_differs_and_nothing_else() {
        let mut other = sample::stream();
        other.outcomes[0].spec.flows = 4;
        assert_eq!(of(&[sample::stream(), other.clone()]), ["1 flow", "4 flows"]);
        other.outcomes[0].spec.near.cc = Some("bbr".to_owned());
        assert_eq!(of(&[sample::stream(), other])[1], "4 flows bbr");
        assert_eq!(of(&[sample::stream()]), ["beta tcp stream"]);
    }

    #[test]
    fn a_given_name_tells_runs_apart_and_not_the_lines_of_one() {
        let named = |name: &str| sample::named(sample::stream(), name);
        assert_eq!(of(&[named("old driver"), named("new driver")]), ["old driver", "new driver"]);
        let mut run = named("old driver");
        let mut second = run.outcomes[0].clone();
        second.spec.flows = 4;
        run.outcomes.push(second);
        let firsts: Vec<(usize, &Outcome)> = run.outcomes.iter().map(|outcome| (0, outcome)).collect();
        assert_eq!(names(std::slice::from_ref(&run), &firsts), ["1 flow", "4 flows"]);
        assert_eq!(of(&[named("old driver")]), ["old driver"]);
    }

    #[test]
    fn runs_that_differ_in_nothing_have_their_times() {
        let mut later = sample::stream();
        later.header.started_unix_ns += 3_600_000_000_000;
        let names = of(&[sample::stream(), later]);
        assert!(names[0].starts_with("beta tcp stream, 2026-11-21 ") && names[0] != names[1], "{names:?}");
        let same = of(&[sample::stream(), sample::stream()]);
        assert!(same[0].ends_with(" #1") && same[1].ends_with(" #2"), "{same:?}");
    }
}
