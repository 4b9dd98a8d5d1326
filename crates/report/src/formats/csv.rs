//! One line for each outcome, for spreadsheets and scripts. Quoting and CR LF line ends follow RFC 4180.

use std::borrow::Cow;

use model::{EndCost, EndOptions, OneWay, Outcome, Run, Spec, Stop, Summary};

use super::table::level_names;
use crate::view::stem;
use crate::{Piece, ReportError, View, figures, labels};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("csv")?;
    let mut text = String::new();
    let mut levels: Vec<String> = Vec::new();
    for name in view.runs.iter().flat_map(level_names) {
        if !levels.contains(&name) {
            levels.push(name);
        }
    }
    let head: Vec<String> = COLUMNS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .chain(end_columns())
        .chain(levels.iter().map(|name| format!("level_{name}")))
        .collect();
    push_row(&mut text, head.iter().map(String::as_str));
    for run in view.runs {
        for outcome in &run.outcomes {
            let fixed = COLUMNS.iter().map(|(_, value)| value(run, outcome).unwrap_or_default());
            let cell = run.header.cells.iter().find(|cell| cell.id == outcome.cell);
            let level = |name: &String| cell.and_then(|cell| cell.levels.get(name)).cloned().unwrap_or_default();
            let cells: Vec<String> = fixed.chain(end_values(&outcome.spec)).chain(levels.iter().map(level)).collect();
            push_row(&mut text, cells.iter().map(String::as_str));
        }
    }
    Ok(vec![Piece::new(stem(view.runs), "csv", text.into_bytes())])
}

