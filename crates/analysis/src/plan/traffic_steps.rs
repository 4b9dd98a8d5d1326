//! Steps in which many hosts sent at the same time: their goodput, completion times and timeouts, the knee over their number, and the
//! findings on them.

use std::collections::BTreeMap;

use model::units::plus_minus;
use model::{
    Cell, Estimate, Factor, Finding, FindingKind, Outcome, Pass, Plan, PlanTraffic, Ratio, RunHeader, Stop,
    TrafficKind, Trial,
};
use text::{Aside, Text, say};

use super::complete;
use super::groups::{GroupShares, RoundMean, group_shares, members};
use super::knee::{Knee, knee};
use super::logs::Logs;
use crate::findings::wording::{confidence, estimate, plural, size, value};
use crate::outcome::{completion_ns, senders};
use crate::stats::{mean, quantile, t_interval};

/// Fewest completion times with a 95th and a 99th percentile.
const TAIL: [usize; 2] = [20, 100];

/// Starts that are further apart than this part of the time until all transfers have ended are told.
const APART: f64 = 0.1;
/// The same of streams, whose goodput may have fallen by the time between the starts, ns.
const APART_NS: f64 = 20e6;

/// What hosts that sent at the same time got, with all other levels fixed.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficStep {
    /// The flows, their shares and their common goodput.
    pub shares: GroupShares,
    /// The number of senders or receivers; `None` where that is not a factor.
    pub number: Option<usize>,
    /// The one host at one end of all flows.
    pub hub: Option<String>,
    /// Completion times, for transfers.
    pub completion: Option<Completion>,
    /// Retransmitted segments of all flows, the mean of the rounds; `None` without TCP.
    pub retransmits: Option<f64>,
    /// Flows of all rounds, and those of them in which a retransmission timeout expired; `None` where the kernel does not count them.
    pub timeouts: Option<[usize; 2]>,
}

/// How long the transfers of a step took, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Completion {
    /// Until the last one of a round had ended, the mean of the rounds.
    pub all_ns: RoundMean,
    /// Median of all transfers of all rounds.
    pub p50_ns: f64,
    /// 95th percentile, with 20 transfers or more.
    pub p95_ns: Option<f64>,
    /// 99th percentile, with 100 transfers or more.
    pub p99_ns: Option<f64>,
    /// The longest one.
    pub max_ns: f64,
    /// Transfers.
    pub count: usize,
    /// Bytes of one.
    pub bytes: u64,
}

/// The steps of one combination of the other levels, in the order of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficCurve {
    /// The kind of traffic.
    pub kind: TrafficKind,
    /// The levels of the other factors.
    pub levels: BTreeMap<String, String>,
    /// The one host at one end of all flows.
    pub hub: Option<String>,
    /// One for each number of senders or receivers, ascending, or for each permutation or cut.
    pub steps: Vec<TrafficStep>,
    /// The knee over the numbers of senders or receivers; `None` if it cannot be judged, or there are no numbers.
    pub knee: Option<Knee>,
}

/// The curves of a traffic; empty for other plans.
#[must_use]
pub fn traffic_curves(header: &RunHeader, outcomes: &[Outcome], passes: &[Pass]) -> Vec<TrafficCurve> {
    let Some((traffic, factor)) =
        header.plan.as_ref().and_then(|plan| Some((plan.traffic?, plan.traffic?.kind.factor())))
    else {
        return Vec::new();
    };
    let mut curves: Vec<TrafficCurve> = Vec::new();
    for shares in group_shares(header, outcomes, passes) {
        let step = step(traffic, factor, shares, header, outcomes);
        let mut levels = step.shares.levels.clone();
        let (hub, kind) = (step.hub.clone(), traffic.kind);
        levels.retain(|name, _| Some(name.as_str()) != factor && ![Factor::FROM, Factor::TO].contains(&name.as_str()));
        match curves.iter_mut().find(|curve| curve.levels == levels && curve.hub == hub) {
            Some(curve) => curve.steps.push(step),
            None => curves.push(TrafficCurve { kind, levels, hub, steps: vec![step], knee: None }),
        }
    }
    let hosts = |plan: &Plan| if traffic.kind == TrafficKind::FanOut { plan.from.clone() } else { plan.to.clone() };
    let hosts = header.plan.as_deref().map(hosts).unwrap_or_default();
    curves.sort_by_key(|curve| hosts.iter().position(|host| Some(host) == curve.hub.as_ref()));
    for curve in curves.iter_mut().filter(|_| traffic.kind.has_hub()) {
        curve.steps.sort_by_key(|step| step.number);
        curve.knee = knee_of(&curve.steps, header.stopping.confidence);
    }
    curves
}

