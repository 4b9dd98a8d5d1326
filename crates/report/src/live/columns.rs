//! The columns of live lines.

use model::transport::Framing;
use model::{Spec, units};
use text::{Rate, Said, Spelling, Text, Time};

use super::counts::Change;

/// What identifies a line.
#[derive(Debug, Clone, Default)]
pub(super) struct Label {
    /// End of the line's time, s.
    pub(super) time: f64,
    /// The trial, from 1, if the lines have that column.
    pub(super) trial: Option<u32>,
    /// The flow, or `all`, if they have that one.
    pub(super) flow: Option<String>,
    /// The direction, if they have that one.
    pub(super) direction: Option<&'static str>,
}

type Value = fn(&Change) -> Option<Text>;

/// A title, a width and a value.
type Column = (&'static str, usize, Value);

const GOODPUT: Column = ("goodput", 13, |change| change.rate().map(|bps| Rate(bps).say()));
/// Another program counts what it received only at the end.
const SENT: Column = ("sent", 13, |change| change.rate().map(|bps| Rate(bps).say()));
const TRANSACTIONS: Column = ("transactions/s", 14, |change| {
    (change.seconds > 0.0).then(|| units::count(change.transactions / change.seconds).into())
});
const MEAN_RTT: Column = ("mean RTT", 9, |change| {
    (change.transactions > 0.0).then(|| Time(change.seconds * 1e9 / change.transactions).say())
});
const RETRANSMITS: Column = ("retransmits", 11, |change| Some(change.retransmits?.to_string().into()));
const RTT: Column = ("RTT", 9, |change| change.rtt_ns.map(|ns| Time(ns).say()));
const CWND: Column = ("cwnd", 9, |change| change.cwnd_bytes.map(|bytes| units::amount(bytes as f64).into()));
const LOSS: Column = ("lost", 16, |change| {
    let [numbers, received] = change.datagrams?;
    // What comes out of order arrives in a later second.
    Some(crate::labels::lost(numbers.saturating_sub(received), Some(numbers)).into())
});
const JITTER: Column = ("jitter", 9, |change| change.jitter_ns.map(|ns| Time(ns).say()));
const DATAGRAMS: Column = ("datagrams", 9, |change| Some(change.datagrams?[1].to_string().into()));

const TCP: &[Column] = &[GOODPUT, RETRANSMITS, RTT, CWND];
const TCP_SENT: &[Column] = &[SENT, RETRANSMITS, RTT, CWND];
const UDP: &[Column] = &[GOODPUT, LOSS, JITTER, DATAGRAMS];
const OTHER: &[Column] = &[GOODPUT];
const TCP_TRIPS: &[Column] = &[TRANSACTIONS, MEAN_RTT, RETRANSMITS];
const TRIPS: &[Column] = &[TRANSACTIONS, MEAN_RTT];

/// The columns of all groups together.
pub(super) fn of_groups(over_tcp: bool) -> &'static [Column] {
    if over_tcp { &[GOODPUT, RETRANSMITS] } else { OTHER }
}

/// The columns of a measurement. `sent`: the receivers are another program's.
pub(super) fn columns(spec: &Spec, sent: bool) -> &'static [Column] {
    let datagrams = spec.transport_facts().is_some_and(|facts| facts.framing == Some(Framing::Udp));
    match (spec.is_stream(), spec.is_over_tcp()) {
        (true, true) if sent => TCP_SENT,
        (true, true) => TCP,
        (true, false) if datagrams && !sent => UDP,
        (true, false) => OTHER,
        (false, true) => TCP_TRIPS,
        (false, false) => TRIPS,
    }
}

/// The heads of the columns.
pub(super) fn head(columns: &[Column], label: &Label) -> String {
    let mut line = format!("{:>9}", "time");
    for (there, title, width) in [
        (label.trial.is_some(), "trial", 7),
        (label.flow.is_some(), "flow", 6),
        (label.direction.is_some(), "direction", 11),
    ] {
        if there {
            line.push_str(&format!("{title:>width$}"));
        }
    }
    for (title, width, _) in columns {
        line.push_str(&format!("  {title:>width$}"));
    }
    line
}

/// A line; `note` stands behind it.
pub(super) fn line(columns: &[Column], label: &Label, change: &Change, note: &str, spelling: Spelling) -> String {
    let mut line = format!("{:>7.1} s", label.time);
    if let Some(trial) = label.trial {
        line.push_str(&format!("{trial:>7}"));
    }
    if let Some(flow) = &label.flow {
        line.push_str(&format!("{flow:>6}"));
    }
    if let Some(direction) = label.direction {
        line.push_str(&format!("{direction:>11}"));
    }
    for (_, width, value) in columns {
        line.push_str(&format!(
            "  {:>width$}",
            value(change).map_or_else(|| "-".to_owned(), |value| value.shown(spelling))
        ));
    }
    if !note.is_empty() {
        line.push_str(&format!("  {note}"));
    }
    line
}
