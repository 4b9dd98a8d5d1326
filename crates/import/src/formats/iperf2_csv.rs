//! iperf 2's CSV (`-y C`): time, local address and port, remote address and port, connection, interval, bytes, bit/s; over UDP jitter
//! in ms, lost, all, percentage lost and reordered datagrams too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use model::{Count, DatagramTally, Direction, Interval, Pattern, RunKind, Spec, Stop, Verdict};

use super::ImportFormat;
use super::iperf::check_loss;
use crate::error::{Contradiction, ImportError, IperfError};
use crate::listing::{Certainty, Imported, Row, TextReading};
use crate::text::{MAX_ROWS, half_digit, lines, ns, number, whole};

/// iperf 2's CSV.
pub(super) const FORMAT: ImportFormat = ImportFormat { name: "iperf2-csv", help: "iperf 2's CSV (-y C)", detect, read };

fn detect(text: &str) -> Certainty {
    let found = lines(text).any(|(_, line)| matches!(Line::of(line), Some(Ok(_))));
    if found { Certainty::Certain } else { Certainty::No }
}

/// An address and a port, as printed.
type Address = (String, String);

/// A line of nine columns, or of fourteen.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    stamp: String,
    near: Address,
    far: Address,
    /// -1 for the sum of several.
    flow: i64,
    start_s: f64,
    end_s: f64,
    bytes: u64,
    bps: f64,
    jitter_ns: Option<f64>,
    lost: Option<u64>,
    all: Option<u64>,
    reordered: Option<u64>,
    datagrams: bool,
}

impl Line {
    fn of(line: &str) -> Option<Result<Self, ImportError>> {
        let columns: Vec<&str> = line.trim().split(',').collect();
        let [stamp, near, port, far, far_port, flow, interval, bytes, bps, more @ ..] = columns.as_slice() else {
            return None;
        };
        let stamp = &without_zone(stamp);
        let digits = stamp.get(..14).is_some_and(|stamp| stamp.bytes().all(|byte| byte.is_ascii_digit()));
        let (start, end) = interval.split_once('-')?;
        let numbered = |host: &str, port: &str| host.parse::<IpAddr>().is_ok() && port.parse::<u16>().is_ok();
        let (ports, flow) = (numbered(near, port) && numbered(far, far_port), flow.parse::<i64>());
        // A line with one of these broken is one of the CSV still.
        let shaped = [digits, ports && flow.is_ok(), number(start).is_some() && number(end).is_some()];
        (shaped.into_iter().filter(|own| *own).count() >= 2).then_some(())?;
        let read = || -> Result<Self, ImportError> {
            let (true, true, Ok(flow)) = (digits, ports, flow) else {
                return Err(IperfError::Connection.into());
            };
            if ![0, 5].contains(&more.len()) {
                return Err(IperfError::Columns(9 + more.len()).into());
            }
            let figure = |word: &str| number(word).ok_or_else(|| ImportError::word(word, "a number"));
            let (start_s, end_s, bps) = (figure(start)?, figure(end)?, figure(bps)?);
            let none = ImportError::Figure { name: "the count of bytes", what: "an integer" };
            let bytes = whole(figure(bytes)?).ok_or(none)?;
            let seconds = end_s - start_s;
            let rounding = 2.0 * half_digit(end) / seconds;
            let error = (bytes as f64 * 8.0 / seconds / bps).ln().abs();
            let coarse = !(rounding.is_finite() && rounding < 0.5);
            if seconds < 0.0 || (bytes > 0 && !coarse && error > 1.5 * rounding + 0.02) {
                return Err(Contradiction::Rate { bytes: bytes as f64, seconds, decimals: Some(1), bps }.into());
            }
            // A count that failed is printed as -1.
            let count = |index: usize| more.get(index).and_then(|word| whole(number(word)?));
            if let Some((lost, all)) = count(1).zip(count(2)) {
                check_loss((lost, all))?;
            }
            Ok(Self {
                stamp: (*stamp).to_owned(),
                near: ((*near).to_owned(), (*port).to_owned()),
                far: ((*far).to_owned(), (*far_port).to_owned()),
                flow,
                start_s,
                end_s,
                bytes,
                bps,
                jitter_ns: more.first().and_then(|ms| number(ms)).map(|ms| ms * 1e6),
                lost: count(1),
                all: count(2),
                reordered: count(4),
                datagrams: more.len() >= 5,
            })
        };
        Some(read())
    }