/// The knee of the goodput. A fall that the time between the starts may explain does not count: hosts without free cores begin apart.
fn knee_of(steps: &[TrafficStep], confidence: f64) -> Option<Knee> {
    let of = |totals: fn(&GroupShares) -> &BTreeMap<u32, f64>| {
        let rounds = |step: &TrafficStep| totals(&step.shares).values().copied().collect();
        knee(&steps.iter().map(rounds).collect::<Vec<_>>(), confidence)
    };
    let found = of(|shares| &shares.totals)?;
    let falls = of(|shares| &shares.totals_at_most)?.fall.is_some();
    Some(if falls { found } else { Knee { fall: None, unclear: found.fall, ..found } })
}

fn step(
    traffic: PlanTraffic,
    factor: Option<&str>,
    shares: GroupShares,
    header: &RunHeader,
    outcomes: &[Outcome],
) -> TrafficStep {
    let own = |group: &super::GroupShare| outcomes.iter().find(|outcome| outcome.cell == group.cell);
    let flows: Vec<&Outcome> = shares.groups.iter().filter_map(own).collect();
    let trials = || flows.iter().flat_map(|outcome| outcome.trials.iter().map(move |trial| (*outcome, trial)));
    let whole = || trials().filter(|(_, trial)| complete(trial));
    let plan_hub = header.plan.as_ref().and_then(|plan| match traffic.kind {
        TrafficKind::Incast => shares.levels.get(Factor::TO).or(plan.to.first()),
        TrafficKind::FanOut => shares.levels.get(Factor::FROM).or(plan.from.first()),
        _ => None,
    });
    let retransmits: Option<u64> =
        whole().filter_map(|(outcome, trial)| retransmits(outcome, trial)).reduce(|a, b| a + b);
    let timeouts: Vec<bool> = whole().filter_map(|(outcome, trial)| timed_out(outcome, trial)).collect();
    TrafficStep {
        number: factor.filter(|_| traffic.kind.has_hub()).and_then(|name| shares.levels.get(name)?.parse().ok()),
        hub: plan_hub.cloned(),
        completion: completion(&flows, &shares, header.stopping.confidence),
        retransmits: retransmits.filter(|_| shares.rounds > 0).map(|count| count as f64 / shares.rounds as f64),
        timeouts: (!timeouts.is_empty()).then(|| [timeouts.len(), timeouts.iter().filter(|waited| **waited).count()]),
        shares,
    }
}

/// Segments that the senders retransmitted.
fn retransmits(outcome: &Outcome, trial: &Trial) -> Option<u64> {
    let flows = senders(&outcome.spec, &trial.near, &trial.far).into_iter().flat_map(|end| &end.flows);
    flows.filter_map(|flow| flow.socket.retransmits).reduce(|a, b| a + b)
}

/// Whether a retransmission timeout expired at a sender.
fn timed_out(outcome: &Outcome, trial: &Trial) -> Option<bool> {
    let flows = senders(&outcome.spec, &trial.near, &trial.far).into_iter().flat_map(|end| &end.flows);
    let counts = flows.filter_map(|flow| flow.tcp.last()?.timeouts);
    counts.map(|count| count > 0).reduce(|a, b| a || b)
}

