//! Groups of flows, or flows between several hosts, that were measured at the same time: what each took of their goodput, and how
//! fair that is.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Cell, Direction, Estimate, Factor, Finding, FindingKind, Outcome, Pass, Plan, Ratio, RunHeader, Spec, TrafficKind,
    Trial,
};
use text::{Aside, Text, Time, say};

use super::logs::Logs;
use super::round::{Round, of_round};
use super::{complete, part};
use crate::findings::wording::{confidence, estimate, plural, value};
use crate::outcome::{Headline, jain};
use crate::stats::{mean, t_interval};

/// Below this part of its fair share a flow or group is starved.
const STARVED: f64 = 0.1;

/// A mean over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundMean {
    /// The mean.
    pub value: f64,
    /// The low and the high end of its interval; `None` with one round.
    pub interval: Option<[f64; 2]>,
}

impl RoundMean {
    /// The same as an estimate over this many rounds, with the confidence `level`.
    pub(super) fn estimate(&self, statistic: &str, unit: &str, level: f64, rounds: usize) -> Estimate {
        Estimate {
            statistic: statistic.into(),
            unit: unit.into(),
            value: self.value,
            low: self.interval.map(|[low, _]| low),
            high: self.interval.map(|[_, high]| high),
            confidence: level,
            method: "Student's t over rounds".into(),
            n: u32::try_from(rounds).unwrap_or(u32::MAX),
        }
    }
}

/// What one group took; in a traffic, what the flow of one pair of hosts took.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupShare {
    /// Its cell.
    pub cell: u32,
    /// Its name; in a traffic the hosts in which the flows differ, such as `n3` or `n3 → n4`.
    pub name: String,
    /// Its goodput, bit/s.
    pub goodput_bps: RoundMean,
    /// Its part of the goodput of all groups, from 0 to 1.
    pub share: RoundMean,
    /// The goodput of its flows relative to their fair share, on average.
    pub of_fair: RoundMean,
    /// Its flows.
    pub flows: u32,
    /// The congestion control of its senders, if it is over TCP.
    pub cc: Option<String>,
    rate_bps: Option<u64>,
}

/// Groups that sent in one direction at the same time, with all other factors fixed.
///
/// A flow's fair share is its part of the goodput of all groups by max-min fairness: the same for every flow, but no flow gets more
/// than the rate that limits it. Jain's index is that of the flows' goodput relative to their fair shares (R. Jain, D. Chiu and
/// W. Hawe, DEC-TR-301, 1984), which without limits is that of their goodput.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupShares {
    /// The levels of the other factors.
    pub levels: BTreeMap<String, String>,
    /// The direction of the payload.
    pub direction: Direction,
    /// In the order of the plan.
    pub groups: Vec<GroupShare>,
    /// Goodput of all groups together, bit/s: what arrived while all of them sent, over that time. Of streams into or out of one host, all
    /// bytes over the time from the first arrival to the last one; of transfers, over the time until the last one had ended.
    pub total_bps: RoundMean,
    /// The same in each round, by its number.
    pub totals: BTreeMap<u32, f64>,
    /// The most that a traffic's total could have been in each round, had all flows begun at the same time.
    pub(super) totals_at_most: BTreeMap<u32, f64>,
    /// The time from the first start of a traffic's flows to the last one, ns; `None` where their clocks are not comparable.
    pub apart_ns: Option<RoundMean>,
    /// The smallest share of a round relative to an equal one, on average; `None` for a single group.
    pub smallest: Option<RoundMean>,
    /// Jain's index over the groups, each with the mean of its flows; `None` for a single group.
    pub index: Option<RoundMean>,
    /// Jain's index over the flows of all groups; `None` if the groups were not active in the same time.
    pub index_of_flows: Option<RoundMean>,
    /// Number of flows of all groups.
    pub flows: u32,
    /// The most flows that were starved in one round.
    pub starved_flows: usize,
    /// Rounds with a value.
    pub rounds: usize,
    /// The part of the trial in which all groups were active, ns after the common start, if it is not the whole trial of each.
    pub window_ns: Option<[u64; 2]>,
}

