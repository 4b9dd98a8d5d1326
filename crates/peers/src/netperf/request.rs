//! Translates between a spec and netperf's request.

use model::{Direction, EndOptions, Engine, Observe, Pattern, Program, SendBy, Spec, Stop, TransportName};
use peer_wire::netperf::{Flags, OmniRequest, SendingEnd as Transfer, Served};
use text::{Said, Text, say};

use crate::capabilities::uncarried;
use crate::{ProgramError, ServiceLimits};

const SECOND_NS: u64 = 1_000_000_000;
/// How long a receiving server waits beyond the requested time, ns; netserver's own value.
pub(super) const PAD_NS: u64 = 4 * SECOND_NS;
/// The same with a connection per transaction, ns.
const CALL_PAD_NS: u64 = SECOND_NS;
/// Stall limit of a test, ns.
const STALL_NS: u64 = 120 * SECOND_NS;
/// The sendfile bit of a request (netperf's `OMNI_USE_SENDFILE`).
const SENDFILE: u32 = 0x2;
/// Bytes of a datagram at most.
const MOST_DATAGRAM: u64 = 65_507;
/// Linux: invalid argument, as netserver passes it on.
pub(super) const EINVAL: u32 = 22;

/// The request for a server over IP version `ip_version`, or why netperf cannot express the spec.
pub(super) fn request(spec: &Spec, ip_version: u8) -> Result<OmniRequest, ProgramError> {
    check(spec)?;
    let udp = spec.transport == TransportName::Udp;
    let exchanges = spec.pattern != Pattern::Stream;
    let sends = spec.direction == Direction::Reverse;
    let size = |bytes: u64| u32::try_from(bytes).ok();
    let mut flags = Flags::ROUTED.0;
    if !udp && spec.far.nodelay.unwrap_or(exchanges) {
        flags |= Flags::NODELAY.0;
    }
    if spec.pattern == Pattern::Crr {
        flags |= Flags::CONNECT.0;
    }
    if spec.engine.send == SendBy::Sendfile {
        flags |= SENDFILE;
    }
    Ok(OmniRequest {
        served: Served::Omni,
        send_buffer: spec.far.sndbuf.and_then(size),
        send_size: size(spec.block).filter(|_| sends),
        send_width: u32::from(sends),
        request_size: size(spec.block).filter(|_| exchanges),
        receive_buffer: spec.far.rcvbuf.and_then(size),
        receive_size: size(spec.block).filter(|_| udp && !exchanges),
        receive_width: 0,
        response_size: size(spec.reply_bytes()).filter(|_| exchanges),
        flags: Flags(flags),
        length: length(spec)?,
        data_port: spec.far.port.unwrap_or(0),
        ip_version,
        udp,
        direction: match (exchanges, sends) {
            (true, _) => Transfer::Both,
            (_, true) => Transfer::ServerSends,
            _ => Transfer::ServerReceives,
        },
        client_port: spec.near.port.unwrap_or(0),
        tos: spec.far.dscp.map(|dscp| dscp << 2),
        congestion: spec.far.cc.clone().unwrap_or_default(),
    })
}

/// netperf's length of a test: seconds, or a count below zero.
fn length(spec: &Spec) -> Result<i32, ProgramError> {
    let count = match spec.stop {
        Stop::TimeNs(ns) | Stop::AboutNs(ns) => return Ok(i32::try_from(ns.div_ceil(SECOND_NS)).unwrap_or(i32::MAX)),
        Stop::Bytes(bytes) => bytes,
        Stop::Blocks(blocks) => blocks.saturating_mul(spec.block),
        Stop::Transactions(count) => count,
    };
    let counted = i32::try_from(count).map(|count| -count);
    counted.map_err(|_| ProgramError::unsupported(say!("a count of {count} with netperf"), "use 2147483647 or less"))
}

