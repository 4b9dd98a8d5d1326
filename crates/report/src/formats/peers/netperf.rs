//! netperf 2.7's classic tables, as recorded from the program.
//!
//! Throughputs are the outcome's value, the one with the interval; times and messages are means over the trials. Connections are
//! summed. A socket size is the first one, as netperf prints it; an unreported one is -1. The columns of CPU use are those of -c -C; they are there if both ends' use is
//! known. Tests of one kind that follow each other have one head, as users' tables and netperf's own scripts, which call it with `-P 0`
//! after the first. Sources: netperf 2.7.1, `src/nettest_omni.c`, `src/nettest_bsd.c`, `doc/examples`; its manual.

use core::net::SocketAddr;

use model::{Direction, EndOptions, Inventory, Pattern, RunKind, SendBy, SocketFacts, Spec, TransportName};

use super::quantity::seconds;
use super::test::{DirectionResult, Test, ends};
use super::{NETPERF, each_test};
use crate::{NoForm, Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    let mut last = String::new();
    each_test(view, &NETPERF, "", |test| {
        let (head, rows) = table(test)?;
        if head == last {
            return Ok(rows);
        }
        let between = if last.is_empty() { "" } else { "\n" };
        last.clone_from(&head);
        Ok(format!("{between}{head}{rows}"))
    })
}

/// Accepts what netperf has a test for.
pub(super) fn takes(kind: RunKind, spec: &Spec) -> Result<(), NoForm> {
    if spec.pattern.is_transactions() && super::is_tcp_or_udp(spec) {
        return Ok(());
    }
    super::one_way(kind, spec)
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
    /// CPU use of the hosts: of the sender and the receiver of a stream, of the near and the far end of transactions.
    pub(super) cpu: Option<[CpuUse; 2]>,
}

/// A host's CPU use in a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CpuUse {
    /// Busy time of all cores, percent of their time.
    pub(super) percent: f64,
    /// CPU time for each KiB of payload, or for each transaction, µs.
    pub(super) demand_us: f64,
}

impl Figures {
    pub(super) fn of(test: &Test<'_>) -> Self {
        let spec = test.spec();
        let kind = match (spec.pattern, &spec.transport) {
            (Pattern::Rr | Pattern::Crr, _) => Kind::Transactions,
            (_, TransportName::Udp) => Kind::Datagrams,
            _ => Kind::Stream,
        };
        let value = test.outcome.estimate.as_ref().map_or_else(|| carried(test, kind), |estimate| estimate.value);
        let [near, far] = first_buffers(test);
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
        let elapsed_ns = times.sum::<u64>() / trials.max(1);
        let cpu = imported_cpu(test, kind).or_else(|| measured_cpu(test, kind, value));
        Self { kind, elapsed_ns, value, buffers, far_buffers: far, cpu }
    }
}

/// What a test without a value carried: netperf prints a row of a stalled test, too.
fn carried(test: &Test<'_>, kind: Kind) -> f64 {
    let outbound = test.spec().direction != Direction::Reverse;
    let moved = test.trials.iter().map(|trial| match kind {
        Kind::Transactions => (trial.near.transactions as f64, trial.near.receiving_ns),
        Kind::Stream | Kind::Datagrams => {
            let arrived = super::test::arrived(ends(trial, outbound).1);
            (arrived.bytes as f64 * 8.0, arrived.ns)
        }
    });
    let (amount, ns) = moved.fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if ns == 0 { 0.0 } else { amount / seconds(ns) }
}

/// CPU use as an imported table printed it.
fn imported_cpu(test: &Test<'_>, kind: Kind) -> Option<[CpuUse; 2]> {
    let rows = &test.run.header.origin.as_ref()?.rows;
    let row = rows.iter().find(|row| row.cell == test.outcome.cell)?;
    let of = |percent: &str, demand: &str| {
        let figure = |name: &str| row.figures.get(name).copied();
        Some(CpuUse { percent: figure(percent)?, demand_us: figure(demand)? })
    };
    let [first, second] = match kind {
        Kind::Transactions => {
            [of("local_cpu_percent", "local_us_per_transaction"), of("remote_cpu_percent", "remote_us_per_transaction")]
        }
        _ => [of("send_cpu_percent", "send_us_per_kibibyte"), of("receive_cpu_percent", "receive_us_per_kibibyte")],
    };
    Some([first?, second?])
}