/// What is measured at the same time, with all other levels fixed: groups of flows, or the flows of a traffic; by direction. `passes`
/// give the round of a trial.
#[must_use]
pub fn group_shares(header: &RunHeader, outcomes: &[Outcome], passes: &[Pass]) -> Vec<GroupShares> {
    let Some((plan, members)) = header.plan.as_ref().and_then(|plan| Some((plan, members(plan)?))) else {
        return Vec::new();
    };
    let rounds: BTreeMap<u32, u32> = passes.iter().filter_map(|pass| Some((pass.index, pass.round?))).collect();
    let others: Vec<String> = others(plan, &members);
    let mut sets: Vec<(BTreeMap<&str, &str>, Direction, Vec<&Cell>)> = Vec::new();
    for cell in header.cells.iter().filter(|cell| Headline::of(&cell.spec) == Headline::Goodput) {
        let (rest, direction) = (part(cell, &others), cell.spec.direction);
        match sets.iter_mut().find(|(other, way, _)| *other == rest && *way == direction) {
            Some((.., cells)) => cells.push(cell),
            None => sets.push((rest, direction, vec![cell])),
        }
    }
    let of_set = |(rest, direction, cells): (BTreeMap<&str, &str>, Direction, Vec<&Cell>)| {
        let levels = rest.into_iter().map(|(name, level)| (name.to_owned(), level.to_owned())).collect();
        shares_of(levels, direction, &cells, (header, &members), outcomes, &rounds)
    };
    sets.into_iter().filter_map(of_set).collect()
}

/// The run with one cell for all groups of a combination of the other levels, the first of them, and the logarithms of their goodput
/// together.
pub(super) fn with_sums(header: &RunHeader, factor: &Factor, logs: &Logs) -> (RunHeader, Logs) {
    let rest = header.plan.as_ref().map_or_else(Vec::new, |plan| others(plan, &[factor.name.as_str()]));
    let mut cells: Vec<Cell> = Vec::new();
    let mut sums: BTreeMap<u32, BTreeMap<u32, (f64, usize)>> = BTreeMap::new();
    let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
    for cell in header.cells.iter().filter(|cell| Headline::of(&cell.spec) == Headline::Goodput) {
        let first = match cells.iter().find(|first| part(first, &rest) == part(cell, &rest)) {
            Some(first) => first.id,
            None => {
                cells.push(cell.clone());
                cell.id
            }
        };
        *groups.entry(first).or_default() += 1;
        for (round, ln) in logs.get(&cell.id).into_iter().flatten() {
            let sum = sums.entry(first).or_default().entry(*round).or_default();
            *sum = (sum.0 + ln.exp(), sum.1 + 1);
        }
    }
    // A round in which a group has no trial has no sum.
    let whole = |first: &u32, rounds: BTreeMap<u32, (f64, usize)>| {
        let all = groups.get(first).copied();
        let of = move |(round, (sum, count)): (u32, (f64, usize))| (Some(count) == all).then(|| (round, sum.ln()));
        rounds.into_iter().filter_map(of).collect()
    };
    let logs = sums.into_iter().map(|(first, rounds)| (first, whole(&first, rounds))).collect();
    (RunHeader { cells, ..header.clone() }, logs)
}

/// The names of the levels in which cells that are measured at the same time differ; `None` if each has its hosts for itself.
pub(super) fn members(plan: &Plan) -> Option<Vec<&str>> {
    if let Some(traffic) = plan.traffic {
        return Some(match traffic.kind {
            TrafficKind::Incast => vec![Factor::FROM],
            TrafficKind::FanOut => vec![Factor::TO],
            TrafficKind::Ring | TrafficKind::Bisection | TrafficKind::Permutation => vec![Factor::FROM, Factor::TO],
        });
    }
    plan.groups().map(|groups| vec![groups.name.as_str()])
}