fn check(spec: &Spec) -> Result<(), ProgramError> {
    fn refuse(what: impl Into<Text>, remedy: impl Into<Text>) -> Result<(), ProgramError> {
        Err(ProgramError::unsupported(say!("{} with netperf", what.into()), remedy))
    }
    spec.check().map_err(|error| ProgramError::unsupported("these settings", error.say()))?;
    let udp = spec.transport == TransportName::Udp;
    if spec.transport != TransportName::Tcp && !udp {
        return refuse(say!("`--transport {}`", spec.transport), say!("use TCP, or UDP with `--udp`"));
    }
    let pattern = spec.pattern;
    if ![Pattern::Stream, Pattern::Rr, Pattern::Crr].contains(&pattern)
        || (pattern == Pattern::Crr && udp)
        || spec.is_point()
    {
        return refuse(
            pattern.name(),
            say!("only streams and round trips are supported: `thru stream` or `thru rr HOST --speak netperf`"),
        );
    }
    if udp && spec.block.max(spec.reply_bytes()) > MOST_DATAGRAM {
        return refuse(say!("datagrams of {} bytes", spec.block), say!("use `--block 65507` or less"));
    }
    let reverse = spec.direction == Direction::Reverse;
    if let (true, Stop::TimeNs(ns)) = (spec.direction != Direction::Send, spec.stop)
        && !ns.is_multiple_of(SECOND_NS)
    {
        return refuse(
            say!("`--reverse` or `--both` for a fraction of a second"),
            say!("netserver ends these tests itself; use whole seconds for `--time`"),
        );
    }
    let several = spec.flows > 1 || spec.direction == Direction::Both;
    if several && !matches!(spec.stop, Stop::TimeNs(_)) {
        return refuse("a count with several flows", say!("each flow is a separate test; use `--time`"));
    }
    let both = spec.direction == Direction::Both;
    let others = [
        (both && (udp || pattern != Pattern::Stream), say!("`--both` for anything but TCP streams")),
        (reverse && (udp || pattern != Pattern::Stream), say!("`--reverse` for anything but TCP streams")),
        ((reverse || both) && spec.rate_bps.is_some(), say!("`--rate` with `--reverse` or `--both`")),
        (several && spec.far.port.is_some(), say!("`--data-port` at the far end with several flows")),
        (
            spec.warmup_ns > 0 && pattern == Pattern::Stream && !reverse,
            say!("`--warmup` without `--reverse` or `thru rr`"),
        ),
        (pattern == Pattern::Crr && spec.strategy == model::Strategy::Spin, say!("`--spin` with `--connect`")),
    ];
    let other = others.into_iter().find(|(there, _)| *there).map(|(_, what)| what);
    match other.or_else(|| uncarried(spec, Program::Netperf)) {
        Some(what) => refuse(what, "not supported by its protocol; leave it out"),
        None => Ok(()),
    }
}

/// The measurement that a client requests, as the passive end runs it.
pub(super) fn spec(requested: &OmniRequest) -> Spec {
    let pattern = match requested.direction {
        Transfer::Both if requested.flags.has(Flags::CONNECT) => Pattern::Crr,
        Transfer::Both => Pattern::Rr,
        Transfer::Neither | Transfer::ServerSends | Transfer::ServerReceives => Pattern::Stream,
    };
    let size = |size: Option<u32>| size.filter(|size| *size > 0).map(u64::from);
    let sends = requested.direction == Transfer::ServerSends;
    // netserver's defaults: the kernel's default SO_SNDBUF and SO_RCVBUF.
    let default = match (requested.udp, sends) {
        (true, _) => 1_472,
        (false, true) => 16 << 10,
        (false, false) => 128 << 10,
    };
    let block = match pattern {
        Pattern::Stream => size(if sends { requested.send_size } else { requested.receive_size }).unwrap_or(default),
        _ => size(requested.request_size).unwrap_or(1),
    };
    let far = EndOptions {
        sndbuf: size(requested.send_buffer),
        rcvbuf: size(requested.receive_buffer),
        nodelay: (!requested.udp).then(|| requested.flags.has(Flags::NODELAY)),
        dscp: requested.tos.map(|tos| tos >> 2),
        cc: Some(requested.congestion.clone()).filter(|name| !name.is_empty() && !requested.udp),
        ..EndOptions::default()
    };
    Spec {
        block,
        reply: if pattern == Pattern::Stream { None } else { Some(size(requested.response_size).unwrap_or(1)) },
        direction: if sends { Direction::Reverse } else { Direction::Send },
        stop: stop(requested, pattern),
        engine: Engine::default(),
        observe: Observe::Off,
        interval_ns: 0,
        stall_ns: STALL_NS,
        far,
        ..Spec::new(if requested.udp { "udp" } else { "tcp" }, pattern)
    }
}

/// When the passive end stops. Usually the client ends the test; this time is the fallback.
fn stop(requested: &OmniRequest, pattern: Pattern) -> Stop {
    let requested_ns =
        u64::try_from(requested.length).ok().filter(|seconds| *seconds > 0).map(|seconds| seconds * SECOND_NS);
    match (requested.direction, requested_ns) {
        (Transfer::ServerSends, Some(ns)) => Stop::TimeNs(ns),
        (Transfer::ServerSends, None) if requested.length < 0 => {
            Stop::Bytes(u64::from(requested.length.unsigned_abs()))
        }
        (Transfer::Both, None) if requested.length < 0 && !requested.udp => {
            Stop::Transactions(u64::from(requested.length.unsigned_abs()))
        }
        (_, Some(ns)) if pattern == Pattern::Crr => Stop::TimeNs(ns + CALL_PAD_NS),
        (_, Some(ns)) => Stop::TimeNs(ns + PAD_NS),
        (_, None) => Stop::TimeNs(ENDLESS_NS),
    }
}

/// A test without a time, ns: it ends with its client, or with the agent's own limit.
const ENDLESS_NS: u64 = 7 * 86_400 * SECOND_NS;