/// The completion times of transfers; `None` for streams.
fn completion(flows: &[&Outcome], shares: &GroupShares, confidence: f64) -> Option<Completion> {
    let first = flows.first()?;
    let bytes = match first.spec.stop {
        Stop::Bytes(bytes) => bytes,
        Stop::Blocks(count) => count.saturating_mul(first.spec.block),
        _ => return None,
    };
    let times = |outcome: &&Outcome| -> Vec<f64> {
        let whole = outcome.trials.iter().filter(|trial| complete(trial));
        whole.filter_map(|trial| Some(completion_ns(&outcome.spec, trial)? as f64)).collect()
    };
    let each: Vec<f64> = flows.iter().flat_map(times).collect();
    // All bytes over the goodput together is the time of the last one.
    let all: Vec<f64> = shares.totals.values().map(|bps| bytes as f64 * flows.len() as f64 * 8e9 / bps).collect();
    let interval = t_interval(&all, confidence).map(|it| [it.low, it.high]);
    let [p95, p99] = TAIL;
    Some(Completion {
        all_ns: RoundMean { value: mean(&all)?, interval },
        p50_ns: quantile(&each, 0.5)?,
        p95_ns: quantile(&each, 0.95).filter(|_| each.len() >= p95),
        p99_ns: quantile(&each, 0.99).filter(|_| each.len() >= p99),
        max_ns: each.iter().copied().fold(0.0, f64::max),
        count: each.len(),
        bytes,
    })
}

/// The run with one cell for each step, its first one without the levels in which the flows differ, and the logarithms of the goodput
/// together.
pub(super) fn with_totals(header: &RunHeader, curves: &[TrafficCurve]) -> (RunHeader, Logs) {
    let members = header.plan.as_ref().and_then(|plan| members(plan)).unwrap_or_default();
    let steps = || curves.iter().flat_map(|curve| &curve.steps);
    let first = |step: &TrafficStep| {
        let id = step.shares.groups.first()?.cell;
        let mut cell: Cell = Cell::find(&header.cells, id)?.clone();
        cell.levels.retain(|name, _| !members.contains(&name.as_str()));
        Some(cell)
    };
    let of_step = |step: &TrafficStep| {
        let rounds = step.shares.totals.iter().filter(|(_, bps)| **bps > 0.0);
        Some((step.shares.groups.first()?.cell, rounds.map(|(round, bps)| (*round, bps.ln())).collect()))
    };
    let cells = steps().filter_map(first).collect();
    (RunHeader { cells, ..header.clone() }, steps().filter_map(of_step).collect())
}

/// The findings on a traffic.
pub(super) fn of_traffic(header: &RunHeader, curves: &[TrafficCurve]) -> Vec<Finding> {
    let level = header.stopping.confidence;
    curves
        .iter()
        .flat_map(|curve| if curve.kind.has_hub() { over_numbers(curve, level) } else { of_draws(curve, level) })
        .collect()
}

fn finding(
    kind: FindingKind,
    curve: &TrafficCurve,
    statement: &Text,
    estimate: Option<Estimate>,
    steps: &[&TrafficStep],
) -> Finding {
    let levels: Vec<String> = curve.levels.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let place = if levels.is_empty() { Text::default() } else { say!("{}: ", levels.join(", ")) };
    let cells = steps.iter().flat_map(|step| &step.shares.groups).map(|group| group.cell).collect();
    Finding { kind, statement: say!("{place}{statement}"), estimate, block: None, cells, comparison: None }
}

fn total(step: &TrafficStep, level: f64) -> Estimate {
    let statistic = "mean over rounds of the goodput of all flows";
    step.shares.total_bps.estimate(statistic, "bit/s", level, step.shares.rounds)
}

/// `94.1 Mbit/s ±0.3 %`, or the value alone.
fn short(of: &Estimate) -> Text {
    let value = value(of.value, &of.unit);
    match of.relative_half_width() {
        Some(half) => say!("{value} {}", plus_minus(half)),
        None => value,
    }
}

