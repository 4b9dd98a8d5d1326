//! Compares the tools of a work and judges its goals.

use analysis::stats::order_interval;
use model::median;

use crate::goal_record::{Figure, GoalRecord};
use crate::peer::{BARE, OURS};
use crate::record::{ToolOrder, WorkRecord};
use crate::tool_result::{Curve, ToolResult};
use crate::verdict::{self, Ratio, Reached};
use crate::work::{Against, Better, Goal, Work};

/// How a work ran.
pub struct Ran {
    /// The tools' numbers, ours first.
    pub tools: Vec<ToolResult>,
    /// The order of the tools, round by round.
    pub order: Vec<ToolOrder>,
    /// Load averages before and after.
    pub load: [Option<f64>; 2],
}

/// The record of a work: compares the tools and, unless it was a quick run, judges the goals. Each interval has
/// the confidence `each`.
pub fn compare(work: &Work, ran: Ran, each: f64, quick: bool) -> WorkRecord {
    let Ran { mut tools, order, load } = ran;
    agreement(&mut tools);
    let ours = tools.iter().find(|shown| shown.tool == OURS);
    let pair =
        |shown: &ToolResult| verdict::ratio(&shown.tool, ours?.beside(&shown.tool), &shown.values, work.better, each);
    let ratios = tools.iter().filter(|shown| shown.tool != OURS).filter_map(pair).collect();
    let mut record = WorkRecord {
        id: work.id.to_owned(),
        title: work.title.to_owned(),
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
        record.goals = work.goals.iter().flat_map(|goal| judge(&record, goal, each)).collect();
    }
    record
}

/// Judges a goal, once for each of its peers that ran.
fn judge(work: &WorkRecord, goal: &Goal, each: f64) -> Vec<GoalRecord> {
    let own = |values: &[f64]| Judged::of(values, each);
    let values =
        || -> Vec<f64> { shown(work, OURS).map_or(Vec::new(), |ours| ours.values.iter().flatten().copied().collect()) };
    match goal {
        Goal::Ratio { to, of } => peers(work, *to).into_iter().filter_map(|peer| against(work, &peer, *of)).collect(),
        Goal::Value(bound) => {
            let ours = own(&values());
            let reached = verdict::reached(ours.interval, *bound, work.better);
            vec![ours.goal(format!("{} {}", sign(work.better), work.unit.text(*bound)), Figure::Value, reached)]
        }
        Goal::Within { value, share } => {
            let ours = own(&values());
            let reached = verdict::within(ours.interval, *value, *share);
            let goal = format!("within {} % of {}", share * 100.0, work.unit.text(*value));
            vec![ours.goal(goal, Figure::Value, reached)]
        }
        Goal::Also { name, better, bound } => {
            let ours = own(&shown(work, OURS).map_or(Vec::new(), |ours| ours.also(name)));
            let reached = verdict::reached(ours.interval, *bound, *better);
            vec![ours.goal(format!("{name} {} {bound}", sign(*better)), Figure::Also, reached)]
        }
        Goal::NoWorseThan { name, better, peer } => {
            let Some(theirs) = shown(work, peer).and_then(|theirs| theirs.also.get(*name)) else { return Vec::new() };
            let ours = shown(work, OURS).and_then(|ours| ours.also.get(*name)).map_or(&[][..], Vec::as_slice);
            let difference = own(&verdict::paired(ours, theirs, |ours, theirs| ours - theirs));
            let reached = verdict::reached(difference.interval, 0.0, *better);
            vec![difference.goal(format!("{name} less {peer}'s {} 0", sign(*better)), Figure::Difference, reached)]
        }
    }
}

fn sign(better: Better) -> &'static str {
    if better == Better::Higher { ">=" } else { "<=" }
}

/// A goal by the interval of the peer's row.
fn against(work: &WorkRecord, (name, called): &(String, String), of: f64) -> Option<GoalRecord> {
    let ratio = work.ratios.iter().find(|ratio| ratio.peer == *name)?;
    let interval = ratio.low.zip(ratio.high).map(Into::into);
    let judged = Judged { median: Some(ratio.median), interval };
    let reached = verdict::reached(interval, of, work.better);
    Some(judged.goal(format!("{} {of:.2} x {called}", sign(work.better)), Figure::Ratio, reached))
}

/// A median and its interval.
struct Judged {
    median: Option<f64>,
    interval: Option<[f64; 2]>,
}

impl Judged {
    fn of(values: &[f64], each: f64) -> Self {
        let interval = order_interval(values, each).map(|interval| [interval.low, interval.high]);
        Self { median: median(values), interval }
    }

    fn goal(self, goal: String, of: Figure, reached: Reached) -> GoalRecord {
        GoalRecord { goal, median: self.median, interval: self.interval, of, reached }
    }
}

fn shown<'a>(work: &'a WorkRecord, tool: &str) -> Option<&'a ToolResult> {
    work.tools.iter().find(|shown| shown.tool == tool)
}