    /// The time of printing, in seconds from an arbitrary start; `None` for the epoch, which iperf prints for an unknown time.
    fn printed_s(&self) -> Option<u64> {
        let part = |from: usize, to: usize| self.stamp.get(from..to)?.parse::<u64>().ok();
        let day = part(0, 8).filter(|day| *day > 19_700_101)?;
        Some(((day * 24 + part(8, 10)?) * 60 + part(10, 12)?) * 60 + part(12, 14)?)
    }

    fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }
}

/// iperf 2's port.
const PORT: &str = "5001";

/// A time without its zone, with which -e begins: `+0000:20261128090010.123456`.
fn without_zone(stamp: &str) -> &str {
    let zone = stamp.split_once(':').filter(|(zone, _)| zone.len() == 5 && zone.starts_with(['+', '-']));
    zone.map_or(stamp, |(_, rest)| rest)
}

/// The fewest columns of a line that is cut.
const CUT_COLUMNS: usize = 4;

/// The lines of one connection, or of the sums of several.
type Lines<'a> = Vec<(u32, &'a str, Line)>;

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let (mut connections, mut sums): (Vec<Lines<'_>>, Lines<'_>) = Default::default();
    let mut indices: BTreeMap<(Address, Address, i64), usize> = BTreeMap::new();
    let (mut seen, mut repeated): (BTreeSet<&str>, Vec<u32>) = Default::default();
    let mut count = 0;
    for (at, line) in lines(text) {
        match Line::of(line) {
            Some(Ok(_)) if count >= MAX_ROWS => {
                reading.refuse(at, ImportError::TooMany { most: MAX_ROWS, what: "lines" });
                break;
            }
            // A line has the ports of its connection, so that the same one again is its copy.
            Some(Ok(_)) if !seen.insert(line.trim()) => repeated.push(at),
            Some(Ok(figures)) => {
                count += 1;
                if figures.flow == -1 {
                    sums.push((at, line, figures));
                    continue;
                }
                let key = (figures.near.clone(), figures.far.clone(), figures.flow);
                let index = *indices.entry(key).or_insert(connections.len());
                if index == connections.len() {
                    connections.push(Vec::new());
                }
                connections[index].push((at, line, figures));
            }
            Some(Err(reason)) => reading.refuse_text(at, line, reason),
            // A line that is cut; others are not of the CSV.
            None if line.split(',').count() >= CUT_COLUMNS && count > 0 => {
                reading.refuse_text(at, line, IperfError::NotCsv);
            }
            None => {}
        }
    }
    let mut groups: Vec<Vec<Lines<'_>>> = Vec::new();
    for connection in connections {
        match groups.last_mut() {
            Some(group) if belongs(group, &connection) => group.push(connection),
            _ => groups.push(vec![connection]),
        }
    }
    let accepted = accepted(&groups);
    let starts: Vec<u32> = groups.iter().map(|group| group[0][0].0).collect();
    for (index, group) in groups.into_iter().enumerate() {
        let until = starts.get(index + 1).copied().unwrap_or(u32::MAX);
        let own = sums.iter().filter(|(at, ..)| (starts[index]..until).contains(at)).cloned().collect();
        close(&group, own, &accepted, &mut reading);
    }
    if let (Some(last), false) = (reading.imported.last_mut(), repeated.is_empty()) {
        let lines = repeated.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        last.copies.push(format!("copies of earlier lines, counted once: {lines}"));
    }
    reading
}

/// Whether a connection is one of these: it ran at the same time, and has a number of its own, as the next run of iperf has not, or it is
/// the return direction of one of them.
fn belongs(group: &[Lines<'_>], connection: &Lines<'_>) -> bool {
    let numbered =
        |other: &Lines<'_>| other.first().map(|(.., line)| line.flow) != connection.first().map(|(.., line)| line.flow);
    // Without times a test in both directions (-d) looks like one direction after the other (-r).
    let either = |other: &Lines<'_>| {
        let called =
            |one: &Lines<'_>, other: &Lines<'_>| head(one).zip(head(other)).is_some_and(|(a, b)| calls_back(a, b));
        (called(other, connection) || called(connection, other))
            && other.iter().chain(connection).any(|(.., line)| line.printed_s().is_none())
    };
    group.iter().any(|other| returns(other, connection))
        || group.iter().all(numbered)
            && !group.iter().any(either)
            && group.iter().any(|other| together(other, connection))
}

fn head<'l>(lines: &'l Lines<'_>) -> Option<&'l Line> {
    lines.first().map(|(.., line)| line)
}