/// What the goodput does over the numbers of senders of an incast, or of receivers of a fan-out.
fn over_numbers(curve: &TrafficCurve, level: f64) -> Vec<Finding> {
    let (noun, towards) = match curve.kind {
        TrafficKind::FanOut => ("receiver", "out of"),
        _ => ("sender", "into"),
    };
    let steps: Vec<&TrafficStep> = curve.steps.iter().collect();
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return Vec::new() };
    let number = |step: &TrafficStep| plural(step.number.unwrap_or(0), noun);
    let at = |step: &TrafficStep| say!("{} with {}", short(&total(step, level)), number(step));
    let subject = say!("Goodput {towards} {}", curve.hub.as_deref().unwrap_or("one host"));
    let rounds = Aside(say!("{} interval over {}", confidence(level), plural(last.shares.rounds, "round")));
    let (said, told) = match curve.knee {
        _ if steps.len() == 1 => (say!("{subject} is {}", at(first)), *first),
        None => (say!("{subject} is {} and {}; one round is too few to judge", at(first), at(last)), *last),
        Some(Knee { unclear: Some(fall), .. }) => {
            let worst = steps[fall.worst];
            (say!("{subject} is {} and {}; whether it falls is unclear", at(first), at(worst)), worst)
        }
        Some(Knee { knee, best, fall, .. }) => {
            let (knee, best) = (steps[knee], steps[best]);
            match fall {
                Some(fall) => {
                    let (from, worst) = (steps[fall.from], steps[fall.worst]);
                    let rises = if best == *first { "is" } else { "rises to" };
                    let falls = if fall.collapse { "collapses to" } else { "falls to" };
                    let since = if fall.from == fall.worst {
                        Text::default()
                    } else {
                        say!("; it is lower from {} on", number(from))
                    };
                    (say!("{subject} {rises} {} and {falls} {}{since}{}", at(best), at(worst), waits(worst)), worst)
                }
                None if knee == *first => {
                    (say!("{subject} is {} and as high with up to {}", at(first), number(last)), *first)
                }
                None if knee == *last => (say!("{subject} rises up to {} and might rise further", at(last)), *last),
                None => (say!("{subject} rises to {} and no further with up to {}", at(knee), number(last)), knee),
            }
        }
    };
    let unclear = curve.knee.is_some_and(|knee| knee.unclear.is_some());
    let apart = steps.iter().rev().find_map(|step| {
        let what = if step.completion.is_some() { "transfers" } else { "streams" };
        Some(say!("; the {what} with {} began within {} of each other", number(step), apart(step, unclear)?))
    });
    let said = say!("{said}{}{rounds}.", apart.unwrap_or_default());
    let mut found = vec![finding(FindingKind::Traffic, curve, &said, Some(total(told, level)), &steps)];
    found.extend(completion_finding(curve, last, &say!("With {}, ", number(last)), level));
    found.extend(fairness(curve, last, &say!("With {}, ", number(last)), level));
    found
}

/// How far apart the flows began on average: transfers where that is more than a tenth of the time until all had ended, streams where it
/// leaves open whether the goodput falls.
fn apart(step: &TrafficStep, unclear: bool) -> Option<Text> {
    let apart = step.shares.apart_ns?.value;
    let told = match step.completion {
        Some(completion) => apart > APART * completion.all_ns.value,
        None => unclear && apart > APART_NS,
    };
    told.then(|| value(apart, "ns"))
}

/// What the goodput waited for, as the second part of a sentence.
fn waits(step: &TrafficStep) -> Text {
    match step.timeouts {
        Some([flows, waited]) if waited > 0 => {
            let share = Ratio((waited as f64 / flows as f64 * 1e3).round() / 1e3);
            say!("; {share} of the flows there waited for a retransmission timeout")
        }
        _ => Text::default(),
    }
}

/// The completion times of a step's transfers.
fn completion_finding(curve: &TrafficCurve, step: &TrafficStep, place: &Text, level: f64) -> Option<Finding> {
    let it = step.completion?;
    let all = it.all_ns.estimate(
        "mean over rounds of the time until all transfers had ended",
        "ns",
        level,
        step.shares.rounds,
    );
    let tail = [("95 %", it.p95_ns), ("99 %", it.p99_ns)].into_iter().filter_map(|(name, ns)| Some((name, ns?)));
    let tail = tail.map(|(name, ns)| say!(", {name} within {}", value(ns, "ns")));
    let tail = Text::join(tail, "");
    let statement = say!(
        "{place}all transfers of {} ended within {}; the median of {} took {}{tail}, the longest {}{}.",
        size(it.bytes),
        short(&all),
        it.count,
        value(it.p50_ns, "ns"),
        value(it.max_ns, "ns"),
        Aside(say!("{} interval over {}", confidence(level), plural(step.shares.rounds, "round"))),
    );
    Some(finding(FindingKind::Traffic, curve, &statement, Some(all), &[step]))
}