/// The shortest trial, in ticks of the kernel, over which a host's CPU use is shown.
const MIN_TICKS: u64 = 20;

/// CPU use by the busy time of all cores of a host around the trials.
fn measured_cpu(test: &Test<'_>, kind: Kind, value: f64) -> Option<[CpuUse; 2]> {
    let reverse = test.spec().direction == Direction::Reverse && kind != Kind::Transactions;
    let of = |near: bool| {
        let host = if near { &test.run.header.near } else { &test.run.header.far };
        let cores = f64::from(host.cores.filter(|cores| *cores > 0)?);
        let (mut busy, mut ns) = (0, 0);
        for trial in &test.trials {
            let spent = (if near { &trial.near } else { &trial.far }).spent.as_ref()?;
            let length = [&trial.near, &trial.far].map(|end| end.sending_ns.max(end.receiving_ns)).into_iter().max()?;
            // The kernel counts busy time in ticks, so that a share of a few of them says nothing.
            if spent.host_resolution_ns.is_some_and(|tick| length < MIN_TICKS * tick) {
                return None;
            }
            busy += spent.host_ns?;
            ns += length;
        }
        let (busy_us, elapsed_s) = (busy as f64 / 1e3, seconds(ns));
        let work = if kind == Kind::Transactions { value } else { value / 8.0 / 1024.0 } * elapsed_s;
        (work > 0.0).then(|| CpuUse {
            percent: (busy_us / (elapsed_s * 1e6 * cores) * 100.0).min(100.0),
            demand_us: busy_us / work,
        })
    };
    let (first, second) = (of(!reverse)?, of(reverse)?);
    Some([first, second])
}

/// Receive and send buffer of both ends' sockets as they began. A size that nobody requested is the kernel's default, which TCP has
/// changed by the end of a trial; the old TCP_SENDFILE prints what it is then.
fn first_buffers(test: &Test<'_>) -> [[i64; 2]; 2] {
    let (spec, header) = (test.spec(), &test.run.header);
    let tcp =
        matches!(spec.transport, TransportName::Tcp | TransportName::Mptcp) && spec.engine.send != SendBy::Sendfile;
    let of = |facts, end: &EndOptions, host: &Inventory| {
        let default = |name: &str| host.sysctl.get(name)?.split_whitespace().nth(1)?.parse().ok();
        let first = |name, requested: Option<u64>, size| match default(name).filter(|_| tcp && requested.is_none()) {
            Some(default) if size >= 0 => default,
            _ => size,
        };
        let [receive, send] = buffers(facts);
        [first("net.ipv4.tcp_rmem", end.rcvbuf, receive), first("net.ipv4.tcp_wmem", end.sndbuf, send)]
    };
    [of(test.near_socket(), &spec.near, &header.near), of(test.far_socket(), &spec.far, &header.far)]
}

/// Receive and send buffer.
fn buffers(facts: Option<&SocketFacts>) -> [i64; 2] {
    let size = |bytes: Option<u64>| bytes.and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(-1);
    facts.map_or([-1, -1], |facts| [size(facts.rcvbuf), size(facts.sndbuf)])
}

