//! Groups outcomes into series, with names for the legend.

use model::{Direction, Factor, FactorKind, Outcome, Run, Verdict, units};

use crate::sides;

/// The most cells of a plan that are drawn over time: more lines would hide each other.
const MAX_OVER_TIME: usize = 12;

/// The outcomes behind one series.
pub(crate) struct Line<'a> {
    /// Index of the run.
    pub(crate) run: usize,
    /// Name in the legend, unique among the lines made together.
    pub(crate) name: String,
    /// The outcomes: those of a curve by ascending block, otherwise a single one.
    pub(crate) outcomes: Vec<&'a Outcome>,
    /// A ceiling to compare with, not a measured path.
    pub(crate) reference: bool,
}

/// Block-size curves: outcomes of a run that differ only in the block are one line.
pub(crate) fn curve_lines(runs: &[Run]) -> Vec<Line<'_>> {
    build(runs, |run| {
        let mut groups: Vec<Vec<&Outcome>> = Vec::new();
        if run.header.plan.is_some() {
            return plan_curves(run);
        }
        if run.header.kind != "curve" {
            return groups;
        }
        for outcome in &run.outcomes {
            // A stalled row of an import is a cell of its own, beside valid ones of the same block.
            let apart = |other: &Outcome| run.header.origin.is_some() && stalled(other) != stalled(outcome);
            let like = |group: &&mut Vec<&Outcome>| {
                group.iter().take(1).all(|first| same_but_block(first, outcome) && !apart(first))
            };
            match groups.iter_mut().find(like) {
                Some(group) => group.push(outcome),
                None => groups.push(vec![outcome]),
            }
        }
        groups.iter_mut().for_each(|group| group.sort_by_key(|outcome| outcome.spec.block));
        groups
    })
}

/// The curves of a plan: cells that differ only in the size.
fn plan_curves(run: &Run) -> Vec<Vec<&Outcome>> {
    let mut groups: Vec<(Levels<'_>, Vec<&Outcome>)> = Vec::new();
    for outcome in run.outcomes.iter().filter(|outcome| outcome.spec.is_point()) {
        let own = levels(run, outcome);
        match groups.iter_mut().find(|(other, _)| *other == own) {
            Some((_, group)) => group.push(outcome),
            None => groups.push((own, vec![outcome])),
        }
    }
    groups.iter_mut().for_each(|(_, group)| group.sort_by_key(|outcome| outcome.spec.block));
    groups.into_iter().map(|(_, group)| group).collect()
}

type Levels<'a> = Vec<(&'a str, &'a str)>;

/// The levels of an outcome of a plan in the plan's order, without the block of a curve.
fn levels<'a>(run: &'a Run, outcome: &Outcome) -> Levels<'a> {
    let cell = run.header.cells.iter().find(|cell| cell.id == outcome.cell);
    let factors =
        run.header.plan.iter().flat_map(|plan| &plan.factors).filter(|factor| factor.kind != FactorKind::Sizes);
    let names = factors.map(|factor| factor.name.as_str()).chain([Factor::FROM, Factor::TO]);
    names.filter_map(|name| Some((name, cell?.levels.get(name)?.as_str()))).collect()
}

/// Whether a plan varies the congestion control, and has few enough cells to draw them over time.
fn shows_cc_over_time(run: &Run) -> bool {
    let has = |factor: &Factor| {
        factor.key == "cc" || factor.sets.values().flatten().any(|(key, _)| key.rsplit('.').next() == Some("cc"))
    };
    run.header.cells.len() <= MAX_OVER_TIME && run.header.plan.iter().flat_map(|plan| &plan.factors).any(has)
}

/// The outcomes that pass `wanted` of runs other than curves, each as a line. Of plans, only those that vary the congestion control.
pub(crate) fn single_lines(runs: &[Run], wanted: fn(&Outcome) -> bool) -> Vec<Line<'_>> {
    build(runs, |run| {
        let single = run.header.kind != "curve" && (run.header.plan.is_none() || shows_cc_over_time(run));
        sides::shown(run).into_iter().filter(|outcome| single && wanted(outcome)).map(|outcome| vec![outcome]).collect()
    })
}