/// The names of the other factors, and of the hosts.
fn others(plan: &Plan, members: &[&str]) -> Vec<String> {
    let names = plan.factors.iter().map(|factor| factor.name.as_str()).chain([Factor::FROM, Factor::TO]);
    names.filter(|name| !members.contains(name)).map(str::to_owned).collect()
}

fn shares_of(
    levels: BTreeMap<String, String>,
    direction: Direction,
    cells: &[&Cell],
    (header, members): (&RunHeader, &[&str]),
    outcomes: &[Outcome],
    rounds: &BTreeMap<u32, u32>,
) -> Option<GroupShares> {
    let outcome_of = |cell: &&Cell| outcomes.iter().find(|outcome| outcome.cell == cell.id);
    let own: Vec<&Outcome> = cells.iter().map(outcome_of).collect::<Option<_>>()?;
    let specs: Vec<&Spec> = cells.iter().map(|cell| &*cell.spec).collect();
    let numbers: BTreeSet<u32> = rounds.values().copied().collect();
    let trials_of = |round: u32| -> Option<Vec<&Trial>> {
        let of_round = |trial: &&Trial| complete(trial) && rounds.get(&trial.pass) == Some(&round);
        own.iter().map(|outcome| outcome.trials.iter().find(of_round)).collect()
    };
    let traffic = header.plan.as_ref().and_then(|plan| Some(plan.traffic?.kind));
    let by_number = |round: u32| Some((round, of_round(&specs, &trials_of(round)?, traffic)?));
    let (numbers, found): (Vec<u32>, Vec<Round>) = numbers.into_iter().filter_map(by_number).unzip();
    let over = |of: &dyn Fn(&Round) -> Option<f64>| {
        let values: Vec<f64> = found.iter().filter_map(of).collect();
        let interval = t_interval(&values, header.stopping.confidence).map(|it| [it.low, it.high]);
        Some(RoundMean { value: mean(&values)?, interval })
    };
    let by_round =
        |of: fn(&Round) -> f64| numbers.iter().zip(&found).map(|(number, round)| (*number, of(round))).collect();
    let total = |round: &Round| round.goodput.iter().sum::<f64>();
    let smallest = |round: &Round| {
        let least = round.goodput.iter().copied().reduce(f64::min)?;
        (cells.len() > 1).then(|| least * cells.len() as f64 / total(round))
    };
    let name = |cell: &Cell| {
        let own: Vec<&str> = members.iter().filter_map(|name| cell.levels.get(*name)).map(String::as_str).collect();
        own.join(" → ")
    };
    let fair = |round: &Round| fair_shares(&specs, total(round));
    let of_fair = |round: &Round, at: usize| round.goodput[at] / f64::from(specs[at].flows) / fair(round)[at];
    let groups = cells.iter().enumerate().map(|(at, cell)| {
        Some(GroupShare {
            cell: cell.id,
            name: name(cell),
            goodput_bps: over(&|round| Some(round.goodput[at]))?,
            share: over(&|round| Some(round.goodput[at] / total(round)))?,
            of_fair: over(&|round| Some(of_fair(round, at)))?,
            flows: cell.spec.flows,
            rate_bps: cell.spec.rate_bps,
            cc: congestion_control(own[at]),
        })
    });
    let groups = groups.collect::<Option<Vec<_>>>()?;
    let flows_of_fair = |round: &Round| -> Option<Vec<f64>> {
        let of_group = |(flows, fair): (&Vec<f64>, f64)| flows.iter().map(move |flow| flow / fair).collect::<Vec<_>>();
        Some(round.flows.as_ref()?.iter().zip(fair(round)).flat_map(of_group).collect())
    };
    let starved =
        |round: &Round| flows_of_fair(round).map_or(0, |all| all.iter().filter(|one| **one < STARVED).count());
    Some(GroupShares {
        index: over(&|round| jain(&(0..cells.len()).map(|at| of_fair(round, at)).collect::<Vec<_>>())),
        index_of_flows: over(&|round| jain(&flows_of_fair(round)?)),
        total_bps: over(&|round| Some(round.total))?,
        totals: by_round(|round| round.total),
        totals_at_most: by_round(|round| round.total_at_most),
        apart_ns: over(&|round| Some(round.apart_ns? as f64)),
        smallest: over(&smallest),
        flows: specs.iter().map(|spec| spec.flows).sum(),
        starved_flows: found.iter().map(starved).max().unwrap_or(0),
        rounds: found.len(),
        window_ns: found.iter().find_map(|round| round.window_ns),
        levels,
        direction,
        groups,
    })
}

