//! iperf3's text, of a client and of a server: interval lines, then a summary whose lines end with `sender` or `receiver`.
//!
//! Before 3.2 the summary of a UDP test has neither word; it is the last line with a loss, and its bytes and rate are the sender's.

use std::collections::BTreeSet;

use model::{Count, DatagramTally, Direction, Interval, Spec, Stop, Verdict};

use super::Format;
use super::iperf::{COUNTER_LIMIT, Line, Who, out_of_order};
use crate::listing::{Confidence, Imported, Reading, Row, unless_reported};
use crate::text::{MAX_ROWS, block, lines, ns, number};

/// iperf3's text.
pub(super) const FORMAT: Format =
    Format { name: "iperf3", help: "iperf3's text, of a client or of a server", detect, read };

fn detect(text: &str) -> Confidence {
    let prefix = Prefix::of(text);
    let mut bare = lines(text).map(|(_, line)| prefix.bare(line));
    if bare.any(|line| peer(line).is_some()) && lines(text).any(|(_, line)| Line::of(prefix.bare(line)).is_some()) {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

/// What stands before each line: a title (-T), a time (--timestamps), or nothing.
struct Prefix<'a>(&'a str);

impl<'a> Prefix<'a> {
    fn of(text: &'a str) -> Self {
        let before = |line: &'a str| {
            let at = [CONNECTING, ACCEPTED].into_iter().find_map(|words| line.find(words))?;
            line.get(..at)
        };
        Self(lines(text).find_map(|(_, line)| before(line)).unwrap_or_default())
    }

    /// The line without it. A time has other digits in each line, and the same length.
    fn bare<'l>(&self, line: &'l str) -> &'l str {
        let Self(prefix) = self;
        if prefix.trim().is_empty() {
            return line;
        }
        let timed = || {
            let (before, rest) = line.split_at_checked(prefix.len())?;
            let alike = |(a, b): (u8, u8)| a == b || (a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric());
            let padded = |(a, b): (u8, u8)| (a == b' ' && b.is_ascii_digit()) || (b == b' ' && a.is_ascii_digit());
            before.bytes().zip(prefix.bytes()).all(|pair| alike(pair) || padded(pair)).then_some(rest)
        };
        line.strip_prefix(prefix).or_else(timed).unwrap_or(line)
    }
}

/// The figure of datagrams that were overtaken.
const OUT_OF_ORDER: &str = "out_of_order_packets";
const CONNECTING: &str = "Connecting to host ";
const ACCEPTED: &str = "Accepted connection from ";

/// The other end, and whether this one is the server.
fn peer(line: &str) -> Option<(&str, bool)> {
    let line = line.trim();
    let (rest, server) = match line.strip_prefix(CONNECTING) {
        Some(rest) => (rest, false),
        None => (line.strip_prefix(ACCEPTED)?, true),
    };
    // This program leaves the port out where no socket told it.
    let host = rest.split_once(", port ").map_or(rest, |(host, _)| host);
    (!host.is_empty() && !host.contains(char::is_whitespace)).then_some((host, server))
}

