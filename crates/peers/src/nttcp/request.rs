//! Translates between a spec and nttcp's options.

use model::{Direction, EndOptions, Observe, Pattern, Program, Spec, Stop, TransportName};
use peer_wire::nttcp::{Options, SEPARATED_FORMAT};
use text::{Said, Text, say};

use crate::capabilities::{Capabilities, one_direction};
use crate::{ProgramError, ServiceLimits};

/// nttcp's own bounds, exclusive: bytes of a buffer, buffers, microseconds between writes.
const BYTES_LIMIT: u64 = 100_000_000;
const COUNT_LIMIT: u64 = 1_000_000_000;
const GAP_LIMIT_US: u64 = 10_000_000;
/// Largest buffer that a client may request.
const MOST_BYTES: u64 = 16 << 20;
/// Bytes of a datagram.
const LEAST_DATAGRAM: u64 = 8;
const MOST_DATAGRAM: u64 = 65_507;
/// Stall limit of a client's data, ns.
const STALL_NS: u64 = 30_000_000_000;

const CAPABILITIES: Capabilities = Capabilities {
    program: Program::Nttcp,
    patterns: (&[Pattern::Transfer], || {
        say!("only transfers of a fixed amount are supported: `thru transfer HOST --speak nttcp`")
    }),
    flows: [1, 1],
    blocks: [1..=BYTES_LIMIT - 1, LEAST_DATAGRAM..=MOST_DATAGRAM],
};

/// The options for the remote side.
pub(super) fn options(spec: &Spec) -> Result<Options, ProgramError> {
    fn refuse(what: impl Into<Text>, remedy: impl Into<Text>) -> Result<Options, ProgramError> {
        Err(CAPABILITIES.unsupported(what, remedy))
    }
    CAPABILITIES.check(spec)?;
    if spec.direction == Direction::Both {
        return refuse(say!("`--both`"), one_direction());
    }
    let udp = spec.transport == TransportName::Udp;
    let count = match spec.stop {
        Stop::Blocks(count) => count,
        Stop::Bytes(bytes) if bytes.is_multiple_of(spec.block) => bytes / spec.block,
        Stop::Bytes(_) => {
            return refuse(
                say!("`--bytes` that are not a multiple of `--block`"),
                say!("it sends whole buffers; use `--count`"),
            );
        }
        _ => return refuse("a trial without a count", say!("use `--count`")),
    };
    if !(1..COUNT_LIMIT).contains(&count) {
        return refuse(say!("`--count {count}`"), "use 1 to 999999999");
    }
    let window_kib = match spec.far.sndbuf {
        None => None,
        Some(bytes) if !udp && bytes >= 1024 && bytes.is_multiple_of(1024) => Some((bytes / 1024) as u32),
        Some(_) => {
            return refuse(
                say!("`--sndbuf` and `--rcvbuf` at the far end"),
                "use whole KiB over TCP; not supported over UDP",
            );
        }
    };
    let transmits = spec.direction == Direction::Reverse;
    let gap_us = match spec.rate_bps.filter(|_| transmits) {
        None => 0,
        Some(bps) => (spec.block as f64 * 8e6 / bps as f64) as u64,
    };
    if gap_us >= GAP_LIMIT_US || (gap_us == 0 && transmits && spec.rate_bps.is_some()) {
        return refuse(
            say!("`--rate` with `--reverse` and this `--block`"),
            "the time between two writes must be 1 µs to 10 s",
        );
    }
    let nodelay = transmits && spec.far.nodelay == Some(true);
    // Only its verbose output contains its version.
    Ok(Options {
        transmits,
        nodelay,
        bytes: spec.block,
        count,
        udp,
        verbose: true,
        gap_us,
        window_kib,
        // The default columns run together for very short transfers.
        format: SEPARATED_FORMAT.into(),
        ..Options::default()
    })
}