/// The head of a test's table, and its rows.
fn table(test: &Test<'_>) -> Result<(String, String), NoForm> {
    let (spec, figures) = (test.spec(), Figures::of(test));
    let time = seconds(figures.elapsed_ns);
    let [receive, send] = figures.buffers;
    let megabits = figures.value / 1e6;
    let head = format!("{}{}", title(test, name(figures.kind, spec)), columns(figures.kind, figures.cpu.is_some()));
    let rows = match figures.kind {
        Kind::Stream => {
            let start = format!("{receive:6} {send:6} {:6}    {time:<6.2}", spec.block);
            match figures.cpu {
                None => format!("{start}   {megabits:7.2}   \n"),
                Some([sender, receiver]) => format!(
                    "{start}     {megabits:7.2}   {:<6.2}   {:<6.2}   {:<6.3}  {:<6.3} \n",
                    sender.percent, receiver.percent, sender.demand_us, receiver.demand_us
                ),
            }
        }
        Kind::Datagrams => {
            let directions = test.directions()?;
            let [sent, received] = messages(test, &directions[0]);
            let sender = test.outcome.summary.sender_bps.unwrap_or(0.0) / 1e6;
            let cpu = |at: usize| match figures.cpu {
                None => String::new(),
                Some(both) => format!("     {:<6.2}   {:<6.3}", both[at].percent, both[at].demand_us),
            };
            format!(
                "{send:6}  {:6}   {:<6.2}   {sent:8}      0    {sender:7.2}{}\n\
                 {receive:6}           {time:<6.2}   {received:8}           {megabits:7.2}{}\n\n",
                spec.block,
                seconds(directions[0].sent.ns / test.trials.len() as u64),
                cpu(0),
                cpu(1),
            )
        }
        Kind::Transactions => {
            let [far_receive, far_send] = figures.far_buffers;
            let cpu = figures.cpu.map_or_else(
                || "   ".to_owned(),
                |[near, far]| {
                    format!(
                        " {:<6.2} {:<6.2} {:<6.3}  {:<6.3} ",
                        near.percent, far.percent, near.demand_us, far.demand_us
                    )
                },
            );
            format!(
                "{send:<6} {receive:<6} {:<6}   {:<6}  {time:<6.2}   {:<8.2}{cpu}\n{far_send:<6} {far_receive:<6}\n",
                spec.block,
                spec.reply_bytes(),
                figures.value,
            )
        }
    };
    Ok((head, rows))
}

/// The names of the columns, without or with those of CPU use.
fn columns(kind: Kind, cpu: bool) -> &'static str {
    match (kind, cpu) {
        (Kind::Stream, false) => {
            "Recv   Send    Send                          \nSocket Socket  Message  Elapsed              \n\
             Size   Size    Size     Time     Throughput  \nbytes  bytes   bytes    secs.    10^6bits/sec  \n\n"
        }
        (Kind::Stream, true) => {
            "Recv   Send    Send                          Utilization       Service Demand\n\
             Socket Socket  Message  Elapsed              Send     Recv     Send    Recv\n\
             Size   Size    Size     Time     Throughput  local    remote   local   remote\n\
             bytes  bytes   bytes    secs.    10^6bits/s  % S      % S      us/KB   us/KB\n\n"
        }
        (Kind::Datagrams, false) => {
            "Socket  Message  Elapsed      Messages                \n\
             Size    Size     Time         Okay Errors   Throughput\n\
             bytes   bytes    secs            #      #   10^6bits/sec\n\n"
        }
        (Kind::Datagrams, true) => {
            "Socket  Message  Elapsed      Messages                   CPU      Service\n\
             Size    Size     Time         Okay Errors   Throughput   Util     Demand\n\
             bytes   bytes    secs            #      #   10^6bits/sec % SS     us/KB\n\n"
        }
        (Kind::Transactions, false) => {
            "Local /Remote\nSocket Size   Request  Resp.   Elapsed  Trans.\n\
             Send   Recv   Size     Size    Time     Rate         \n\
             bytes  Bytes  bytes    bytes   secs.    per sec   \n\n"
        }
        (Kind::Transactions, true) => {
            "Local /Remote\nSocket Size   Request  Resp.   Elapsed  Trans.   CPU    CPU    S.dem   S.dem\n\
             Send   Recv   Size     Size    Time     Rate     local  remote local   remote\n\
             bytes  bytes  bytes    bytes   secs.    per sec  % S    % S    us/Tr   us/Tr\n\n"
        }
    }
}

