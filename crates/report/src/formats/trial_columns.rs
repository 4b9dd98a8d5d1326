//! The columns of a table of trials: of Parquet files and of workbooks.

use analysis::outcome::{Headline, trial_summary};
use model::{Cell, EndTally, FlowTally, Inventory, Mix, Outcome, Pass, Run, Spec, Spent, Summary, Trial};

use super::outcome_columns::all_levels;
use super::value::{Value, count, number, text};
use crate::sections::limiter;
use crate::{figures, labels};

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// [`Value::Text`].
    Text,
    /// [`Value::Count`].
    Count,
    /// [`Value::Number`].
    Number,
    /// [`Value::Flag`].
    Flag,
    /// [`Value::Time`].
    Time,
}

/// A trial with all that its row is made of.
pub(super) struct Row<'a> {
    run: &'a Run,
    outcome: &'a Outcome,
    trial: &'a Trial,
    cell: Option<&'a Cell>,
    pass: Option<&'a Pass>,
    summary: Summary,
}

/// The trials of several runs as a table.
pub(super) struct TrialRows<'a> {
    runs: &'a [Run],
    levels: Vec<String>,
}

impl<'a> TrialRows<'a> {
    /// With a column for each level that the cells of any run have.
    pub(super) fn new(runs: &'a [Run]) -> Self {
        Self { runs, levels: all_levels(runs) }
    }

    /// The name and the type of each column. A name ends in the unit of its numbers, unless these are counts.
    pub(super) fn head(&self) -> Vec<(String, Kind)> {
        let levels = self.levels.iter().map(|name| (format!("level_{name}"), Kind::Text));
        COLUMNS.iter().map(|(name, kind, _)| ((*name).to_owned(), *kind)).chain(levels).collect()
    }

    /// The trials in the order of runs and outcomes.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'a>> {
        self.runs.iter().flat_map(|run| run.outcomes.iter().flat_map(move |outcome| of_outcome(run, outcome)))
    }

    /// The values of a trial, one for each column.
    pub(super) fn values(&self, row: &Row<'_>) -> impl Iterator<Item = Option<Value>> {
        let level = |name: &String| row.cell.and_then(|cell| cell.levels.get(name)).and_then(text);
        COLUMNS.iter().map(|(_, _, value)| value(row)).chain(self.levels.iter().map(level))
    }
}

fn of_outcome<'a>(run: &'a Run, outcome: &'a Outcome) -> impl Iterator<Item = Row<'a>> {
    let cell = Cell::find(&run.header.cells, outcome.cell);
    let own = Cell::new(outcome.cell, outcome.spec.clone());
    outcome.trials.iter().map(move |trial| {
        let pass = Pass::find(&run.passes, trial.pass);
        Row { run, outcome, trial, cell, pass, summary: trial_summary(&own, trial) }
    })
}

type Column = (&'static str, Kind, fn(&Row<'_>) -> Option<Value>);