/// The fair share of a flow of each group, bit/s, of what all groups got.
fn fair_shares(specs: &[&Spec], total_bps: f64) -> Vec<f64> {
    let limit = |spec: &Spec| spec.rate_bps.map_or(f64::INFINITY, |rate| rate as f64 / f64::from(spec.flows));
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by(|a, b| limit(specs[*a]).total_cmp(&limit(specs[*b])));
    let mut fair = vec![0.0; specs.len()];
    let (mut left_bps, mut flows) = (total_bps, specs.iter().map(|spec| f64::from(spec.flows)).sum::<f64>());
    for at in order {
        let own = f64::from(specs[at].flows);
        fair[at] = limit(specs[at]).min(left_bps / flows);
        left_bps -= fair[at] * own;
        flows -= own;
    }
    fair
}

/// The congestion control of a group's senders, if it is over TCP.
fn congestion_control(outcome: &Outcome) -> Option<String> {
    let trial = outcome.trials.first()?;
    let (sender, options) = match outcome.spec.direction {
        Direction::Reverse => (&trial.far, &outcome.spec.far),
        Direction::Send | Direction::Both => (&trial.near, &outcome.spec.near),
    };
    let used = sender.flows.iter().find_map(|flow| flow.socket.cc.clone());
    used.or_else(|| options.cc.clone().filter(|_| outcome.spec.is_over_tcp()))
}

/// The findings on groups.
pub(super) fn of_groups(header: &RunHeader, outcomes: &[Outcome], passes: &[Pass]) -> Vec<Finding> {
    let level = header.stopping.confidence;
    if header.plan.as_ref().is_none_or(|plan| plan.groups().is_none()) {
        return Vec::new();
    }
    group_shares(header, outcomes, passes).iter().flat_map(|set| findings(set, level)).collect()
}

fn findings(set: &GroupShares, level: f64) -> Vec<Finding> {
    if set.groups.len() < 2 {
        return Vec::new();
    }
    let cells: Vec<u32> = set.groups.iter().map(|group| group.cell).collect();
    let finding = |statement: Text, estimate: Option<Estimate>, cells: &[u32]| Finding {
        kind: FindingKind::Fairness,
        statement: say!("{}{statement}", place(set)),
        estimate,
        block: None,
        cells: cells.to_vec(),
        comparison: None,
    };
    let estimated = |mean: &RoundMean, statistic: &str, unit: &str| mean.estimate(statistic, unit, level, set.rounds);
    let total = estimated(&set.total_bps, "mean over rounds of the goodput of all groups", "bit/s");
    let taken: Vec<String> =
        set.groups.iter().map(|group| format!("{} {}", group.name, percent(&group.share))).collect();
    let window = set.window_ns.map_or(Text::default(), |[from, to]| {
        let [from, to] = [from, to].map(|ns| Time(ns as f64));
        say!(" while all of them sent ({from} to {to} after the start)")
    });
    let statement = say!("The groups together: {}{window}; {}.", estimate(&total), taken.join(", "));
    let mut found = vec![finding(statement, Some(total), &cells)];
    if let Some(index) = &set.index {
        let of_flows = set.index_of_flows.as_ref().filter(|_| set.flows as usize > set.groups.len());
        let of_flows =
            of_flows.map_or(Text::default(), |index| say!(", and {} over all {} flows", index_text(index), set.flows));
        let limited = set.groups.iter().any(|group| group.rate_bps.is_some());
        let relative = if limited { " relative to its fair share" } else { "" };
        let statement = say!(
            "Jain's fairness index of the goodput per flow{relative} is {} over the groups{of_flows}{}.",
            index_text(index),
            Aside(say!("{} interval over {}", confidence(level), plural(set.rounds, "round")))
        );
        let estimate = estimated(index, "mean over rounds of Jain's index over the groups", "index");
        found.push(finding(statement, Some(estimate), &cells));
    }
    for group in set.groups.iter().filter(|group| group.of_fair.value < STARVED) {
        let each = group.goodput_bps.value / f64::from(group.flows);
        let statement = say!(
            "Group {} was starved: its flows got {} each, {} of their fair share.",
            group.name,
            value(each, "bit/s"),
            Ratio(group.of_fair.value)
        );
        let estimate = estimated(&group.of_fair, "mean over rounds of the goodput relative to the fair share", "share");
        found.push(finding(statement, Some(estimate), &[group.cell]));
    }
    if set.starved_flows > 0 {
        let statement = say!(
            "{} of {} got less than a tenth of their fair share in one round.",
            set.starved_flows,
            plural(set.flows as usize, "flow")
        );
        found.push(finding(statement, None, &cells));
    }
    if let Some(statement) = by_congestion_control(set) {
        found.push(finding(statement, None, &cells));
    }
    found
}

