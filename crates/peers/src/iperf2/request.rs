//! Translates between a spec and iperf 2's header.

use model::{Direction, Observe, Pattern, Program, Spec, Stop, TransportName};
use peer_wire::iperf2::{Amount, HEADER_BYTES, Header, NUMBER_BYTES};
use text::{Text, say};

use crate::capabilities::{Capabilities, REMEDY};
use crate::{ProgramError, ServiceLimits, plain};

/// Bytes of a write that are spoken.
const MOST_BYTES: u64 = 16 << 20;
/// Bytes of a datagram: the least has a number, a time and the header.
const LEAST_DATAGRAM: u64 = (NUMBER_BYTES + HEADER_BYTES) as u64;
const MOST_DATAGRAM: u64 = 65_507;
const MOST_FLOWS: u32 = 128;
const HUNDREDTH_NS: u64 = 10_000_000;
/// An amount has 31 bits.
const MOST_AMOUNT: u64 = 0x7fff_ffff;
/// Stall limit of a client's data, ns.
const STALL_NS: u64 = 30_000_000_000;
/// The same over UDP, where nothing shows that a client has gone. The engine gives a passive end half as much again.
const DATAGRAM_STALL_NS: u64 = 5_000_000_000;

const CAPABILITIES: Capabilities = Capabilities {
    program: Program::Iperf2,
    patterns: (&[Pattern::Stream, Pattern::Transfer], || {
        say!("only streams and transfers are supported: `thru stream HOST --speak iperf2`")
    }),
    flows: [MOST_FLOWS, 1],
    blocks: [1..=MOST_BYTES, LEAST_DATAGRAM..=MOST_DATAGRAM],
};

/// The header that is sent over each connection to the server at `port`.
pub(super) fn header(spec: &Spec, port: u16) -> Result<Header, ProgramError> {
    fn refuse(what: impl Into<Text>, remedy: impl Into<Text>) -> Result<Header, ProgramError> {
        Err(CAPABILITIES.unsupported(what, remedy))
    }
    CAPABILITIES.check(spec)?;
    let (udp, reverse) = (spec.transport == TransportName::Udp, spec.direction == Direction::Reverse);
    let both = spec.direction == Direction::Both;
    if udp && (reverse || both) {
        return refuse(say!("`--reverse` or `--both` over UDP"), "they work only over TCP; leave them out");
    }
    if both && !matches!(spec.stop, Stop::TimeNs(_)) {
        return refuse(say!("an amount with `--both`"), say!("use `--time`"));
    }
    if spec.far.sndbuf.is_some() || spec.far.nodelay == Some(true) {
        return refuse(say!("`--sndbuf`, `--rcvbuf` or `--nodelay` at the far end"), REMEDY);
    }
    if (reverse || both) && spec.rate_bps.is_some() {
        return refuse(
            say!("`--rate` with `--reverse` or `--both`"),
            "its protocol has no rate over TCP; leave one of them out",
        );
    }
    let amount = match spec.stop {
        Stop::TimeNs(ns) => Some((ns, HUNDREDTH_NS)),
        Stop::Blocks(count) => Some((count.saturating_mul(spec.block), u64::from(spec.flows) * spec.block)),
        Stop::Bytes(bytes) => Some((bytes, u64::from(spec.flows) * if udp { spec.block } else { 1 })),
        _ => None,
    };
    let shares = amount.filter(|(whole, part)| *whole > 0 && whole.is_multiple_of(*part)).map(|(whole, _)| whole);
    let amount = match (shares, spec.stop) {
        (None, _) => {
            return refuse("this amount", "use hundredths of a second, or the same number of bytes for each flow");
        }
        (Some(ns), Stop::TimeNs(_)) => ns / HUNDREDTH_NS,
        (Some(bytes), _) => bytes / u64::from(spec.flows),
    };
    if amount > MOST_AMOUNT && reverse {
        return refuse(say!("this amount with `--reverse`"), "use up to 2147483647 bytes for each flow");
    }
    // A sending client ends the test itself.
    let amount = amount.min(MOST_AMOUNT) as u32;
    Ok(Header {
        threads: spec.flows,
        port,
        bytes: spec.block as u32,
        amount: if matches!(spec.stop, Stop::TimeNs(_)) { Amount::Hundredths(amount) } else { Amount::Bytes(amount) },
        reverse,
        full_duplex: both,
        rate_bps: 0,
    })
}

/// The spec of one connection; `None` for a client that sent no header.
pub(super) fn spec(requested: Option<&Header>) -> Spec {
    let plain = Spec { observe: Observe::Off, interval_ns: 0, stall_ns: STALL_NS, ..Spec::new("tcp", Pattern::Stream) };
    let Some(requested) = requested else { return plain };
    Spec {
        block: u64::from(requested.bytes),
        direction: match (requested.reverse, requested.full_duplex) {
            (_, true) => Direction::Both,
            (true, false) => Direction::Reverse,
            (false, false) => Direction::Send,
        },
        stop: match requested.amount {
            Amount::Bytes(bytes) => Stop::Bytes(u64::from(bytes)),
            Amount::Hundredths(time) => Stop::TimeNs(u64::from(time) * HUNDREDTH_NS),
        },
        // -b with -R or --full-duplex is the rate at which this end sends on each connection.
        rate_bps: Some(requested.rate_bps).filter(|rate| *rate > 0),
        ..plain
    }
}

