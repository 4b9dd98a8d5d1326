//! What our server prints of a test, for a client that requests its output (--get-server-output): iperf3's text.

use std::fmt::Write as _;
use std::net::SocketAddr;

use model::printf::{bits_per_second, bytes, two_digits};
use model::{Direction, FlowTally, Role, TransportName};
use peer_wire::iperf3::Results;

use super::header::Received;
use super::moments::Moment;
use super::streams::{Ran, flow_of, sends};

const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";
/// Number of the first stream in the text.
const FIRST_ID: usize = 5;
/// How far a reading may be from the end of the warm-up.
const SLACK_NS: u64 = 5_000_000;
/// An interval shorter than this part of the one before it is a part of that one.
const LEAST: u64 = 10;

/// A stream's counts up to a moment.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    bytes: u64,
    retransmits: u64,
    cwnd_bytes: u64,
    received: Received,
}

/// A stream in an interval, or in all of the test.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    bytes: u64,
    retransmits: u64,
    /// The window at the end of a stream's interval.
    cwnd_bytes: Option<u64>,
    /// Datagrams lost and all, and their jitter.
    lost: i64,
    packets: u64,
    jitter_s: f64,
}

impl Row {
    fn between(before: &Counts, now: &Counts) -> Self {
        Self {
            bytes: now.bytes.saturating_sub(before.bytes),
            retransmits: now.retransmits.saturating_sub(before.retransmits),
            cwnd_bytes: Some(now.cwnd_bytes),
            lost: now.received.errors - before.received.errors,
            packets: now.received.packets.saturating_sub(before.received.packets),
            jitter_s: now.received.jitter_s,
        }
    }

    fn sum(rows: &[Self]) -> Self {
        let sum = rows.iter().fold(Self::default(), |sum, row| Self {
            bytes: sum.bytes + row.bytes,
            retransmits: sum.retransmits + row.retransmits,
            cwnd_bytes: None,
            lost: sum.lost + row.lost,
            packets: sum.packets + row.packets,
            jitter_s: sum.jitter_s + row.jitter_s,
        });
        Self { jitter_s: sum.jitter_s / rows.len().max(1) as f64, ..sum }
    }
}

/// A part of the test, by the moments at which it begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start_ns: u64,
    end_ns: u64,
    omitted: bool,
}

struct Output<'a> {
    ran: &'a Ran,
    results: &'a Results,
    udp: bool,
    text: String,
}

/// The text of a test with these results.
pub(super) fn text(ran: &Ran, results: &Results, client: SocketAddr) -> String {
    let udp = ran.spec.transport == TransportName::Udp;
    let mut output = Output { ran, results, udp, text: String::new() };
    output.greeting(client);
    output.intervals();
    output.text.push_str(RULE);
    output.summary();
    output.text
}

