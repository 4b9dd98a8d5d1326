//! iperf3's text, of a client and of a server: interval lines, then a summary whose lines end with `sender` or `receiver`.
//!
//! Before 3.2 the summary of a UDP test has neither word; it is the last line with a loss, and its bytes and rate are the sender's.

use std::collections::{BTreeMap, BTreeSet};

use model::{Count, DatagramTally, Direction, FlowTally, Interval, Pattern, RunKind, SocketFacts, Spec, Stop, Verdict};

use super::ImportFormat;
use super::iperf::{COUNTER_LIMIT, Line, Who, check_loss, check_sum, flag_rounding, out_of_order};
use crate::error::{Contradiction, ImportError, IperfError};
use crate::listing::{Certainty, Imported, Row, TextReading, unless_reported};
use crate::text::{MAX_ROWS, block, lines, ns, number, whole};

/// iperf3's text.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "iperf3", help: "iperf3's text, of a client or of a server", detect, read };

fn detect(text: &str) -> Certainty {
    let mut prefix = Prefix::of(text);
    let mut bare = lines(text).map(|(_, line)| {
        prefix = Prefix::of_line(line).unwrap_or(prefix);
        prefix.bare(line)
    });
    let (mut opens, mut counts) = (false, false);
    while let Some(line) = bare.next().filter(|_| !(opens && counts)) {
        opens |= peer(line).is_some();
        counts |= Line::of(line).is_some();
    }
    if opens && counts { Certainty::Certain } else { Certainty::No }
}

/// What stands before each line: a title (-T), a time (--timestamps), or nothing.
#[derive(Clone, Copy)]
struct Prefix<'a>(&'a str);

impl<'a> Prefix<'a> {
    fn of(text: &'a str) -> Self {
        lines(text).find_map(|(_, line)| Self::of_line(line)).unwrap_or(Self(""))
    }