/// Datagrams that a client sends.
pub(super) fn datagrams() -> Spec {
    Spec {
        observe: Observe::Off,
        interval_ns: 0,
        stall_ns: DATAGRAM_STALL_NS,
        block: MOST_DATAGRAM,
        ..Spec::new("udp", Pattern::Stream)
    }
}

/// Why a sender of datagrams is refused for what it requests, if it is.
pub(super) fn refusal_of_datagrams(requested: Option<&Header>) -> Option<Text> {
    let back = requested.is_some_and(|header| header.reverse || header.full_duplex);
    // One datagram with a forged source would direct a stream at any host.
    back.then(|| {
        "datagrams from the server (-u with -R or in both directions): nothing proves that the client asked for them"
            .into()
    })
}

/// Why a client is refused that has `streams` streams with this one; `None` if it is served.
pub(super) fn refusal(spec: &Spec, streams: u64, limits: &ServiceLimits) -> Option<Text> {
    if limits.rate_bps.is_some() {
        return Some(say!("its protocol has no rate, which `--max-rate` requires"));
    }
    if spec.block > MOST_BYTES {
        return Some(say!("writes of {} bytes; the limit is {MOST_BYTES}", spec.block));
    }
    if let Some(why) = limits.beyond_memory(streams, spec.block) {
        return Some(why);
    }
    let sends = plain::sends(spec, model::Role::Passive);
    match spec.stop {
        Stop::TimeNs(ns) if sends && ns > limits.hold_ns => Some(say!("{} s; raise `--max-time`", ns / 1_000_000_000)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_and_its_header_agree() {
        let time = Spec {
            direction: Direction::Reverse,
            stop: Stop::TimeNs(1_500_000_000),
            ..Spec::new("tcp", Pattern::Stream)
        };
        let bytes = Spec { stop: Stop::Bytes(4_000), ..time.clone() };
        let both = Spec { direction: Direction::Both, ..time.clone() };
        for requested in [time, bytes, both] {
            let said = header(&requested, 5001).unwrap();
            let read = Header::from_bytes(&said.to_bytes()).unwrap();
            let served = spec(Some(&read));
            assert_eq!(
                (served.direction, served.stop, served.block),
                (requested.direction, requested.stop, requested.block)
            );
        }
        let paced = Header { rate_bps: 10_000_000, ..header(&Spec::new("tcp", Pattern::Stream), 5001).unwrap() };
        assert_eq!(spec(Some(&Header::from_bytes(&paced.to_bytes()).unwrap())).rate_bps, Some(10_000_000));
        let shared = Spec { flows: 4, stop: Stop::Blocks(8), block: 1000, ..Spec::new("tcp", Pattern::Stream) };
        assert_eq!(header(&shared, 5001).unwrap().amount, Amount::Bytes(2000));
    }

    #[test]
    fn unsupported_options_are_named_with_a_remedy() {
        let said = |change: fn(&mut Spec)| {
            let mut spec = Spec::new("tcp", Pattern::Stream);
            change(&mut spec);
            header(&spec, 5001).unwrap_err().to_string()
        };
        let udp_both =
            said(|spec| (spec.transport, spec.block, spec.direction) = ("udp".into(), 1_000, Direction::Both));
        assert!(udp_both.contains("`--reverse` or `--both` over UDP with iperf2"));
        assert!(said(|spec| (spec.direction, spec.stop) = (Direction::Both, Stop::Bytes(4))).contains("use `--time`"));
        assert!(
            said(|spec| (spec.direction, spec.rate_bps) = (Direction::Reverse, Some(1))).contains("no rate over TCP")
        );
        assert!(
            said(|spec| (spec.flows, spec.stop) = (3, Stop::Blocks(4)))
                .contains("the same number of bytes for each flow")
        );
        assert!(said(|spec| spec.stop = Stop::TimeNs(1_005_000_000)).contains("hundredths"));
        assert!(said(|spec| (spec.transport, spec.block) = ("udp".into(), 20)).contains("use 76 to 65507"));
        assert!(
            said(|spec| (spec.direction, spec.stop) = (Direction::Reverse, Stop::Bytes(1 << 31)))
                .contains("2147483647")
        );
    }

    #[test]
    fn a_client_beyond_the_limits_is_refused() {
        let limits = ServiceLimits {
            unauthenticated: 1,
            hold_ns: 1_000_000_000,
            flows: 2,
            rate_bps: None,
            memory_bytes: 8 << 30,
        };
        let long = Spec { direction: Direction::Reverse, stop: Stop::TimeNs(2_000_000_000), ..spec(None) };
        assert!(refusal(&long, 1, &limits).unwrap().plain().contains("`--max-time`"));
        assert_eq!(refusal(&spec(None), 1, &limits), None, "a client that sends ends by itself");
        assert!(
            refusal(&spec(None), 1, &ServiceLimits { rate_bps: Some(1), ..limits })
                .unwrap()
                .plain()
                .contains("`--max-rate`")
        );
    }
}
