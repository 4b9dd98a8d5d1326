//! netperf 2.7's classic tables, as recorded from the program.
//!
//! Throughputs are the outcome's value, the one with the interval; times and messages are means over the trials. Connections are
//! summed. An unreported socket size is -1, as in netperf. Sources: netperf 2.7.1, `src/nettest_omni.c`, `src/nettest_bsd.c`.

use core::net::SocketAddr;

use model::{Direction, SendBy, SocketFacts, Spec};

use super::quantity::seconds;
use super::test::{DirectionResult, Test, ends};
use super::{NETPERF, each_test};
use crate::{Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    each_test(view, &NETPERF, "\n", text)
}

/// Accepts what netperf has a test for.
pub(super) fn takes(kind: &str, spec: &Spec) -> Result<(), String> {
    match spec.pattern.as_str() {
        "rr" | "crr" if ["tcp", "mptcp", "udp"].contains(&spec.transport.as_str()) => Ok(()),
        _ => super::one_way(kind, spec),
    }
}

/// A test of netperf's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// TCP_STREAM, TCP_SENDFILE or TCP_MAERTS.
    Stream,
    /// UDP_STREAM. netperf has no such test in the return direction.
    Datagrams,
    /// TCP_RR, TCP_CRR or UDP_RR.
    Transactions,
}

/// The figures of a test in netperf's formats.
pub(super) struct Figures {
    pub(super) kind: Kind,
    /// Mean length of a trial at the end that netperf prints the time of, ns.
    pub(super) elapsed_ns: u64,
    /// The outcome's value: bit/s, or transactions per second.
    pub(super) value: f64,
    /// Receive and send buffer: of the receiver and the sender of a stream, of the near end of transactions; -1 if unreported.
    pub(super) buffers: [i64; 2],
    /// Of transactions, the far end's.
    pub(super) far_buffers: [i64; 2],
}

impl Figures {
    pub(super) fn of(test: &Test<'_>) -> Result<Self, String> {
        let spec = test.spec();
        let kind = match (spec.pattern.as_str(), spec.transport.as_str()) {
            ("rr" | "crr", _) => Kind::Transactions,
            (_, "udp") => Kind::Datagrams,
            _ => Kind::Stream,
        };
        let value = test.outcome.estimate.as_ref().map(|estimate| estimate.value).ok_or("no value")?;
        let [near, far] = [test.near_socket(), test.far_socket()].map(buffers);
        let reverse = spec.direction == Direction::Reverse;
        let buffers = match kind {
            Kind::Transactions => near,
            _ if reverse => [near[0], far[1]],
            _ => [far[0], near[1]],
        };
        let trials = test.trials.len() as u64;
        let times = test.trials.iter().map(|trial| {
            let requester = if trial.near.rtt.is_none() && trial.far.rtt.is_some() { &trial.far } else { &trial.near };
            let end = if kind == Kind::Transactions { requester } else { ends(trial, !reverse).1 };
            super::test::arrived(end).ns
        });
        Ok(Self { kind, elapsed_ns: times.sum::<u64>() / trials.max(1), value, buffers, far_buffers: far })
    }
}

/// Receive and send buffer.
fn buffers(facts: Option<&SocketFacts>) -> [i64; 2] {
    let size = |bytes: Option<u64>| bytes.and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(-1);
    facts.map_or([-1, -1], |facts| [size(facts.rcvbuf), size(facts.sndbuf)])
}