/// Whether this end accepted the second connection, after the other end had accepted the first (-d, -r).
fn calls_back(first: &Line, second: &Line) -> bool {
    let ports = [&first.far.1, &second.near.1, &first.near.1, &second.far.1];
    [&first.near.0, &first.far.0] == [&second.near.0, &second.far.0] && ports[0] == ports[1] && ports[2] != ports[3]
}

/// The connections that this end accepted, by their addresses: on iperf's port, on one that others have in common, or on that to which it
/// connected itself.
fn accepted(groups: &[Vec<Lines<'_>>]) -> BTreeSet<(Address, Address)> {
    let all: Vec<&Line> = groups.iter().flatten().filter_map(head).collect();
    let mut peers: BTreeMap<&Address, BTreeSet<&Address>> = BTreeMap::new();
    for line in &all {
        peers.entry(&line.near).or_default().insert(&line.far);
    }
    let called: BTreeSet<[&String; 3]> = all.iter().map(|line| [&line.near.0, &line.far.0, &line.far.1]).collect();
    let is_accepted = |line: &&&Line| {
        let own = line.near.1 == PORT && line.far.1 != PORT;
        let common = peers.get(&line.near).is_some_and(|peers| peers.len() > 1);
        own || common || called.contains(&[&line.near.0, &line.far.0, &line.near.1])
    };
    all.iter().filter(is_accepted).map(|line| (line.near.clone(), line.far.clone())).collect()
}

/// Whether the second is the return direction of the first, on the same connection (--full-duplex). The other end's address may be missing.
fn returns(first: &Lines<'_>, second: &Lines<'_>) -> bool {
    let (Some((.., first)), Some((.., second))) = (first.first(), second.first()) else { return false };
    let unknown = second.far.1 == "0" && matches!(second.far.0.as_str(), "::" | "0.0.0.0");
    second.near == first.far && (second.far == first.near || unknown)
}

/// A sum is of the whole test if it is at least this share of its longest connection.
const WHOLE: f64 = 0.9;

/// Whether a sum of bytes is another than what its connections add up to.
fn is_other(sum: u64, own: u64) -> bool {
    sum.abs_diff(own) as f64 > 0.02 * sum.max(own) as f64
}

/// Whether two connections ran at the same time: their lines are interleaved, or were printed within half of their duration. Without the
/// time of printing their intervals must be about the same.
fn together(first: &Lines<'_>, second: &Lines<'_>) -> bool {
    let (Some(last), Some(begin)) = (first.last(), second.first()) else { return false };
    if begin.0 < last.0 {
        return true;
    }
    let half = 0.5 * last.2.end_s.min(begin.2.end_s);
    match (last.2.printed_s(), begin.2.printed_s()) {
        (Some(first), Some(second)) => (second.abs_diff(first) as f64) < half,
        (None, None) => last.2.start_s == begin.2.start_s && (last.2.end_s - begin.2.end_s).abs() < half,
        _ => false,
    }
}

/// The line with the longest interval, if it covers the others: it is the total.
fn longest<'a>(lines: &Lines<'a>) -> Option<(u32, &'a str, Line)> {
    let longest = lines.iter().max_by(|a, b| a.2.seconds().total_cmp(&b.2.seconds()))?;
    let covers = |one: &Line| longest.2.start_s <= one.start_s && one.start_s < longest.2.end_s;
    lines.iter().all(|(.., one)| covers(one) || *one == longest.2).then(|| longest.clone())
}