/// The measurement that a client requests, as the remote side runs it.
pub(super) fn spec(requested: &Options) -> Spec {
    let window = requested.window_kib.filter(|_| !requested.udp).map(|kib| u64::from(kib) * 1024);
    let options = EndOptions {
        sndbuf: window,
        rcvbuf: window,
        nodelay: (!requested.udp).then_some(requested.nodelay),
        ..EndOptions::default()
    };
    let rate = (requested.gap_us > 0).then(|| (requested.bytes as f64 * 8e6 / requested.gap_us as f64).max(1.0) as u64);
    Spec {
        block: requested.bytes,
        direction: if requested.transmits { Direction::Reverse } else { Direction::Send },
        stop: Stop::Blocks(requested.count),
        rate_bps: rate,
        burst: rate.map(|_| requested.bytes),
        observe: Observe::Off,
        interval_ns: 0,
        stall_ns: STALL_NS,
        near: options.clone(),
        far: options,
        ..Spec::new(if requested.udp { "udp" } else { "tcp" }, Pattern::Transfer)
    }
}

/// Why a client is refused, if it is.
pub(super) fn refusal(requested: &Options, spec: &Spec, limits: &ServiceLimits) -> Option<Text> {
    let least = if requested.udp { LEAST_DATAGRAM } else { 1 };
    let most = if requested.udp { MOST_DATAGRAM } else { MOST_BYTES };
    if !(least..=most).contains(&requested.bytes) {
        return Some(say!("buffers of {} bytes; the limits are {least} to {most}", requested.bytes));
    }
    if let Some(why) = limits.beyond_memory(1, requested.bytes) {
        return Some(why);
    }
    // Only the client controls the rate at which it sends.
    if limits.rate_bps.is_some_and(|most| !requested.transmits || spec.rate_bps.is_none_or(|bps| bps > most)) {
        return Some(say!("a rate above `--max-rate`, or none (-g)"));
    }
    engine::transport::check_options(model::Role::Passive, spec).err().map(|error| error.say())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer() -> Spec {
        Spec { block: 4096, stop: Stop::Blocks(10), ..Spec::new("tcp", Pattern::Transfer) }
    }

    #[test]
    fn a_spec_and_its_options_agree() {
        let far =
            EndOptions { sndbuf: Some(65_536), rcvbuf: Some(65_536), nodelay: Some(true), ..EndOptions::default() };
        let spec = Spec { direction: Direction::Reverse, rate_bps: Some(8_192_000), far, ..transfer() };
        let requested = options(&spec).unwrap();
        assert_eq!(
            (requested.transmits, requested.nodelay, requested.gap_us, requested.window_kib),
            (true, true, 4000, Some(64))
        );
        let served = super::spec(&requested);
        assert_eq!((served.direction, served.stop, served.block), (spec.direction, spec.stop, spec.block));
        assert_eq!((served.rate_bps, &served.far), (spec.rate_bps, &spec.far));
    }

    #[test]
    fn unsupported_options_are_named_with_a_remedy() {
        let said = |change: fn(&mut Spec)| {
            let mut spec = transfer();
            change(&mut spec);
            options(&spec).unwrap_err().to_string()
        };
        assert!(said(|spec| spec.flows = 2).contains("`--flows 2` with nttcp"));
        assert!(said(|spec| spec.stop = Stop::Bytes(4097)).contains("use `--count`"));
        assert!(said(|spec| spec.pattern = Pattern::Stream).contains("`thru transfer HOST --speak nttcp`"));
        assert!(said(|spec| spec.far.cc = Some("reno".into())).contains("`--cc` at the far end with nttcp"));
        assert!(said(|spec| spec.block = BYTES_LIMIT).contains("use 1 to 99999999 bytes"));
        let bytes = Spec { stop: Stop::Bytes(8192), ..transfer() };
        assert_eq!(options(&bytes).unwrap().count, 2);
    }

    #[test]
    fn a_client_beyond_the_limits_is_refused() {
        let limits = ServiceLimits {
            unauthenticated: 1,
            hold_ns: 1,
            flows: 1,
            rate_bps: Some(1_000_000),
            memory_bytes: 8 << 30,
        };
        let why = |requested: Options| refusal(&requested, &spec(&requested), &limits);
        assert!(why(Options { transmits: false, ..Options::default() }).unwrap().plain().contains("`--max-rate`"));
        assert!(why(Options { bytes: MOST_BYTES + 1, ..Options::default() }).unwrap().plain().contains("buffers of"));
        // 4096 bytes each 40 ms are 819 kbit/s.
        assert_eq!(why(Options { gap_us: 40_000, ..Options::default() }), None);
    }
}
