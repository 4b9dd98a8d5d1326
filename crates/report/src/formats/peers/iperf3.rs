//! The text output of iperf3 3.12's client.
//!
//! Prefixes of bytes are powers of 1024, of bits powers of 1000. With one connection in each direction, the intervals are its lines;
//! with several, each has a line and all have one, if the run has their readings, else all together. Unmeasured jitter is printed as
//! 0.000, as iperf3 does in a sender's lines. Recorded outputs of the program are the reference.

use core::net::SocketAddr;
use std::fmt::Write as _;

use super::quantity::{bits_per_second, bytes, rate, seconds, two_digits};
use super::series::{Arrivals, TcpAtEnd};
use super::test::{Amount, Datagrams, DirectionResult, Share, TcpRange, Test};
use super::{IPERF3, each_test};
use crate::{NoForm, Piece, ReportError, View};

const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    each_test(view, &IPERF3, "\n", text)
}

/// The number of the first connection in iperf3's output, and the distance to the next one.
pub(super) const FIRST_ID: u32 = 5;
pub(super) const NEXT_ID: u32 = 2;

fn text(test: &Test<'_>) -> Result<String, NoForm> {
    let directions = test.directions()?;
    let udp = test.spec().transport == model::TransportName::Udp;
    let roles = if directions.len() > 1 { ["[TX-C]", "[RX-C]"] } else { ["", ""] };
    let role = |direction: &DirectionResult| if direction.outbound { roles[0] } else { roles[1] };
    let mut text = greeting(test);
    let column = if roles[0].is_empty() { "" } else { "[Role]" };
    let head = |last: &str| format!("[ ID]{column} Interval           Transfer     Bitrate         {last}\n");
    let receiving = directions.iter().any(|direction| !direction.outbound);
    text.push_str(&head(match (udp, receiving) {
        (true, true) => "Jitter    Lost/Total Datagrams",
        (true, false) => "Total Datagrams",
        (false, _) => "Retr  Cwnd",
    }));
    let mut number = 0;
    // Without readings the losses of an interval are unknown, so a receiver's is left out (iperf3 -i 0).
    let known = |line: &Line<'_>| !udp || line.direction.outbound || line.datagrams.is_some();
    for line in lines(test, &directions).into_iter().filter(known) {
        if line.number > number && test.spec().flows > 1 {
            text.push_str(RULE);
        }
        number = line.number;
        let pad = if receiving { "          " } else { "" };
        let end = match (udp, line.tcp) {
            (true, _) if line.direction.outbound => {
                format!(" {pad} {}", line.amount.bytes.div_ceil(test.spec().mean_block()))
            }
            (true, _) => arrivals(line.datagrams.unwrap_or_default()),
            (false, Some(tcp)) if line.is_sum => format!("  {:3}           ", tcp.retransmits),
            (false, Some(tcp)) => format!("  {:3}   {}     ", tcp.retransmits, bytes(tcp.cwnd_bytes as f64)),
            (false, None) => " ".repeat(16),
        };
        let start = opening(&line.id, role(line.direction), line.start_ns, line.amount);
        let _ = writeln!(text, "{start}{end}  {}", if line.omitted { "(omitted)" } else { "" });
    }
    text.push_str(RULE);
    text.push_str(&head(if udp { "Jitter    Lost/Total Datagrams" } else { "Retr" }));
    let mut first = FIRST_ID;
    for direction in &directions {
        let shares = shares(test, direction);
        for (share, number) in shares.iter().zip(0..) {
            let id = format!("[{:3}]", first + number * NEXT_ID);
            text.push_str(&ends(&id, role(direction), direction, share, udp));
        }
        first += test.spec().flows * NEXT_ID;
        if test.spec().flows > 1 {
            text.push_str(&ends("[SUM]", role(direction), direction, &all_connections(direction), udp));
        }
    }
    text.push_str("\niperf Done.\n");
    Ok(text)
}

/// A line of an interval.
struct Line<'a> {
    direction: &'a DirectionResult,
    /// The interval's number.
    number: usize,
    id: String,
    /// Whether it is that of several connections together.
    is_sum: bool,
    start_ns: u64,
    amount: Amount,
    omitted: bool,
    tcp: Option<TcpAtEnd>,
    datagrams: Option<Arrivals>,
}

/// The lines of all intervals by time, outbound before return, and connections before their sum.
fn lines<'a>(test: &Test<'_>, directions: &'a [DirectionResult]) -> Vec<Line<'a>> {
    let flows = test.spec().flows;
    let mut all = Vec::new();
    for (direction, index) in directions.iter().zip(0..) {
        let id = |at: u32| format!("[{:3}]", FIRST_ID + (index * flows + at) * NEXT_ID);
        for (number, part) in test.merged_intervals(direction.outbound).into_iter().enumerate() {
            let ns = part.end_ns - part.start_ns;
            let line = |id, is_sum, bytes, tcp, datagrams| Line {
                direction,
                number,
                id,
                is_sum,
                start_ns: part.start_ns,
                amount: Amount { bytes, ns },
                omitted: part.omitted,
                tcp,
                datagrams,
            };
            let several = part.streams.iter().zip(0..).filter(|_| flows > 1);
            all.extend(several.map(|(own, at)| line(id(at), false, own.bytes, own.tcp, own.datagrams)));
            let whole = if flows > 1 { "[SUM]".to_owned() } else { id(0) };
            all.push(line(whole, flows > 1, part.bytes, part.tcp, part.datagrams));
        }
    }
    // Stable: the directions stay in their order.
    all.sort_by_key(|line| line.number);
    all
}