fn build<'a>(runs: &'a [Run], groups: impl Fn(&'a Run) -> Vec<Vec<&'a Outcome>>) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for (run, of) in runs.iter().enumerate() {
        let groups = groups(of);
        let firsts: Vec<&Outcome> = groups.iter().filter_map(|group| group.first().copied()).collect();
        for (group, first) in groups.into_iter().zip(&firsts) {
            let name = match sides::name(of, first) {
                Some(side) => side_name(of, &side, runs.len() == 1),
                None if of.header.plan.is_some() => plan_name(of, first, &firsts, runs.len() == 1),
                None => name(of, first, &firsts),
            };
            let name = unique(&lines, name, of);
            let reference = first.spec.transport == model::Spec::CEILING;
            lines.push(Line { run, name, outcomes: group, reference });
        }
    }
    // Without a measured line, ceilings are drawn as ordinary lines.
    if lines.iter().all(|line| line.reference) {
        lines.iter_mut().for_each(|line| line.reference = false);
    }
    lines
}

fn stalled(outcome: &Outcome) -> bool {
    outcome.summary.verdicts.contains(&Verdict::Stalled)
}

fn same_but_block(a: &Outcome, b: &Outcome) -> bool {
    let (a, b) = (&a.spec, &b.spec);
    a.transport == b.transport && a.pattern == b.pattern && a.flows == b.flows && a.direction == b.direction
}

/// The run's name or what it measured, then the properties in which its lines differ.
fn name(run: &Run, first: &Outcome, lines: &[&Outcome]) -> String {
    let spec = &first.spec;
    let differs = |key: fn(&Outcome) -> String| lines.iter().any(|other| key(other) != key(first));
    let mut parts = Vec::new();
    match &run.header.name {
        Some(name) => parts.push(name.trim().to_owned()),
        None => parts.extend(run.header.target.clone()),
    }
    let named = run.header.name.is_some();
    if !named || differs(|o| o.spec.transport.to_string()) {
        parts.push(spec.transport.to_string());
    }
    if !named || differs(|o| o.spec.pattern.to_string()) {
        parts.push(spec.pattern.to_string());
    }
    if run.header.kind != "curve" && differs(|o| o.spec.block.to_string()) {
        parts.push(model::ByteSize(spec.block).to_string());
    }
    if differs(|o| o.spec.flows.to_string()) {
        parts.push(format!("{} flow{}", spec.flows, if spec.flows == 1 { "" } else { "s" }));
    }
    if differs(|o| format!("{:?}", o.spec.direction)) {
        parts.push(direction(spec.direction).to_owned());
    }
    if differs(|o| format!("{:?}", o.spec.rate_bps)) {
        parts.push(spec.rate_bps.map_or("no rate limit".to_owned(), |bps| units::bits_per_second(bps as f64)));
    }
    if run.header.origin.is_some() && stalled(first) && differs(|o| stalled(o).to_string()) {
        parts.push("stalled".to_owned());
    }
    if !named {
        parts.push(short_id(&run.header.id).to_owned());
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// The levels in which a plan's lines differ; with several runs, after the plan's name.
fn plan_name(run: &Run, first: &Outcome, lines: &[&Outcome], alone: bool) -> String {
    let own = levels(run, first);
    let differs = |(name, level): &&(&str, &str)| {
        lines.iter().any(|other| levels(run, other).iter().any(|(of, as_of)| of == name && as_of != level))
    };
    let differing: Vec<String> = own.iter().filter(differs).map(|(name, level)| format!("{name} {level}")).collect();
    let title = run.header.name.as_deref().map_or(short_id(&run.header.id), str::trim);
    match (alone, differing.is_empty()) {
        (true, false) => differing.join(", "),
        (_, true) => title.to_owned(),
        (false, false) => format!("{title} {}", differing.join(", ")),
    }
}

/// A side of a comparison; with several runs, with the run's name or the end of its id.
fn side_name(run: &Run, side: &str, alone: bool) -> String {
    match &run.header.name {
        Some(name) if !alone => format!("{} {side}", name.trim()),
        None if !alone => format!("{side} {}", short_id(&run.header.id)),
        _ => side.to_owned(),
    }
}

fn unique(lines: &[Line<'_>], name: String, run: &Run) -> String {
    let taken = |name: &str| lines.iter().any(|line| line.name == name);
    if !taken(&name) {
        return name;
    }
    let with_id = format!("{name} {}", short_id(&run.header.id));
    if !taken(&with_id) {
        return with_id;
    }
    (2..).map(|n| format!("{with_id} #{n}")).find(|name| !taken(name)).unwrap_or(with_id)
}

/// The name of a direction.
pub(crate) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Send => "send",
        Direction::Reverse => "reverse",
        Direction::Both => "both",
    }
}

/// The last part of a run's id, as a short name.
pub(crate) fn short_id(id: &str) -> &str {
    id.rsplit('-').next().unwrap_or(id)
}