/// What each congestion control took, if there are several and no rate limits a group.
fn by_congestion_control(set: &GroupShares) -> Option<Text> {
    let mut each: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
    for group in &set.groups {
        let entry = each.entry(group.cc.as_deref()?).or_default();
        *entry = (entry.0 + group.share.value, entry.1 + group.flows);
    }
    if each.len() < 2 || set.groups.iter().any(|group| group.rate_bps.is_some()) {
        return None;
    }
    // A control of one group has the interval of that group's share.
    let share = |cc: &str, sum: f64| {
        let mut own = set.groups.iter().filter(|group| group.cc.as_deref() == Some(cc));
        match (own.next(), own.next()) {
            (Some(only), None) => percent(&only.share),
            _ => Ratio(sum).to_string(),
        }
    };
    let taken: Vec<String> = each
        .iter()
        .map(|(cc, (sum, flows))| {
            let part = Ratio(f64::from(*flows) / f64::from(set.flows));
            format!("{cc} took {} with {part} of the flows", share(cc, *sum))
        })
        .collect();
    Some(say!("By congestion control: {}.", taken.join(", ")))
}

/// Which groups a finding is about, if there are several sets.
fn place(set: &GroupShares) -> Text {
    let levels: Vec<String> = set.levels.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let way = match set.direction {
        Direction::Send => "",
        Direction::Reverse => "reverse",
        Direction::Both => "both directions",
    };
    let all: Vec<&str> = levels.iter().map(String::as_str).chain(Some(way).filter(|way| !way.is_empty())).collect();
    if all.is_empty() { Text::default() } else { say!("{}: ", all.join(", ")) }
}

/// A share with its interval: `62.3 % ± 1.1 %`, in percent of the whole.
fn percent(share: &RoundMean) -> String {
    let half = share.interval.map(|[low, high]| 100.0 * (high - low) / 2.0);
    let value = 100.0 * share.value;
    match half {
        Some(half) => format!("{value:.1} % ± {half:.1}"),
        None => format!("{value:.1} %"),
    }
}

fn index_text(index: &RoundMean) -> String {
    match index.interval {
        Some([low, high]) => format!("{:.3} ± {:.3}", index.value, (high - low) / 2.0),
        None => format!("{:.3}", index.value),
    }
}