    /// That of the line that opens a test; `None` for any other line.
    fn of_line(line: &'a str) -> Option<Self> {
        let at = [CONNECTING, ACCEPTED].into_iter().find_map(|words| line.find(words))?;
        let (before, rest) = line.split_at_checked(at)?;
        peer(rest).map(|_| Self(before))
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

/// The most bytes that a receiver has of those sent, as both are printed.
const MOST_RECEIVED: f64 = 1.05;
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

/// A line of figures and its place in the text.
#[derive(Clone)]
struct Stated<'a> {
    at: u32,
    text: &'a str,
    line: Line<'a>,
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
    /// The addresses of this end and of the other one, by connection.
    sockets: BTreeMap<Who, [String; 2]>,
    intervals: Vec<Stated<'a>>,
    /// The lines of the whole test, and whether each is the sender's.
    summary: Vec<(Stated<'a>, bool)>,
    figures: Vec<(String, f64)>,
    remarks: Vec<String>,
    /// Datagrams lost and sent until the last interval, where a total counts more of them.
    shorter: Option<(u64, u64)>,
    error: Option<String>,
    /// It has intervals of a warm-up, whose end may differ at both ends.
    omits: bool,
    /// In what the server printed, which repeats the test (--get-server-output).
    theirs: bool,
    has_theirs: bool,
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut version = None;
    let mut host = None;
    let mut open: Option<Session<'_>> = None;
    let mut count = 0;
    let mut prefix = Prefix::of(text);
    for (at, line) in lines(text) {
        let theirs = open.as_ref().is_some_and(|session| session.theirs);
        if !theirs {
            prefix = Prefix::of_line(line).unwrap_or(prefix);
        }
        let line = prefix.bare(line);
        let trimmed = line.trim();
        let opening = peer(line).filter(|(_, server)| !(theirs && *server));
        if let Some((target, server)) = opening {
            close(open.take(), at, &version, &host, &mut reading);
            open = Some(Session { target: Some(target.to_owned()), server, ..Session::default() });
            continue;
        }
        if theirs {
            open.iter_mut().for_each(|session| session.theirs = trimmed != "iperf Done.");
            continue;
        }
        if let Some(reported) = trimmed.strip_prefix("iperf 3.").filter(|rest| !rest.contains(' ')) {
            version = Some(format!("3.{reported}"));
        } else if let Some(rest) = trimmed.strip_prefix("Linux ") {
            let mut words = rest.split_whitespace().map(str::to_owned);
            host = Some((words.next(), words.next()));
        } else if let Some(error) = trimmed.strip_prefix("iperf3: ") {
            reading.refuse(at, ImportError::OwnError { program: "iperf3", error: error.to_owned() });
            open.iter_mut().for_each(|session| session.error = Some(error.to_owned()));
        }
        let Some(session) = &mut open else { continue };
        session.facts(trimmed);
        match Line::of(line) {
            Some(Ok(_)) if count >= MAX_ROWS => {
                reading.refuse(at, ImportError::TooMany { most: MAX_ROWS, what: "lines of figures" });
                break;
            }
            Some(Ok(figures)) => {
                count += 1;
                session.flows.extend(matches!(figures.who, Who::Flow(_)).then_some((figures.role, figures.who)));
                let end = figures.rest.last().copied();
                let stated = Stated { at, text: line, line: figures };
                match end {
                    Some("sender") => session.summary.push((stated, true)),
                    Some("receiver") => session.summary.push((stated, false)),
                    Some("(omitted)") => session.omits = true,
                    _ => session.intervals.push(stated),
                }
            }
            Some(Err(reason)) => reading.refuse_text(at, line, reason),
            None => {}
        }
    }
    let end = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    close(open, end, &version, &host, &mut reading);
    reading
}

type Host = Option<(Option<String>, Option<String>)>;

fn close(session: Option<Session<'_>>, at: u32, version: &Option<String>, host: &Host, reading: &mut TextReading) {
    let Some(mut session) = session else { return };
    session.take_unnamed_total();
    if session.summary.is_empty() {
        if session.error.is_none() {
            reading.refuse(at, IperfError::NoSummary);
        }
        return;
    }
    let row = match session.row() {
        Ok(row) => row,
        Err(reason) => return reading.refuse(session.summary[0].0.at, reason),
    };
    let mut imported = Imported {
        tool: "iperf3".into(),
        version: version.clone(),
        kind: RunKind::Stream,
        target: session.target.clone(),
        rows: vec![row],
        assumed: unless_reported(session.block),
        by_server: session.server,
        unknown: session.has_theirs.then(|| "Server output".to_owned()).into_iter().collect(),
        ..Imported::default()
    };
    if let Some((name, kernel)) = host {
        (imported.near.hostname, imported.near.kernel) = (name.clone(), kernel.clone());
    }
    reading.imported.push(imported);
}

/// `[  5] local 192.0.2.1 port 44698 connected to 192.0.2.2 port 5201`: the connection and both addresses.
fn socket(line: &str) -> Option<(Who, [String; 2])> {
    let (name, rest) = line.strip_prefix('[')?.split_once("] local ")?;
    let address = |text: &str| {
        let (host, port) = text.split_once(" port ")?;
        let port: u16 = port.split_whitespace().next()?.parse().ok()?;
        Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    };
    let (local, peer) = rest.split_once(" connected to ")?;
    Some((Who::Flow(name.trim().parse().ok()?), [address(local)?, address(peer)?]))
}

/// The connection of `[  4] Sent 1215 datagrams`, below its total before 3.2.
fn sent(line: &str) -> Option<Who> {
    let (name, _) = line.strip_prefix('[')?.split_once("] Sent ")?;
    name.trim().parse().ok().map(Who::Flow)
}

/// What one end reports of all connections of a direction.
#[derive(Clone, Copy)]
struct Total {
    seconds: f64,
    bytes: f64,
    bps: f64,
    error_bps: f64,
    lost: Option<(u64, u64)>,
    no_loss: &'static str,
    jitter_ns: Option<f64>,
    retransmits: Option<f64>,
}

impl Total {
    fn of(line: &Line<'_>) -> Self {
        Self {
            seconds: line.end_s - line.start_s,
            bytes: line.bytes,
            bps: line.bps,
            error_bps: line.errors[1],
            lost: line.lost(),
            no_loss: line.no_loss(),
            jitter_ns: line.jitter_ns(),
            retransmits: line.rest.first().and_then(|word| number(word)),
        }
    }

    /// That of connections at the same time.
    fn together(self, other: Self) -> Self {
        let longer = |a: Option<f64>, b: Option<f64>| Some(a?.max(b?));
        let lost = self.lost.zip(other.lost);
        Self {
            seconds: self.seconds.max(other.seconds),
            bytes: self.bytes + other.bytes,
            bps: self.bps + other.bps,
            error_bps: self.error_bps + other.error_bps,
            lost: lost.map(|(a, b)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1))),
            no_loss: if self.lost.is_none() { self.no_loss } else { other.no_loss },
            jitter_ns: longer(self.jitter_ns, other.jitter_ns),
            retransmits: self.retransmits.zip(other.retransmits).map(|(a, b)| a + b),
        }
    }
}

