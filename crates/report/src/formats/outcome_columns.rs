//! The columns of a table of outcomes: of CSV and of workbooks.

use model::{EndCost, EndOptions, OneWay, Outcome, Pass, Run, Spec, Summary};

use super::table::level_names;
use super::value::{Value, count, number, text};
use crate::labels;

/// The outcomes of several runs as a table.
pub(super) struct OutcomeRows<'a> {
    runs: &'a [Run],
    levels: Vec<String>,
}

impl<'a> OutcomeRows<'a> {
    /// With a column for each level that the cells of any run have.
    pub(super) fn new(runs: &'a [Run]) -> Self {
        Self { runs, levels: all_levels(runs) }
    }

    /// The names of the columns. A name ends in the unit of its numbers, unless these are counts, names or sizes of blocks in bytes.
    pub(super) fn head(&self) -> Vec<String> {
        let names = |columns: &'static [Column]| columns.iter().map(|(name, _)| (*name).to_owned());
        let of_options = option_columns().map(|column| column.name.to_owned());
        let fixed = names(MEASUREMENT).chain(of_options).chain(names(RESULTS));
        fixed.chain(end_names()).chain(self.levels.iter().map(|name| format!("level_{name}"))).collect()
    }

    /// Each outcome with its run and values.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&'a Run, &'a Outcome, Vec<Option<Value>>)> {
        let outcomes = self.runs.iter().flat_map(|run| run.outcomes.iter().map(move |outcome| (run, outcome)));
        outcomes.map(|(run, outcome)| {
            let values = |columns: &'static [Column]| columns.iter().map(|(_, value)| value(run, outcome));
            let of_options = option_columns().map(|column| (column.value)(&outcome.spec).map(Value::from));
            let fixed = values(MEASUREMENT).chain(of_options).chain(values(RESULTS));
            let cell = model::Cell::find(&run.header.cells, outcome.cell);
            let level = |name: &String| cell.and_then(|cell| cell.levels.get(name)).and_then(text);
            (run, outcome, fixed.chain(end_values(&outcome.spec)).chain(self.levels.iter().map(level)).collect())
        })
    }
}

/// The names of the levels that the cells of any run have.
pub(super) fn all_levels(runs: &[Run]) -> Vec<String> {
    let mut levels: Vec<String> = Vec::new();
    for name in runs.iter().flat_map(level_names) {
        if !levels.contains(&name) {
            levels.push(name);
        }
    }
    levels
}