fn name(kind: Kind, spec: &Spec) -> &'static str {
    match (kind, &spec.transport, spec.pattern) {
        (Kind::Stream, ..) => stream_name(spec),
        (Kind::Datagrams, ..) => "MIGRATED UDP STREAM",
        (Kind::Transactions, TransportName::Udp, _) => "MIGRATED UDP REQUEST/RESPONSE",
        (Kind::Transactions, _, Pattern::Crr) => "MIGRATED TCP Connect/Request/Response",
        (Kind::Transactions, ..) => "MIGRATED TCP REQUEST/RESPONSE",
    }
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
    let burst = if spec.pattern == Pattern::Rr { " : first burst 0" } else { "" };
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

    #[test]
    fn a_socket_has_the_size_that_it_began_with() {
        let (mut run, text) = recorded::netperf("TCP_STREAM");
        let trial = &mut run.outcomes[0].trials[0];
        (trial.near.flows[0].socket.sndbuf, trial.far.flows[0].socket.rcvbuf) = (Some(4_194_304), Some(21_886_072));
        assert_eq!(rendered("netperf", &run), text);
        assert!(rendered("netperf-k", &run).contains("LSS_SIZE_END=4194304\n"));
        // One that was requested stays as it is.
        run.outcomes[0].spec.near.sndbuf = Some(2_097_152);
        assert!(rendered("netperf", &run).contains("131072 4194304  16384"), "{}", rendered("netperf", &run));
    }

    #[test]
    fn a_stalled_test_is_a_row_with_what_it_carried() {
        let (mut run, _) = recorded::netperf("TCP_STREAM");
        let outcome = &mut run.outcomes[0];
        outcome.estimate = None;
        outcome.trials.truncate(1);
        let trial = &mut outcome.trials[0];
        (trial.value, trial.far.bytes_received, trial.far.receiving_ns) = (None, 8_000_000, 10_000_000_000);
        (trial.far.measured, trial.verdicts) = (None, vec![model::Verdict::Stalled]);
        let text = rendered("netperf", &run);
        let row: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(row[3..], ["10.00", "6.40"], "{text}");
    }

    #[test]
    fn tests_of_one_kind_have_one_head() {
        let (mut run, text) = recorded::netperf("TCP_STREAM");
        let mut second = run.outcomes[0].clone();
        second.spec.block = 4096;
        let mut reverse = recorded::netperf("TCP_MAERTS").0.outcomes.remove(0);
        (second.cell, reverse.cell) = (1, 2);
        run.outcomes.extend([second, reverse]);
        let table = rendered("netperf", &run);
        let row = text.lines().last().unwrap();
        assert!(
            table
                .starts_with(&format!("{text}{}\n\nMIGRATED TCP MAERTS TEST", row.replace(" 16384    ", "  4096    "))),
            "{table}"
        );
        let read = import::read(table.as_bytes(), None).unwrap();
        let blocks: Vec<u64> = read.imported.iter().flat_map(|one| &one.rows).map(|row| row.spec.block).collect();
        assert_eq!((blocks, read.refused.len()), (vec![16_384, 4_096, 16_384], 0));
    }

    #[test]
    fn a_table_with_cpu_use_is_written_as_it_was() {
        let text = include_str!("../../../../import/tests/data/netperf27_classic_table.txt");
        let imported = import::read(text.as_bytes(), None).unwrap().imported.remove(0);
        let run = import::assemble(imported, &import::ListingSource::default(), &[]);
        let table = rendered("netperf", &run);
        // The title has no word of the confidence that was asked for.
        let rows = |text: &str| text.lines().skip(1).map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(rows(&table), rows(text));
        let keys = rendered("netperf-k", &run);
        assert!(keys.contains("LOCAL_CPU_UTIL=89.56\nLOCAL_SD=0.864\n"), "{keys}");
        // Of one end alone there are no columns.
        let alone = text.replace("89.56    0.864   0.864", "-1.00    0.864   -1.000");
        let imported = import::read(alone.as_bytes(), None).unwrap().imported.remove(0);
        assert_eq!(imported.rows[0].figures.get("receive_cpu_percent"), None);
        let run = import::assemble(imported, &import::ListingSource::default(), &[]);
        assert!(!rendered("netperf", &run).contains("Utilization"));
    }

    #[test]
    fn cpu_use_is_that_of_the_hosts() {
        let (mut run, _) = recorded::netperf("TCP_RR");
        (run.header.near.cores, run.header.far.cores) = (Some(2), Some(4));
        let trial = &mut run.outcomes[0].trials[0];
        for (end, host_ns) in [(&mut trial.near, 500_000_000), (&mut trial.far, 2_000_000_000)] {
            end.spent = Some(model::Spent { host_ns: Some(host_ns), ..model::Spent::default() });
        }
        let table = rendered("netperf", &run);
        // A second: half a core of two, two of four; by 48,719.35 transactions.
        assert!(table.contains("48719.35 25.00  50.00  10.263  41.051"), "{table}");
        let read = import::read(table.as_bytes(), None).unwrap();
        let row = &read.imported[0].rows[0];
        assert_eq!((row.figures["remote_cpu_percent"], row.figures["local_us_per_transaction"]), (50.0, 10.263));
        assert_eq!(row.trial.far.flows[0].socket.sndbuf, Some(16_384), "the second line's");
    }
}
