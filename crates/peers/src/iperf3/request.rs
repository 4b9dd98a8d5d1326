//! Translates between a spec and iperf3's parameters.

use model::{Direction, EndOptions, Engine, Observe, Pattern, Program, SendBy, Spec, Stop, TransportName};
use peer_wire::iperf3::{Parameters, Protocol, ServerFault};
use text::{Said, Text, say};

use crate::capabilities::uncarried;
use crate::{ProgramError, ServiceLimits};

const SECOND_NS: u64 = 1_000_000_000;
/// How long a server waits for data before it gives a test up, as iperf3's `--rcv-timeout` has it, ns.
const STALL_NS: u64 = 120 * SECOND_NS;
/// iperf3's longest burst in blocks.
const MOST_BURST: u64 = 1_000;

/// Refuses what iperf3's protocol cannot express.
pub(super) fn check(spec: &Spec) -> Result<(), ProgramError> {
    fn refuse(what: impl Into<Text>, remedy: impl Into<Text>) -> Result<(), ProgramError> {
        Err(ProgramError::unsupported(say!("{} with iperf3", what.into()), remedy))
    }
    spec.check().map_err(|error| ProgramError::unsupported("these settings", error.say()))?;
    let udp = spec.transport == TransportName::Udp;
    if spec.transport != TransportName::Tcp && !udp {
        return refuse(say!("`--transport {}`", spec.transport), say!("use TCP, or UDP with `--udp`"));
    }
    if spec.pattern != Pattern::Stream {
        return refuse(spec.pattern.name(), say!("only streams are supported: `thru stream HOST --speak iperf3`"));
    }
    let blocks = if udp { 16..=65_507 } else { 1..=1 << 20 };
    if !blocks.contains(&spec.block) {
        let (least, most) = blocks.into_inner();
        return refuse(say!("`--block {}`", spec.block), say!("use {least} to {most} bytes"));
    }
    if !(1..=128).contains(&spec.flows) {
        return refuse(say!("`--flows {}`", spec.flows), "use 1 to 128");
    }
    let warmup = spec.warmup_ns;
    if !warmup.is_multiple_of(SECOND_NS) || warmup > 600 * SECOND_NS {
        return refuse(say!("`--warmup` of a fraction of a second, or of more than 600 s"), "use whole seconds");
    }
    if let Stop::TimeNs(ns) = spec.stop
        && ns > 86_400 * SECOND_NS
    {
        return refuse("a trial of more than a day", say!("use `--time 86400s` or less"));
    }
    if warmup > 0 && !matches!(spec.stop, Stop::TimeNs(_)) {
        return refuse(say!("`--warmup` with a count"), say!("use `--time`"));
    }
    if spec.far.pin.len() > 1 {
        return refuse(say!("`--pin` to several cores at the far end"), "it takes one core");
    }
    if let Some(what) = uncarried(spec, Program::Iperf3) {
        return refuse(what, "not supported by its protocol; leave it out");
    }
    let (near, far) = (&spec.near, &spec.far);
    let alike = [
        (near.nodelay == far.nodelay, say!("`--nodelay`")),
        (near.mss == far.mss, say!("`--mss`")),
        (near.cc == far.cc, say!("`--cc`")),
        (near.dscp == far.dscp, say!("`--dscp`")),
        (near.max_pacing_bps == far.max_pacing_bps, say!("`--pacing`")),
        (
            near.sndbuf == far.sndbuf && near.rcvbuf == far.rcvbuf && near.sndbuf == near.rcvbuf,
            say!("`--sndbuf` and `--rcvbuf`"),
        ),
    ];
    match alike.into_iter().find(|(same, _)| !same) {
        Some((_, what)) => refuse(
            say!("different values of {what}"),
            "it sets the same value for both ends and both buffers; give one value",
        ),
        None => Ok(()),
    }
}