/// Jitter, lost and all datagrams of an interval.
fn arrivals(arrivals: Arrivals) -> String {
    let jitter_ms = arrivals.jitter_ns.unwrap_or(0) as f64 / 1e6;
    format!("  {jitter_ms:5.3} ms  {}/{} ({}%)", arrivals.lost, arrivals.packets, two_digits(arrivals.lost_percent()))
}

/// The target and the connections.
fn greeting(test: &Test<'_>) -> String {
    let host = test.host();
    let sockets = test.trials.first().map(|trial| &trial.near.flows);
    let pairs: Vec<(SocketAddr, SocketAddr)> = sockets
        .into_iter()
        .flatten()
        .filter_map(|flow| Some((flow.socket.local.as_ref()?.parse().ok()?, flow.socket.peer.as_ref()?.parse().ok()?)))
        .collect();
    let mut text = match pairs.first() {
        Some((_, peer)) => format!("Connecting to host {host}, port {}\n", peer.port()),
        None => format!("Connecting to host {host}\n"),
    };
    if test.outbound_flags() == [false] {
        let _ = writeln!(text, "Reverse mode, remote host {host} is sending");
    }
    for ((local, peer), number) in pairs.iter().zip(0_u32..) {
        let id = FIRST_ID + number * NEXT_ID;
        let (from, to) = (local.ip().to_canonical(), peer.ip().to_canonical());
        let _ = writeln!(text, "[{id:3}] local {from} port {} connected to {to} port {}", local.port(), peer.port());
    }
    text
}

/// `[ ID] start-end sec  transfer  bitrate`.
fn opening(id: &str, role: &str, start_ns: u64, amount: Amount) -> String {
    let (from, to) = (seconds(start_ns), seconds(start_ns + amount.ns));
    let rate = bits_per_second(rate(amount.bytes, amount.ns));
    format!("{id}{role} {from:6.2}-{to:<6.2} sec  {}  {rate}", bytes(amount.bytes as f64))
}

/// All connections of a direction as one.
fn all_connections(direction: &DirectionResult) -> Share {
    let mut tcp = TcpRange::default();
    direction.shares.iter().for_each(|share| tcp.join(share.tcp));
    let DirectionResult { sent, received, retransmits, datagrams, .. } = *direction;
    Share { sent: sent.bytes, received: received.bytes, retransmits, datagrams, tcp }
}

/// The connections that have a line. A single one has the sums of its direction. The counts of several include the warm-up, so
/// with a warm-up there is only the sum.
pub(super) fn shares(test: &Test<'_>, direction: &DirectionResult) -> Vec<Share> {
    match () {
        () if test.spec().flows == 1 => vec![all_connections(direction)],
        () if test.spec().warmup_ns > 0 => Vec::new(),
        () => direction.shares.clone(),
    }
}

/// The lines of a sender and its receiver.
fn ends(id: &str, role: &str, direction: &DirectionResult, share: &Share, udp: bool) -> String {
    let sent = opening(id, role, 0, Amount { bytes: share.sent, ns: direction.sent.ns });
    let received = opening(id, role, 0, Amount { bytes: share.received, ns: direction.received.ns });
    if udp {
        let counts =
            share.datagrams.map_or_else(String::new, |Datagrams { sent, .. }| format!("  0.000 ms  0/{sent} (0%)"));
        let lost = share.datagrams.map_or_else(String::new, |datagrams| {
            let percent = two_digits(datagrams.lost_percent());
            let jitter = datagrams.jitter_ms().unwrap_or(0.0);
            format!("  {jitter:5.3} ms  {}/{} ({percent}%)", datagrams.lost, datagrams.sent)
        });
        return format!("{sent}{counts}  sender\n{received}{lost}  receiver\n");
    }
    let retransmitted =
        share.retransmits.map_or_else(|| "                  ".to_owned(), |count| format!("  {count:3}             "));
    format!("{sent}{retransmitted}sender\n{received}                  receiver\n")
}

#[cfg(test)]
mod tests {
    use crate::formats::peers::round_trip::{recorded, rendered};

    #[test]
    fn a_run_with_the_recorded_counts_gives_the_recorded_text() {
        for name in ["tcp", "reverse", "udp", "both", "two-flows"] {
            let (run, text) = recorded::iperf3(name);
            assert_eq!(rendered("iperf3", &run), text, "{name}");
        }
    }

    #[test]
    fn losses_are_counted_at_the_receiver() {
        let (mut run, _) = recorded::iperf3("udp");
        let far = &mut run.outcomes[0].trials[0].far;
        let counts = far.datagrams.as_mut().unwrap();
        (counts.received, counts.jitter_ns) = (400, Some(14_400));
        let text = rendered("iperf3", &run);
        assert!(
            text.contains("0.000 ms  0/425 (0%)  sender\n") && text.contains("0.014 ms  25/425 (5.9%)  receiver\n")
        );
    }
}