fn close(group: &[Lines<'_>], sums: Lines<'_>, accepted: &BTreeSet<(Address, Address)>, reading: &mut TextReading) {
    if let Some((at, ..)) = group.iter().filter(|lines| longest(lines).is_none()).find_map(|lines| lines.last()) {
        return reading.refuse(*at, IperfError::NoTotal(None));
    }
    let is_back = |one: &Lines<'_>| {
        let called = |other: &Lines<'_>| head(other).zip(head(one)).is_some_and(|(first, one)| calls_back(first, one));
        group.iter().any(|other| returns(other, one) && is_before(other, one) || called(other))
    };
    let (mut back, group): (Vec<Lines<'_>>, Vec<Lines<'_>>) = group.iter().cloned().partition(is_back);
    let reports = match reports(&group, &back) {
        Ok(reports) => reports,
        Err(reason) => {
            let at = back.first().and_then(|lines| lines.first()).map_or(0, |(at, ..)| *at);
            return reading.refuse(at, reason);
        }
    };
    if !reports.is_empty() {
        back.clear();
    }
    if !back.is_empty() {
        reading.imported.extend(both(&group, &back));
        return;
    }
    let totals: Vec<_> = group.iter().filter_map(longest).collect();
    let flows = totals.len();
    let length = totals.iter().map(|(.., line)| line.seconds()).fold(0.0, f64::max);
    let summed = longest(&sums).filter(|(.., sum)| sum.seconds() >= WHOLE * length);
    let own = totals.iter().map(|(.., line)| line.bytes).fold(0, u64::saturating_add);
    if let Some((at, text, sum)) = summed.as_ref().filter(|(.., sum)| is_other(sum.bytes, own)) {
        let (sum, connections) = (sum.bytes as f64, own as f64);
        reading.refuse_text(*at, text, Contradiction::Sum { name: "sum", sum, connections });
        return;
    }
    let Some((at, text, total)) = summed.clone().or_else(|| totals.first().cloned()) else { return };
    let all: Vec<&Line> =
        summed.iter().chain(if summed.is_some() { &[][..] } else { &totals }).map(|(.., line)| line).collect();
    let bytes = all.iter().map(|line| line.bytes).fold(0, u64::saturating_add);
    let bps = all.iter().map(|line| line.bps).sum();
    let receives = group.iter().filter_map(head).all(|line| accepted.contains(&(line.near.clone(), line.far.clone())));
    // The series of several connections is in the sums.
    let series = if flows > 1 { sums } else { group.into_iter().next().unwrap_or_default() };
    let transport = if total.datagrams || !reports.is_empty() { "udp" } else { "tcp" };
    let mut spec = Spec { stop: Stop::TimeNs(ns(total.seconds()).max(1)), ..Spec::new(transport, Pattern::Stream) };
    spec.flows = u32::try_from(flows).unwrap_or(u32::MAX).clamp(1, Spec::MAX_FLOWS);
    spec.direction = if receives { Direction::Reverse } else { Direction::Send };
    let mut row = Row::new(spec, bps, at, text);
    let length = ns(total.seconds());
    row.figure("bytes", bytes as f64);
    if receives {
        row.remarks
            .push("the CSV does not say which end printed it: it has a server's port, so it is the receiver's".into());
        row.trial.near.report(Count::BytesReceived, bytes);
        row.trial.near.report(Count::ReceivingNs, length);
        row.figure("receiver_rate_bps", bps);
    } else {
        row.trial.near.report(Count::BytesSent, bytes);
        row.trial.near.report(Count::SendingNs, length);
        row.figure("sender_rate_bps", bps);
    }
    if reports.is_empty() && !receives {
        row.remarks.push("the CSV does not say which end printed it: it is read as the sender's".into());
    } else if !reports.is_empty() {
        let rate = reports.iter().map(|line| line.bps).sum::<f64>();
        row.trial.value = Some(rate);
        row.figure("receiver_rate_bps", rate);
        let received = reports.iter().map(|line| line.bytes).fold(0, u64::saturating_add);
        row.trial.far.report(Count::BytesReceived, received);
        let longest = reports.iter().map(|line| ns(line.seconds())).max();
        longest.into_iter().for_each(|ns| row.trial.far.report(Count::ReceivingNs, ns));
    }
    let counted: Vec<&Line> = if reports.is_empty() { all } else { reports.iter().collect() };
    if let Some([lost, all, reordered]) = datagrams(&counted) {
        let (near, far) = (&mut row.trial.near, &mut row.trial.far);
        let (sender, receiver) = if receives { (far, near) } else { (near, far) };
        sender.datagrams = Some(DatagramTally { sent: all, ..DatagramTally::default() });
        let received = all.saturating_sub(lost);
        receiver.datagrams = Some(DatagramTally { received, reordered, ..DatagramTally::default() });
        row.figure("lost_packets", lost as f64);
        row.figure("packets", all as f64);
        if lost > 0 {
            row.flag(Verdict::Loss, format!("{lost} of {all} datagrams were lost"));
        }
    }
    if let Some(jitter) = counted.iter().filter_map(|line| line.jitter_ns).reduce(f64::max) {
        row.figure("jitter_ns", jitter);
    }
    let parts = series.iter().map(|(.., line)| line).filter(|line| **line != total);
    row.trial.near.intervals = parts
        .map(|line| Interval {
            start_ns: ns(line.start_s),
            end_ns: ns(line.end_s),
            bytes_sent: if receives { 0 } else { line.bytes },
            bytes_received: if receives { line.bytes } else { 0 },
            ..Interval::default()
        })
        .collect();
    reading.imported.push(measurement(&total, row));
}