/// The parameters for a server.
pub(super) fn parameters(spec: &Spec) -> Result<Parameters, ProgramError> {
    check(spec)?;
    let protocol = if spec.transport == TransportName::Udp { Protocol::Udp } else { Protocol::Tcp };
    let seconds = |ns: u64| u32::try_from(ns.div_ceil(SECOND_NS)).unwrap_or(u32::MAX);
    let mut requested = Parameters::new(protocol, 0);
    requested.omit_s = seconds(spec.warmup_ns);
    match spec.stop {
        Stop::TimeNs(ns) => requested.time_s = seconds(ns.saturating_sub(spec.warmup_ns)).max(1),
        Stop::Bytes(bytes) => requested.bytes = bytes,
        Stop::Blocks(blocks) | Stop::Transactions(blocks) => requested.blocks = blocks,
        Stop::AboutNs(_) => {
            let remedy = "use thru stream for a single size";
            return Err(ProgramError::unsupported("a point of a curve with iperf3", remedy));
        }
    }
    requested.parallel = spec.flows;
    requested.reverse = spec.direction == Direction::Reverse;
    requested.bidirectional = spec.direction == Direction::Both;
    requested.block_bytes = u32::try_from(spec.block).ok();
    requested.rate_bps = spec.rate_bps.map(|bps| (bps / u64::from(spec.flows)).max(1));
    requested.burst = spec.burst.map(|bytes| bytes.div_ceil(spec.block).clamp(1, MOST_BURST) as u32);
    requested.mss_bytes = spec.far.mss;
    requested.nodelay = spec.far.nodelay == Some(true);
    requested.window_bytes = spec.far.sndbuf.and_then(|bytes| u32::try_from(bytes).ok());
    requested.congestion.clone_from(&spec.far.cc);
    requested.tos = spec.far.dscp.map(|dscp| dscp << 2);
    requested.fq_rate_bps = spec.far.max_pacing_bps;
    requested.server_affinity = spec.far.pin.first().copied();
    requested.zerocopy = spec.engine.send == SendBy::Sendfile;
    requested.wide_counters = protocol == Protocol::Udp;
    // The server's output may contain its version; it costs a few hundred bytes after the test.
    requested.get_server_output = true;
    requested.client_version = Some(env!("CARGO_PKG_VERSION").into());
    Ok(requested)
}

/// The measurement that a client requests, as the passive end runs it. The client decides when it ends, but
/// over TCP this end sends no more than a requested count. Over UDP datagrams may be lost, and a client that
/// counts them waits for others.
pub(super) fn spec(requested: &Parameters) -> Spec {
    let udp = requested.protocol == Protocol::Udp;
    let block = u64::from(requested.block());
    let window = requested.window_bytes.map(u64::from);
    let options = EndOptions {
        sndbuf: window,
        rcvbuf: window,
        nodelay: (!udp).then_some(requested.nodelay),
        cc: requested.congestion.clone().filter(|_| !udp),
        mss: requested.mss_bytes.filter(|_| !udp),
        dscp: requested.tos.map(|tos| tos >> 2),
        max_pacing_bps: requested.fq_rate_bps,
        pin: requested.server_affinity.into_iter().collect(),
        ..EndOptions::default()
    };
    let stop = match ((requested.reverse || requested.bidirectional) && !udp, requested.bytes, requested.blocks) {
        (true, bytes, _) if bytes > 0 => Stop::Bytes(bytes),
        (true, _, blocks) if blocks > 0 => Stop::Blocks(blocks),
        _ => Stop::TimeNs(7 * 86_400 * SECOND_NS),
    };
    let send = if requested.zerocopy && !udp { SendBy::Sendfile } else { SendBy::Copy };
    Spec {
        block,
        flows: requested.parallel,
        direction: match (requested.bidirectional, requested.reverse) {
            (true, _) => Direction::Both,
            (_, true) => Direction::Reverse,
            _ => Direction::Send,
        },
        stop,
        warmup_ns: u64::from(requested.omit_s) * SECOND_NS,
        rate_bps: requested.rate_bps.map(|bps| bps.saturating_mul(u64::from(requested.parallel))),
        burst: requested.burst.map(|blocks| u64::from(blocks) * block),
        engine: Engine { send, ..Engine::default() },
        observe: Observe::Off,
        interval_ns: 0,
        stall_ns: STALL_NS,
        far: options,
        ..Spec::new(if udp { "udp" } else { "tcp" }, Pattern::Stream)
    }
}