type Column = (&'static str, fn(&Run, &Outcome) -> Option<String>);

/// The columns before those of the ends' options. Null is an empty cell.
#[rustfmt::skip]
const COLUMNS: &[Column] = &[
    ("run", |run, _| Some(run.header.id.clone())),
    ("name", |run, _| run.header.name.clone()),
    ("kind", |run, _| Some(run.header.kind.clone())),
    ("started", |run, _| Some(labels::when_rfc3339(run.header.started_unix_ns))),
    ("target", |run, _| run.header.target.clone()),
    ("near_host", |run, _| run.header.near.hostname.clone()),
    ("far_host", |run, _| run.header.far.hostname.clone()),
    ("cell", |_, o| Some(o.cell.to_string())),
    ("transport", |_, o| Some(o.spec.transport.to_string())),
    ("pattern", |_, o| Some(o.spec.pattern.to_string())),
    ("block", |_, o| Some(o.spec.block.to_string())),
    ("reply", |_, o| o.spec.reply.map(|reply| reply.to_string())),
    ("flows", |_, o| Some(o.spec.flows.to_string())),
    ("threads", |_, o| o.spec.threads.map(|threads| threads.to_string())),
    ("processes", |_, o| Some(o.spec.processes.to_string())),
    ("direction", |_, o| Some(figures::direction(o.spec.direction).to_owned())),
    ("stop", |_, o| Some(stop(&o.spec).0.to_owned())),
    ("stop_value", |_, o| Some(stop(&o.spec).1.to_string())),
    ("warmup_ns", |_, o| Some(o.spec.warmup_ns.to_string())),
    ("rate_bps", |_, o| o.spec.rate_bps.map(|rate| rate.to_string())),
    ("io", |_, o| name_of(o.spec.io)),
    ("strategy", |_, o| name_of(o.spec.strategy)),
    ("delayed_reads", |_, o| o.spec.delayed_reads.then(|| "true".to_owned())),
    ("delayed_read_count", |_, o| labels::delayed_reads(o).map(|count| count.to_string())),
    ("overlap_close", |_, o| o.spec.overlap_close.then(|| "true".to_owned())),
    ("family", |_, o| name_of(o.spec.family)),
    ("goodput_bps", |_, o| number(o.summary.goodput_bps)),
    ("sender_bps", |_, o| number(o.summary.sender_bps)),
    ("netpipe_bps", |_, o| number(o.summary.netpipe_bps)),
    ("rtt_p50_ns", |_, o| number(o.summary.rtt_p50_ns)),
    ("rtt_p99_ns", |_, o| number(o.summary.rtt_p99_ns)),
    ("transactions_per_s", |_, o| number(o.summary.transactions_per_s)),
    ("packets_per_s", |_, o| number(o.summary.packets_per_s)),
    ("packets_lost", |_, o| o.summary.packets_lost.map(|lost| lost.to_string())),
    ("packets_sent", |_, o| o.summary.packets_sent.map(|sent| sent.to_string())),
    ("packets_reordered", |_, o| o.summary.packets_reordered.map(|count| count.to_string())),
    ("packets_duplicated", |_, o| o.summary.packets_duplicated.map(|count| count.to_string())),
    ("jitter_ns", |_, o| number(o.summary.jitter_ns)),
    ("retransmits", |_, o| o.summary.retransmits.map(|count| count.to_string())),
    ("bytes_retransmitted", |_, o| o.summary.bytes_retransmitted.map(|count| count.to_string())),
    ("tcp_rtt_ns", |_, o| number(o.summary.tcp_rtt_ns)),
    ("cwnd_bytes", |_, o| number(o.summary.cwnd_bytes)),
    ("bytes_sent", |_, o| o.summary.bytes_sent.map(|count| count.to_string())),
    ("bytes_received", |_, o| o.summary.bytes_received.map(|count| count.to_string())),
    ("calls_sent", |_, o| o.summary.calls_sent.map(|count| count.to_string())),
    ("calls_received", |_, o| o.summary.calls_received.map(|count| count.to_string())),
    ("duration_ns", |_, o| o.summary.duration_ns.map(|count| count.to_string())),
    ("trials", |_, o| Some(o.summary.trials.to_string())),
    ("ci95_low", |_, o| number(o.summary.ci95_low)),
    ("ci95_high", |_, o| number(o.summary.ci95_high)),
    ("estimate", |_, o| o.estimate.as_ref().map(|e| e.statistic.clone())),
    ("estimate_unit", |_, o| o.estimate.as_ref().map(|e| e.unit.clone())),
    ("estimate_value", |_, o| number(o.estimate.as_ref().map(|e| e.value))),
    ("estimate_low", |_, o| number(o.estimate.as_ref().and_then(|e| e.low))),
    ("estimate_high", |_, o| number(o.estimate.as_ref().and_then(|e| e.high))),
    ("estimate_confidence", |_, o| number(o.estimate.as_ref().map(|e| e.confidence))),
    ("estimate_method", |_, o| o.estimate.as_ref().map(|e| e.method.clone())),
    ("estimate_n", |_, o| o.estimate.as_ref().map(|e| e.n.to_string())),
    ("ceiling_bps", |_, o| number(o.summary.ceiling.as_ref().map(|ceiling| ceiling.bound_bps))),
    ("ceiling_reason", |_, o| o.summary.ceiling.as_ref().map(|ceiling| ceiling.reason.clone())),
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
    ("trust", |_, o| o.summary.trust.map(|trust| labels::trust(trust).to_owned())),
    ("within_pass_low", |_, o| number(o.summary.within_pass.as_ref().and_then(|e| e.low))),
    ("within_pass_high", |_, o| number(o.summary.within_pass.as_ref().and_then(|e| e.high))),
    ("outbound_p50_ns", |_, o| one_way(o, |one_way| Some(one_way.outbound.p50_ns))),
    ("outbound_p99_ns", |_, o| one_way(o, |one_way| one_way.outbound.p99_ns)),
    ("return_p50_ns", |_, o| one_way(o, |one_way| Some(one_way.return_trip.p50_ns))),
    ("return_p99_ns", |_, o| one_way(o, |one_way| one_way.return_trip.p99_ns)),
    ("lost_outbound", |_, o| one_way(o, |one_way| one_way.lost_outbound)),
    ("lost_return", |_, o| one_way(o, |one_way| one_way.lost_return)),
    ("clock_error_ns", |_, o| one_way(o, |one_way| one_way.clock_error_ns)),
    ("verdicts", |_, Outcome { summary: Summary { verdicts, .. }, .. }| Some(labels::verdicts(verdicts).replace(", ", " "))),
];

/// A figure of the one-way delays.
fn one_way<T: ToString>(outcome: &Outcome, figure: fn(&OneWay) -> Option<T>) -> Option<String> {
    figure(outcome.summary.one_way.as_ref()?).map(|figure| figure.to_string())
}

/// A cost at the near end.
fn near(outcome: &Outcome, figure: fn(&EndCost) -> Option<f64>) -> Option<String> {
    number(figure(&outcome.summary.cost.as_ref()?.near))
}

/// A cost at the far end.
fn far(outcome: &Outcome, figure: fn(&EndCost) -> Option<f64>) -> Option<String> {
    number(figure(outcome.summary.cost.as_ref()?.far.as_ref()?))
}

/// The options of one end, by their keys in the JSON document. A test compares the list with the type.
const END_KEYS: &[&str] = &[
    "sndbuf",
    "rcvbuf",
    "nodelay",
    "cork",
    "cc",
    "mss",
    "dscp",
    "data_addr",
    "device",
    "port",
    "max_pacing_bps",
    "notsent_lowat",
    "keepalive_s",
    "user_timeout_ms",
    "busy_poll_us",
    "drain_bps",
    "pin",
    "cc_rules",
];

fn end_columns() -> impl Iterator<Item = String> {
    ["near", "far"].into_iter().flat_map(|end| END_KEYS.iter().map(move |key| format!("{end}_{key}")))
}

fn end_values(spec: &Spec) -> impl Iterator<Item = String> {
    [&spec.near, &spec.far].into_iter().flat_map(|end: &EndOptions| {
        let options = serde_json::to_value(end).unwrap_or_default();
        END_KEYS.iter().map(move |key| match options.get(key) {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(serde_json::Value::Array(list)) => list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Some(other) => other.to_string(),
        })
    })
}

fn stop(spec: &Spec) -> (&'static str, u64) {
    match spec.stop {
        Stop::TimeNs(ns) => ("time-ns", ns),
        Stop::Bytes(bytes) => ("bytes", bytes),
        Stop::Blocks(blocks) => ("blocks", blocks),
        Stop::Transactions(count) => ("transactions", count),
        Stop::AboutNs(ns) => ("about-ns", ns),
    }
}

fn name_of<T: serde::Serialize>(value: T) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// The shortest decimal that reads back as the same number; `None` for values that are not finite.
fn number(value: Option<f64>) -> Option<String> {
    value.filter(|value| value.is_finite()).map(|value| value.to_string())
}

fn push_row<'a>(text: &mut String, cells: impl Iterator<Item = &'a str>) {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            text.push(',');
        }
        let cell = guarded(cell);
        if cell.contains([',', '"', '\n', '\r']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(&cell);
        }
    }
    text.push_str("\r\n");
}