#[rustfmt::skip]
const COLUMNS: &[Column] = &[
    ("run", Kind::Text, |row| text(&row.run.header.id)),
    ("name", Kind::Text, |row| row.run.header.name.as_ref().and_then(text)),
    ("kind", Kind::Text, |row| text(row.run.header.kind.name())),
    ("started", Kind::Time, |row| Some(Value::Time(row.run.header.started_unix_ns))),
    ("imported_from", Kind::Text, |row| row.run.header.origin.as_ref().and_then(|origin| text(&origin.tool))),
    ("target", Kind::Text, |row| row.run.header.target.as_ref().and_then(text)),
    ("near_host", Kind::Text, |row| near(row).hostname.as_ref().and_then(text)),
    ("far_host", Kind::Text, |row| far(row).hostname.as_ref().and_then(text)),
    ("near_kernel", Kind::Text, |row| near(row).kernel.as_ref().and_then(text)),
    ("far_kernel", Kind::Text, |row| far(row).kernel.as_ref().and_then(text)),
    ("near_processor", Kind::Text, |row| near(row).cpu_model.as_ref().and_then(text)),
    ("far_processor", Kind::Text, |row| far(row).cpu_model.as_ref().and_then(text)),
    ("near_version", Kind::Text, |row| text(&row.run.header.tool.near_version)),
    ("far_version", Kind::Text, |row| text(&row.run.header.tool.far_version)),
    ("cell", Kind::Count, |row| count(row.outcome.cell)),
    ("transport", Kind::Text, |row| text(row.outcome.spec.transport.as_str())),
    ("pattern", Kind::Text, |row| text(row.outcome.spec.pattern.name())),
    ("direction", Kind::Text, |row| text(figures::direction(row.outcome.spec.direction))),
    ("block_bytes", Kind::Count, |row| count(row.outcome.spec.block)),
    ("mix", Kind::Text, |row| mix(&row.outcome.spec)),
    ("reply_bytes", Kind::Count, |row| row.outcome.spec.reply.and_then(count)),
    ("flows", Kind::Count, |row| count(row.outcome.spec.flows)),
    ("threads", Kind::Count, |row| row.outcome.spec.threads.and_then(count)),
    ("processes", Kind::Count, |row| count(row.outcome.spec.processes)),
    ("rate_limit_bps", Kind::Count, |row| row.outcome.spec.rate_bps.and_then(count)),
    ("near_congestion_control", Kind::Text, |row| flow(&row.trial.near)?.socket.cc.as_ref().and_then(text)),
    ("far_congestion_control", Kind::Text, |row| flow(&row.trial.far)?.socket.cc.as_ref().and_then(text)),
    ("path_mtu_bytes", Kind::Count, |row| flow(&row.trial.near)?.socket.pmtu.and_then(count)),
    ("mss_bytes", Kind::Count, |row| flow(&row.trial.near)?.socket.mss.and_then(count)),
    ("pass", Kind::Count, |row| count(row.trial.pass)),
    ("position", Kind::Count, |row| count(row.trial.position)),
    ("pass_started", Kind::Time, |row| Some(Value::Time(started(row.run, row.pass?)))),
    ("pass_ns", Kind::Count, |row| count(row.pass?.duration_ns)),
    ("duration_ns", Kind::Count, |row| row.summary.duration_ns.and_then(count)),
    ("value", Kind::Number, |row| number(row.trial.value)),
    ("unit", Kind::Text, |row| text(Headline::of(&row.outcome.spec).unit())),
    ("goodput_bps", Kind::Number, |row| number(row.summary.goodput_bps)),
    ("sender_bps", Kind::Number, |row| number(row.summary.sender_bps)),
    ("transactions_per_s", Kind::Number, |row| number(row.summary.transactions_per_s)),
    ("packets_per_s", Kind::Number, |row| number(row.summary.packets_per_s)),
    ("rtt_min_ns", Kind::Count, |row| count(rtt(row)?.min_ns)),
    ("rtt_p50_ns", Kind::Number, |row| number(row.summary.rtt_p50_ns)),
    ("rtt_mean_ns", Kind::Number, |row| number(Some(rtt(row)?.mean_ns))),
    ("rtt_p99_ns", Kind::Number, |row| number(row.summary.rtt_p99_ns)),
    ("rtt_max_ns", Kind::Count, |row| count(rtt(row)?.max_ns)),
    ("tcp_rtt_ns", Kind::Number, |row| number(row.summary.tcp_rtt_ns)),
    ("cwnd_bytes", Kind::Number, |row| number(row.summary.cwnd_bytes)),
    ("bytes_sent", Kind::Count, |row| row.summary.bytes_sent.and_then(count)),
    ("bytes_received", Kind::Count, |row| row.summary.bytes_received.and_then(count)),
    ("retransmits", Kind::Count, |row| row.summary.retransmits.and_then(count)),
    ("bytes_retransmitted", Kind::Count, |row| row.summary.bytes_retransmitted.and_then(count)),
    ("packets_sent", Kind::Count, |row| row.summary.packets_sent.and_then(count)),
    ("packets_lost", Kind::Count, |row| row.summary.packets_lost.and_then(count)),
    ("packets_reordered", Kind::Count, |row| row.summary.packets_reordered.and_then(count)),
    ("jitter_ns", Kind::Number, |row| number(row.summary.jitter_ns)),
    ("outbound_goodput_bps", Kind::Number, |row| number(row.summary.outbound.as_ref()?.goodput_bps)),
    ("return_goodput_bps", Kind::Number, |row| number(row.summary.return_trip.as_ref()?.goodput_bps)),
    ("fairness", Kind::Number, |row| number(row.summary.fairness)),
    ("near_process_cpu_ns", Kind::Count, |row| count(spent(&row.trial.near)?.process_ns)),
    ("far_process_cpu_ns", Kind::Count, |row| count(spent(&row.trial.far)?.process_ns)),
    ("near_host_cpu_ns", Kind::Count, |row| spent(&row.trial.near)?.host_ns.and_then(count)),
    ("far_host_cpu_ns", Kind::Count, |row| spent(&row.trial.far)?.host_ns.and_then(count)),
    ("near_cycles", Kind::Count, |row| spent(&row.trial.near)?.cycles.and_then(count)),
    ("far_cycles", Kind::Count, |row| spent(&row.trial.far)?.cycles.and_then(count)),
    ("setup_ns", Kind::Count, |row| count(row.pass?.near.setup_ns)),
    ("completion_ns", Kind::Count, |row| analysis::outcome::completion_ns(&row.outcome.spec, row.trial).and_then(count)),
    ("near_busy_cores", Kind::Number, |row| number(row.pass?.near.cpu.as_ref()?.busy_cores())),
    ("far_busy_cores", Kind::Number, |row| number(row.pass?.far.cpu.as_ref()?.busy_cores())),
    ("near_tests", Kind::Count, |row| row.pass?.near.tests.and_then(count)),
    ("far_tests", Kind::Count, |row| row.pass?.far.tests.and_then(count)),
    ("overlapped_by", Kind::Count, |row| count(row.pass?.overlapped_by)),
    ("stalled", Kind::Flag, |row| Some(Value::Flag(row.trial.near.stalled || row.trial.far.stalled))),
    ("cut_short", Kind::Flag, |row| Some(Value::Flag(row.trial.near.cut_short || row.trial.far.cut_short))),
    ("trial_verdicts", Kind::Text, |row| text(labels::verdicts(&row.trial.verdicts).replace(", ", " "))),
    ("outcome_verdicts", Kind::Text, |row| text(labels::verdicts(&row.outcome.summary.verdicts).replace(", ", " "))),
    ("outcome_trust", Kind::Text, |row| row.outcome.summary.trust.and_then(|trust| text(labels::trust(trust)))),
    ("outcome_limiter", Kind::Text, |row| limiter::kinds(row.outcome).and_then(text)),
    ("outcome_ceiling_bps", Kind::Number, |row| number(row.outcome.summary.ceiling.as_ref().map(|ceiling| ceiling.bound_bps))),
];