impl<'a> Session<'a> {
    /// Takes a line that is not one of figures.
    fn facts(&mut self, trimmed: &'a str) {
        self.reverse |= trimmed.starts_with("Reverse mode");
        self.datagrams |= trimmed.contains("Datagrams") || trimmed.starts_with("Starting Test: protocol: UDP");
        if ["Server output:", "Server JSON output:"].contains(&trimmed) && !self.server {
            (self.theirs, self.has_theirs) = (true, true);
        } else if let Some(rest) = trimmed.strip_prefix("Starting Test:") {
            let bytes = rest.split(',').find_map(|part| part.trim().strip_suffix(" byte blocks"));
            self.block = bytes.and_then(|bytes| block(number(bytes)?));
        } else if let Some(rest) = trimmed.strip_prefix("CPU Utilization:") {
            for part in rest.split(", ") {
                let mut words = part.split_whitespace();
                let end = words.next().and_then(|end| end.split('/').next());
                let percent = words.next().and_then(|word| number(word.trim_end_matches('%')));
                self.figures.extend(end.zip(percent).map(|(end, percent)| (format!("{end}_cpu_percent"), percent)));
            }
        } else if let Some(who) = sent(trimmed)
            && !self.summary.iter().any(|(one, _)| one.line.who == who)
            && let Some(last) = self.intervals.iter().rposition(|one| one.line.who == who && one.line.lost().is_some())
        {
            let sent = self.intervals.remove(last);
            let received = Stated { line: self.arrived(&sent.line), ..sent.clone() };
            self.summary.extend([(sent, true), (received, false)]);
        } else if let Some((who, ends)) = socket(trimmed) {
            self.sockets.insert(who, ends);
        }
        if let Some((sum, count)) = out_of_order(trimmed) {
            let known = self.figures.iter().position(|(name, _)| name == OUT_OF_ORDER);
            let before = known.map_or(0.0, |at| self.figures.remove(at).1);
            self.figures.push((OUT_OF_ORDER.into(), count as f64 + if sum { 0.0 } else { before }));
        }
    }

