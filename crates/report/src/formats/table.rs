//! A run's outcomes as a table of texts, for the terminal and the page.

use model::{Cost, EndCost, Factor, FactorKind, Outcome, Pattern, Run, RunKind, Spec, Verdict, units};
use text::{Rate, Said, Text, Time};

use crate::figures::{Measure, direction};
use crate::labels;
use crate::sections::{outcome_line, sides};

/// The outcomes of one run.
pub(super) struct OutcomeTable {
    pub(super) head: Vec<String>,
    /// Whether a column is numeric, and so right-aligned.
    pub(super) numeric: Vec<bool>,
    /// The first columns, which name the rows.
    pub(super) names: usize,
    pub(super) rows: Vec<Vec<Text>>,
    /// Verdicts of all rows, which are not repeated in the rows.
    pub(super) shared: Vec<Verdict>,
}

type Value = fn(&Outcome) -> Option<Text>;

/// Title, whether the column is numeric, and the value. A column that is empty for all outcomes is left out.
const COLUMNS: &[(&str, bool, Value)] = &[
    ("block", true, |o| Some(labels::blocks(&o.spec).into())),
    ("reply", true, |o| o.spec.reply.map(|block| labels::block(block).into())),
    ("goodput", true, |o| o.summary.goodput_bps.map(rate_text)),
    ("transactions/s", true, |o| {
        trips(o).then(|| o.summary.transactions_per_s.map(|rate| units::count(rate).into()))?
    }),
    ("RTT", true, |o| (!trips(o)).then(|| outcome_line::rtt(o).map(time_text))?),
    ("±", true, |o| Some(labels::plus_minus(o).into())),
    ("± own", true, |o| o.summary.within_pass.as_deref().and_then(labels::half_width).map(Text::from)),
    ("median RTT", true, |o| trips(o).then(|| o.summary.rtt_p50_ns.map(time_text))?),
    ("p99 RTT", true, |o| trips(o).then(|| o.summary.rtt_p99_ns.map(time_text))?),
    ("NetPIPE", true, |o| o.summary.netpipe_bps.filter(|_| Measure::of(o) == Measure::Netpipe).map(rate_text)),
    ("sender", true, |o| o.summary.sender_bps.map(rate_text)),
    ("retransmits", true, |o| o.summary.retransmits.map(|count| count.to_string().into())),
    ("packets/s", true, |o| o.summary.packets_per_s.map(|rate| units::count(rate).into())),
    ("lost", true, |o| o.summary.packets_lost.map(|lost| labels::lost(lost, o.summary.packets_sent).into())),
    ("reordered", true, |o| {
        o.summary.packets_reordered.filter(|count| *count > 0).map(|count| count.to_string().into())
    }),
    ("duplicated", true, |o| {
        o.summary.packets_duplicated.filter(|count| *count > 0).map(|count| count.to_string().into())
    }),
    ("jitter", true, |o| o.summary.jitter_ns.map(time_text)),
    ("trials", true, |o| Some(o.summary.trials.to_string().into())),
    ("delayed reads", true, |o| labels::delayed_reads(o).map(|count| count.to_string().into())),
    ("trust", false, |o| o.summary.trust.map(|trust| labels::trust(trust).into())),
    ("CPU rate near", true, |o| cpu_rate(o, |cost| Some(&cost.near))),
    ("CPU rate far", true, |o| cpu_rate(o, |cost| cost.far.as_ref())),
];

/// Properties of cells other than the block; shown if a run has more than one value.
const FACTORS: &[(&str, bool, Value)] = &[
    ("transport", false, |o| Some(o.spec.transport.to_string().into())),
    ("pattern", false, |o| Some(o.spec.pattern.to_string().into())),
    ("flows", true, |o| Some(o.spec.flows.to_string().into())),
    ("direction", false, |o| Some(direction(o.spec.direction).into())),
    ("rate limit", true, |o| o.spec.rate_bps.map(|rate| rate_text(rate as f64))),
];

fn rate_text(bps: f64) -> Text {
    Rate(bps).say()
}

fn time_text(ns: f64) -> Text {
    Time(ns).say()
}

/// Payload over the CPU time of an end's measuring processes, bit/s: the rate at one full core (nttcp's CPU-MBit/s).
fn cpu_rate(outcome: &Outcome, end: fn(&Cost) -> Option<&EndCost>) -> Option<Text> {
    let seconds = end(outcome.summary.cost.as_ref()?)?.process_s_per_gb?;
    (seconds > 0.0).then(|| rate_text(8e9 / seconds))
}

/// Request/response rather than a curve's pingpong or a stream.
fn trips(outcome: &Outcome) -> bool {
    outcome.summary.goodput_bps.is_none() && outcome.spec.pattern != Pattern::Pingpong
}