/// Why a client is refused, if it is: the error number on the wire and the reason for the log.
pub(super) fn refusal(requested: &OmniRequest, spec: &Spec, limits: &ServiceLimits) -> Option<(u32, Text)> {
    let unsupported = |what: &str| Some((peer_wire::netperf::NOT_SUPPORTED, say!("{what} is not supported")));
    match requested.direction {
        Transfer::Neither => return unsupported("TCP_CC (connections only)"),
        Transfer::ServerSends if requested.udp => return unsupported("UDP from the server"),
        _ => {}
    }
    if u64::try_from(requested.length).is_ok_and(|seconds| seconds.saturating_mul(SECOND_NS) > limits.hold_ns) {
        return Some((EINVAL, say!("{} s; raise `--max-time`", requested.length)));
    }
    if let Some(why) = limits.beyond_memory(1, spec.block.max(spec.reply_bytes())) {
        return Some((EINVAL, why));
    }
    engine::transport::check_options(model::Role::Passive, spec).err().map(|error| (EINVAL, error.say()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_netperf_and_their_specs() {
        let reverse = Spec { direction: Direction::Reverse, ..Spec::new("tcp", Pattern::Stream) };
        let cases = [
            (Spec::new("tcp", Pattern::Stream), Transfer::ServerReceives, 1),
            (reverse, Transfer::ServerSends, 1),
            (Spec { stop: Stop::Transactions(70), block: 1, ..Spec::new("tcp", Pattern::Rr) }, Transfer::Both, -70),
            (Spec { block: 1, ..Spec::new("tcp", Pattern::Crr) }, Transfer::Both, 1),
            (
                Spec { block: 1000, stop: Stop::Blocks(9), ..Spec::new("udp", Pattern::Stream) },
                Transfer::ServerReceives,
                -9000,
            ),
            (Spec { block: 64, reply: Some(8), ..Spec::new("udp", Pattern::Rr) }, Transfer::Both, 1),
        ];
        for (wanted, transfer, length) in cases {
            let requested = request(&wanted, 4).unwrap();
            assert_eq!(
                (requested.direction, requested.length, requested.udp),
                (transfer, length, wanted.transport == TransportName::Udp)
            );
            let read = OmniRequest::from_block(&requested.to_block()).unwrap();
            let served = spec(&read);
            assert_eq!((&served.pattern, served.direction), (&wanted.pattern, wanted.direction));
            if wanted.pattern != Pattern::Stream || transfer == Transfer::ServerSends {
                assert_eq!((served.block, served.reply_bytes()), (wanted.block, wanted.reply_bytes()));
            }
        }
    }

    #[test]
    fn unsupported_options_are_named() {
        let said = |change: fn(&mut Spec)| {
            let mut spec = Spec::new("tcp", Pattern::Stream);
            change(&mut spec);
            request(&spec, 4).unwrap_err().to_string()
        };
        assert!(
            said(|spec| (spec.flows, spec.stop) = (2, Stop::Bytes(1 << 20))).contains("a count with several flows")
        );
        assert!(
            said(|spec| (spec.direction, spec.rate_bps) = (Direction::Both, Some(1)))
                .contains("`--rate` with `--reverse` or `--both`")
        );
        assert!(said(|spec| spec.warmup_ns = 1).contains("`--warmup` without"));
        assert!(said(|spec| spec.far.mss = Some(1200)).contains("`--mss` at the far end"));
        assert!(said(|spec| spec.pattern = Pattern::Pingpong).contains("only streams and round trips"));
        assert!(said(|spec| spec.stop = Stop::Bytes(3 << 30)).contains("use 2147483647 or less"));
        let half = |spec: &mut Spec| (spec.direction, spec.stop) = (Direction::Reverse, Stop::TimeNs(SECOND_NS / 2));
        assert!(said(half).contains("whole seconds"));
    }

    #[test]
    fn a_client_beyond_the_limits_gets_a_number() {
        let limits = ServiceLimits {
            unauthenticated: 1,
            hold_ns: 10 * SECOND_NS,
            flows: 1,
            rate_bps: None,
            memory_bytes: 8 << 30,
        };
        let long =
            request(&Spec { stop: Stop::TimeNs(11 * SECOND_NS), ..Spec::new("tcp", Pattern::Stream) }, 4).unwrap();
        assert_eq!(refusal(&long, &spec(&long), &limits).map(|(number, _)| number), Some(EINVAL));
        let brief = request(&Spec::new("tcp", Pattern::Stream), 4).unwrap();
        assert_eq!(refusal(&brief, &spec(&brief), &limits), None);
        let back = OmniRequest { direction: Transfer::ServerSends, udp: true, ..brief.clone() };
        assert_eq!(refusal(&back, &spec(&back), &limits).map(|(number, _)| number), Some(998));
        let neither = OmniRequest { direction: Transfer::Neither, ..brief };
        assert_eq!(refusal(&neither, &spec(&neither), &limits).map(|(number, _)| number), Some(998));
    }
}