    /// The totals of a server of UDP before 3.2, whose bytes are always 0: what the intervals received.
    fn take_unnamed_total(&mut self) {
        if !(self.summary.is_empty() && self.server) {
            return;
        }
        let longest = self.intervals.iter().map(|one| one.line.end_s).fold(0.0, f64::max);
        let is_total =
            |one: &Stated<'_>| one.line.start_s == 0.0 && one.line.end_s >= longest && one.line.lost().is_some();
        let (totals, parts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.intervals).into_iter().partition(is_total);
        self.intervals = parts;
        if self.intervals.is_empty() {
            self.intervals = totals;
            return;
        }
        let (mut until, mut differs): ((u64, u64), bool) = Default::default();
        for total in totals {
            let own = || self.intervals.iter().map(|one| &one.line).filter(|line| line.who == total.line.who);
            let bytes: f64 = own().map(|line| line.bytes).sum();
            let seconds = total.line.end_s;
            let covered: f64 = own().map(|line| line.end_s - line.start_s).sum();
            if (covered - seconds).abs() > 0.02 * seconds {
                // An interval is missing, so that only the count of datagrams is left.
                let received = Stated { line: self.arrived(&total.line), ..total };
                self.summary.push((received, false));
                continue;
            }
            let errors = [total.line.errors[0], own().map(|line| line.errors[1]).fold(0.0, f64::max)];
            let counts = own()
                .filter_map(Line::lost)
                .fold((0, 0), |sum: (u64, u64), one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)));
            let received = Line { bytes, bps: bytes * 8.0 / seconds, errors, ..total.line.clone() };
            if total.line.lost() != Some(counts) {
                differs = true;
                self.remarks.push(format!(
                    "the total counts {} datagrams, the intervals {}: those after the last interval are left out",
                    total.line.lost().map_or(0, |(_, all)| all),
                    counts.1
                ));
            }
            if total.line.who != Who::Sum {
                until = (until.0.saturating_add(counts.0), until.1.saturating_add(counts.1));
            }
            self.summary.push((Stated { line: received, ..total }, false));
        }
        self.shorter = differs.then_some(until);
    }

    /// The sender's or the receiver's figures of all connections of a direction: the line of their sum, or what their lines add up to.
    /// `None` if a connection has none.
    ///
    /// # Errors
    /// A sum that its connections contradict.
    fn whole(&self, role: Option<&str>, sender: bool) -> Result<Option<Total>, Contradiction> {
        let own = self.summary.iter().filter(|(one, end)| one.line.role == role && *end == sender);
        let (sums, flows): (Vec<&Line<'_>>, Vec<&Line<'_>>) =
            own.map(|(one, _)| &one.line).partition(|line| line.who == Who::Sum);
        let known = self.flows.iter().filter(|(of, _)| *of == role).count();
        let complete = flows.len() >= known;
        match sums.last() {
            Some(sum) => {
                if complete {
                    check_sum(sum, &flows)?;
                }
                Ok(Some(Total::of(sum)))
            }
            None if complete => Ok(flows.into_iter().map(Total::of).reduce(Total::together)),
            None => Ok(None),
        }
    }

    /// What arrived of a summary's datagrams, whose line has what was sent: as many as were not lost, of the size that the intervals have.
    fn arrived(&self, sent: &Line<'a>) -> Line<'a> {
        let Some((lost, all)) = sent.lost() else { return sent.clone() };
        let carried = |line: &Line<'_>| {
            let datagrams = line.lost().map(|(lost, all)| all.saturating_sub(lost) as f64);
            // A sender's line has their number alone; a receiver's begins with its jitter.
            datagrams.or_else(|| number(line.rest.first().filter(|_| !line.rest.contains(&"ms"))?))
        };
        let known: Vec<(f64, f64)> =
            self.intervals.iter().filter_map(|one| Some((one.line.bytes, carried(&one.line)?))).collect();
        let (bytes, datagrams) = known.iter().fold((0.0, 0.0), |sums, one| (sums.0 + one.0, sums.1 + one.1));
        let block = if datagrams > 0.0 { bytes / datagrams } else { sent.bytes / all.max(1) as f64 };
        let bytes = all.saturating_sub(lost) as f64 * block;
        let seconds = sent.end_s - sent.start_s;
        Line { bytes, bps: if seconds > 0.0 { bytes * 8.0 / seconds } else { 0.0 }, ..sent.clone() }
    }

    /// The directions of payload by their names in the lines, and whether the near end sends.
    fn directions(&self) -> Vec<(Option<&'static str>, bool)> {
        let summed = self.summary.iter().map(|(one, _)| one.line.role);
        let roles: BTreeSet<Option<&str>> = self.flows.iter().map(|(role, _)| *role).chain(summed).collect();
        let named = [("TX-C", true), ("RX-C", false), ("TX-S", true), ("RX-S", false)];
        let named: Vec<_> = named.into_iter().filter(|(role, _)| roles.contains(&Some(*role))).collect();
        if !named.is_empty() {
            return named.into_iter().map(|(role, sends)| (Some(role), sends)).collect();
        }
        // A server reports itself: with only a sender's line, it sent.
        let received = self.summary.iter().any(|(_, sender)| !sender);
        let sends = if self.server { !received } else { !self.reverse };
        vec![(None, sends)]
    }

    fn row(&self) -> Result<Row, ImportError> {
        let directions = self.directions();
        let direction = match directions.as_slice() {
            [_, _, ..] => Direction::Both,
            [(_, true)] => Direction::Send,
            _ => Direction::Reverse,
        };
        let transport = if self.datagrams { "udp" } else { "tcp" };
        let mut spec = Spec { direction, ..Spec::new(transport, Pattern::Stream) };
        spec.block = self.block.unwrap_or(spec.block);
        spec.flows = u32::try_from(self.flows.len() / directions.len()).unwrap_or(u32::MAX).clamp(1, Spec::MAX_FLOWS);
        let longest = self.summary.iter().map(|(one, _)| one.line.end_s).fold(0.0, f64::max);
        spec.stop = Stop::TimeNs(ns(longest).max(1));
        let (at, text) = self.summary.last().map_or((0, ""), |(one, _)| (one.at, one.text));
        let mut row = Row::new(spec, 0.0, at, text);
        let (mut bps, mut error_bps, mut unheard, mut uncounted) = (0.0, 0.0, false, false);
        for (role, sends) in &directions {
            let [sent, received] = [self.whole(*role, true)?, self.whole(*role, false)?];
            // An interrupted client has not fetched what its server sent.
            let sent = sent.filter(|sent| sent.bytes > 0.0 || received.is_none_or(|received| received.bytes == 0.0));
            let Some(total) = received.or(sent) else {
                return Err(IperfError::CutSummary.into());
            };
            (bps, error_bps) = (bps + total.bps, error_bps + total.error_bps);
            if let Some((sent, received)) = sent.zip(received).filter(|_| !self.omits && !self.datagrams)
                && received.bytes > sent.bytes * MOST_RECEIVED
            {
                return Err(Contradiction::ReceivedBytes { received: received.bytes, sent: sent.bytes }.into());
            }
            let not_counted = self.datagrams && received.is_none();
            // A receiver of nothing beside a sender of something: its results were not fetched. Datagrams may all be lost.
            let not_heard = sent.zip(received).is_some_and(|(sent, received)| {
                let counted = received.lost.is_some_and(|(lost, all)| all > 0 && lost == all);
                sent.bytes > 0.0 && received.bytes == 0.0 && !counted
            });
            (uncounted, unheard) = (uncounted || not_counted, unheard || not_heard);
            if direction == Direction::Both && !not_counted && !not_heard {
                row.carried(*sends, total.bps);
            }
            let prefix = match (directions.len() > 1, sends) {
                (false, _) => "",
                (true, true) => "outbound_",
                (true, false) => "reverse_",
            };
            self.set_counts(&mut row, *sends, sent, received, prefix)?;
            self.set_flows(&mut row, *role, *sends);
        }
        row.trial.value = Some(bps);
        if unheard {
            row.trial.value = None;
            row.flag(Verdict::ByteCountMismatch, "iperf3 reports bytes sent and none received, so there is no goodput");
        }
        if uncounted {
            row.trial.value = None;
            row.flag(Verdict::ByteCountMismatch, "the received datagrams were not printed, so there is no goodput");
        }
        flag_rounding(&mut row, error_bps);
        if let Some(error) = &self.error {
            row.flag(Verdict::CutShort, format!("iperf3 ended with an error: {error}"));
        }
        row.remarks.extend(self.remarks.iter().cloned());
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
        Ok(row)
    }

    fn set_counts(
        &self,
        row: &mut Row,
        sends: bool,
        sent: Option<Total>,
        received: Option<Total>,
        prefix: &str,
    ) -> Result<(), Contradiction> {
        let (near, far) = (&mut row.trial.near, &mut row.trial.far);
        let (sender, receiver) = if sends { (near, far) } else { (far, near) };
        if let Some(sent) = sent {
            sender.report(Count::SendingNs, ns(sent.seconds));
        }
        if let Some(received) = received {
            receiver.report(Count::ReceivingNs, ns(received.seconds));
        }
        let lost = received.filter(|_| self.datagrams).and_then(|received| self.shorter.or(received.lost));
        let some = |total: Option<Total>| total.is_some_and(|total| total.bytes > 0.0);
        let unknown = lost.is_some_and(|(_, all)| all == 0) && (some(sent) || some(received));
        if let Some((lost, all)) = lost.filter(|_| !unknown) {
            check_loss((lost, all))?;
            sender.datagrams = Some(DatagramTally { sent: all, ..sender.datagrams.unwrap_or_default() });
            let arrived = DatagramTally { received: all - lost, ..receiver.datagrams.unwrap_or_default() };
            receiver.datagrams = Some(arrived);
            row.figure(&format!("{prefix}lost_packets"), lost as f64);
            row.figure(&format!("{prefix}packets"), all as f64);
            if lost > 0 {
                row.flag(Verdict::Loss, format!("{lost} of {all} datagrams were lost"));
            }
        }
        if let Some(jitter) = received.and_then(|received| received.jitter_ns) {
            let longest = received.map_or(0.0, |received| received.seconds * 1e9);
            if jitter <= longest {
                row.figure(&format!("{prefix}jitter_ns"), jitter);
            } else {
                row.remarks.push(format!("a jitter of {} ms is longer than the test: not imported", jitter / 1e6));
            }
        }
        for (end, total) in [("sender", sent), ("receiver", received)] {
            let Some(total) = total else { continue };
            row.figure(&format!("{prefix}{end}_rate_bps"), total.bps);
            row.figure(&format!("{prefix}{end}_bytes_as_printed"), total.bytes);
        }
        if let Some(count) = sent.and_then(|sent| sent.retransmits).filter(|_| !self.datagrams) {
            if count <= COUNTER_LIMIT as f64 {
                row.figure(&format!("{prefix}retransmits"), count);
            } else {
                row.remarks.push(format!("{count} retransmits is how iperf3 prints a count below 0: not imported"));
            }
        }
        match received {
            None => row.remarks.push("the receiver's line is missing: a sender's rate, not a receiver's".into()),
            Some(received) if self.datagrams && lost.is_none() => row.remarks.push(received.no_loss.into()),
            Some(_) if unknown && some(received) => {
                row.remarks.push("bytes arrived in 0 datagrams: the loss is unknown".into());
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// The connections of a direction: their addresses, and what the sender of each retransmitted. Their bytes are printed with three
    /// digits, which are no counts.
    fn set_flows(&self, row: &mut Row, role: Option<&str>, sends: bool) {
        let direction = if sends { Direction::Send } else { Direction::Reverse };
        let own = self.flows.iter().filter(|(of, _)| *of == role);
        for (flow, (_, who)) in (0..).zip(own) {
            let line =
                self.summary.iter().find(|(one, sender)| *sender && one.line.role == role && one.line.who == *who);
            let count = line.filter(|_| !self.datagrams).and_then(|(one, _)| whole(number(one.line.rest.first()?)?));
            let retransmits = count.filter(|count| *count <= COUNTER_LIMIT);
            let of = |socket| FlowTally { flow, direction, socket, ..FlowTally::default() };
            let sender = SocketFacts { retransmits, ..SocketFacts::default() };
            let (mut near, far) = if sends { (sender, None) } else { (SocketFacts::default(), Some(sender)) };
            if let Some([local, peer]) = self.sockets.get(who) {
                (near.local, near.peer) = (Some(local.clone()), Some(peer.clone()));
            }
            row.trial.near.flows.push(of(near));
            row.trial.far.flows.extend(far.filter(|far| far.retransmits.is_some()).map(of));
        }
    }

    /// The series of this end, from the `[SUM]` lines if there are any.
    fn series(&self, row: &mut Row) {
        let longest = self.summary.iter().map(|(one, _)| one.line.end_s).fold(0.0, f64::max);
        // Before 3.2 the sum of a summary has no name of an end.
        let unnamed = |line: &Line<'_>| line.who == Who::Sum && line.start_s == 0.0 && line.end_s >= longest;
        let lines = || self.intervals.iter().map(|one| &one.line);
        let whole = lines().any(|line| line.start_s > 0.0);
        let parts = || lines().filter(move |line| !(whole && unnamed(line)));
        let summed = parts().any(|line| line.who == Who::Sum);
        let direction = row.spec.direction;
        for line in parts().filter(|line| (line.who == Who::Sum) == summed) {
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