/// Datagrams lost, all, and reordered, over all lines; `None` unless each has them.
fn datagrams(lines: &[&Line]) -> Option<[u64; 3]> {
    let of = |line: &&Line| Some([line.lost?, line.all?, line.reordered.unwrap_or(0)]);
    let all = lines.iter().map(of).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())?;
    Some(std::array::from_fn(|at| all.iter().map(|counts| counts[at]).fold(0, u64::saturating_add)))
}

/// A client's copy of its server's reports over UDP: lines of a receiver from the other end, which count all that the client sent. Without
/// one of each connection there are none.
///
/// # Errors
/// A receiver's lines that are of both kinds.
fn reports(group: &[Lines<'_>], back: &[Lines<'_>]) -> Result<Vec<Line>, IperfError> {
    let is_report = |one: &Lines<'_>| {
        let Some((.., report)) = longest(one).filter(|(.., line)| line.datagrams) else { return false };
        let sender = group.iter().filter(|other| returns(other, one)).find_map(longest);
        let sent = sender.filter(|(.., line)| !line.datagrams).map(|(.., line)| line.bytes);
        let arrived = report.all.zip(report.lost).map(|(all, lost)| (all, all.saturating_sub(lost)));
        sent.zip(arrived).is_some_and(|(sent, (all, arrived))| {
            // The size of a datagram is that of those which arrived.
            let counted = u128::from(report.bytes) * u128::from(all);
            let own = u128::from(sent) * u128::from(arrived);
            counted.abs_diff(own) <= own / 50 && (arrived > 0 || report.bytes == 0)
        })
    };
    let all: Vec<Line> = back.iter().filter(|one| is_report(one)).filter_map(longest).map(|(.., line)| line).collect();
    match all.len() {
        0 => Ok(Vec::new()),
        some if some == back.len() && some == group.len() => Ok(all),
        some => Err(IperfError::Reports { reports: some, lines: back.len(), senders: group.len() }),
    }
}

fn measurement(total: &Line, row: Row) -> Imported {
    Imported {
        tool: "iperf".into(),
        version: Some("2.x".into()),
        by_server: row.spec.direction == Direction::Reverse,
        kind: RunKind::Stream,
        target: Some(total.far.0.clone()),
        rows: vec![row],
        assumed: vec!["block"],
        notes: vec![format!("printed at {} by the clock of that host, in an unknown time zone", total.stamp)],
        ..Imported::default()
    }
}

fn is_before(first: &Lines<'_>, second: &Lines<'_>) -> bool {
    first.first().map(|(at, ..)| *at) < second.first().map(|(at, ..)| *at)
}

/// Both directions over the same connections: the host that printed it sent on the first ones.
fn both(outbound: &[Lines<'_>], back: &[Lines<'_>]) -> Option<Imported> {
    let totals = |of: &[Lines<'_>]| -> Vec<Line> { of.iter().filter_map(longest).map(|(.., line)| line).collect() };
    let [there, here] = [totals(outbound), totals(back)];
    let (at, text, first) = outbound.iter().find_map(longest)?;
    let bps = |of: &[Line]| of.iter().map(|line| line.bps).sum::<f64>();
    let span = |of: &[Line]| of.iter().map(|line| ns(line.seconds())).max().unwrap_or(0);
    let bytes = |of: &[Line]| of.iter().map(|line| line.bytes).fold(0, u64::saturating_add);
    let transport = if first.datagrams { "udp" } else { "tcp" };
    let mut spec = Spec { direction: Direction::Both, ..Spec::new(transport, Pattern::Stream) };
    spec.stop = Stop::TimeNs(span(&there).max(span(&here)).max(1));
    spec.flows = u32::try_from(there.len()).unwrap_or(u32::MAX).clamp(1, Spec::MAX_FLOWS);
    let mut row = Row::new(spec, bps(&there) + bps(&here), at, text);
    let near = &mut row.trial.near;
    near.report(Count::BytesSent, bytes(&there));
    near.report(Count::SendingNs, span(&there));
    near.report(Count::BytesReceived, bytes(&here));
    near.report(Count::ReceivingNs, span(&here));
    row.figure("outbound_sender_rate_bps", bps(&there));
    row.figure("reverse_receiver_rate_bps", bps(&here));
    row.carried(true, bps(&there));
    row.carried(false, bps(&here));
    row.remarks.push("the outbound rate is the sender's, not the receiver's".into());
    if outbound.iter().chain(back).any(|lines| lines.len() > 1) {
        row.remarks.push("the intervals of both directions are not imported".into());
    }
    Some(measurement(&first, row))
}