type Column = (&'static str, fn(&Run, &Outcome) -> Option<Value>);

/// The columns of a run and of what was measured. Null is an empty cell.
#[rustfmt::skip]
const MEASUREMENT: &[Column] = &[
    ("run", |run, _| text(&run.header.id)),
    ("name", |run, _| run.header.name.as_ref().and_then(text)),
    ("kind", |run, _| text(run.header.kind.name())),
    ("started", |run, _| Some(Value::Time(run.header.started_unix_ns))),
    ("target", |run, _| run.header.target.as_ref().and_then(text)),
    ("near_host", |run, _| run.header.near.hostname.as_ref().and_then(text)),
    ("far_host", |run, _| run.header.far.hostname.as_ref().and_then(text)),
    ("cell", |_, o| count(o.cell)),
    ("pattern", |_, o| text(o.spec.pattern.name())),
];

/// The columns of its results.
#[rustfmt::skip]
const RESULTS: &[Column] = &[
    ("delayed_read_count", |_, o| labels::delayed_reads(o).and_then(count)),
    ("goodput_bps", |_, o| number(o.summary.goodput_bps)),
    ("sender_bps", |_, o| number(o.summary.sender_bps)),
    ("netpipe_bps", |_, o| number(o.summary.netpipe_bps)),
    ("rtt_p50_ns", |_, o| number(o.summary.rtt_p50_ns)),
    ("rtt_p99_ns", |_, o| number(o.summary.rtt_p99_ns)),
    ("transactions_per_s", |_, o| number(o.summary.transactions_per_s)),
    ("packets_per_s", |_, o| number(o.summary.packets_per_s)),
    ("packets_lost", |_, o| o.summary.packets_lost.and_then(count)),
    ("packets_sent", |_, o| o.summary.packets_sent.and_then(count)),
    ("packets_reordered", |_, o| o.summary.packets_reordered.and_then(count)),
    ("packets_duplicated", |_, o| o.summary.packets_duplicated.and_then(count)),
    ("jitter_ns", |_, o| number(o.summary.jitter_ns)),
    ("retransmits", |_, o| o.summary.retransmits.and_then(count)),
    ("bytes_retransmitted", |_, o| o.summary.bytes_retransmitted.and_then(count)),
    ("tcp_rtt_ns", |_, o| number(o.summary.tcp_rtt_ns)),
    ("cwnd_bytes", |_, o| number(o.summary.cwnd_bytes)),
    ("bytes_sent", |_, o| o.summary.bytes_sent.and_then(count)),
    ("bytes_received", |_, o| o.summary.bytes_received.and_then(count)),
    ("calls_sent", |_, o| o.summary.calls_sent.and_then(count)),
    ("calls_received", |_, o| o.summary.calls_received.and_then(count)),
    ("duration_ns", |_, o| o.summary.duration_ns.and_then(count)),
    ("trials", |_, o| count(o.summary.trials)),
    ("ci95_low", |_, o| number(o.summary.ci95_low)),
    ("ci95_high", |_, o| number(o.summary.ci95_high)),
    ("estimate", |_, o| o.estimate.as_ref().and_then(|e| text(&e.statistic))),
    ("estimate_unit", |_, o| o.estimate.as_ref().and_then(|e| text(&e.unit))),
    ("estimate_value", |_, o| number(o.estimate.as_ref().map(|e| e.value))),
    ("estimate_low", |_, o| number(o.estimate.as_ref().and_then(|e| e.low))),
    ("estimate_high", |_, o| number(o.estimate.as_ref().and_then(|e| e.high))),
    ("estimate_confidence", |_, o| number(o.estimate.as_ref().map(|e| e.confidence))),
    ("estimate_method", |_, o| o.estimate.as_ref().and_then(|e| text(&e.method))),
    ("estimate_n", |_, o| o.estimate.as_ref().and_then(|e| count(e.n))),
    ("ceiling_bps", |_, o| number(o.summary.ceiling.as_ref().map(|ceiling| ceiling.bound_bps))),
    ("ceiling_reason", |_, o| o.summary.ceiling.as_ref().and_then(|ceiling| text(ceiling.reason.plain()))),
    ("near_process_s_per_gb", |_, o| near(o, |end| end.process_s_per_gb)),
    ("far_process_s_per_gb", |_, o| far(o, |end| end.process_s_per_gb)),
    ("near_host_s_per_gb", |_, o| near(o, |end| end.host_s_per_gb)),
    ("far_host_s_per_gb", |_, o| far(o, |end| end.host_s_per_gb)),
    ("near_cycles_per_byte", |_, o| near(o, |end| end.cycles_per_byte)),
    ("far_cycles_per_byte", |_, o| far(o, |end| end.cycles_per_byte)),
    ("near_process_ns_per_transaction", |_, o| near(o, |end| end.process_ns_per_transaction)),
    ("far_process_ns_per_transaction", |_, o| far(o, |end| end.process_ns_per_transaction)),
    ("near_host_ns_per_transaction", |_, o| near(o, |end| end.host_ns_per_transaction)),
    ("far_host_ns_per_transaction", |_, o| far(o, |end| end.host_ns_per_transaction)),
    ("trust", |_, o| o.summary.trust.and_then(|trust| text(labels::trust(trust)))),
    ("within_pass_low", |_, o| number(o.summary.within_pass.as_ref().and_then(|e| e.low))),
    ("within_pass_high", |_, o| number(o.summary.within_pass.as_ref().and_then(|e| e.high))),
    ("outbound_p50_ns", |_, o| one_way(o, |one_way| Some(one_way.outbound.p50_ns))),
    ("outbound_p99_ns", |_, o| one_way(o, |one_way| one_way.outbound.p99_ns)),
    ("return_p50_ns", |_, o| one_way(o, |one_way| Some(one_way.return_trip.p50_ns))),
    ("return_p99_ns", |_, o| one_way(o, |one_way| one_way.return_trip.p99_ns)),
    ("lost_outbound", |_, o| one_way(o, |one_way| one_way.lost_outbound)),
    ("lost_return", |_, o| one_way(o, |one_way| one_way.lost_return)),
    ("clock_error_ns", |_, o| one_way(o, |one_way| one_way.clock_error_ns)),
    ("limiter", |_, o| o.summary.why.as_ref().and_then(|why| text(why.limiter.words()))),
    ("outbound_goodput_bps", |_, o| outbound(o, |s| number(s.goodput_bps))),
    ("outbound_ci95_low", |_, o| outbound(o, |s| number(s.ci95_low))),
    ("outbound_ci95_high", |_, o| outbound(o, |s| number(s.ci95_high))),
    ("outbound_tcp_rtt_ns", |_, o| outbound(o, |s| number(s.tcp_rtt_ns))),
    ("outbound_cwnd_bytes", |_, o| outbound(o, |s| number(s.cwnd_bytes))),
    ("outbound_retransmits", |_, o| outbound(o, |s| s.retransmits.and_then(count))),
    ("outbound_bytes_retransmitted", |_, o| outbound(o, |s| s.bytes_retransmitted.and_then(count))),
    ("outbound_packets_sent", |_, o| outbound(o, |s| s.packets_sent.and_then(count))),
    ("outbound_packets_lost", |_, o| outbound(o, |s| s.packets_lost.and_then(count))),
    ("outbound_jitter_ns", |_, o| outbound(o, |s| number(s.jitter_ns))),
    ("outbound_bytes_received", |_, o| outbound(o, |s| s.bytes_received.and_then(count))),
    ("outbound_limiter", |_, o| outbound(o, |s| text(s.why.as_ref()?.limiter.words()))),
    ("outbound_trust", |_, o| outbound(o, |s| text(labels::trust(s.trust?)))),
    ("return_goodput_bps", |_, o| returned(o, |s| number(s.goodput_bps))),
    ("return_ci95_low", |_, o| returned(o, |s| number(s.ci95_low))),
    ("return_ci95_high", |_, o| returned(o, |s| number(s.ci95_high))),
    ("return_tcp_rtt_ns", |_, o| returned(o, |s| number(s.tcp_rtt_ns))),
    ("return_cwnd_bytes", |_, o| returned(o, |s| number(s.cwnd_bytes))),
    ("return_retransmits", |_, o| returned(o, |s| s.retransmits.and_then(count))),
    ("return_bytes_retransmitted", |_, o| returned(o, |s| s.bytes_retransmitted.and_then(count))),
    ("return_packets_sent", |_, o| returned(o, |s| s.packets_sent.and_then(count))),
    ("return_packets_lost", |_, o| returned(o, |s| s.packets_lost.and_then(count))),
    ("return_jitter_ns", |_, o| returned(o, |s| number(s.jitter_ns))),
    ("return_bytes_received", |_, o| returned(o, |s| s.bytes_received.and_then(count))),
    ("return_limiter", |_, o| returned(o, |s| text(s.why.as_ref()?.limiter.words()))),
    ("return_trust", |_, o| returned(o, |s| text(labels::trust(s.trust?)))),
    ("completion_p50_ns", |_, o| model::median(&completions(o)).and_then(|ns| number(Some(ns)))),
    ("completion_max_ns", |_, o| completions(o).into_iter().reduce(f64::max).and_then(|ns| number(Some(ns)))),
    ("near_busy_cores", |run, o| most(run, o, |pass| pass.near.cpu.as_ref()?.busy_cores()).and_then(|most| number(Some(most)))),
    ("far_busy_cores", |run, o| most(run, o, |pass| pass.far.cpu.as_ref()?.busy_cores()).and_then(|most| number(Some(most)))),
    ("near_tests", |run, o| most(run, o, |pass| pass.near.tests.map(f64::from)).and_then(|most| count(most as u64))),
    ("far_tests", |run, o| most(run, o, |pass| pass.far.tests.map(f64::from)).and_then(|most| count(most as u64))),
    ("verdicts", |_, Outcome { summary: Summary { verdicts, .. }, .. }| text(labels::verdicts(verdicts).replace(", ", " "))),
];

/// The completion times of an outcome's transfers, ns.
fn completions(outcome: &Outcome) -> Vec<f64> {
    let time = |trial| analysis::outcome::completion_ns(&outcome.spec, trial).map(|ns| ns as f64);
    outcome.trials.iter().filter_map(time).collect()
}

/// The highest value of the passes of an outcome's trials.
fn most(run: &Run, outcome: &Outcome, value: fn(&Pass) -> Option<f64>) -> Option<f64> {
    let values = outcome.trials.iter().filter_map(|trial| value(Pass::find(&run.passes, trial.pass)?));
    values.reduce(f64::max)
}

/// A figure of the one-way delays.
fn one_way<T: Into<Value>>(outcome: &Outcome, figure: fn(&OneWay) -> Option<T>) -> Option<Value> {
    figure(outcome.summary.one_way.as_ref()?).map(Into::into)
}

/// A figure of the payload from near to far, of `both`.
fn outbound(outcome: &Outcome, figure: fn(&Summary) -> Option<Value>) -> Option<Value> {
    figure(outcome.summary.outbound.as_ref()?)
}

/// The same of the payload from far to near.
fn returned(outcome: &Outcome, figure: fn(&Summary) -> Option<Value>) -> Option<Value> {
    figure(outcome.summary.return_trip.as_ref()?)
}

/// A cost at the near end.
fn near(outcome: &Outcome, figure: fn(&EndCost) -> Option<f64>) -> Option<Value> {
    number(figure(&outcome.summary.cost.as_ref()?.near))
}

/// A cost at the far end.
fn far(outcome: &Outcome, figure: fn(&EndCost) -> Option<f64>) -> Option<Value> {
    number(figure(outcome.summary.cost.as_ref()?.far.as_ref()?))
}

/// The columns of the options of a test.
fn option_columns() -> impl Iterator<Item = &'static options::Column> {
    options::rows().flat_map(|row| row.columns)
}

/// The names of the columns of both ends' options.
fn end_names() -> impl Iterator<Item = String> {
    ["near", "far"].into_iter().flat_map(|end| EndOptions::FIELDS.iter().map(move |key| format!("{end}_{key}")))
}

fn end_values(spec: &Spec) -> impl Iterator<Item = Option<Value>> {
    [&spec.near, &spec.far].into_iter().flat_map(|end: &EndOptions| {
        let options = serde_json::to_value(end).unwrap_or_default();
        EndOptions::FIELDS.iter().map(move |key| match options.get(*key)? {
            serde_json::Value::Null => None,
            serde_json::Value::String(of) => text(of),
            serde_json::Value::Bool(is) => Some(Value::Flag(*is)),
            serde_json::Value::Array(list) => text(list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
            other => other.as_u64().map_or_else(|| text(other.to_string()), count),
        })
    })
}