/// Text that a spreadsheet would run as a formula, with an apostrophe in front: names come from other hosts.
fn guarded(cell: &str) -> Cow<'_, str> {
    let acts = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    if acts { format!("'{cell}").into() } else { cell.into() }
}

#[cfg(test)]
mod tests {
    use model::StackRule;

    use super::*;
    use crate::sample;

    /// A strict reader of RFC 4180, independent of the writer.
    fn parse(text: &str) -> Vec<Vec<String>> {
        let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
        let mut chars = text.chars().peekable();
        let mut quoted = false;
        while let Some(c) = chars.next() {
            match (quoted, c) {
                (true, '"') if chars.peek() == Some(&'"') => cell.push(chars.next().unwrap()),
                (true, '"') => quoted = false,
                (true, _) => cell.push(c),
                (false, '"') => {
                    assert!(cell.is_empty(), "a quote within a bare cell");
                    quoted = true;
                }
                (false, ',') => row.push(std::mem::take(&mut cell)),
                (false, '\r') => {
                    assert_eq!(chars.next(), Some('\n'));
                    row.push(std::mem::take(&mut cell));
                    rows.push(std::mem::take(&mut row));
                }
                (false, _) => cell.push(c),
            }
        }
        assert!(!quoted && row.is_empty(), "the last line ends");
        rows
    }

