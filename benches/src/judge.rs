//! Compares the tools of a work and judges its goals.

use analysis::stats::median;

use crate::goal_record::{Figure, GoalRecord};
use crate::peer::{BARE, OURS};
use crate::record::{ToolOrder, WorkRecord};
use crate::tool_result::{Curve, ToolResult};
use crate::verdict::{self, Ratio, Reached};
use crate::work::{Against, Better, Goal, Work};

/// The record of a work: compares the tools and, unless it was a quick run, judges the goals.
pub fn compare(
    work: &'static Work,
    mut tools: Vec<ToolResult>,
    order: Vec<ToolOrder>,
    load: [Option<f64>; 2],
    seed: u64,
    quick: bool,
) -> WorkRecord {
    agreement(&mut tools);
    let ours = tools.iter().find(|shown| shown.tool == OURS);
    let pair =
        |shown: &ToolResult| verdict::ratio(shown.tool, ours?.beside(shown.tool), &shown.values, work.better, seed);
    let ratios = tools.iter().filter(|shown| shown.tool != OURS).filter_map(pair).collect();
    let mut record = WorkRecord {
        id: work.id,
        title: work.title,
        unit: work.unit,
        better: work.better,
        cost_unit: work.cost(),
        load,
        order,
        tools,
        ratios,
        goals: Vec::new(),
    };
    if !quick {
        record.goals = judge(&record, work.goals, seed);
    }
    record
}

/// Judges each goal whose peers are installed.
fn judge(work: &WorkRecord, goals: &[Goal], seed: u64) -> Vec<GoalRecord> {
    let ours = |name: Option<&str>| -> Vec<f64> {
        let Some(ours) = shown(work, OURS) else { return Vec::new() };
        name.map_or_else(|| ours.values.iter().copied().flatten().collect(), |name| ours.also(name))
    };
    let summary = |values: &[f64]| {
        let interval = verdict::sound_interval(values, seed).map(|interval| [interval.low, interval.high]);
        (median(values), interval)
    };
    let sign = |better: Better| if better == Better::Higher { ">=" } else { "<=" };
    let mut records = Vec::new();
    for goal in goals {
        match goal {
            Goal::Ratio { to, of } => {
                let ratios = peers(work, *to).into_iter().filter_map(|(name, called)| {
                    let ratio = work.ratios.iter().find(|ratio| ratio.peer == name)?;
                    let interval = ratio.low.zip(ratio.high).map(Into::into);
                    Some(GoalRecord {
                        goal: format!("{} {of:.2} x {called}", sign(work.better)),
                        median: Some(ratio.median),
                        interval,
                        of: Figure::Ratio,
                        reached: verdict::reached(interval, *of, work.better),
                    })
                });
                records.extend(ratios);
            }
            Goal::Value(bound) => {
                let (median, interval) = summary(&ours(None));
                let reached = verdict::reached(interval, *bound, work.better);
                let goal = format!("{} {}", sign(work.better), work.unit.text(*bound));
                records.push(GoalRecord { goal, median, interval, of: Figure::Value, reached });
            }
            Goal::Within { value, share } => {
                let (median, interval) = summary(&ours(None));
                let reached = verdict::within(interval, *value, *share);
                let goal = format!("within {} % of {}", share * 100.0, work.unit.text(*value));
                records.push(GoalRecord { goal, median, interval, of: Figure::Value, reached });
            }
            Goal::Also { name, better, bound } => {
                let (median, interval) = summary(&ours(Some(name)));
                let reached = verdict::reached(interval, *bound, *better);
                let goal = format!("{name} {} {bound}", sign(*better));
                records.push(GoalRecord { goal, median, interval, of: Figure::Also, reached });
            }
            Goal::NoWorseThan { name, better, peer } => {
                let Some(theirs) = shown(work, peer).and_then(|shown| median(&shown.also(name))) else { continue };
                let (median, interval) = summary(&ours(Some(name)));
                let good = |ours: f64| if *better == Better::Higher { ours >= theirs } else { ours <= theirs };
                let reached = match (median, interval) {
                    (Some(ours), Some(_)) if good(ours) => Reached::Met,
                    (Some(_), Some(_)) => Reached::Short,
                    _ => Reached::Unknown,
                };
                let goal = format!("{name} {} {peer}'s {}", sign(*better), model::units::three_digits(theirs));
                records.push(GoalRecord { goal, median, interval, of: Figure::Also, reached });
            }
        }
    }
    records
}