impl Output<'_> {
    fn both(&self) -> bool {
        self.ran.spec.direction == Direction::Both
    }

    fn streams(&self) -> std::ops::Range<usize> {
        0..self.results.streams.len()
    }

    fn sends(&self, at: usize) -> bool {
        sends(Role::Passive, flow_of(&self.ran.spec, at).1)
    }

    /// This end's tally of a stream.
    fn flow(&self, at: usize) -> Option<&FlowTally> {
        let own = flow_of(&self.ran.spec, at);
        self.ran.legs.legs.first()?.flows.iter().find(|flow| (flow.flow, flow.direction) == own)
    }

    fn greeting(&mut self, client: SocketAddr) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "thru {}, serving as iperf3", env!("CARGO_PKG_VERSION"));
        let _ = writeln!(self.text, "Accepted connection from {}, port {}", client.ip().to_canonical(), client.port());
        for at in self.streams() {
            let address = |text: &Option<String>| text.as_ref()?.parse::<SocketAddr>().ok();
            let socket = self.flow(at).map(|flow| &flow.socket);
            let pair = socket.and_then(|socket| address(&socket.local).zip(address(&socket.peer)));
            if let Some((local, peer)) = pair {
                let [here, there] = [local, peer].map(|address| address.ip().to_canonical());
                let _ = writeln!(
                    self.text,
                    "[{:3}] local {here} port {} connected to {there} port {}",
                    FIRST_ID + at,
                    local.port(),
                    peer.port()
                );
            }
        }
    }

    fn head(&mut self, last: &str) {
        let role = if self.both() { "[Role]" } else { "" };
        let _ = writeln!(
            self.text,
            "{}",
            format!("[ ID]{role} Interval           Transfer     Bitrate         {last}").trim_end()
        );
    }

    fn line(&mut self, id: &str, sends: bool, span: Span, row: &Row, end: &str) {
        let role = match (self.both(), sends) {
            (false, _) => "",
            (true, true) => "[TX-S]",
            (true, false) => "[RX-S]",
        };
        let [from, to] = [span.start_ns, span.end_ns].map(|ns| ns as f64 / 1e9);
        let rate = if to > from { bits_per_second(row.bytes as f64 * 8.0 / (to - from)) } else { bits_per_second(0.0) };
        let _ = writeln!(self.text, "{id}{role} {from:6.2}-{to:<6.2} sec  {}  {rate}{end}", bytes(row.bytes as f64));
    }

    /// The end of a line with losses.
    fn losses(row: &Row) -> String {
        let percent = if row.packets == 0 { 0.0 } else { 100.0 * row.lost as f64 / row.packets as f64 };
        format!("  {:5.3} ms  {}/{} ({}%)", row.jitter_s * 1e3, row.lost, row.packets, two_digits(percent))
    }

    /// The lines of an interval: of each stream, and of several together.
    fn interval(&mut self, span: Span, rows: &[Row]) {
        let omitted = if span.omitted { "(omitted)" } else { "" };
        for sending in [false, true] {
            let own: Vec<usize> = self.streams().filter(|at| self.sends(*at) == sending).collect();
            let mut lines: Vec<(String, Row)> =
                own.iter().map(|at| (format!("[{:3}]", FIRST_ID + at), rows[*at])).collect();
            if own.len() > 1 {
                let of_own: Vec<Row> = own.iter().map(|at| rows[*at]).collect();
                lines.push(("[SUM]".into(), Row::sum(&of_own)));
            }
            for (id, row) in lines {
                let pad = if self.both() { "          " } else { "" };
                let end = match (self.udp, sending, row.cwnd_bytes) {
                    (true, true, _) => format!(" {pad} {}  {omitted}", row.bytes / self.ran.spec.block),
                    (true, false, _) => format!("{}  {omitted}", Self::losses(&row)),
                    (false, true, Some(cwnd)) => {
                        format!("  {:3}   {}       {omitted}", row.retransmits, bytes(cwnd as f64))
                    }
                    (false, true, None) => format!("  {:3}             {omitted}", row.retransmits),
                    (false, false, _) => format!("                  {omitted}"),
                };
                self.line(&id, sending, span, &row, &end);
            }
        }
    }

    /// The streams' counts at a moment; `None` where it has only their sums.
    fn counts(&self, moment: &Moment) -> Option<Vec<Counts>> {
        let of = |at: usize| {
            let (flow, direction) = flow_of(&self.ran.spec, at);
            let own = moment.flows.iter().find(|own| (own.flow, own.direction) == (flow, direction))?;
            (own.connections == 1).then(|| Counts {
                bytes: if self.sends(at) { own.bytes_sent } else { own.bytes_received },
                retransmits: own.tcp.map_or(0, |tcp| tcp.retransmits),
                cwnd_bytes: own.tcp.map_or(0, |tcp| tcp.cwnd_bytes),
                received: moment.received.get(at).copied().unwrap_or_default(),
            })
        };
        self.streams().map(of).collect()
    }

    /// The streams' counts at the end, whose results begin after `warm`.
    fn last(&self, warm: &[Counts]) -> Vec<Counts> {
        let of = |(at, warm): (usize, &Counts)| {
            let socket = self.flow(at).map(|flow| &flow.socket);
            let cwnd = socket.and_then(|socket| Some(u64::from(socket.cwnd?) * u64::from(socket.mss?)));
            Counts {
                bytes: warm.bytes + self.results.streams[at].bytes,
                retransmits: socket.and_then(|socket| socket.retransmits).unwrap_or(0),
                cwnd_bytes: cwnd.unwrap_or(0),
                received: self.ran.received[at][1],
            }
        };
        warm.iter().enumerate().map(of).collect()
    }

    fn intervals(&mut self) {
        self.head(match (self.udp, self.ran.spec.direction) {
            (true, Direction::Reverse) => "Total Datagrams",
            (true, _) => "Jitter    Lost/Total Datagrams",
            (false, Direction::Send) => "",
            (false, _) => "Retr  Cwnd",
        });
        let ran = self.ran;
        let (warmup_ns, end_ns) = (ran.spec.warmup_ns, ran.legs.elapsed_ns);
        let moments: Vec<&Moment> = ran.moments.kept.iter().filter(|moment| moment.at_ns < end_ns).collect();
        let spans = ends(&moments.iter().map(|moment| moment.at_ns).collect::<Vec<_>>(), warmup_ns, end_ns);
        let mut before = vec![Counts::default(); self.results.streams.len()];
        let mut warm = before.clone();
        for span in spans {
            let moment = moments.iter().find(|moment| moment.at_ns == span.end_ns);
            let now = match moment {
                Some(moment) => self.counts(moment),
                None => Some(self.last(&warm)),
            };
            // When there are more streams than readings of their own, only the totals are known.
            let Some(now) = now else { return };
            let rows: Vec<Row> = before.iter().zip(&now).map(|(before, now)| Row::between(before, now)).collect();
            let from = if span.omitted { 0 } else { warmup_ns };
            let [start_ns, end_ns] = [span.start_ns, span.end_ns].map(|ns| ns.saturating_sub(from));
            if span.start_ns > 0 && self.ran.spec.flows > 1 {
                self.text.push_str(RULE);
            }
            self.interval(Span { start_ns, end_ns, ..span }, &rows);
            if span.omitted {
                warm.clone_from(&now);
            }
            before = now;
        }
    }

    fn summary(&mut self) {
        self.head(match (self.udp, self.ran.spec.direction) {
            (true, _) => "Jitter    Lost/Total Datagrams",
            (false, Direction::Send) => "",
            (false, _) => "Retr",
        });
        for sending in [false, true] {
            let own: Vec<usize> = self.streams().filter(|at| self.sends(*at) == sending).collect();
            let mut lines: Vec<(String, Row)> =
                own.iter().map(|at| (format!("[{:3}]", FIRST_ID + at), self.whole(*at))).collect();
            if own.len() > 1 {
                let rows: Vec<Row> = lines.iter().map(|(_, row)| *row).collect();
                lines.push(("[SUM]".into(), Row::sum(&rows)));
            }
            let seconds = own.iter().filter_map(|at| self.results.streams[*at].end_time_s).fold(0.0, f64::max);
            let span = Span { start_ns: 0, end_ns: (seconds * 1e9) as u64, omitted: false };
            for (id, row) in lines {
                let end = match (self.udp, sending) {
                    (true, true) => format!("{}  sender", Self::losses(&Row { lost: 0, jitter_s: 0.0, ..row })),
                    (true, false) => format!("{}  receiver", Self::losses(&row)),
                    (false, true) => format!("  {:3}             sender", row.retransmits),
                    (false, false) => "                  receiver".to_owned(),
                };
                self.line(&id, sending, span, &row, &end);
            }
        }
    }

    /// A stream's result, without the warm-up.
    fn whole(&self, at: usize) -> Row {
        let stream = &self.results.streams[at];
        let (errors, packets) = stream.omitted.map_or((0, 0), |omitted| (omitted.errors, omitted.packets));
        Row {
            bytes: stream.bytes,
            retransmits: stream.retransmits.unwrap_or(0),
            cwnd_bytes: None,
            lost: stream.errors - errors,
            packets: stream.packets.saturating_sub(packets),
            jitter_s: stream.jitter_s,
        }
    }
}

