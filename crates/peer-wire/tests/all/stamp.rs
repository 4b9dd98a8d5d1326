//! STAMP's datagrams by the RFC's layout. There is no recording of another program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use peer_wire::stamp::{BASE_BYTES, ErrorEstimate, Reply, StampRequest, TTL_UNKNOWN, Timestamp, Trip, pad};
use proptest::prelude::*;

/// 2026-01-01T00:00:00.5Z.
const UNIX_NS: u64 = 1_767_225_600_500_000_000;

fn request() -> StampRequest {
    StampRequest {
        sequence: 0x0102_0304,
        sent: Timestamp::of_unix_ns(UNIX_NS),
        error: ErrorEstimate::covering(1_000_000, true),
        session: 0xabcd,
    }
}

#[test]
fn a_request_lies_as_the_rfc_has_it() {
    let mut bytes = [0xee; 48];
    request().write(&mut bytes).unwrap();
    // 3976214400 s since 1900 are 0xed003780; half a second is the top bit of the fraction.
    assert_eq!(bytes[..16], [1, 2, 3, 4, 0xed, 0, 0x37, 0x80, 0x80, 0, 0, 0, 0x8f, 0x84, 0xab, 0xcd][..]);
    assert_eq!(bytes[16..BASE_BYTES], [0; 28]);
    assert_eq!(bytes[BASE_BYTES..], [0xee; 4], "padding stays");
    assert_eq!(StampRequest::read(&bytes).unwrap(), request());
    assert!(request().write(&mut [0; 43]).unwrap_err().what.to_string().contains("43 bytes"));
    // A TWAMP sender's padding is not a session number.
    assert_eq!(StampRequest::read(&bytes[..43]).unwrap(), StampRequest { session: 0, ..request() });
    bytes[30] = 1;
    assert_eq!(StampRequest::read(&bytes).unwrap(), StampRequest { session: 0, ..request() });
}

#[test]
fn padding_is_an_extension_where_one_fits() {
    for (length, beyond) in [(44, &[][..]), (47, &[0; 3]), (48, &[0x80, 1, 0, 0]), (51, &[0x80, 1, 0, 3, 0, 0, 0])] {
        let mut bytes = vec![0; length];
        pad(&mut bytes);
        request().write(&mut bytes).unwrap();
        assert_eq!(bytes[BASE_BYTES..], *beyond);
        assert_eq!(StampRequest::read(&bytes).unwrap(), request());
    }
}

#[test]
fn error_estimates_cover_what_they_are_to() {
    assert_eq!(ErrorEstimate(0x9601).seconds(), Some(2_f64.powi(-10)), "about a millisecond, by the RFC's formula");
    assert_eq!(ErrorEstimate(0x0001).seconds(), Some(2_f64.powi(-32)));
    assert_eq!(ErrorEstimate(0x8000).seconds(), None, "a multiplier of 0 says nothing");
    assert!(ErrorEstimate(0x9601).synchronised() && !ErrorEstimate(0x1601).synchronised());
    assert_eq!(ErrorEstimate::covering(0, false), ErrorEstimate(1), "never a multiplier of 0");
}

#[test]
fn a_reply_carries_the_request_back_and_does_not_grow() {
    let at = |ns: u64| Timestamp::of_unix_ns(UNIX_NS + ns);
    let reply = Reply {
        sequence: 9,
        sent: at(1_250_000),
        error: ErrorEstimate::covering(1_000, false),
        session: 0xabcd,
        received: at(1_000_000),
        request: request(),
        ttl: 61,
    };
    for length in [41, 43, 44, 100] {
        let mut datagram = vec![0x5a; length];
        reply.write(&mut datagram).unwrap();
        let beyond = datagram.get(BASE_BYTES..).unwrap_or_default();
        assert!(beyond.iter().all(|byte| *byte == 0x5a), "what lies beyond goes back");
        assert!(datagram[41..length.min(BASE_BYTES)].iter().all(|byte| *byte == 0));
        assert_eq!((datagram[40], &datagram[24..28]), (61, &[1, 2, 3, 4][..]));
        assert_eq!(Reply::read(&datagram).unwrap(), reply);
        assert_eq!(Reply::read(&datagram[..41]).unwrap(), reply, "TWAMP's is three bytes shorter");
        // twampy's responder ends before the time to live.
        assert_eq!(Reply::read(&datagram[..38]).unwrap(), Reply { ttl: TTL_UNKNOWN, ..reply });
    }
    assert!(reply.write(&mut [0; 40]).unwrap_err().what.to_string().contains("40 bytes are too few"));
    let trip = reply.trip(at(1_750_000));
    let expected = Trip { round_ns: 1_500_000, there_ns: 1_000_000, back_ns: 500_000, reflector_ns: 250_000 };
    // A timestamp's unit is a quarter of a nanosecond, and each is cut.
    for (got, expected) in [
        (trip.round_ns, expected.round_ns),
        (trip.there_ns, expected.there_ns),
        (trip.back_ns, expected.back_ns),
        (trip.reflector_ns, expected.reflector_ns),
    ] {
        assert!((got - expected).abs() <= 2, "{trip:?}");
    }
}

#[test]
fn invalid_datagrams_are_refused_with_their_step() {
    let error = StampRequest::read(&[0; 13]).unwrap_err();
    assert_eq!(error.to_string(), "stamp, while reading a request: a packet has 13 bytes; the minimum is 14");
    let error = Reply::read(&[0; 37]).unwrap_err();
    assert_eq!(error.to_string(), "stamp, while reading a reply: a packet has 37 bytes; the minimum is 38");
    let mut ptp = [0; 44];
    ptp[12] = 0x40;
    assert!(Reply::read(&ptp).is_err(), "the offset of the clocks needs NTP's");
    // A sender's own time is only returned.
    let request = StampRequest::read(&ptp).unwrap();
    let (zero, error) = (Timestamp(0), ErrorEstimate::covering(1_000_000, false));
    let (sequence, session, ttl) = (0, 0, TTL_UNKNOWN);
    Reply { sequence, sent: zero, error, session, received: zero, request, ttl }.write(&mut ptp).unwrap();
    assert_eq!((ptp[12] & 0x40, ptp[36]), (0, 0x40), "each time with its own format");
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120), arrived in any::<u64>()) {
        if let Err(error) = StampRequest::read(&bytes) {
            prop_assert_eq!(error.peer, "stamp");
        }
        match Reply::read(&bytes) {
            Ok(reply) => drop(reply.trip(Timestamp(arrived))),
            Err(error) => prop_assert_eq!(error.peer, "stamp"),
        }
    }

    #[test]
    fn spans_are_right_across_the_wrap_of_2036(start in any::<u64>(), span_ns in -1_000_000_000_000_i64..1_000_000_000_000) {
        let units = (i128::from(span_ns) << 32) / 1_000_000_000;
        let later = Timestamp(start.wrapping_add(units as u64));
        prop_assert!((later.ns_since(Timestamp(start)) - span_ns).abs() <= 1);
    }

    #[test]
    fn an_estimate_is_never_below_what_it_covers(ns in 0_u64..10_000_000_000) {
        let seconds = ErrorEstimate::covering(ns, true).seconds().unwrap();
        prop_assert!(seconds >= ns as f64 / 1e9);
        prop_assert!(seconds <= ns as f64 / 1e9 * 1.02 + 3e-10, "{} for {} ns", seconds, ns);
    }
}