/// One test.
#[derive(Default)]
struct Session<'a> {
    target: Option<String>,
    server: bool,
    reverse: bool,
    datagrams: bool,
    block: Option<u64>,
    flows: BTreeSet<(Option<&'a str>, Who)>,
    intervals: Vec<Line<'a>>,
    summary: Vec<(u32, &'a str, Line<'a>, bool)>,
    /// The last line that begins with the test, where the summary has neither `sender` nor `receiver`.
    latest_total: Option<(u32, &'a str)>,
    figures: Vec<(String, f64)>,
    failed: bool,
}

fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let mut version = None;
    let mut host = None;
    let mut open: Option<Session<'_>> = None;
    let mut count = 0;
    let prefix = Prefix::of(text);
    for (at, line) in lines(text) {
        let line = prefix.bare(line);
        let trimmed = line.trim();
        if let Some((target, server)) = peer(line) {
            close(open.take(), at, &version, &host, &mut reading);
            open = Some(Session { target: Some(target.to_owned()), server, ..Session::default() });
            continue;
        }
        if let Some(reported) = trimmed.strip_prefix("iperf 3.").filter(|rest| !rest.contains(' ')) {
            version = Some(format!("3.{reported}"));
        } else if let Some(rest) = trimmed.strip_prefix("Linux ") {
            let mut words = rest.split_whitespace().map(str::to_owned);
            host = Some((words.next(), words.next()));
        } else if let Some(error) = trimmed.strip_prefix("iperf3: ") {
            reading.refuse(at, format!("iperf3's own error: {error}"));
            open.iter_mut().for_each(|session| session.failed = true);
        }
        let Some(session) = &mut open else { continue };
        session.reverse |= trimmed.starts_with("Reverse mode");
        session.datagrams |= trimmed.contains("Datagrams") || trimmed.starts_with("Starting Test: protocol: UDP");
        if let Some(rest) = trimmed.strip_prefix("Starting Test:") {
            let bytes = rest.split(',').find_map(|part| part.trim().strip_suffix(" byte blocks"));
            session.block = bytes.and_then(|bytes| block(number(bytes)?));
        } else if let Some(rest) = trimmed.strip_prefix("CPU Utilization:") {
            for part in rest.split(", ") {
                let mut words = part.split_whitespace();
                let end = words.next().and_then(|end| end.split('/').next());
                let percent = words.next().and_then(|word| number(word.trim_end_matches('%')));
                session.figures.extend(end.zip(percent).map(|(end, percent)| (format!("{end}_cpu_percent"), percent)));
            }
        } else if trimmed.contains("] Sent ")
            && session.summary.is_empty()
            && let Some(last) = session.intervals.iter().rposition(|line| line.lost().is_some())
        {
            let sent = session.intervals.remove(last);
            let received = session.arrived(&sent);
            session.summary.extend([(at, line, sent, true), (at, line, received, false)]);
        }
        if let Some((sum, count)) = out_of_order(line) {
            let known = session.figures.iter().position(|(name, _)| name == OUT_OF_ORDER);
            let before = known.map_or(0.0, |at| session.figures.remove(at).1);
            session.figures.push((OUT_OF_ORDER.into(), count as f64 + if sum { 0.0 } else { before }));
        }
        match Line::of(line) {
            Some(Ok(_)) if count >= MAX_ROWS => {
                reading.refuse(at, format!("more than {MAX_ROWS} lines of figures; the others were not imported"));
                break;
            }
            Some(Ok(figures)) => {
                count += 1;
                session.flows.extend(matches!(figures.who, Who::Flow(_)).then_some((figures.role, figures.who)));
                match figures.rest.last() {
                    Some(&"sender") => session.summary.push((at, line, figures, true)),
                    Some(&"receiver") => session.summary.push((at, line, figures, false)),
                    Some(&"(omitted)") => {}
                    _ => {
                        if figures.start_s == 0.0 {
                            session.latest_total = Some((at, line));
                        }
                        session.intervals.push(figures);
                    }
                }
            }
            Some(Err(reason)) => reading.refuse(at, format!("{reason}: '{trimmed}'")),
            None => {}
        }
    }
    let end = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    close(open, end, &version, &host, &mut reading);
    reading
}

type Host = Option<(Option<String>, Option<String>)>;

fn close(session: Option<Session<'_>>, at: u32, version: &Option<String>, host: &Host, reading: &mut Reading) {
    let Some(mut session) = session else { return };
    session.take_unnamed_total();
    if session.summary.is_empty() {
        if !session.failed {
            reading.refuse(at, "iperf3's output has no summary: the test did not complete");
        }
        return;
    }
    let row = session.row();
    let mut imported = Imported {
        tool: "iperf3".into(),
        version: version.clone(),
        kind: "stream".into(),
        target: session.target.clone(),
        rows: vec![row],
        assumed: unless_reported(session.block),
        ..Imported::default()
    };
    if let Some((name, kernel)) = host {
        (imported.near.hostname, imported.near.kernel) = (name.clone(), kernel.clone());
    }
    reading.imported.push(imported);
}