    #[test]
    fn cells_read_back() {
        let mut run = sample::hostile();
        run.header.name = Some("a \"quoted\",\r\nname".into());
        run.outcomes[0].spec.far.pin = vec![2, 3];
        run.outcomes[0].spec.near.cc = Some("bbr".into());
        let pieces = render(&View::new(std::slice::from_ref(&run))).unwrap();
        let rows = parse(std::str::from_utf8(&pieces[0].bytes).unwrap());
        assert_eq!(rows.len(), 1 + run.outcomes.len());
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
        let cell = |row: usize, name: &str| rows[row][rows[0].iter().position(|head| head == name).unwrap()].as_str();
        assert_eq!(cell(1, "name"), "a \"quoted\",\r\nname");
        assert_eq!((cell(1, "far_pin"), cell(1, "near_cc"), cell(1, "far_cc")), ("2 3", "bbr", ""));
    }

    #[test]
    fn text_is_no_formula() {
        for formula in ["=HYPERLINK(\"http://192.0.2.1\")", "+1+1", "-cmd|' /C calc'!A0", "@SUM(A1)", "\tx", "\rx"] {
            assert_eq!(guarded(formula), format!("'{formula}"));
        }
        for plain in ["", "a=b", "-1.5e-3", "+3", "b.example:6280"] {
            assert_eq!(guarded(plain), plain);
        }
        let mut run = sample::stream();
        run.header.name = Some("=1+1".into());
        let pieces = render(&View::new(std::slice::from_ref(&run))).unwrap();
        assert!(std::str::from_utf8(&pieces[0].bytes).unwrap().contains(",'=1+1,"));
    }

    #[test]
    fn numbers_read_back_exactly() {
        let run = sample::stream();
        let pieces = render(&View::new(std::slice::from_ref(&run))).unwrap();
        let rows = parse(std::str::from_utf8(&pieces[0].bytes).unwrap());
        let at = rows[0].iter().position(|head| head == "goodput_bps").unwrap();
        assert_eq!(rows[1][at].parse::<f64>().ok(), run.outcomes[0].summary.goodput_bps);
    }

    #[test]
    fn ceiling_and_cost_have_columns_and_unmeasured_cells_are_empty() {
        let run = sample::pair();
        let pieces = render(&View::new(std::slice::from_ref(&run))).unwrap();
        let rows = parse(std::str::from_utf8(&pieces[0].bytes).unwrap());
        let cell = |name: &str| rows[1][rows[0].iter().position(|head| head == name).unwrap()].as_str();
        assert_eq!((cell("ceiling_bps"), cell("near_process_s_per_gb")), ("9414800000", "0.21"));
        assert_eq!((cell("far_cycles_per_byte"), cell("far_host_ns_per_transaction")), ("", ""));
    }

    #[test]
    fn every_option_of_an_end_has_its_column() {
        let all = EndOptions {
            sndbuf: Some(1),
            rcvbuf: Some(1),
            nodelay: Some(true),
            cork: Some(true),
            cc: Some("reno".into()),
            cc_rules: vec![StackRule {
                name: "x".into(),
                source: "::/0".into(),
                source_port: 0,
                destination: "::/0".into(),
                destination_port: 0,
                sndbuf_bytes: 0,
                rcvbuf_bytes: 0,
                increase_permille: 1_000,
                decrease_permille: 500,
                max_ssthresh: 0,
                table: true,
                ignore_local_queue: false,
                divide: false,
            }],
            mss: Some(1),
            dscp: Some(1),
            data_addr: Some("127.0.0.1".parse().unwrap()),
            device: Some("lo".into()),
            port: Some(1),
            max_pacing_bps: Some(1),
            notsent_lowat: Some(1),
            keepalive_s: Some(1),
            user_timeout_ms: Some(1),
            busy_poll_us: Some(1),
            drain_bps: Some(1),
            pin: vec![1],
        };
        let document = serde_json::to_value(all).unwrap();
        let mut keys: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
        let mut listed = END_KEYS.to_vec();
        keys.sort_unstable();
        listed.sort_unstable();
        assert_eq!(keys, listed);
    }
}