fn shown<'a>(work: &'a WorkRecord, tool: &str) -> Option<&'a ToolResult> {
    work.tools.iter().find(|shown| shown.tool == tool)
}

/// The tools of a goal, and their names in its text.
fn peers(work: &WorkRecord, to: Against) -> Vec<(&'static str, String)> {
    let own = |ratio: &Ratio| (ratio.peer, ratio.peer.to_owned());
    match to {
        Against::All(names) => work.ratios.iter().filter(|ratio| names.contains(&ratio.peer)).map(own).collect(),
        Against::Each => work.ratios.iter().filter(|ratio| ratio.peer != BARE).map(own).collect(),
        Against::BestOf(names) => {
            // By the compared figures, which are not always medians: some tools print the best of three.
            let mut named: Vec<&Ratio> = work.ratios.iter().filter(|ratio| names.contains(&ratio.peer)).collect();
            named.sort_by(|a, b| a.median.total_cmp(&b.median));
            let best = if work.better == Better::Higher { named.first() } else { named.last() };
            let called = |best: &&Ratio| (best.peer, format!("the best of {} ({})", names.join(", "), best.peer));
            best.map(called).into_iter().collect()
        }
    }
}

/// For curves: adds to each curve, also the peers', at how many sizes it is between the lowest and the highest
/// of the peers' curves of all other rounds. Curves of the same round do not count, so that a peer's curve is
/// compared with as many curves as ours.
fn agreement(tools: &mut [ToolResult]) {
    let theirs: Vec<(usize, Curve)> = tools
        .iter()
        .filter(|shown| shown.tool != OURS)
        .flat_map(|shown| shown.curves.iter().enumerate())
        .filter_map(|(round, curve)| Some((round, curve.clone()?)))
        .collect();
    if theirs.is_empty() {
        return;
    }
    for shown in tools.iter_mut().filter(|shown| !shown.curves.is_empty()) {
        let inside = |(round, curve): (usize, &Option<Curve>)| {
            let others: Vec<&Curve> =
                theirs.iter().filter(|(other, _)| *other != round).map(|(_, curve)| curve).collect();
            curve.as_ref().map(|curve| points_inside(curve, &others) as f64)
        };
        let counts = shown.curves.iter().enumerate().map(inside).collect();
        shown.also.insert("points_inside", counts);
    }
}

