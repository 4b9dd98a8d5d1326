//! Translates between a spec and nuttcp's options.

use model::{Direction, EndOptions, Observe, Pattern, Program, Spec, Stop, TransportName};
use peer_wire::nuttcp::{MOST_WINDOW, NO_RATE, Options};
use text::{Said, Text, say};

use crate::capabilities::{Capabilities, one_direction};
use crate::{ProgramError, ServiceLimits};

const SECOND_NS: f64 = 1e9;
/// Bytes of a buffer and of a datagram that are spoken.
const MOST_BYTES: u64 = 16 << 20;
const LEAST_DATAGRAM: u64 = 8;
const MOST_DATAGRAM: u64 = 65_507;
/// The count that nuttcp sends for timed tests.
const ENDLESS: u64 = i32::MAX as u64;
/// nuttcp's most streams.
const MOST_FLOWS: u32 = 128;
/// Shortest interval of interim reports, seconds: each is kept until the end.
const LEAST_INTERVAL_S: f64 = 0.1;
/// Stall limit of a client's data, ns.
const STALL_NS: u64 = 30_000_000_000;

const CAPABILITIES: Capabilities = Capabilities {
    program: Program::Nuttcp,
    patterns: (&[Pattern::Stream, Pattern::Transfer], || {
        say!("only streams and transfers are supported: `thru stream HOST --speak nuttcp`")
    }),
    flows: [MOST_FLOWS, 1],
    blocks: [1..=MOST_BYTES, LEAST_DATAGRAM..=MOST_DATAGRAM],
};

/// The options for the server; data ports start at `port`.
pub(super) fn options(spec: &Spec, port: u16) -> Result<Options, ProgramError> {
    fn refuse(what: impl Into<Text>, remedy: impl Into<Text>) -> Result<Options, ProgramError> {
        Err(CAPABILITIES.unsupported(what, remedy))
    }
    CAPABILITIES.check(spec)?;
    if spec.direction == Direction::Both {
        return refuse(say!("`--both`"), one_direction());
    }
    let (count, seconds) = match spec.stop {
        Stop::TimeNs(ns) => (ENDLESS, ns as f64 / SECOND_NS),
        Stop::Blocks(count) => (count, 0.0),
        Stop::Bytes(bytes) if bytes.is_multiple_of(spec.block) => (bytes / spec.block, 0.0),
        Stop::Bytes(_) => {
            return refuse(
                say!("`--bytes` that are not a multiple of `--block`"),
                say!("it sends whole buffers; use `--count`"),
            );
        }
        _ => return refuse("a point of a curve", "use thru stream for a single size"),
    };
    let window_bytes = match spec.far.sndbuf {
        None => 0,
        Some(bytes) if (1..=MOST_WINDOW).contains(&bytes) => bytes,
        Some(_) => return refuse(say!("`--sndbuf` and `--rcvbuf` at the far end"), "use 1 to 2147483647 bytes"),
    };
    Ok(Options {
        bytes: spec.block,
        count,
        window_bytes,
        streams: spec.flows,
        rate_kbps: spec.rate_bps.map_or(NO_RATE, |bps| (bps / 1000).max(1)),
        port,
        client_transmits: spec.direction == Direction::Send,
        seconds,
        udp: spec.transport == TransportName::Udp,
        nodelay: spec.far.nodelay == Some(true),
        ..Options::default()
    })
}

/// The measurement that a client requests, as the server runs it.
pub(super) fn spec(requested: &Options) -> Spec {
    let window = Some(requested.window_bytes).filter(|bytes| *bytes > 0);
    let options = EndOptions {
        sndbuf: window,
        rcvbuf: window,
        nodelay: (!requested.udp).then_some(requested.nodelay),
        dscp: (requested.tos > 0).then_some(requested.tos >> 2),
        ..EndOptions::default()
    };
    Spec {
        block: requested.bytes,
        flows: requested.streams,
        direction: if requested.client_transmits { Direction::Send } else { Direction::Reverse },
        stop: match requested.seconds > 0.0 {
            true => Stop::TimeNs((requested.seconds * SECOND_NS) as u64),
            false => Stop::Blocks(requested.count),
        },
        rate_bps: (requested.rate_kbps < NO_RATE).then(|| requested.rate_kbps.saturating_mul(1000)),
        observe: Observe::Off,
        interval_ns: if requested.reports_interim() { (requested.interval_s * SECOND_NS) as u64 } else { 0 },
        stall_ns: STALL_NS,
        near: options.clone(),
        far: options,
        ..Spec::new(if requested.udp { "udp" } else { "tcp" }, Pattern::Stream)
    }
}