/// How fair a step was to its flows.
fn fairness(curve: &TrafficCurve, step: &TrafficStep, place: &Text, level: f64) -> Option<Finding> {
    let (index, smallest) = (step.shares.index?, step.shares.smallest?);
    let estimate =
        index.estimate("mean over rounds of Jain's index over the flows", "index", level, step.shares.rounds);
    let half = index.interval.map_or(Text::default(), |[low, high]| say!(" ± {:.3}", (high - low) / 2.0));
    let starved = match step.shares.starved_flows {
        0 => Text::default(),
        count => {
            say!("; {count} of {} got less than a tenth of it in one round", plural(step.shares.flows as usize, "flow"))
        }
    };
    let statement = say!(
        "{place}Jain's fairness index is {:.3}{half}; a round's smallest flow has {} of an equal share{starved}.",
        index.value,
        Ratio((smallest.value * 1e3).round() / 1e3)
    );
    Some(finding(FindingKind::Fairness, curve, &statement, Some(estimate), &[step]))
}

/// The goodput of a ring, or over all permutations or cuts.
fn of_draws(curve: &TrafficCurve, level: f64) -> Vec<Finding> {
    let steps: Vec<&TrafficStep> = curve.steps.iter().collect();
    let Some(first) = steps.first() else { return Vec::new() };
    let mut by_round: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (round, bps) in steps.iter().flat_map(|step| &step.shares.totals) {
        by_round.entry(*round).or_default().push(*bps);
    }
    // A round without one of the draws would be a mean of others.
    let rounds: Vec<f64> =
        by_round.values().filter(|totals| totals.len() == steps.len()).filter_map(|totals| mean(totals)).collect();
    let Some(value_of) = mean(&rounds) else { return Vec::new() };
    let together = RoundMean { value: value_of, interval: t_interval(&rounds, level).map(|it| [it.low, it.high]) };
    let together = together.estimate("mean over rounds of the goodput of all flows", "bit/s", level, rounds.len());
    let flows = first.shares.groups.len();
    let draws = match curve.kind.factor() {
        Some(factor) if steps.len() > 1 => say!(", mean of {}", plural(steps.len(), factor)),
        _ => Text::default(),
    };
    let slowest = steps
        .iter()
        .flat_map(|step| &step.shares.groups)
        .min_by(|a, b| a.goodput_bps.value.total_cmp(&b.goodput_bps.value));
    let slowest = slowest.map_or(Text::default(), |group| {
        let [each, least] = [value_of / flows as f64, group.goodput_bps.value].map(|bps| value(bps, "bit/s"));
        say!("; {each} each, at least {least} ({})", group.name)
    });
    let name = curve.kind.name();
    let statement = say!(
        "{}{} of {} at the same time: {}{draws}{slowest}.",
        name[..1].to_uppercase(),
        &name[1..],
        plural(flows, "flow"),
        estimate(&together)
    );
    let mut found = vec![finding(FindingKind::Traffic, curve, &statement, Some(together), &steps)];
    let worst = steps.iter().min_by(|a, b| index(a).total_cmp(&index(b)));
    if let Some(worst) = worst {
        let place = match (curve.kind.factor(), steps.len()) {
            (Some(factor), 2..) => say!("In the least fair {factor}, "),
            _ => Text::default(),
        };
        found.extend(completion_finding(curve, worst, &place, level));
        found.extend(fairness(curve, worst, &place, level));
    }
    found
}

fn index(step: &TrafficStep) -> f64 {
    step.shares.index.map_or(1.0, |index| index.value)
}