#[cfg(test)]
mod tests {
    use model::{EndTally, FlowTally, Interval, Pattern, Stop, Stopping};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A group: its spec, and the bytes of each of its flows in each second of a trial.
    struct Sent(&'static str, Spec, Vec<u64>);

    fn spec(flows: u32) -> Spec {
        Spec { flows, stop: Stop::TimeNs(4 * SECOND), interval_ns: SECOND, ..Spec::new("tcp", Pattern::Stream) }
    }

    fn trial(cell: u32, pass: u32, Sent(_, spec, flows): &Sent) -> Trial {
        let Stop::TimeNs(ns) = spec.stop else { panic!("timed") };
        let seconds = ns / SECOND;
        let each: u64 = flows.iter().sum();
        let intervals = (0..seconds).map(|at| Interval {
            start_ns: at * SECOND,
            end_ns: (at + 1) * SECOND,
            bytes_received: each,
            ..Interval::default()
        });
        let flow =
            |(flow, bytes): (u32, &u64)| FlowTally { flow, bytes_received: bytes * seconds, ..FlowTally::default() };
        let far = EndTally {
            bytes_received: each * seconds,
            receiving_ns: ns,
            intervals: intervals.collect(),
            flows: (0..).zip(flows).map(flow).collect(),
            ..EndTally::default()
        };
        let cc = spec.near.cc.clone();
        let socket = model::SocketFacts { cc, ..model::SocketFacts::default() };
        let near = EndTally { flows: vec![FlowTally { socket, ..FlowTally::default() }], ..EndTally::default() };
        let (ledger, value) = (model::Ledger::default(), Some(each as f64 * 8.0));
        Trial { cell, pass, position: 0, near: near.into(), far: far.into(), ledger, value, verdicts: Vec::new() }
    }

    fn run(groups: &[Sent], rounds: u32) -> (RunHeader, Vec<Outcome>, Vec<Pass>) {
        let factor = Factor { name: Factor::GROUP.into(), together: true, ..Factor::default() };
        let plan = Some(Box::new(Plan { factors: vec![factor], ..Plan::default() }));
        let mut cells = Vec::new();
        let mut outcomes = Vec::new();
        let mut passes = Vec::new();
        for (id, group) in (0..).zip(groups) {
            let levels = [(Factor::GROUP.to_owned(), group.0.to_owned())].into();
            cells.push(Cell { id, spec: group.1.clone().into(), levels });
            let pass = |round: u32| round * groups.len() as u32 + id;
            let trials = (0..rounds).map(|round| trial(id, pass(round), group)).collect();
            passes.extend((0..rounds).map(|round| Pass { index: pass(round), round: Some(round), ..Pass::default() }));
            outcomes.push(crate::outcome(&cells[id as usize], trials, &Stopping::default(), crate::Context::default()));
        }
        (RunHeader { cells, plan, ..RunHeader::default() }, outcomes, passes)
    }

    fn shares(groups: &[Sent]) -> GroupShares {
        let (header, outcomes, passes) = run(groups, 3);
        group_shares(&header, &outcomes, &passes).remove(0)
    }

    fn said(groups: &[Sent]) -> Vec<String> {
        let (header, outcomes, passes) = run(groups, 3);
        of_groups(&header, &outcomes, &passes).into_iter().map(|finding| finding.statement.plain()).collect()
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-9
    }

    #[test]
    fn equal_flows_are_fair_whatever_the_sizes_of_their_groups() {
        let set = shares(&[Sent("a", spec(3), vec![10; 3]), Sent("b", spec(1), vec![10])]);
        assert!(is_near(set.groups[0].share.value, 0.75) && is_near(set.total_bps.value, 320.0));
        assert!(is_near(set.index.unwrap().value, 1.0) && is_near(set.index_of_flows.unwrap().value, 1.0));
        assert_eq!((set.flows, set.starved_flows, set.rounds, set.window_ns), (4, 0, 3, None));
    }

    #[test]
    fn the_index_over_flows_sees_what_the_groups_hide() {
        let set = shares(&[Sent("a", spec(2), vec![20, 0]), Sent("b", spec(2), vec![10, 10])]);
        assert!(is_near(set.index.unwrap().value, 1.0));
        assert!(is_near(set.index_of_flows.unwrap().value, 1600.0 / (4.0 * 600.0)));
        assert_eq!(set.starved_flows, 1);
        let said = said(&[Sent("a", spec(2), vec![20, 0]), Sent("b", spec(2), vec![10, 10])]);
        assert!(said.iter().any(|one| one.starts_with("1 of 4 flows got less than a tenth")), "{said:?}");
    }

    #[test]
    fn a_group_below_a_tenth_of_its_fair_share_is_starved() {
        let said = said(&[Sent("bulk", spec(1), vec![1000]), Sent("web", spec(1), vec![20])]);
        assert!(said[0].contains("bulk 98.0 %") && said[0].contains("web 2.0 %"), "{said:?}");
        assert!(
            said.iter().any(|one| one.starts_with("Group web was starved: its flows got 160 bit/s each")),
            "{said:?}"
        );
    }

    #[test]
    fn what_a_rate_limits_is_fair_if_it_gets_its_rate() {
        let limited = Spec { rate_bps: Some(80), ..spec(1) };
        let set = shares(&[Sent("bulk", spec(1), vec![90]), Sent("voice", limited.clone(), vec![10])]);
        assert!(is_near(set.index.unwrap().value, 1.0), "{set:?}");
        let starved = said(&[Sent("bulk", spec(1), vec![99]), Sent("voice", limited, vec![1])]);
        assert!(!starved.iter().any(|one| one.contains("starved")), "an eighth of what it wants: {starved:?}");
    }

    #[test]
    fn groups_are_compared_while_all_of_them_send() {
        let late = Spec { start_ns: Some(2 * SECOND), stop: Stop::TimeNs(2 * SECOND), ..spec(1) };
        let set = shares(&[Sent("a", spec(1), vec![10]), Sent("late", late, vec![30])]);
        assert_eq!(set.window_ns, Some([2 * SECOND, 4 * SECOND]));
        assert!(is_near(set.groups[1].share.value, 0.75) && set.index_of_flows.is_none());
        let apart = Spec { start_ns: Some(4 * SECOND), ..spec(1) };
        let (header, outcomes, passes) = run(&[Sent("a", spec(1), vec![10]), Sent("b", apart, vec![10])], 2);
        assert!(group_shares(&header, &outcomes, &passes).is_empty(), "they had no time in common");
    }

    #[test]
    fn each_congestion_control_has_its_share() {
        let with = |cc: &str, flows| Spec {
            near: model::EndOptions { cc: Some(cc.into()), ..Default::default() },
            ..spec(flows)
        };
        let groups = [Sent("a", with("cubic", 1), vec![30]), Sent("b", with("bbr", 1), vec![10])];
        let found = said(&groups);
        let expected = "By congestion control: bbr took 25.0 % ± 0.0 with 50.0 % of the flows, cubic took 75.0 % ± 0.0 with 50.0 % of the flows.";
        assert!(found.iter().any(|one| one == expected), "{found:?}");
        let one = said(&[Sent("a", with("cubic", 1), vec![30]), Sent("b", with("cubic", 1), vec![10])]);
        assert!(!one.iter().any(|one| one.starts_with("By congestion control")), "{one:?}");
    }

    #[test]
    fn effects_of_other_factors_are_of_the_goodput_of_all_groups() {
        let (header, outcomes, passes) = run(&[Sent("a", spec(1), vec![30]), Sent("b", spec(1), vec![10])], 3);
        let factor = header.plan.as_ref().unwrap().groups().unwrap();
        let logs = super::super::logs::logs(&outcomes, &passes);
        let (sums, logs) = with_sums(&header, factor, &logs);
        assert_eq!((sums.cells.len(), logs.len()), (1, 1));
        assert!(logs[&0].len() == 3 && logs[&0].values().all(|ln| is_near(ln.exp(), 320.0)), "{logs:?}");
    }

    #[test]
    fn directions_are_compared_apart() {
        let back = Spec { direction: Direction::Reverse, ..spec(1) };
        let (header, outcomes, passes) = run(&[Sent("a", spec(1), vec![10]), Sent("b", back, vec![10])], 2);
        assert!(of_groups(&header, &outcomes, &passes).is_empty());
    }
}