/// Why a client is refused, if it is.
pub(super) fn refusal(requested: &Options, spec: &Spec, limits: &ServiceLimits) -> Option<Text> {
    let (least, most) = if requested.udp { (LEAST_DATAGRAM, MOST_DATAGRAM) } else { (1, MOST_BYTES) };
    if !(least..=most).contains(&requested.bytes) {
        return Some(say!("buffers of {} bytes; the limits are {least} to {most}", requested.bytes));
    }
    if requested.streams > limits.flows || (requested.udp && requested.streams > 1) {
        return Some(say!("{} streams; the limit is {}, over UDP 1", requested.streams, limits.flows));
    }
    if let Some(why) = limits.beyond_memory(requested.streams.into(), requested.bytes) {
        return Some(why);
    }
    if requested.port.checked_add(requested.streams as u16).is_none() {
        return Some(say!("{} data ports from {} exceed 65535", requested.streams, requested.port));
    }
    if requested.reports_interim() && requested.interval_s < LEAST_INTERVAL_S {
        return Some(say!("interim reports (-i) every {} s; the least is {LEAST_INTERVAL_S}", requested.interval_s));
    }
    if requested.seconds * SECOND_NS > limits.hold_ns as f64 {
        return Some(say!("{} s; raise `--max-time`", requested.seconds));
    }
    if limits.rate_bps.is_some_and(|most| spec.rate_bps.is_none_or(|bps| bps > most)) {
        return Some(say!("a rate above `--max-rate`, or none"));
    }
    engine::transport::check_options(model::Role::Passive, spec).err().map(|error| error.say())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_and_its_options_agree() {
        let far =
            EndOptions { sndbuf: Some(1 << 20), rcvbuf: Some(1 << 20), nodelay: Some(true), ..EndOptions::default() };
        let requested = Spec {
            direction: Direction::Reverse,
            flows: 3,
            stop: Stop::TimeNs(1_500_000_000),
            rate_bps: Some(30_000_000),
            far,
            ..Spec::new("tcp", Pattern::Stream)
        };
        let said = options(&requested, 5001).unwrap();
        assert_eq!((said.window_bytes, said.rate_kbps, said.seconds), (1 << 20, 30_000, 1.5));
        let line = said.to_line();
        let read = Options::from_line(std::str::from_utf8(&line).unwrap().trim_end()).unwrap();
        let served = spec(&read);
        assert_eq!((served.flows, served.direction, served.stop), (3, requested.direction, requested.stop));
        assert_eq!((served.rate_bps, &served.far), (requested.rate_bps, &requested.far));
    }

    #[test]
    fn unsupported_options_are_named_with_a_remedy() {
        let said = |change: fn(&mut Spec)| {
            let mut spec = Spec::new("tcp", Pattern::Stream);
            change(&mut spec);
            options(&spec, 5001).unwrap_err().to_string()
        };
        assert!(said(|spec| spec.direction = Direction::Both).contains("`--both` with nuttcp"));
        assert!(said(|spec| spec.flows = 129).contains("use 1 to 128 over tcp"));
        assert!(said(|spec| spec.warmup_ns = 1).contains("`--warmup` with nuttcp"));
        assert!(said(|spec| (spec.transport, spec.flows) = ("udp".into(), 2)).contains("`--flows 2`"));
        assert!(said(|spec| spec.pattern = Pattern::Rr).contains("`thru stream HOST --speak nuttcp`"));
    }

    #[test]
    fn a_client_beyond_the_limits_is_refused() {
        let limits = ServiceLimits {
            unauthenticated: 1,
            hold_ns: 11_000_000_000,
            flows: 2,
            rate_bps: None,
            memory_bytes: 8 << 30,
        };
        let why = |requested: Options| refusal(&requested, &spec(&requested), &limits);
        assert_eq!(why(Options::default()), None);
        assert!(why(Options { streams: 3, ..Options::default() }).unwrap().plain().contains("3 streams"));
        assert!(why(Options { seconds: 12.0, ..Options::default() }).unwrap().plain().contains("`--max-time`"));
        assert_eq!(why(Options { interval_s: 1.0, ..Options::default() }), None);
        assert!(why(Options { interval_s: 0.01, ..Options::default() }).unwrap().plain().contains("(-i)"));
        assert_eq!(why(Options { interval_s: 0.01, client_transmits: false, ..Options::default() }), None);
        assert!(
            why(Options { port: 65_535, streams: 2, ..Options::default() }).unwrap().plain().contains("data ports")
        );
        let limits = ServiceLimits { rate_bps: Some(1), ..limits };
        let requested = Options::default();
        assert!(refusal(&requested, &spec(&requested), &limits).unwrap().plain().contains("`--max-rate`"));
    }
}