impl Session<'_> {
    /// The total of a server of UDP before 3.2, whose bytes are always 0: what the intervals received.
    fn take_unnamed_total(&mut self) {
        let (Some(last), true) = (self.intervals.last(), self.summary.is_empty() && self.server) else { return };
        let Some((at, text)) = self.latest_total.filter(|_| last.start_s == 0.0 && last.lost().is_some()) else {
            return;
        };
        let whole = self.intervals.len() > 1 && self.intervals.iter().all(|line| line.end_s <= last.end_s);
        if let Some(total) = self.intervals.pop_if(|_| whole) {
            let received = self.arrived(&total);
            self.summary.push((at, text, received, false));
        }
    }

    /// The sender's or receiver's line of all connections of a direction, or of a single one.
    fn whole(&self, role: Option<&str>, sender: bool) -> Option<&(u32, &str, Line<'_>, bool)> {
        let own = || self.summary.iter().filter(move |(_, _, line, end)| line.role == role && *end == sender);
        own().find(|(_, _, line, _)| line.who == Who::Sum).or_else(|| own().next())
    }

    /// What arrived of a summary's datagrams, whose line has what was sent: as many as were not lost, of the size that the intervals have.
    fn arrived<'a>(&self, sent: &Line<'a>) -> Line<'a> {
        let Some((lost, all)) = sent.lost() else { return sent.clone() };
        let carried = |line: &Line<'_>| {
            let datagrams = line.lost().map(|(lost, all)| all.saturating_sub(lost) as f64);
            datagrams.or_else(|| number(line.rest.first()?))
        };
        let known: Vec<(f64, f64)> =
            self.intervals.iter().filter_map(|line| Some((line.bytes, carried(line)?))).collect();
        let (bytes, datagrams) = known.iter().fold((0.0, 0.0), |sums, one| (sums.0 + one.0, sums.1 + one.1));
        let block = if datagrams > 0.0 { bytes / datagrams } else { sent.bytes / all.max(1) as f64 };
        let bytes = all.saturating_sub(lost) as f64 * block;
        let seconds = sent.end_s - sent.start_s;
        Line { bytes, bps: if seconds > 0.0 { bytes * 8.0 / seconds } else { 0.0 }, ..sent.clone() }
    }

    /// The directions of payload by their names in the lines, and whether the near end sends.
    fn directions(&self) -> Vec<(Option<&'static str>, bool)> {
        let roles: BTreeSet<Option<&str>> = self.summary.iter().map(|(_, _, line, _)| line.role).collect();
        let named = [("TX-C", true), ("RX-C", false), ("TX-S", true), ("RX-S", false)];
        let named: Vec<_> = named.into_iter().filter(|(role, _)| roles.contains(&Some(*role))).collect();
        if !named.is_empty() {
            return named.into_iter().map(|(role, sends)| (Some(role), sends)).collect();
        }
        // A server reports itself: with only a sender's line, it sent.
        let sends = if self.server { self.whole(None, false).is_none() } else { !self.reverse };
        vec![(None, sends)]
    }

    fn row(&self) -> Row {
        let directions = self.directions();
        let direction = match directions.as_slice() {
            [_, _, ..] => Direction::Both,
            [(_, true)] => Direction::Send,
            _ => Direction::Reverse,
        };
        let transport = if self.datagrams { "udp" } else { "tcp" };
        let mut spec = Spec { direction, ..Spec::new(transport, "stream") };
        spec.block = self.block.unwrap_or(spec.block);
        spec.flows = u32::try_from(self.flows.len() / directions.len()).unwrap_or(u32::MAX).clamp(1, Spec::MAX_FLOWS);
        let longest = self.summary.iter().map(|(_, _, line, _)| line.end_s).fold(0.0, f64::max);
        spec.stop = Stop::TimeNs(ns(longest).max(1));
        let ends = |(role, _): &(Option<&'static str>, bool)| [self.whole(*role, true), self.whole(*role, false)];
        let rate = |ends: [Option<&(u32, &str, Line<'_>, bool)>; 2]| {
            ends[1].or(ends[0]).map_or(0.0, |(_, _, line, _)| line.bps)
        };
        let value = directions.iter().map(|direction| rate(ends(direction))).sum();
        let (at, text) = self.summary.last().map_or((0, ""), |(at, text, ..)| (*at, *text));
        let mut row = Row::new(spec, value, at, text);
        for direction in &directions {
            let [sent, received] = ends(direction).map(|end| end.map(|(_, _, line, _)| line));
            self.set_counts(
                &mut row,
                direction.1,
                sent,
                received,
                match (directions.len() > 1, direction.1) {
                    (false, _) => "",
                    (true, true) => "outbound_",
                    (true, false) => "reverse_",
                },
            );
        }
        let unheard = |direction| match ends(direction).map(|end| end.map(|(_, _, line, _)| line)) {
            [Some(sent), Some(received)] => {
                let counted = received.lost().is_some_and(|(lost, all)| all > 0 && lost == all);
                sent.bytes > 0.0 && received.bytes == 0.0 && !counted
            }
            _ => false,
        };
        if directions.iter().any(unheard) {
            row.trial.value = None;
            row.flag(Verdict::ByteCountMismatch, "iperf3 reports bytes sent and none received, so there is no goodput");
        }
        for end in ["sender", "receiver"] {
            // Of both directions together, as the value.
            let name = format!("{end}_rate_bps");
            let both = ["outbound_", "reverse_"].map(|way| row.figures.get(&format!("{way}{name}")).copied());
            if let [Some(outbound), Some(reverse)] = both {
                row.figure(&name, outbound + reverse);
            }
        }
        for (name, value) in &self.figures {
            row.figure(name, *value);
        }
        self.series(&mut row);
        row
    }

    fn set_counts(
        &self,
        row: &mut Row,
        sends: bool,
        sent: Option<&Line<'_>>,
        received: Option<&Line<'_>>,
        prefix: &str,
    ) {
        let (near, far) = (&mut row.trial.near, &mut row.trial.far);
        let (sender, receiver) = if sends { (near, far) } else { (far, near) };
        if let Some(line) = sent {
            sender.report(Count::SendingNs, ns(line.end_s - line.start_s));
        }
        if let Some(line) = received {
            receiver.report(Count::ReceivingNs, ns(line.end_s - line.start_s));
        }
        if let Some((lost, all)) = received.and_then(Line::lost).filter(|_| self.datagrams) {
            sender.datagrams = Some(DatagramTally { sent: all, ..sender.datagrams.unwrap_or_default() });
            let arrived = all.saturating_sub(lost);
            receiver.datagrams = Some(DatagramTally { received: arrived, ..receiver.datagrams.unwrap_or_default() });
            row.figure(&format!("{prefix}lost_packets"), lost as f64);
            row.figure(&format!("{prefix}packets"), all as f64);
            if lost > 0 {
                row.flag(Verdict::Loss, format!("{lost} of {all} datagrams were lost"));
            }
        }
        if let Some(jitter) = received.and_then(Line::jitter_ns) {
            row.figure(&format!("{prefix}jitter_ns"), jitter);
        }
        for (end, line) in [("sender", sent), ("receiver", received)] {
            let Some(line) = line else { continue };
            row.figure(&format!("{prefix}{end}_rate_bps"), line.bps);
            row.figure(&format!("{prefix}{end}_bytes_as_printed"), line.bytes);
        }
        if let Some(count) = sent.and_then(|line| number(line.rest.first()?)).filter(|_| !self.datagrams) {
            if count <= COUNTER_LIMIT as f64 {
                row.figure(&format!("{prefix}retransmits"), count);
            } else {
                row.remarks.push(format!(
                    "{count} retransmits are a count below 0, which iperf3 prints so: it is not imported"
                ));
            }
        }
        if self.datagrams && received.is_some_and(|line| line.lost().is_none()) {
            row.remarks.push("the count of datagrams stands at its limit: how many were lost is not known".into());
        }
        if received.is_none() {
            row.remarks.push("the receiver's line is missing: a sender's rate, not a receiver's".into());
        }
    }

    /// The series of this end, from the `[SUM]` lines if there are any.
    fn series(&self, row: &mut Row) {
        let summed = self.intervals.iter().any(|line| line.who == Who::Sum);
        let direction = row.spec.direction;
        let own = self.intervals.iter().filter(|line| (line.who == Who::Sum) == summed);
        for line in own {
            let sends = line.role.map_or(direction == Direction::Send, |role| role.starts_with("TX"));
            let (start_ns, end_ns, bytes) = (ns(line.start_s), ns(line.end_s), line.bytes.round() as u64);
            let series = &mut row.trial.near.intervals;
            let same = series.last().is_some_and(|last| last.start_ns == start_ns && last.end_ns == end_ns);
            if !same {
                series.push(Interval { start_ns, end_ns, ..Interval::default() });
            }
            if let Some(last) = series.last_mut() {
                if sends { last.bytes_sent += bytes } else { last.bytes_received += bytes }
            }
        }
    }
}