impl OutcomeTable {
    /// The table of `run`'s outcomes. A curve is sorted by block, and its memory ceiling is a column, not rows.
    pub(super) fn new(run: &Run) -> Self {
        let mut outcomes = sides::shown(run);
        let mut ceiling = Vec::new();
        if run.header.kind == RunKind::Curve {
            outcomes.sort_by_key(|outcome| outcome.spec.block);
            if outcomes.iter().any(|outcome| outcome.spec.transport != Spec::CEILING) {
                (ceiling, outcomes) = outcomes.into_iter().partition(|outcome| outcome.spec.transport == Spec::CEILING);
            }
        }
        let shared = shared_verdicts(&outcomes);
        let differs = |value: Value| outcomes.windows(2).any(|pair| value(pair[0]) != value(pair[1]));
        let some = |value: Value| outcomes.iter().any(|outcome| value(outcome).is_some());
        // The sides of a comparison may not differ in any column.
        let sides = run.header.kind == RunKind::Ab || run.advice.is_some();
        // A plan has a column for each of its factors instead.
        let planned = level_names(run);
        let factors = FACTORS.iter().filter(|(_, _, value)| planned.is_empty() && differs(*value));
        // A block that the file of an import does not report is not shown.
        let assumed = |what: &str| {
            run.header.origin.as_ref().is_some_and(|origin| origin.assumed.iter().any(|assumed| assumed == what))
        };
        let factors_of_blocks = run.header.plan.iter().flat_map(|plan| &plan.factors).filter(|factor| is_block(factor));
        let hidden = factors_of_blocks.count() > 0 || planned.iter().any(|level| level == "block") || assumed("block");
        let wanted = |(name, _, value): &&(&str, bool, Value)| {
            let left_out = (*name == "block" && hidden) || (name.starts_with("CPU rate") && planned.is_empty());
            some(*value) && !left_out
        };
        let columns: Vec<_> = factors.chain(COLUMNS.iter().filter(wanted)).collect();
        let level = |outcome: &Outcome, name: &String| {
            let cell = model::Cell::find(&run.header.cells, outcome.cell);
            labels::plain(cell.and_then(|cell| cell.levels.get(name)).map_or("", String::as_str))
        };
        let copy =
            |block: u64| ceiling.iter().find(|outcome| outcome.spec.block == block).and_then(|outcome| rate(outcome));
        let own = |outcome: &Outcome| {
            let list: Vec<Verdict> =
                outcome.summary.verdicts.iter().filter(|one| !shared.contains(one)).copied().collect();
            labels::verdicts(&list)
        };
        let remarks = outcomes.iter().any(|outcome| !own(outcome).is_empty());
        let row = |outcome: &&Outcome| {
            let mut cells: Vec<Text> = sides::side(run, outcome).map(Text::from).into_iter().collect();
            cells.extend(planned.iter().map(|name| level(outcome, name).into()));
            cells.extend(columns.iter().map(|(_, _, value)| value(outcome).unwrap_or_default()));
            cells.extend((!ceiling.is_empty()).then(|| copy(outcome.spec.block).unwrap_or_default()));
            cells.extend(remarks.then(|| own(outcome).into()));
            cells
        };
        let rows = outcomes.iter().map(row).collect();
        let extra = [(!ceiling.is_empty(), ("memory copy", true)), (remarks, ("verdicts", false))];
        let extra = extra.into_iter().filter_map(|(wanted, column)| wanted.then_some(column));
        let side = sides.then_some(("side", false));
        let titles = columns.iter().map(|(name, numeric, _)| (*name, *numeric));
        let own = |(name, numeric): (&str, bool)| (name.to_owned(), numeric);
        let levels = planned.iter().map(|name| (labels::plain(name), false));
        let titles = side.into_iter().map(own).chain(levels).chain(titles.chain(extra).map(own));
        let (head, numeric) = titles.unzip();
        Self { head, numeric, names: usize::from(sides) + planned.len(), rows, shared }
    }
}

/// Whether the levels of a factor are the block sizes of its cells.
fn is_block(factor: &Factor) -> bool {
    factor.kind == FactorKind::Field && factor.key == "block"
}

/// The names of the levels that cells have: a plan's in its order, an imported listing's by name; empty for other runs.
pub(super) fn level_names(run: &Run) -> Vec<String> {
    let Some(plan) = &run.header.plan else {
        // Rows of an imported listing, such as the connections of ss, have names and no plan.
        let mut names: Vec<String> = run.header.cells.iter().flat_map(|cell| cell.levels.keys().cloned()).collect();
        names.sort_unstable();
        names.dedup();
        return if run.header.origin.is_some() { names } else { Vec::new() };
    };
    let factors = plan.factors.iter().map(|factor| factor.name.clone());
    let hosts = [model::Factor::FROM, model::Factor::TO].map(str::to_owned);
    factors.chain(hosts).filter(|name| run.header.cells.iter().any(|cell| cell.levels.contains_key(name))).collect()
}

fn rate(outcome: &Outcome) -> Option<Text> {
    outcome.summary.netpipe_bps.or(outcome.summary.goodput_bps).map(rate_text)
}

/// The verdicts that all outcomes have; none if there is only one outcome, whose row shows them.
fn shared_verdicts(outcomes: &[&Outcome]) -> Vec<Verdict> {
    let [first, others @ ..] = outcomes else { return Vec::new() };
    let everywhere = |verdict: &&Verdict| others.iter().all(|outcome| outcome.summary.verdicts.contains(verdict));
    if others.is_empty() { Vec::new() } else { first.summary.verdicts.iter().filter(everywhere).copied().collect() }
}