fn near<'a>(row: &Row<'a>) -> &'a Inventory {
    row.cell.map_or(&row.run.header.near, |cell| row.run.header.hosts_of(cell)[0])
}

fn far<'a>(row: &Row<'a>) -> &'a Inventory {
    row.cell.map_or(&row.run.header.far, |cell| row.run.header.hosts_of(cell)[1])
}

/// The wall-clock time of a pass.
pub(super) fn started(run: &Run, pass: &Pass) -> u64 {
    pass.started_unix_ns.unwrap_or_else(|| run.header.started_unix_ns.saturating_add(pass.started_ns))
}

fn flow(end: &EndTally) -> Option<&FlowTally> {
    end.flows.first()
}

/// The round trips of the end that measured them.
fn rtt<'a>(row: &Row<'a>) -> Option<&'a model::RttTally> {
    row.trial.near.rtt.as_ref().or(row.trial.far.rtt.as_ref())
}

fn spent(end: &EndTally) -> Option<&Spent> {
    end.spent.as_ref()
}

/// The sequence of datagram sizes as users write it; none of one size.
fn mix(spec: &Spec) -> Option<Value> {
    if spec.mix.is_empty() { None } else { text(Mix::of(&spec.mix).to_string()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sample;

    #[test]
    fn each_value_has_the_type_of_its_column() {
        for (what, runs) in sample::gallery() {
            let table = TrialRows::new(&runs);
            let head = table.head();
            let names: BTreeSet<&String> = head.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), head.len(), "{what}");
            for row in table.rows() {
                let values: Vec<Option<Value>> = table.values(&row).collect();
                assert_eq!(values.len(), head.len());
                for (value, (name, kind)) in values.iter().zip(&head) {
                    let fits = match value {
                        None => true,
                        Some(Value::Text(_)) => *kind == Kind::Text,
                        Some(Value::Count(_)) => *kind == Kind::Count,
                        Some(Value::Number(number)) => *kind == Kind::Number && number.is_finite(),
                        Some(Value::Flag(_)) => *kind == Kind::Flag,
                        Some(Value::Time(_)) => *kind == Kind::Time,
                    };
                    assert!(fits, "{what}: {name}: {value:?}");
                }
            }
        }
    }

    #[test]
    fn a_trial_has_its_own_figures() {
        let run = sample::stream();
        let runs = [run.clone()];
        let table = TrialRows::new(&runs);
        let at = |name: &str| table.head().iter().position(|(head, _)| head == name).unwrap();
        let rows: Vec<Vec<Option<Value>>> = table.rows().map(|row| table.values(&row).collect()).collect();
        assert_eq!(rows.len(), run.outcomes[0].trials.len());
        let received: u64 = run.outcomes[0].trials[3].far.bytes_received;
        assert_eq!(rows[3][at("bytes_received")], count(received));
        assert_eq!((&rows[3][at("unit")], &rows[3][at("rtt_p50_ns")]), (&text("bit/s"), &None));
    }
}