/// The intervals between these moments and the end of the test. One that is much shorter than the one before it is a part of that.
fn ends(moments: &[u64], warmup_ns: u64, end_ns: u64) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for end_ns in moments.iter().copied().chain([end_ns]) {
        let start_ns = spans.last().map_or(0, |span| span.end_ns);
        let omitted = warmup_ns > 0 && end_ns <= warmup_ns + SLACK_NS;
        let short =
            |span: &&mut Span| span.omitted == omitted && (end_ns - start_ns) * LEAST < span.end_ns - span.start_ns;
        match spans.last_mut().filter(short) {
            Some(span) => span.end_ns = end_ns,
            None if end_ns > start_ns => spans.push(Span { start_ns, end_ns, omitted }),
            None => {}
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_rest_is_a_part_of_the_last_interval_but_not_of_the_warm_up() {
        let of = |moments: &[u64], warm, end| {
            let ms = |ms: &u64| ms * 1_000_000;
            let moments: Vec<u64> = moments.iter().map(ms).collect();
            let spans = ends(&moments, ms(&warm), ms(&end));
            spans
                .iter()
                .map(|span| (span.start_ns / 1_000_000, span.end_ns / 1_000_000, span.omitted))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&[1_000, 2_000], 0, 2_040), [(0, 1_000, false), (1_000, 2_040, false)]);
        assert_eq!(of(&[1_001, 2_000], 1_000, 2_500), [(0, 1_001, true), (1_001, 2_000, false), (2_000, 2_500, false)]);
        assert_eq!(of(&[1_001], 1_000, 1_010), [(0, 1_001, true), (1_001, 1_010, false)]);
        assert_eq!(of(&[], 0, 300), [(0, 300, false)]);
    }
}