/// Why a client is refused, if it is.
pub(super) fn refusal(requested: &Parameters, spec: &Spec, limits: &ServiceLimits) -> Option<(ServerFault, Text)> {
    let span_ns = u64::from(requested.time_s).saturating_add(u64::from(requested.omit_s)) * SECOND_NS;
    let directions = if requested.bidirectional { 2 } else { 1 };
    let whole = spec.rate_bps.map(|bps| bps.saturating_mul(directions));
    if requested.streams() > limits.flows {
        return Some((
            ServerFault::Streams,
            say!("{} streams; raise `--max-flows` above {}", requested.streams(), limits.flows),
        ));
    }
    if span_ns > limits.hold_ns {
        return Some((ServerFault::TooLong, say!("{} s; raise `--max-time`", span_ns / SECOND_NS)));
    }
    if limits.rate_bps.is_some_and(|most| whole.is_none_or(|whole| whole > most)) {
        return Some((ServerFault::Rate, say!("a rate above `--max-rate`, or none")));
    }
    engine::transport::check_options(model::Role::Passive, spec).err().map(|error| {
        let fault = if requested.congestion.is_some() { ServerFault::Congestion } else { ServerFault::Buffer };
        (fault, error.say())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_and_its_parameters_agree() {
        let options = EndOptions { mss: Some(1_200), nodelay: Some(true), dscp: Some(10), ..EndOptions::default() };
        let spec = Spec {
            flows: 3,
            direction: Direction::Both,
            stop: Stop::TimeNs(1_500_000_000),
            rate_bps: Some(30_000_000),
            burst: Some(1 << 20),
            near: options.clone(),
            far: options,
            ..Spec::new("tcp", Pattern::Stream)
        };
        let requested = parameters(&spec).unwrap();
        assert_eq!(
            (requested.time_s, requested.parallel, requested.streams(), requested.rate_bps),
            (2, 3, 6, Some(10_000_000))
        );
        assert_eq!((requested.burst, requested.tos, requested.mss_bytes), (Some(8), Some(40), Some(1_200)));
        let read = Parameters::from_json(&requested.to_json()).unwrap();
        let served = super::spec(&read);
        assert_eq!((served.flows, served.direction, served.rate_bps), (3, Direction::Both, Some(30_000_000)));
        assert_eq!((served.far.clone(), served.block, served.burst), (spec.far.clone(), spec.block, spec.burst));
    }

    #[test]
    fn unsupported_options_are_named_with_a_remedy() {
        let said = |change: fn(&mut Spec)| {
            let mut spec = Spec::new("tcp", Pattern::Stream);
            change(&mut spec);
            check(&spec).unwrap_err().to_string()
        };
        assert!(
            said(|spec| spec.near.sndbuf = Some(1 << 16)).contains("different values of `--sndbuf` and `--rcvbuf`")
        );
        assert!(said(|spec| spec.far.cc = Some("reno".into())).contains("different values of `--cc`"));
        assert!(said(|spec| spec.probe = Some(10)).contains("`--probe` with iperf3: not supported"));
        assert!(said(|spec| spec.warmup_ns = 1).contains("whole seconds"));
        assert!(said(|spec| spec.block = 2 << 20).contains("use 1 to 1048576 bytes"));
        assert!(said(|spec| spec.transport = "tls".into()).contains("use TCP"));
    }

    #[test]
    fn a_client_beyond_the_limits_is_refused_with_iperf3s_number() {
        let limits = ServiceLimits {
            unauthenticated: 1,
            hold_ns: 10 * SECOND_NS,
            flows: 2,
            rate_bps: Some(1_000_000),
            memory_bytes: 8 << 30,
        };
        let fault = |change: fn(&mut Parameters)| {
            let mut requested = Parameters::new(Protocol::Tcp, 5);
            requested.rate_bps = Some(1_000_000);
            change(&mut requested);
            refusal(&requested, &spec(&requested), &limits).map(|(fault, _)| fault)
        };
        assert_eq!(fault(|_| {}), None);
        assert_eq!(fault(|requested| requested.parallel = 3), Some(ServerFault::Streams));
        assert_eq!(fault(|requested| requested.time_s = 11), Some(ServerFault::TooLong));
        assert_eq!(fault(|requested| requested.rate_bps = None), Some(ServerFault::Rate));
        assert_eq!(fault(|requested| requested.bidirectional = true), Some(ServerFault::Rate));
        assert_eq!(fault(|requested| requested.congestion = Some("nosuch".into())), Some(ServerFault::Congestion));
    }
}