fn text(test: &Test<'_>) -> Result<String, String> {
    let (spec, figures) = (test.spec(), Figures::of(test)?);
    let time = seconds(figures.elapsed_ns);
    let [receive, send] = figures.buffers;
    let megabits = figures.value / 1e6;
    Ok(match figures.kind {
        Kind::Stream => format!(
            "{}Recv   Send    Send                          \nSocket Socket  Message  Elapsed              \n\
             Size   Size    Size     Time     Throughput  \nbytes  bytes   bytes    secs.    10^6bits/sec  \n\n\
             {receive:6} {send:6} {:6}    {time:<6.2}   {megabits:7.2}   \n",
            title(test, stream_name(spec)),
            spec.block
        ),
        Kind::Datagrams => {
            let directions = test.directions()?;
            let [sent, received] = messages(test, &directions[0]);
            let sender = test.outcome.summary.sender_bps.unwrap_or(0.0) / 1e6;
            format!(
                "{}Socket  Message  Elapsed      Messages                \n\
                 Size    Size     Time         Okay Errors   Throughput\n\
                 bytes   bytes    secs            #      #   10^6bits/sec\n\n\
                 {send:6}  {:6}   {:<6.2}   {sent:8}      0    {sender:7.2}\n\
                 {receive:6}           {time:<6.2}   {received:8}           {megabits:7.2}\n\n",
                title(test, "MIGRATED UDP STREAM"),
                spec.block,
                seconds(directions[0].sent.ns / test.trials.len() as u64),
            )
        }
        Kind::Transactions => {
            let name = match (spec.transport.as_str(), spec.pattern.as_str()) {
                ("udp", _) => "MIGRATED UDP REQUEST/RESPONSE",
                (_, "crr") => "MIGRATED TCP Connect/Request/Response",
                _ => "MIGRATED TCP REQUEST/RESPONSE",
            };
            let [far_receive, far_send] = figures.far_buffers;
            format!(
                "{}Local /Remote\nSocket Size   Request  Resp.   Elapsed  Trans.\n\
                 Send   Recv   Size     Size    Time     Rate         \n\
                 bytes  Bytes  bytes    bytes   secs.    per sec   \n\n\
                 {send:<6} {receive:<6} {:<6}   {:<6}  {time:<6.2}   {:<8.2}   \n{far_send:<6} {far_receive:<6}\n",
                title(test, name),
                spec.block,
                spec.reply_bytes(),
                figures.value,
            )
        }
    })
}

fn stream_name(spec: &Spec) -> &'static str {
    match (spec.direction, spec.engine.send) {
        (Direction::Reverse, _) => "MIGRATED TCP MAERTS",
        (_, SendBy::Sendfile) => "TCP SENDFILE",
        _ => "MIGRATED TCP STREAM",
    }
}

/// Datagrams sent and received in a trial, rounded.
fn messages(test: &Test<'_>, direction: &DirectionResult) -> [u64; 2] {
    let trials = test.trials.len() as u64;
    let counts = direction.datagrams.unwrap_or_default();
    [counts.sent, counts.sent.saturating_sub(counts.lost)].map(|sum| (sum + trials / 2) / trials)
}

/// `NAME TEST from ... to HOST () port 0 AF_INET : nodelay`.
pub(super) fn title(test: &Test<'_>, name: &str) -> String {
    let spec = test.spec();
    let peer = test.near_socket().and_then(|socket| socket.peer.as_ref()?.parse::<SocketAddr>().ok());
    let v6 = peer.is_some_and(|peer| peer.ip().to_canonical().is_ipv6());
    let (any, family) = if v6 { ("::", "AF_INET6") } else { ("0.0.0.0", "AF_INET") };
    // Only a requested option is printed; round trips always have TCP_NODELAY here.
    let nodelay = if spec.near.nodelay == Some(true) { " : nodelay" } else { "" };
    let burst = if spec.pattern == "rr" { " : first burst 0" } else { "" };
    let host = test.host();
    format!("{name} TEST from {any} ({any}) port 0 {family} to {host} () port 0 {family}{nodelay}{burst}\n")
}

#[cfg(test)]
mod tests {
    use crate::formats::peers::round_trip::{recorded, rendered};

    #[test]
    fn a_run_with_the_recorded_figures_gives_the_recorded_table() {
        for name in ["TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE", "UDP_STREAM", "TCP_RR", "TCP_CRR", "UDP_RR"] {
            let (run, text) = recorded::netperf(name);
            assert_eq!(rendered("netperf", &run), text, "{name}");
        }
    }
}