/// The tools of a goal, and their names in its text.
fn peers(work: &WorkRecord, to: Against) -> Vec<(String, String)> {
    let own = |ratio: &Ratio| (ratio.peer.clone(), ratio.peer.clone());
    match to {
        Against::All(names) => {
            work.ratios.iter().filter(|ratio| names.contains(&ratio.peer.as_str())).map(own).collect()
        }
        Against::Each => work.ratios.iter().filter(|ratio| ratio.peer != BARE).map(own).collect(),
        Against::BestOf(names) => {
            // By the compared figures, which are not always medians: some tools print the best of three.
            let mut named: Vec<&Ratio> =
                work.ratios.iter().filter(|ratio| names.contains(&ratio.peer.as_str())).collect();
            named.sort_by(|a, b| a.median.total_cmp(&b.median));
            let best = if work.better == Better::Higher { named.first() } else { named.last() };
            let called =
                |best: &&Ratio| (best.peer.clone(), format!("the best of {} ({})", names.join(", "), best.peer));
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
        shown.also.insert("points_inside".to_owned(), counts);
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
        compare(work, Ran { tools, order: Vec::new(), load: [None, None] }, 0.95, false)
    }

    #[test]
    fn what_prints_the_best_of_three_is_compared_with_our_best_of_three() {
        let mut ours = shown(OURS, &[]);
        for round in 0..6 {
            let mut outcome = outcome(30.0);
            outcome.reading.best = Some(20.0);
            ours.take(round, Ok(outcome), Cost::PerExchange);
        }
        let record = compared("rtt", vec![ours, shown("NPtcp", &[20.0; 6]), shown("sockperf", &[25.0; 6])]);
        let medians: Vec<f64> = record.ratios.iter().map(|ratio| ratio.median).collect();
        assert_eq!(medians, [1.0, 1.2]);
        assert!(record.goals[0].goal.ends_with("(sockperf)"), "{}", record.goals[0].goal);
    }

    #[test]
    fn the_best_peer_is_the_named_one_with_the_best_median() {
        let record = compared(
            "rtt",
            vec![
                shown("thru", &[10.2, 11.0, 10.2, 11.0, 10.2, 11.0]),
                shown("bare", &[1.0; 6]),
                shown("qperf", &[2.0; 6]),
                shown("NPtcp", &[10.0; 6]),
                shown("sockperf", &[20.0; 6]),
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
            compared("stream", vec![shown("thru", &[2.0; 6]), shown("qperf", &[1.0; 6]), shown("bare", &[2.1; 6])]);
        let goals: Vec<&str> = record.goals.iter().map(|goal| goal.goal.as_str()).collect();
        assert_eq!(goals, [">= 1.00 x qperf", ">= 0.98 x bare"]);
        let reached: Vec<Reached> = record.goals.iter().map(|goal| goal.reached).collect();
        assert_eq!(reached, [Reached::Met, Reached::Short], "0.952 of bare's");
    }

    #[test]
    fn numbers_beside_the_main_one_have_goals_too() {
        let mut ours = shown("thru", &[2.0; 6]);
        ours.also.insert("memory_bytes".into(), vec![Some(2e9); 6]);
        ours.also.insert("setup_ns".into(), vec![Some(1e9); 6]);
        let record = compared("crowd-rr-1k", vec![ours]);
        let reached: Vec<Reached> = record.goals.iter().map(|goal| goal.reached).collect();
        assert_eq!(reached, [Reached::Short, Reached::Met]);
        // Never measured is not met.
        let record = compared("crowd-rr-1k", vec![shown("thru", &[2.0; 6])]);
        assert!(record.goals.iter().all(|goal| goal.reached == Reached::Unknown));
    }

    #[test]
    fn a_figure_is_no_worse_than_a_peers_by_the_differences_of_the_rounds() {
        let points = |tool, points: [f64; 6]| {
            let mut shown = shown(tool, &[2.0; 6]);
            shown.also.insert("points_inside".into(), points.map(Some).to_vec());
            shown
        };
        let judged = |ours| {
            // Both drift; only the differences count.
            let theirs = points("NPtcp", [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
            let record = compared("curve", vec![points(OURS, ours), theirs]);
            record.goals.iter().find(|goal| goal.of == Figure::Difference).unwrap().clone()
        };
        let equal = judged([10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        assert_eq!((equal.median, equal.reached), (Some(0.0), Reached::Met));
        assert_eq!(judged([11.0, 22.0, 31.0, 41.0, 51.0, 61.0]).interval, Some([1.0, 2.0]));
        assert_eq!(judged([9.0, 19.0, 29.0, 39.0, 49.0, 59.0]).reached, Reached::Short);
        assert_eq!(judged([9.0, 21.0, 29.0, 41.0, 49.0, 61.0]).reached, Reached::Level);
        let record = compared("curve", vec![shown(OURS, &[2.0; 6]), points("NPtcp", [1.0; 6])]);
        assert_eq!(record.goals.last().unwrap().reached, Reached::Unknown, "never measured");
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