fn points_inside(ours: &Curve, theirs: &[&Curve]) -> usize {
    let at = |curve: &Curve, size: u64| {
        curve
            .sizes
            .iter()
            .position(|other| *other == size)
            .and_then(|context| curve.round_trips_ns.get(context).copied())
    };
    let inside = |(size, time): &(&u64, &f64)| {
        let spread: Vec<f64> = theirs.iter().filter_map(|curve| at(curve, **size)).collect();
        spread.iter().any(|low| low <= time) && spread.iter().any(|high| high >= time)
    };
    ours.sizes.iter().zip(&ours.round_trips_ns).filter(inside).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_result::tests::{outcome, shown};
    use crate::work::{Cost, WORKS};

    fn compared(id: &str, tools: Vec<ToolResult>) -> WorkRecord {
        let work = WORKS.iter().find(|work| work.id == id).unwrap();
        compare(work, tools, Vec::new(), [None, None], 1, false)
    }

    #[test]
    fn what_prints_the_best_of_three_is_compared_with_our_best_of_three() {
        let mut ours = shown(OURS, &[]);
        for round in 0..5 {
            let mut outcome = outcome(30.0);
            outcome.reading.best = Some(20.0);
            ours.take(round, Ok(outcome), Cost::PerExchange);
        }
        let record = compared("rtt", vec![ours, shown("NPtcp", &[20.0; 5]), shown("sockperf", &[25.0; 5])]);
        let medians: Vec<f64> = record.ratios.iter().map(|ratio| ratio.median).collect();
        assert_eq!(medians, [1.0, 1.2]);
        assert!(record.goals[0].goal.ends_with("(sockperf)"), "{}", record.goals[0].goal);
    }

    #[test]
    fn the_best_peer_is_the_named_one_with_the_best_median() {
        let record = compared(
            "rtt",
            vec![
                shown("thru", &[10.0, 11.0, 10.0, 11.0, 10.0]),
                shown("bare", &[1.0; 5]),
                shown("qperf", &[2.0; 5]),
                shown("NPtcp", &[10.0; 5]),
                shown("sockperf", &[20.0; 5]),
            ],
        );
        assert_eq!(record.goals.len(), 1);
        assert!(record.goals[0].goal.ends_with("(NPtcp)"), "{}", record.goals[0].goal);
        assert_eq!(record.goals[0].reached, Reached::Short);
        assert_eq!(record.ratios.len(), 4);
    }

    #[test]
    fn goals_without_their_peers_are_left_out_and_each_peer_here_has_its_own() {
        let record =
            compared("stream", vec![shown("thru", &[2.0; 5]), shown("qperf", &[1.0; 5]), shown("bare", &[2.1; 5])]);
        let goals: Vec<&str> = record.goals.iter().map(|goal| goal.goal.as_str()).collect();
        assert_eq!(goals, [">= 1.00 x qperf", ">= 0.98 x bare"]);
        // 0.952 is more than 3 % below 0.98 only where it is below 0.951.
        assert!(record.goals.iter().all(|goal| goal.reached == Reached::Met));
    }

    #[test]
    fn numbers_beside_the_main_one_have_goals_too() {
        let mut ours = shown("thru", &[2.0; 5]);
        ours.also.insert("memory_bytes", vec![Some(2e9); 5]);
        ours.also.insert("setup_ns", vec![Some(1e9); 5]);
        let record = compared("crowd-rr-1k", vec![ours]);
        let reached: Vec<Reached> = record.goals.iter().map(|goal| goal.reached).collect();
        assert_eq!(reached, [Reached::Short, Reached::Met]);
        // Never measured is not met.
        let record = compared("crowd-rr-1k", vec![shown("thru", &[2.0; 5])]);
        assert!(record.goals.iter().all(|goal| goal.reached == Reached::Unknown));
    }

    #[test]
    fn losing_more_than_a_peer_falls_short() {
        let lossy = |tool, lost: f64| {
            let mut shown = shown(tool, &[2.0; 5]);
            shown.also.insert("lost_percent", vec![Some(lost); 5]);
            shown
        };
        let lost = |ours, theirs| {
            let record = compared("udp", vec![lossy("thru", ours), lossy("iperf3-gsro", theirs)]);
            record.goals.iter().find(|goal| goal.goal.starts_with("lost_percent")).unwrap().reached
        };
        assert_eq!((lost(0.5, 0.7), lost(0.7, 0.5)), (Reached::Met, Reached::Short));
    }

    #[test]
    fn a_curve_agrees_where_it_lies_between_the_lowest_and_the_highest_of_the_peers() {
        let curve = |times: &[f64]| Some(Curve { sizes: vec![1, 2, 3, 4], round_trips_ns: times.to_vec() });
        let mut ours = shown("thru", &[1.0; 3]);
        ours.curves = vec![None, None, curve(&[10.0, 21.0, 29.0, 44.0])];
        let mut peer = shown("NPtcp", &[1.0; 3]);
        peer.curves =
            vec![curve(&[10.0, 20.0, 30.0, 40.0]), curve(&[12.0, 22.0, 32.0, 44.0]), curve(&[11.0, 23.0, 29.0, 41.0])];
        let mut tools = vec![ours, peer];
        agreement(&mut tools);
        assert_eq!(
            tools[0].also["points_inside"],
            [None, None, Some(3.0)],
            "29 lies inside only by the curve of its own round"
        );
        assert_eq!(tools[1].also["points_inside"], [Some(1.0), Some(1.0), Some(2.0)], "each beside the other two");
    }
}
