//! A run's outcomes as a table of texts, for terminal and page.

use model::{Outcome, Run, units};

use crate::figures::{Measure, direction};
use crate::{outcome_line, words};

/// The outcomes of one run.
pub(super) struct OutcomeTable {
    pub(super) head: Vec<&'static str>,
    /// Whether a column holds numbers, which stand at the right.
    pub(super) numeric: Vec<bool>,
    pub(super) rows: Vec<Vec<String>>,
}

type Value = fn(&Outcome) -> Option<String>;

/// Title, whether it is a number, and the value; a column that is empty for all outcomes is left out.
const COLUMNS: &[(&str, bool, Value)] = &[
    ("block", true, |o| Some(words::block(o.spec.block))),
    ("reply", true, |o| o.spec.reply.map(words::block)),
    ("goodput", true, |o| o.summary.goodput_bps.map(units::bits_per_second)),
    ("transactions/s", true, |o| trips(o).then(|| o.summary.transactions_per_s.map(units::count))?),
    ("RTT", true, |o| (!trips(o)).then(|| outcome_line::rtt(o).map(units::seconds))?),
    ("±", true, |o| Some(words::plus_minus(o))),
    ("median RTT", true, |o| trips(o).then(|| o.summary.rtt_p50_ns.map(units::seconds))?),
    ("p99 RTT", true, |o| trips(o).then(|| o.summary.rtt_p99_ns.map(units::seconds))?),
    ("NetPIPE rate", true, |o| {
        o.summary.netpipe_bps.filter(|_| Measure::of(o) == Measure::Netpipe).map(units::bits_per_second)
    }),
    ("sender", true, |o| o.summary.sender_bps.map(units::bits_per_second)),
    ("packets/s", true, |o| o.summary.packets_per_s.map(units::count)),
    ("lost", true, |o| o.summary.packets_lost.map(|lost| lost.to_string())),
    ("trials", true, |o| Some(o.summary.trials.to_string())),
    ("trust", false, |o| Some(words::trust(o.summary.trust).to_owned())),
    ("verdicts", false, |o| Some(words::verdicts(&o.summary.verdicts)).filter(|list| !list.is_empty())),
];

/// What tells cells apart beside the block; shown where a run has more than one value of it.
const FACTORS: &[(&str, bool, Value)] = &[
    ("transport", false, |o| Some(o.spec.transport.to_string())),
    ("pattern", false, |o| Some(o.spec.pattern.to_string())),
    ("flows", true, |o| Some(o.spec.flows.to_string())),
    ("direction", false, |o| Some(direction(o.spec.direction).to_owned())),
    ("rate limit", true, |o| o.spec.rate_bps.map(|rate| units::bits_per_second(rate as f64))),
];

/// Request/response rather than a curve's pingpong or a stream.
fn trips(outcome: &Outcome) -> bool {
    outcome.summary.goodput_bps.is_none() && outcome.spec.pattern != "pingpong"
}

impl OutcomeTable {
    /// The table of `run`'s outcomes, a curve's by ascending block.
    pub(super) fn new(run: &Run) -> Self {
        let mut outcomes: Vec<&Outcome> = run.outcomes.iter().collect();
        if run.header.kind == "curve" {
            outcomes.sort_by_key(|outcome| outcome.spec.block);
        }
        let differs = |value: Value| outcomes.windows(2).any(|pair| value(pair[0]) != value(pair[1]));
        let some = |value: Value| outcomes.iter().any(|outcome| value(outcome).is_some());
        let factors = FACTORS.iter().filter(|(_, _, value)| differs(*value));
        let columns: Vec<_> = factors.chain(COLUMNS.iter().filter(|(_, _, value)| some(*value))).collect();
        let row = |outcome: &&Outcome| {
            columns.iter().map(|(_, _, value)| words::plain(&value(outcome).unwrap_or_default())).collect()
        };
        Self {
            head: columns.iter().map(|(name, _, _)| *name).collect(),
            numeric: columns.iter().map(|(_, numeric, _)| *numeric).collect(),
            rows: outcomes.iter().map(row).collect(),
        }
    }
}