#[cfg(test)]
mod tests {
    use model::{EndTally, FlowTally, Ledger, Pattern, Stopping};

    use super::*;

    const MS: u64 = 1_000_000;

    /// A transfer of 1 MB: its start by the receiver's clock and its time, ms.
    type Transfer = (u64, u64);

    /// What is said of an incast into n1 of one sender, of which all rounds take 80 ms, and of two senders; in each of four rounds alike.
    fn said(two: &[Transfer]) -> String {
        let of_number = |senders: &'static str, transfers: &[Transfer]| {
            let each = transfers.iter().enumerate().map(|(at, (began, time))| {
                let levels = [("senders", senders.to_owned()), (Factor::FROM, format!("n{}", at + 2))];
                let levels = levels.into_iter().chain([(Factor::TO, "n1".to_owned())]);
                (levels.map(|(name, level)| (name.to_owned(), level)).collect(), *began, *time)
            });
            each.collect::<Vec<(BTreeMap<String, String>, u64, u64)>>()
        };
        let flows: Vec<_> = [of_number("1", &[(0, 80)]), of_number("2", two)].concat();
        let (mut cells, mut outcomes, mut passes) = (Vec::new(), Vec::new(), Vec::new());
        for (id, (levels, began, time)) in (0..).zip(flows) {
            let spec = model::Spec { stop: Stop::Bytes(1_000_000), ..model::Spec::new("tcp", Pattern::Transfer) };
            cells.push(Cell { id, spec: spec.into(), levels });
            // A little noise, of which a test can tell that it is little.
            let trials = (0..4).map(|round| trial(id, round * 10 + id, began, time * MS + u64::from(round) * 10_000));
            let trials = trials.collect();
            passes.extend((0..4).map(|round| Pass { index: round * 10 + id, round: Some(round), ..Pass::default() }));
            outcomes.push(crate::outcome(&cells[id as usize], trials, &Stopping::default(), crate::Context::default()));
        }
        let factor = |name: &str| Factor { name: name.into(), ..Factor::default() };
        let plan = Plan {
            traffic: Some(PlanTraffic { kind: TrafficKind::Incast, seed: 1 }),
            from: vec!["n2".into(), "n3".into()],
            to: vec!["n1".into()],
            factors: vec![factor("senders")],
            ..Plan::default()
        };
        let header = RunHeader { cells, plan: Some(Box::new(plan)), ..RunHeader::default() };
        let curves = traffic_curves(&header, &outcomes, &passes);
        of_traffic(&header, &curves).remove(0).statement.plain()
    }

    fn trial(cell: u32, pass: u32, began_ms: u64, ns: u64) -> Trial {
        let confirmed = model::TcpSample { at_ns: ns, ..Default::default() };
        let sent = FlowTally { tcp: vec![confirmed], ..FlowTally::default() };
        let arrived = FlowTally { receiving_ns: Some([0, ns]), ..FlowTally::default() };
        let far = EndTally { began_ns: Some(began_ms * MS), flows: vec![arrived], ..EndTally::default() };
        let near = EndTally { flows: vec![sent], ..EndTally::default() };
        let ledger = Ledger { received: 1_000_000, ..Ledger::default() };
        Trial { cell, pass, position: 0, near: near.into(), far: far.into(), ledger, value: None, verdicts: Vec::new() }
    }

    #[test]
    fn what_falls_by_the_time_between_the_starts_is_no_fall() {
        let together = said(&[(0, 160), (0, 160)]);
        assert!(together.contains("as high with up to 2 senders (95 %"), "{together}");
        let falls = said(&[(0, 400), (5, 400)]);
        assert!(falls.contains("collapses to 39.5 Mbit/s") && !falls.contains("began"), "{falls}");
        let apart = said(&[(0, 160), (240, 160)]);
        let expected = "is 100 Mbit/s ±<0.1 % with 1 sender and 40.0 Mbit/s ±<0.1 % with 2 senders; whether it falls is \
                        unclear; the transfers with 2 senders began within 240 ms of each other (95 %";
        assert!(apart.contains(expected), "{apart}");
    }
}
